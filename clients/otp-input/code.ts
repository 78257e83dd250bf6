/** Converts Unicode's decimal digits to ASCII. Those of a script are in runs of ten, from zero up. */
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

/**
 * The code of `length` digits in a text, possibly a whole message: after the `#` of its last line, in one piece, or in
 * groups ("123 456", "12-34-56"). Part of a longer number is not a code.
 */
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

/**
 * The digits of a text to insert into a field, and the range that they replace. A whole code replaces everything.
 * Digits beyond the selection overwrite those that follow if the field is full.
 */
export function placed(
  text: string,
  value: string,
  start: number,
  end: number,
  length: number,
): { readonly digits: string; readonly from: number; readonly to: number } {
  const code = codeIn(text, length);
  if (code !== undefined) return { digits: code, from: 0, to: value.length };
  const digits = digitsOf(text).slice(0, length - start);
  return { digits, from: start, to: Math.max(end, start + digits.length + value.length - length) };
}
