/**
 * `npm run simulate`: plays honest traffic and attacks against the default policy, or yours, and prints a table. `npm
 * run simulate -- --help` lists the options.
 */
import { writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { type Scenario, type SimulationOptions, type SimulationResult, scenarios } from "phoneproof/testing";
import { type Child, startChild } from "../../../bench/processes.js";
import { pageOf, type Table } from "./page.js";
import { headLine, rowOf, textLine } from "./table.js";
import type { Play } from "./worker.js";

const help = `npm run simulate -- [options]

  --scenario NAME   only this one; may be given several times
  --policy FILE     .json: what differs from the default policy; .js or .ts: a module whose default export is options of createVerifier
  --shadow          one table more: every spam rule in shadow
  --without RULE    one table more: that spam rule off; "each": one table for each of them. May be given several times
  --volume N        honest visits a day, in every scenario
  --seed N          another world and other people; default 1
  --quick           a few scenarios, smaller, in seconds: for continuous integration
  --html FILE       draws each scenario over time
  --processes N     default: one for each core

Exits with 1 when a goal is missed. Scenarios: ${Object.keys(scenarios).join(", ")}`;

const { values } = parseArgs({
  options: {
    scenario: { type: "string", multiple: true },
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

async function run(): Promise<void> {
  const { policy, html } = values;
  const seed = whole("seed", values.seed);
  const volume = values.volume === undefined ? undefined : whole("volume", values.volume);
  const file = policy === undefined ? undefined : resolve(policy);
  const chosen = scenariosOf(values.scenario, values.quick).map((scenario) => (volume === undefined ? scenario : { ...scenario, visitsPerDay: volume }));
  const plays = variants().map(([title, change]) => ({ title, plays: chosen.map((scenario): Play => ({ scenario, seed, file, policy: change })) }));
  const all = plays.flatMap((table) => table.plays);
  const screen = screenOf(all.length);
  const results = playAll(all, Math.max(1, whole("processes", values.processes)), screen);

  const tables: Table[] = [];
  for (const { title } of plays) {
    screen.print(`\n${title}, seed ${seed}\n${headLine()}`);
    const played: SimulationResult[] = [];
    for (const result of results.splice(0, chosen.length)) {
      played.push(await result);
      screen.print(textLine(rowOf(await result), process.stdout.isTTY));
    }
    tables.push({ title, stories: played.map((result, index) => ({ about: chosen[index]?.about ?? "", row: rowOf(result), result })) });
  }
  screen.close();
  if (html !== undefined) await writeFile(html, pageOf(tables, seed));
  process.exitCode = tables.every(({ stories }) => stories.every(({ result }) => result.reached)) ? 0 : 1;
}

/** The spam rules, by their names in `policy.spam`. */
const rules = ["range", "crowd", "country", "newCountries", "address", "strangeNetwork", "signals"] as const;

type Variant = readonly [title: string, policy: NonNullable<SimulationOptions["policy"]>];

function variants(): Variant[] {
  const named = values.policy ?? "the default policy";
  const off = values.without.flatMap((rule) => (rule === "each" ? rules : [rule]));
  const inShadow = Object.fromEntries(rules.map((rule) => [rule, { mode: "shadow" }]));
  return [
    [named, {}],
    ...(values.shadow ? [[`${named}, every spam rule in shadow`, { spam: inShadow }] as Variant] : []),
    ...off.map((rule): Variant => [`${named}, without ${rule}`, { spam: { [rule]: { mode: "off" } } }]),
  ];
}

function scenariosOf(names: readonly string[] | undefined, quick: boolean): Scenario[] {
  const all: Readonly<Record<string, Scenario>> = scenarios;
  const asked = names ?? (quick ? quickOnes : Object.keys(all));
  return asked.map((name) => {
    const scenario = all[name];
    if (scenario === undefined) throw new Error(`There is no scenario ${name}; the scenarios are ${Object.keys(all).join(", ")}`);
    return quick ? smaller(scenario) : scenario;
  });
}

const quickOnes = [
  "peace500",
  "launch",
  "schools",
  "outage",
  "range",
  "ranges",
  "burst",
  "typed60",
  "fortyCountries",
  "rangesBusy",
  "worldProxies",
  "hostileTenant",
  "bombing",
];

/** Two days of warm-up, a twelfth of the attack, and up to half a day that is counted. */
function smaller(scenario: Scenario): Scenario {
  const { attack, warmUpDays, hours } = scenario;
  return {
    ...scenario,
    warmUpDays: Math.min(warmUpDays, 2),
    hours: Math.min(hours, attack === undefined ? 12 : 4),
    ...(attack !== undefined && { attack: { ...attack, messages: attack.messages / 12 } }),
  };
}

function whole(name: string, text: string): number {
  const value = Number(text.replace(/[_,]/g, ""));
  if (!Number.isInteger(value) || value < 0) throw new Error(`--${name} takes a whole number, got ${text}`);
  return value;
}

interface Screen {
  print(text: string): void;
  /** Shows how much of a scenario has been played, from 0 to 1. */
  progress(scenario: string, done: number): void;
  ended(scenario: string): void;
  close(): void;
}

/** Prints lines; on a terminal also a status line at the end. */
function screenOf(all: number): Screen {
  const live = process.stdout.isTTY;
  const under = new Map<string, number>();
  let ended = 0;
  const clear = () => live && process.stdout.write("\r\x1b[K");
  const draw = () => {
    if (!live) return;
    const playing = [...under].map(([scenario, done]) => `${scenario} ${Math.round(100 * done)} %`);
    process.stdout.write(`\r\x1b[K${`${ended} of ${all} · ${playing.join(" · ")}`.slice(0, (process.stdout.columns ?? 80) - 1)}`);
  };
  return {
    print(text) {
      clear();
      console.log(text);
      draw();
    },
    progress(scenario, done) {
      under.set(scenario, done);
      draw();
    },
    ended(scenario) {
      under.delete(scenario);
      ended++;
    },
    close: clear,
  };
}

/** Plays on several processes. Each takes the next play when it is free. The results are in the order of the plays. */
function playAll(plays: readonly Play[], processes: number, screen: Screen): Promise<SimulationResult>[] {
  const free = Array.from({ length: Math.min(processes, plays.length) }, () => startChild("../tools/simulate/command/worker.ts"));
  const takers: ((child: Child) => void)[] = [];
  const give = (child: Child) => {
    const taker = takers.shift();
    if (taker === undefined) free.push(child);
    else taker(child);
  };
  let left = plays.length;
  return plays.map(async (play) => {
    const child = free.shift() ?? (await new Promise<Child>((take) => takers.push(take)));
    const { name } = play.scenario;
    const ask = setInterval(async () => screen.progress(name, await child.call<number>("progress")), 500);
    try {
      return await child.call<SimulationResult>("play", play);
    } finally {
      clearInterval(ask);
      screen.ended(name);
      if (--left < processes) void child.stop();
      else give(child);
    }
  });
}

if (values.help) console.log(help);
else await run();
