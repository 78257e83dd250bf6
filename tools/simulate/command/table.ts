import { number } from "../../../bench/report.js";
import type { ByRule } from "../ledger.js";
import type { GoalReport, SimulationResult } from "../simulate.js";

/** The cells of a line, in plain words. */
export interface TableRow {
  /** The id of the scenario, which the command takes. */
  readonly scenario: string;
  /** Messages of the attack that were sent. */
  readonly out: string;
  readonly cost: string;
  readonly visits: string;
  readonly rejected: string;
  readonly by: string;
  readonly target: string;
  readonly hold: string;
  readonly recover: string;
  readonly goal: string;
  readonly reached: boolean | undefined;
}

const columns = [
  ["scenario", "scenario", 17],
  ["out", "messages out", 18],
  ["cost", "cost $", 8],
  ["visits", "honest visits", 13],
  ["rejected", "rejected", 9],
  ["target", "in target", 9],
  ["hold", "held in", 8],
  ["recover", "recovered in", 12],
  ["goal", "goal", 37],
  ["by", "rejected by", 0],
] as const satisfies readonly (readonly [keyof TableRow, string, number])[];

/** What the columns mean. */
const columnMeanings = [
  ["cost $", "of the attack's messages, or of all messages if there is no attack"],
  ["rejected", "share of the honest visits with a rejected request; in target: in the countries that the attack or strain affects"],
  ["held in", "time from the attack's start until fewer than five of its last hundred tries were sent"],
  ["recovered in", "time from its end until at most 1 % of the visits in those countries were rejected"],
  ["rejected by", "the rules, as `explain` names them, with the number of honest visits or of the attack's requests that they rejected"],
] as const;

/** What the names in the column "rejected by" mean. The first pattern that matches applies. */
const ruleMeanings: readonly (readonly [RegExp, string])[] = [
  [/^range \d$/, "too many open messages to one range of numbers: those that differ only in their last 4, 5 or 6 digits"],
  [/^crowd$/, "too many messages to one range of 10,000 numbers, verified or not"],
  [/^country$/, "too many open messages to one country"],
  [/^newCountries$/, "too many open messages to all new countries together"],
  [/^address$/, "too many open messages from one address"],
  [/^strangeNetwork$/, "from a network without verified users, while the alarm of the country is on"],
  [/^signals$/, "the device or the address does not match the request"],
  [/^spend /, "the spend ceiling"],
  [/^\w+ \d+\/\d+s$/, "a cap of `policy.limits`: the limit / the window in seconds"],
  [/^not kept$/, "the rule is unknown: only the first rejected creates of an hour are stored, 20 of a number and 500 of a customer"],
  [/^not yet$/, "a retry during the cool-down"],
  [/^no rule$/, "rejected without a decision of a rule"],
  [/./, "one of your own rules, or the code of an error"],
];

export function rowOf(id: string, { honest, target, attack, secondsToHold, secondsToRecover, goals, faults, firstFault }: SimulationResult): TableRow {
  const graded = goals.filter(({ what }) => what !== "faults");
  return {
    scenario: id,
    out: attack === undefined ? "" : `${number(attack.out)} of ${number(attack.tried)}`,
    cost: number(Math.round(attack?.cost ?? honest.cost)),
    visits: number(honest.visits),
    rejected: share(honest.refused, honest.visits),
    target: target.visits === 0 || target.visits === honest.visits ? "" : share(target.refused, target.visits),
    hold: attack === undefined ? "" : secondsToHold === undefined ? "never" : time(secondsToHold),
    recover: secondsToRecover === undefined || target.visits === 0 ? "" : time(secondsToRecover),
    goal: [...graded.map(goalText), ...(faults > 0 ? [`${faults} errors: ${firstFault}`] : [])].join("; "),
    by: [topRules("visits", honest.refusedBy), topRules("attack", attack?.refusedBy ?? {})].filter((text) => text !== "").join("; "),
    reached: graded.length === 0 && faults === 0 ? undefined : goals.every(({ reached }) => reached),
  };
}

/** A scenario's goal, in words. */
export function goalText({ what, limit, reached }: GoalReport): string {
  const text = what === "honest visits refused" ? `rejected ≤ ${percent(limit)}` : `out ≤ ${number(limit)}`;
  return reached ? text : `${text} ✗`;
}

function topRules(party: string, byRule: ByRule): string {
  const rules = Object.entries(byRule);
  if (rules.length === 0) return "";
  const top = rules.slice(0, 3).map(([rule, count]) => `${rule}: ${number(count)}`);
  return `${party} ${[...top, ...(rules.length > 3 ? [`${rules.length - 3} more`] : [])].join(", ")}`;
}

/** Explains the columns, and the names of rules that the results contain. */
export function legendLines(results: readonly SimulationResult[]): string[] {
  const names = results.flatMap(({ honest, attack }) => Object.keys({ ...honest.refusedBy, ...attack?.refusedBy }));
  const found = new Map<string, Set<string>>();
  for (const name of names) {
    const meaning = ruleMeanings.find(([pattern]) => pattern.test(name))?.[1] ?? "";
    found.set(meaning, (found.get(meaning) ?? new Set()).add(name));
  }
  const rows = [...columnMeanings, ...[...found].map(([meaning, those]) => [`· ${[...those].sort().join(", ")}`, meaning] as const)];
  const width = Math.max(...rows.map(([name]) => name.length));
  return ["\nLegend (✓ all goals met, ✗ a goal missed, · no goal)", ...rows.map(([name, meaning]) => `  ${name.padEnd(width)}  ${meaning}`)];
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
