import { createHash } from "node:crypto";

/** How often the row of a part is updated before the next one takes its place. */
const changesPerRow = 32;

/**
 * `ends` is the minute, on the database's clock, after which a row may be deleted.
 *
 * `total` holds the parts of sums; a counter is part -1, row 0. A part is updated by thousands of commits, and each
 * leaves a version of the row, which stays while any transaction in the database is older. So every `changesPerRow`
 * changes a new row takes its place, and only the newest row of a part is read. The others end with it.
 */
const tables: Readonly<Record<string, string>> = {
  step: "number integer, made timestamptz not null default now(), primary key (number)",
  customer: 'name text collate "C", commits bigint not null, primary key (name)',
  record:
    'customer text collate "C", id text collate "C", tokens text[] not null, data text not null, keep_until bigint not null, wake_at bigint, ends integer not null, primary key (customer, id)',
  member: 'name text collate "C", member text collate "C", at bigint not null, added_by text, ends integer not null, primary key (name, member)',
  total:
    'name text collate "C", part bigint, turn integer, held bigint not null, changes bigint not null, ends integer not null, primary key (name, part, turn)',
  value: 'key text collate "C", value text not null, ends integer not null, primary key (key)',
};

const ending = ["record", "member", "total", "value"];

const indexes: Readonly<Record<string, string>> = {
  record_wake: "record (wake_at) where wake_at is not null",
  ...Object.fromEntries(ending.map((table) => [`${table}_ends`, `${table} (ends)`])),
};

const settings = "fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0";

/** Plans are made once, when the tables may still be empty, and then reused. Compiling them costs more than it saves. */
const planned = "language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off";

const thisMinute = "ceil(extract(epoch from now()) / 60)::integer";

/** `ends` of a row that is stored for 0 minutes: ten minutes more than requested, because clocks may be corrected. */
export const earliestEnd = `${thisMinute} + 10`;

/** Builds the row `r` of a record as JSON. */
export const recordJson = "json_build_object('customer', r.customer, 'id', r.id, 'tokens', r.tokens, 'data', r.data, 'keepUntil', r.keep_until)";

/** Claims on sums, and sums to read, as rows `k`. `since` and `top`: the parts after `since` count, up to `top`. */
const sumsOf = (list: string) =>
  `json_to_recordset(${list}) as k(place integer, name text, part bigint, since bigint, top bigint, weight bigint, low bigint, most bigint, life integer, counted boolean)`;

/** Claims on members as rows `k`. `adds`: false if it takes out, or if an earlier claim adds the same member. */
const membersOf = (list: string) =>
  `json_to_recordset(${list}) as k(place integer, name text, member text, at bigint, since bigint, most integer, life integer, adds boolean, counted boolean)`;

/**
 * Arguments are JSON. A subquery per row, unlike a join, always uses the index.
 *
 * `commit` makes the changes of one customer, one after another. Locking the row of `customer` first lets one commit of
 * a customer run at a time, so limits hold, and nothing deadlocks. An isolation level that may read what was there
 * before the lock also updates that row: the server then rolls the later commit back.
 */
