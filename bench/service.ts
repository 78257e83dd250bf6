import { MongoClient } from "mongodb";
import { Pool } from "pg";
import { type Clock, createVerifier, type Store, type Verifier, type VerifierOptions } from "phoneproof";
import { memoryStore } from "phoneproof/memory";
import { mongoStore } from "phoneproof/mongo";
import { postgresStore } from "phoneproof/postgres";
import { redisStore } from "phoneproof/redis";
import { sqliteStore } from "phoneproof/sqlite";
import { createClient } from "redis";
import { countryCodes, type Visitor, visitors, wrongCode } from "./traffic.js";

export const customer_uuid = "5e1fe9f6-3a0c-4d27-9a3e-000000000001";
export const apiKey = `pp_bench-${"0".repeat(40)}`;

/** A verifier with only the required options. Its sender takes no time; `deliver` receives each code. */
export function benchVerifier(store: Store, deliver: (number: string, code: string) => void, options: Partial<VerifierOptions> = {}): Verifier {
  return createVerifier({
    store,
    sender: {
      async send({ to, code }) {
        deliver(to, code);
        return { outcome: "accepted" };
      },
      ...(options.policy?.limits?.spend !== undefined && { plan: () => ({ route: "only", price: 0.05 }) }),
    },
    secret: "a secret of the bench, long enough to be one",
    countries: countryCodes,
    customers: [{ customer_uuid, keys: [apiKey] }],
    ...options,
  });
}

/** Connections to PostgreSQL for each contender. */
export const postgresConnections = 16;

/** A store, and a function to close its client. */
export interface Opened {
  readonly store: Store;
  close(): Promise<void>;
}

/** Opens a store by its URL: `memory:`, `sqlite:` and a path, `postgres://…`, `redis://…` or `mongodb://…`. */
export async function openStore(url: string): Promise<Opened> {
  if (url === "memory:") return { store: memoryStore(), close: async () => {} };
  if (url.startsWith("sqlite:")) {
    const store = sqliteStore({ file: url.slice("sqlite:".length) });
    return { store, close: async () => store.close?.() };
  }
  if (url.startsWith("redis:")) {
    const client = await createClient({ url }).connect();
    return { store: redisStore({ client }), close: async () => client.destroy() };
  }
  if (url.startsWith("postgres:")) {
    const pool = new Pool({ connectionString: url, max: postgresConnections });
    const store = postgresStore({ pool });
    await store.ensureSchema();
    return { store, close: () => pool.end() };
  }
  const client = await MongoClient.connect(url);
  const store = mongoStore({ db: client.db() });
  await store.ensureIndexes();
  return { store, close: () => client.close() };
}

/** A verifier for direct calls, and the codes that it sent. */
export interface Direct {
  readonly verifier: Verifier;
  /** By number. */
  readonly codes: Map<string, string>;
}

/** Plays one visitor from the first form to the last check. Fails if an honest one is rejected. */
export async function visit({ verifier, codes }: Direct, { fields, typing }: Visitor): Promise<void> {
  const { authentication_uuid, status } = await verifier.createAuthentication({ customer_uuid, ...fields });
  expect(status, "pending");
  const code = codes.get(fields.phone_number) ?? "";
  codes.delete(fields.phone_number);
  const check = async (check_code: string) => (await verifier.check({ customer_uuid, authentication_uuid, check_code })).status;
  if (typing === "wrong first") expect(await check(wrongCode(code)), "invalid");
  if (typing !== "nothing") expect(await check(code), "valid");
}

/** Rejected and failed requests must not be measured. */
export function expect(status: string, expected: string): void {
  if (status !== expected) throw new Error(`a visitor who should get ${expected} got ${status}`);
}

/** Past visits, all made through the verifier. */
export interface Past {
  readonly visits: number;
  readonly days: number;
}

/** Enough visits to verify each country within the last two hours. Every measurement starts with these or more. */
export const fewVisits: Past = { visits: 1_500, days: 1 / 12 };
export const eightDays: Past = { visits: 20_000, days: 8 };

/** A clock whose time is set by hand, with Node's timers. */
export function movedClock(start: number): Clock & { time: number } {
  const clock = {
    time: start,
    now: () => clock.time,
    after(ms: number, run: () => void, kind?: "background") {
      const timer = setTimeout(run, ms);
      if (kind === "background") timer.unref();
      return () => clearTimeout(timer);
    },
  };
  return clock;
}

/** The time of the counted part: in the middle of the steps into which hours and days are divided. */
export const countedAt = Date.UTC(2026, 2, 10, 15, 30);

/**
 * Writes visits up to `end`, the present, to the store at `url`, with a clock that starts in the past. The store still
 * has entries that would have expired by now, as it counts expiry from today.
 */
export async function writePast(url: string, { visits, days }: Past, end = Date.now()): Promise<void> {
  const { store, close } = await openStore(url);
  const start = end - days * 86_400_000;
  const clock = movedClock(start);
  const codes = new Map<string, string>();
  const verifier = benchVerifier(store, (number, code) => codes.set(number, code), { clock });
  const next = visitors(9);
  const together = 8;
  for (let done = 0; done < visits; done += together) {
    clock.time = start + (end - start) * (done / visits);
    await Promise.all(Array.from({ length: together }, () => visit({ verifier, codes }, next())));
  }
  await verifier.close();
  await close();
}
