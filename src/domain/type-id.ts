import { uuidOfHex } from "./uuid.js";

/** Crockford's base 32, lower case. */
const digits = "0123456789abcdefghjkmnpqrstvwxyz";

/** Returns a prefix, `_` and the 128 bits of a UUID, or of 32 hexadecimal digits, as 26 digits of base 32. */
export function typeId(prefix: string, uuid: string): string {
  let rest = BigInt(`0x${uuid.replaceAll("-", "")}`);
  let text = "";
  for (let place = 0; place < 26; place++, rest >>= 5n) text = digits.charAt(Number(rest & 31n)) + text;
  return `${prefix}_${text}`;
}

/** Returns the UUID that `typeId` wrote; `undefined` if the text is not of that form. */
export function uuidOf(prefix: string, id: string): string | undefined {
  const [, number = ""] = /^([0-7][0-9a-hjkmnp-tv-z]{25})$/.exec(id.startsWith(`${prefix}_`) ? id.slice(prefix.length + 1) : "") ?? [];
  if (number === "") return undefined;
  let bits = 0n;
  for (const digit of number) bits = (bits << 5n) | BigInt(digits.indexOf(digit));
  return uuidOfHex(bits.toString(16).padStart(32, "0"));
}