function functions(s: string): Readonly<Record<string, string>> {
  const newest = (part: string) => `(select x.* from ${s}.total x where x.name = k.name and x.part = ${part} order by x.turn desc limit 1)`;
  // A sum has at most 64 parts, and one that is about to begin.
  const partsOfSum = (since: string, top: string) => `generate_series(greatest(${since} + 1, ${top} - 64), ${top}) as p (part)`;
  const held = (since: string, top: string) => `(select coalesce(sum(x.held), 0)::bigint from ${partsOfSum(since, top)}, lateral ${newest("p.part")} x)`;
  const raised = (held: string) => `greatest(k.low, greatest(k.low, ${held}) + k.weight)`;
  // Claims on sums with what the sum holds, and the row of the part to add to.
  const claimed = (list: string) => `select k.*, h.* from ${sumsOf(list)}, lateral (select coalesce(sum(x.held), 0)::bigint as held,
        coalesce(sum(x.held) filter (where x.part = k.part), 0) as own, max(x.changes) filter (where x.part = k.part) as changes, max(x.ends) filter (where x.part = k.part) as ends
        from ${partsOfSum("k.since", "k.top")}, lateral ${newest("p.part")} x) h where k.weight <> 0 or k.low is not null or k.most is not null`;
  const newer = `(select count(*) from ${s}.member x where x.name = k.name and x.at > k.since`;
  const add = (where: string) => `insert into ${s}.total (name, part, turn, held, changes, ends)
        select k.name, k.part, coalesce(k.changes + 1, 0) / ${changesPerRow}, k.own + case when k.low is null then k.weight else ${raised("k.held")} - k.held end, coalesce(k.changes + 1, 0), greatest(k.ends, earliest_end + k.life)
        from k where (k.weight <> 0 or k.low is not null)${where}
        on conflict (name, part, turn) do update set held = excluded.held, changes = excluded.changes, ends = excluded.ends`;
  const names = (list: string) => `any (array(select json_array_elements_text(what::json -> '${list}')))`;
  const lock = `    perform from ${s}.customer x where x.name = owner for update;
    if not found or current_setting('transaction_isolation') <> 'read committed' then
      insert into ${s}.customer as x (name, commits) values (owner, 1) on conflict (name) do update set commits = x.commits + 1;
    end if;`;
  const ended = (table: string) => `select t.ctid from ${s}.${table} t where t.ends < ${thisMinute} order by t.ends limit rows::integer for update skip locked`;
  const sweep = (table: string) => `  delete from ${s}.${table} where ctid = any (array(${ended(table)}));
  get diagnostics gone = row_count;
  largest := greatest(largest, gone);`;
  return {
    "commit(owner text, changes text)": `${planned} as $$
declare
  c pg_catalog.record;
  r pg_catalog.record;
  refusal json;
  counts json;
  landed boolean;
  results json[];
  earliest_end integer := ${earliestEnd};
begin
  if owner is not null then
${lock}
  end if;
  for c in select * from json_to_recordset(changes::json) as x(id text, tokens text[], data text, keep_until bigint, wake_at bigint, keeps_wake boolean, life integer, expected text,
    revoked text, sums json, members json, outs json, undone_sums json, undone_members json, counted boolean) loop
    select * into r from ${s}.record x where x.customer = owner and x.id = c.id;
    landed := coalesce(c.tokens[1] = any (r.tokens), false);
    if not landed then
      if c.id is not null and r.tokens[1] is distinct from c.expected then
        results := results || json_build_object('current', case when r.id is not null then ${recordJson} end);
        continue;
      end if;
      with k as materialized (${claimed("c.sums")}),
      refused as materialized (
        select j.* from (
          select k.place, k.held, null::bigint as room_since,
            (select min(p) from generate_series(k.part + 1, 2 * k.part - k.since + 1) p where ${raised(held("p - k.part + k.since", "p"))} <= k.most) as room_part
          from k where ${raised("k.held")} > k.most
          union all
          select k.place, h.held, (select x.at from ${s}.member x where x.name = k.name and x.member <> k.member order by x.at desc offset k.most - 1 limit 1), null
          from ${membersOf("c.members")}, lateral (select ${newer} and x.member <> k.member) as held) h where k.most is not null and h.held >= k.most
        ) j order by j.place limit 1
      ),
      added as (${add(" and not exists (select from refused)")})
      select json_strip_nulls(json_build_object('refusedBy', j.place, 'count', j.held, 'roomPart', j.room_part, 'roomSince', j.room_since)) into refusal from refused j;
      if found then
        results := results || refusal;
        continue;
      end if;
      insert into ${s}.member as x (name, member, at, added_by, ends) select k.name, k.member, k.at, c.tokens[1], earliest_end + k.life from ${membersOf("c.members")} where k.adds
      on conflict (name, member) do update set at = greatest(x.at, excluded.at), ends = greatest(x.ends, excluded.ends), added_by = case when x.added_by = excluded.added_by then x.added_by end;
      if c.outs is not null then
        delete from ${s}.member x where x.ctid = any (array(select (select x.ctid from ${s}.member x where x.name = k.name and x.member = k.member and x.at = k.at) from ${membersOf("c.outs")}));
      end if;
      if c.revoked = any (r.tokens) then
        with k as (${claimed("c.undone_sums")}) ${add("")};
        delete from ${s}.member x where x.ctid = any (array(select (select x.ctid from ${s}.member x where x.name = k.name and x.member = k.member and x.added_by = c.revoked) from ${membersOf("c.undone_members")}));
      end if;
      if c.id is not null then
        insert into ${s}.record as x (customer, id, tokens, data, keep_until, wake_at, ends) values (owner, c.id, c.tokens, c.data, c.keep_until, c.wake_at, earliest_end + c.life) on conflict (customer, id) do update set tokens = c.tokens, data = c.data,
          keep_until = c.keep_until, wake_at = case when c.keeps_wake then x.wake_at else c.wake_at end, ends = x.ends + ceil((c.keep_until - x.keep_until) / 60000.0);
      end if;
    end if;
    counts := null;
    if c.counted then
      select json_object_agg(j.place, j.held) into counts from (
        select k.place, ${held("k.since", "k.top")} as held from ${sumsOf("c.sums")} where k.counted
        union all
        select k.place, ${newer}) from ${membersOf("c.members")} where k.counted
      ) j;
    end if;
    results := results || json_build_object('counts', counts);
  end loop;
  return array_to_json(results);
end $$`,

    "lease(until text, most text, lease_until text)": `${planned} as $$
declare
  leased text;
begin
  with due as (select r.ctid as place, r.customer, r.id, r.wake_at from ${s}.record r where r.wake_at <= until::bigint order by r.wake_at limit most::integer for update skip locked),
  moved as (update ${s}.record r set wake_at = lease_until::bigint where r.ctid = any (array(select place from due)) returning *)
  select json_agg(${recordJson} order by (select due.wake_at from due where due.customer = r.customer and due.id = r.id)) into leased from moved r;
  return leased;
end $$`,

    "tally(adds text, reads text)": `${planned} as $$
begin
  insert into ${s}.total as x (name, part, turn, held, changes, ends) select k.name, -1, 0, k.by, 0, ${earliestEnd} + k.life from json_to_recordset(adds::json) as k(name text, by bigint, life integer)
  on conflict (name, part, turn) do update set held = x.held + excluded.held, ends = greatest(x.ends, excluded.ends);
  return (select json_agg(coalesce((select x.held from ${s}.total x where x.name = k.name and x.part = -1), 0) order by place) from json_array_elements_text(reads::json) with ordinality as k(name, place));
end $$`,

    "forget(what text)": `${planned} as $$
declare
  owner text;
begin
  for owner in select json_array_elements_text(what::json -> 'customers') loop
${lock}
  end loop;
  delete from ${s}.record where ctid = any (array(select (select r.ctid from ${s}.record r where r.customer = k.customer and r.id = k.id) from json_to_recordset(what::json -> 'records') as k(customer text, id text)));
  delete from ${s}.member where name = ${names("windows")};
  delete from ${s}.total where name = ${names("sums")} and part >= 0;
  delete from ${s}.value where key = ${names("values")};
  return null;
end $$`,

    "sweep(rows text)": `${planned} as $$
declare
  gone integer;
  largest integer := 0;
begin
${ending.map(sweep).join("\n")}
  return largest;
end $$`,
  };
}

