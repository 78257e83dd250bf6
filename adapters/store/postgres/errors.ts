import { pick } from "../../kit/json.js";

/** How to fix a schema that is missing or incomplete; and one that `ensureSchema` itself cannot complete. */
const toMake = "call await store.ensureSchema() once, or run schemaSql() with your own migrations";
export const toRepair = "run phoneproof doctor, which names each missing part with the statement that adds it";

/** What PostgreSQL errors mean, by code and message, and how to fix them. The last one is any other reply of the server. */
const meanings = (ofSchema: string): readonly (readonly [reply: RegExp, what: string])[] => [
  [/^(3F000|42P01|42P10|42883|42703)\b/, `tables, keys or functions are missing or older than this release: ${ofSchema}`],
  [/^42501\b/, "the role lacks a right that the store needs (docs/stores.md, PostgreSQL)"],
  [/^25006\b/, "the server is read-only, as a standby is: connect to the primary (docs/stores.md, PostgreSQL, Failover)"],
  [/^53[12]00\b/, "the server is out of disk or memory: make room"],
  [/^53300\b/, "no connection is left: lower `max` of the pools, raise max_connections or the role's connection limit, or use PgBouncer"],
  [/^53400\b/, "a limit of the server's configuration is reached: raise it"],
  [/^(57014|55P03)\b/, "the statement was canceled, as by statement_timeout or lock_timeout: see what keeps the server busy or holds a lock"],
  [/^(40001|40P01)\b/, "other transactions were in the way at each try: set default_transaction_isolation to read committed; use the schema for nothing else"],
  [
    /^(42P05|26000)\b/,
    "prepared statements fail behind a pooler in transaction mode: leave out `prepare` (postgres.js: set it to false), or use PgBouncer 1.21 or newer",
  ],
  [/^57P03.* not accepting/, "the server is a standby with hot_standby = off: connect to the primary, or promote it with pg_ctl promote"],
  [/^57P0[1-3]\b/, "the server is starting or shutting down: wait until it accepts connections"],
  [/^08P01 unsupported startup/, "leave this setting out of the client's settings (docs/stores.md, PostgreSQL, PgBouncer)"],
  [
    /^08P01.*(max_client_conn|query_wait_timeout)/,
    "the pooler has no connection left: raise its max_client_conn or default_pool_size, or lower `max` of the pools",
  ],
  [/^08P01/, "the server or its pooler rejects the connection: see the pooler's log, and whether it reaches the server"],
  [/^(28P01|28000)\b/, "the server rejects the user or the password: correct them in the client's settings, or let the user in with pg_hba.conf"],
  [/^3D000\b/, "the database does not exist: create it, or correct its name in the client's settings"],
  [/^(?!08|2[23]|P0001|P[1-9])(?=[A-Z]*\d)[0-9A-Z]{5}\b/, "look for the reason in the server's log"],
];

/** The server's error within a client's: Drizzle has it in `cause`, Prisma in `meta`, and Bun has its code in `errno`. */
function ofServer(error: unknown): { readonly message?: unknown; readonly code?: unknown } {
  if (typeof error !== "object" || error === null) return { message: String(error) };
  const { name, message, code, errno, query, cause } = error as Readonly<Record<string, unknown>>;
  if (query !== undefined && cause) return ofServer(cause);
  const adapter = pick(error, "meta", "driverAdapterError");
  if (adapter) return { message: pick(adapter, "cause", "originalMessage") ?? pick(adapter, "message"), code: pick(adapter, "cause", "originalCode") };
  return { message: message || name, code: typeof errno === "string" ? errno : code };
}

/**
 * The error that the store throws for a client's error. Values are left out: PostgreSQL and its clients quote them, and
 * they do not belong in a log. `ofSchema`: the fix for a schema that is incomplete.
 */
export function errorOf(error: unknown, ofSchema = toMake): Error {
  const { message, code } = ofServer(error);
  const text = isOfValue({ code }) ? "the server rejected a value" : String(message || "an error without a message").split("\n")[0];
  const [, what] = meanings(ofSchema).find(([reply]) => reply.test(`${code} ${message}`)) ?? [];
  return Object.assign(new Error(`postgresStore: ${text}${code ? ` (${String(code)})` : ""}${what ? `: ${what}` : ""}`), code ? { code } : {});
}

export function isOfValue(error: unknown): boolean {
  return /^(2[23]|P0001)/.test(String((error as { readonly code?: unknown }).code));
}

/** Whether the server rolled back the statement because of concurrent transactions. */
export function isRolledBack(error: unknown): boolean {
  return /^(40001|40P01)$/.test(String(ofServer(error).code));
}
