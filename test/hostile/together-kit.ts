import { randomUUID } from "node:crypto";
import { Agent, request } from "node:http";
import { Redis as Upstash } from "@upstash/redis";
import { Redis } from "ioredis";
import { expect } from "vitest";
import { createVerifier, type SmsMessage, type Verifier, type VerifierOptions } from "../../src/index.js";
import type { Store } from "../../src/ports/store.js";
import { type Host, mountings } from "../http/hosts.js";
import type { RedisServer } from "../support/redis.js";
import { type Connected, clients } from "../support/redis-clients.js";
import { startUpstash } from "../support/upstash.js";
import { secret } from "../support/verifier.js";
import { keyOf, noSpamRules, numberAt, tallied } from "./kit.js";

export const count = <T>(many: number, make: (i: number) => T): T[] => Array.from({ length: many }, (_, i) => make(i));
const shuffled = <T>(list: readonly T[]): T[] =>
  list
    .map((one) => [Math.random(), one] as const)
    .sort(([a], [b]) => a - b)
    .map(([, one]) => one);

let numbers = 0;
/** A number that no test has used. */
export const fresh = (): string => numberAt(numbers++);

export interface Answer {
  readonly status: number;
  readonly json: Record<string, unknown>;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly took: number;
}

/** A service of several customers behind a real HTTP server, and its clients. */
export interface Shop {
  readonly verifier: Verifier;
  readonly customers: readonly string[];
  readonly sent: SmsMessage[];
  readonly host: Host;
  ask(customer: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  create(customer: string, number: string, key?: string): Promise<Answer>;
  check(customer: string, id: string, code: string, key?: string): Promise<Answer>;
  close(): Promise<void>;
}

export const makeVerifier = (store: Store, customers: readonly string[], sent: SmsMessage[], options: Partial<VerifierOptions> = {}) =>
  createVerifier({
    store,
    secret,
    countries: ["FR"],
    customers: customers.map((customer_uuid) => ({ customer_uuid, keys: [keyOf(customer_uuid)] })),
    sender: {
      async send(message) {
        sent.push(message);
        return { outcome: "accepted" };
      },
    },
    callbacks: { worker: false },
    logger: { info() {}, warn() {}, error() {} },
    storeTimeout: 30,
    ...options,
    policy: { spam: noSpamRules, ...options.policy },
  });

export async function shop(
  store: Store,
  { mounted = "node:http", like, ...options }: Partial<VerifierOptions> & { mounted?: string; like?: Pick<Shop, "customers" | "sent"> } = {},
): Promise<Shop> {
  const customers = like?.customers ?? count(5, () => randomUUID());
  const sent = like?.sent ?? [];
  const verifier = makeVerifier(store, customers, sent, options);
  const host = await (mountings.find(({ name }) => name === mounted) as (typeof mountings)[number]).start(verifier);
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  const self: Shop = {
    verifier,
    customers,
    sent,
    host,
    ask: (customer, path, body, headers = {}) =>
      new Promise((resolve, reject) => {
        const began = performance.now();
        const all = { "x-api-key": keyOf(customer), "content-type": "application/json", ...headers };
        const outgoing = request({ port: host.port, host: "127.0.0.1", agent, method: body === undefined ? "GET" : "POST", path, headers: all }, (response) => {
          let text = "";
          response.setEncoding("utf8").on("data", (chunk) => {
            text += chunk;
          });
          response.on("error", reject).on("end", () => {
            resolve({ status: response.statusCode ?? 0, json: JSON.parse(text), headers: response.headers, took: performance.now() - began });
          });
        });
        outgoing.on("error", reject).end(body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body));
      }),
    create: (customer_uuid, phone_number, key) =>
      self.ask(customer_uuid, "/v1/authentication", { customer_uuid, phone_number }, key === undefined ? {} : { "idempotency-key": key }),
    check: (customer_uuid, authentication_uuid, check_code, key) =>
      self.ask(customer_uuid, "/v1/check", { customer_uuid, authentication_uuid, check_code }, key === undefined ? {} : { "idempotency-key": key }),
    async close() {
      agent.destroy();
      await host.close();
      await verifier.close();
    },
  };
  return self;
}

