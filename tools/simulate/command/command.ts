/**
 * `npm run simulate`: plays honest traffic and attacks against the default policy, or yours, and prints a table. It
 * runs from the sources, without a build. `npm run simulate -- --help` lists the options.
 */
import { writeFile } from "node:fs/promises";
import { type Child, startChild } from "../../../bench/processes.js";
import type { Scenario } from "../scenario.js";
import type { SimulationResult } from "../simulate.js";
import { pageOf, type Table } from "./page.js";
import { type Screen, screenOf } from "./screen.js";
import { help, readSettings, type Settings } from "./settings.js";
import { headLine, legendLines, rowOf, textLine } from "./table.js";
import type { Play } from "./worker.js";

async function run({ chosen, variants, seed, file, html, processes }: Settings): Promise<number> {
  const plays = variants.flatMap(({ policy }) => chosen.map(({ id, scenario }) => ({ id, size: sizeOf(scenario), play: { scenario, seed, file, policy } })));
  const screen = screenOf(plays, process.stdout, process.stderr);
  const results = playAll(
    plays.map(({ play }) => play),
    processes,
    screen,
  );

  const tables: Table[] = [];
  for (const { title } of variants) {
    screen.print(`\n${title}, seed ${seed}\n${headLine()}`);
    const stories: Table["stories"][number][] = [];
    for (const { id, scenario } of chosen) {
      const result = (await results.shift()) as SimulationResult;
      const row = rowOf(id, result);
      screen.print(textLine(row, process.stdout.isTTY));
      stories.push({ about: scenario.about, row, result });
    }
    tables.push({ title, stories });
  }
  const played = tables.flatMap(({ stories }) => stories.map(({ result }) => result));
  for (const line of legendLines(played)) screen.print(line);
  screen.close();
  if (html !== undefined) await writeFile(html, pageOf(tables, seed));
  return played.every(({ reached }) => reached) ? 0 : 1;
}

/** About how many requests a scenario makes. */
function sizeOf({ visitsPerDay, warmUpDays, hours, attack }: Scenario): number {
  return visitsPerDay * (warmUpDays + hours / 24) + (attack?.messages ?? 0);
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
  const results = plays.map(async (play, index) => {
    const child = free.shift() ?? (await new Promise<Child>((take) => takers.push(take)));
    const ask = setInterval(() => {
      // Rejected if the child ends first, which the play reports.
      child.call<number>("progress").then(
        (share) => screen.progress(index, share),
        () => undefined,
      );
    }, 500);
    try {
      return await child.call<SimulationResult>("play", play);
    } finally {
      clearInterval(ask);
      screen.ended(index);
      if (--left < processes) void child.stop();
      else give(child);
    }
  });
  // A play that fails before its turn in the table must not end the process.
  for (const result of results) result.catch(() => undefined);
  return results;
}

try {
  const settings = readSettings(process.argv.slice(2));
  if (settings === "help") process.stdout.write(help);
  else process.exitCode = await run(settings);
} catch (error) {
  // Without the stack of the worker.
  const [message] = (error as Error).message.split("\n    at ");
  process.stderr.write(`simulate: ${message}\n`, () => process.exit(2));
}
