/**
 * `ends` is the minute, on the database's clock, after which a row may be deleted. It is raised rarely, and few other
 * changing columns are indexed, so updates are HOT.
 */
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

/** Plans are made once, when the tables may still be empty, and then reused. */
const planned = "language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off";

const thisMinute = "ceil(extract(epoch from now()) / 60)::integer";

/** Builds a record as JSON. */
export const recordJson = "json_build_object('key', r.key, 'tokens', r.tokens, 'data', r.data, 'keepUntil', r.keep_until)";

/*
 * Arguments of the functions. All are text, arrays as literals, so that no client or server has to look up their types.
 *
 * A cell is one row: a window with limits, or a sum.
 * - window: `at` is 2 × the time of each member, oldest first, plus 1 if the member's newest claim only moved it;
 *   `members` has the same order.
 * - sum: `at` is the part numbers, oldest first; `held` the total up to each part; `kept` the minute until which each
 *   part is kept.
 * - `place` is read only by the commit that writes it.
 *
 * `names` holds one name per claim: "#" starts a sum, "." a window with limits, "-" a list. `who` holds the member.
 * `claims` holds nine numbers per claim:
 * - 1 = place in the change; -1 for a claim that is taken back
 * - 2 = action: 0 none, 1 add, 2 take out, 3 take back
 * - 3 = sum: part. window, list: 2 × time
 * - 4 = sum: weight. window: 1 if the next claim has the same member
 * - 5 = sum: floor
 * - 6 = sum: newest part that no longer counts. window, list: 2 × time + 1
 * - 7 = sum: newest part that counts. window: number of members to keep. list: 1 to count it
 * - 8 = limit
 * - 9 = minutes to keep it
 *
 * `turns` holds the turn of each claim; 0 for claims on lists and claims without an action.
 * Turns run in order. Within a turn, cells are locked in the order given.
 *
 * `judge` returns the counts and the first refusal. In the usual case all claims are granted, and the statement that
 * makes them checks the limits itself.
 */
