/*
 * "32 random bytes with a recognisable prefix" (docs/contract.md#api-keys), and a checksum, as GitHub's tokens have one: `pp_`, the bytes as 43 digits of base 62, and the CRC-32 of these digits as six more. Secret scanners
 * and people know a key by it, and one that was mistyped is refused without asking anyone.
 */

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

const form = /^pp_([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/;
const length = "pp_".length + 43 + 6;

/** The key made of 32 random bytes. */
export function apiKeyOf(bytes: Uint8Array): string {
  const drawn = inBase62(
    bytes.reduce((value, byte) => value * 256n + BigInt(byte), 0n),
    43,
  );
  return `pp_${drawn}${checksum(drawn)}`;
}

/** Whether a text has the form of a key and not the checksum that goes with it. Keys of another form, your own and those made before there was a checksum, are not judged. */
export function isMistyped(key: string): boolean {
  if (key.length !== length) return false;
  const [, drawn, sum] = form.exec(key) ?? [];
  return drawn !== undefined && checksum(drawn) !== sum;
}

function checksum(text: string): string {
  return inBase62(BigInt(crc32(text)), 6);
}

function inBase62(value: bigint, width: number): string {
  let text = "";
  for (let left = value; text.length < width; left /= 62n) text = base62.charAt(Number(left % 62n)) + text;
  return text;
}

/** CRC-32 as in ISO 3309 and zlib, of a text in ASCII. */
function crc32(text: string): number {
  let sum = 0xffffffff;
  for (let at = 0; at < text.length; at++) {
    sum ^= text.charCodeAt(at);
    for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum >>> 0;
}
