import { randomBytes, randomUUID } from "node:crypto";
import { inboxSender } from "../../adapters/sms/inbox.js";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { guardedSender } from "../callbacks/guarded-sender.js";
import type { FlushReport } from "../callbacks/outbox.js";
import { deliveryStatuses } from "../contract/callback.js";
import { withTestOverrides } from "../core/test-overrides.js";
import type { Verifier } from "../create-verifier.js";
import { canonicalNumber, e164 } from "../domain/phone-number.js";
import { createVerifier, generateApiKey, VerifierError } from "../index.js";
import type { CustomerConfig, VerifierOptions } from "../options/types.js";
import type { DeliveryStatus } from "../ports/receipts.js";
import type { SmsMessage } from "../ports/sms-sender.js";
import type { Store } from "../ports/store.js";
import { type FixedClock, fixedClock, runningClock } from "./fixed-clock.js";
import { keptCallbacks, type TestCallback } from "./verifier/kept-callbacks.js";
import { withoutLimits } from "./verifier/no-limits.js";
import { postReceipt, type ReceiptDetails, testReceipts } from "./verifier/receipts.js";
import { recordedSender } from "./verifier/recorded-sender.js";

type Optional<T> = { readonly [Name in keyof T]?: T[Name] | undefined };

/** The options of `createVerifier`, all of them optional, and what is only for tests. */
export interface TestVerifierOptions extends Optional<Omit<VerifierOptions, "clock" | "customers">> {
  /** The code of every message; or by number, in E.164 form, of the messages to it. 4 to 10 digits. Default: drawn, as in production. */
  readonly code?: string | Readonly<Record<string, string>> | undefined;
  /** `false`: no cap and no anti-spam rule, but for those that `policy` sets. Default `true`: those of production. */
  readonly limits?: boolean | undefined;
  /** Whether callbacks are posted too, beside being kept: to public https addresses and to `callbacks.allowOrigins`. Default `false`; with a `callbacks.sender` they are given to that one. */
  readonly postCallbacks?: boolean | undefined;
  /** `"running"`: one that goes on with the system's time, and can be moved on beside; for a server that a browser drives. Default: one that stands still at the system's time. */
  readonly clock?: FixedClock | "running" | undefined;
  /** Beside the customer of the test. Default: none. */
  readonly customers?: readonly CustomerConfig[] | undefined;
}

/** What reached the carrier. */
export interface TestInbox {
  /** All messages, the oldest first; those that the sender rejected are not among them. */
  readonly messages: readonly SmsMessage[];
  /** The code of the newest message to a number. Throws an `Error` when there is none, naming the numbers that got one, and for what is no number. */
  codeFor(number: string): string;
  /** The newest message, of all or to a number. Throws an `Error` for what is no number. */
  lastMessage(number?: string): SmsMessage | undefined;
  /** Forgets all messages. */
  clear(): void;
}

