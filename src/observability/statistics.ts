import type * as z from "zod";
import type { StatsRequest } from "../contract/operator.js";
import type { Core } from "../core/core.js";
import { withTimeout } from "../core/deadline.js";
import type { Account } from "../domain/account.js";
import { moneyUnit } from "../domain/quota.js";
import { day, hour, timestamp } from "../domain/time.js";
import { VerifierError } from "../errors.js";
import type { Tally } from "../ports/store.js";

/** What became of a customer's messages, for each hour, country and route. */
export interface StatsRow {
  /** When the hour began. ISO 8601 timestamp. */
  readonly hour: string;
  /** ISO 3166-1 alpha-2; absent for non-geographic numbers. */
  readonly country?: string;
  /** Where the sender names one. */
  readonly route?: string;
  /** Messages that were, or may have been, handed to a carrier. */
  readonly sends: number;
  /** Codes that were entered. */
  readonly verified: number;
  /** What the messages cost, in the unit of the routes' prices; 0 where the sender tells none. */
  readonly cost: number;
}

/** Messages that a rule refused, creates and retries. */
export interface RefusedRow extends Pick<StatsRow, "hour" | "country"> {
  /** As `explain` names it. */
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
  /** In the order of time; hours, countries and routes without anything are left out. */
  readonly messages: readonly StatsRow[];
  readonly refusals: readonly RefusedRow[];
}

/** Counts beside the requests what a console draws. */
export interface Statistics {
  /** `price`: in the unit of the routes' prices. */
  sent(customer: string, country: string | undefined, route: string | undefined, price: number | undefined): void;
  verified(customer: string, country: string | undefined, route: string | undefined): void;
  refused(customer: string, country: string | undefined, rule: string): void;
  /** What all processes have counted; of what others count now, up to two seconds are missing. Rejects with `unavailable`. */
  read(account: Account, request: z.output<typeof StatsRequest>): Promise<Stats>;
  /** Tells the store what is not told yet. */
  close(): Promise<void>;
}

/** From the first of a batch until the store is told of it, in milliseconds. */
const batchFor = 2_000;

/** Rows in a batch; what comes beyond is not counted. */
const mostRows = 10_000;

/** Counters and claims in one call. */
const atATime = 1_000;

/** `m`: messages of a route. `r`: refused by a rule. */
type Kind = "m" | "r";

/** One row of an hour. */
interface Row {
  sends: number;
  verified: number;
  /** In millionths. */
  cost: number;
  refused: number;
}

const fields = ["sends", "verified", "cost", "refused"] as const satisfies readonly (keyof Row)[];

/** What a counter of each field is called. */
const letters: Readonly<Record<keyof Row, string>> = { sends: "s", verified: "v", cost: "c", refused: "r" };

/** By customer, kind, country and route or rule: nothing is made for a row that is there. */
type Batch = Map<string, Map<Kind, Map<string, Map<string, Row>>>>;

/** Counters are named by customer, hour, country and route or rule, and listed in a window of the customer's day: never by a number, an id or an address. */
const counterOf = (customer: string, hourAt: number, field: keyof Row, label: string) =>
  `${customer}:t:${(hourAt / hour).toString(36)}:${letters[field]}:${label}`;
const listOf = (customer: string, dayAt: number) => `${customer}:t:${(dayAt / day).toString(36)}`;
const labelOf = (kind: Kind, country: string, name: string) => `${kind}/${country}/${encodeURIComponent(name)}`;

/**
 * Sends, verified, refused by rule, cost, by country, route and hour, out of the tallies (docs/contract.md#tallies). Counted in this process and told in batches, two seconds after the first of each: a process that dies loses its last batch, and one that
 * the store does not take in time is lost too, for told again it might count twice.
 */
