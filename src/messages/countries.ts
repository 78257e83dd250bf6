import { agedCache } from "../core/aged-cache.js";
import { type StoreDeadline, withTimeout } from "../core/deadline.js";
import type { Account } from "../domain/account.js";
import { messagesWeight, readBalance } from "../domain/balance.js";
import type { SpamPolicy } from "../domain/spam-policy.js";
import { type CountryCounts, raisedAlarm } from "../domain/spam-rules.js";
import { day, hour, minute } from "../domain/time.js";
import type { Observed } from "../observability/observed.js";
import type { Tally } from "../ports/store.js";

/** What the rules know of a country before a message is claimed. */
export interface CountryState {
  /** Fewer than `newCountries.provenAt` verified there in 7 days. */
  readonly isNew: boolean;
  /** Its alarm is on. */
  readonly alarm?: { readonly value: number; readonly threshold: number } | undefined;
}

/**
 * What a customer's countries have had lately. Every process counts by itself, adds that to the store's tallies every few seconds and reads what all have counted:
 * "Only the state of a country may lag by some seconds between processes" (docs/contract.md#cells-may-lag).
 */
export interface Countries {
  /** The alarm of a country that this process has heard of; asks nothing. */
  alarmOf(account: Account, country: string): CountryState["alarm"];
  /** Asks the store where this process has not heard of the country for some minutes. Where the store rejects, the country is not new and has no alarm; rejects with `unavailable` when the time is used up. */
  stateOf(deadline: StoreDeadline, account: Account, country: string): Promise<CountryState>;
  /** Whether someone verified in the country from a network within 7 days. Where the store rejects, the network is known. */
  knowsNetwork(deadline: StoreDeadline, customer: string, country: string, network: string): Promise<boolean>;
  sent(account: Account, country: string): void;
  refused(account: Account, country: string): void;
  /** `messages`: of the authentication. `network`: where it came from. */
  verified(account: Account, country: string, messages: number, network: string | undefined): void;
  /** Adds to the store what it does not have yet. */
  close(): Promise<void>;
}

/** Milliseconds from the first count until the store has it. */
const batchFor = 3_000;

/** How long what the store said holds where nothing happens, in milliseconds; and where the alarm is on. */
const heardFor = { usual: 5 * minute, alarm: 10_000 };

/** Countries and networks remembered. */
const most = 20_000;

/** Countries in one call. */
const atATime = 25;

/** Counts of an hour stand in parts of five minutes, those of a week in days: the current part, and those before it. */
const hourly = { long: 5 * minute, parts: 13, keptFor: 2 * hour };
const weekly = { long: day, parts: 8, keptFor: 9 * day };

/** What is counted. */
interface Counts {
  /** Messages sent, less those of the verified. */
  open: number;
  verified: number;
  refused: number;
}

interface Country {
  readonly customer: string;
  readonly country: string;
  /** What all processes have counted, as of `at`. */
  all: CountryCounts;
  at: number;
  /** What the store does not have yet. */
  own: Counts;
  /** Networks that it does not have yet. */
  networks: Set<string>;
  asking: Promise<void> | undefined;
}

const nothing = (): Counts => ({ open: 0, verified: 0, refused: 0 });

