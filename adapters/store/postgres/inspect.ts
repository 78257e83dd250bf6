import type { StoreInspection } from "../../../src/ports/store.js";
import { newestStep, partsOf } from "./schema.js";

type Ask = <Row>(text: string, values?: (string | null)[]) => Promise<readonly Row[]>;

type Texts = Readonly<Record<"time" | "role" | "version" | "synchronous_commit" | "isolation" | "encoding" | "read_only" | "standbys", string>>;
type Server = Texts & { readonly standby: boolean; readonly waits: boolean; readonly usable: boolean | null };

/** Reports on the server and the schema `s` (a quoted name). */
export async function inspect(ask: Ask, s: string, until: number): Promise<StoreInspection> {
  const [server] = await ask<Server>(
    `select (extract(epoch from clock_timestamp()) * 1000)::bigint::text as time, quote_ident(current_user) as role, current_setting('server_version') as version, current_setting('synchronous_commit') as synchronous_commit,
      current_setting('default_transaction_isolation') as isolation, current_setting('server_encoding') as encoding,
      current_setting('default_transaction_read_only') as read_only, pg_is_in_recovery() as standby,
      current_setting('synchronous_standby_names') as standbys,
      exists (select from pg_stat_activity where wait_event = 'SyncRep' and query_start < clock_timestamp() - interval '1 second') as waits,
      (select has_schema_privilege(n.oid, 'usage') from pg_namespace n where n.nspname = $1::text) as usable`,
    [s.slice(1, -1)],
  );
  const { time, role, version, synchronous_commit, isolation, encoding, read_only, standby, standbys, waits, usable } = server as Server;
  const missing: string[] = [];
  if (isolation !== "read committed")
    missing.push(
      `default_transaction_isolation is ${isolation}, under which commits are rolled back and retried: alter role ${role} set default_transaction_isolation = 'read committed'`,
    );
  if (encoding !== "UTF8") missing.push(`the database is encoded as ${encoding}, which lacks characters: create database … encoding 'UTF8' template template0`);
  if (standby) missing.push("the server is a standby, which cannot be written: connect to the primary, or promote it with select pg_promote()");
  else if (read_only === "on")
    missing.push("default_transaction_read_only is on, as hosts set it when the disk is nearly full: make room, then turn it off, or connect to the primary");
  if (waits)
    missing.push(
      `commits wait for a standby (synchronous_standby_names is ${standbys}): start the standbys, or change the setting to those that run and call pg_reload_conf()`,
    );
  if (usable === null) missing.push(`the schema ${s} is missing: call await store.ensureSchema() once, or run schemaSql() as the owner of the database`);
  else if (!usable) missing.push(`the role may not use the schema: grant usage on schema ${s} to ${role}`);
  else missing.push(...(await missingParts(ask, s, role)));
  const due = `select count(*)::text as due from (select from ${s}.record where wake_at <= $1::text::bigint limit 10000) w`;
  const [counted] = usable && missing.length === 0 ? await ask<{ due: string }>(due, [String(until)]) : [];
  return {
    kind: "postgresql",
    time: Number(time),
    ...(counted && { due: Number(counted.due) }),
    settings: { server_version: version, synchronous_commit },
    ...(missing.length > 0 && { missing }),
  };
}

/** Missing parts and rights of an existing schema, each with what adds it. */
async function missingParts(ask: Ask, s: string, role: string): Promise<string[]> {
  const again = "call await store.ensureSchema(), or run schemaSql() as the owner of the schema";
  const parts = partsOf(s);
  const checks = parts.flatMap(({ kind, at, id, missing, sql }) => {
    const whole = `${kind} ${at}`;
    const isStep = whole === `table ${s}.step`;
    const hidden = `row_security_active(${id}) and not exists (select from pg_policy where polrelid = ${id})`;
    const verbs = isStep ? ["select"] : kind === "table" ? ["select", "insert", "update", "delete"] : kind === "function" ? ["execute"] : [];
    return [
      [missing, `the ${whole} is missing: ${kind === "function" || isStep ? again : sql}`],
      ...verbs.map((verb) => [`not has_${kind}_privilege(${id}, '${verb}')`, `the role lacks ${verb} on ${whole}: grant ${verb} on ${whole} to ${role}`]),
      ...(kind === "table" ? [[hidden, `row level security of ${at} has no policy: alter ${whole} disable row level security`]] : []),
    ];
  });
  const missing = await failing(ask, checks);
  if (missing.length > 0) return missing;
  const [step] = await ask<{ reached: number }>(`select coalesce(max(number), 0) as reached from ${s}.step`);
  const reached = Number(step?.reached);
  if (reached < newestStep) return [`the schema ${s} is at step ${reached} of ${newestStep}: ${again}`];
  const functions = parts.flatMap(({ at, differs }) =>
    differs === undefined ? [] : [[differs, `the function ${at} is not the one of this release: ${again}`]],
  );
  return reached === newestStep ? failing(ask, functions) : [];
}

/** Of conditions in SQL, each with a text, the texts of those that are true. */
async function failing(ask: Ask, checks: readonly (readonly string[])[]): Promise<string[]> {
  const rows = await ask<{ it: string }>(
    `select it from rows from (unnest(array[${checks.map(([check]) => check)}]), json_array_elements_text($1::text::json)) as part (fails, it) where fails`,
    [JSON.stringify(checks.map(([, it]) => it))],
  );
  return rows.map(({ it }) => it);
}
