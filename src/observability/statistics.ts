import type * as z from "zod";
import type { Channel } from "../contract/channel.js";
import type { StatsRequest } from "../contract/operator.js";
import { batchTimer } from "../core/batch-timer.js";
import { chunksOf } from "../core/collections.js";
import type { Core } from "../core/core.js";
import { withTimeout } from "../core/deadline.js";
import type { Way } from "../domain/authentication.js";
import type { Account } from "../domain/policy.js";
import { moneyUnit } from "../domain/quota.js";
import { day, hour, timestamp } from "../domain/time.js";
import { VerifierError } from "../errors.js";
import type { Tally } from "../ports/store.js";

/** A customer's messages by hour, country, route and channel. */
export interface StatsRow {
  /** Start of the hour. ISO 8601 timestamp. */
  readonly hour: string;
  /** ISO 3166-1 alpha-2; absent for non-geographic numbers. */
  readonly country?: string;
  /** Absent if the sender does not name routes. */
  readonly route?: string;
  /** Absent: SMS. */
  readonly channel?: Channel;
  /** Messages that were, or may have been, handed to a carrier. */
  readonly sends: number;
  /** Correct codes entered. */
  readonly verified: number;
  /** What the messages cost, in the unit of the routes' prices; 0 if the sender gives no prices. */
  readonly cost: number;
}

/** Messages blocked by a rule, from creates and retries. */
export interface RefusedRow extends Pick<StatsRow, "hour" | "country"> {
  /** The rule's name, as in `explain`. */
  readonly rule: string;
  readonly refused: number;
}

export interface Stats {
  /** Whole hours: `from` rounded down, `to` rounded up. ISO 8601 timestamps. */
  readonly from: string;
  readonly to: string;
  readonly sends: number;
  readonly verified: number;
  readonly refused: number;
  readonly cost: number;
  /** In chronological order, without rows of zeros. */
  readonly messages: readonly StatsRow[];
  readonly refusals: readonly RefusedRow[];
}

/** Counts in the background for dashboards. */
export interface Statistics {
  /** `price`: in the unit of the routes' prices. */
  sent(customer: string, country: string | undefined, way: Way, price: number | undefined): void;
  verified(customer: string, country: string | undefined, way: Way | undefined): void;
  refused(customer: string, country: string | undefined, rule: string): void;
  /**
   * Returns the counts of all processes; those of other processes may lag by two seconds. Rejects with `unavailable`.
   */
  read(account: Account, request: z.output<typeof StatsRequest>): Promise<Stats>;
  /** Writes the last batch. */
  close(): Promise<void>;
}

/** Milliseconds from the first count of a batch until it is written. */
const batchFor = 2_000;

/** Rows in a batch; further ones are not counted. */
const mostRows = 10_000;

/** Counters in one call. */
const atATime = 1_000;

/** The counts of an hour under one label. `cost`: in millionths. */
type Row = Record<Field, number>;
type Field = "sends" | "verified" | "cost" | "refused";

/** The letter of each field in counter names. */
const letters: Readonly<Record<Field, string>> = { sends: "s", verified: "v", cost: "c", refused: "r" };
const fields = Object.keys(letters) as readonly Field[];
const fieldsOf = (label: string): readonly Field[] => (label.startsWith("r/") ? ["refused"] : ["sends", "verified", "cost"]);
const newRow = (): Row => ({ sends: 0, verified: 0, cost: 0, refused: 0 });

/** `m`: messages of a route. `r`: blocked by a rule. The customer's UUID is the only id in these names. */
const labelOf = (kind: "m" | "r", country: string, name: string, channel?: Channel) =>
  `${kind}/${country}/${encodeURIComponent(name.toWellFormed())}${channel === undefined ? "" : `/${channel}`}`;
const wayOf = (country: string, { route = "", channel }: Way = {}) => labelOf("m", country, route, channel);
const counterOf = (customer: string, hourAt: number, field: Field, label: string) => `${customer}:t:${(hourAt / hour).toString(36)}:${letters[field]}:${label}`;
/** The window that lists the labels of a customer's day. */
const labelsOf = (customer: string, dayAt: number) => `${customer}:t:${(dayAt / day).toString(36)}`;

/** By customer, then by label. */
type Batch = Map<string, Map<string, Row>>;

/**
 * Sends, verifications, blocked messages and cost by hour, as tallies (docs/contract.md#tallies), written in batches. A
 * batch is lost if its process dies or the store does not accept it in time: a repeated write might count twice.
 */
