/** One line of a scrape. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Parses Prometheus' text format by its specification; throws for an invalid line. */
export function parseText(text: string): Sample[] {
  return text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => {
      const [, name, inner = "", value] = /^([a-zA-Z_:][\w:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\]|\\["\\n])*",?)*)\})? ([-+.\deE]+|\+Inf|NaN)$/.exec(line) ?? [];
      if (name === undefined) throw new Error(`no line of the text format: ${line}`);
      const pairs = [...inner.matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\["\\n])*)"/g)];
      const labels = Object.fromEntries(pairs.map(([, label, raw = ""]) => [label as string, raw.replace(/\\(.)/g, (_, one) => (one === "n" ? "\n" : one))]));
      return { name, labels, value: Number(value) };
    });
}

/** The sum over all series of one name. */
export function sumOf(text: string, name: string): number {
  return parseText(text).reduce((sum, sample) => (sample.name === name ? sum + sample.value : sum), 0);
}
