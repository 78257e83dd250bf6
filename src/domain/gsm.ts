/**
 * The alphabet of text messages, in one table for counting segments and for writing octets; two tables could disagree.
 * Pure data and its readers, so adapters may import this file at run time too.
 */

/** The default alphabet of GSM 03.38 in the order of its codes 0x00 to 0x7F; 0x1B leads to the extension table. */
const alphabet = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ\x1bÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà";
const escapeCode = 0x1b;
/** The extension table: the code that follows the escape. */
const extension = { "\f": 0x0a, "^": 0x14, "{": 0x28, "}": 0x29, "\\": 0x2f, "[": 0x3c, "~": 0x3d, "]": 0x3e, "|": 0x40, "€": 0x65 };

const codes = new Map<string, readonly number[]>([
  ...Array.from(alphabet, (character, code): [string, readonly number[]] => [character, [code]]),
  ...Object.entries(extension).map(([character, code]): [string, readonly number[]] => [character, [escapeCode, code]]),
]);
codes.delete("\x1b");

/** The codes of a character, one for each septet that it costs; `undefined` if it is not in the alphabet. */
export function gsmCodes(character: string): readonly number[] | undefined {
  return codes.get(character);
}

/** Whether every character of a text is in the default alphabet or its extension table. */
export function isGsm7(text: string): boolean {
  for (const character of text) if (!codes.has(character)) return false;
  return true;
}

/** The encoding of a text: septets or UTF-16 units. */
export type Coding = "gsm7" | "ucs2";

/** The capacity of one segment, alone and as one of several, in septets or UTF-16 units. */
const capacity = { gsm7: { alone: 160, part: 153 }, ucs2: { alone: 70, part: 67 } } as const;

/**
 * The segments of a text, at least one. GSM-7: 160 septets alone or 153 each; UCS-2: 70 UTF-16 units alone or 67 each.
 * Characters are never split.
 *
 * @param coding Default: GSM-7 if it has every character. With `gsm7`, it must have every character.
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
