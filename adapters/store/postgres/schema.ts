/** The tables. `ends`: the minute, by the clock of the database, after which a row may go. It is raised seldom, and little else that changes is in an index: so updates are HOT. */
const tables: Readonly<Record<string, string>> = {
  step: "number integer primary key, made timestamptz not null default now()",
  record: 'key text collate "C" primary key, ends integer not null, keep_until bigint not null, tokens text[] not null, data text not null',
  wake: 'key text collate "C" primary key, at bigint not null',
  cell: 'name text collate "C" primary key, ends integer not null, place smallint not null, at bigint[] not null, held bigint[], kept integer[], members text[]',
  list: 'name text collate "C", member text collate "C", at bigint not null, ends integer not null, primary key (name, member)',
  counter: 'name text collate "C" primary key, ends integer not null, held bigint not null',
  value: 'key text collate "C" primary key, ends integer not null, value text not null',
};

const ending = ["record", "cell", "list", "counter", "value"];

const indexes: Readonly<Record<string, string>> = {
  wake_at: "wake (at)",
  list_at: "list (name, at desc)",
  ...Object.fromEntries(ending.map((table) => [`${table}_ends`, `${table} (ends)`])),
};

const settings = "fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0";

/** Plans are made once, when the tables may be empty, and then kept. */
const planned = "language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off";

const thisMinute = "ceil(extract(epoch from now()) / 60)::integer";

/*
 * A cell is a window with limits, or a sum. Of a window: `at` has twice the times of its members, the oldest first, and one more where the newest claim of the member only moved it; `members` are in the same order.
 * Of a sum: `at` has the numbers of its parts, the oldest first; `held` what it holds up to each of them; `kept` the minute until which each is kept. `place` is read only by the commit that writes it.
 *
 * Claims: `names` of sums begin with "#", of windows with limits with ".", of lists with "-"; `who` is the member; and of each nine numbers. 1: its place in the change, or -1 where it is taken back. 2: what it does, 0 nothing, 1 adds,
 * 2 takes out, 3 takes back. 3: the part, or twice the time. 4: the weight. 5: the floor. 6: the newest part that no longer counts, or twice the time and one more. 7: the newest part that counts; how many members are kept; of a list, whether
 * to count it. 8: the limit. 9: minutes to keep it. They are made turn by turn: `turns`, 0 for those on lists and those that do nothing; in a turn, cells are locked in the order given.
 */
