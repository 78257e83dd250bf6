import { afterTurn } from "../core/deadline.js";
import { type Decided, update } from "../core/records/transact.js";
import type { Authentication } from "../domain/authentication.js";
import { deadEvent, deliveryMargin, dueEvent, fallbackTime, leaseTime, needsWork, redelivered, withoutOldCode } from "../domain/delivery.js";
import { settleOverdue } from "../domain/send.js";
import { second } from "../domain/time.js";
import { listing } from "./dead-letters.js";
import { type Delivery, type DeliveryParts, deliver } from "./deliver.js";
import { createSchedule, type Job } from "./schedule.js";

/** The events that a flush handled, by outcome. */
export interface FlushReport {
  readonly delivered: number;
  /** Will be retried. */
  readonly failed: number;
  /** Given up; see `deadLetters`. */
  readonly dead: number;
}

/** Records per lease, and leases per poll. */
const batch = 256;
const batchesPerLook = 16;

/** How long `stop` waits for posts in progress, in milliseconds: `docker stop` gives a process ten seconds. */
const stopTime = 5 * second;

/** Records that may be queued. */
const waitingRoom = 10_000;

/**
 * Work on a record that this process holds, queued or in progress. On its `message`: a fallback, or what a crash left.
 * On its `callback`: an event to post. Messages have places of their own, since receivers may hang.
 */
interface Work extends Job {
  readonly on: "message" | "callback";
  auth: Authentication;
  leaseUntil: number;
  running: boolean;
  /** Whether this process received it again while working on it; no other process holds it then. */
  again: boolean;
  /** Settles when the record is released. */
  readonly over: Promise<void>;
  readonly finish: () => void;
}

export type Outbox = ReturnType<typeof createOutbox>;

