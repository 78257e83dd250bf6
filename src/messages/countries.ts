import { batchTimer } from "../core/batch-timer.js";
import { agedCache, chunksOf } from "../core/collections.js";
import { type StoreDeadline, withTimeout } from "../core/deadline.js";
import { messagesWeight, readBalance } from "../domain/claim.js";
import type { Account } from "../domain/policy.js";
import type { SpamPolicy } from "../domain/spam-policy.js";
import { type CountryCounts, raisedAlarm } from "../domain/spam-rules.js";
import { day, hour, minute } from "../domain/time.js";
import type { Observed } from "../observability/observed.js";
import type { Tally } from "../ports/store.js";

/** A country's state before a message is claimed. */
export interface CountryState {
  /** Fewer than `newCountries.provenAt` verifications in 7 days. */
  readonly isNew: boolean;
  /** Present while the country's alarm is on. */
  readonly alarm?: { readonly value: number; readonly threshold: number } | undefined;
}

/** Milliseconds from the first count until it is written to the store. */
const batchFor = 3_000;

/** How long the store's state is cached without new events, usually and while the alarm is on. Milliseconds. */
const heardFor = { usual: 5 * minute, alarm: 10_000 };

/** Countries and networks remembered. */
const most = 20_000;

/** Countries in one call. */
const atATime = 25;

/** Hourly counts use parts of five minutes, weekly ones parts of a day: the current part and those before it. */
const hourly: Parts = { long: 5 * minute, parts: 13, keptFor: 2 * hour };
const weekly: Parts = { long: day, parts: 8, keptFor: 9 * day };

/** The counts of a country. */
interface Counts {
  /** Messages sent, minus those of verified authentications. */
  open: number;
  verified: number;
  refused: number;
}

interface Country {
  readonly customer: string;
  readonly country: string;
  /** The totals of all processes, as of `at`. */
  all: CountryCounts;
  at: number;
  /** Counts not yet in the store. */
  own: Counts;
  /** Networks not yet in the store. */
  networks: Set<string>;
  asking: Promise<void> | undefined;
}

const nothing = (): Counts => ({ open: 0, verified: 0, refused: 0 });

export type Countries = ReturnType<typeof createCountries>;

/**
 * Recent counts of a customer's countries. Every few seconds each process adds its own counts to the store's tallies
 * and reads the totals: "Only the state of a country may lag by some seconds between processes"
 * (docs/contract.md#cells-may-lag).
 */
