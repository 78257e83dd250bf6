import type { Kind } from "./app-server.js";
import type { FrameworkName } from "./apps.js";
import type { Latency, Loop, Played, Target } from "./load.js";
import { startChild } from "./processes.js";
import { median, number, type Row } from "./report.js";

/** The services that are compared. `elsewhere`: checks go to another process than creates. */
export type Contender = Kind | "ours elsewhere" | "bare elsewhere";

/** A load, its contenders and its rounds. */
export interface Play {
  readonly name: string;
  readonly loop: Loop;
  readonly seconds: number;
  readonly rounds: number;
  readonly contenders: readonly Contender[];
  /** Whether another client sends PINGs at the same time, which also uses CPU of Redis. */
  readonly ping?: boolean;
}

/** The framework and store that all contenders share. */
export interface Field {
  readonly framework: FrameworkName;
  /** URL of the store. */
  readonly store: string;
  /** Port of Redis, for the other client. */
  readonly port?: number;
  /** Microseconds of CPU time that the store's server has used. */
  readonly storeCpu?: () => Promise<number>;
}

/** The figures of one round: CPU in microseconds per flow, times in milliseconds, `flows` per second. */
export interface Figures {
  readonly flows: number;
  readonly serverCpu: number;
  readonly storeCpu: number;
  readonly createP50: number;
  readonly createP99: number;
  readonly checkP50: number;
  readonly checkP99: number;
  readonly pingP50: number;
  readonly pingP99: number;
  readonly failed: number;
}

/** The rounds of each contender, by the name of the play. */
export type Results = ReadonlyMap<string, ReadonlyMap<Contender, readonly Figures[]>>;

/**
 * Flows of each contender before the counted ones, for V8 to compile: after half as many, ours still took a quarter
 * longer than later. No more are started after `seconds`.
 */
const warmUp = { flows: 20_000, seconds: 15 };

/** Plays the contenders in turns, each with its own processes and people. */
export async function playAll(field: Field, plays: readonly Play[]): Promise<Results> {
  const names = [...new Set(plays.flatMap(({ contenders }) => contenders))];
  const other = startChild("./other-client.ts");
  const apps = new Map<Contender, App>();
  const results = new Map<string, ReadonlyMap<Contender, Figures[]>>();
  try {
    for (const [party, name] of names.entries()) apps.set(name, await startApp(field, name, party));
    for (const app of apps.values()) await app.warmUp();
    for (const { name, loop, seconds, rounds, contenders, ping = false } of plays) {
      const figures = new Map<Contender, Figures[]>(contenders.map((contender) => [contender, []]));
      results.set(name, figures);
      for (let round = 0; round < rounds; round++) {
        for (const contender of round % 2 === 0 ? contenders : contenders.toReversed()) {
          if (ping) await other.call("start", field.port);
          const played = await (apps.get(contender) as App).play(loop, seconds).catch((cause) => {
            throw new Error(`${name}, ${contender}`, { cause });
          });
          const { p50, p99 } = ping ? await other.call<Latency>("stop") : { p50: Number.NaN, p99: Number.NaN };
          figures.get(contender)?.push({ ...played, pingP50: p50, pingP99: p99 });
        }
      }
    }
  } finally {
    await Promise.all([...[...apps.values()].map((app) => app.stop()), other.stop()]);
  }
  return results;
}

interface App {
  warmUp(): Promise<void>;
  play(loop: Loop, seconds: number): Promise<Omit<Figures, "pingP50" | "pingP99">>;
  stop(): Promise<void>;
}

