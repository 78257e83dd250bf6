import type { Fired } from "./load.js";
import { type Child, startChild } from "./processes.js";
import { median } from "./report.js";
import { customerFor, customerOf, keyOf, numberOf } from "./service.js";

/** What is compared: bare routes and the verifier in the same framework, beside the same store. */
export interface Comparison {
  readonly framework: string;
  readonly store: string;
  readonly rounds: number;
  /** Pairs of create and check in one round. */
  readonly pairs: number;
  readonly connections: number;
}

/** For one pair of create and check: the server's CPU in microseconds, and the time that the client waited in milliseconds; medians. */
export interface Cost {
  readonly cpu: number;
  readonly latency: number;
}

interface Server {
  /** One round. */
  run(pairs: number, connections: number): Promise<Cost>;
  stop(): Promise<void>;
}

/** Rounds of each before those that count: until V8 has compiled what it will. */
const warmUp = 3;

/** On a busy machine there are fewer rounds, at least three, so that the bench ends: no more are begun after this many milliseconds. */
const patience = 15_000;

/** Rounds of both by turns, once they are warm. */
export async function compare({
  framework,
  store,
  rounds,
  pairs,
  connections,
}: Comparison): Promise<{ readonly bare: Cost; readonly mounted: Cost; readonly ratios: readonly number[] }> {
  const load = startChild("./load.ts");
  const [bare, mounted] = await Promise.all([startServer(load, framework, "bare", store), startServer(load, framework, "mounted", store)]);
  const costs = { bare: [] as Cost[], mounted: [] as Cost[] };
  try {
    for (const server of [bare, mounted]) await warm(server, pairs, connections);
    const end = performance.now() + patience;
    for (let round = 0; round < rounds && (round < 3 || performance.now() < end); round++) {
      for (const kind of round % 2 === 0 ? (["bare", "mounted"] as const) : (["mounted", "bare"] as const)) {
        costs[kind].push(await (kind === "bare" ? bare : mounted).run(pairs, connections));
      }
    }
  } finally {
    await Promise.all([bare.stop(), mounted.stop(), load.stop()]);
  }
  return { bare: middle(costs.bare), mounted: middle(costs.mounted), ratios: costs.mounted.map(({ cpu }, round) => cpu / (costs.bare[round] as Cost).cpu) };
}

/** The verifier alone. */
export async function measureMounted({ framework, store, rounds, pairs, connections }: Comparison): Promise<Cost> {
  const load = startChild("./load.ts");
  const server = await startServer(load, framework, "mounted", store);
  const costs: Cost[] = [];
  try {
    await warm(server, pairs, connections);
    for (let round = 0; round < rounds; round++) costs.push(await server.run(pairs, connections));
  } finally {
    await Promise.all([server.stop(), load.stop()]);
  }
  return middle(costs);
}

async function warm(server: Server, pairs: number, connections: number): Promise<void> {
  for (let round = 0; round < warmUp; round++) await server.run(pairs, connections);
}

function middle(costs: readonly Cost[]): Cost {
  return { cpu: median(costs.map(({ cpu }) => cpu)), latency: median(costs.map(({ latency }) => latency)) };
}

async function startServer(load: Child, framework: string, kind: "bare" | "mounted", store: string): Promise<Server> {
  const app = startChild("./app-server.ts", [framework, kind, store]);
  const port = await app.call<number | undefined>("start");
  let index = 0;

  async function fire(
    path: string,
    connections: number,
    requests: readonly { readonly key: string; readonly body: string }[],
  ): Promise<Fired & { readonly cpu: number }> {
    const before = await app.call<number>("cpu");
    const fired = await (port === undefined ? app : load).call<Fired>("fire", { port, path, connections, requests });
    const cpu = (await app.call<number>("cpu")) - before;
    return { ...fired, cpu };
  }

  return {
    async run(pairs, connections) {
      const creates = Array.from({ length: pairs }, () => {
        const customer = customerFor(index);
        return { key: keyOf(customer), customer_uuid: customerOf(customer), phone_number: numberOf(index++) };
      });
      const create = await fire(
        "/v1/authentication",
        connections,
        creates.map(({ key, ...body }) => ({ key, body: JSON.stringify(body) })),
      );
      const codes = await app.call<Map<string, string>>("codes");
      const ids = create.answers.map((answer) => expectStatus(answer, "pending"));
      const check = await fire(
        "/v1/check",
        connections,
        creates.map(({ key, customer_uuid }, at) => {
          const authentication_uuid = ids[at] as string;
          return { key, body: JSON.stringify({ customer_uuid, authentication_uuid, check_code: codes.get(authentication_uuid) ?? "123456" }) };
        }),
      );
      for (const answer of check.answers) expectStatus(answer, "valid");
      const latency = create.times.length === 0 ? 0 : median(create.times.map((time, at) => time + (check.times[at] as number)));
      return { cpu: (create.cpu + check.cpu) / pairs, latency };
    },
    stop: () => app.stop(),
  };
}

/** The id of an answer; work that failed must not be measured. */
function expectStatus(answer: string, status: string): string {
  const read = JSON.parse(answer) as { readonly authentication_uuid: string; readonly status: string };
  if (read.status !== status) throw new Error(`expected ${status}, got ${answer}`);
  return read.authentication_uuid;
}
