import { Cluster, Redis } from "ioredis";
import { MongoClient } from "mongodb";
import { mongoStore } from "../../adapters/store/mongo/index.js";
import { postgresStore } from "../../adapters/store/postgres/index.js";
import { redisStore } from "../../adapters/store/redis/index.js";
import { sqliteStore } from "../../adapters/store/sqlite/index.js";
import { createVerifier } from "../../src/create-verifier.js";
import type { CodeMessage, SmsSender } from "../../src/index.js";
import type { Store } from "../../src/ports/store.js";
import { router } from "../../src/routing/router.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";
import { noSpamRules } from "../../src/testing/verifier/no-limits.js";
import { poolOf } from "../support/postgres.js";

/** The location of a store that outlives its processes. */
export type Place =
  | { readonly kind: "redis" | "postgres" | "sqlite"; readonly url: string }
  | { readonly kind: "cluster"; readonly ports: readonly number[] }
  | { readonly kind: "mongo"; readonly url: string; readonly database: string };

/** Where the worker's process ends: fallback written, carrier has it, carrier has responded, response written. */
export type End = "written" | "sent" | "unsettled" | "settled";

export interface Setup {
  readonly place: Place;
  readonly customer: string;
  readonly secret: string;
  readonly callbackUrl: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /**
   * `create` sends a code to each number, runs for 10 s of its clock and waits to be killed.
   * `flush` sends what is due, and ends on the way.
   */
  readonly task: { readonly create: readonly string[]; readonly callbacks: boolean } | { readonly flush: End };
}

export type Told = { readonly sent: Pick<CodeMessage, "authentication_uuid" | "attempt" | "code" | "to">; readonly route: string } | { readonly lived: number };

/** The timings of every process. */
export const brief = {
  sendTimeout: 5,
  clockSkew: 0,
  storeTimeout: 30,
  conversion: "reported" as const,
  statistics: false as const,
  policy: { spam: noSpamRules },
};

/** WhatsApp first and SMS after 20 s of silence, both by `send`. */
export function silentFirst(send: (route: string, message: CodeMessage) => ReturnType<SmsSender["send"]>, clock: ReturnType<typeof fixedClock>): SmsSender {
  const route = (name: string, priority: number, more: Partial<SmsSender>) => ({
    name,
    priority,
    sender: { receiptProviders: ["mine"], send: (message: CodeMessage) => send(name, message), ...more },
  });
  return router({
    routes: [route("wa", 0, { channel: "whatsapp", confirms: true }), route("sms", 1, { channel: "sms" })],
    fallback: { after: 20, on: ["silent"], worker: "elsewhere" },
    random: () => 0.5,
    clock,
  });
}

export const receipts = { baseUrl: "https://otp.example", sources: [{ provider: "mine", read: async () => ({ receipts: [], vouched: false }) }] };

export async function openStore(place: Place): Promise<{ readonly store: Store; close(): unknown }> {
  switch (place.kind) {
    case "redis": {
      const client = new Redis(place.url).on("error", () => {});
      return { store: redisStore({ client }), close: () => client.disconnect() };
    }
    case "cluster": {
      const client = new Cluster(place.ports.map((port) => ({ host: "127.0.0.1", port }))).on("error", () => {});
      return { store: redisStore({ client }), close: () => client.disconnect() };
    }
    case "mongo": {
      const client = await new MongoClient(place.url, { directConnection: true }).connect();
      return { store: mongoStore({ db: client.db(place.database) }), close: () => client.close() };
    }
    case "postgres": {
      const pool = poolOf(place.url, { max: 4 });
      return { store: postgresStore({ pool }), close: () => pool.end() };
    }
    case "sqlite": {
      const store = sqliteStore({ file: place.url, busyTimeout: 30_000 });
      return { store, close: () => store.close?.() };
    }
  }
}

const tell = (told: Told) => new Promise<void>((done) => void process.send?.(told, () => done()));
const end = (): never => {
  process.kill(process.pid, "SIGKILL");
  throw new Error("gone");
};

async function run({ place, customer, secret, callbackUrl, now, task }: Setup): Promise<void> {
  const { store: inner } = await openStore(place);
  const at = "flush" in task ? task.flush : undefined;
  let handed = false;
  const store: Store = {
    ...inner,
    find: (...args) => inner.find(...args),
    members: (...args) => inner.members(...args),
    tally: (...args) => inner.tally(...args),
    lease: (...args) => inner.lease(...args),
    get: (...args) => inner.get(...args),
    put: (...args) => inner.put(...args),
    delete: (...args) => inner.delete(...args),
    async commit(change) {
      if (handed && at === "unsettled") end();
      const result = await inner.commit(change);
      if (at === "written" || (handed && at === "settled")) end();
      return result;
    },
  };
  const clock = fixedClock(now);
  const verifier = createVerifier({
    store,
    secret,
    countries: "all",
    customers: [{ customer_uuid: customer, keys: ["k".repeat(40)] }],
    ...brief,
    clock,
    receipts,
    callbacks: { worker: at === undefined, sender: { post: async () => ({ status: 503 }) } },
    logger: { info() {}, warn() {}, error() {} },
    sender: silentFirst(async (route, { authentication_uuid, attempt, code, to }) => {
      await tell({ sent: { authentication_uuid, attempt, code, to }, route });
      handed = true;
      if (at === "sent") end();
      return { outcome: "accepted" };
    }, clock),
  });
  if ("create" in task) {
    const more = task.callbacks ? { callback_url: callbackUrl } : {};
    for (const phone_number of task.create) await verifier.createAuthentication({ customer_uuid: customer, phone_number, ...more });
    for (let passed = 0; passed < 10_000; passed += 250) {
      clock.advance(250);
      await new Promise((done) => setImmediate(done));
    }
    await tell({ lived: clock.now() - now });
    process.on("disconnect", () => process.exit(0));
  } else {
    // The process that died may have held the record for a callback, for up to a minute.
    for (let i = 0; i < 13; i++, clock.advance(5_000)) await verifier.flush();
    process.exit(0);
  }
}

if (process.argv[2]?.startsWith('{"place"')) await run(JSON.parse(process.argv[2]) as Setup);
