/**
 * The alphabet of text messages, in one table: for who counts segments and for who writes octets.
 *
 * Pure data and what reads it, which is why adapters may import this file at run time too; a second table beside it would count otherwise than it sends.
 */

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

/** The codes of a character, one for each septet that it costs; `undefined`: it is not in the alphabet. */
export function gsmCodes(character: string): readonly number[] | undefined {
  return codes.get(character);
}

/** Whether every character of a text is in the default alphabet or its extension table. */
export function isGsm7(text: string): boolean {
  for (const character of text) if (!codes.has(character)) return false;
  return true;
}

/** How a text is put: in septets, or in UTF-16 units. */
export type Coding = "gsm7" | "ucs2";

/** What one segment holds, alone and as one of several: septets, or UTF-16 units. */
const capacity = { gsm7: { alone: 160, part: 153 }, ucs2: { alone: 70, part: 67 } } as const;

/**
 * The segments that a text travels in, one at least: 160 septets alone or 153 each in GSM-7, 70 UTF-16 units alone or 67 each in UCS-2. No character is torn in two.
 *
 * @param coding Default: GSM-7 where every character is in it. With `gsm7` every character must be.
 */
export function segmentsOf(text: string, coding: Coding = isGsm7(text) ? "gsm7" : "ucs2"): readonly string[] {
  const { alone, part } = capacity[coding];
  const costOf = (character: string) => (coding === "gsm7" ? (codes.get(character)?.length ?? 0) : character.length);
  const segments: string[] = [];
  let segment = "";
  let filled = 0;
  let total = 0;
  for (const character of text) {
    const cost = costOf(character);
    total += cost;
    if (filled + cost > part) {
      segments.push(segment);
      segment = "";
      filled = 0;
    }
    segment += character;
    filled += cost;
  }
  return total <= alone ? [text] : [...segments, segment];
}