export const idOf = ({ json }: Answer): string => json["authentication_uuid"] as string;
export const codeOf = ({ sent }: Pick<Shop, "sent">, id: string): string => sent.filter((one) => one.authentication_uuid === id).at(-1)?.code ?? "none";
export const wrongFor = (code: string): string => (code === "000000" ? "111111" : "000000");
export const customerAt = ({ customers }: Pick<Shop, "customers">, i: number): string => customers[i % customers.length] as string;
export const statuses = (answers: readonly Answer[]) => tallied(answers.map(({ status, json }) => String(status === 200 ? json["status"] : status)));

/** One end user, all the way; every answer must be their own. */
async function visit(at: Shop, i: number): Promise<string> {
  const customer = customerAt(at, i);
  const number = fresh();
  const created = await at.create(customer, number);
  const id = idOf(created);
  expect(created).toMatchObject({ status: 200, json: { status: "pending" }, headers: { "x-phoneproof-phone-number": number } });
  const mine = at.sent.filter(({ to }) => to === number);
  expect(mine.map(({ authentication_uuid, customer_uuid }) => [authentication_uuid, customer_uuid])).toEqual([[id, customer]]);
  const code = codeOf(at, id);
  const looked = () => at.ask(customer, `/v1/lookup/${number}`, undefined, { "customer-uuid": customer });
  const retried = () => at.ask(customer, "/v1/retry", { customer_uuid: customer, authentication_uuid: id });
  if (i % 3 === 0) expect(await looked()).toMatchObject({ status: 200, json: { phone_number: number } });
  if (i % 2 === 0) expect(await retried()).toMatchObject({ status: 200, json: { authentication_uuid: id, status: "denied", remaining_retry: 4 } });
  const guesses = i % 4;
  const wrong = await Promise.all(count(guesses, () => at.check(customer, id, wrongFor(code))));
  for (const one of wrong) expect(one).toMatchObject({ status: 200, json: { authentication_uuid: id, status: "invalid" } });
  expect(wrong.map(({ headers }) => Number(headers["x-phoneproof-remaining-checks"])).sort()).toEqual(count(guesses, (n) => 5 - guesses + n));
  const [valid, , strange] = await Promise.all([
    at.check(customer, id, code),
    looked(),
    // The same id under another customer is nobody's.
    at.check(customerAt(at, i + 1), id, code),
  ]);
  expect(valid).toMatchObject({ status: 200, json: { authentication_uuid: id, status: "valid" }, headers: { "x-phoneproof-phone-number": number } });
  expect(strange).toMatchObject({ status: 400, json: { code: "invalid_auth_uuid" } });
  expect(await at.check(customer, id, code)).toMatchObject({ json: { authentication_uuid: id, status: "already_validated" } });
  return id;
}

/** Visits of many at once, one at a time, and many again; all ids differ. */
export async function waves(at: Shop, sizes: readonly number[]): Promise<void> {
  const ids: string[] = [];
  for (const size of sizes) ids.push(...(await Promise.all(count(size, (i) => visit(at, i)))));
  expect(new Set(ids).size).toBe(ids.length);
}

/** What stores are given and must give back to the letter. */
// biome-ignore format: a table
const texts = [
  "", " ", "~", "~~1~", "0", "-1", "007", "1e999", "9007199254740993", "true", "null", "false", "{}", "[1,2]", '"quoted"', "'", "\\", "\\u0041", "a\nb\r\n", "\0nul\0",
  "émoji 👩‍👩‍👧", "\u2028\u2029", "٣", "-ERR no", "+OK", "$-1\r\n", "KEYS[1]", "]]", "%s %d", "x".repeat(65_536), "é".repeat(32_768), "undefined",
];

export type Call = readonly [run: () => Promise<unknown>, expected: unknown];

/** Calls of every method, all in one turn and in any order; each has its own right answer. */
export async function turn(calls: readonly Call[]): Promise<void> {
  const settled = await Promise.allSettled(shuffled(calls).map(async ([run, expected]) => ({ got: await run(), expected })));
  for (const one of settled) {
    if (one.status === "rejected") throw one.reason;
    const { got, expected } = one.value;
    if (typeof expected === "object" && !Array.isArray(expected)) expect(got).toMatchObject(expected as object);
    else expect(got).toEqual(expected);
  }
}

