import { randomUUID } from "node:crypto";
import { lineTypes } from "../contract/lookup.js";
import { type StoreDeadline, withTimeout } from "../core/deadline.js";
import type { Account } from "../domain/account.js";
import type { PhoneNumber } from "../domain/phone-number.js";
import { lookupCharges } from "../domain/quota.js";
import { parsePrice, spendCharges, spendCorrection } from "../domain/spend.js";
import { day, minute } from "../domain/time.js";
import type { Observed } from "../observability/observed.js";
import type { LookupAnswer, LookupFacts, LookupProvider } from "../ports/lookup-provider.js";

/** What online sources know of numbers. */
export interface NumberFacts {
  /** The facts, at most `lookupTimeout` after they are not found in the store. Never rejects: where nothing is known, or nobody could be asked, there are none. */
  of(account: Account, phone: PhoneNumber): Promise<LookupFacts>;
}

/** How long an answer is kept (docs/contract.md#lookup-cache), that nothing is known too; and how long a failure, or an answer that lacks what a source that failed may know. Milliseconds. */
const keptFor = { answer: day, failure: 10 * minute };

const nothing: LookupFacts = {};

/** Where what is known of a number is kept. `masked`: the number's keyed hash. */
export function factsKey(customer: string, masked: string): string {
  return `${customer}:lookup:${masked}`;
}

/** What is kept of a number, and until when: a store forgets when it likes. */
interface Kept {
  readonly facts: LookupFacts;
  readonly until: number;
}

/**
 * The provider behind a cache in the store, by customer (docs/contract.md#keyed-by-customer): its keys hold no number in clear, its values none at all.
 * Whoever asks for a number that is being asked for shares the answer.
 */
export function createNumberFacts(parts: Observed, provider: LookupProvider | undefined): NumberFacts {
  const { clock, keyring, monitor, inBackground, logger, settings, store } = parts;
  const flights = new Map<string, Promise<LookupFacts>>();

  const find = async (account: Account, provider: LookupProvider, phone: PhoneNumber, key: string): Promise<LookupFacts> => {
    let keeping: Promise<unknown> | undefined;
    try {
      const deadline = parts.newDeadline();
      const known = readKept(await deadline.call(() => store.get(key)), clock.now());
      if (known !== undefined) return known;
      const charged = await charge(parts, deadline, account, provider);
      if (charged === undefined) return nothing;
      const { facts, life, spent } = await ask(parts, provider, phone, charged.held);
      const now = clock.now();
      const kept: Kept = { facts, until: now + life };
      const settling = [store.put(key, JSON.stringify(kept), { now, keepUntil: kept.until }), charged.settle(spent)];
      keeping = withTimeout(clock, settings.storeTimeout, () => Promise.all(settling)).catch((err: unknown) =>
        logger.warn({ err, customer_uuid: account.customer }, "a lookup's answer could not be kept, or its price not settled"),
      );
      inBackground(keeping);
      return facts;
    } catch (err) {
      monitor.throttledLog.warn({ err }, "a lookup failed at the store; the numbering plan alone answers");
      return nothing;
    } finally {
      // Not before the answer is kept: between the two nobody would find it.
      void Promise.resolve(keeping).then(() => flights.delete(key));
    }
  };

  return {
    async of(account, phone) {
      if (provider === undefined || phone.test) return nothing;
      const key = factsKey(account.customer, keyring.pseudonym(phone.number));
      const flight = flights.get(key) ?? find(account, provider, phone, key);
      flights.set(key, flight);
      return flight;
    },
  };
}