async function startApp({ framework, store, storeCpu = async () => 0 }: Field, contender: Contender, party: number): Promise<App> {
  const load = startChild("./load.ts");
  const codesPort = await load.call<number>("listen");
  const kind = contender.replace(" elsewhere", "");
  const servers = Array.from({ length: kind === contender ? 1 : 2 }, () => startChild("./app-server.ts", [framework, kind, store, String(codesPort)]));
  const [create = 0, check = create] = await Promise.all(servers.map((server) => server.call<number>("start")));
  await load.call("aim", { create, check, party } satisfies Target);
  const serverCpu = async () => (await Promise.all(servers.map((server) => server.call<number>("cpu")))).reduce((sum, cpu) => sum + cpu, 0);
  return {
    async warmUp() {
      for (let [flows, seconds] = [0, 0]; flows < warmUp.flows && seconds < warmUp.seconds; seconds++) {
        flows += (await load.call<Played>("play", { loop: { connections: 16 }, seconds: 1 })).flows;
      }
    },
    async play(loop, seconds) {
      const [serverBefore, storeBefore] = [await serverCpu(), await storeCpu()];
      const { flows, failed, took, create, check } = await load.call<Played>("play", { loop, seconds });
      return {
        flows: (1000 * flows) / took,
        failed,
        storeCpu: ((await storeCpu()) - storeBefore) / flows,
        serverCpu: ((await serverCpu()) - serverBefore) / flows,
        createP50: create.p50,
        createP99: create.p99,
        checkP50: check.p50,
        checkP99: check.p99,
      };
    },
    async stop() {
      await Promise.all([...servers, load].map((child) => child.stop()));
    },
  };
}

export type Goal = { readonly most: number } | { readonly least: number };

const words: Readonly<Record<Contender, string>> = {
  ours: "ours",
  "ours elsewhere": "ours, checked elsewhere",
  handmade: "by hand",
  lean: "by hand, commands together",
  bare: "bare routes",
  "bare elsewhere": "bare routes, checked elsewhere",
  "better-auth": "better-auth",
};

const labels: Readonly<Record<Exclude<keyof Figures, "failed">, readonly [name: string, unit: string]>> = {
  flows: ["flows", "a second"],
  storeCpu: ["CPU of the store a flow", "µs"],
  serverCpu: ["CPU of the server a flow", "µs"],
  createP50: ["create, p50", "ms"],
  createP99: ["create, p99", "ms"],
  checkP50: ["check, p50", "ms"],
  checkP99: ["check, p99", "ms"],
  pingP50: ["PING of another client, p50", "ms"],
  pingP99: ["PING of another client, p99", "ms"],
};

/** Figures of one contender as multiples of another's in the same round. `goals`: the figures; some have no goal. */
export function rowsOf(
  results: Results,
  play: string,
  [ours, theirs]: readonly [Contender, Contender],
  goals: { readonly [figure in keyof typeof labels]?: Goal | undefined },
): Row[] {
  const [own, others] = [results.get(play)?.get(ours) ?? [], results.get(play)?.get(theirs) ?? []];
  const failed = own.reduce((sum, round) => sum + round.failed, 0);
  return Object.entries(goals).map(([figure, goal]) => {
    const what = figure as keyof typeof labels;
    const [name, unit] = labels[what];
    const ratios = own.map((round, at) => round[what] / (others[at] as Figures)[what]);
    const middle = (rounds: readonly Figures[]) => number(median(rounds.map((round) => round[what])));
    const detail = `${middle(own)} ${unit} against ${middle(others)}${failed > 0 ? `; ${failed} REQUESTS FAILED` : ""}`;
    const row = multiple(`${play}: ${ours === "ours" ? "" : `${words[ours]}, `}${name} × ${words[theirs]}`, ratios, detail, goal);
    return failed > 0 && goal !== undefined ? { ...row, reached: false } : row;
  });
}

/** The median, minimum and maximum of ratios. */
export function multiple(figure: string, ratios: readonly number[], detail: string, goal?: Goal): Row {
  const middle = median(ratios);
  const measured = `${middle.toFixed(2)} × [${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}] (${detail})`;
  if (goal === undefined) return { figure, measured };
  if ("most" in goal) return { figure, measured, target: `≤ ${goal.most} ×`, reached: middle <= goal.most };
  return { figure, measured, target: `≥ ${goal.least} ×`, reached: middle >= goal.least };
}