const functions = (s: string): Readonly<Record<string, string>> => ({
  "judge(names text[], who text[], claims bigint[], is_done boolean, out counts text, out refusal text)": `${planned} stable as $$
begin
  select string_agg((j.others + j.itself)::text, ',' order by j.place),
    (array_agg(j.place || ',' || j.others || coalesce(',' || case when j.is_sum then (
      select min(p) from generate_series(j.time + 1, 2 * j.time - j.since + 1) p
      where greatest(j.low, greatest(j.low, coalesce(j.held[width_bucket(p, j.at)], 0) - coalesce(j.held[width_bucket(p - j.time + j.since, j.at)], 0)) + j.weight) <= j.most
    ) else (
      select a >> 1 from unnest(j.at) with ordinality as m(a, i) where i is distinct from j.p order by i desc offset j.most - 1 limit 1
    ) end, '') order by j.place) filter (where j.most < 9223372036854775807
      and case when not j.is_sum then j.others >= j.most when is_done then j.others > j.most else greatest(j.low, greatest(j.low, j.others) + j.weight) > j.most end))[1]
  into counts, refusal from (
    select e.*, c.at, c.held, m.p, case e.kind
      when '#' then coalesce(c.held[width_bucket(e.top, c.at)], 0) - coalesce(c.held[width_bucket(e.since, c.at)], 0)
      when '.' then coalesce(cardinality(c.at) - width_bucket(e.since, c.at), 0) - coalesce((c.at[m.p] > e.since)::integer, 0)
      else case when e.top = 1 then (select count(*) from ${s}.list l where l.name = e.name and l.at > e.since) else 0 end end as others,
      coalesce((c.at[m.p] > e.since)::integer, 0) as itself
    from (
      select u.name, u.member, left(u.name, 1) as kind, left(u.name, 1) = '#' as is_sum, claims[k * 9 - 8] as place, claims[k * 9 - 6] as time, claims[k * 9 - 5] as weight,
        claims[k * 9 - 4] as low, claims[k * 9 - 3] as since, claims[k * 9 - 2] as top, claims[k * 9 - 1] as most
      from unnest(names, who) with ordinality as u(name, member, k) where claims[k * 9 - 8] >= 0
    ) e
    left join lateral (select * from ${s}.cell x where x.name = e.name limit 1) c on true
    left join lateral (select array_position(c.members, e.member) as p) m on true
  ) j;
end $$`,

  [`commit(own text, new_tokens text[], new_data text, numbers bigint[], expected text, revoked text, names text[], who text[], claims bigint[], turns integer[],
    out outcome text, out tokens text, out data text, out keep_until bigint)`]: `${planned} as $$
declare
  this_minute integer := ${thisMinute};
  ending integer := this_minute + numbers[2];
  spare integer := numbers[2] / 8 + 10;
  before text[];
  landed boolean := false;
  back boolean := false;
  counts text;
  refusal text;
begin
  for tries in 1..8 loop
    begin
      if own is not null then
        if revoked is not null then
          select r.tokens into before from ${s}.record r where r.key = own for update;
          back := coalesce(revoked = any (before), false);
        end if;
        if expected is null then
          insert into ${s}.record as r (key, ends, keep_until, tokens, data) values (own, ending + spare, numbers[1], new_tokens, new_data) on conflict (key) do nothing;
        else
          update ${s}.record r set tokens = new_tokens, data = new_data, keep_until = numbers[1], ends = case when r.ends >= ending then r.ends else ending + spare end
          where r.key = own and r.tokens[1] = expected and not new_tokens[1] = any (r.tokens);
        end if;
        if not found then
          select r.tokens, r.data, r.keep_until into before, data, keep_until from ${s}.record r where r.key = own;
          landed := coalesce(new_tokens[1] = any (before), false);
          if not landed then
            outcome := case when before is null then '-' else '=' end;
            tokens := to_json(before);
            return;
          end if;
        elsif numbers[3] >= 0 then
          insert into ${s}.wake (key, at) values (own, numbers[3]) on conflict (key) do update set at = excluded.at;
        elsif numbers[3] = -1 and expected is not null then
          delete from ${s}.wake where key = own;
        end if;
      end if;
      if not landed then
        for turn in 1..coalesce(turns[cardinality(turns)], 0) loop
          insert into ${s}.cell as c (name, ends, place, at, held, kept, members)
          select e.name, this_minute + e.life + e.life / 8 + 10, e.k, case when e.does = 1 then array[e.time] else '{}' end,
            case when e.is_sum then case when e.does = 1 then array[greatest(e.low, greatest(e.low, 0) + e.weight)] else '{}' end end,
            case when e.is_sum then case when e.does = 1 then array[this_minute + e.life] else '{}' end end,
            case when not e.is_sum then case when e.does = 1 then array[e.member] else '{}' end end
          from (
            select u.*, left(u.name, 1) = '#' as is_sum, claims[k * 9 - 7] as does, claims[k * 9 - 6] as time, claims[k * 9 - 5] as weight, claims[k * 9 - 4] as low, claims[k * 9]::integer as life
            from unnest(names, who, turns) with ordinality as u(name, member, of_turn, k)
          ) e
          where e.of_turn = turn and (e.does = 1 or (e.does = 2 or back) and exists (select from ${s}.cell o where o.name = e.name))
          on conflict (name) do update set (at, held, kept, members, ends) = (
            select n.at, n.held, n.kept, n.members, case when c.ends >= this_minute + claims[excluded.place * 9] then c.ends else excluded.ends end
            from (
              select m.at[cut + 1 :] as at, case when cut = 0 then m.held else array(select h - m.held[cut] from unnest(m.held[cut + 1 :]) h) end as held, m.kept[cut + 1 :] as kept, null::text[] as members
              from (
                select case when is_new then c.at[:pos] || part || c.at[pos + 1 :] else c.at end as at,
                  c.held[: pos - (not is_new)::integer] || (coalesce(c.held[pos], 0) + by)
                    || case when pos = cardinality(c.at) then '{}' else array(select h + by from unnest(c.held[pos + 1 :]) h) end as held,
                  case when is_new then c.kept[:pos] || until || c.kept[pos + 1 :]
                    when c.kept[pos] >= until then c.kept else c.kept[: pos - 1] || until || c.kept[pos + 1 :] end as kept,
                  case when is_new and c.kept[1] < this_minute
                    then (select coalesce(min(i) - 1, pos)::integer from unnest(c.kept) with ordinality as a(u, i) where u >= this_minute) else 0 end as cut
                from (
                  select part, until, width_bucket(part, c.at) as pos, c.at[width_bucket(part, c.at)] is distinct from part as is_new,
                    case when does = 3 and not part = any (c.at) then 0 else greatest(low, greatest(low, total) + weight) - total end as by
                  from (
                    select claims[k * 9 - 7] as does, claims[k * 9 - 6] as part, claims[k * 9 - 5] as weight, claims[k * 9 - 4] as low, (this_minute + claims[k * 9])::integer as until,
                      coalesce(c.held[width_bucket(claims[k * 9 - 2], c.at)], 0) - coalesce(c.held[width_bucket(claims[k * 9 - 3], c.at)], 0) as total
                    from (select excluded.place as k) k
                  ) t
                ) p
              ) m where c.members is null
              union all
              select case when does = 1 then (rest[:q] || moved || rest[q + 1 :])[greatest(1, cardinality(rest) + 2 - most) :] else rest end, null, null,
                case when does = 1 then (others[:q] || member || others[q + 1 :])[greatest(1, cardinality(rest) + 2 - most) :] else others end
              from (
                select g.*, width_bucket(moved, rest) as q
                from (
                  select does, member, most, case when gone then c.at[: p - 1] || c.at[p + 1 :] else c.at end as rest, case when gone then c.members[: p - 1] || c.members[p + 1 :] else c.members end as others,
                    case when p is null then time else greatest(time, c.at[p] / 2 * 2) + 1 end as moved
                  from (
                    select o.*, p is not null and case does when 1 then true when 2 then c.at[p] / 2 * 2 = time else c.at[p] = time end as gone
                    from (
                      select who[k] as member, array_position(c.members, who[k]) as p, claims[k * 9 - 7] as does, claims[k * 9 - 6] as time, claims[k * 9 - 2]::integer as most
                      from (select excluded.place as k) k
                    ) o
                  ) f
                ) g
              ) w where c.members is not null
            ) n
          );
        end loop;
        if numbers[5] > 0 then
          insert into ${s}.list as l (name, member, at, ends)
          select e.name, e.member, claims[k * 9 - 6], this_minute + claims[k * 9] + claims[k * 9] / 8 + 10
          from unnest(names, who) with ordinality as e(name, member, k) where left(e.name, 1) = '-' and claims[k * 9 - 7] = 1
          on conflict (name, member) do update set at = greatest(l.at / 2 * 2, excluded.at) + 1, ends = greatest(l.ends, excluded.ends);
          delete from ${s}.list l using unnest(names, who) with ordinality as e(name, member, k)
          where l.name = e.name and l.member = e.member and case claims[k * 9 - 7] when 2 then l.at / 2 * 2 = claims[k * 9 - 6] when 3 then back and l.at = claims[k * 9 - 6] end;
        end if;
      end if;
      if numbers[4] > 0 then
        select j.counts, j.refusal into counts, refusal from ${s}.judge(names, who, claims, true) j;
        if refusal is not null and not landed then raise exception using errcode = 'PP001', message = 'refused'; end if;
      end if;
      outcome := '+' || coalesce(counts, '');
      return;
    exception when sqlstate 'PP001' then null;
    end;
    select j.refusal into refusal from ${s}.judge(names, who, claims, false) j;
    if refusal is not null then
      outcome := '!' || refusal;
      return;
    end if;
  end loop;
  raise exception using errcode = '40001', message = 'refused by claims that were given back since';
end $$`,

  "lease(until bigint, most integer, lease_until bigint) returns table (key text, tokens text, data text, keep_until bigint)": `${planned} as $$
declare
  keys text[];
begin
  keys := array(select w.key from ${s}.wake w where w.at <= until order by w.at limit most for update skip locked);
  update ${s}.wake w set at = lease_until where w.key = any (keys);
  return query select r.key, to_json(r.tokens)::text, r.data, r.keep_until from unnest(keys) with ordinality as l(key, place) join ${s}.record r on r.key = l.key order by l.place;
end $$`,

  "tally(names text[], adds bigint[], lives integer[], reads text[]) returns text": `${planned} as $$
begin
  insert into ${s}.counter as c (name, held, ends)
  select a.name, a.held, ${thisMinute} + a.life + a.life / 8 + 10 from unnest(names, adds, lives) as a(name, held, life)
  on conflict (name) do update set held = c.held + excluded.held, ends = case when c.ends >= excluded.ends - (excluded.ends - ${thisMinute}) / 9 then c.ends else excluded.ends end;
  return (select string_agg(coalesce(c.held, 0)::text, ',' order by k) from unnest(reads) with ordinality as r(name, k) left join lateral (select x.held from ${s}.counter x where x.name = r.name limit 1) c on true);
end $$`,

  "forget(records text[], cells text[], lists text[], keys text[]) returns void": `${planned} as $$
begin
  perform from unnest(records) with ordinality as k(key, place) join ${s}.record r on r.key = k.key order by k.place for update of r;
  delete from ${s}.record r where r.key = any (records);
  delete from ${s}.wake w where w.key = any (records);
  perform from unnest(cells) with ordinality as k(name, place) join ${s}.cell c on c.name = k.name order by k.place for update of c;
  delete from ${s}.cell c where c.name = any (cells);
  delete from ${s}.list l where l.name = any (lists);
  delete from ${s}.value v where v.key = any (keys);
end $$`,

  "sweep(most integer) returns integer": `${planned} as $$
declare
  gone integer;
  largest integer := 0;
begin
${ending
  .map(
    (table) => `  with old as (delete from ${s}.${table} where ctid = any (array(select t.ctid from ${s}.${table} t where t.ends < ${thisMinute} order by t.ends limit most for update skip locked)) returning *)
  ${table === "record" ? `, woken as (delete from ${s}.wake w using old where w.key = old.key)` : ""} select count(*) into gone from old;
  largest := greatest(largest, gone);`,
  )
  .join("\n")}
  return largest;
end $$`,
});

