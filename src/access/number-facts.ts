import { randomUUID } from "node:crypto";
import { lineTypes } from "../contract/lookup.js";
import { type StoreDeadline, withTimeout } from "../core/deadline.js";
import { withoutNumbers } from "../core/loggers.js";
import type { PhoneNumber } from "../domain/phone-number.js";
import type { Account } from "../domain/policy.js";
import { lookupCharges, returnedLookup } from "../domain/quota.js";
import { parsePrice, spendCharges, spendCorrection } from "../domain/spend.js";
import { day, minute } from "../domain/time.js";
import type { Observed } from "../observability/observed.js";
import type { LookupFacts, LookupProvider, LookupResult } from "../ports/lookup-provider.js";

/** Facts about numbers from online sources. */
export type NumberFacts = ReturnType<typeof createNumberFacts>;

/**
 * How long answers, including empty ones, are cached (docs/contract.md#lookup-cache); and failures, or answers that
 * lack what a failed source may know. Milliseconds.
 */
const keptFor = { answer: day, failure: 10 * minute };

const nothing: LookupFacts = {};

/** The cache key of a number's facts. `masked`: the number's keyed hash. */
export function factsKey(customer: string, masked: string): string {
  return `${customer}:lookup:${masked}`;
}

/** The cached facts of a number and their end: stores may delete later than that. */
interface Kept {
  readonly facts: LookupFacts;
  readonly until: number;
}

/**
 * The provider with a cache in the store, by customer (docs/contract.md#keyed-by-customer). Cache keys hold no clear
 * number, and values none at all. Concurrent lookups of a number share the answer.
 */
export function createNumberFacts(parts: Observed, provider: LookupProvider | undefined) {
  const { clock, keyring, monitor, inBackground, settings, store } = parts;
  const flights = new Map<string, Promise<LookupFacts>>();

  const find = async (account: Account, provider: LookupProvider, phone: PhoneNumber, key: string): Promise<LookupFacts> => {
    let keeping: Promise<unknown> | undefined;
    try {
      const deadline = parts.newDeadline();
      const known = readKept(await deadline.call(() => store.get(key)), phone.country, clock.now());
      if (known !== undefined) return known;
      const charged = await charge(parts, deadline, account, provider);
      if (charged === undefined) return nothing;
      const { facts, life, price } = await ask(parts, provider, phone);
      const now = clock.now();
      const kept: Kept = { facts, until: now + life };
      const settling = [store.put(key, JSON.stringify(kept), { now, keepUntil: kept.until }), charged.settle(price)];
      keeping = withTimeout(clock, settings.storeTimeout, () => Promise.all(settling)).catch((err: unknown) =>
        monitor.throttledLog.warn({ err, customer_uuid: account.customer }, "a lookup's result could not be stored, or its price not settled"),
      );
      inBackground(keeping);
      return facts;
    } catch (err) {
      monitor.throttledLog.warn({ err }, "a lookup failed at the store; only the numbering plan is used");
      return nothing;
    } finally {
      // Only once the answer is stored: a lookup in between would miss it.
      void Promise.resolve(keeping).then(() => flights.delete(key));
    }
  };

  return {
    /** The facts, at most `lookupTimeout` after a cache miss; empty without a response. Never rejects. */
    async of(account: Account, phone: PhoneNumber): Promise<LookupFacts> {
      if (provider === undefined || phone.test) return nothing;
      const key = factsKey(account.customer, keyring.pseudonym(phone.number));
      const flight = flights.get(key) ?? find(account, provider, phone, key);
      flights.set(key, flight);
      return flight;
    },
  };
}

/**
 * "Lookups have a ceiling" (docs/contract.md#lookup-ceiling), and their cost counts towards the customer's spend
 * ceilings. `undefined`: the provider must not be asked. `settle` takes the price that the provider stated, if any.
 */
