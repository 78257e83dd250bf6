import { meetsChallenge } from "../access/challenge.js";
import { askIpInfo, askOwnRules, type OwnWord, withListed } from "../access/custom-rules.js";
import { blockedNumber, lookBeforeSend, readDestination } from "../access/destination.js";
import type { AuthenticationStatus, CreateAuthenticationRequest } from "../contract/authentication.js";
import type { AuthenticationAnswer } from "../contract/direct.js";
import type { StoreDeadline } from "../core/deadline.js";
import { creation, type Decided } from "../core/records/transact.js";
import type { Account } from "../domain/account.js";
import { type Authentication, isCarrierRefused, isVoid, withDecision } from "../domain/authentication.js";
import type { Moment } from "../domain/claim.js";
import type { Decision } from "../domain/decision.js";
import type { PhoneNumber } from "../domain/phone-number.js";
import { milliseconds, type Policy } from "../domain/policy.js";
import { createCharges, listedClaims, refusedClaims, retryAfter } from "../domain/quota.js";
import { type IpInfo, signalDecisions } from "../domain/signals.js";
import type { SpamAttempt } from "../domain/spam.js";
import { type Origin, originOf } from "../domain/spam-rules.js";
import { timestamp } from "../domain/time.js";
import { VerifierError } from "../errors.js";
import { countryRules } from "../messages/country-rules.js";
import { nextSend } from "../messages/plan.js";
import { type Decide, sendOnce } from "../messages/reserve.js";
import { isTestNumber } from "../options/options.js";
import type { Network } from "../ports/sms-sender.js";
import { withStanding } from "./answers.js";
import type { Context } from "./context.js";

/**
 * "Create: faults (400) first, then the caller's spam rules → `spam_detected`, then caps → `rate_limited`, then our spam rules → `spam_detected`, else the code is sent and the status is `pending`" (docs/contract.md#create-order).
 * "The three outcomes all make an authentication with an id and `expires_at`" (docs/contract.md#create-outcomes).
 */
export async function createAuthentication(
  parts: Context,
  account: Account,
  request: CreateAuthenticationRequest,
  idempotencyKey?: string,
): Promise<AuthenticationAnswer> {
  const { clock, monitor } = parts;
  const began = clock.now();
  try {
    const phone = readDestination(parts, request.phone_number);
    const auth = await created(parts, account, request, phone, idempotencyKey);
    monitor.answered("create", auth.status, began);
    return answerOf(auth, phone.number, account.policy, clock.now());
  } catch (fault) {
    return monitor.failed.create(fault);
  }
}

/** The authentication of a request: the one that is stored under its key, or a new one, whose message was handed over or refused. */
async function created(
  parts: Context,
  account: Account,
  request: CreateAuthenticationRequest,
  phone: PhoneNumber,
  idempotencyKey: string | undefined,
): Promise<Authentication> {
  const { clock, keyring, settings } = parts;
  const { customer, policy } = account;
  const deadline = parts.newDeadline();
  const key = idempotencyKey === undefined ? undefined : keyedRequest(parts, account, request, idempotencyKey);
  const before = key && (await key.before(deadline, asksOthers(parts, request)));
  if (before !== undefined) return before;
  const id = key?.id ?? keyring.newId();
  const outside = await askOutside(parts, account, request, phone, id);
  const country = outside.safe ? undefined : phone.country;
  const now = clock.now();
  const ofCountry = await countryRules(parts, account, deadline, country, request.ip, now);
  const origin = originOf(request.ip, outside.own.cells, { pot: ofCountry.isNew, safe: outside.safe }, policy.spam, keyring.mask);
  const blank = newAuthentication(parts, account, request, phone, id, outside.own.decisions, origin, key?.fingerprint);
  const refuse = (status: AuthenticationStatus, decisions: readonly Decision[]) => refused(parts, account, { ...blank, status }, decisions, key);
  if (outside.own.decisions.some(({ mode }) => mode === "enforce")) return refuse("spam_detected", []);

  const fields = { deviceType: request.device_type, deviceId: request.device_id, country: phone.country };
  const signals = signalDecisions(policy.spam.signals.mode, fields, outside.ipInfo, now);
  const isCapped = !isTestNumber(settings, phone.number);
  const decide: Decide<Authentication | Decision> = (held) => {
    if (held !== undefined && !isVoid(held.auth)) return { answer: key === undefined ? held.auth : key.same(held.auth) };
    const moment: Moment = { now: clock.now(), skew: settings.clockSkew };
    const sending = nextSend(parts, begunAt(blank, moment.now, policy), policy, moment.now, outside.network);
    if (sending.unpriced !== undefined) return { answer: sending.unpriced };
    const { next } = sending;
    const subject = { customer, id, number: phone.number, createdAt: next.createdAt, attempt: next.attempts, deviceId: request.device_id, ip: request.ip };
    return {
      before: blank,
      sending,
      caps: isCapped ? createCharges(subject, policy, moment, keyring.mask) : [],
      listed: listedClaims(next, policy, moment, keyring.mask, isCapped),
      safe: outside.safe,
      proof: outside.proof,
      decided: [...ofCountry.decided, ...signals],
      moment,
    };
  };
  const outcome = await sendOnce(parts, account, deadline, id, true, decide, parts.monitor.created);
  if ("sent" in outcome) return outcome.sent.auth;
  if ("answer" in outcome) return "rule" in outcome.answer ? refuse("rate_limited", [outcome.answer]) : outcome.answer;
  const { status, decision } = outcome.refusal;
  if (status === "spam_detected" && country !== undefined) parts.countries.refused(account, country);
  return refuse(status, [decision]);
}