/** What is in the schema `s`, a quoted name, by kind and name; and the statement that makes it. */
export function partsOf(s: string): ReadonlyMap<string, string> {
  const made = Object.entries(tables).map(([name, columns]) => [`table ${name}`, `create table ${s}.${name} (${columns})${name === "step" ? "" : ` with (${settings})`}`] as const);
  const indexed = Object.entries(indexes).map(([name, on]) => [`index ${name}`, `create index ${name} on ${s}.${on}`] as const);
  const callable = Object.entries(functions(s)).map(([head, body]) => [`function ${head.split("(")[0]}`, `create or replace function ${s}.${head} ${body}`] as const);
  return new Map([...made, ...indexed, ...callable]);
}

/** The number of the newest step, and the tables and indexes that each step adds. A step also replaces the functions. */
export const steps = [["table", "index"]];

/** One statement, so that it is done as a whole, and by one process at a time: the lock ends with it. */
export function schemaSql(s: string): string {
  const parts = [...partsOf(s)];
  const all = (kinds: readonly string[]) => parts.flatMap(([name, sql]) => (kinds.includes(name.split(" ")[0] as string) && name !== "table step" ? `    ${sql};\n` : [])).join("");
  return `do $phoneproof$
declare
  reached integer := 0;
begin
  perform pg_advisory_xact_lock(hashtext('phoneproof'));
  if to_regnamespace('${s}') is null then create schema ${s}; end if;
  if to_regclass('${s}.step') is null then ${new Map(parts).get("table step")}; end if;
  reached := coalesce((select max(number) from ${s}.step), 0);
${steps.map((kinds, at) => `  if reached < ${at + 1} then\n${all(kinds)}  end if;\n`).join("")}  if reached < ${steps.length} then
${all(["function"])}    insert into ${s}.step (number) values (${steps.length});
  end if;
end $phoneproof$`;
}