/** Delivers the events in the records' outboxes. */
export function createOutbox(parts: DeliveryParts) {
  const { records, clock, logger, settings, monitor, newDeadline, inBackground } = parts;
  const { total, perHost } = settings.callbackConcurrency;
  const schedules = {
    message: createSchedule<Work>({ total, perHost: total, waiting: waitingRoom }),
    callback: createSchedule<Work>({ total, perHost, waiting: waitingRoom }),
  };
  const works = new Map<string, Work>();
  /** Reports of the flushes in progress. */
  const reports = new Set<Record<Delivery["outcome"], number>>();
  /** Searches for due records in progress. */
  const searches = new Set<Promise<number>>();
  let stopPolling: (() => void) | undefined;
  let stopped = false;
  /** Each ends the wait for a post in progress. */
  const interruptions = new Set<() => void>();
  let interrupted = false;

  /** Settles the record's overdue send and erases a code that was kept too long. */
  const tidied = (auth: Authentication, now: number) => withoutOldCode(settleOverdue(auth, settings.policy, now), now);

  const isFallbackDue = (auth: Authentication, now: number) => (fallbackTime(auth) ?? Number.POSITIVE_INFINITY) <= now;

  /** Whether the work that is due is on the record's message. */
  const isOfMessage = (auth: Authentication, now: number) => tidied(auth, now) !== auth || isFallbackDue(auth, now);

  /** Tidies a record, or sends its fallback; returns the record, `undefined` if it is gone. */
  const settle = async (auth: Authentication): Promise<Authentication | undefined> => {
    const now = clock.now();
    const tidy = (one: Authentication): Decided<Authentication> => {
      const next = tidied(one, now);
      return { result: next, next: next === one ? undefined : next };
    };
    const known = tidied(auth, now) === auth ? auth : await update(records, newDeadline(), auth.customer, auth.id, tidy);
    return known && isFallbackDue(known, now) ? parts.fallBack(known) : known;
  };

  /** Posts the event that is due; `undefined` if there is none, or this worker may not continue. */
  const post = async (auth: Authentication): Promise<Delivery | undefined> => {
    const event = interrupted ? undefined : dueEvent(auth, clock.now());
    const delivery = event && (await deliver(parts, auth, event, unlessInterrupted));
    if (delivery !== undefined) for (const report of reports) report[delivery.outcome]++;
    return delivery;
  };

  /** The result of a post; `undefined` if `stop` does not wait for it: it is repeated when the lease ends. */
  const unlessInterrupted = async <T>(post: Promise<T>): Promise<T | undefined> => {
    let interrupt = () => {};
    const interruption = new Promise<undefined>((resolve) => (interrupt = () => resolve(undefined)));
    interruptions.add(interrupt);
    try {
      return await Promise.race([post, interruption]);
    } finally {
      interruptions.delete(interrupt);
    }
  };

  /** Takes a record held until `leaseUntil`. If the queue is full, the record returns when its lease ends. */
  const take = (auth: Authentication, leaseUntil: number): Work | undefined => {
    const now = clock.now();
    const on = isOfMessage(auth, now) ? "message" : "callback";
    for (const known of [works.get(keyOf("callback", auth)), works.get(keyOf(on, auth))]) {
      if (known === undefined) continue;
      // Events are numbered: the record with more events is the newer one.
      if (known.running ? auth.events > known.auth.events : auth.events >= known.auth.events) known.auth = auth;
      known.leaseUntil = Math.max(known.leaseUntil, leaseUntil);
      known.again = known.running;
      if (known.on === on) return known;
    }
    if (stopped || !needsWork(auth, now)) return undefined;
    let finish = () => {};
    const over = new Promise<void>((resolve) => (finish = resolve));
    const host = on === "callback" ? hostOf(auth) : auth.customer;
    const work: Work = { on, customer: auth.customer, host, auth, leaseUntil, running: false, again: false, over, finish };
    if (!schedules[on].add(work)) return undefined;
    works.set(keyOf(on, auth), work);
    return work;
  };

  /** Starts as many jobs as the limits allow. */
  const advance = (): void => {
    for (const schedule of Object.values(schedules))
      for (let work = schedule.next(); work !== undefined; work = schedule.next()) {
        if (!stopped && work.leaseUntil - clock.now() >= deliveryMargin) {
          void run(work).then(advance);
        } else {
          schedule.end(work);
          works.delete(keyOf(work.on, work.auth));
          work.finish();
        }
      }
  };

  const run = async (work: Work): Promise<void> => {
    work.running = true;
    work.again = false;
    const { on, auth } = work;
    let after: Authentication | undefined;
    let responded: boolean | undefined;
    try {
      const delivery = on === "callback" ? await post(auth) : undefined;
      after = on === "callback" ? delivery?.auth : await settle(auth);
      // Without a delivery nothing hung.
      responded = delivery?.responded ?? true;
    } catch (err) {
      const fields = { err, customer_uuid: auth.customer, authentication_uuid: auth.id };
      monitor.throttledLog.error(fields, "processing a record's callbacks failed; it continues when its lease has ended");
    }
    schedules[on].end(work, responded);
    works.delete(keyOf(on, auth));
    const latest = after !== undefined && after.events >= work.auth.events ? after : work.auth;
    // A process that delivers holds the record through the write that settled this event. Any other process continues
    // with its next lease, which may already have arrived. What could not be done to a message waits for the next lease.
    const continues = after !== undefined && (on === "message" ? !isOfMessage(latest, clock.now()) : settings.deliver || work.again);
    const next = continues ? take(latest, settings.deliver ? clock.now() + leaseTime : work.leaseUntil) : undefined;
    if (next === undefined) work.finish();
    else void next.over.then(work.finish);
  };

  /** Leases records due at `until` in batches and starts on them. Returns how many records the store handed out. */
  const look = (until: number): Promise<number> => {
    const search = leaseDue(until).finally(() => searches.delete(search));
    searches.add(search);
    return search;
  };

  const leaseDue = async (until: number): Promise<number> => {
    let all = 0;
    for (let round = 0; round < batchesPerLook && !stopped && schedules.callback.waiting() < waitingRoom; round++) {
      const leaseUntil = clock.now() + leaseTime;
      const leased = await records.lease(newDeadline(), until, batch, leaseUntil);
      for (const { auth } of leased.held) take(auth, leaseUntil);
      advance();
      all += leased.all;
      if (leased.all < batch) break;
    }
    return all;
  };

  /** Waits for searches in progress, then for the records that this process holds. */
  const idle = async (): Promise<void> => {
    await Promise.allSettled(searches);
    await Promise.all([...works.values()].map(({ over }) => over));
  };

  /** Delivers what is due, settles what a crash left. Reports all deliveries of this process until it ends. */
  const flush = async (): Promise<FlushReport> => {
    const report = { delivered: 0, failed: 0, dead: 0 };
    const until = clock.now();
    reports.add(report);
    try {
      for (let leased = 1; leased > 0 && !stopped; ) {
        leased = await look(until);
        await idle();
      }
      return report;
    } finally {
      reports.delete(report);
    }
  };

  const poll = () => {
    if (stopped) return;
    stopPolling = clock.after(
      settings.pollInterval,
      () => {
        void look(clock.now())
          .catch((err) => monitor.throttledLog.error({ err }, "the search for due callbacks failed; it will be retried"))
          .then(poll);
      },
      "background",
    );
  };

  /** Starts what is due on a record in the background, if this process has a worker. `auth`: as just written. */
  const workSoon = (auth: Authentication): void => {
    if (!settings.deliver) return;
    const work = take(auth, clock.now() + leaseTime);
    advance();
    if (work !== undefined) inBackground(work.over);
  };

  return {
    workSoon,
    flush,
    /** Polls for due records until `stop`. */
    start(): void {
      try {
        poll();
      } catch (err) {
        logger.warn({ err }, "this runtime allows no timer here: callbacks are delivered after the responses, and by flush()");
      }
    },
    /** Stops polling, waits for deliveries in progress for up to `stopTime`, and closes the connections. */
    async stop(): Promise<void> {
      stopped = true;
      stopPolling?.();
      advance();
      const cancel = afterTurn(clock, stopTime, () => {
        interrupted = true;
        for (const interrupt of interruptions) interrupt();
      });
      await idle();
      cancel();
      await parts.callbackSender.close?.();
    },
    /** Records that this process has queued or is working on. */
    waiting: () => works.size,
    /** Queues a given-up event again. Returns false if it does not exist. */
    async redeliver(customer: string, id: string, sequence: number): Promise<boolean> {
      const found = await update(records, newDeadline(), customer, id, (auth): Decided<Authentication | undefined> => {
        const event = deadEvent(auth, sequence);
        const next = redelivered(auth, sequence, clock.now());
        return { result: next, next, ...(event !== undefined && { claims: [{ ...listing(auth, event), out: true }] }) };
      });
      if (found !== undefined) workSoon(found);
      return found !== undefined;
    },
  };
}

function keyOf(on: Work["on"], { customer, id }: Authentication): string {
  return `${on} ${customer}/${id}`;
}

function hostOf({ callbackUrl }: Authentication): string {
  return callbackUrl !== undefined && URL.canParse(callbackUrl) ? new URL(callbackUrl).host : "";
}
