import { createVerifier, type HttpHandler, type SmsSender, type Verifier, type VerifierEvent, type VerifierOptions } from "../../src/index.js";
import type { Clock } from "../../src/ports/clock.js";
import type { Store } from "../../src/ports/store.js";
import { type FixedClock, fixedClock } from "../../src/testing/index.js";
import { preludeV2, authenticationUuidOf as uuidOfPrelude } from "../../src/wires/prelude-v2/index.js";
import { type TwilioVerifyOptions, twilioVerify, authenticationUuidOf as uuidOfTwilio } from "../../src/wires/twilio-verify/index.js";
import { logger, start as noon, secret } from "../support/verifier.js";
import { type Hook, hook, noSpamRules, type Sender, sender } from "./kit.js";

export const mine = "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f";
export const theirs = "0b7c9a3e-52d1-4f86-a3c4-91e2d7f60812";
const keyOf = (customer: string): string => `test-key-${customer}`;

// biome-ignore lint/suspicious/noExplicitAny: the response of any of the APIs.
export type Json = any;

/** The response of one API. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly json: Json;
}

/** One request to a handler, as an adapter passes it on. */
async function over(handler: HttpHandler, method: string, path: string, body: string, headers: Record<string, string>, query = ""): Promise<Reply> {
  const response = await handler.handle({ method, path, query, header: (name) => headers[name], body: async () => ({ kind: "text", text: body }) });
  return { status: response.status, headers: response.headers, json: response.body === "" ? undefined : JSON.parse(response.body) };
}

/** A process: one verifier, and all its APIs for one customer. */
export interface House {
  readonly verifier: Verifier;
  readonly customer: string;
  readonly clock: FixedClock;
  readonly out: Sender;
  readonly hook: Hook;
  readonly log: ReturnType<typeof logger>["lines"];
  readonly events: readonly VerifierEvent[];
  v1(operation: "authentication" | "retry" | "check", fields: Record<string, unknown>, headers?: Record<string, string>): Promise<Reply>;
  twilio(method: string, path: string, form?: Record<string, string>, headers?: Record<string, string>): Promise<Reply>;
  prelude(path: "" | "/check", fields: Record<string, unknown>, headers?: Record<string, string>): Promise<Reply>;
  /** The same for another customer of the verifier. */
  as(customer: string): House;
}

export type HouseOptions = Omit<Partial<VerifierOptions>, "clock" | "sender"> & {
  readonly clock?: FixedClock;
  readonly at?: Clock;
  readonly out?: Sender;
  readonly hook?: Hook;
  readonly wire?: TwilioVerifyOptions;
  readonly sender?: SmsSender;
};

export function house(store: Store, { clock = fixedClock(noon), at, out = sender(), hook: hooked = hook(), wire, ...options }: HouseOptions = {}): House {
  const log = logger();
  const events: VerifierEvent[] = [];
  const verifier = createVerifier({
    store,
    secret,
    countries: "all",
    customers: [mine, theirs].map((customer_uuid) => ({ customer_uuid, keys: [keyOf(customer_uuid)] })),
    clockSkew: 0,
    conversion: "reported",
    logger: log,
    statistics: false,
    onEvent: (event) => void events.push(event),
    sender: out,
    ...options,
    clock: at ?? clock,
    policy: { spam: noSpamRules, ...options.policy },
    callbacks: { worker: false, sender: hooked, ...options.callbacks },
  });
  const wires = { twilio: twilioVerify(verifier, { baseUrl: "https://otp.example", ...wire }), prelude: preludeV2(verifier) };
  const of = (customer: string): House => {
    const digits = customer.replaceAll("-", "");
    const basic = `Basic ${Buffer.from(`AC${digits}:${keyOf(customer)}`).toString("base64")}`;
    const json = { "content-type": "application/json" };
    return {
      verifier,
      customer,
      clock,
      out,
      hook: hooked,
      log: log.lines,
      events,
      v1: (operation, fields, headers = {}) =>
        over(verifier.http, "POST", `/v1/${operation}`, JSON.stringify({ customer_uuid: customer, ...fields }), {
          ...json,
          "x-api-key": keyOf(customer),
          ...headers,
        }),
      twilio: (method, path, form = {}, headers = {}) =>
        over(wires.twilio, method, `/v2/Services/VA${digits}${path}`, new URLSearchParams(form).toString(), {
          "content-type": "application/x-www-form-urlencoded",
          authorization: basic,
          host: "otp.example",
          ...headers,
        }),
      prelude: (path, fields, headers = {}) =>
        over(wires.prelude, "POST", `/v2/verification${path}`, JSON.stringify(fields), { ...json, authorization: `Bearer ${keyOf(customer)}`, ...headers }),
      as: of,
    };
  };
  return of(mine);
}

