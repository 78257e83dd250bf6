import type { Conversion } from "../contract/conversion.js";
import { batchTimer } from "../core/batch-timer.js";
import { agedCache, chunksOf } from "../core/collections.js";
import { type StoreDeadline, withTimeout } from "../core/deadline.js";
import type { Weighing } from "../domain/deliver.js";
import type { Account } from "../domain/policy.js";
import { growth } from "../domain/spam-policy.js";
import { day, hour, minute } from "../domain/time.js";
import type { Observed } from "../observability/observed.js";
import type { Tally } from "../ports/store.js";
import { type Parts, partsOf, tallyOf } from "./countries.js";

/** Milliseconds from the first count until it is written to the store. */
const batchFor = 3_000;

/** How long counts of the store are cached. Milliseconds. */
const heardFor = 5 * minute;

/** Cells and customers remembered. */
const most = 20_000;

/** Counters in one call. */
const atATime = 500;

/**
 * "50 messages are requested within seven days and none is confirmed, for at least two hours (`late`: 24)"
 * (docs/contract.md#no-conversion).
 */
const silentAfter = { messages: 50, hours: { reported: 2, late: 24 } };

const daily: Parts = { long: day, parts: growth.days + 1, keptFor: (growth.days + 1) * day };
const hourly: Parts = { long: hour, parts: 25, keptFor: 26 * hour };

const wholeOf = (customer: string) => `${customer}:x:all:`;
const requestedOf = (customer: string) => `${customer}:x:req:`;
const confirmedOf = (customer: string) => `${customer}:x:ok:`;
/** The same by day, for what the hours no longer hold. */
const daysOf = (name: string) => `${name}d:`;

/** A customer's deliveries: days of the last week with messages, and those requested after the last confirmation. */
interface Lately {
  readonly days: number;
  /** Messages of a usual day. */
  readonly usualDay: number;
  readonly requested: number;
  /** Whole hours since the first of them, up to 24. */
  silentHours: number;
}

const sumOf = (counts: readonly number[]) => counts.reduce((sum, one) => sum + one, 0);
const meanOf = (days: readonly number[]) => sumOf(days) / growth.days;

/** Requests by part, newest first, in the parts after the last one with a confirmation. */
function unconfirmed(requested: readonly number[], confirmed: readonly number[]): readonly number[] {
  const last = confirmed.findIndex((one) => one > 0);
  return last < 0 ? requested : requested.slice(0, last);
}

export type Past = ReturnType<typeof createPast>;

/**
 * What deliveries were sent in the last days, by cell and by customer, and how many were confirmed. Each process adds
 * its own counts to the store's tallies every few seconds, and caches what it reads for some minutes.
 */
