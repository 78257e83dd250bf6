import { readDestination, readNumber, requireChannel } from "../access/destination.js";
import type { Conversion } from "../contract/conversion.js";
import type { ConfirmRequest, ConfirmResult, DeliverRequest, DeliverResult } from "../contract/delivery.js";
import { TimedOut, unavailable, withTimeout } from "../core/deadline.js";
import { type Decided, transact } from "../core/records/transact.js";
import { type Authentication, callsAt, countedAt, hasNumber, isErased } from "../domain/authentication.js";
import type { Claim, Moment } from "../domain/claim.js";
import { type Confirming, decideConfirm, deliveryPolicy, isDeliveryOver, prolonged, repeatedWithin } from "../domain/deliver.js";
import { isSlot } from "../domain/ids.js";
import { textError } from "../domain/message.js";
import type { Account } from "../domain/policy.js";
import { growthClaims } from "../domain/quota.js";
import { type NotSent, sentence } from "../domain/sentences.js";
import { creditClaims, pastOf } from "../domain/spam-rules.js";
import { VerifierError } from "../errors.js";
import { sendFeedback } from "../messages/feedback.js";
import { isTestNumber } from "../options/options.js";
import { fateOf } from "./answers.js";
import type { Context } from "./context.js";
import { keyedDelivery } from "./idempotency.js";
import { countingRefusals } from "./refusals.js";
import { isRejected, type Placed, sendInSlot } from "./slots.js";

/**
 * Sends a code that another server made (docs/contract.md#deliver). Every outcome is a status; a malformed request and a
 * missing ceiling reject.
 */
export async function deliver(context: Context, account: Account, request: DeliverRequest): Promise<DeliverResult> {
  const { locale } = request;
  const conversion = request.conversion ?? context.settings.conversion ?? "unknown";
  const needed = neededCeiling(account.policy, conversion);
  if (needed !== undefined) throw new VerifierError("invalid_options", needed);
  try {
    return await inTime(context, request, countedDelivery(context, account, request, conversion));
  } catch (error) {
    if (!(error instanceof VerifierError)) throw error;
    const { code } = error;
    if (code === "unavailable") return unavailableDelivery(locale);
    if (code === "invalid_phone_number" || code === "unsupported_region" || code === "invalid_line" || code === "blocked_number")
      return { status: "invalid", reason: code, message: sentence("number", locale) };
    throw error;
  }
}

/** Nothing was sent. */
export function unavailableDelivery(locale?: string): DeliverResult {
  return { status: "unavailable", message: sentence("failed", locale) };
}

/** How long after its time a call that has stored its message may return. Milliseconds. */
const grace = 20;

/** "`unavailable` if nothing was stored by then" (docs/contract.md#deliver-time): what is stored later is taken back. */
async function inTime<T>({ clock, inBackground }: Context, { within }: DeliverRequest, working: Promise<T>): Promise<T> {
  if (within === undefined) return working;
  try {
    return await withTimeout(clock, within + grace, () => working);
  } catch (error) {
    if (!(error instanceof TimedOut)) throw error;
    inBackground(working.catch(() => undefined));
    throw unavailable(error);
  }
}

/** "a spend ceiling is required" (docs/contract.md#unknown-conversion). */
export function neededCeiling({ limits }: Pick<Account["policy"], "limits">, conversion: Conversion): string | undefined {
  if (conversion !== "unknown" || limits.spend.length > 0) return undefined;
  return 'deliver needs a spend ceiling while conversion is "unknown": set policy.limits.spend, for example [{ amount: 50, per: "day" }], and a sender with prices; or call confirm when users sign in, and set conversion to "reported" or "late"';
}

const countedDelivery = countingRefusals(sendDelivery);

