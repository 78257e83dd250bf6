/** What PostgreSQL error codes mean here, and how to fix them. */
const meanings: readonly (readonly [codes: RegExp, what: string])[] = [
  [
    /^(3F000|42P01|42883|42703)$/,
    "the tables or functions are missing or older than this release: call await store.ensureSchema() once, or run schemaSql() with your own migrations",
  ],
  [/^42501$/, "the role lacks a right that the store needs (docs/stores.md, PostgreSQL)"],
  [/^25006$/, "the server is read-only, as a standby is: connect to the primary (target_session_attrs=read-write)"],
];

/** What a client's error holds of the server's. */
interface ServerError {
  readonly message?: unknown;
  readonly code?: unknown;
}

/** The server's error within a client's: Drizzle has it in `cause`, Prisma in `meta`, and Bun has its code in `errno`. */
function ofServer(error: unknown): ServerError {
  if (typeof error !== "object" || error === null) return { message: String(error) };
  const { message, code, errno, query, cause, meta } = error as ServerError & {
    readonly errno?: unknown;
    readonly query?: unknown;
    readonly cause?: unknown;
    readonly meta?: { readonly driverAdapterError?: { readonly message: string; readonly cause?: { originalMessage?: string; originalCode?: string } } };
  };
  if (query !== undefined && cause) return ofServer(cause);
  const { driverAdapterError: adapter } = meta ?? {};
  if (adapter) return { message: adapter.cause?.originalMessage ?? adapter.message, code: adapter.cause?.originalCode };
  return { message: message || (error as Error).name, code: typeof errno === "string" ? errno : code };
}

/**
 * The error that the store throws for a client's error. Values are left out: PostgreSQL and its clients quote them, and
 * they do not belong in a log.
 */
export function errorOf(error: unknown): Error {
  const { message, code } = ofServer(error);
  const text = isOfValue({ code }) ? "the server rejected a value" : String(message || "an error without a message").split("\n")[0];
  const [, what] = meanings.find(([codes]) => codes.test(String(code))) ?? [];
  return Object.assign(new Error(`postgresStore: ${text}${code ? ` (${String(code)})` : ""}${what ? `: ${what}` : ""}`), code ? { code } : {});
}

/** Whether the server rejected a value. */
export function isOfValue(error: unknown): boolean {
  return /^(2[23]|P0001)/.test(String((error as { readonly code?: unknown }).code));
}

/** Whether the server rolled back the statement because of concurrent transactions. */
export function isRolledBack(error: unknown): boolean {
  return /^(40001|40P01)$/.test(String(ofServer(error).code));
}