export function createStatistics(core: Core): Statistics {
  const { store, clock, logger, newDeadline, settings } = core;
  const { statisticsKept: keptFor, storeTimeout } = settings;
  if (keptFor === undefined) return switchedOff;
  let batch: Batch = new Map();
  let rows = 0;
  let hourAt = 0;
  const timer = batchTimer(core, batchFor, () => flush());
  let failing = false;
  let writing: Promise<void> = Promise.resolve();
  /** Labels that this process has listed on `listedDay`, with their customers. */
  let listed = new Set<string>();
  let listedDay = 0;

  const write = async (written: Batch, at: number): Promise<void> => {
    const now = clock.now();
    const dayAt = Math.floor(at / day) * day;
    if (dayAt !== listedDay) [listed, listedDay] = [new Set(), dayAt];
    // Constant for a whole hour, so that each counter's end is set only once.
    const keepUntil = at + hour + keptFor;
    const adds: Tally[] = [];
    for (const [customer, byLabel] of written) {
      const unlisted = [...byLabel.keys()].filter((label) => !listed.has(customer + label));
      const claims = unlisted.map((label) => ({ window: labelsOf(customer, dayAt), member: label, since: now, now, keepUntil: keepUntil + day }));
      if (claims.length > 0) await withTimeout(clock, storeTimeout, () => store.commit({ claims, counts: [] }));
      for (const label of unlisted) listed.add(customer + label);
      for (const [label, row] of byLabel)
        for (const field of fields) if (row[field] > 0) adds.push({ counter: counterOf(customer, at, field, label), by: row[field], now, keepUntil });
    }
    for (const some of chunksOf(adds, atATime)) await withTimeout(clock, storeTimeout, () => store.tally(some, []));
  };

  const flush = (): Promise<void> => {
    timer.stop();
    if (rows === 0) return writing;
    const [written, at] = [batch, hourAt];
    batch = new Map();
    rows = 0;
    const done = () => void (failing = false);
    const failed = (err: unknown) => {
      if (!failing) logger.warn({ err }, "sent, verified and blocked messages could not be counted for the statistics");
      failing = true;
    };
    writing = writing.then(() => write(written, at)).then(done, failed);
    return writing;
  };

  const count = (customer: string, label: string, field: Field, by = 1): void => {
    const now = clock.now();
    if (now - hourAt >= hour || now < hourAt) {
      void flush();
      hourAt = Math.floor(now / hour) * hour;
    }
    const byLabel = batch.get(customer) ?? new Map<string, Row>();
    let row = byLabel.get(label);
    if (row === undefined) {
      if (rows >= mostRows) return;
      rows++;
      byLabel.set(label, (row = newRow()));
      batch.set(customer, byLabel);
    }
    row[field] += by;
    timer.start();
  };

  return {
    sent(customer, country = "", way, price = 0) {
      const label = wayOf(country, way);
      count(customer, label, "sends");
      count(customer, label, "cost", Math.round(price * moneyUnit));
    },
    verified: (customer, country = "", way) => count(customer, wayOf(country, way), "verified"),
    refused: (customer, country = "", rule) => count(customer, labelOf("r", country, rule), "refused"),

    async read({ customer }, request) {
      const from = Math.floor(request.from / hour) * hour;
      const to = Math.ceil(request.to / hour) * hour;
      const most = Math.floor(keptFor / day) + 1;
      if (request.to - request.from > most * day)
        throw new VerifierError("bad_request", `from and to may be at most ${most} days apart: statistics are kept for statistics.keep seconds.`);
      await flush();
      const call = <T>(work: () => Promise<T>) => newDeadline().call(work);
      const wanted: Omit<Found, "row">[] = [];
      for (let dayAt = Math.floor(from / day) * day; dayAt < to; dayAt += day) {
        const labels = [...(await call(() => store.members(labelsOf(customer, dayAt), mostRows)))].sort();
        for (let at = Math.max(from, dayAt); at < Math.min(to, dayAt + day); at += hour) wanted.push(...labels.map((label) => ({ at, label })));
      }
      const found: Found[] = [];
      for (const some of chunksOf(wanted, atATime / fields.length)) {
        const counters = some.flatMap(({ at, label }) => fieldsOf(label).map((field) => counterOf(customer, at, field, label)));
        const counts = (await call(() => store.tally([], counters))).values();
        for (const { at, label } of some) {
          const row = newRow();
          for (const field of fieldsOf(label)) row[field] = counts.next().value ?? 0;
          if (fields.some((field) => row[field] > 0)) found.push({ at, label, row });
        }
      }
      return statsOf(from, to, found);
    },

    close: flush,
  };
}

interface Found {
  readonly at: number;
  readonly label: string;
  readonly row: Row;
}

const switchedOff: Statistics = {
  sent() {},
  verified() {},
  refused() {},
  read: () => Promise.reject(new VerifierError("bad_request", "No statistics are kept: option statistics is false.")),
  async close() {},
};

function statsOf(from: number, to: number, found: readonly Found[]): Stats {
  const messages: StatsRow[] = [];
  const refusals: RefusedRow[] = [];
  const total = newRow();
  for (const { at, label, row } of found) {
    const [kind, country, encoded = "", channel] = label.split("/");
    const name = decodeURIComponent(encoded);
    const of = { hour: timestamp(at), ...(country && { country }) };
    for (const field of fields) total[field] += row[field];
    if (kind === "r") refusals.push({ ...of, rule: name, refused: row.refused });
    else
      messages.push({
        ...of,
        ...(name && { route: name }),
        ...(channel !== undefined && { channel: channel as Channel }),
        sends: row.sends,
        verified: row.verified,
        cost: row.cost / moneyUnit,
      });
  }
  return { from: timestamp(from), to: timestamp(to), ...total, cost: total.cost / moneyUnit, messages, refusals };
}