export function createCountries(parts: Observed) {
  const { store, clock, monitor, alarms, settings, inBackground } = parts;
  const countries = new Map<string, Country>();
  /**
   * Networks with a verification, and the part of the week in which this process reported them; 0: not reported here.
   */
  const known = agedCache<number>(clock, most, heardFor.usual);
  const timer = batchTimer(parts, batchFor, () => flush());

  const countryOf = (customer: string, country: string): Country => {
    const key = customer + country;
    let found = countries.get(key);
    if (found === undefined) {
      if (countries.size >= most) countries.clear();
      const all = { hour: nothing(), week: nothing(), usual: 0 };
      found = { customer, country, all, at: Number.NEGATIVE_INFINITY, own: nothing(), networks: new Set(), asking: undefined };
      countries.set(key, found);
    }
    return found;
  };

  /** Adds this process's counts and reads the totals. */
  const exchange = async (some: readonly Country[]): Promise<void> => {
    const now = clock.now();
    const adds: Tally[] = [];
    const reads: string[] = [];
    for (const one of some) {
      const { customer, country, own, networks } = one;
      one.own = nothing();
      const sums = `${customer}:y:${country}:`;
      const hours = partsOf(`${sums}h`, hourly, now);
      const refusals = partsOf(`${sums}r`, hourly, now);
      const days = partsOf(`${sums}d`, weekly, now);
      const by = messagesWeight(own.open) + own.verified;
      if (by !== 0) adds.push(tallyOf(`${sums}h`, hourly, by, now), tallyOf(`${sums}d`, weekly, by, now));
      if (own.refused !== 0) adds.push(tallyOf(`${sums}r`, hourly, own.refused, now));
      for (const network of networks) adds.push(tallyOf(networkOf(customer, country, network), weekly, 1, now));
      reads.push(...hours, ...refusals, ...days);
    }
    const added = some.map(({ networks }) => [...networks]);
    // Leaves time for the commit that follows.
    const read = await withTimeout(clock, settings.storeTimeout / 4, () => store.tally(adds, reads));
    let from = 0;
    const next = ({ parts }: { readonly parts: number }) => read.slice(from, (from += parts));
    const sum = (counts: readonly number[]) => counts.reduce((all, part) => all + part, 0);
    for (const [at, one] of some.entries()) {
      for (const network of added[at] ?? []) one.networks.delete(network);
      const { balance: open, verified } = readBalance(sum(next(hourly)));
      const refused = sum(next(hourly));
      const days = next(weekly);
      const week = readBalance(sum(days));
      const usual = Math.max(...days.map(readBalance).map((day) => Math.max(0, day.balance) + day.verified)) / 24;
      one.all = { hour: { open, verified, refused }, week: { open: week.balance, verified: week.verified, refused: 0 }, usual };
      one.at = now;
    }
  };

  const refresh = (some: readonly Country[]): Promise<void> => {
    const asking = exchange(some)
      .catch((err: unknown) => {
        // Avoids asking again at once.
        for (const one of some) one.at = clock.now() - heardFor.usual + heardFor.alarm;
        monitor.throttledLog.warn({ err }, "the messages of countries could not be counted; their alarms, and whether they are new, may lag");
      })
      .finally(() => {
        for (const one of some) one.asking = undefined;
      });
    for (const one of some) one.asking = asking;
    return asking;
  };

  const isPending = ({ own, networks }: Country) => own.open !== 0 || own.verified !== 0 || own.refused !== 0 || networks.size > 0;

  const flush = async (): Promise<void> => {
    timer.stop();
    const pending = [...countries.values()].filter(isPending);
    for (const some of chunksOf(pending, atATime)) await refresh(some);
  };

  const ageOf = ({ at }: Country) => clock.now() - at;

  const cachedAlarm = (one: Country, rule: SpamPolicy["strangeNetwork"]): CountryState["alarm"] => {
    // It is no longer the last hour.
    if (ageOf(one) >= hour) one.all = { ...one.all, hour: nothing() };
    const { hour: lastHour, week, usual } = one.all;
    return raisedAlarm({ hour: plus(lastHour, one.own), week: plus(week, one.own), usual }, rule);
  };

  /** Raises the alarm if it is on, unless the state is due to be read again, or late confirmations explain it. */
  const alarmOf = (one: Country, { policy, isLate = false }: Account): CountryState["alarm"] => {
    const alarm = cachedAlarm(one, policy.spam.strangeNetwork);
    if (alarm !== undefined && !isLate && ageOf(one) < heardFor.usual)
      alarms.raise(one.customer, { alarm: "country", country: one.country }, alarm.value, alarm.threshold);
    return alarm;
  };

  const reads = ({ policy: { spam } }: Account) => spam.newCountries.mode !== "off" || spam.strangeNetwork.mode !== "off";

  const count = (account: Account, country: string, change: Partial<Counts>): Country | undefined => {
    if (!reads(account)) return undefined;
    const one = countryOf(account.customer, country);
    one.own = plus(one.own, { ...nothing(), ...change });
    timer.start();
    return one;
  };

  return {
    /** The country's alarm as cached in this process; does not ask the store. */
    alarmOf(account: Account, country: string): CountryState["alarm"] {
      const one = countries.get(account.customer + country);
      return one === undefined || account.policy.spam.strangeNetwork.mode === "off" ? undefined : alarmOf(one, account);
    },

    /**
     * Asks the store if nothing was read within some minutes. If the store call fails, the country is not new and has no
     * alarm. Rejects with `unavailable` when the time is used up.
     */
    async stateOf(deadline: StoreDeadline, account: Account, country: string): Promise<CountryState> {
      if (!reads(account)) return { isNew: false };
      const { strangeNetwork, newCountries } = account.policy.spam;
      const one = countryOf(account.customer, country);
      const watches = strangeNetwork.mode !== "off";
      const holds = !watches || cachedAlarm(one, strangeNetwork) === undefined ? heardFor.usual : heardFor.alarm;
      if (ageOf(one) >= holds) await deadline.call(() => one.asking ?? refresh([one]));
      return {
        isNew: newCountries.mode !== "off" && one.at !== Number.NEGATIVE_INFINITY && one.all.week.verified + one.own.verified < newCountries.provenAt,
        alarm: watches ? alarmOf(one, account) : undefined,
      };
    },

    /** Whether someone verified from the network in this country within 7 days; true if the store call fails. */
    async knowsNetwork(deadline: StoreDeadline, customer: string, country: string, network: string): Promise<boolean> {
      const key = `${customer}${country}${network}`;
      if (known.get(key) !== undefined) return true;
      try {
        const counts = await deadline.call(() => store.tally([], partsOf(networkOf(customer, country, network), weekly, clock.now())));
        if (counts.every((count) => count === 0)) return false;
        known.set(key, 0);
      } catch (err) {
        monitor.throttledLog.warn({ err, customer_uuid: customer }, "a network could not be looked up; the rule strangeNetwork allowed the message");
      }
      return true;
    },

    sent: (account: Account, country: string) => void count(account, country, { open: 1 }),
    refused: (account: Account, country: string) => void count(account, country, { refused: 1 }),

    /** Counts a verified authentication with its messages. `earns`: its number had not verified within a day. */
    verified(account: Account, country: string, { messages, earns, network }: { messages: number; earns: boolean; network: string | undefined }) {
      const one = count(account, country, { open: -messages, verified: earns ? 1 : 0 });
      if (one === undefined) return;
      if (network !== undefined) {
        const key = `${account.customer}${country}${network}`;
        const today = Math.floor(clock.now() / weekly.long);
        if (known.get(key) !== today) one.networks.add(network);
        known.set(key, today);
      }
      // Written early, so that a crash does not lose a country's proof.
      if (one.all.week.verified < account.policy.spam.newCountries.provenAt) inBackground(refresh([one]));
    },

    /** Writes pending counts to the store. */
    close: flush,
  };
}

function plus(one: Counts, other: Counts): Counts {
  return { open: one.open + other.open, verified: one.verified + other.verified, refused: one.refused + other.refused };
}

/** How long one part of a count is, in milliseconds, how many parts count, and for how long each is retained. */
export interface Parts {
  readonly long: number;
  readonly parts: number;
  readonly keptFor: number;
}

/** Counter names for the parts of a period, newest first. */
export function partsOf(name: string, { long, parts }: Pick<Parts, "long" | "parts">, now: number): string[] {
  const newest = Math.floor(now / long);
  return Array.from({ length: parts }, (_, back) => `${name}${(newest - back).toString(36)}`);
}

/** What adds to the newest part of a count. Its end is the same for a whole part, so that it is set only once. */
export function tallyOf(name: string, parts: Parts, by: number, now: number): Tally {
  const [counter = ""] = partsOf(name, { ...parts, parts: 1 }, now);
  return { counter, by, now, keepUntil: (Math.floor(now / parts.long) + 1) * parts.long + parts.keptFor };
}

const networkOf = (customer: string, country: string, network: string) => `${customer}:w:${country}:${network}:`;
