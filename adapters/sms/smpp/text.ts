/** The default alphabet of GSM 03.38 in the order of its codes 0x00 to 0x7F; 0x1B leads to the extension table. */
const alphabet = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ\x1bÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà";
const escapeCode = 0x1b;
/** Its extension table: the code that follows the escape. */
const extension: readonly (readonly [string, number])[] = [
  ["\f", 0x0a],
  ["^", 0x14],
  ["{", 0x28],
  ["}", 0x29],
  ["\\", 0x2f],
  ["[", 0x3c],
  ["~", 0x3d],
  ["]", 0x3e],
  ["|", 0x40],
  ["€", 0x65],
];

const codes = new Map<string, readonly number[]>([
  ...Array.from(alphabet, (character, code): [string, readonly number[]] => [character, [code]]),
  ...extension.map(([character, code]): [string, readonly number[]] => [character, [escapeCode, code]]),
]);
codes.delete("\x1b");

/** A text in the default alphabet, one octet per septet (data_coding 0), where every character is in it; else in UCS-2, big-endian (data_coding 8). */
export function encodeText(text: string): { readonly dataCoding: 0 | 8; readonly text: Buffer } {
  const octets: number[] = [];
  for (const character of text) {
    const code = codes.get(character);
    if (code === undefined) return { dataCoding: 8, text: Buffer.from(text, "utf16le").swap16() };
    octets.push(...code);
  }
  return { dataCoding: 0, text: Buffer.from(octets) };
}

/** The text of a receipt. In data_coding 0 its letters, digits and colons are those of ASCII; what differs from ASCII there is read as Latin-1. */
export function decodeText(dataCoding: number, octets: Buffer): string {
  if (dataCoding !== 8) return octets.toString("latin1");
  return Buffer.from(octets.subarray(0, octets.length & ~1))
    .swap16()
    .toString("utf16le");
}
