import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import {
  type AuthenticationResponse,
  type CallbackRequest,
  type CallbackResponse,
  type CallOptions,
  type CodeMessage,
  createVerifier,
  type DeliveryStatusEvent,
  type SendContext,
  type SendOutcome,
  type SmsSender,
  type Verifier,
  type VerifierOptions,
} from "../../src/index.js";
import type { RecordWrite, Store } from "../../src/ports/store.js";
import { type FixedClock, fixedClock } from "../../src/testing/index.js";
import { noSpamRules } from "../../src/testing/verifier/no-limits.js";
import { PlainStore } from "../store/plain-store.js";
import { type LogLine, logger, secret, start } from "../support/verifier.js";

/**
 * What happens to one call of a store:
 * - `done`: it works;
 * - `refused`: it rejects, and nothing was done;
 * - `lost`: it is done, and then rejects;
 * - `silent`: it is not done, and never settles;
 * - `deaf`: it is done, and never settles;
 * - `held`: it is done, and settles, once released: like calls that reach a server while it is paused;
 * - `late`: it is done at once, and settles once released.
 */
export type Fate = "done" | "refused" | "lost" | "silent" | "deaf" | "held" | "late";

/** The fates under which the caller does not learn the outcome of its call. */
export const fates = ["refused", "lost", "silent", "deaf", "held", "late"] as const;

type Method = Exclude<keyof Store, "close">;
const methods = ["find", "commit", "members", "tally", "lease", "get", "put", "delete"] as const satisfies readonly Method[];

/** A wrapper of a store that lets a test make calls hang, fail or land late. */
export interface RiggedStore extends Store {
  /** Decides the fate of each call; `done` unless set. */
  fate: (method: Method, args: readonly unknown[]) => Fate;
  /** Every call, with its arguments. */
  readonly calls: { readonly method: Method; readonly args: readonly unknown[] }[];
  count(method?: Method): number;
  /** Releases the held calls, in the order of their arrival. */
  release(): Promise<void>;
}

export function rigged(store: Store): RiggedStore {
  const calls: { method: Method; args: readonly unknown[] }[] = [];
  let held: (() => Promise<unknown>)[] = [];
  const call = async (method: Method, args: readonly unknown[]): Promise<unknown> => {
    calls.push({ method, args });
    const work = () => (store[method] as (...args: readonly unknown[]) => Promise<unknown>)(...args);
    const never = () => new Promise<never>(() => {});
    switch (self.fate(method, args)) {
      case "refused":
        throw new Error("connection refused");
      case "lost":
        await work();
        throw new Error("connection reset");
      case "silent":
        return never();
      case "deaf":
        await work();
        return never();
      case "held":
        return new Promise((resolve, reject) => held.push(() => work().then(resolve, reject)));
      case "late": {
        const answer = await work();
        return new Promise((resolve) => held.push(async () => resolve(answer)));
      }
      case "done":
        return work();
    }
  };
  const self = {
    fate: () => "done",
    calls,
    count: (method?: Method) => calls.filter((one) => method === undefined || one.method === method).length,
    async release() {
      const now = held;
      held = [];
      for (const one of now) await one().catch(() => {});
    },
    ...Object.fromEntries(methods.map((method) => [method, (...args: readonly unknown[]) => call(method, args)])),
  } as unknown as RiggedStore;
  return self;
}

/** A correct store that deletes records at their end, as real stores do. */
export class ForgetfulStore extends PlainStore {
  constructor(private readonly now: () => number) {
    super();
  }

  private forgetEnded(): void {
    for (const [key, { keepUntil }] of this.records) if (keepUntil <= this.now()) this.records.delete(key);
  }

  override async find(customer: string, id: string) {
    this.forgetEnded();
    return super.find(customer, id);
  }

  override async commit(...args: Parameters<PlainStore["commit"]>) {
    this.forgetEnded();
    return super.commit(...args);
  }
}

/** Runs everything that is ready: microtasks, and callbacks of the next turns. */
export async function turns(count = 12): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((done) => setImmediate(done));
}