export function createCountries({ store, clock, monitor, alarms, settings, inBackground }: Observed): Countries {
  const countries = new Map<string, Country>();
  /** Networks that someone verified from, and the part of the week in which this process reported that to the store; 0 if it did not. */
  const known = agedCache<number>(clock, most, heardFor.usual);
  let cancel: (() => void) | undefined;

  const countryOf = (customer: string, country: string): Country => {
    const key = customer + country;
    let found = countries.get(key);
    if (found === undefined) {
      if (countries.size >= most) countries.clear();
      const all = { hour: nothing(), week: nothing() };
      found = { customer, country, all, at: Number.NEGATIVE_INFINITY, own: nothing(), networks: new Set(), asking: undefined };
      countries.set(key, found);
    }
    return found;
  };

  /** Adds what this process has counted, and reads what all have. */
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
      const add = (counter: string | undefined, by: number, { long, keptFor }: typeof hourly) => {
        // The same for a whole part: its counter's end then has to be set only once.
        const keepUntil = (Math.floor(now / long) + 1) * long + keptFor;
        if (counter !== undefined && by !== 0) adds.push({ counter, by, now, keepUntil });
      };
      const by = messagesWeight(own.open) + own.verified;
      add(hours[0], by, hourly);
      add(days[0], by, weekly);
      add(refusals[0], own.refused, hourly);
      for (const network of networks) add(networkOf(customer, country, network, now)[0], 1, weekly);
      reads.push(...hours, ...refusals, ...days);
    }
    const told = some.map(({ networks }) => [...networks]);
    // The commit that follows needs the rest of the request's time.
    const read = await withTimeout(clock, settings.storeTimeout / 4, () => store.tally(adds, reads));
    let from = 0;
    const sum = ({ parts }: { readonly parts: number }) => read.slice(from, (from += parts)).reduce((all, part) => all + part, 0);
    for (const [at, one] of some.entries()) {
      for (const network of told[at] ?? []) one.networks.delete(network);
      const { balance: open, verified } = readBalance(sum(hourly));
      const refused = sum(hourly);
      const week = readBalance(sum(weekly));
      one.all = { hour: { open, verified, refused }, week: { open: week.balance, verified: week.verified, refused: 0 } };
      one.at = now;
    }
  };

  const refresh = (some: readonly Country[]): Promise<void> => {
    const asking = exchange(some)
      .catch((err: unknown) => {
        // Not asked again at once.
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
    cancel?.();
    cancel = undefined;
    const pending = [...countries.values()].filter(isPending);
    for (let at = 0; at < pending.length; at += atATime) await refresh(pending.slice(at, at + atATime));
  };

  const later = () => {
    cancel ??= clock.after(
      batchFor,
      () => {
        cancel = undefined;
        inBackground(flush());
      },
      "background",
    );
  };

  const alarmOf = (one: Country, rule: SpamPolicy["strangeNetwork"]): CountryState["alarm"] => {
    const { hour, week } = one.all;
    const alarm = raisedAlarm({ hour: plus(hour, one.own), week: plus(week, one.own) }, rule);
    if (alarm !== undefined) alarms.raise(one.customer, { alarm: "country", country: one.country }, alarm.value, alarm.threshold);
    return alarm;
  };

  const reads = ({ policy: { spam } }: Account) => spam.newCountries.mode !== "off" || spam.strangeNetwork.mode !== "off";

  const count = (account: Account, country: string, change: Partial<Counts>): Country | undefined => {
    if (!reads(account)) return undefined;
    const one = countryOf(account.customer, country);
    one.own = plus(one.own, { ...nothing(), ...change });
    later();
    return one;
  };

  return {
    alarmOf(account, country) {
      const one = countries.get(account.customer + country);
      return one === undefined || account.policy.spam.strangeNetwork.mode === "off" ? undefined : alarmOf(one, account.policy.spam.strangeNetwork);
    },

    async stateOf(deadline, account, country) {
      if (!reads(account)) return { isNew: false };
      const { strangeNetwork, newCountries } = account.policy.spam;
      const one = countryOf(account.customer, country);
      const watches = strangeNetwork.mode !== "off";
      const holds = one.at === Number.NEGATIVE_INFINITY || !watches || alarmOf(one, strangeNetwork) === undefined ? heardFor.usual : heardFor.alarm;
      if (clock.now() - one.at >= holds) await deadline.call(() => one.asking ?? refresh([one]));
      return {
        isNew: newCountries.mode !== "off" && one.at !== Number.NEGATIVE_INFINITY && one.all.week.verified + one.own.verified < newCountries.provenAt,
        alarm: watches ? alarmOf(one, strangeNetwork) : undefined,
      };
    },

    async knowsNetwork(deadline, customer, country, network) {
      const key = `${customer}${country}${network}`;
      if (known.get(key) !== undefined) return true;
      try {
        const counts = await deadline.call(() => store.tally([], networkOf(customer, country, network, clock.now())));
        if (counts.every((count) => count === 0)) return false;
        known.set(key, 0);
      } catch (err) {
        monitor.throttledLog.warn({ err, customer_uuid: customer }, "a network could not be looked up; the rule strangeNetwork let the message through");
      }
      return true;
    },

    sent: (account, country) => void count(account, country, { open: 1 }),
    refused: (account, country) => void count(account, country, { refused: 1 }),

    verified(account, country, messages, network) {
      const one = count(account, country, { open: -messages, verified: 1 });
      if (one === undefined) return;
      if (network !== undefined) {
        const key = `${account.customer}${country}${network}`;
        const today = Math.floor(clock.now() / weekly.long);
        if (known.get(key) !== today) one.networks.add(network);
        known.set(key, today);
      }
      // What proves a country is not lost with the process.
      if (one.all.week.verified < account.policy.spam.newCountries.provenAt) inBackground(refresh([one]));
    },

    close: flush,
  };
}

function plus(one: Counts, other: Counts): Counts {
  return { open: one.open + other.open, verified: one.verified + other.verified, refused: one.refused + other.refused };
}

/** Counters of the parts of a time that count, the newest first. */
function partsOf(name: string, { long, parts }: { readonly long: number; readonly parts: number }, now: number): string[] {
  const newest = Math.floor(now / long);
  return Array.from({ length: parts }, (_, back) => `${name}${(newest - back).toString(36)}`);
}

function networkOf(customer: string, country: string, network: string, now: number): string[] {
  return partsOf(`${customer}:w:${country}:${network}:`, weekly, now);
}