async function sendDelivery(context: Context, account: Account, request: DeliverRequest, conversion: Conversion): Promise<DeliverResult> {
  const { clock, keyring, past, settings } = context;
  const { code, text, purpose, known, expires_in, within } = request;
  const answerBy = within === undefined ? Number.POSITIVE_INFINITY : clock.now() + within;
  const phone = readDestination(context, request.phone_number);
  requireText(context, request);
  const deadline = context.newDeadline(within);
  const weighing = await past.weighing(deadline, account, conversion);
  const policy = deliveryPolicy(account.policy, weighing);
  const identity = `${purpose}\0${code ?? text}`;
  const keyed = keyedDelivery(context, request, identity);
  const lifetime = expires_in * 1000;
  const { phone_number, customer_uuid, ip, device_id, device_type, app_realm, callback_url, channel, locale, correlation_id } = request;
  requireChannel(context, channel);
  const placed = await sendInSlot(
    context,
    { ...account, policy, isLate: conversion === "late" },
    {
      slots: deliverySlots(context, account, phone.number),
      request: { phone_number, customer_uuid, ip, device_id, device_type, app_realm, callback_url, channel, locale, correlation_id, is_returning_user: known },
      phone,
      deadline,
      isOver: (auth, now) => isDeliveryOver(auth, now, policy),
      answered: (auth, now) => (keyed === undefined ? keyring.matching(auth.id, identity, latelySent(auth, now))?.attempt : keyed.answered(auth, now)),
      first: { purpose, lifetime, starts: keyed === undefined ? [] : [keyed.entry(1)] },
      amended: (auth, now) => ({
        ...prolonged(auth, now, lifetime, policy),
        purpose,
        deviceType: device_type ?? auth.deviceType,
        appRealm: app_realm ?? auth.appRealm,
        locale: locale ?? auth.locale,
        correlationId: correlation_id ?? auth.correlationId,
        ...(keyed !== undefined && { starts: [...auth.starts, keyed.entry(auth.attempts + 1)] }),
      }),
      delivery: { given: { code, text, identity, answerBy }, known, grows: weighing.grows },
    },
  );
  if (placed.as !== "repeated" && !isTestNumber(settings, phone.number)) {
    past.requested(account.customer);
    const { auth, result = "rejected" } = placed;
    const isCounted = !known && auth.origin?.s !== 1;
    if (result !== "rejected") past.sent(account.customer, isCounted ? pastOf({ ...auth, number: phone.number }, keyring.pseudonym) : []);
  }
  const { why, ...outcome } = await outcomeOf(context, placed, answerBy);
  const answer = { ...outcome, delivery_uuid: placed.auth.id, phone_number: phone.number };
  return why === undefined ? answer : { ...answer, message: sentence(why, locale) };
}

/** The slot of a number's deliveries. No scope has an empty name. */
const deliverySlots = ({ keyring }: Context, { customer }: Account, number: string) => keyring.slotsFor(customer, `\0deliver\0${number}`);

const latelySent = ({ sends }: Authentication, now: number) => sends.filter(({ at }) => now < at + repeatedWithin);

/** Checks the caller's text (docs/contract.md#deliver-text). One with a code that is too long is replaced by ours. */
function requireText({ settings }: Context, { code, text }: DeliverRequest): void {
  if (text === undefined) return;
  const problem = textError(text, code ?? "", code === undefined ? settings.message.maxSegments : Number.POSITIVE_INFINITY);
  if (problem !== undefined) throw new VerifierError("bad_request", `text ${problem.replace("{code}", "code")}.`);
}

interface Outcome extends Pick<DeliverResult, "status" | "retry_after"> {
  readonly why?: NotSent;
}

async function outcomeOf({ clock, records, underWay }: Context, placed: Placed, answerBy: number): Promise<Outcome> {
  const notSent: Outcome = { status: "no_route", why: "failed" };
  const blocked = (status: "rate_limited" | "spam_detected", seconds: number | undefined): Outcome => ({
    status,
    why: "later",
    ...(seconds !== undefined && { retry_after: seconds }),
  });
  const { auth } = placed;
  switch (placed.as) {
    case "begun": {
      const { carrier_refused, retry_after } = fateOf(auth, clock.now());
      if (auth.status !== "pending") return blocked(auth.status, retry_after);
      if (carrier_refused === true) return notSent;
      return { status: placed.result === "accepted" ? "sent" : "pending" };
    }
    case "resent": {
      const { attempt, result, fate, isSpam = false } = placed;
      if (attempt !== undefined) return { status: result === "accepted" ? "sent" : "pending" };
      return fate.carrier_refused === true ? notSent : blocked(isSpam ? "spam_detected" : "rate_limited", fate.retry_after);
    }
    case "repeated": {
      // "A repeat waits for the message that this process is handing over" (docs/contract.md#deliver-repeats).
      const handing = underWay.get(`${auth.id}/${placed.attempt}`);
      if (answerBy === Number.POSITIVE_INFINITY) await handing;
      else await withTimeout(clock, Math.max(0, answerBy - clock.now()), () => handing).catch(() => undefined);
      const after = records.recall(auth.customer, auth.id)?.auth ?? auth;
      return isRejected(after, placed.attempt) ? notSent : { status: "repeated" };
    }
  }
}

