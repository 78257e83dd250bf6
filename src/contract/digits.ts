/** Spaces, dashes and invisible characters of any script, which people type or paste between digits; of a class. */
export const gaps = String.raw`\s\p{Pd}\u2212\p{Cf}\p{DI}`;

/**
 * Converts the decimal digits of every script to ASCII. Unicode keeps a script's decimal digits in runs of ten, zero
 * first; adjacent runs form one run whose length is a multiple of ten.
 */
export function toAsciiDigits(text: string): string {
  return text.replace(/(?![0-9])\p{Nd}/gu, (digit) => {
    const point = digit.codePointAt(0) as number;
    let start = point;
    while (/\p{Nd}/u.test(String.fromCodePoint(start - 1))) start--;
    return String((point - start) % 10);
  });
}
