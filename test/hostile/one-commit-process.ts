import { getHeapSnapshot } from "node:v8";
import { Redis } from "ioredis";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { redisStore } from "../../adapters/store/redis/index.js";
import { createVerifier } from "../../src/create-verifier.js";
import type { Store } from "../../src/ports/store.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";
import { noSpamRules } from "../../src/testing/verifier/no-limits.js";

/** What a process of these tests does. */
export type Task =
  /** Creates, stops (SIGSTOP) once its store has responded; when continued, reports the results and what was sent. */
  | {
      readonly do: "stand still";
      readonly url: string;
      readonly customer: string;
      readonly secret: string;
      readonly numbers: readonly string[];
      readonly cap: number;
    }
  /** Uses a number that no one else knows, lets it end, and reports which strings of its heap still contain it. */
  | { readonly do: "forget"; readonly erased: boolean; readonly lifetimes: number; readonly traffic: boolean };

/** What it reports to its parent. */
export type Told =
  | { readonly ready: true }
  | { readonly statuses: readonly string[]; readonly sent: readonly string[] }
  | { readonly traces: readonly string[]; readonly steps: readonly string[] };

const tell = (told: Told) => new Promise<void>((done) => void process.send?.(told, () => done()));
const turns = async (count: number) => {
  for (let i = 0; i < count; i++) await new Promise((done) => setImmediate(done));
};

async function standStill({ url, customer, secret, numbers, cap }: Extract<Task, { do: "stand still" }>): Promise<void> {
  const redis = new Redis(url);
  const inner = redisStore({ client: redis });
  let waiting = 0;
  const store: Store = {
    ...inner,
    async commit(change) {
      const result = await inner.commit(change);
      // All have been written: the process stops before any of them is handed over.
      if (change.record !== undefined && ++waiting === numbers.length) process.kill(process.pid, "SIGSTOP");
      else if (waiting < numbers.length) await new Promise<void>((done) => void gates.push(done));
      for (const gate of gates.splice(0)) gate();
      return result;
    },
  };
  const gates: (() => void)[] = [];
  const sent: string[] = [];
  const verifier = createVerifier({
    store,
    secret,
    countries: "all",
    customers: [{ customer_uuid: customer, keys: ["k".repeat(40)] }],
    clockSkew: 0,
    callbacks: { worker: false },
    logger: { info() {}, warn() {}, error() {} },
    policy: { spam: noSpamRules, limits: { perCustomer: [{ limit: cap, window: 5 }] } },
    sender: {
      async send({ to }) {
        sent.push(to);
        return { outcome: "accepted" };
      },
    },
  });
  await redis.ping();
  await tell({ ready: true });
  const statuses = await Promise.all(
    numbers.map((phone_number) =>
      verifier.createAuthentication({ customer_uuid: customer, phone_number }).then(
        ({ status }) => status as string,
        (error: { code?: string }) => error.code ?? String(error),
      ),
    ),
  );
  await tell({ statuses, sent });
}

/** Nine digits, as numbers: their text is built only where it is needed, and not kept. */
type Digits = readonly number[];
const textOf = (digits: Digits): string => `+33${digits.join("")}`;

