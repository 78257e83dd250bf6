/** Unicode's decimal digits read as ASCII. It keeps those of a script in runs of ten, zero first. */
function asciiDigits(text: string): string {
  return text.replace(/(?![0-9])\p{Nd}/gu, (digit) => {
    const point = digit.codePointAt(0) as number;
    let start = point;
    while (/\p{Nd}/u.test(String.fromCodePoint(start - 1))) start--;
    return String((point - start) % 10);
  });
}

/** The digits of a text, as ASCII. */
export function digitsOf(text: string): string {
  return asciiDigits(text).replace(/\D/g, "");
}

/** The code of so many digits in a text, which may be a whole message: behind the `#` of its last line, in one piece, or in groups ("123 456", "12-34-56"). Part of a longer number is none. */
export function codeIn(text: string, length: number): string | undefined {
  const plain = asciiDigits(text.replace(/\p{Cf}/gu, ""));
  const group = "[\\s\\p{Pd}]?";
  const forms = [`#\\d{${length}}\\s*$`, `(?<!\\d)\\d{${length}}(?!\\d)`, `(?<!\\d${group})\\d(?:${group}\\d){${length - 1}}(?!${group}\\d)`];
  for (const form of forms) {
    const found = new RegExp(form, "u").exec(plain);
    if (found !== null) return digitsOf(found[0]);
  }
  return undefined;
}
