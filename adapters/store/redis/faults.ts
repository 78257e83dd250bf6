/**
 * What the store throws for a client's error. Clients put the command into theirs, and with it phone numbers and digests, which do not belong in a log;
 * and some say nothing at all but by the name of their class.
 */
export function faultOf(error: unknown): Error {
  const text = wordsOf(error);
  if (/CROSSSLOT|same slot/i.test(text)) {
    return new Error(`redisStore: the server behind option \`client\` is a cluster (${text}): set option \`cluster: true\``);
  }
  if (/\bMOVED\W+\d+/i.test(text)) {
    return new Error(`redisStore: the server behind option \`client\` is one node of a cluster (${text}): pass a client of the whole cluster`);
  }
  if (/unknown (redis )?command/i.test(text)) {
    return new Error(
      `redisStore: the server behind option \`client\` is too old or has commands disabled (${text}): use Redis 6.2 or newer, Valkey, or Upstash`,
    );
  }
  return new Error(`redisStore: ${text}`);
}

/** The client, or what is around it, makes something else of a reply. */
export function mangledReply(): TypeError {
  return new TypeError("redisStore: option `client` does not give a script's reply as it came");
}

/** Its message, or its code, or the name of its class; and those of what caused it. */
function wordsOf(error: unknown): string {
  if (typeof error !== "object" || error === null) return withoutCommand(String(error));
  const { message, code, name, cause } = error as { message?: unknown; code?: unknown; name?: unknown; cause?: unknown };
  const named = error.constructor?.name;
  const text = withoutCommand(String(message || code || (named === undefined || named === "Object" ? (name ?? "an error without a message") : named)));
  return cause === undefined || cause === error ? text : `${text} (${wordsOf(cause)})`;
}

function withoutCommand(text: string): string {
  return text.split(/,? command was:/)[0] ?? "";
}

/** "A small value (at most 64 KiB)", and the same for a record's data; in bytes. */
const maxBytes = 64 * 1024;

export function refuseLarge(what: string, text: string): void {
  if (Buffer.byteLength(text) > maxBytes) throw new RangeError(`redisStore: ${what} is larger than ${maxBytes} bytes`);
}