/** Whether others than the store are asked of a create, which they are once only. */
function asksOthers({ settings }: Context, { proof }: CreateAuthenticationRequest): boolean {
  return settings.spamRules.length > 0 || settings.lists.block !== undefined || proof !== undefined || settings.lookupBeforeSend;
}

/** What others than the store say of a create. */
interface Outside {
  readonly own: OwnWord;
  /** "A `proof` that holds waives the spam rules for that request" (docs/contract.md#challenge). */
  readonly proof: boolean;
  /** "Safe beats rules, never caps" (docs/contract.md#lists). */
  readonly safe: boolean;
  readonly ipInfo: IpInfo | undefined;
  readonly network: Network | undefined;
}

/** Asks others than the store, each once: lists, the caller's own rules and resolver, the challenge, a lookup. */
async function askOutside(parts: Context, account: Account, request: CreateAuthenticationRequest, phone: PhoneNumber, id: string): Promise<Outside> {
  const { clock, lists, settings } = parts;
  const listed = await lists.judge({ number: phone.number, ip: request.ip, deviceId: request.device_id });
  if (listed.block?.kind === "number") throw blockedNumber();
  const now = clock.now();
  const [own, ipInfo, proof, network] = await Promise.all([
    askOwnRules(parts, () => attemptOf(request, phone, id, now)),
    askIpInfo(parts, account, request.ip),
    listed.block === undefined && meetsChallenge(parts, request.proof, request.ip),
    listed.block === undefined && settings.lookupBeforeSend ? lookBeforeSend(parts, account, phone) : undefined,
  ]);
  return { own: withListed(own, listed, now), proof, safe: listed.safe || isTestNumber(settings, phone.number), ipInfo, network };
}

function newAuthentication(
  { clock, keyring }: Context,
  { customer, policy }: Account,
  request: CreateAuthenticationRequest,
  phone: PhoneNumber,
  id: string,
  decisions: readonly Decision[],
  origin: Origin | undefined,
  fingerprint: string | undefined,
): Authentication {
  const blank: Authentication = {
    customer,
    id,
    number: phone.number,
    sealed: keyring.seal(id, phone.number),
    country: phone.country,
    createdAt: 0,
    expiresAt: 0,
    keepUntil: 0,
    status: "pending",
    attempts: 0,
    sent: 0,
    retries: 0,
    lastSendAt: 0,
    wrongChecks: 0,
    validated: false,
    sends: [],
    decisions,
    checks: [],
    keptIds: [],
    events: 0,
    outbox: [],
    origin,
    uncounted: 0,
    request: fingerprint,
    deviceType: request.device_type,
    appRealm: request.app_realm,
    callbackUrl: request.callback_url,
    settleBy: undefined,
    endsAt: undefined,
  };
  return begunAt(blank, clock.now(), policy);
}

function begunAt(blank: Authentication, now: number, policy: Policy): Authentication {
  const expiresAt = now + milliseconds(policy.lifetime);
  return { ...blank, createdAt: now, lastSendAt: now, expiresAt, keepUntil: expiresAt + milliseconds(policy.tombstone) };
}