export function createPast(parts: Observed) {
  const { store, clock, monitor, alarms, settings } = parts;
  let adds = new Map<string, Tally>();
  const timer = batchTimer(parts, batchFor, () => flush().catch(failed));
  const usual = agedCache<number>(clock, most, heardFor);
  const lately = agedCache<Lately>(clock, most, heardFor);

  const flush = async (): Promise<void> => {
    timer.stop();
    const batch = [...adds.values()];
    adds = new Map();
    for (const some of chunksOf(batch, atATime)) await withTimeout(clock, settings.storeTimeout, () => store.tally(some, []));
  };

  const failed = (err: unknown) => monitor.throttledLog.warn({ err }, "deliveries could not be counted; limits that grow with them may be too low");

  const count = (name: string, parts: Parts) => {
    const tally = tallyOf(name, parts, 1, clock.now());
    adds.set(tally.counter, { ...tally, by: tally.by + (adds.get(tally.counter)?.by ?? 0) });
    timer.start();
  };

  /** This process's counts that the store does not have yet. */
  const pending = (name: string, parts: Parts) => partsOf(name, parts, clock.now()).reduce((sum, counter) => sum + (adds.get(counter)?.by ?? 0), 0);

  const read = (deadline: StoreDeadline, names: readonly string[]): Promise<readonly number[]> => deadline.call(() => store.tally([], names));

  const uncounted = (err: unknown): Lately => {
    monitor.throttledLog.warn({ err }, "confirmations could not be counted; whether they have stopped is not known");
    return { days: growth.days, usualDay: 0, requested: 0, silentHours: 0 };
  };

  const latelyOf = async (deadline: StoreDeadline, customer: string): Promise<Lately> => {
    const known = lately.get(customer);
    if (known !== undefined) return known;
    const now = clock.now();
    const [requested, confirmed] = [requestedOf(customer), confirmedOf(customer)];
    const byDay = [wholeOf(customer), daysOf(requested), daysOf(confirmed)].flatMap((name) => partsOf(name, daily, now));
    const byHour = [requested, confirmed].flatMap((name) => partsOf(name, hourly, now));
    const counts = await read(deadline, [...byDay, ...byHour]);
    let from = 0;
    const next = ({ parts }: Parts) => counts.slice(from, (from += parts));
    const past = next(daily).slice(1);
    const days = unconfirmed(next(daily), next(daily));
    const hours = unconfirmed(next(hourly), next(hourly));
    // Whether one of these hours has a confirmation: what was requested before it does not count.
    const isRecent = hours.length < hourly.parts;
    const found: Lately = {
      days: past.filter((one) => one > 0).length,
      usualDay: meanOf(past),
      requested: isRecent ? sumOf(hours) : Math.max(sumOf(hours), sumOf(days)),
      // What was requested before yesterday is older than all hours.
      silentHours: !isRecent && sumOf(days.slice(2)) > 0 ? hourly.parts - 1 : hours.findLastIndex((one) => one > 0),
    };
    lately.set(customer, found);
    return found;
  };

  return {
    /** Counts a message that is sent. `cells`: the names of `pastOf`; none if its user is vouched for. */
    sent(customer: string, cells: readonly string[]) {
      count(wholeOf(customer), daily);
      for (const cell of cells) count(`${cell}:`, daily);
    },

    /** Counts a message that was requested, sent or not. */
    requested(customer: string) {
      count(requestedOf(customer), hourly);
      count(daysOf(requestedOf(customer)), daily);
    },

    confirmed(customer: string) {
      count(confirmedOf(customer), hourly);
      count(daysOf(confirmedOf(customer)), daily);
      const known = lately.get(customer);
      // In place: the other counts must age.
      if (known !== undefined) known.silentHours = 0;
    },

    /** Messages of a usual day in a cell: the mean of the seven days before today. Rejects with `unavailable`. */
    async usualDay(deadline: StoreDeadline, cell: string): Promise<number> {
      const known = usual.get(cell);
      if (known !== undefined) return known;
      const counts = await read(deadline, partsOf(`${cell}:`, daily, clock.now()).slice(1));
      const mean = meanOf(counts);
      usual.set(cell, mean);
      return mean;
    },

    /**
     * How the rules treat a delivery. Reported confirmations that stop coming count as unknown, if there is a past
     * (docs/contract.md#no-conversion). If the counts cannot be read, confirmations count as usual, and with an unknown
     * conversion it rejects with `unavailable`.
     */
    async weighing(deadline: StoreDeadline, { customer }: Account, conversion: Conversion): Promise<Weighing> {
      const read = latelyOf(deadline, customer);
      const { days, usualDay, silentHours, requested } = await (conversion === "unknown" ? read : read.catch(uncounted));
      if (conversion === "unknown") return { grows: true, observes: days < growth.enoughDays, usualDay };
      const all = requested + pending(requestedOf(customer), hourly);
      const isSilent = silentHours >= silentAfter.hours[conversion] && all >= silentAfter.messages;
      if (isSilent) alarms.raise(customer, { alarm: "no_conversion" }, all, silentAfter.messages);
      if (isSilent && days >= growth.enoughDays) return { grows: true, observes: false, usualDay };
      return { grows: false, observes: conversion === "late" && days < growth.enoughLateDays, usualDay };
    },

    /** Writes pending counts to the store. */
    close: () => flush().catch(failed),
  };
}
