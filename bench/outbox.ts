/** Delivery of callbacks to hostile and normal receivers, over sockets: `npx tsx bench/outbox.ts`. */
import { randomUUID } from "node:crypto";
import { createSocket } from "node:dgram";
import { promises as dns } from "node:dns";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { memoryStore } from "../adapters/store/memory/index.js";
import { guardedSender } from "../src/callbacks/guarded-sender.js";
import { nameResolver } from "../src/callbacks/names.js";
import { createVerifier, type Store, type VerifierOptions } from "../src/index.js";
import { unlimited } from "../test/callbacks/unlimited.js";
import { atMost, machine, print, type Row } from "./report.js";

interface Hook {
  readonly origin: string;
  /** When each callback arrived, by `performance.now`. */
  readonly at: number[];
  connections: number;
}

const never = () => undefined;
const after = (ms: number) => (response: ServerResponse) => void setTimeout(() => response.writeHead(204).end(), ms);

async function hook(answer: (response: ServerResponse) => void): Promise<Hook> {
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      one.at.push(performance.now());
      answer(response);
    });
  });
  server.on("connection", () => one.connections++);
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  const one: Hook = { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, at: [], connections: 0 };
  return one;
}

/** A verifier with two customers. */
function verifier(hooks: readonly Hook[], options: Partial<VerifierOptions>, callbacks: VerifierOptions["callbacks"] = {}) {
  const made = createVerifier({
    store: memoryStore({ name: randomUUID() }),
    sender: { send: async () => ({ outcome: "accepted" }) },
    secret: "s".repeat(40),
    countries: "all",
    customers: customers.map((customer_uuid) => ({ customer_uuid, keys: [customer_uuid.repeat(2)] })),
    policy: unlimited,
    logger: { info: never, warn: never, error: never },
    ...options,
    callbacks: { allowOrigins: hooks.map(({ origin }) => origin), pollInterval: 0.2, ...callbacks },
  });
  let numbers = 0;
  const create = (customer: string, callback_url: string) =>
    made.createAuthentication({ customer_uuid: customer, phone_number: `+336${String(12_000_000 + numbers++)}`, callback_url });
  return { ...made, create };
}

const customers = [randomUUID(), randomUUID()] as const;
const [greedy, modest] = customers;

const times = (count: number) => Array.from({ length: count }, (_, index) => index);

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((next) => setTimeout(next, 5));
}

/** Milliseconds until all callbacks that `make` causes have arrived at `one`. */
async function lateness(one: Hook, count: number, make: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await make();
  await until(() => one.at.length >= count);
  return (one.at.at(count - 1) as number) - started;
}

async function fortyHosts(): Promise<Row[]> {
  const dead = await Promise.all(times(40).map(() => hook(never)));
  const well = await hook(after(0));
  const store = memoryStore({ name: randomUUID() });
  const api = verifier([...dead, well], { store }, { worker: false });
  await Promise.all(times(1_500).map((index) => api.create(greedy, `${dead[index % 40]?.origin}/`)));
  await Promise.all(times(20).map(() => api.create(modest, `${well.origin}/`)));
  const worker = verifier([...dead, well], { store });
  const due = await lateness(well, 20, async () => undefined);
  const fresh = await lateness(well, 21, () => worker.create(modest, `${well.origin}/`));
  const busy = dead.reduce((sum, { at }) => sum + at.length, 0);
  return [
    atMost("D3a: 20 events of another customer, behind 1,500 on 40 dead hosts", due, 1_000, " ms", ` (${busy} of 128 slots hang)`),
    atMost("D3a: one more of it, created then", fresh, 100, " ms"),
  ];
}