export const target = (value: string) => ({ type: "phone_number", value });
export const uuidOf = (id: string): string | undefined => uuidOfTwilio(id) ?? uuidOfPrelude(id);

const minute = 60_000;
const day = 86_400_000;
const cooldowns = [30_000, 60_000, 90_000, 120_000];
const caps = [
  { limit: 5, window: 10 * minute },
  { limit: 10, window: day },
];

export type Outcome = "accepted" | "rejected" | "unknown";

export interface Authentication {
  id: string;
  readonly created: number;
  readonly expires: number;
  readonly scope: string | undefined;
  readonly refused: boolean;
  readonly codes: string[];
  attempts: number;
  used: number;
  wrong: number;
  /** When the cool-down began. */
  since: number;
  end?: "verified" | "canceled";
  nothingSent: boolean;
}

/** What a call is expected to return; `undefined` is a field that must be absent. */
export interface Expected {
  readonly status: string;
  readonly of?: Authentication;
  readonly sends: boolean;
  readonly remaining_retry?: number;
  readonly remaining_checks?: number;
  readonly next_retry_at?: number | undefined;
  readonly retry_after?: number | undefined;
  readonly carrier_refused?: true | undefined;
  readonly phone?: boolean;
  readonly is_open?: boolean;
  readonly attempt?: number;
}

