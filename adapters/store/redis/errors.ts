/** Client errors: the pattern, what it means, and the fix. */
const meanings: readonly (readonly [pattern: RegExp, what: string, fix: string])[] = [
  [/CROSSSLOT|same slot/i, "is a cluster", "set option `cluster: true`"],
  [/\bMOVED\W+\d+/i, "is one node of a cluster", "pass a client of the whole cluster"],
  [/unknown (redis )?command/i, "is too old or has commands disabled", "use Redis 6.2 or newer, Valkey, or Upstash"],
];

/**
 * The error that the store throws for a client's error. Clients include the command, and with it phone numbers and
 * digests, which do not belong in a log; some have only a class name.
 */
export function errorOf(error: unknown): Error {
  const text = wordsOf(error);
  const [, what, fix] = meanings.find(([pattern]) => pattern.test(text)) ?? [];
  return new Error(what === undefined ? `redisStore: ${text}` : `redisStore: the server behind option \`client\` ${what} (${text}): ${fix}`);
}

/** The message of an error, or its code, or its class name; and those of its causes. */
function wordsOf(error: unknown): string {
  const thrown = typeof error === "object" && error !== null ? error : new Error(String(error));
  const { message, code, name, cause } = thrown as { message?: unknown; code?: unknown; name?: unknown; cause?: unknown };
  const named = thrown.constructor?.name ?? "Object";
  const [text = ""] = String(message || code || (named === "Object" ? (name ?? "an error without a message") : named)).split(/,? command was:/);
  return cause === undefined || cause === error ? text : `${text} (${wordsOf(cause)})`;
}