/** A part of the schema, and conditions in SQL. */
interface Part extends Readonly<Record<"kind" | "at" | "id" | "missing" | "sql", string>> {
  /** Of a function: its body is not the one of this release, or is another schema's. */
  readonly differs?: string;
}

/** The parts of the schema `s` (a quoted name). While a table is missing, its columns and its key are not. */
export function partsOf(s: string): Part[] {
  const part = (kind: string, name: string, sql: string, within?: string) => {
    const at = `${s}.${name}`;
    const id = `to_reg${kind === "function" ? "procedure" : "class"}('${at}')`;
    return { kind, at, id, missing: within ? `${id} is not null and not exists (select from ${within} = ${id})` : `${id} is null`, sql };
  };
  return [
    ...Object.entries(tables).flatMap(([table, text]) => {
      const [columns = "", key] = text.split(", primary key ");
      const whole = `${s}.${table}`;
      return [
        part("table", table, `create table ${whole} (${text})${table === "step" ? "" : ` with (${settings})`}`),
        ...columns.split(", ").map((column) => {
          const [name] = column.split(" ");
          const within = `pg_attribute where attname = '${name}' and not attisdropped and attrelid`;
          return part(`column ${name} of`, table, `alter table ${whole} add column ${column}`, within);
        }),
        part("primary key of", table, `alter table ${whole} add primary key ${key}`, "pg_index where indisprimary and indrelid"),
      ];
    }),
    ...Object.entries(indexes).map(([name, on]) => part("index", name, `create index ${name} on ${s}.${on}`)),
    ...Object.entries(functions(s)).map(([head, body]) => {
      const made = part("function", head.replace(/\w+ text/g, "text"), `create or replace function ${s}.${head} returns text ${body}`);
      const hash = createHash("sha256").update(body.slice(body.indexOf("$$") + 2, body.lastIndexOf("$$")));
      return {
        ...made,
        differs: `exists (select from pg_proc where oid = ${made.id} and encode(sha256(convert_to(prosrc, 'UTF8')), 'hex') <> '${hash.digest("hex")}')`,
      };
    }),
  ];
}

/**
 * The newest step: one more in each release that changes a function, or processes of the release before would put
 * theirs back. Each step replaces the functions; what is missing is added at any step, and functions that differ are
 * replaced at the newest one.
 */
export const newestStep = 1;

/** Returns one statement: it is applied as a whole, by one process at a time. The lock ends with it. */
export function schemaSql(s: string): string {
  const parts = partsOf(s);
  const when = (condition: string, sql: string) => `  if ${condition} then\n    ${sql};\n  end if;\n`;
  const tables = parts.map(({ kind, missing, sql }) => (/^(table|primary|index)/.test(kind) ? when(missing, sql) : ""));
  const isOld = (differs: string) => `reached < ${newestStep} or reached = ${newestStep} and ${differs}`;
  const functions = parts.map(({ missing, differs, sql }) => (differs === undefined ? "" : when(`${isOld(differs)} or ${missing}`, sql)));
  return `do $phoneproof$
declare
  reached integer;
begin
  perform pg_advisory_xact_lock(hashtext('phoneproof'));
  if to_regnamespace('${s}') is null then create schema ${s}; end if;
${tables.join("")}  reached := coalesce((select max(number) from ${s}.step), 0);
${functions.join("")}  if reached < ${newestStep} then insert into ${s}.step (number) values (${newestStep}); end if;
end $phoneproof$;`;
}