/** Waits for `call` while advancing the clock. */
export async function drive<T>(clock: FixedClock, call: Promise<T>, step = 100, most = 120_000): Promise<T> {
  let settled = false;
  const end = () => {
    settled = true;
  };
  call.then(end, end);
  for (let passed = 0; ; passed += step) {
    await turns();
    if (settled) return call;
    if (passed > most) throw new Error(`no response within ${most} ms of the clock`);
    clock.advance(step);
  }
}

/** Advances the clock by `ms` milliseconds in steps, so that waiting work can continue in between. */
export async function pass(clock: FixedClock, ms: number, step = 500): Promise<void> {
  for (let passed = 0; passed < ms; passed += step) {
    clock.advance(Math.min(step, ms - passed));
    await turns();
  }
}

/** How a call ended: its status, or the code of its error. */
export async function ending(call: Promise<{ readonly status: string }>): Promise<string> {
  try {
    return (await call).status;
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
}

/** How often each ending occurred. */
export function tallied(endings: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const one of endings) counts[one] = (counts[one] ?? 0) + 1;
  return counts;
}

export interface Sender extends SmsSender {
  readonly messages: CodeMessage[];
  /** `accepted` unless set. */
  answer: (message: CodeMessage, context: SendContext) => Promise<SendOutcome>;
  codeOf(id: string, attempt?: number): string;
}

/** @param price What each message costs. Absent: unknown. */
export function sender(price?: number): Sender {
  const messages: CodeMessage[] = [];
  return {
    messages,
    answer: async () => ({ outcome: "accepted" }),
    send(message, context) {
      messages.push(message);
      return this.answer(message, context);
    },
    ...(price !== undefined && { plan: () => ({ route: "only", price }) }),
    codeOf: (id, attempt) => messages.filter((one) => one.authentication_uuid === id && (attempt ?? one.attempt) === one.attempt).at(-1)?.code ?? "none",
  };
}

/** An in-process receiver of callbacks. */
export interface Hook {
  readonly posted: (CallbackRequest & { readonly event: DeliveryStatusEvent; readonly id: string })[];
  answer: (request: CallbackRequest) => Promise<CallbackResponse>;
  post(request: CallbackRequest): Promise<CallbackResponse>;
  /** `attempt:status` of each post about an authentication, in order. */
  story(id: string): string[];
}

export function hook(): Hook {
  const posted: Hook["posted"] = [];
  return {
    posted,
    answer: async () => ({ status: 204 }),
    post(request) {
      posted.push({ ...request, event: JSON.parse(request.body) as DeliveryStatusEvent, id: request.headers["webhook-id"] ?? "" });
      return this.answer(request);
    },
    story: (id) => posted.filter(({ event }) => event.data.authentication_uuid === id).map(({ event: { data } }) => `${data.attempt}:${data.status}`),
  };
}

/** Valid mobile numbers, as many as a test needs, spread over the numbering plan. */
export const numberAt = (index: number): string => `+336${String(20_000_000 + ((index * 7_654_321) % 9_000_000))}`;

export const callbackUrl = "https://receiver.example/hook";

/** A verifier for one customer. Several may share a store, a clock and a customer. */
export interface Service {
  readonly verifier: Verifier;
  readonly customer: string;
  readonly clock: FixedClock;
  readonly sender: Sender;
  readonly hook: Hook;
  readonly log: readonly LogLine[];
  create(number?: string | number, fields?: Record<string, unknown>, call?: CallOptions): Promise<AuthenticationResponse>;
  retry(id: string): ReturnType<Verifier["retry"]>;
  check(id: string, code: string, call?: CallOptions): ReturnType<Verifier["check"]>;
  /** A code that was not sent for `id`. */
  wrong(id: string): string;
}

