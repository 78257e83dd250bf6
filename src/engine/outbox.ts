import { randomUUID } from "node:crypto";
import type { Authentication, OutboxEvent } from "../domain/authentication.js";
import { type DeliveryAnswer, deliveryTimeout, dueEvent, postponed, redelivered, settleDelivery, withLease } from "../domain/delivery.js";
import { settleOverdue } from "../domain/send.js";
import type { CallbackSender } from "../ports/callback-sender.js";
import { storeBudget, withTimeout } from "./budget.js";
import type { BaseParts } from "./parts.js";
import { type Decided, transition } from "./transition.js";
import { toWebhook } from "./webhook.js";

/** What a flush did, in events. */
export interface FlushReport {
  readonly delivered: number;
  /** Will be tried again. */
  readonly failed: number;
  /** Given up: see `deadLetters`. */
  readonly dead: number;
}

/** A delivery status that was given up. */
export interface DeadLetter {
  readonly customer_uuid: string;
  readonly authentication_uuid: string;
  /** For `redeliver`. */
  readonly sequence: number;
  readonly callback_url: string;
  readonly status: string;
  /** Why it was given up. */
  readonly reason: string;
}

/** Delivers the outboxes of the records. */
export interface Outbox {
  /** Starts on a record's events in the background, where this process delivers at all. */
  deliverSoon(auth: Authentication): void;
  /** Delivers everything that is due now, and settles sends that a crash left over. */
  flush(): Promise<FlushReport>;
  /** Polls for due records, until `stop`. */
  start(): void;
  /** Stops polling, and waits for the deliveries under way. */
  stop(): Promise<void>;
  deadLetters(limit: number): Promise<readonly DeadLetter[]>;
  /** Puts a given-up event back on its way; false when there is none. */
  redeliver(customer: string, id: string, sequence: number): Promise<boolean>;
}

export interface OutboxParts extends BaseParts {
  readonly callbackSender: CallbackSender;
  /** Secrets that sign a customer's callbacks, the current one first. */
  readonly webhookSecrets: (customer: string) => Promise<readonly string[]>;
}

/** Records fetched at once, and the most that wait for one host. */
const batch = 100;
/** Deliveries at the same time: in all, and to one host: "a slow or hostile receiver never slows others". */
const maxDeliveries = 128;
const maxPerHost = 4;
/** How far a record is moved when too many wait for its host. Milliseconds. */
const busyWait = 60_000;

/** Records that wait for their turn at one host. */
interface Lane {
  readonly waiting: Authentication[];
  active: number;
}

type Step = "delivered" | "failed" | "dead" | "settled" | "idle";

