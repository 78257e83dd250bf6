import { existsSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, extname, resolve } from "node:path";
import { parseArgs } from "node:util";
import { type Scenario, scenarios } from "../scenario.js";
import type { SimulationOptions } from "../simulate.js";
import { quickForm, quickIds } from "./quick.js";

/** One table: a policy that every scenario is played with. */
export interface Variant {
  readonly title: string;
  /** Changes to the policy of the file, or to the default policy. */
  readonly policy: NonNullable<SimulationOptions["policy"]>;
}

/** A scenario with its id, as the table prints it. */
export interface Chosen {
  readonly id: string;
  readonly scenario: Scenario;
}

/** The settings of `npm run simulate`. */
export interface Settings {
  readonly chosen: readonly Chosen[];
  readonly variants: readonly Variant[];
  readonly seed: number;
  /** Path of the policy or options. */
  readonly file?: string;
  /** Path of the page. */
  readonly html?: string;
  readonly processes: number;
}

/** The spam rules, by their names in `policy.spam`. */
const rules = ["range", "crowd", "country", "newCountries", "address", "strangeNetwork", "signals"] as const;

const all: Readonly<Record<string, Scenario>> = scenarios;

export const help = `npm run simulate -- [options] [SCENARIO …]

  SCENARIO          id of a scenario, as the table prints it; default: all
  --policy FILE     .json: changes to the default policy; .js or .ts: a module whose default export is options of createVerifier
  --shadow          a second table: every spam rule in shadow mode
  --without RULE    another table without that spam rule; "each": one table for each of them. Can be repeated
  --volume N        honest visits a day, in every scenario
  --seed N          another world with other people; default 1
  --quick           a short form, for continuous integration: fewer days, a twelfth of each attack, and ${quickIds.length} of the scenarios unless you name some
  --html FILE       also draws each scenario over time
  --processes N     default: one for each core

Exit codes: 0: all goals are met. 1: a goal is missed. 2: nothing was played to the end, for example because of an invalid option.

Rules: ${rules.join(", ")}

Scenarios:
${Object.entries(all)
  .map(([id, { about }]) => `  ${id.padEnd(17)}  ${about}`)
  .join("\n")}
`;

/** Reads the arguments. Throws a `TypeError` that names the invalid one. */
export function readSettings(args: readonly string[]): Settings | "help" {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      policy: { type: "string" },
      shadow: { type: "boolean", default: false },
      without: { type: "string", multiple: true, default: [] },
      volume: { type: "string" },
      seed: { type: "string", default: "1" },
      quick: { type: "boolean", default: false },
      html: { type: "string" },
      processes: { type: "string", default: String(availableParallelism()) },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return "help";
  const { policy, quick, html } = values;
  const volume = values.volume === undefined ? {} : { visitsPerDay: whole("--volume", values.volume, 1, 1_000_000) };
  return {
    chosen: idsOf(positionals, quick).map((id) => {
      const scenario = { ...(all[id] as Scenario), ...volume };
      return { id, scenario: quick ? quickForm(scenario) : scenario };
    }),
    variants: variantsOf(policy ?? "the default policy", values.shadow, values.without),
    seed: whole("--seed", values.seed, 0, 1_000_000_000),
    ...(policy !== undefined && { file: policyFile(policy) }),
    ...(html !== undefined && { html: pageFile(html) }),
    processes: whole("--processes", values.processes, 1, 256),
  };
}

function idsOf(asked: readonly string[], quick: boolean): readonly string[] {
  const unknown = asked.filter((id) => !Object.hasOwn(all, id));
  if (unknown.length > 0) throw new TypeError(`unknown scenario ${unknown.join(", ")}. Scenarios: ${Object.keys(all).join(", ")}`);
  if (asked.length > 0) return [...new Set(asked)];
  return quick ? quickIds : Object.keys(all);
}

function variantsOf(named: string, shadow: boolean, without: readonly string[]): Variant[] {
  const isRule = (name: string) => rules.some((rule) => rule === name);
  const unknown = without.filter((name) => name !== "each" && !isRule(name));
  if (unknown.length > 0) throw new TypeError(`--without: unknown rule ${unknown.join(", ")}. Rules: ${rules.join(", ")}, or each for one table per rule`);
  const off = new Set(without.flatMap((name) => (name === "each" ? rules : [name])));
  const inShadow = Object.fromEntries(rules.map((rule) => [rule, { mode: "shadow" }]));
  return [
    { title: named, policy: {} },
    ...(shadow ? [{ title: `${named}, every spam rule in shadow mode`, policy: { spam: inShadow } }] : []),
    ...[...off].map((rule) => ({ title: `${named}, without ${rule}`, policy: { spam: { [rule]: { mode: "off" } } } }) as Variant),
  ];
}

function policyFile(path: string): string {
  if (!existsSync(path)) throw new TypeError(`--policy: ${path} does not exist`);
  if (extname(path) !== ".json") return resolve(path);
  let policy: unknown;
  try {
    policy = readJson(path);
  } catch (error) {
    throw new TypeError(`--policy: ${path} is not valid JSON: ${(error as Error).message}`);
  }
  if (typeof policy !== "object" || policy === null || Array.isArray(policy))
    throw new TypeError(`--policy: ${path} must contain an object, for example { "codeLength": 6 }`);
  return resolve(path);
}

/** Without a byte order mark, which editors on Windows write. */
export function readJson(path: string): unknown {
  return JSON.parse(readFileSync(path, "utf8").replace(/^\uFEFF/, ""));
}

function pageFile(path: string): string {
  const folder = dirname(resolve(path));
  if (!existsSync(folder)) throw new TypeError(`--html: the folder ${folder} does not exist`);
  return path;
}

function whole(option: string, text: string, least: number, most: number): number {
  const value = Number(text.replace(/[_,]/g, ""));
  if (!/^[\d_,]+$/.test(text) || value < least || value > most) throw new TypeError(`${option} takes a whole number from ${least} to ${most}, not "${text}"`);
  return value;
}