/** A verifier for one test, and all that is around it. */
export interface TestVerifier {
  /** To be called, and mounted, as any. Direct calls that name no customer are for `customer_uuid`. */
  readonly verifier: Verifier;
  /** The customer of the test; of all test verifiers on one store the same, with the same key and secret. */
  readonly customer_uuid: string;
  /** Its key, for the header `x-api-key`. */
  readonly apiKey: string;
  /** The verifier's time, in milliseconds: `clock.advance(600_000)` lets ten minutes pass. */
  readonly clock: FixedClock;
  readonly inbox: TestInbox;
  /** Callbacks that were delivered, the oldest first: `flush` delivers. */
  readonly callbacks: readonly TestCallback[];
  /** The carrier's word on a message, or on the newest to a number, by the route that real receipts take. Rejects where there is no such message, and for what is no status. */
  receipt(of: string | SmsMessage, status: DeliveryStatus, details?: ReceiptDetails): Promise<void>;
  /** Waits for what goes on after the answers, and delivers all callbacks that are due. */
  flush(): Promise<FlushReport>;
  /** Closes the verifier, its store and its sender. */
  close(): Promise<void>;
  /** The same: `await using test = createTestVerifier()`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * A verifier on a memory store of its own, whose messages come into an inbox and whose clock stands still: nothing leaves the process, and two of them know nothing of each other. Those that are given one store are one service.
 *
 * Everything else is as in production, caps and anti-spam rules too (`limits: false` lifts them), and every option of `createVerifier` can be given.
 *
 * @throws VerifierError `invalid_options`, whose message names every faulty option and the mend.
 */
export function createTestVerifier(options: TestVerifierOptions = {}): TestVerifier {
  const { code, limits = true, postCallbacks = false, clock: told = fixedClock(Date.now()), customers = [], countries = "all", ...given } = options;
  if (typeof limits !== "boolean") throw faulty("limits must be true or false: false lifts caps and anti-spam rules");
  if (typeof postCallbacks !== "boolean") throw faulty("postCallbacks must be true or false: true posts callbacks too");
  const clock = told === "running" ? runningClock() : told;
  if (typeof clock?.now !== "function" || typeof clock.advance !== "function") throw faulty('clock must be a fixedClock(), or "running"');
  if (!Array.isArray(customers)) throw faulty("customers must be a list of further ones: the test's own is there already");
  const { store = memoryStore({ now: clock.now }) } = given;
  const { customer_uuid, apiKey, secret } = identityOf(store);
  const inbox = inboxSender();
  const background = new Set<Promise<unknown>>();
  const kept = keptCallbacks((customer) => verifier.webhookSecrets(customer), given.callbacks?.sender ?? (postCallbacks ? guardedSender() : undefined));
  const sender = given.sender === undefined ? inbox : recordedSender(given.sender, inbox);
  const sources = given.receipts?.sources ?? (sender.receiptProviders ?? []).map(testReceipts);
  const all: VerifierOptions = {
    ...given,
    countries,
    secret: given.secret ?? secret,
    store,
    ...(!limits && { policy: withoutLimits(given.policy) }),
    sender,
    clock,
    customers: [{ customer_uuid, keys: [apiKey] }, ...customers],
    receipts: { baseUrl: given.receipts?.baseUrl ?? "https://receipts.test", sources: [...sources, testReceipts()] },
    callbacks: {
      worker: false,
      ...given.callbacks,
      sender: kept,
      waitUntil(work) {
        const ended = work.then(
          () => void background.delete(ended),
          () => void background.delete(ended),
        );
        background.add(ended);
        given.callbacks?.waitUntil?.(work);
      },
    },
  };
  const verifier = createVerifier(withTestOverrides(all, { unnamed: customer_uuid, codeFor: codesOf(code) }));

  const lastTo = (number: string): SmsMessage | undefined => {
    if (typeof number !== "string")
      throw new TypeError(`createTestVerifier: a number in E.164 form is needed, for example "+33612345678", got ${String(number)}.`);
    return inbox.last(number.replace(/[^\d+]/g, ""));
  };
  const lastMessage = (number?: string) => (number === undefined ? inbox.messages.at(-1) : lastTo(number));
  const newest = (number: string): SmsMessage => {
    const message = lastTo(number);
    if (message !== undefined) return message;
    const others = [...new Set(inbox.messages.map(({ to }) => to))];
    throw new Error(
      `createTestVerifier: no message went to ${number}; ${others.length === 0 ? "none went to anybody" : `there are messages to ${others.join(", ")}`}. Was the create answered pending?`,
    );
  };
  const close = () => verifier.close();
  return {
    verifier,
    customer_uuid,
    apiKey,
    clock,
    inbox: { messages: inbox.messages, codeFor: (number) => newest(number).code, lastMessage, clear: inbox.clear },
    callbacks: kept.callbacks,
    async receipt(of, status, details = {}) {
      if (!deliveryStatuses.includes(status))
        throw new TypeError(`createTestVerifier: a receipt tells one of ${deliveryStatuses.join(", ")}, got ${String(status)}.`);
      const message = typeof of === "object" && of !== null ? of : newest(of);
      if (typeof message.authentication_uuid !== "string") throw new TypeError("createTestVerifier: a receipt is of a number, or of a message of the inbox.");
      await postReceipt(verifier.receipts, message, status, details);
    },
    async flush() {
      await inTime(Promise.all(background));
      return verifier.flush();
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

interface Identity {
  readonly customer_uuid: string;
  readonly apiKey: string;
  readonly secret: string;
}

/** Where the identities are, also for a second copy of this file in another bundle: as Next.js makes, where they share a named store. */
const registry = Symbol.for("phoneproof.test-verifiers");

/** Whoever has the same store is the same service: what one has sent, another checks. */
function identityOf(store: Store): Identity {
  const home = globalThis as { [registry]?: WeakMap<Store, Identity> };
  home[registry] ??= new WeakMap();
  const identity = home[registry].get(store) ?? { customer_uuid: randomUUID(), apiKey: generateApiKey().key, secret: randomBytes(32).toString("base64") };
  // What is no store is told of by createVerifier.
  if (typeof store === "object" && store !== null) home[registry].set(store, identity);
  return identity;
}

/** Work beside an answer may wait for the clock, which stands still: it is waited for no longer than a second of real time. */
async function inTime(work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, 1_000)));
  await Promise.race([work, late]);
  clearTimeout(timer);
}

/** What gives each number its code. Throws `invalid_options` for what is no code, and for a number that none is sent to. */
function codesOf(code: TestVerifierOptions["code"]): ((number: string) => string | undefined) | undefined {
  if (code === undefined) return undefined;
  if (Array.isArray(code) || code instanceof Map) throw faulty("code must be a string of 4 to 10 digits, or an object of such by number");
  const codes = typeof code === "object" && code !== null ? Object.entries(code) : [[undefined, code] as const];
  for (const [number, one] of codes) {
    if (typeof one !== "string" || !/^\d{4,10}$/.test(one))
      throw faulty(`code${number === undefined ? "" : `["${number}"]`} must be a string of 4 to 10 digits, got ${JSON.stringify(one)}`);
    if (number !== undefined && !e164.test(number)) throw faulty(`code["${number}"] is not by a number in E.164 form, for example "+33612345678"`);
  }
  if (typeof code === "string") return () => code;
  const byNumber = new Map(Object.entries(code).map(([number, one]) => [canonicalNumber(number), one]));
  return (number) => byNumber.get(number);
}

function faulty(fault: string): VerifierError {
  return new VerifierError("invalid_options", `phoneproof: createTestVerifier: ${fault}`);
}