/** "One created `rate_limited` or `spam_detected` never has a code, and stays until `expires_at` only" (docs/contract.md#refused-records). */
function refusedAuthentication(blank: Authentication, decisions: readonly Decision[]): Authentication {
  return decisions.reduce(withDecision, { ...blank, keepUntil: blank.expiresAt });
}

/**
 * A refused create. It is kept in the background, as far as refusals are kept; under an idempotency key before it is answered, since its repeats must be answered alike.
 */
async function refused(
  parts: Context,
  { customer }: Account,
  blank: Authentication,
  decisions: readonly Decision[],
  key: KeyedRequest | undefined,
): Promise<Authentication> {
  const { inBackground, clock, keyring, monitor, records, settings, statistics } = parts;
  const next = refusedAuthentication(blank, decisions);
  const refusedBy = next.decisions.find(({ mode }) => mode === "enforce")?.rule;
  const moment = { now: clock.now(), skew: settings.clockSkew };
  const told = () => {
    if (refusedBy !== undefined) statistics.refused(customer, next.country, refusedBy);
    monitor.refused("create", next.status, next, next.decisions);
    return next;
  };
  const keep = creation<Authentication>(records, parts.newDeadline(), customer, next.id, (held): Decided<Authentication> => {
    if (held !== undefined && !isVoid(held.auth)) return { result: held.auth };
    // Beyond what is kept the answer is the same, and is not written down: refusals must not fill a store.
    return { result: next, next, claims: refusedClaims(next, moment, keyring.mask), refused: () => ({ result: next }) };
  });
  if (key !== undefined) {
    const kept = await keep;
    return kept === next ? told() : key.same(kept);
  }
  records.pending(next.id, keep);
  inBackground(
    keep.catch((err: unknown) => monitor.sparse.warn({ err, authentication_uuid: next.id }, "a refused create could not be kept; `explain` will not find it")),
  );
  return told();
}

/** What the caller's own rules see of a create. */
function attemptOf({ proof, ...request }: CreateAuthenticationRequest, { number, country, lineType }: PhoneNumber, id: string, now: number): SpamAttempt {
  return {
    ...request,
    phone_number: number,
    line_type: lineType,
    ...(country !== undefined && { country_code: country }),
    authentication_uuid: id,
    attempt: 1,
    now,
  };
}

interface KeyedRequest {
  readonly id: string;
  readonly fingerprint: string;
  /** What is stored under the key, where that must be known first: under another secret, or where the caller's rules are to be asked once only. */
  before(deadline: StoreDeadline, askFirst: boolean): Promise<Authentication | undefined>;
  /** The record of the same request. Throws `bad_request` for that of another. */
  same(auth: Authentication): Authentication;
}

/** "An idempotency key makes the id of the authentication … and a create with a key is the same one commit: whoever is done sends, a twin or a repeat finds the record and answers what is stored" (docs/contract.md#keyed-id). */
function keyedRequest({ keyring, records }: Context, { customer }: Account, request: CreateAuthenticationRequest, key: string): KeyedRequest {
  const [id, ...others] = keyring.idsFor(customer, key) as [string, ...string[]];
  const fingerprints = keyring.fingerprints("create", JSON.stringify({ ...request, proof: undefined }));
  const same = (auth: Authentication) => {
    if (auth.request !== undefined && fingerprints.includes(auth.request)) return auth;
    throw new VerifierError("bad_request", "The Idempotency-Key was used before with another body; use a new key for a new request.");
  };
  return {
    id,
    fingerprint: fingerprints[0] as string,
    same,
    async before(deadline, askFirst) {
      for (const one of askFirst ? [id, ...others] : others) {
        const held = await records.find(deadline, customer, one);
        if (held !== undefined && !isVoid(held.auth)) return same(held.auth);
      }
      return undefined;
    },
  };
}

/** `number`: of the request, since the record of one that is over holds it no more. */
function answerOf(auth: Authentication, number: string, policy: Policy, now: number): AuthenticationAnswer {
  const told = {
    authentication_uuid: auth.id,
    created_at: timestamp(auth.createdAt),
    expires_at: timestamp(auth.expiresAt),
    status: auth.status,
    phone_number: number,
  };
  const answer = withStanding(told, auth, policy, now);
  const retry_after = auth.status === "rate_limited" ? retryAfter(auth.decisions, now) : undefined;
  if (retry_after !== undefined) return { ...answer, retry_after };
  return isCarrierRefused(auth) ? { ...answer, carrier_refused: true } : answer;
}
