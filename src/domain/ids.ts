/**
 * Verifications of one number, customer and scope share one stored record, its slot: a UUID of version 8 whose last
 * eight digits are 0. Each verification's own id is the slot with other digits there (docs/contract.md#slot).
 */
export function slotOf(id: string): string {
  return id[14] === "8" ? `${id.slice(0, -8)}00000000` : id;
}

/** Whether an authentication was started by number. */
export function isInSlot(id: string): boolean {
  return slotOf(id) !== id;
}

/** Whether an id is a slot's own, which names no authentication. */
export function isSlot(id: string): boolean {
  return id[14] === "8" && id.endsWith("00000000");
}

/** What distinguishes a verification from the others in its slot: the last digits of its id. */
export function digitsInSlot(id: string): string {
  return id.slice(-8);
}

/** Returns the id with these last digits in the slot of another one. */
export function idInSlot(id: string, digits: string): string {
  return id.slice(0, -8) + digits;
}

/** Returns the UUID of 32 hexadecimal digits. */
export function uuidOfHex(hex: string): string {
  // `join` makes one flat string; a template would keep its five parts in memory.
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

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
