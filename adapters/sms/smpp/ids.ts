/**
 * How the message ids of receipts are spelt: `same` as in the answers to submits, or in another base than there: `hex-to-decimal` for hexadecimal receipts and decimal answers,
 * `decimal-to-hex` for decimal receipts and hexadecimal answers. Case and leading zeros need no option: see `comparable`.
 */
export type ReceiptIds = "same" | "hex-to-decimal" | "decimal-to-hex";

/** The id of an answer to a submit as it is reported; `undefined` when the peer gave none. */
export function submittedId(id: string, ids: ReceiptIds): string | undefined {
  if (id === "") return undefined;
  if (ids === "hex-to-decimal") return inBase(id, decimal, 10);
  if (ids === "decimal-to-hex") return inBase(id, hexadecimal, 16);
  return comparable(id);
}

/**
 * The id of a receipt as the answer's was reported, from the parameter receipted_message_id and from the text.
 * The parameter is by definition the id of the answer, so it is converted only where it repeats the text, whose base is the other one.
 */
export function receiptedId(named: string | undefined, inText: string | undefined, ids: ReceiptIds): string | undefined {
  if (named && (inText === undefined || comparable(named) !== comparable(inText))) return submittedId(named, ids);
  if (inText === undefined) return undefined;
  if (ids === "hex-to-decimal") return inBase(inText, hexadecimal, 10);
  if (ids === "decimal-to-hex") return inBase(inText, decimal, 16);
  return comparable(inText);
}

const decimal = { digits: /^\d{1,64}$/, prefix: "" } as const;
const hexadecimal = { digits: /^[\da-f]{1,64}$/i, prefix: "0x" } as const;

/** An id of the given digits in another base; one that has other characters stays in its own. */
function inBase(id: string, { digits, prefix }: { readonly digits: RegExp; readonly prefix: string }, base: 10 | 16): string {
  return digits.test(id) ? BigInt(prefix + id).toString(base) : comparable(id);
}

/**
 * One spelling for an id, because many message centres pad or print it otherwise in a receipt than in the answer: a number, decimal or hexadecimal, in lower case without leading zeros, anything else in lower case.
 * An id that is no number and has letters of both cases stays as it was told: there the case may be all that tells two messages apart (base 62, base 64).
 */
function comparable(id: string): string {
  const lower = id.toLowerCase();
  if (hexadecimal.digits.test(id)) return lower.replace(/^0+(?=.)/, "");
  return id === lower || id === id.toUpperCase() ? lower : id;
}
