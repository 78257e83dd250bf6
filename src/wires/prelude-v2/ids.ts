/** Crockford's base 32, lower case. */
const digits = "0123456789abcdefghjkmnpqrstvwxyz";

/** Returns the id of a verification on this wire: `vrf_` and the 128 bits of its UUID as 26 digits of base 32. */
export function verificationId(uuid: string): string {
  let rest = BigInt(`0x${uuid.replaceAll("-", "")}`);
  let text = "";
  for (let place = 0; place < 26; place++, rest >>= 5n) text = digits.charAt(Number(rest & 31n)) + text;
  return `vrf_${text}`;
}

/**
 * Returns the `authentication_uuid` of an id of this wire, for `verifier.explain` and the other direct calls.
 * `undefined`: it is not such an id.
 */
export function authenticationUuidOf(id: string): string | undefined {
  if (!/^vrf_[0-7][0-9a-hjkmnp-tv-z]{25}$/.test(id)) return undefined;
  let bits = 0n;
  for (const digit of id.slice(4)) bits = (bits << 5n) | BigInt(digits.indexOf(digit));
  return bits
    .toString(16)
    .padStart(32, "0")
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}
