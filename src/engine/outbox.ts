import { randomUUID } from "node:crypto";
import type { Authentication, OutboxEvent } from "../domain/authentication.js";
import { type DeliveryAnswer, deliveryTimeout, dueEvent, isOverdue, postponed, redelivered, settleDelivery, withLease } from "../domain/delivery.js";
import { settleSend } from "../domain/send.js";
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

/** Records fetched at once. */
const batch = 100;
/** Deliveries at the same time: in all, and to one host, "a slow or hostile receiver never slows others". */
const maxDeliveries = 32;
const maxPerHost = 4;
/** How far a record is moved for a host that is busy. Milliseconds. */
const busyWait = 5_000;

type Step = "delivered" | "failed" | "dead" | "settled" | "idle";

export function createOutbox(parts: OutboxParts): Outbox {
  const { records, clock, logger, settings } = parts;
  const running = new Set<Promise<unknown>>();
  const perHost = new Map<string, number>();
  let stopPolling: (() => void) | undefined;
  let stopped = false;

  const budget = () => storeBudget(clock, logger, settings.storeTimeout);

  /** One step on one record: settle what is overdue, or claim an event and deliver it. */
  const step = async (customer: string, id: string): Promise<Step> => {
    const holder = randomUUID();
    const now = clock.now();
    const claimed = await transition(records, budget(), customer, id, (auth): Decided<{ auth: Authentication; event?: OutboxEvent } | undefined> => {
      if (isOverdue(auth, now)) {
        const next = settleSend(auth, auth.attempts, "unknown", settings.policy, now) ?? withoutDeadline(auth);
        return { result: { auth: next }, next };
      }
      const event = dueEvent(auth, now);
      if (event === undefined) return { result: undefined };
      const next = withLease(auth, holder, now);
      return { result: { auth: next, event }, next };
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
    const fields = { authentication_uuid: auth.id, sequence: event.sequence, tries: left.tries, reason: "status" in answer ? `answered ${answer.status}` : answer.failed };
    if (left.dead === undefined) logger.warn(fields, "a callback could not be delivered; it will be tried again");
    else logger.error({ ...fields, reason: left.dead }, "a callback was given up");
    return left.dead === undefined ? "failed" : "dead";
  };

  /** Takes a place for a delivery to `host`; false when all are taken. */
  const enter = (host: string): boolean => {
    const busy = perHost.get(host) ?? 0;
    if (busy >= maxPerHost) return false;
    perHost.set(host, busy + 1);
    return true;
  };
  const leave = (host: string) => {
    const busy = (perHost.get(host) ?? 1) - 1;
    if (busy === 0) perHost.delete(host);
    else perHost.set(host, busy);
  };

  /** Everything due on one record, one event after another. */
  const drain = async (customer: string, id: string, host: string, tell: (step: Step) => void): Promise<void> => {
    try {
      for (let done = await step(customer, id); done !== "idle"; done = await step(customer, id)) {
        tell(done);
        if (done === "failed") return;
      }
    } catch (err) {
      logger.error({ err, authentication_uuid: id }, "the work on a record's callbacks broke off; it goes on when its lease has ended");
    } finally {
      leave(host);
    }
  };

  const track = (work: Promise<unknown>) => {
    running.add(work);
    work.finally(() => running.delete(work)).catch(() => undefined);
  };

  const flush = async (): Promise<FlushReport> => {
    const report = { delivered: 0, failed: 0, dead: 0 };
    const tell = (done: Step) => {
      if (done === "delivered" || done === "failed" || done === "dead") report[done]++;
    };
    for (;;) {
      const due = await records.due(budget(), clock.now(), batch);
      const mine: Promise<void>[] = [];
      for (const { auth } of due) {
        while (running.size >= maxDeliveries) await Promise.race(running);
        const host = hostOf(auth);
        if (enter(host)) {
          const work = drain(auth.customer, auth.id, host, tell);
          track(work);
          mine.push(work);
        } else {
          await postpone(auth);
        }
      }
      await Promise.all(mine);
      if (due.length < batch) return report;
    }
  };

  const postpone = async (auth: Authentication): Promise<void> => {
    const until = clock.now() + busyWait;
    await transition(records, budget(), auth.customer, auth.id, (current) => {
      const next = dueEvent(current, clock.now()) === undefined ? undefined : postponed(current, until);
      return { result: undefined, next };
    });
  };

  const poll = () => {
    stopPolling = clock.after(
      settings.pollInterval,
      () => {
        const work = flush().catch((err) => logger.error({ err }, "the poll for due callbacks failed; it is tried again"));
        track(work);
        work.then(() => {
          if (!stopped) poll();
        });
      },
      "background",
    );
  };

  return {
    deliverSoon(auth) {
      if (auth.callbackUrl === undefined || !settings.deliver) return;
      const host = hostOf(auth);
      if (running.size >= maxDeliveries || !enter(host)) return;
      const work = drain(auth.customer, auth.id, host, () => undefined);
      track(work);
      settings.waitUntil?.(work);
    },
    flush,
    start: poll,
    async stop() {
      stopped = true;
      stopPolling?.();
      await Promise.allSettled(running);
    },
    async deadLetters(limit) {
      const held = await records.due(budget(), Number.MAX_SAFE_INTEGER, limit);
      return held.flatMap(({ auth }) =>
        auth.outbox.flatMap(({ sequence, status, dead }) =>
          dead === undefined
            ? []
            : [{ customer_uuid: auth.customer, authentication_uuid: auth.id, sequence, callback_url: auth.callbackUrl as string, status, reason: dead }],
        ),
      );
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

/** A deadline of a send that is settled already. */
function withoutDeadline({ settleBy, ...auth }: Authentication): Authentication {
  return auth;
}

function hostOf(auth: Authentication): string {
  return auth.callbackUrl === undefined ? "" : new URL(auth.callbackUrl).host;
}
