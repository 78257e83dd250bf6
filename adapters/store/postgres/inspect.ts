import type { StoreInspection } from "../../../src/ports/store.js";
import { newestStep, partsOf } from "./schema.js";

type Ask = <Row>(text: string, values?: (string | null)[]) => Promise<readonly Row[]>;

type Texts = Readonly<Record<"time" | "version" | "synchronous_commit" | "isolation" | "encoding" | "read_only", string>>;
type Server = Texts & { readonly standby: boolean; readonly usable: boolean | null };

/** Reports on the server and the schema `s` (a quoted name). */
export async function inspect(ask: Ask, s: string, until: number): Promise<StoreInspection> {
  const [server] = await ask<Server>(
    `select (extract(epoch from clock_timestamp()) * 1000)::bigint::text as time, current_setting('server_version') as version, current_setting('synchronous_commit') as synchronous_commit,
      current_setting('default_transaction_isolation') as isolation, current_setting('server_encoding') as encoding,
      current_setting('default_transaction_read_only') as read_only, pg_is_in_recovery() as standby,
      (select has_schema_privilege(n.oid, 'usage') from pg_namespace n where n.nspname = $1::text) as usable`,
    [s.slice(1, -1)],
  );
  const { time, version, synchronous_commit, isolation, encoding, read_only, standby, usable } = server as Server;
  const missing: string[] = [];
  if (isolation !== "read committed")
    missing.push(
      `default_transaction_isolation is ${isolation}, under which commits are rolled back and retried: alter role current_user set default_transaction_isolation = 'read committed'`,
    );
  if (encoding !== "UTF8") missing.push(`the database is encoded as ${encoding}, which lacks characters: create database … encoding 'UTF8' template template0`);
  if (standby) missing.push("the server is a standby, which cannot be written: connect to the primary, or promote it with select pg_promote()");
  else if (read_only === "on")
    missing.push("default_transaction_read_only is on, as hosts set it when the disk is nearly full: make room, then turn it off, or connect to the primary");
  if (usable === null) missing.push(`the schema ${s} is missing: call await store.ensureSchema() once, or run schemaSql() as the owner of the database`);
  else if (!usable) missing.push(`the role may not use the schema: grant usage on schema ${s} to current_user`);
  else missing.push(...(await missingParts(ask, s)));
  const [counted] =
    usable && missing.length === 0
      ? await ask<{ due: string }>(`select count(*)::text as due from (select from ${s}.record where wake_at <= $1::text::bigint limit 10000) w`, [
          String(until),
        ])
      : [];
  return {
    kind: "postgresql",
    time: Number(time),
    ...(counted && { due: Number(counted.due) }),
    settings: { server_version: version, synchronous_commit },
    ...(missing.length > 0 && { missing }),
  };
}

/** Missing parts and rights of an existing schema, each with the statement that adds it. */
async function missingParts(ask: Ask, s: string): Promise<string[]> {
  const again = `run schemaSql() again as its owner, after delete from ${s}.step`;
  const parts = partsOf(s).map(({ kind, name, sql }) => ({ kind, name, fix: kind === "function" ? again : sql }));
  const missing = await ask<{ it: string }>(
    `with part as (select *, '${s}.' || name as whole from json_to_recordset($1::text::json) as p(kind text, name text, fix text))
    select 'the ' || kind || ' ' || whole || ' is missing: ' || fix as it from part where case kind when 'function' then to_regproc(whole)::oid else to_regclass(whole)::oid end is null
    union all select 'the right to ' || verb || ' in ' || whole || ' is missing: grant ' || verb || ' on ' || whole || ' to current_user'
    from part, unnest(array['select', 'insert', 'update', 'delete']) verb where kind = 'table' and not has_table_privilege(to_regclass(whole), verb) and (name <> 'step' or verb = 'select')`,
    [JSON.stringify(parts)],
  );
  if (missing.length > 0) return missing.map(({ it }) => it);
  const [step] = await ask<{ reached: number }>(`select coalesce(max(number), 0) as reached from ${s}.step`);
  const reached = Number(step?.reached);
  if (reached >= newestStep) return [];
  return [`the schema ${s} is at step ${reached} of ${newestStep}: call await store.ensureSchema(), or run schemaSql() as its owner`];
}
