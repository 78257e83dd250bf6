/** What PostgreSQL error codes mean here, and how to fix them. */
const meanings: readonly (readonly [codes: RegExp, what: string])[] = [
  [
    /^(3F000|42P01|42883|42703)$/,
    "the tables or functions are missing or older than this release: call await store.ensureSchema() once, or run schemaSql() with your own migrations",
  ],
  [/^42501$/, "the role lacks a right that the store needs (docs/stores.md, PostgreSQL)"],
  [/^25006$/, "the server is read-only, as a standby is: connect to the primary (target_session_attrs=read-write)"],
];

/**
 * The error that the store throws for a client's error. Values are left out: PostgreSQL and its clients quote them, and
 * they do not belong in a log.
 */
export function faultOf(error: unknown): Error {
  const { message, code } = (typeof error === "object" && error !== null ? error : { message: String(error) }) as { message?: unknown; code?: unknown };
  const isOfValues = /^(2[23]|P0001)/.test(String(code));
  const text = isOfValues ? "the server rejected a value" : String(message || (error as Error)?.name || "an error without a message").split("\n")[0];
  const [, what] = meanings.find(([codes]) => codes.test(String(code))) ?? [];
  return Object.assign(new Error(`postgresStore: ${text}${code ? ` (${String(code)})` : ""}${what ? `: ${what}` : ""}`), code ? { code } : {});
}

/** Whether the server rolled back the statement because of concurrent transactions. */
export function isRolledBack(error: unknown): boolean {
  return /^(40001|40P01)$/.test(String((error as { code?: unknown } | null)?.code));
}

/** "A small value (at most 64 KiB)", and the same for a record's data; in bytes. */
const maxBytes = 64 * 1024;

export function refuseLarge(what: string, text: string): void {
  if (Buffer.byteLength(text) > maxBytes) throw new RangeError(`postgresStore: ${what} is larger than ${maxBytes} bytes`);
}
