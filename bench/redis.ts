import { AsyncLocalStorage } from "node:async_hooks";
import type { Change, Store } from "phoneproof";
import { fromNodeRedis, type RunScript, redisStore } from "phoneproof/redis";
import { createClient } from "redis";
import { redisIsInstalled, startRedis } from "../test/support/redis.js";
import { changesOf, farLimits } from "./memory.js";
import { atMost, type Row } from "./report.js";
import { benchVerifier, customerOf, highCeiling, numberOf } from "./service.js";

/** What is counted in Redis and on the way there. */
export async function countedInRedis(): Promise<Row[]> {
  if (!redisIsInstalled("the bench's part counted"))
    return [{ figure: "redis-server is missing", measured: "SKIPPED; get it with: apt-get install redis-server" }];
  const server = await startRedis();
  const client = await createClient({ url: server.url }).connect();
  try {
    const run = fromNodeRedis(client);
    const rows = [...(await roundTrips(run)), ...(await commands(run, server.cli))];
    return [...rows, ...(await memory(run, server.cli))];
  } finally {
    client.destroy();
    await server.stop();
  }
}

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

/** Commands inside Redis for each create; the script itself among them. The mean of many, of new numbers and devices. Spam rules stand apart: what they count and ask is one sum each. */
async function commands(run: RunScript, cli: Cli): Promise<Row[]> {
  const store = redisStore({ client: run });
  const rows: Row[] = [];
  const callsOf = async (changeAt: (index: number) => Change): Promise<number> => {
    await store.commit(changeAt(0));
    await cli("CONFIG", "RESETSTAT");
    for (let index = 1; index <= 100; index++) await store.commit(changeAt(index));
    const stats = await cli("INFO", "commandstats");
    return [...stats.matchAll(/^cmdstat_(?!config|info)[^:]+:calls=(\d+)/gm)].reduce((sum, [, count]) => sum + Number(count), 0) / 100;
  };
  for (const [shape, most] of [
    ["number only", 10],
    ["with ip and device", 22],
  ] as const) {
    const [bare, ruled] = [await changesOf(shape), await changesOf(shape, farLimits)];
    const alone = await callsOf((index) => ({ ...bare(index), asks: [] }));
    const all = await callsOf(ruled);
    const sumsOf = ({ claims = [], asks = [] }: Change) => claims.filter((claim) => "sum" in claim).length + asks.length;
    const cells = sumsOf(ruled(0)) - sumsOf({ ...bare(0), asks: [] });
    rows.push(atMost(`commands inside Redis: create, ${shape}, spam cells apart`, alone, most, ""));
    rows.push(atMost(`commands inside Redis: each of its ${cells} spam cells`, (all - alone) / cells, 3, ""));
  }
  return rows;
}

const samples = 100_000;

async function memory(run: RunScript, cli: Cli): Promise<Row[]> {
  const store = redisStore({ client: run });
  const rows: Row[] = [];
  for (const [shape, most] of [
    ["number only", 550],
    ["with ip and device", 1_250],
  ] as const) {
    rows.push(
      atMost(
        `bytes of a pending authentication with its windows and sums in Redis: ${shape}`,
        await grownBy(store, cli, await changesOf(shape, farLimits)),
        most,
        "",
      ),
    );
  }
  return rows;
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

/** What the connections' buffers take is not the store's. */
async function usedMemory(cli: Cli): Promise<number> {
  const info = await cli("INFO", "memory");
  const [all, clients] = ["used_memory", "mem_clients_normal"].map((name) => Number(new RegExp(`^${name}:(\\d+)`, "m").exec(info)?.[1])) as [number, number];
  return all - clients;
}
