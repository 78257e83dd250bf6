import type { ByRule, GoalReport, SimulationResult } from "phoneproof/testing";
import { number } from "../../../bench/report.js";

/** The cells of a line, in plain words. */
export interface TableRow {
  readonly scenario: string;
  /** Messages of the attack that were sent. */
  readonly out: string;
  readonly cost: string;
  readonly visits: string;
  readonly refused: string;
  readonly by: string;
  readonly target: string;
  readonly hold: string;
  readonly recover: string;
  readonly goal: string;
  readonly reached: boolean | undefined;
}

const columns = [
  ["scenario", "scenario", 28],
  ["out", "messages out", 18],
  ["cost", "cost $", 8],
  ["visits", "honest visits", 13],
  ["refused", "refused", 9],
  ["target", "in target", 9],
  ["hold", "held in", 8],
  ["recover", "healed in", 9],
  ["goal", "goal", 34],
  ["by", "refused by (honest visits; attack)", 0],
] as const satisfies readonly (readonly [keyof TableRow, string, number])[];

export function rowOf({ scenario, honest, target, attack, secondsToHold, secondsToRecover, goals, faults, firstFault }: SimulationResult): TableRow {
  const graded = goals.filter(({ what }) => what !== "faults");
  return {
    scenario,
    out: attack === undefined ? "" : `${number(attack.out)} of ${number(attack.tried)}`,
    cost: number(Math.round(attack?.cost ?? honest.cost)),
    visits: number(honest.visits),
    refused: share(honest.refused, honest.visits),
    target: target.visits === 0 || target.visits === honest.visits ? "" : share(target.refused, target.visits),
    hold: attack === undefined ? "" : secondsToHold === undefined ? "never" : time(secondsToHold),
    recover: secondsToRecover === undefined || target.visits === 0 ? "" : time(secondsToRecover),
    goal: [...graded.map(goalText), ...(faults > 0 ? [`${faults} faults: ${firstFault}`] : [])].join("; "),
    by: [topRules(honest.refusedBy), topRules(attack?.refusedBy ?? {})].filter((text) => text !== "").join("; "),
    reached: graded.length === 0 && faults === 0 ? undefined : goals.every(({ reached }) => reached),
  };
}

/** A scenario's goal, in words. */
export function goalText({ what, limit, reached }: GoalReport): string {
  const text = what === "honest visits refused" ? `refused ≤ ${percent(limit)}` : `out ≤ ${number(limit)}`;
  return reached ? text : `${text} ✗`;
}

function topRules(byRule: ByRule): string {
  const rules = Object.entries(byRule);
  const top = rules.slice(0, 3).map(([rule, count]) => `${rule}: ${number(count)}`);
  return [...top, ...(rules.length > 3 ? [`${rules.length - 3} more`] : [])].join(", ");
}

function share(part: number, whole: number): string {
  return whole === 0 ? "" : percent(part / whole);
}

function percent(value: number): string {
  return `${(100 * value).toFixed(value > 0 && value < 0.01 ? 2 : 1).replace(/\.?0+$/, "")} %`;
}

function time(seconds: number): string {
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min` : `${number(Math.round(seconds / 360) / 10)} h`;
}

/** The head of the table. */
export function headLine(): string {
  return line((key) => columns.find(([name]) => name === key)?.[1] ?? "");
}

/** One line of the table. `colours`: for a terminal. */
export function textLine(row: TableRow, colours: boolean): string {
  const text = line((key) => String(row[key] ?? ""));
  const mark = row.reached === undefined ? "·" : row.reached ? "✓" : "✗";
  const colour = row.reached === undefined ? 2 : row.reached ? 32 : 31;
  return colours ? `\x1b[${colour}m${mark}\x1b[0m ${text.slice(2)}` : `${mark} ${text.slice(2)}`;
}

function line(cell: (key: (typeof columns)[number][0]) => string): string {
  return `  ${columns.map(([key, , width]) => cell(key).padEnd(width)).join("  ")}`.trimEnd();
}
