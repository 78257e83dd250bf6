import { twilioReceipts } from "../../adapters/sms/twilio.js";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { generateApiKey } from "../../src/access/accounts.js";
import { createVerifier, type Verifier } from "../../src/create-verifier.js";
import type { HttpHandler } from "../../src/http/message.js";
import type { Logger } from "../../src/ports/logger.js";
import type { CodeMessage } from "../../src/ports/sms-sender.js";
import type { Store } from "../../src/ports/store.js";
import { type FixedClock, fixedClock } from "../../src/testing/fixed-clock.js";
import { noSpamRules } from "../../src/testing/verifier/no-limits.js";

export interface Caller {
  readonly customer_uuid: string;
  readonly key: string;
}

/** What a test can see and control of a verifier, which may be in another process. */
export interface Service {
  readonly customer: Caller;
  readonly other: Caller;
  /** Every message that the carrier received. */
  sent(): Promise<readonly CodeMessage[]>;
  /** The messages that the verifier logged. */
  logged(): Promise<readonly string[]>;
  /** The status of every response, even if the client has disconnected. */
  answers(): Promise<readonly number[]>;
  /** The verifier's clock stands still: milliseconds left for each of its timers. */
  waits(): Promise<readonly number[]>;
  /** Advances that clock. */
  pass(ms: number): Promise<void>;
  /** While broken, every store call rejects. */
  breakStore(broken: boolean): Promise<void>;
}

/**
 * A real verifier on the memory store, with two customers, a carrier that records messages, and `/receipts/twilio`,
 * whose signatures the tests cannot make.
 */
export function createService(logger?: Logger): Service & { readonly verifier: Verifier } {
  const customer = caller();
  const other = caller();
  const sent: CodeMessage[] = [];
  const logged: string[] = [];
  const answers: number[] = [];
  const clock = watchedClock();
  let broken = false;
  const log = (_fields: unknown, message: string) => void logged.push(message);
  const made = createVerifier({
    store: breakable(memoryStore({ name: "service" }), () => broken),
    sender: {
      async send(message) {
        sent.push(message);
        return { outcome: "accepted" };
      },
    },
    secret: generateApiKey().key,
    countries: ["FR"],
    policy: { spam: noSpamRules },
    customers: [customer, other].map(({ customer_uuid, key }) => ({ customer_uuid, keys: [key] })),
    receipts: { baseUrl: "https://otp.example", sources: [twilioReceipts({ authToken: "nobody's" })] },
    logger: logger ?? { info: log, warn: log, error: log },
    // Without a worker, nothing leaves the process, and only what a test is about waits for the clock.
    callbacks: { worker: false },
    clock,
  });
  const counted = (handler: HttpHandler): HttpHandler => ({
    ...handler,
    async handle(request) {
      const answer = await handler.handle(request);
      answers.push(answer.status);
      return answer;
    },
  });
  return {
    verifier: { ...made, http: counted(made.http), receipts: counted(made.receipts) },
    customer,
    other,
    sent: async () => sent,
    logged: async () => logged,
    answers: async () => answers,
    waits: async () => clock.waits(),
    pass: async (ms) => clock.advance(ms),
    breakStore: async (value) => {
      broken = value;
    },
  };
}

/** Two handlers whose roots nest; each responds with its name and the requested path. */
export const outer = named("outer", "/v2");
export const inner = named("inner", "/v2/Services", ["/v2/Attempts"]);

function named(by: string, root: string, roots: readonly string[] = []): HttpHandler {
  return {
    root,
    roots,
    warn: () => undefined,
    clock: fixedClock(),
    handle: async ({ path }) => ({ status: 200, headers: { "content-type": "application/json" }, body: JSON.stringify({ by, path }) }),
  };
}

/** Waits for something that other processes and sockets cause; gives up after a minute. */
export async function until(holds: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + 60_000;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`gave up waiting: ${holds}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function watchedClock(): FixedClock & { waits(): number[] } {
  const clock = fixedClock(Date.now());
  const ends = new Set<{ readonly at: number }>();
  return {
    ...clock,
    after(ms, run) {
      const end = { at: clock.now() + ms };
      ends.add(end);
      const callOff = clock.after(ms, () => {
        ends.delete(end);
        run();
      });
      return () => {
        ends.delete(end);
        callOff();
      };
    },
    waits: () => [...ends].map(({ at }) => at - clock.now()),
  };
}

function caller(): Caller {
  return { customer_uuid: crypto.randomUUID(), key: generateApiKey().key };
}

function breakable(store: Store, isBroken: () => boolean): Store {
  return new Proxy(store, {
    get(target, name, receiver) {
      const value: unknown = Reflect.get(target, name, receiver);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) =>
        isBroken() ? Promise.reject(new Error("connect ECONNREFUSED 10.0.0.7:6379 password=hunter2")) : Reflect.apply(value, target, args);
    },
  });
}
