/** Decimal digits of every script as ASCII ones. Unicode keeps the decimal digits of a script in runs of ten, zero first; neighbouring runs make one run whose length is a multiple of ten. */
export function toAsciiDigits(text: string): string {
  return text.replace(/(?![0-9])\p{Nd}/gu, (digit) => {
    const point = digit.codePointAt(0) as number;
    let start = point;
    while (/\p{Nd}/u.test(String.fromCodePoint(start - 1))) start--;
    return String((point - start) % 10);
  });
}