async function charge(
  { alarms, clock, monitor, settings, store }: Observed,
  deadline: StoreDeadline,
  { customer, policy }: Account,
  provider: LookupProvider,
): Promise<{ settle(stated: number | undefined): Promise<unknown> } | undefined> {
  const ceilings = policy.limits.spend;
  const price = parsePrice(provider.price);
  if (price === undefined && ceilings.length > 0) {
    monitor.throttledLog.error(
      { customer_uuid: customer },
      "lookup skipped: the provider has no price, which policy.limits.spend needs; the numbering plan was used instead",
    );
    return undefined;
  }
  const held = price ?? 0;
  const moment = { now: clock.now(), skew: settings.clockSkew };
  const lookups = lookupCharges(customer, randomUUID(), policy, moment);
  const charges = [...lookups, ...spendCharges(customer, held > 0 ? held : "free", ceilings, moment)];
  const counts = charges.flatMap((one, at) => (alarms.reads(one) ? at : []));
  const counted = await deadline.call(() => store.commit({ claims: charges.map(({ claim }) => claim), counts }));
  if (!counted.done) {
    const { rule } = charges[counted.refusedBy ?? 0] ?? {};
    monitor.throttledLog.warn({ rule, customer_uuid: customer }, "the lookup ceiling is reached; only the numbering plan is used");
    return undefined;
  }
  for (const [at, one] of charges.entries()) alarms.granted(customer, one, counted.counts[at]);
  return {
    async settle(stated) {
      const spent = Math.min(held, stated ?? held);
      const correction = spendCorrection(customer, held, spent, ceilings, moment);
      const claims = [...(stated === 0 ? returnedLookup(lookups) : []), ...correction];
      return claims.length === 0 ? undefined : store.commit({ claims, counts: [] });
    },
  };
}

/**
 * "A sender or lookup that throws, hangs or returns an invalid result never makes the request fail"
 * (docs/contract.md#lookup-never-fails): the facts are then empty.
 */
async function ask(
  { clock, settings, monitor }: Observed,
  provider: LookupProvider,
  { number, country, lineType }: PhoneNumber,
): Promise<{ readonly facts: LookupFacts; readonly life: number; readonly price: number | undefined }> {
  const abort = new AbortController();
  const timeLeft = settings.lookupTimeout;
  const priceOf = (result: unknown) => parsePrice((result as LookupResult | undefined)?.price);
  try {
    const request = { phone_number: number, line_type: lineType, ...(country !== undefined && { country_code: country }) };
    const answer: unknown = await withTimeout(clock, timeLeft, () => provider.lookup(request, { signal: abort.signal, timeLeft }));
    if (answer !== undefined && (typeof answer !== "object" || answer === null)) throw new TypeError("a lookup provider must return its facts, or undefined");
    if (monitor.outages.lookup.on) monitor.outages.lookup.worked();
    const { incomplete, failed } = (answer ?? {}) as LookupResult;
    const reason = Array.isArray(failed) ? withoutNumbers(failed.slice(0, 10).map(String).join("; ")) : "";
    if (reason !== "") monitor.throttledLog.warn({ reason }, "a lookup provider failed");
    return { facts: parseFacts(answer ?? {}, country), life: incomplete === true ? keptFor.failure : keptFor.answer, price: priceOf(answer) };
  } catch (err) {
    abort.abort(err);
    monitor.outages.lookup.failed({ reason: reasonOf(err) });
    return { facts: nothing, life: keptFor.failure, price: priceOf(err ?? undefined) };
  }
}

/** Parses cached facts. Anything invalid or expired is ignored. */
function readKept(text: string | undefined, country: string | undefined, now: number): LookupFacts | undefined {
  if (text === undefined) return undefined;
  try {
    const { facts, until } = JSON.parse(text) as Kept;
    return now < until && until <= now + 2 * keptFor.answer && typeof facts === "object" && facts !== null ? parseFacts(facts, country) : undefined;
  } catch {
    return undefined;
  }
}

/** Keeps the valid, non-empty fields of a provider's answer. `country`: the number's; no other is kept. */
function parseFacts(answer: LookupFacts, country: string | undefined): LookupFacts {
  const { carrier, country_code, line_type, mcc, mnc, number_ported } = answer;
  return {
    ...(matches(carrier, /^(?=.*\S)\P{Cc}{1,128}$/u) && { carrier }),
    ...(matches(country_code, /^[A-Z]{2}$/) && country_code === (country ?? country_code) && { country_code }),
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