export function createOutbox(parts: OutboxParts): Outbox {
  const { records, clock, logger, settings } = parts;
  const lanes = new Map<string, Lane>();
  /** Records that wait or are worked on. */
  const taken = new Set<string>();
  const running = new Set<Promise<void>>();
  let stopPolling: (() => void) | undefined;
  let looking: Promise<void> | undefined;
  let stopped = false;

  const budget = () => storeBudget(clock, logger, settings.storeTimeout);

  /** One step on one record: settle what is overdue, or claim an event and deliver it. */
  const step = async (customer: string, id: string): Promise<Step> => {
    const holder = randomUUID();
    const now = clock.now();
    const claimed = await transition(records, budget(), customer, id, (auth): Decided<{ auth: Authentication; event?: OutboxEvent } | undefined> => {
      const next = settleOverdue(auth, settings.policy, now);
      if (next !== auth) return { result: { auth: next }, next };
      const event = dueEvent(auth, now);
      if (event === undefined) return { result: undefined };
      const leased = withLease(auth, holder, now);
      return { result: { auth: leased, event }, next: leased };
    });
    if (claimed === undefined) return "idle";
    if (claimed.event === undefined) return "settled";
    return settle(claimed.auth, claimed.event, holder, await post(claimed.auth, claimed.event));
  };

  const post = async (auth: Authentication, event: OutboxEvent): Promise<DeliveryAnswer> => {
    try {
      const secrets = await parts.webhookSecrets(auth.customer);
      const request = {
        ...toWebhook(auth, event, secrets, settings.fullNumber, clock.now()),
        url: auth.callbackUrl as string,
        timeout: deliveryTimeout,
        allowOrigins: settings.allowOrigins,
      };
      return await withTimeout(clock, deliveryTimeout, () => parts.callbackSender.post(request));
    } catch (error) {
      return { failed: error instanceof Error ? error.message : String(error) };
    }
  };

  const settle = async (auth: Authentication, event: OutboxEvent, holder: string, answer: DeliveryAnswer): Promise<Step> => {
    const now = clock.now();
    const jitter = Math.random();
    const left = await transition(records, budget(), auth.customer, auth.id, (current): Decided<OutboxEvent | "gone" | "late"> => {
      const next = settleDelivery(current, event.sequence, holder, answer, now, jitter);
      return { result: next === undefined ? "late" : (next.outbox.find(({ sequence }) => sequence === event.sequence) ?? "gone"), next };
    });
    if (left === undefined || left === "late") return "idle";
    if (left === "gone") return "delivered";
    const fields = {
      authentication_uuid: auth.id,
      sequence: event.sequence,
      tries: left.tries,
      reason: "status" in answer ? `answered ${answer.status}` : answer.failed,
    };
    if (left.dead === undefined) logger.warn(fields, "a callback could not be delivered; it will be tried again");
    else logger.error({ ...fields, reason: left.dead }, "a callback was given up");
    return left.dead === undefined ? "failed" : "dead";
  };

  /** Everything due on one record, one event after another. */
  const drain = async ({ customer, id }: Authentication, tell: (step: Step) => void): Promise<void> => {
    try {
      for (let done = await step(customer, id); done !== "idle"; done = await step(customer, id)) {
        tell(done);
        if (done === "failed") return;
      }
    } catch (err) {
      logger.error({ err, authentication_uuid: id }, "the work on a record's callbacks broke off; it goes on when its lease has ended");
    }
  };

  /** Puts a record into the lane of its host; false when that is full. */
  const enqueue = (auth: Authentication, tell: (step: Step) => void): boolean => {
    const key = `${auth.customer}/${auth.id}`;
    if (taken.has(key)) return true;
    const host = hostOf(auth);
    const lane = lanes.get(host) ?? { waiting: [], active: 0 };
    if (lane.waiting.length >= batch) return false;
    lanes.set(host, lane);
    taken.add(key);
    lane.waiting.push(auth);
    advance(host, lane, tell);
    return true;
  };

  const advance = (host: string, lane: Lane, tell: (step: Step) => void): void => {
    while (!stopped && lane.active < maxPerHost && running.size < maxDeliveries) {
      const auth = lane.waiting.shift();
      if (auth === undefined) break;
      lane.active++;
      const work = drain(auth, tell).then(() => {
        lane.active--;
        running.delete(work);
        taken.delete(`${auth.customer}/${auth.id}`);
        if (lane.active === 0 && lane.waiting.length === 0) lanes.delete(host);
        for (const [other, theirs] of lanes) advance(other, theirs, tell);
      });
      running.add(work);
    }
  };

  /** Fetches what is due and starts on it; answers how many records it had not known. */
  const fetchDue = async (tell: (step: Step) => void): Promise<number> => {
    const due = await records.due(budget(), clock.now(), batch + taken.size);
    const fresh = due.filter(({ auth }) => !taken.has(`${auth.customer}/${auth.id}`));
    for (const { auth } of fresh) if (!enqueue(auth, tell)) await postpone(auth);
    return fresh.length;
  };

  const idle = async (): Promise<void> => {
    while (running.size > 0) await Promise.race(running);
  };

  const flush = async (): Promise<FlushReport> => {
    const report = { delivered: 0, failed: 0, dead: 0 };
    const tell = (done: Step) => {
      if (done === "delivered" || done === "failed" || done === "dead") report[done]++;
    };
    while (!stopped && (await fetchDue(tell)) > 0) await idle();
    return report;
  };

  const postpone = async (auth: Authentication): Promise<void> => {
    const until = clock.now() + busyWait;
    await transition(records, budget(), auth.customer, auth.id, (current) => {
      const next = dueEvent(current, clock.now()) === undefined ? undefined : postponed(current, until);
      return { result: undefined, next };
    });
  };

  const poll = () => {
    if (stopped) return;
    stopPolling = clock.after(
      settings.pollInterval,
      () => {
        looking = look().then(poll);
      },
      "background",
    );
  };

  /** One look of the worker: until less than a batch is left to start on. */
  const look = async (): Promise<void> => {
    try {
      while ((await fetchDue(() => undefined)) >= batch && !stopped) if (running.size > 0) await Promise.race(running);
    } catch (err) {
      logger.error({ err }, "the look for due callbacks failed; it is tried again");
    }
  };

  return {
    deliverSoon(auth) {
      if (auth.callbackUrl === undefined || !settings.deliver) return;
      enqueue(auth, () => undefined);
      try {
        settings.waitUntil?.(idle());
      } catch (err) {
        logger.warn({ err }, "callbacks.waitUntil failed; the delivery goes on without it");
      }
    },
    flush,
    start() {
      try {
        poll();
      } catch (err) {
        logger.warn({ err }, "this runtime allows no timer here: callbacks are delivered after the answers, and by flush()");
      }
    },
    async stop() {
      stopped = true;
      stopPolling?.();
      await looking;
      await idle();
    },
    async deadLetters(limit) {
      // Given-up events wait until the end of their records, so they come after everything that is still to be delivered.
      for (let asked = limit; ; asked *= 4) {
        const held = await records.due(budget(), Number.MAX_SAFE_INTEGER, asked);
        const letters = held.flatMap(({ auth }) => deadLettersOf(auth));
        if (letters.length >= limit || held.length < asked) return letters.slice(0, limit);
      }
    },
    async redeliver(customer, id, sequence) {
      const found = await transition(records, budget(), customer, id, (auth) => {
        const next = redelivered(auth, sequence, clock.now());
        return { result: next, next };
      });
      if (found !== undefined) this.deliverSoon(found);
      return found !== undefined;
    },
  };
}

function deadLettersOf({ customer, id, callbackUrl, outbox }: Authentication): DeadLetter[] {
  return outbox.flatMap(({ sequence, status, dead }) =>
    dead === undefined ? [] : [{ customer_uuid: customer, authentication_uuid: id, sequence, callback_url: callbackUrl as string, status, reason: dead }],
  );
}

function hostOf(auth: Authentication): string {
  return auth.callbackUrl === undefined ? "" : new URL(auth.callbackUrl).host;
}
