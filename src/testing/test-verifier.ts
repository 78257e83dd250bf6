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
import type { CodeMessage } from "../ports/sms-sender.js";
import type { Store } from "../ports/store.js";
import { type FixedClock, fixedClock, runningClock } from "./fixed-clock.js";
import { keptCallbacks, type TestCallback } from "./verifier/kept-callbacks.js";
import { withoutLimits } from "./verifier/no-limits.js";
import { postReceipt, type ReceiptDetails, testReceipts } from "./verifier/receipts.js";
import { recordedSender } from "./verifier/recorded-sender.js";

type Optional<T> = { readonly [Name in keyof T]?: T[Name] | undefined };

/** The options of `createVerifier`, all optional, and some for tests only. */
export interface TestVerifierOptions extends Optional<Omit<VerifierOptions, "clock" | "customers">> {
  /** The code of every message, or by number in E.164 form. 4 to 10 digits. Default: random, as in production. */
  readonly code?: string | Readonly<Record<string, string>> | undefined;
  /** `false`: no caps or anti-spam rules except those in `policy`. Default `true`: the same as in production. */
  readonly limits?: boolean | undefined;
  /**
   * Whether callbacks are also posted: to public https addresses and `callbacks.allowOrigins`, or through
   * `callbacks.sender`. They are recorded in any case. Default `false`.
   */
  readonly postCallbacks?: boolean | undefined;
  /**
   * `"running"`: follows the system clock and can also be advanced; for a server that a browser uses. Default: a clock
   * that starts at the system's time and moves only when set.
   */
  readonly clock?: FixedClock | "running" | undefined;
  /** In addition to the test's own customer. Default: none. */
  readonly customers?: readonly CustomerConfig[] | undefined;
}

/** Messages that reached the carrier. */
export interface TestInbox {
  /** All messages except those that the sender rejected, oldest first. */
  readonly messages: readonly CodeMessage[];
  /**
   * The code of the newest message to a number. Throws an `Error` if there is none; the error lists the numbers that have
   * one.
   */
  codeFor(number: string): string;
  /** The newest message, of all or to a number. Throws an `Error` if the number is invalid. */
  lastMessage(number?: string): CodeMessage | undefined;
  /** Removes all messages. */
  clear(): void;
}

/** A verifier for one test, and its surroundings. */
export interface TestVerifier {
  /** For direct calls and for mounting, like any verifier. Direct calls without a customer are for `customer_uuid`. */
  readonly verifier: Verifier;
  /** The test's customer. Test verifiers on the same store have the same customer, key and secret. */
  readonly customer_uuid: string;
  /** The customer's key, for the header `x-api-key`. */
  readonly apiKey: string;
  /** The verifier's clock, in milliseconds: `clock.advance(600_000)` lets ten minutes pass. */
  readonly clock: FixedClock;
  readonly inbox: TestInbox;
  /** Delivered callbacks, oldest first. `flush` delivers them. */
  readonly callbacks: readonly TestCallback[];
  /**
   * Posts a receipt for a message, or for the newest one to a number, to the route for real receipts. Rejects if there
   * is no such message or the status is invalid.
   */
  receipt(of: string | CodeMessage, status: DeliveryStatus, details?: ReceiptDetails): Promise<void>;
  /** Waits for work in the background and delivers all due callbacks. */
  flush(): Promise<FlushReport>;
  /** Closes the verifier, its store and its sender. */
  close(): Promise<void>;
  /** Closes it too: `await using test = createTestVerifier()`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * A verifier on its own memory store, with an inbox for its messages and a clock that moves only when set. Nothing
 * leaves the process. Two of them are independent, unless they share a store: then they are one service.
 * Everything else is as in production, with caps and anti-spam rules (`limits: false` removes them), and accepts every
 * option of `createVerifier`.
 *
 * @throws VerifierError `invalid_options`. The message lists each invalid option and how to fix it.
 */
export function createTestVerifier(options: TestVerifierOptions = {}): TestVerifier {
  const { code, limits = true, postCallbacks = false, clock: chosen = fixedClock(Date.now()), customers = [], countries = "all", ...given } = options ?? {};
  if (typeof limits !== "boolean") throw faulty("limits must be true or false: false lifts caps and anti-spam rules");
  if (typeof postCallbacks !== "boolean") throw faulty("postCallbacks must be true or false: true posts callbacks too");
  const clock = chosen === "running" ? runningClock() : chosen;
  if (typeof clock?.now !== "function" || typeof clock.advance !== "function") throw faulty('clock must be a fixedClock(), or "running"');
  if (given.sender !== undefined && typeof given.sender?.send !== "function") throw faulty("sender must be an SMS sender, for example inboxSender()");
  if (!Array.isArray(customers)) throw faulty("customers must be a list of further customers: the test's own is already there");
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
        const ended = work.catch(() => undefined).then(() => void background.delete(ended));
        background.add(ended);
        given.callbacks?.waitUntil?.(work);
      },
    },
  };
  const verifier = createVerifier(withTestOverrides(all, { unnamed: customer_uuid, codeFor: codesOf(code), batches: true }));

  const notANumber = (number: unknown) =>
    new TypeError(`createTestVerifier: a number in E.164 form is needed, for example "+33612345678", got ${String(number)}.`);
  const lastTo = (number: string): CodeMessage | undefined => {
    if (typeof number !== "string") throw notANumber(number);
    return inbox.last(number.replace(/[^\d+]/g, ""));
  };
  const lastMessage = (number?: string) => {
    if (number === undefined) return inbox.messages.at(-1);
    if (!e164.test(String(number).replace(/[\s().-]/g, ""))) throw notANumber(number);
    return lastTo(number);
  };
  const newest = (number: string): CodeMessage => {
    const message = lastTo(number);
    if (message !== undefined) return message;
    const others = [...new Set(inbox.messages.map(({ to }) => to))];
    throw new Error(
      `createTestVerifier: no message went to ${number}; ${others.length === 0 ? "no message went to anyone" : `there are messages to ${others.join(", ")}`}. Did the create return pending?`,
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
        throw new TypeError(`createTestVerifier: a receipt reports one of ${deliveryStatuses.join(", ")}, got ${String(status)}.`);
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

/**
 * Where the identities are kept. Shared by all copies of this file: Next.js makes one per bundle, and these can share a
 * named store.
 */
const registry = Symbol.for("phoneproof.test-verifiers");

/** Verifiers on the same store are the same service: one can check codes that another sent. */
function identityOf(store: Store): Identity {
  const home = globalThis as { [registry]?: WeakMap<Store, Identity> };
  home[registry] ??= new WeakMap();
  const identity = home[registry].get(store) ?? { customer_uuid: randomUUID(), apiKey: generateApiKey().key, secret: randomBytes(32).toString("base64") };
  // `createVerifier` reports an invalid store.
  if (typeof store === "object" && store !== null) home[registry].set(store, identity);
  return identity;
}

/** The real timers, even if a test fakes them later. */
const { setTimeout, clearTimeout } = globalThis;

/** Background work may wait for the clock, which does not move. So it gets at most one second of real time. */
async function inTime(work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, 1_000)));
  await Promise.race([work, late]);
  clearTimeout(timer);
}

/**
 * Returns the function that gives each number its code. Throws `invalid_options` for invalid codes, and for numbers
 * that no message is sent to.
 */
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

function faulty(problem: string): VerifierError {
  return new VerifierError("invalid_options", `phoneproof: createTestVerifier: ${problem}`);
}
