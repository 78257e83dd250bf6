import { randomUUID } from "node:crypto";
import { onTestFinished } from "vitest";
import {
  type AuthenticationResult,
  type CallOptions,
  type Channel,
  type CodeMessage,
  type CustomerConfig,
  createVerifier,
  type Receipt,
  type ReceiptSource,
  type SendContext,
  type SendOutcome,
  type SmsSender,
  type Verifier,
  type VerifierEvent,
  type VerifierOptions,
} from "../../src/index.js";
import type { Store } from "../../src/ports/store.js";
import { type RouteOptions, type RouterOptions, router } from "../../src/routing/router.js";
import { type FixedClock, fixedClock } from "../../src/testing/index.js";
import { PlainStore } from "../store/plain-store.js";
import { type LogLine, logger, secret, start } from "../support/verifier.js";
import { type Hook, hook, keyOf, noSpamRules, numberAt, type RiggedStore, rigged, turns, wide } from "./kit.js";

export { secret, start };

/** How long a message must be silent to fall back, unless a test sets another time. */
export const after = 20_000;

export interface Carrier extends SmsSender {
  readonly messages: CodeMessage[];
  /** `accepted` unless set. */
  answer: (message: CodeMessage, context: SendContext) => Promise<SendOutcome>;
}

/** A carrier whose receipts come to the source `mine`. WhatsApp and Telegram confirm each delivery. */
export function carrier(channel: Channel, more: Partial<SmsSender> = {}): Carrier {
  const messages: CodeMessage[] = [];
  return {
    channel,
    receiptProviders: ["mine"],
    ...((channel === "whatsapp" || channel === "telegram") && { confirms: true }),
    ...(channel === "voice" && { callsFixedLines: () => true }),
    messages,
    answer: async () => ({ outcome: "accepted" }),
    send(message, context) {
      messages.push(message);
      return this.answer(message, context);
    },
    ...more,
  };
}

export const hangs = () => new Promise<never>(() => {});
export const refuses = async (): Promise<SendOutcome> => ({ outcome: "rejected", reason: "HTTP 400" });
export const isNotThere = async (): Promise<SendOutcome> => ({ outcome: "rejected", reason: "not on the channel", unreachable: true });
export const mayHave = async (): Promise<SendOutcome> => ({ outcome: "unknown", reason: "cut off" });
export const takes = async (): Promise<SendOutcome> => ({ outcome: "accepted" });

/** Reads receipts as JSON, one or a list of them; only their references count. */
export const source: ReceiptSource = {
  provider: "mine",
  async read({ body }) {
    const read = JSON.parse(Buffer.from(body).toString()) as Receipt | Receipt[];
    return { receipts: Array.isArray(read) ? read : [read], vouched: false };
  },
};

export interface Setup extends Omit<Partial<VerifierOptions>, "store" | "customers" | "clock"> {
  readonly count?: number;
  readonly store?: Store | ((i: number) => Store);
  /** One clock for all, or one for each process. */
  readonly clock?: FixedClock | ((i: number) => FixedClock);
  readonly routes?: readonly RouteOptions[];
  /** `false`: none. */
  readonly fallback?: RouterOptions["fallback"] | false;
  readonly routing?: Partial<RouterOptions>;
  readonly customers?: readonly Partial<CustomerConfig>[];
  readonly own?: (i: number) => Partial<VerifierOptions>;
}

export interface Process {
  readonly verifier: Verifier;
  readonly store: RiggedStore;
  readonly clock: FixedClock;
  readonly events: VerifierEvent[];
  readonly log: readonly LogLine[];
  create(number?: string | number, fields?: Record<string, unknown>, call?: CallOptions): Promise<AuthenticationResult>;
  retry(id: string, fields?: Record<string, unknown>): ReturnType<Verifier["retry"]>;
  check(id: string, code: string, call?: CallOptions): ReturnType<Verifier["check"]>;
  explain(id: string): ReturnType<Verifier["explain"]>;
  flush(): ReturnType<Verifier["flush"]>;
  /** Posts the carrier's receipt of a message, and returns the HTTP status. */
  receipt(message: CodeMessage | undefined, status: Receipt["status"], more?: Partial<Receipt>): Promise<number>;
  receipts(list: readonly (readonly [CodeMessage | undefined, Receipt["status"], Partial<Receipt>?])[]): Promise<number>;
}

export interface World {
  readonly set: readonly Process[];
  readonly one: Process;
  readonly two: Process;
  readonly clock: FixedClock;
  readonly wa: Carrier;
  readonly sms: Carrier;
  readonly customer: string;
  readonly hook: Hook;
  /** All messages that were handed over, in order. */
  readonly journal: readonly { readonly route: string; readonly message: CodeMessage; readonly at: number }[];
  /** `attempt route` of each message that was handed over for an authentication. */
  story(id: string): string[];
  codeOf(id: string, attempt?: number): string;
  messageOf(id: string, attempt?: number): CodeMessage;
  wrong(id: string): string;
}