/** "Lookups have a ceiling" (docs/contract.md#lookup-ceiling), and what they cost counts towards the customer's spend ceilings. `undefined`: the provider must not be asked. */
async function charge(
  { clock, logger, settings, store }: Observed,
  deadline: StoreDeadline,
  { customer, policy }: Account,
  provider: LookupProvider,
): Promise<{ readonly held: number; settle(spent: number): Promise<unknown> } | undefined> {
  const ceilings = policy.limits.spend;
  const price = parsePrice(provider.price);
  if (price === undefined && ceilings.length > 0) {
    logger.error({ customer_uuid: customer }, "lookup skipped: the provider has no price, which policy.limits.spend needs; answered from the numbering plan");
    return undefined;
  }
  const held = price ?? 0;
  const moment = { now: clock.now(), skew: settings.clockSkew };
  const charges = [...lookupCharges(customer, randomUUID(), policy, moment), ...spendCharges(customer, held > 0 ? held : "free", ceilings, moment)];
  const counted = await deadline.call(() => store.commit({ claims: charges.map(({ claim }) => claim), counts: [] }));
  if (!counted.done) {
    const { rule } = charges[counted.refusedBy ?? 0] ?? {};
    logger.warn({ rule, customer_uuid: customer }, "the ceiling of lookups is reached; the numbering plan alone answers");
    return undefined;
  }
  return {
    held,
    async settle(spent) {
      const claims = spendCorrection(customer, held, spent, ceilings, { at: moment.now, skew: moment.skew });
      return claims.length === 0 ? undefined : store.commit({ claims, counts: [] });
    },
  };
}

/** "A sender or lookup that throws, hangs or answers nonsense never takes the request down with it" (docs/contract.md#lookup-never-fails): then there are no facts. */
async function ask(
  { clock, logger, settings, monitor }: Observed,
  provider: LookupProvider,
  { number, country, lineType }: PhoneNumber,
  held: number,
): Promise<{ readonly facts: LookupFacts; readonly life: number; readonly spent: number }> {
  const abort = new AbortController();
  const timeLeft = settings.lookupTimeout;
  const spentOf = (told: unknown) => Math.min(held, parsePrice((told as LookupAnswer | undefined)?.price) ?? held);
  try {
    const request = { phone_number: number, line_type: lineType, ...(country !== undefined && { country_code: country }) };
    const answer: unknown = await withTimeout(clock, timeLeft, () => provider.lookup(request, { signal: abort.signal, timeLeft }));
    if (answer !== undefined && (typeof answer !== "object" || answer === null)) throw new TypeError("a lookup provider answers its facts, or undefined");
    if (monitor.outages.lookup.on) monitor.outages.lookup.worked();
    const { incomplete, failed } = (answer ?? {}) as LookupAnswer;
    for (const reason of Array.isArray(failed) ? failed.slice(0, 10) : []) logger.warn({ reason: withoutNumbers(String(reason)) }, "a lookup provider failed");
    return { facts: parseFacts(answer ?? {}), life: incomplete === true ? keptFor.failure : keptFor.answer, spent: spentOf(answer) };
  } catch (err) {
    abort.abort(err);
    monitor.outages.lookup.failed({ reason: reasonOf(err) });
    return { facts: nothing, life: keptFor.failure, spent: spentOf(err ?? undefined) };
  }
}

/** What is kept, where it is in its form and its time is not over. Whatever else stands there counts as nothing. */
function readKept(text: string | undefined, now: number): LookupFacts | undefined {
  if (text === undefined) return undefined;
  try {
    const { facts, until } = JSON.parse(text) as Kept;
    return now < until && until <= now + 2 * keptFor.answer && typeof facts === "object" && facts !== null ? parseFacts(facts) : undefined;
  } catch {
    return undefined;
  }
}

/** The fields of a provider's answer that have the form of the specification and say something; the others are left out. */
function parseFacts(answer: LookupFacts): LookupFacts {
  const { carrier, country_code, line_type, mcc, mnc, number_ported } = answer;
  return {
    ...(matches(carrier, /^(?=.*\S)\P{Cc}{1,128}$/u) && { carrier }),
    ...(matches(country_code, /^[A-Z]{2}$/) && { country_code }),
    ...(line_type !== undefined && line_type !== "Unknown" && lineTypes.includes(line_type) && { line_type }),
    ...(matches(mcc, /^\d{3}$/) && { mcc, ...(matches(mnc, /^\d{2,3}$/) && { mnc }) }),
    ...(typeof number_ported === "boolean" && { number_ported }),
  };
}

function matches(value: unknown, form: RegExp): value is string {
  return typeof value === "string" && form.test(value);
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? withoutNumbers(`${error.name}: ${error.message}`) : "no error was thrown, but something else";
}

/** A provider's words without a number somebody has: they often repeat the one that was asked for. */
function withoutNumbers(words: string): string {
  return words.slice(0, 500).replace(/\d(?:[ .-]?\d){6,}/g, "…");
}