async function life(digits: Digits, service: ReturnType<typeof serviceOfHeap>, steps: string[], erased: boolean): Promise<void> {
  const { verifier, clock, customer, codes } = service;
  const named = () => ({ customer_uuid: customer, phone_number: textOf(digits) });
  const step = async (name: string, call: Promise<object>) => {
    const ended = await call.then(
      (answer) => ("status" in answer ? answer.status : "done"),
      (error: { code?: string }) => error.code,
    );
    steps.push(`${name}: ${ended}`);
    await turns(4);
  };
  const made = await verifier.createAuthentication({ ...named(), ip: "198.51.100.7", device_id: "d", callback_url: "https://receiver.example/hook" });
  const of = { customer_uuid: customer, authentication_uuid: made.authentication_uuid };
  await step("wrong", verifier.check({ ...of, check_code: "x" }));
  clock.advance(31_000);
  await step("retry", verifier.retry(of));
  await step("keyed", verifier.createAuthentication(named(), { idempotencyKey: "k" }));
  await step("lookup", verifier.lookup(named()));
  await step("right", verifier.check({ ...of, check_code: codes.get(made.authentication_uuid) ?? "" }));
  await step("again", verifier.check({ ...of, check_code: "y" }));
  for (let i = 0; i < 8; i++) await step("more", verifier.createAuthentication(named()));
  await step("history", verifier.history(named()));
  await step("explain", verifier.explain(of));
  await step("unlock", verifier.unlock(named()));
  await step("more", verifier.createAuthentication(named()));
  // A common spelling that is not E.164.
  await step("misspelt", verifier.createAuthentication({ customer_uuid: customer, phone_number: `+330${digits.join("")}` }));
  const response = await verifier.http.handle({
    method: "GET",
    path: `/v1/lookup/${textOf(digits)}`,
    header: (name) => ({ "x-api-key": "k".repeat(40), "customer-uuid": customer })[name],
    body: async () => ({ kind: "text", text: "" }),
  });
  steps.push(`over HTTP: ${response.status}`);
  await verifier.flush();
  if (erased) await step("erase", verifier.erase(named()));
}

function serviceOfHeap() {
  const clock = fixedClock(Date.UTC(2026, 2, 1, 12));
  const customer = "5f0f1b64-6f2e-4a57-9c3b-0d4d3a1e7c55";
  const codes = new Map<string, string>();
  const verifier = createVerifier({
    store: memoryStore({ name: "heap" }),
    secret: "qT7vX2mR9kLw4ZbN8cJfH5sYdG3pAeU6",
    countries: "all",
    customers: [{ customer_uuid: customer, keys: ["k".repeat(40)] }],
    clock,
    callbacks: { worker: false, sender: { post: async () => ({ status: 204 }) } },
    logger: { info() {}, warn() {}, error() {} },
    onEvent() {},
    lookup: { lookup: async () => ({ carrier: "one" }), price: 0 },
    sender: {
      async send({ authentication_uuid, code }) {
        if (!codes.has(authentication_uuid)) codes.set(authentication_uuid, code);
        return { outcome: "accepted" };
      },
    },
  });
  return { clock, customer, codes, verifier };
}

async function snapshot(): Promise<string[]> {
  // Once V8 has computed a line number of this file, it knows where lines begin, and need not count for each function.
  void new Error("a line").stack;
  const chunks: Buffer[] = [];
  for await (const chunk of getHeapSnapshot()) chunks.push(chunk as Buffer);
  return (JSON.parse(Buffer.concat(chunks).toString()) as { strings: string[] }).strings;
}

async function forget({ erased, lifetimes, traffic }: Extract<Task, { do: "forget" }>): Promise<void> {
  const digits: Digits = [6, 1, 2, ...Array.from({ length: 6 }, () => 1 + Math.floor(Math.random() * 9))];
  const service = serviceOfHeap();
  const steps: string[] = [];
  await life(digits, service, steps, erased);
  const lifetime = 600_000;
  for (let passed = 0; passed < lifetimes * lifetime; passed += lifetime / 10) {
    service.clock.advance(lifetime / 10);
    await turns(4);
    if (traffic) {
      await service.verifier.createAuthentication({ customer_uuid: service.customer, phone_number: `+336980${String(passed / 60_000).padStart(5, "0")}` });
      await turns(4);
    }
  }
  service.clock.advance(1_000);
  await turns(20);
  // Replaces the last match, which the language itself remembers.
  /another/.exec("quite another text");
  (globalThis as { gc?: () => void }).gc?.();
  await turns(4);
  (globalThis as { gc?: () => void }).gc?.();
  const strings = await snapshot();
  const needle = digits.join("");
  await tell({ traces: strings.filter((one) => one.includes(needle)).map((one) => one.replaceAll(needle, "<the number>").slice(0, 200)), steps });
  void service.verifier.metrics();
}

if (process.argv[2]?.startsWith('{"do"')) {
  const task = JSON.parse(process.argv[2]) as Task;
  await (task.do === "forget" ? forget(task) : standStill(task));
  process.on("disconnect", () => process.exit(0));
}