export function mixed(store: Store, tag: string) {
  const now = Date.now();
  const life = { now, keepUntil: now + 600_000 };
  const customer = randomUUID();
  const items = [...texts, ...texts].map((text, i) => {
    const name = text.length > 100 ? `${i}` : `${i}${text}`;
    const window = `${customer}:w:${name}`;
    const member = text.length > 100 ? "member" : text || "m";
    // Up to what a number holds exactly.
    const weight = i * 140_000_000_000_007;
    const claims = [
      { window, member, since: now - 1000, limit: 1, ...life },
      { sum: `${customer}:s:${name}`, weight, since: now - 120_000, ...life },
    ];
    const record = { customer, id: randomUUID(), tokens: [`${tag}${i}`], data: text, ...life };
    return {
      i,
      text,
      name,
      window,
      member,
      weight,
      by: i % 2 ? weight : -weight + 0,
      claims,
      record,
      key: `${tag}:v:${name}`,
      counter: `${tag}:c:${name}`,
      sum: `${customer}:s:${name}`,
    };
  });
  const asStored = ({ record: { now: _, ...record } }: (typeof items)[number]) => record;
  const writes = items.flatMap(({ i, text, weight, by, claims, record, key, counter, sum, window }): Call[] => [
    [() => store.put(key, text, life), undefined],
    [() => store.commit({ claims, record, asks: [{ sum, since: now - 120_000 }] }), { done: true, counts: [1, weight], asked: [weight] }],
    [() => store.tally([{ counter, by, ...life }], [counter, `${counter} none`]), [by, 0]],
    [() => store.get(`${key} none`), undefined],
    [() => store.find(customer, randomUUID()), undefined],
    [() => store.members(`${window} none`, 5), []],
    [() => store.commit({ record: { ...record, id: randomUUID(), wakeAt: now }, expected: "other" }), { done: false }],
    [() => store.forget({ values: [`${key} none`], records: [{ customer, id: randomUUID() }] }), undefined],
    ...(i % 20 === 0 ? ([[() => store.lease(1, 10, now), []]] as Call[]) : []),
  ]);
  const reads = items.flatMap((item): Call[] => [
    [() => store.get(item.key), item.text],
    [() => store.find(customer, item.record.id), asStored(item)],
    [() => store.members(item.window, 9), [item.member]],
    [() => store.tally([], [item.counter, `${item.counter} none`, item.counter]), [item.by, 0, item.by]],
    // It landed before; it is not expected; there is no room.
    [() => store.commit({ claims: item.claims, record: item.record }), { done: true, counts: [1, item.weight] }],
    [() => store.commit({ record: { ...item.record, tokens: ["other"] } }), { done: false, current: asStored(item) }],
    [() => store.commit({ claims: [{ ...(item.claims[0] as object), member: `${item.member} 2` }] as never }), { done: false, refusedBy: 0, count: 1 }],
  ]);
  const forgets = items.flatMap((item): Call[] =>
    item.i % 2
      ? [[() => store.forget({ values: [item.key], windows: [item.window], sums: [item.sum], records: [item.record] }), undefined]]
      : reads.slice(item.i * 7, item.i * 7 + 3),
  );
  const left = items.flatMap((item): Call[] => {
    const gone = item.i % 2 === 1;
    return [
      [() => store.get(item.key), gone ? undefined : item.text],
      [() => store.find(customer, item.record.id), gone ? undefined : asStored(item)],
      [() => store.members(item.window, 9), gone ? [] : [item.member]],
      [() => store.tally([], [item.counter]), [item.by]],
    ];
  });
  return [writes, reads, forgets, left] as const;
}

/** Clients as their users make them. */
export const asUsed: Record<string, (server: RedisServer) => Promise<Connected>> = {
  ...clients,
  "ioredis 6 with keyPrefix and enableAutoPipelining": async ({ port }) => {
    const client = new Redis({ port, host: "127.0.0.1", keyPrefix: "app:", enableAutoPipelining: true });
    return { client, close: () => client.disconnect() };
  },
  "@upstash/redis 1 with automaticDeserialization off": async ({ url }) => {
    const server = await startUpstash(url);
    return { client: new Upstash({ url: server.url, token: server.token, automaticDeserialization: false }), close: () => server.close() };
  },
  "@upstash/redis 1 with enableAutoPipelining": async ({ url }) => {
    const server = await startUpstash(url);
    return { client: new Upstash({ url: server.url, token: server.token, enableAutoPipelining: true }), close: () => server.close() };
  },
};
