import { availableParallelism, cpus, loadavg } from "node:os";

/** One line of the table. */
export interface Row {
  readonly figure: string;
  readonly measured: string;
  /** The target in words; absent for figures that are only informative. */
  readonly target?: string;
  readonly reached?: boolean;
}

/** A part of the bench, which measures and returns its lines. */
export interface Part {
  /** The name that selects it on the command line. */
  readonly name: string;
  readonly title: string;
  /** The bench fails if a target of this part is not reached. */
  readonly gates?: true;
  measure(): Promise<readonly Row[]>;
}

/** The middle value, or the mean of the two middle values. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? (sorted[half] as number) : ((sorted[half - 1] as number) + (sorted[half] as number)) / 2;
}

/** Percentiles of times in any order. */
export function latencyOf(times: readonly number[]): { readonly p50: number; readonly p99: number } {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor(share * sorted.length)] ?? Number.NaN;
  return { p50: at(0.5), p99: at(0.99) };
}

/** A figure that must be at most `limit`. */
export function atMost(figure: string, value: number, limit: number, unit: string, more = ""): Row {
  return { figure, measured: `${number(value)}${unit}${more}`, target: `≤ ${number(limit)}${unit}`, reached: value <= limit };
}

/** Two decimals below ten, one below a hundred, none above or for integers; with thousands separators. */
export function number(value: number): string {
  const digits = Math.abs(value) < 10 && !Number.isInteger(value) ? 2 : Math.abs(value) < 100 && !Number.isInteger(value) ? 1 : 0;
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** The machine that was measured. */
export function machine(): string {
  const [minute = 0] = loadavg();
  return `${availableParallelism()} cores (${cpus()[0]?.model.trim() ?? "unknown"}), Node ${process.versions.node}, ${process.platform} ${process.arch}, load ${minute.toFixed(1)}`;
}

/** Prints a part's lines in columns. */
export function print(title: string, rows: readonly Row[]): void {
  const cells = rows.map((row) => [row.figure, row.measured, row.target ?? "", row.reached === undefined ? "" : row.reached ? "reached" : "NOT REACHED"]);
  const widths = [0, 1, 2].map((column) => Math.max(...cells.map((cell) => (cell[column] as string).length)));
  console.log(`\n${title}`);
  for (const cell of cells) console.log(`  ${cell.map((text, column) => text.padEnd(widths[column] ?? 0)).join("  ")}`.trimEnd());
}
