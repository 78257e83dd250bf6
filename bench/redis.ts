import { AsyncLocalStorage } from "node:async_hooks";
import type { Change, Store } from "phoneproof";
import { fromNodeRedis, type RunScript, redisStore } from "phoneproof/redis";
import { createClient } from "redis";
import { redisIsInstalled, startRedis } from "../test/support/redis.js";
import { startProxy } from "../test/support/redis-proxy.js";
import { changesOf } from "./memory.js";
import { compare } from "./pairs.js";
import { atMost, median, number, type Part, type Row } from "./report.js";
import { benchVerifier, customerOf, highCeiling, numberOf } from "./service.js";

/** Everything about the Redis store, on a redis-server of its own. */
export const redisPart: Part = {
  name: "redis",
  title: "Redis store, a redis-server on loopback, the client `redis`",
  async measure() {
    if (!redisIsInstalled("the bench's part redis"))
      return [{ figure: "redis-server is missing", measured: "SKIPPED; get it with: apt-get install redis-server" }];
    const server = await startRedis();
    const client = await createClient({ url: server.url }).connect();
    try {
      const run = fromNodeRedis(client);
      const rows = [...(await roundTrips(run)), ...(await commands(run, server.cli)), ...(await againstLeast(server.url)), ...(await withNetwork(server.port))];
      await server.cli("FLUSHALL");
      return [...rows, ...(await memory(run, server.cli))];
    } finally {
      client.destroy();
      await server.stop();
    }
  },
};

type Cli = (...args: string[]) => Promise<string>;

/** Scripts that were run, and how many of them had to wait for one another. */
interface Counted {
  readonly run: RunScript;
  /** Counts what `work` runs before it ends. */
  count(work: () => Promise<unknown>): Promise<{ readonly scripts: number; readonly roundTrips: number }>;
}

/** A script that starts after another's reply makes one round trip more than that one; scripts side by side make one. What others run meanwhile does not count. */
function counting(inner: RunScript): Counted {
  const operation = new AsyncLocalStorage<{ scripts: number; roundTrips: number }>();
  return {
    async run(script, keys, args) {
      const own = operation.getStore() ?? { scripts: 0, roundTrips: 0 };
      own.scripts++;
      const trip = own.roundTrips + 1;
      try {
        return await inner(script, keys, args);
      } finally {
        own.roundTrips = Math.max(own.roundTrips, trip);
      }
    },
    async count(work) {
      const own = { scripts: 0, roundTrips: 0 };
      await operation.run(own, work);
      return { ...own };
    },
  };
}

async function roundTrips(run: RunScript): Promise<Row[]> {
  const counted = counting(run);
  const store = redisStore({ client: counted.run });
  const policy = { retryCooldowns: [0, 0, 0, 0] };
  /** The process that creates, and another one that never held the record. */
  const [own, other] = [benchVerifier(store, { policy }), benchVerifier(store, { policy })];
  const customer_uuid = customerOf(0);
  const paid = benchVerifier(store, { policy: highCeiling });
  let index = 100_000;
  const create = (process = own) => process.verifier.createAuthentication({ customer_uuid, phone_number: numberOf(index++) });

  /** One operation on an authentication made before it. */
  async function row(
    figure: string,
    most: number,
    operation: (id: string, code: string) => Promise<{ readonly status: string }>,
    status: string,
  ): Promise<Row> {
    const { authentication_uuid: id } = await create();
    const code = own.codes.get(id) ?? "";
    const { scripts, roundTrips } = await counted.count(async () => {
      const result = await operation(id, code);
      if (result.status !== status) throw new Error(`${figure}: expected ${status}, got ${result.status}`);
    });
    return { figure: `round trips: ${figure}`, measured: `${roundTrips} (${scripts} scripts)`, target: `≤ ${most}`, reached: roundTrips <= most };
  }

  const wrong = (code: string) => (code === "000000" ? "111111" : "000000");
  const check = (process: typeof own, authentication_uuid: string, check_code: string) =>
    process.verifier.check({ customer_uuid, authentication_uuid, check_code });
  // The server learns the scripts.
  await row("", 9, (id, code) => check(other, id, code), "valid");
  return [
    await row("accepted create", 1, () => create(), "pending"),
    await row("accepted create under a spend ceiling", 1, () => create(paid), "pending"),
    await row("approved retry, another process", 2, (authentication_uuid) => other.verifier.retry({ customer_uuid, authentication_uuid }), "approved"),
    await row("right code, another process", 2, (id, code) => check(other, id, code), "valid"),
    await row("wrong code, another process", 2, (id, code) => check(other, id, wrong(code)), "invalid"),
    await row("right code, the process that created", 1, (id, code) => check(own, id, code), "valid"),
    await row("wrong code, the process that created", 1, (id, code) => check(own, id, wrong(code)), "invalid"),
  ];
}