/**
 * Counts that the user entered the delivered code (docs/contract.md#confirm), in one commit with what it gives back to
 * the spam rules.
 */
export async function confirm(context: Context, account: Account, request: ConfirmRequest): Promise<ConfirmResult> {
  const { clock, records, settings } = context;
  const { customer } = account;
  const number = request.phone_number === undefined ? undefined : readNumber(context, request.phone_number).number;
  const id = request.delivery_uuid ?? "";
  const ids = number !== undefined ? deliverySlots(context, account, number) : isSlot(id) ? [] : [id];
  const deadline = context.newDeadline();
  let found: Confirmed = { status: "not_found" };
  for (const id of ids) {
    const attempt = (earns: boolean) =>
      transact(records, deadline, customer, id, (held): Decided<Confirmed> => {
        if (held === undefined || isErased(held.auth)) return { result: { status: "not_found" } };
        const at = request.at ?? clock.now();
        const { status, next, proved } = decideConfirm(held.auth, at, settings.clockSkew, clock.now());
        const auth = number === undefined ? held.auth : { ...held.auth, number };
        const result: Confirmed = { status, auth, proved, earns };
        return next === undefined ? { result } : { result, next, claims: earned(context, account, auth, at, earns), looksAgain: true };
      });
    const first = await attempt(true);
    // A number earns for its cells once a day.
    found = (first.refused === undefined ? first : await attempt(false)).result;
    if (found.status !== "not_found") break;
  }
  const { status, auth } = found;
  if (status === "confirmed" && auth !== undefined) report(context, account, auth, found);
  return { status, ...(status !== "not_found" && auth !== undefined && { delivery_uuid: auth.id }) };
}

interface Confirmed extends Pick<Confirming, "status"> {
  readonly auth?: Authentication;
  readonly proved?: Confirming["proved"] | undefined;
  /** The number had not been confirmed within a day. */
  readonly earns?: boolean;
}

/**
 * What a confirmation gives back: as a right code does, for the messages sent by then. If the user was vouched for, only
 * trust is earned.
 */
function earned({ clock, keyring, settings }: Context, { customer, policy }: Account, auth: Authentication, at: number, earns: boolean): Claim[] {
  if (!hasNumber(auth) || isTestNumber(settings, auth.number)) return [];
  const moment: Moment = { now: clock.now(), skew: settings.clockSkew };
  const sentAt = countedAt(auth).filter((sent) => sent <= at + 2 * settings.clockSkew);
  const credits = creditClaims({ calls: callsAt(auth), ...auth }, policy, settings.ownCells, sentAt, earns, moment, keyring.pseudonym);
  const isCounted = sentAt.length > 0 || auth.unlocked === true;
  return [...credits.filter((claim) => isCounted || "member" in claim), ...(earns ? growthClaims(customer, policy, moment) : [])];
}

function report(context: Context, account: Account, auth: Authentication, { proved, earns = false }: Confirmed): void {
  const { countries, monitor, past, settings, statistics } = context;
  const { country, customer, number, origin } = auth;
  const isTest = isTestNumber(settings, number);
  monitor.confirmed(auth, proved?.attempt, isTest);
  if (isTest) return;
  past.confirmed(customer);
  statistics.verified(customer, country, proved);
  if (proved !== undefined) sendFeedback(context, auth, proved.attempt, "validated");
  if (country !== undefined && origin?.s !== 1 && origin?.g !== 1)
    countries.verified(account, country, { messages: countedAt(auth).length, earns, network: origin?.w });
}