export function service(options: Partial<VerifierOptions> & { readonly customer?: string; readonly price?: number } = {}): Service {
  const { customer = randomUUID(), price, ...rest } = options;
  const clock = (rest.clock as FixedClock | undefined) ?? fixedClock(start);
  const out = (rest.sender as Sender | undefined) ?? sender(price);
  const hooked = (rest.callbacks?.sender as Hook | undefined) ?? hook();
  const log = logger();
  const verifier = createVerifier({
    store: new PlainStore(),
    secret,
    countries: "all",
    customers: [{ customer_uuid: customer, keys: [keyOf(customer)] }],
    clockSkew: 0,
    logger: log,
    // Statistics are stored in parallel with requests, which would disturb tests that count the store's calls.
    statistics: false,
    ...rest,
    policy: { spam: noSpamRules, ...rest.policy },
    sender: out,
    callbacks: { worker: false, sender: hooked, ...rest.callbacks },
    // `undefined`: the system's clock.
    ...("clock" in rest && rest.clock === undefined ? {} : { clock }),
  });
  return {
    verifier,
    customer,
    clock,
    sender: out,
    hook: hooked,
    log: log.lines,
    create: (number = 1, fields = {}, call = {}) =>
      verifier.createAuthentication({ customer_uuid: customer, phone_number: typeof number === "number" ? numberAt(number) : number, ...fields }, call),
    retry: (authentication_uuid) => verifier.retry({ customer_uuid: customer, authentication_uuid }),
    check: (authentication_uuid, check_code, call = {}) => verifier.check({ customer_uuid: customer, authentication_uuid, check_code }, call),
    wrong(id) {
      const sent = new Set(out.messages.filter((one) => one.authentication_uuid === id).map(({ code }) => code));
      return ["000000", "111111", "222222", "333333", "444444", "555555"].find((code) => !sent.has(code)) as string;
    },
  };
}

/** The API key of a customer. */
export const keyOf = (customer: string): string => `pp_${customer}`;

export { noSpamRules };

/** No limits except the defaults per number; tests set their own. */
export const wide = {
  perNumber: [
    { limit: 5, window: 600 },
    { limit: 10, window: 86_400 },
  ],
  perDevice: [],
  numbersPerDevice: [],
  perIp: [],
  numbersPerIp: [],
  perCustomer: [],
};

/** A customer, and builders of its sums and records. */
export function changes(customer: string = randomUUID()) {
  const now = Date.now();
  const ends = { now, keepUntil: now + 3_600_000 };
  return {
    customer,
    ends,
    sum: (name: string) => ({ sum: `${customer}:${name}`, part: 1, parts: 3, weight: 1, ...ends }),
    record: (fields: Partial<RecordWrite> = {}): RecordWrite => ({ customer, id: randomUUID(), tokens: [randomUUID()], data: "d", ...ends, ...fields }),
  };
}

/** Polls, in real time, until `ready` holds; returns how many milliseconds that took. */
export async function eventually(what: string, ready: () => boolean | Promise<boolean>, most = 60_000): Promise<number> {
  const started = performance.now();
  while (!(await ready())) {
    if (performance.now() - started > most) throw new Error(`gave up after ${most} ms: ${what}`);
    await new Promise((done) => setTimeout(done, 10));
  }
  return performance.now() - started;
}

/** Accepts the request and never responds. */
export const neverAnswers = (_request: unknown, _response: ServerResponse): void => {};

/** Responds after `ms` milliseconds. */
export const answersAfter =
  (ms: number, status = 204) =>
  (_request: unknown, response: ServerResponse): void =>
    void setTimeout(() => response.writeHead(status).end(), ms);

/** Receipts of a carrier that signs nothing: the per-message URL authenticates them, and the body is the status. */
export const receipts: NonNullable<VerifierOptions["receipts"]> = {
  baseUrl: "https://otp.example",
  sources: [{ provider: "mine", read: async ({ body }) => ({ receipts: [{ status: Buffer.from(body).toString() as "delivered" }], vouched: false }) }],
};

/** Posts a receipt as the carrier of `message` does; returns the HTTP status. */
export async function postReceipt(verifier: Verifier, message: CodeMessage, status: DeliveryStatusEvent["data"]["status"]): Promise<number> {
  const { pathname, search } = new URL((message.receipt_url ?? "").replace("{provider}", "mine"));
  const answer = await verifier.receipts.handle({
    method: "POST",
    path: pathname,
    query: search,
    header: () => undefined,
    body: async () => ({ kind: "bytes", bytes: new TextEncoder().encode(status) }),
  });
  return answer.status;
}