/** Processes on one store, with WhatsApp first and SMS next, unless `routes` is given. */
export function world(setup: Setup = {}): World {
  const { count = 1, store = new PlainStore(), clock = fixedClock(start), routes, fallback = {}, routing = {}, customers = [{}], own, ...rest } = setup;
  const journal: { route: string; message: CodeMessage; at: number }[] = [];
  const wa = carrier("whatsapp");
  const sms = carrier("sms");
  const planned: readonly RouteOptions[] = routes ?? [
    { name: "wa", sender: wa, priority: 0 },
    { name: "sms", sender: sms, priority: 1 },
  ];
  const configs = customers.map((one, i): CustomerConfig => {
    const customer_uuid = one.customer_uuid ?? (i === 0 ? "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f" : randomUUID());
    return { keys: [keyOf(customer_uuid)], ...one, customer_uuid };
  });
  const customer = configs[0]!.customer_uuid;
  const hooked = (rest.callbacks?.sender as Hook | undefined) ?? hook();
  const clockOf = (i: number) => (typeof clock === "function" ? clock(i) : clock);
  const set = Array.from({ length: count }, (_, i): Process => {
    const events: VerifierEvent[] = [];
    const log = logger();
    const at = clockOf(i);
    const noted = planned.map(({ sender, ...route }) => ({
      ...route,
      sender: {
        ...sender,
        send(message: CodeMessage, context: SendContext) {
          journal.push({ route: route.name, message, at: at.now() });
          return sender.send(message, context);
        },
      },
    }));
    const way = rigged(typeof store === "function" ? store(i) : store);
    const verifier = createVerifier({
      store: way,
      secret,
      countries: "all",
      customers: configs,
      clockSkew: 0,
      storeTimeout: 60,
      logger: log,
      statistics: false,
      conversion: "reported",
      onEvent: (event) => void events.push(event),
      sender: router({
        routes: noted,
        random: () => 0.5,
        clock: at,
        logger: log,
        ...(fallback !== false && { fallback: { worker: "elsewhere", ...fallback } }),
        ...routing,
      }),
      receipts: { baseUrl: "https://otp.example", sources: [source] },
      ...rest,
      ...own?.(i),
      clock: at,
      policy: { spam: noSpamRules, ...rest.policy, limits: { ...wide, ...rest.policy?.limits } },
      callbacks: { worker: false, sender: hooked, ...rest.callbacks, ...own?.(i)?.callbacks },
    });
    onTestFinished(() => verifier.close());
    const post = async (url: string, body: unknown) => {
      const { pathname, search } = new URL(url.replace("{provider}", "mine"));
      const bytes = new TextEncoder().encode(JSON.stringify(body));
      const answer = await verifier.receipts.handle({
        method: "POST",
        path: pathname,
        query: search,
        header: () => undefined,
        body: async () => ({ kind: "bytes", bytes }),
      });
      return answer.status;
    };
    return {
      verifier,
      store: way,
      clock: at,
      events,
      log: log.lines,
      create: (number = 1, fields = {}, call = {}) =>
        verifier.createAuthentication({ customer_uuid: customer, phone_number: typeof number === "number" ? numberAt(number) : number, ...fields }, call),
      retry: (authentication_uuid, fields = {}) => verifier.retry({ customer_uuid: customer, authentication_uuid, ...fields }),
      check: (authentication_uuid, check_code, call = {}) => verifier.check({ customer_uuid: customer, authentication_uuid, check_code }, call),
      explain: (authentication_uuid) => verifier.explain({ customer_uuid: customer, authentication_uuid }),
      flush: () => verifier.flush(),
      receipt: (message, status, more = {}) => post(message?.receipt_url ?? "https://otp.example/none", { status, ...more }),
      receipts: (list) =>
        post(
          "https://otp.example/receipts/mine",
          list.map(([message, status, more = {}]) => ({ reference: message?.receipt_reference, status, ...more })),
        ),
    };
  });
  const of = (id: string, attempt?: number) =>
    journal.filter(({ message }) => message.authentication_uuid === id && (attempt === undefined || message.attempt === attempt)).at(-1)?.message;
  return {
    set,
    one: set[0] as Process,
    two: set[1] ?? (set[0] as Process),
    clock: clockOf(0),
    wa,
    sms,
    customer,
    hook: hooked,
    journal,
    story: (id) => journal.filter(({ message }) => message.authentication_uuid === id).map(({ route, message: { attempt } }) => `${attempt} ${route}`),
    codeOf: (id, attempt) => of(id, attempt)?.code ?? "none",
    messageOf: (id, attempt) => of(id, attempt) as CodeMessage,
    wrong(id) {
      const sent = new Set(journal.filter(({ message }) => message.authentication_uuid === id).map(({ message: { code } }) => code));
      return ["000000", "111111", "222222", "333333", "444444", "555555"].find((code) => !sent.has(code)) as string;
    },
  };
}

/** Advances the clocks just past the time at which a silent message falls back, and runs the first worker. */
export async function silence({ set }: Pick<World, "set">, ms = after + 1): Promise<void> {
  for (const clock of new Set(set.map((one) => one.clock))) clock.advance(ms);
  await set[0]!.flush();
  await turns();
}

/** Runs every worker once a minute, for an hour, so that everything that can still be sent is sent. */
export async function exhaust({ set }: Pick<World, "set">, minutes = 60): Promise<void> {
  for (let i = 0; i < minutes; i++) {
    for (const clock of new Set(set.map((one) => one.clock))) clock.advance(60_000);
    await Promise.all(set.map((one) => one.flush().catch(() => {})));
    await turns(2);
  }
}

export const ofEvents = <T extends VerifierEvent["type"]>(one: Pick<Process, "events">, type: T) =>
  one.events.filter((event): event is Extract<VerifierEvent, { type: T }> => event.type === type);

/** The decisions that `explain` shows, with the reason of a fallback that was not sent. */
export const saysWhy = (explained: Awaited<ReturnType<Verifier["explain"]>>): string => JSON.stringify(explained.decisions);