/** Commands inside Redis for each create but for what spam rules ask, which is one for each sum; the script itself among them. The mean of many, of new numbers and devices. */
async function commands(run: RunScript, cli: Cli): Promise<Row[]> {
  const store = redisStore({ client: run });
  const rows: Row[] = [];
  for (const [shape, most] of [
    ["number only", 10],
    ["with ip and device", 22],
  ] as const) {
    const changeOf = await changesOf(shape);
    const create = async (index: number) => {
      const { claims = [], record } = changeOf(index);
      await store.commit({ claims, record });
    };
    await create(0);
    await cli("CONFIG", "RESETSTAT");
    for (let index = 1; index <= 100; index++) await create(index);
    const stats = await cli("INFO", "commandstats");
    const calls = [...stats.matchAll(/^cmdstat_(?!config|info)[^:]+:calls=(\d+)/gm)].reduce((sum, [, count]) => sum + Number(count), 0);
    rows.push(atMost(`commands inside Redis: create, ${shape}`, calls / 100, most, ""));
  }
  return rows;
}

async function againstLeast(store: string): Promise<Row[]> {
  const { bare, mounted, ratios } = await compare({ framework: "Fastify 5", store, rounds: 9, pairs: 1000, connections: 16 });
  const ratio = mounted.cpu / bare.cpu;
  return [
    {
      figure: "server CPU of create + check, Fastify, against two routes of one script each",
      measured: `${ratio.toFixed(2)} × (${number(mounted.cpu)} µs against ${number(bare.cpu)} µs; rounds ${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})`,
      target: "≤ 1.6 ×",
      reached: ratio <= 1.6,
    },
  ];
}

/** One connection, so that only the way to Redis and back counts. */
async function withNetwork(port: number): Promise<Row[]> {
  const proxy = await startProxy(port);
  proxy.delay(1);
  try {
    const client = await createClient({ url: proxy.url }).connect();
    const pings: number[] = [];
    for (let turn = 0; turn < 100; turn++) {
      const started = performance.now();
      await client.ping();
      pings.push(performance.now() - started);
    }
    client.destroy();
    const { bare, mounted } = await compare({ framework: "Fastify 5", store: proxy.url, rounds: 3, pairs: 100, connections: 1 });
    return [
      {
        figure: "create + check with 2 ms between service and Redis",
        measured: `${number(mounted.latency)} ms against ${number(bare.latency)} ms for two routes of one script each (a PING there takes ${number(median(pings))} ms)`,
      },
    ];
  } finally {
    await proxy.close();
  }
}

const samples = 100_000;

async function memory(run: RunScript, cli: Cli): Promise<Row[]> {
  const store = redisStore({ client: run });
  const rows: Row[] = [];
  for (const [shape, most] of [
    ["number only", 550],
    ["with ip and device", 1_250],
  ] as const) {
    const changeOf = await changesOf(shape);
    rows.push(atMost(`memory: pending authentication with all that its create counts, ${shape}`, await grownBy(store, cli, changeOf), most, " B"));
    const recordOf = (index: number) => ({ record: changeOf(index).record });
    rows.push({ figure: `memory: its record alone, ${shape}`, measured: `${number(await grownBy(store, cli, recordOf))} B` });
  }
  const changeOf = await changesOf("number only");
  const far = Date.now() + 3_600_000;
  const waking = await grownBy(store, cli, (index) => ({ record: { ...changeOf(index).record, wakeAt: far + index } }));
  return [...rows, { figure: "memory: a record with a wake time", measured: `${number(waking)} B` }];
}

/** Bytes of Redis's memory for each of many commits. */
async function grownBy(store: Store, cli: Cli, changeOf: (index: number) => Change): Promise<number> {
  await cli("FLUSHALL");
  // What the first use costs once.
  await store.commit(changeOf(samples));
  const before = await usedMemory(cli);
  for (let index = 0; index < samples; index += 500) {
    const commits = await Promise.all(Array.from({ length: 500 }, (_, at) => store.commit(changeOf(index + at))));
    if (!commits.every(({ done }) => done)) throw new Error("a window was full");
  }
  return Math.round(((await usedMemory(cli)) - before) / samples);
}

async function usedMemory(cli: Cli): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(await cli("INFO", "memory"))?.[1]);
}