/** A second implementation of docs/contract.md, independent of the code: one number of one customer, in plain lists. */
export class NumberModel {
  readonly all: Authentication[] = [];
  private sends: number[] = [];
  private guesses: number[] = [];
  private unlockedAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly now: () => number) {}

  /** A message with another server's code, which only the caps count. */
  delivered(): void {
    this.sends.push(this.now());
  }

  /** The seconds until the longest full cap has room. */
  blocked(): { readonly retry_after: number } | undefined {
    const now = this.now();
    const waits = caps.flatMap(({ limit, window }) => {
      const inside = this.sends.filter((at) => at > now - window).sort((a, b) => a - b);
      return inside.length < limit ? [] : [(inside[inside.length - limit] as number) + window - now];
    });
    const longest = waits.at(-1);
    return longest === undefined ? undefined : { retry_after: Math.ceil(longest / 1000) };
  }

  /** Guesses count for a day, and may count for 12 hours more. */
  locked(): "no" | "yes" | "unsure" {
    const within = (ms: number) => this.guesses.filter((at) => at > this.now() - ms).length;
    return within(day) >= 50 ? "yes" : within(1.5 * day) >= 50 ? "unsure" : "no";
  }

  /** Only the first twenty rejected creates an hour are stored; the story asks for the first fifteen. */
  isStored(one: Authentication): boolean {
    if (!one.refused) return this.now() < one.expires + day;
    const sooner = this.all.filter((other) => other.refused && other.created > one.created - 60 * minute && this.all.indexOf(other) <= this.all.indexOf(one));
    return this.now() < one.expires && sooner.length <= 15;
  }

  private ended(one: Authentication): boolean {
    return one.end !== undefined || this.now() >= one.expires;
  }

  /** The retries and checks that remain. */
  standing(one: Authentication): Pick<Expected, "remaining_retry" | "remaining_checks" | "next_retry_at"> {
    const over = this.ended(one) || one.refused || one.nothingSent || one.wrong >= 5;
    const remaining_retry = over ? 0 : 4 - one.used;
    return {
      remaining_retry,
      remaining_checks: over ? 0 : 5 - one.wrong,
      next_retry_at: remaining_retry === 0 ? undefined : Math.min(one.since + (cooldowns[one.used] as number), one.expires),
    };
  }

  private send(one: Authentication): void {
    this.sends.push(this.now());
    one.attempts++;
    one.since = this.now();
  }

  create(scope: string | undefined, outcome: Outcome): Expected {
    const now = this.now();
    const cap = this.blocked();
    const one: Authentication = {
      id: "",
      created: now,
      expires: now + 10 * minute,
      scope: cap ? undefined : scope,
      refused: cap !== undefined,
      codes: [],
      attempts: 0,
      used: 0,
      wrong: 0,
      since: now,
      nothingSent: false,
    };
    this.all.push(one);
    if (cap) return { status: "rate_limited", of: one, sends: false, ...this.standing(one), ...cap, phone: true, is_open: false, attempt: 0 };
    this.send(one);
    if (outcome === "rejected") one.nothingSent = true;
    return {
      status: "pending",
      of: one,
      sends: true,
      ...this.standing(one),
      retry_after: undefined,
      carrier_refused: outcome === "rejected" ? true : undefined,
      phone: true,
      is_open: outcome !== "rejected",
      attempt: 1,
    };
  }

  retry(one: Authentication, outcome: Outcome): Expected {
    const now = this.now();
    const none = (status: string, more: Partial<Expected> = {}): Expected => ({
      status,
      of: one,
      sends: false,
      remaining_retry: 0,
      next_retry_at: one.expires,
      remaining_checks: this.standing(one).remaining_checks as number,
      retry_after: undefined,
      phone: !(["expired_auth", "already_validated"].includes(status) || one.refused),
      attempt: 0,
      ...more,
    });
    if (now >= one.expires || one.end === "canceled") return none("expired_auth");
    if (one.end === "verified") return none("already_validated");
    if (one.refused || one.wrong >= 5 || one.used === 4) return none("rate_limited");
    if (one.nothingSent) return none("no_attempt");
    const left = () => this.standing(one);
    if (now < one.since + (cooldowns[one.used] as number)) return { ...none("denied"), ...left() };
    const cap = this.blocked();
    if (cap) return none("rate_limited", cap);
    this.send(one);
    if (outcome === "rejected") return { ...none("denied"), sends: true, ...left(), carrier_refused: true };
    one.used++;
    const standing = left();
    return { ...none("approved"), sends: true, ...standing, next_retry_at: standing.next_retry_at ?? one.expires, attempt: one.attempts };
  }

  open(scope: string, usedUp: "anew" | "wait" = "wait"): Authentication | undefined {
    const last = this.all.filter((one) => one.scope === scope).at(-1);
    if (!last || this.ended(last) || last.nothingSent || (last.wrong >= 5 && usedUp === "anew")) return undefined;
    return last;
  }

  latest(scope: string): Authentication | undefined {
    return this.all.filter((one) => one.scope === scope && this.isStored(one)).at(-1);
  }

  start(scope: string, usedUp: "anew" | "wait", outcome: Outcome): Expected {
    const open = this.open(scope, usedUp);
    if (!open) return this.create(scope, outcome);
    const retried = this.retry(open, outcome);
    return { ...retried, ...this.standing(open), status: retried.status === "approved" ? "pending" : retried.status, phone: true, is_open: open.wrong < 5 };
  }

  check(one: Authentication, code: string): Expected {
    const now = this.now();
    const answer = (status: string): Expected => ({
      status,
      of: one,
      sends: false,
      ...this.standing(one),
      phone: !(["expired_auth", "already_validated"].includes(status) || one.refused),
    });
    if (now >= one.expires || one.end === "canceled") return answer("expired_auth");
    if (one.end === "verified") return answer("already_validated");
    if (one.refused || one.wrong >= 5) return answer("rate_limited");
    if (one.nothingSent) return answer("without_attempt");
    if (this.locked() === "yes") return { ...answer("rate_limited"), remaining_checks: 0 };
    if (one.codes.slice(-2).includes(code)) {
      one.end = "verified";
      return answer("valid");
    }
    one.wrong++;
    this.guesses.push(now);
    return answer("invalid");
  }

  checkByNumber(scope: string, code: string): Expected {
    const last = this.all.filter((one) => one.scope === scope).at(-1);
    if (!last || this.ended(last)) return { status: "not_found", sends: false };
    return this.check(last, code);
  }

  unlock(): boolean {
    if (this.now() < this.unlockedAt + day) return false;
    this.unlockedAt = this.now();
    this.sends = [];
    this.guesses = [];
    return true;
  }
}