const functions = (s: string): Readonly<Record<string, string>> => ({
  "refuse() returns bigint": `language plpgsql as $$
begin
  raise exception using errcode = 'PP001', message = 'refused';
end $$`,

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

  "change(inout at bigint[], inout held bigint[], inout kept integer[], inout members text[], who text, claim bigint[], next bigint[], this_minute integer, ending integer)": `language plpgsql immutable as $$
declare
  time bigint := claim[3];
  pos integer;
  total bigint;
  added bigint;
  cut integer;
begin
  if members is null then
    total := coalesce(held[width_bucket(claim[7], at)], 0) - coalesce(held[width_bucket(claim[6], at)], 0);
    added := greatest(claim[5], greatest(claim[5], total) + claim[4]) - total;
    pos := width_bucket(time, at);
    if at[pos] is distinct from time then
      if claim[2] = 3 then return; end if;
      cut := case when kept[1] < this_minute then (select least(coalesce(min(i) - 1, pos), pos) from unnest(kept) with ordinality as k(u, i) where u >= this_minute) else 0 end;
      held := array(select h - coalesce(held[cut], 0) from unnest(held[cut + 1 : pos]) h) || (coalesce(held[pos], 0) - coalesce(held[cut], 0)) || array(select h - coalesce(held[cut], 0) from unnest(held[pos + 1 :]) h);
      at := at[cut + 1 : pos] || time || at[pos + 1 :];
      kept := kept[cut + 1 : pos] || ending || kept[pos + 1 :];
      pos := pos - cut + 1;
    end if;
    held := held[: pos - 1] || array(select h + added from unnest(held[pos :]) h);
    kept[pos] := greatest(kept[pos], ending);
    if total + added > claim[8] then perform ${s}.refuse(); end if;
    return;
  end if;
  pos := array_position(members, who);
  if claim[2] = 1 and (cardinality(at) - width_bucket(claim[6], at) - coalesce((at[pos] > claim[6])::integer, 0) >= claim[8]
    or claim[4] = 1 and cardinality(at) - width_bucket(next[6], at) - coalesce((at[pos] > next[6])::integer, 0) >= next[8]) then perform ${s}.refuse(); end if;
  if pos is not null and (claim[2] = 1 or at[pos] = time or claim[2] = 2 and at[pos] = time + 1) then
    if claim[2] = 1 then time := greatest(time, at[pos] / 2 * 2) + 1; end if;
    at := at[: pos - 1] || at[pos + 1 :];
    members := members[: pos - 1] || members[pos + 1 :];
  end if;
  if claim[2] = 1 then
    pos := width_bucket(time, at);
    cut := greatest(1, cardinality(at) + 2 - claim[7]);
    at := (at[:pos] || time || at[pos + 1 :])[cut :];
    members := (members[:pos] || who || members[pos + 1 :])[cut :];
  end if;
end $$`,

  "commit(own text, own_tokens text, own_data text, own_numbers text, expected text, revoked text, all_names text, all_members text, all_claims text, all_turns text) returns text": `${planned} as $$
declare
  new_tokens text[] := own_tokens;
  numbers bigint[] := own_numbers;
  names text[] := all_names;
  who text[] := all_members;
  claims bigint[] := all_claims;
  turns integer[] := all_turns;
  this_minute integer := ${thisMinute};
  ending integer := this_minute + numbers[2];
  stored json;
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
          insert into ${s}.record as r (key, ends, keep_until, tokens, data) values (own, ending + numbers[2] / 8 + 10, numbers[1], new_tokens, own_data) on conflict (key) do nothing;
        else
          update ${s}.record r set tokens = new_tokens, data = own_data, keep_until = numbers[1], ends = case when r.ends >= ending then r.ends else ending + numbers[2] / 8 + 10 end
          where r.key = own and r.tokens[1] = expected and not new_tokens[1] = any (r.tokens);
        end if;
        if not found then
          select r.tokens, ${recordJson} into before, stored from ${s}.record r where r.key = own;
          landed := coalesce(new_tokens[1] = any (before), false);
          if not landed then return case when before is null then '-' else '=' || stored end; end if;
        elsif numbers[3] >= 0 then
          insert into ${s}.wake (key, at) values (own, numbers[3]) on conflict (key) do update set at = excluded.at;
        elsif numbers[3] = -1 and expected is not null then
          delete from ${s}.wake where key = own;
        end if;
      end if;
      if not landed then
        for turn in 1..coalesce(turns[cardinality(turns)], 0) loop
          insert into ${s}.cell as c (name, ends, place, at, held, kept, members)
          select e.name, e.ending, e.k, case when e.does = 1 then array[e.time] else '{}' end,
            case when e.is_sum then case when e.does = 1 then array[greatest(e.low, greatest(e.low, 0) + claims[e.k * 9 - 5])] else '{}' end end,
            case when e.is_sum then case when e.does = 1 then array[e.ending] else '{}' end end,
            case when not e.is_sum then case when e.does = 1 then array[e.member] else '{}' end end
          from (
            select u.*, left(u.name, 1) = '#' as is_sum, claims[k * 9 - 7] as does, claims[k * 9 - 6] as time, claims[k * 9 - 4] as low, (this_minute + claims[k * 9] + claims[k * 9] / 8 + 10)::integer as ending
            from unnest(names, who, turns) with ordinality as u(name, member, of_turn, k) where of_turn = turn offset 0
          ) e
          where e.does = 1 or (e.does = 2 or e.does = 3 and back) and exists (select from ${s}.cell o where o.name = e.name)
          on conflict (name) do update set ends = case when c.ends >= this_minute + claims[excluded.place * 9] then c.ends else excluded.ends end, (at, held, kept, members) = (
            select c.at, c.held[: cardinality(c.at) - 1] || (c.held[cardinality(c.at)] + case when t.later > t.most then ${s}.refuse() else t.later - t.total end),
              case when c.kept[cardinality(c.at)] >= this_minute + claims[excluded.place * 9] then c.kept else c.kept[: cardinality(c.at) - 1] || excluded.ends end, null::text[]
            from (
              select t.total, t.most, greatest(t.low, greatest(t.low, t.total) + t.weight) as later
              from (
                select c.held[cardinality(c.at)] - coalesce(c.held[width_bucket(claims[excluded.place * 9 - 3], c.at)], 0) as total, claims[excluded.place * 9 - 5] as weight,
                  claims[excluded.place * 9 - 4] as low, claims[excluded.place * 9 - 1] as most offset 0
              ) t offset 0
            ) t
            where c.members is null and c.at[cardinality(c.at)] = excluded.at[1]
            union all
            select s.at, s.held, s.kept, s.members from ${s}.change(c.at, c.held, c.kept, c.members, who[excluded.place], claims[excluded.place * 9 - 8 : excluded.place * 9], claims[excluded.place * 9 + 1 : excluded.place * 9 + 9],
              this_minute, excluded.ends) s
            where c.members is not null or c.at[cardinality(c.at)] is distinct from excluded.at[1]
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
        if numbers[6] > 0 and exists (
          select from unnest(names) with ordinality as e(name, k) left join lateral (select x.at, x.held from ${s}.cell x where x.name = e.name limit 1) c on true
          where claims[k * 9 - 7] = 0 and claims[k * 9 - 1] < 9223372036854775807 and left(e.name, 1) = '#'
            and coalesce(c.held[width_bucket(claims[k * 9 - 2], c.at)], 0) - coalesce(c.held[width_bucket(claims[k * 9 - 3], c.at)], 0) > claims[k * 9 - 1]
        ) then perform ${s}.refuse(); end if;
      end if;
      if numbers[4] > 0 then
        select j.counts, j.refusal into counts, refusal from ${s}.judge(names, who, claims, true) j;
        if refusal is not null and not landed then perform ${s}.refuse(); end if;
      end if;
      return '+' || coalesce(counts, '');
    exception when sqlstate 'PP001' then null;
    end;
    select j.refusal into refusal from ${s}.judge(names, who, claims, false) j;
    if refusal is not null then return '!' || refusal; end if;
  end loop;
  raise exception using errcode = '40001', message = 'refused by claims that were given back since';
end $$`,

  "lease(until text, most text, lease_until text) returns text": `${planned} as $$
declare
  keys text[] := array(select w.key from ${s}.wake w where w.at <= until::bigint order by w.at limit most::integer for update skip locked);
begin
  update ${s}.wake w set at = lease_until::bigint where w.key = any (keys);
  return (select json_agg(${recordJson} order by l.place) from unnest(keys) with ordinality as l(key, place) join ${s}.record r on r.key = l.key);
end $$`,

  "tally(all_names text, all_adds text, all_lives text, all_reads text) returns text": `${planned} as $$
begin
  insert into ${s}.counter as c (name, held, ends)
  select a.name, a.held, ${thisMinute} + a.life + a.life / 8 + 10 from unnest(all_names::text[], all_adds::bigint[], all_lives::integer[]) as a(name, held, life)
  on conflict (name) do update set held = c.held + excluded.held, ends = case when c.ends >= excluded.ends - (excluded.ends - ${thisMinute}) / 9 then c.ends else excluded.ends end;
  return (select string_agg(coalesce(c.held, 0)::text, ',' order by k) from unnest(all_reads::text[]) with ordinality as r(name, k) left join lateral (select x.held from ${s}.counter x where x.name = r.name limit 1) c on true);
end $$`,

  "forget(all_records text, all_cells text, all_lists text, all_keys text) returns text": `${planned} as $$
declare
  records text[] := all_records;
  cells text[] := all_cells;
begin
  perform from unnest(records) with ordinality as k(key, place) join ${s}.record r on r.key = k.key order by k.place for update of r;
  delete from ${s}.record r where r.key = any (records);
  delete from ${s}.wake w where w.key = any (records);
  perform from unnest(cells) with ordinality as k(name, place) join ${s}.cell c on c.name = k.name order by k.place for update of c;
  delete from ${s}.cell c where c.name = any (cells);
  delete from ${s}.list l where l.name = any (all_lists::text[]);
  delete from ${s}.value v where v.key = any (all_keys::text[]);
  return null;
end $$`,

  "sweep(rows text) returns text": `${planned} as $$
declare
  most integer := rows;
  gone integer;
  largest integer := 0;
begin
${ending
  .map(
    (
      table,
    ) => `  with old as (delete from ${s}.${table} where ctid = any (array(select t.ctid from ${s}.${table} t where t.ends < ${thisMinute} order by t.ends limit most for update skip locked)) returning *)
  ${table === "record" ? `, woken as (delete from ${s}.wake w using old where w.key = old.key)` : ""} select count(*) into gone from old;
  largest := greatest(largest, gone);`,
  )
  .join("\n")}
  return largest;
end $$`,
});

/** The contents of the schema `s` (a quoted name): "kind name", and the statement that creates it. */
export function partsOf(s: string): ReadonlyMap<string, string> {
  const made = Object.entries(tables).map(
    ([name, columns]) => [`table ${name}`, `create table ${s}.${name} (${columns})${name === "step" ? "" : ` with (${settings})`}`] as const,
  );
  const indexed = Object.entries(indexes).map(([name, on]) => [`index ${name}`, `create index ${name} on ${s}.${on}`] as const);
  const callable = Object.entries(functions(s)).map(
    ([head, body]) => [`function ${head.split("(")[0]}`, `create or replace function ${s}.${head} ${body}`] as const,
  );
  return new Map([...made, ...indexed, ...callable]);
}

/** The tables and indexes that each step adds; the last step is the newest. Each step also replaces the functions. */
export const steps = [["table", "index"]];

/** Returns one statement: it is applied as a whole, by one process at a time. The lock ends with it. */
export function schemaSql(s: string): string {
  const parts = [...partsOf(s)];
  const all = (kinds: readonly string[]) =>
    parts.flatMap(([name, sql]) => (kinds.includes(name.split(" ")[0] as string) && name !== "table step" ? `    ${sql};\n` : [])).join("");
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