async function deadReceiver(): Promise<Row[]> {
  const dead = await hook(never);
  const well = await hook(after(0));
  const store = memoryStore({ name: randomUUID() });
  const api = verifier([dead, well], { store }, { worker: false });
  await Promise.all(times(2_500).map(() => api.create(greedy, `${dead.origin}/`)));
  await Promise.all(times(50).map(() => api.create(greedy, `${well.origin}/`)));
  verifier([dead, well], { store });
  const due = await lateness(well, 50, async () => undefined);
  await until(() => dead.at.length >= 16);
  return [atMost("D3b: 50 events, behind 2,500 of the same customer for one dead receiver", due, 1_000, " ms", ` (${dead.at.length} of 128 slots hang)`)];
}

async function twentyWorkers(): Promise<Row[]> {
  const count = 1_000;
  const well = await hook(after(5));
  const calls = { commit: 0, lease: 0 };
  const inner = memoryStore({ name: randomUUID() });
  const counted = <K extends keyof typeof calls>(name: K) =>
    ((...input: Parameters<Store[K]>) => {
      calls[name]++;
      return (inner[name] as (...given: Parameters<Store[K]>) => ReturnType<Store[K]>)(...input);
    }) as Store[K];
  const store: Store = { ...bound(inner), commit: counted("commit"), lease: counted("lease") };
  const api = verifier([well], { store }, { worker: false });
  await Promise.all(times(count).map(() => api.create(greedy, `${well.origin}/`)));
  calls.commit = 0;
  for (const _ of times(20)) verifier([well], { store });
  const took = await lateness(well, count, async () => undefined);
  await new Promise((next) => setTimeout(next, 500));
  return [
    atMost(
      "D3d: commits per event, 20 workers",
      calls.commit / count,
      1.05,
      "",
      ` (${well.at.length} deliveries of ${count} events, ${Math.round(took)} ms, ${calls.lease} leases)`,
    ),
  ];
}

/** A store's methods, bound so that they can be spread. */
function bound(store: Store): Store {
  const { find, commit, members, tally, lease, get, put, delete: forget } = store;
  const to = <F extends (...input: never[]) => unknown>(method: F) => method.bind(store) as F;
  return { find: to(find), commit: to(commit), members: to(members), tally: to(tally), lease: to(lease), get: to(get), put: to(put), delete: to(forget) };
}

async function oneReceiver(): Promise<Row[]> {
  const well = await hook(after(100));
  const api = verifier([well], {});
  const took = await lateness(well, 400, () => Promise.all(times(400).map(() => api.create(greedy, `${well.origin}/`))));
  return [
    atMost("400 creates, one receiver with 100 ms latency, 16 at a time", took, (400 * 100) / 16 + 1_000, " ms"),
    atMost("connections for 400 callbacks", well.connections, 16, ""),
  ];
}

async function hangingNames(count: number): Promise<Row[]> {
  const well = await hook(after(0));
  const names = createSocket("udp4");
  let asked = 0;
  names.on("message", () => asked++);
  await new Promise<void>((ready) => names.bind(0, "127.0.0.1", ready));
  const sender = guardedSender({ resolve: nameResolver({ servers: [`127.0.0.1:${names.address().port}`] }) });
  const api = verifier([well], {}, { sender });
  await Promise.all(times(count).map((index) => api.create(greedy, `https://host${index % 50}.example.com/`)));
  const looked = performance.now();
  await dns.lookup("localhost");
  const lookup = performance.now() - looked;
  const fresh = await lateness(well, 1, () => api.create(modest, `${well.origin}/`));
  return [
    atMost(
      `another customer's event, with ${count} on 50 hosts whose names hang`,
      fresh,
      1_000,
      " ms",
      ` (share of one customer: ${asked / 2} look-ups at a time)`,
    ),
    atMost("the host's own look-up meanwhile", lookup, 1_000, " ms"),
  ];
}

console.log(machine());
const only = process.argv.slice(2);
for (const [name, measure] of Object.entries({
  D3a: fortyHosts,
  D3b: deadReceiver,
  D3d: twentyWorkers,
  receiver: oneReceiver,
  "names-200": () => hangingNames(200),
  "names-800": () => hangingNames(800),
})) {
  if (only.length === 0 || only.includes(name)) print(name, await measure());
}
process.exit();