export function createStatistics({ store, clock, logger, newDeadline, settings }: Core): Statistics {
  const { statisticsKept: keptFor, storeTimeout } = settings;
  if (keptFor === undefined) return switchedOff;
  let batch: Batch = new Map();
  let rows = 0;
  let hourAt = 0;
  let cancel: (() => void) | undefined;
  let failing = false;
  let telling: Promise<void> = Promise.resolve();
  /** Labels that this process has listed, of `listedDay`. */
  let listed = new Set<string>();
  let listedDay = 0;

  const tell = async (told: Batch, at: number): Promise<void> => {
    const now = clock.now();
    const dayAt = Math.floor(at / day) * day;
    if (dayAt !== listedDay) [listed, listedDay] = [new Set(), dayAt];
    // The same for a whole hour: each counter's end then has to be set only once.
    const expiry = { now, keepUntil: at + hour + keptFor };
    const adds: Tally[] = [];
    for (const [customer, kinds] of told) {
      const labels = [...kinds].flatMap(([kind, countries]) =>
        [...countries].flatMap(([country, names]) => [...names].map(([name, row]) => ({ label: labelOf(kind, country, name), row }))),
      );
      const fresh = labels.filter(({ label }) => !listed.has(customer + label));
      const claims = fresh.map(({ label }) => ({ window: listOf(customer, dayAt), member: label, since: now, ...expiry, keepUntil: expiry.keepUntil + day }));
      if (claims.length > 0) await withTimeout(clock, storeTimeout, () => store.commit({ claims, counts: [] }));
      for (const { label } of fresh) listed.add(customer + label);
      for (const { label, row } of labels)
        for (const field of fields) if (row[field] > 0) adds.push({ counter: counterOf(customer, at, field, label), by: row[field], ...expiry });
    }
    for (let from = 0; from < adds.length; from += atATime) await withTimeout(clock, storeTimeout, () => store.tally(adds.slice(from, from + atATime), []));
  };

  const flush = (): Promise<void> => {
    cancel?.();
    cancel = undefined;
    if (rows === 0) return telling;
    const [told, at] = [batch, hourAt];
    batch = new Map();
    rows = 0;
    telling = telling
      .then(() => tell(told, at))
      .then(
        () => void (failing = false),
        (err: unknown) => {
          if (!failing) logger.warn({ err }, "what was sent, verified and refused could not be counted for the statistics");
          failing = true;
        },
      );
    return telling;
  };

  const rowOf = (customer: string, kind: Kind, country: string, name: string): Row | undefined => {
    const now = clock.now();
    if (now - hourAt >= hour || now < hourAt) {
      void flush();
      hourAt = Math.floor(now / hour) * hour;
    }
    const names = within(within(within(batch, customer), kind), country);
    const known = names.get(name);
    if (known !== undefined) return known;
    if (rows >= mostRows) return undefined;
    rows++;
    const row: Row = { sends: 0, verified: 0, cost: 0, refused: 0 };
    names.set(name, row);
    cancel ??= clock.after(batchFor, () => void flush(), "background");
    return row;
  };

  const read: Statistics["read"] = async ({ customer }, request) => {
    const from = Math.floor(request.from / hour) * hour;
    const to = Math.ceil(request.to / hour) * hour;
    if (to - from > keptFor + day)
      throw new VerifierError(
        "bad_request",
        `from and to may be at most ${Math.floor(keptFor / day) + 1} days apart: statistics are kept for statistics.keep seconds.`,
      );
    await flush();
    const call = <T>(work: () => Promise<T>) => newDeadline().call(work);
    const wanted: { readonly at: number; readonly label: string; readonly field: keyof Row }[] = [];
    for (let dayAt = Math.floor(from / day) * day; dayAt < to; dayAt += day) {
      const labels = await call(() => store.members(listOf(customer, dayAt), mostRows));
      for (let at = Math.max(from, dayAt); at < Math.min(to, dayAt + day); at += hour)
        for (const label of labels) for (const field of fields) if ((field === "refused") === label.startsWith("r/")) wanted.push({ at, label, field });
    }
    const found = new Map<string, { readonly at: number; readonly label: string; readonly row: Row }>();
    for (let first = 0; first < wanted.length; first += atATime) {
      const some = wanted.slice(first, first + atATime);
      const counts = await call(() =>
        store.tally(
          [],
          some.map(({ at, label, field }) => counterOf(customer, at, field, label)),
        ),
      );
      for (const [place, { at, label, field }] of some.entries()) {
        const count = counts[place] ?? 0;
        if (count === 0) continue;
        const key = `${at} ${label}`;
        const entry = found.get(key) ?? { at, label, row: { sends: 0, verified: 0, cost: 0, refused: 0 } };
        found.set(key, entry);
        entry.row[field] = count;
      }
    }
    return statsOf(
      from,
      to,
      [...found.values()].sort((a, b) => a.at - b.at || (a.label < b.label ? -1 : 1)),
    );
  };

  return {
    sent(customer, country = "", route = "", price = 0) {
      const row = rowOf(customer, "m", country, route);
      if (row === undefined) return;
      row.sends++;
      row.cost += Math.round(price * moneyUnit);
    },
    verified(customer, country = "", route = "") {
      const row = rowOf(customer, "m", country, route);
      if (row !== undefined) row.verified++;
    },
    refused(customer, country = "", rule) {
      const row = rowOf(customer, "r", country, rule);
      if (row !== undefined) row.refused++;
    },
    read,
    close: flush,
  };
}

const none = () => undefined;

const switchedOff: Statistics = {
  sent: none,
  verified: none,
  refused: none,
  read: async () => {
    throw new VerifierError("bad_request", "No statistics are kept: option statistics is false.");
  },
  close: async () => undefined,
};

function within<K, Inner, V>(map: Map<K, Map<Inner, V>>, key: K): Map<Inner, V> {
  let inner = map.get(key);
  if (inner === undefined) map.set(key, (inner = new Map()));
  return inner;
}

function statsOf(from: number, to: number, found: readonly { readonly at: number; readonly label: string; readonly row: Row }[]): Stats {
  const messages: StatsRow[] = [];
  const refusals: RefusedRow[] = [];
  const total: Row = { sends: 0, verified: 0, cost: 0, refused: 0 };
  for (const { at, label, row } of found) {
    const [kind, country = "", encoded = ""] = label.split("/");
    const name = decodeURIComponent(encoded);
    const of = { hour: timestamp(at), ...(country !== "" && { country }) };
    for (const field of fields) total[field] += row[field];
    if (kind === "r") refusals.push({ ...of, rule: name, refused: row.refused });
    else messages.push({ ...of, ...(name !== "" && { route: name }), sends: row.sends, verified: row.verified, cost: row.cost / moneyUnit });
  }
  return { from: timestamp(from), to: timestamp(to), ...total, cost: total.cost / moneyUnit, messages, refusals };
}
