import type { Store } from "phoneproof";
import { fromNodeRedis, type RunScript, redisStore } from "phoneproof/redis";
import { createClient } from "redis";
import { redisIsInstalled, startRedis } from "../test/support/redis.js";
import { startProxy } from "../test/support/redis-proxy.js";
import { compare } from "./pairs.js";
import { atMost, median, number, type Part, type Row } from "./report.js";
import { benchVerifier, customerOf, highCeiling, numberOf } from "./service.js";
import { claimsOf, recordOf, type Wanted, writeOne } from "./written.js";

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
      const rows = [...(await roundTrips(fromNodeRedis(client), server.cli)), ...(await againstLeast(server.url)), ...(await withNetwork(server.port))];
      await server.cli("FLUSHALL");
      return [...rows, ...(await memory(fromNodeRedis(client), server.cli))];
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
  /** Counts what `work` runs. */
  count(work: () => Promise<unknown>): Promise<{ readonly scripts: number; readonly roundTrips: number }>;
}

/** A script that starts after another's reply makes one round trip more than that one; scripts side by side make one. */
function counting(inner: RunScript): Counted {
  let scripts = 0;
  let deepest = 0;
  return {
    async run(script, keys, args) {
      scripts++;
      const depth = deepest + 1;
      try {
        return await inner(script, keys, args);
      } finally {
        deepest = Math.max(deepest, depth);
      }
    },
    async count(work) {
      scripts = 0;
      deepest = 0;
      await work();
      return { scripts, roundTrips: deepest };
    },
  };
}

async function roundTrips(run: RunScript, cli: Cli): Promise<Row[]> {
  const counted = counting(run);
  const store = redisStore({ client: counted.run });
  const policy = { retryCooldowns: [0, 0, 0, 0] };
  /** The process that creates, and another one that never held the record. */
  const [own, other] = [benchVerifier(store, { policy }), benchVerifier(store, { policy })];
  const customer_uuid = customerOf(0);
  const paid = benchVerifier(store, { policy: highCeiling });
  let index = 100_000;
  const create = () => own.verifier.createAuthentication({ customer_uuid, phone_number: numberOf(index++) });

  /** One operation on an authentication made before it. */
  async function row(
    figure: string,
    most: number,
    operation: (id: string, code: string) => Promise<{ readonly status: string }>,
    status: string,
  ): Promise<Row> {
    const { authentication_uuid: id } = await create();
    const code = own.codes.get(id) ?? "";
    const served = await commands(cli);
    const { scripts, roundTrips } = await counted.count(async () => {
      const result = await operation(id, code);
      if (result.status !== status) throw new Error(`${figure}: expected ${status}, got ${result.status}`);
    });
    const seen = (await commands(cli)) - served;
    return {
      figure: `round trips: ${figure}`,
      measured: `${roundTrips} (${scripts} scripts sent, ${seen} counted by the server)`,
      target: `≤ ${most}`,
      reached: roundTrips <= most,
    };
  }

  const wrong = (code: string) => (code === "000000" ? "111111" : "000000");
  const check = (process: typeof own, authentication_uuid: string, check_code: string) =>
    process.verifier.check({ customer_uuid, authentication_uuid, check_code });
  // The server learns the scripts, and the process the ledger.
  await paid.verifier.createAuthentication({ customer_uuid, phone_number: numberOf(index++) });
  await row("", 9, (id, code) => check(other, id, code), "valid");
  return [
    await row("accepted create", 1, create, "pending"),
    await row(
      "accepted create under a spend ceiling",
      2,
      () => paid.verifier.createAuthentication({ customer_uuid, phone_number: numberOf(index++) }),
      "pending",
    ),
    await row("approved retry", 2, (authentication_uuid) => own.verifier.retry({ customer_uuid, authentication_uuid }), "approved"),
    await row("right code, another process", 2, (id, code) => check(other, id, code), "valid"),
    await row("wrong code, another process", 2, (id, code) => check(other, id, wrong(code)), "invalid"),
    await row("right code, the process that created", 1, (id, code) => check(own, id, code), "valid"),
    await row("wrong code, the process that created", 1, (id, code) => check(own, id, wrong(code)), "invalid"),
  ];
}

/** Scripts that the server has run. */
async function commands(cli: Cli): Promise<number> {
  const stats = await cli("INFO", "commandstats");
  return [...stats.matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+)/gm)].reduce((sum, [, calls]) => sum + Number(calls), 0);
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
  const far = Date.now() + 3_600_000;
  const plain = await writeOne();
  const perRecord = async (wanted: Wanted, wakes: boolean) => {
    const written = await writeOne(wanted);
    const { wakeAt, ...record } = written.record;
    return grownBy(store, cli, async (index) => {
      const next = recordOf({ ...written, record }, index);
      await store.compareAndSwap(wakes ? { ...next, wakeAt: far + index } : next, null);
    });
  };
  const pending = await perRecord({}, false);
  const waking = await perRecord({}, true);
  const full = await perRecord({ callback_url: "https://example.com/webhooks/verification", retry: true }, true);
  const windows = await grownBy(store, cli, (index) => store.reserve(claimsOf(plain, index)));
  return [
    atMost("memory: pending authentication, one code, no callback", pending, 300, " B"),
    { figure: "memory: its windows, every number another", measured: `${number(windows)} B` },
    { figure: "memory: a wake entry", measured: `${number(waking - pending)} B` },
    { figure: "memory: an authentication with callback, two codes and their events, and its wake entry", measured: `${number(full)} B` },
  ];
}

/** Bytes of Redis's memory for each of many calls. */
async function grownBy(store: Store, cli: Cli, write: (index: number) => Promise<unknown>): Promise<number> {
  await cli("FLUSHALL");
  // What the first use costs once.
  await store.put("first", "use", Date.now() + 1000);
  const before = await usedMemory(cli);
  for (let index = 0; index < samples; index += 500) {
    await Promise.all(Array.from({ length: 500 }, (_, at) => write(index + at)));
  }
  return Math.round(((await usedMemory(cli)) - before) / samples);
}

async function usedMemory(cli: Cli): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(await cli("INFO", "memory"))?.[1]);
}
