import { appendFileSync } from "node:fs";
import { Cluster, Redis } from "ioredis";
import { MongoClient } from "mongodb";
import { Pool } from "pg";
import { mongoStore } from "../../adapters/store/mongo/index.js";
import { postgresStore } from "../../adapters/store/postgres/index.js";
import { redisStore } from "../../adapters/store/redis/index.js";
import { sqliteStore } from "../../adapters/store/sqlite/index.js";
import { createVerifier, type PolicyOverride, VerifierError } from "../../src/index.js";
import type { Store } from "../../src/ports/store.js";
import { noSpamRules } from "../../src/testing/verifier/no-limits.js";
import { stream } from "../../tools/simulate/random.js";
import { type Answer, type Ask, ceiling, dearest, type Message } from "./soak-model.js";

/** What a process is started with. */
export interface Setup {
  readonly store: "redis" | "cluster" | "mongo" | "sqlite" | "postgres";
  readonly url: string;
  /** The ports of a cluster's nodes. */
  readonly ports: readonly number[];
  /** The file that messages are appended to, one JSON text per line. */
  readonly log: string;
  readonly name: number;
  readonly seed: number;
  /** How far its clock is ahead of the true time, in milliseconds. */
  readonly skew: number;
  readonly customers: Readonly<Record<Ask["customer"], string>>;
}

/** What its parent sends: how far the true time is ahead of the machine's, in milliseconds, or a request. */
export type Told = { readonly ahead: number } | { readonly turn: number; readonly ask: Ask };

export interface Reply {
  readonly turn: number;
  readonly answer: Answer;
}

/** The client settings of docs/stores.md. */
const patience = { enableOfflineQueue: false, maxRetriesPerRequest: 1, commandTimeout: 1_000, connectTimeout: 1_000 };

function open({ store, url, ports }: Setup): Store {
  if (store === "sqlite") return sqliteStore({ file: url });
  if (store === "postgres") {
    const pool = new Pool({ connectionString: url, connectionTimeoutMillis: 1_500, query_timeout: 1_500, statement_timeout: 1_500 });
    pool.on("error", () => {});
    return postgresStore({ pool });
  }
  if (store === "mongo") {
    // It connects at its first call, because the server may be paused right now.
    const client = new MongoClient(url, { serverSelectionTimeoutMS: 1_500, connectTimeoutMS: 1_500, socketTimeoutMS: 1_500 });
    return mongoStore({ db: client.db() });
  }
  const client =
    store === "redis"
      ? new Redis(url, { ...patience, lazyConnect: true, retryStrategy: (tries) => Math.min(tries * 50, 500) })
      : new Cluster(
          ports.map((port) => ({ host: "127.0.0.1", port })),
          { lazyConnect: true, enableOfflineQueue: false, clusterRetryStrategy: () => 100, redisOptions: patience },
        );
  client.on("error", () => {});
  // Not awaited: if the server is paused right now, the client keeps trying.
  client.connect().catch(() => {});
  return redisStore({ client });
}

async function serve(setup: Setup): Promise<void> {
  const { customers, name, skew } = setup;
  const random = stream(setup.seed, name);
  let ahead = 0;
  const policies: Readonly<Record<Ask["customer"], PolicyOverride>> = {
    guarded: {},
    open: { spam: noSpamRules, limits: { spend: [{ amount: ceiling, per: "day" }] } },
  };
  const customerOf = (uuid: string) => (uuid === customers.open ? "open" : "guarded");
  const verifier = createVerifier({
    store: open(setup),
    secret: "qT7vX2mR9kLw4ZbN8cJfH5sYdG3pAeU6",
    countries: ["FR"],
    customers: (["guarded", "open"] as const).map((one) => ({ customer_uuid: customers[one], keys: [`pp_${customers[one]}`], policy: policies[one] })),
    callbacks: { worker: false },
    logger: { info() {}, warn() {}, error() {} },
    clock: {
      now: () => Date.now() + ahead + skew,
      elapsed: () => performance.now(),
      after(ms, run, kind) {
        const timer = setTimeout(run, ms);
        if (kind === "background") timer.unref();
        return () => clearTimeout(timer);
      },
    },
    sender: {
      plan: () => ({ route: "only", price: dearest }),
      async send({ authentication_uuid: id, customer_uuid, to, code, attempt }) {
        const fate = random();
        const cost = fate < 0.03 ? dearest : 1 + Math.floor(random() * dearest);
        const message: Message = { customer: customerOf(customer_uuid), id, to, code, attempt, cost, process: name, at: Date.now() + ahead };
        // A line break first: a process that was killed may have left half a line.
        appendFileSync(setup.log, `\n${JSON.stringify(message)}\n`);
        if (fate > 0.7) await new Promise((done) => setTimeout(done, fate > 0.93 ? 1_000 * random() : 50 * random()));
        // The carrier accepted it, and the connection broke.
        if (fate < 0.03) throw new Error("connection reset");
        return { outcome: "accepted", price: cost };
      },
    },
  });

  async function outcome(ask: Ask): Promise<Pick<Answer, "result" | "id">> {
    const customer_uuid = customers[ask.customer];
    const named = { customer_uuid, phone_number: ask.number };
    const of = { customer_uuid, authentication_uuid: ask.id ?? "" };
    const call = ask.key === undefined ? {} : { idempotencyKey: ask.key };
    switch (ask.operation) {
      case "create": {
        const { status, authentication_uuid: id } = await verifier.createAuthentication({ ...named, device_id: ask.device }, call);
        return { result: status, id };
      }
      case "retry":
        return { result: (await verifier.retry(of)).status };
      case "check":
        return { result: (await verifier.check({ ...of, check_code: ask.code ?? "" }, call)).status };
      case "unlock":
        return { result: (await verifier.unlock(named)).unlocked ? "unlocked" : "not again" };
      case "erase":
        await verifier.erase(named);
        return { result: "erased" };
      case "history":
        return { result: String((await verifier.history(named)).length) };
    }
  }

  process.on("message", async (told: Told) => {
    if ("ahead" in told) {
      ahead = told.ahead;
      return;
    }
    const started = performance.now();
    const answer = await outcome(told.ask).then(
      (one) => ({ status: 200, ...one }),
      (error: unknown) => (error instanceof VerifierError ? { status: error.status, result: error.code } : { status: 500, result: String(error) }),
    );
    process.send?.({ turn: told.turn, answer: { ...answer, took: performance.now() - started } } satisfies Reply);
  });
  process.on("disconnect", () => process.exit(0));
  process.send?.("ready");
}

if (process.argv[2] !== undefined && process.send !== undefined) await serve(JSON.parse(process.argv[2]) as Setup);
