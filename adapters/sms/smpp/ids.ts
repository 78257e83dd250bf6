/**
 * How receipts write message ids: `same` as in submit responses; `hex-to-decimal` for hexadecimal receipts and decimal
 * responses; `decimal-to-hex` for the reverse. Case and leading zeros need no option: see `comparable`.
 */
export type ReceiptIds = "same" | "hex-to-decimal" | "decimal-to-hex";

/** The id of a submit response as reported; `undefined` if the peer gave none. */
export function submittedId(id: string, ids: ReceiptIds): string | undefined {
  if (id === "") return undefined;
  if (ids === "hex-to-decimal") return inBase(id, decimal, 10);
  if (ids === "decimal-to-hex") return inBase(id, hexadecimal, 16);
  return comparable(id);
}

/**
 * The id of a receipt, from the parameter receipted_message_id and the text, in the form of the reported response id.
 * By definition the parameter is the id of the response, so it is converted only if it equals the text's id, which uses
 * the other base.
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

/** Converts an id with the given digits to another base; an id with other characters is unchanged. */
function inBase(id: string, { digits, prefix }: { readonly digits: RegExp; readonly prefix: string }, base: 10 | 16): string {
  return digits.test(id) ? BigInt(prefix + id).toString(base) : comparable(id);
}

/**
 * Normalises an id, because many message centres pad or print it differently in receipts. Decimal and hexadecimal
 * numbers become lower case without leading zeros; other ids become lower case. An id that is not a number and has
 * mixed case is unchanged, because only the case may distinguish it from another (base 62, base 64).
 */
function comparable(id: string): string {
  const lower = id.toLowerCase();
  if (hexadecimal.digits.test(id)) return lower.replace(/^0+(?=.)/, "");
  return id === lower || id === id.toUpperCase() ? lower : id;
}
