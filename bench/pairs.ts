import type { Batch, Fired } from "./load.js";
import { type Shape, shapes } from "./memory.js";
import { type Child, startChild } from "./processes.js";
import { median } from "./report.js";
import { customerFor, customerOf, keyOf, numberOf } from "./service.js";

/** What runs in a framework: bare routes, the same once more as a control of how quiet the machine is, a service made by hand, better-auth's plugin for phone numbers, the verifier. */
export type Kind = "bare" | "control" | "handmade" | "better-auth" | "mounted";

/** What is compared in one framework, beside one store. */
export interface Comparison<K extends Kind> {
  readonly framework: string;
  readonly store: string;
  readonly kinds: readonly K[];
  readonly rounds: number;
  /** Pairs of create and check in one round. */
  readonly pairs: number;
  readonly connections: number;
  readonly shape?: Shape;
  /** Whether the checks go to another process than the creates. */
  readonly elsewhere?: boolean;
  /** Microseconds of CPU that the store's server has had. */
  readonly storeCpu?: () => Promise<number>;
}

/** For one pair of create and check: CPU of server and store in microseconds, the time that the client waited in milliseconds; and pairs a second. */
export interface Cost {
  readonly cpu: number;
  readonly storeCpu: number;
  readonly latency: number;
  readonly flows: number;
}

export type Costs<K extends Kind> = Readonly<Record<K, readonly Cost[]>>;

/** Of one figure the median, the least and the most over the rounds. */
export interface Spread {
  readonly middle: number;
  readonly least: number;
  readonly most: number;
}

/** Pairs of each before those that count, many at a time: until V8 has compiled what it will. After half as many the verifier still took a quarter more than later on. */
const warmUp = { pairs: 20_000, connections: 16 };

/** On a busy machine there are fewer rounds, at least three, so that the bench ends: no more are begun after this many milliseconds. */
const patience = 20_000;

/** Rounds of all by turns, once they are warm; each in processes of its own. */
export async function compare<K extends Kind>(comparison: Comparison<K>): Promise<Costs<K>> {
  const { kinds, rounds } = comparison;
  const load = startChild("./load.ts");
  const servers = await Promise.all(kinds.map((kind) => startServer(load, kind, comparison)));
  const costs = Object.fromEntries(kinds.map((kind) => [kind, []])) as unknown as Record<K, Cost[]>;
  try {
    for (const server of servers) for (let done = 0; done < warmUp.pairs; done += comparison.pairs) await server.run(warmUp.connections);
    const end = performance.now() + patience;
    for (let round = 0; round < rounds && (round < 3 || performance.now() < end); round++) {
      for (const server of round % 2 === 0 ? servers : servers.toReversed()) costs[server.kind].push(await server.run());
    }
  } finally {
    await Promise.all([...servers.map((server) => server.stop()), load.stop()]);
  }
  return costs;
}

/** A figure of one kind, as a multiple of another's in the same round. */
export function ratioOf<K extends Kind>(costs: Costs<K>, figure: keyof Cost, kind: K, against: K): Spread {
  return spreadOf(costs[kind].map((cost, round) => cost[figure] / (costs[against][round] as Cost)[figure]));
}

export function spreadOf(values: readonly number[]): Spread {
  return { middle: median(values), least: Math.min(...values), most: Math.max(...values) };
}

export function middleOf(costs: readonly Cost[], figure: keyof Cost): number {
  return median(costs.map((cost) => cost[figure]));
}

interface Server<K extends Kind> {
  readonly kind: K;
  /** One round. `connections`: default those of the comparison. */
  run(connections?: number): Promise<Cost>;
  stop(): Promise<void>;
}

async function startServer<K extends Kind>(load: Child, kind: K, comparison: Comparison<K>): Promise<Server<K>> {
  const { framework, store, pairs, shape = "number only", elsewhere = false, storeCpu = async () => 0 } = comparison;
  const start = async () => {
    const child = startChild("./app-server.ts", [framework, kind === "control" ? "bare" : kind, store]);
    return { child, port: await child.call<number | undefined>("start") };
  };
  const creator = await start();
  const checker = elsewhere ? await start() : creator;
  const { fieldsOf } = shapes[shape];
  let index = 0;

  async function fire({ child, port }: typeof creator, path: string, connections: number, requests: Batch["requests"]) {
    const before = await child.call<number>("cpu");
    const fired = await (port === undefined ? child : load).call<Fired>("fire", { port, path, connections, requests });
    return { ...fired, cpu: (await child.call<number>("cpu")) - before };
  }

  return {
    kind,
    async run(connections = comparison.connections) {
      const storeBefore = await storeCpu();
      const creates = Array.from({ length: pairs }, () => {
        const customer = customerFor(index);
        return { key: keyOf(customer), customer_uuid: customerOf(customer), phone_number: numberOf(index), ...fieldsOf(index++) };
      });
      const create = await fire(
        creator,
        "/v1/authentication",
        connections,
        creates.map(({ key, ...body }) => ({ key, body: JSON.stringify(body) })),
      );
      const codes = await creator.child.call<Map<string, string>>("codes");
      const ids = create.answers.map((answer) => expectStatus(answer, "pending"));
      const check = await fire(
        checker,
        "/v1/check",
        connections,
        creates.map(({ key, customer_uuid }, at) => {
          const authentication_uuid = ids[at] as string;
          return { key, body: JSON.stringify({ customer_uuid, authentication_uuid, check_code: codes.get(authentication_uuid) ?? "123456" }) };
        }),
      );
      for (const answer of check.answers) expectStatus(answer, "valid");
      return {
        cpu: (create.cpu + check.cpu) / pairs,
        storeCpu: ((await storeCpu()) - storeBefore) / pairs,
        latency: create.times.length === 0 ? 0 : median(create.times.map((time, at) => time + (check.times[at] as number))),
        flows: (1000 * pairs) / (create.took + check.took),
      };
    },
    async stop() {
      await Promise.all([creator.child.stop(), ...(elsewhere ? [checker.child.stop()] : [])]);
    },
  };
}

/** The id of an answer; work that failed must not be measured. */
function expectStatus(answer: string, status: string): string {
  const read = JSON.parse(answer) as { readonly authentication_uuid: string; readonly status: string };
  if (read.status !== status) throw new Error(`expected ${status}, got ${answer}`);
  return read.authentication_uuid;
}
