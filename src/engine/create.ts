import type { AuthenticationStatus, CreateAuthenticationRequest } from "../contract/authentication.js";
import type { AuthenticationAnswer } from "../contract/direct.js";
import { type Authentication, blankOf, isCarrierRefused, isVoid, withDecision, withoutSendThatNeverWas } from "../domain/authentication.js";
import type { Decision } from "../domain/decision.js";
import type { PhoneNumber } from "../domain/phone-number.js";
import { milliseconds, type Policy } from "../domain/policy.js";
import { createCharges, listedClaims, refusedClaims, retryAfter } from "../domain/quota.js";
import { type IpInfo, signalDecisions } from "../domain/signals.js";
import type { SpamAttempt } from "../domain/spam.js";
import { type Origin, originOf } from "../domain/spam-rules.js";
import { VerifierError } from "../errors.js";
import type { Network } from "../ports/sms-sender.js";
import type { StoreBudget } from "./clock/budget.js";
import type { Account } from "./door/account.js";
import { meetsChallenge } from "./door/challenge.js";
import { blockedNumber, lookBeforeSend, readDestination } from "./door/destination.js";
import { askIpInfo, askOwnRules, type OwnWord, withListed } from "./door/spam.js";
import { isTestNumber, newBudget, type Parts } from "./parts.js";
import type { Held } from "./records/records.js";
import { Admission, decisionsOf, type Granted, type Pass, passed, type Refusal } from "./sending/admission.js";
import { handOver } from "./sending/hand-over.js";
import { nextSend, type Sending } from "./sending/next-send.js";
import { Tries } from "./sending/take-back.js";
import { allSoon, type Soon, soon } from "./soon.js";
import { withStanding } from "./standing.js";
import { timestamp } from "./timestamp.js";
import { creation, type Decided, transition } from "./transition.js";

const none: readonly never[] = [];

/** What a create came to: what is stored, and the send to make for it, when this very create was granted it. */
interface Created {
  readonly auth: Authentication;
  readonly granted?: Granted;
  /** The rule that refused this very create. */
  readonly refusedBy?: string | undefined;
  /** It was stored before, under the same key. */
  readonly known?: boolean;
}

/** What is known of a create before anything is written. */
interface Asked {
  readonly request: CreateAuthenticationRequest;
  readonly phone: PhoneNumber;
  readonly id: string;
  readonly around: Around;
  readonly fingerprint: string | undefined;
}

/**
 * "Create: faults (400) first, then the caller's spam rules → `spam_detected`, then caps → `rate_limited`, then our spam rules → `spam_detected`, else the code is sent and the status is `pending`" (docs/contract.md#create-order). "The three outcomes all make an authentication with an id and `expires_at`" (docs/contract.md#create-outcomes).
 */
export async function createAuthentication(
  parts: Parts,
  account: Account,
  request: CreateAuthenticationRequest,
  idempotencyKey?: string,
): Promise<AuthenticationAnswer> {
  const { clock, codes, eyes, records, statistics } = parts;
  const { customer, policy } = account;
  const began = clock.now();
  const tries = new Tries(parts);
  try {
    const phone = readDestination(parts, request.phone_number);
    const budget = newBudget(parts);
    const key = idempotencyKey === undefined ? undefined : keyedRequest(parts, account, request, idempotencyKey);
    const answered = (auth: Authentication) => {
      eyes.answered("create", auth.status, began);
      return answerOf(auth, phone.number, policy, clock.now());
    };
    const before = key && (await key.before(budget, asksOthers(parts, request)));
    if (before !== undefined) return answered(before);
    const id = key?.id ?? codes.newId();
    const around = askAround(parts, account, request, phone, id, clock.now());
    const asked: Asked = { request, phone, id, around: around instanceof Promise ? await around : around, fingerprint: key?.fingerprint };
    const created = await creation(records, budget, customer, id, (held) => tries.of(decide(parts, account, asked, key, held), held));
    const admission = admitted(parts, budget, created);
    const { auth, sending, known, refusedBy } = admission instanceof Promise ? await admission : admission;
    tries.over();
    if (refusedBy !== undefined) statistics.refused(customer, auth.country, refusedBy);
    if (sending === undefined) {
      if (known !== true) eyes.refused("create", auth.status, auth, auth.decisions);
      return answered(auth);
    }
    eyes.created(auth);
    return answered((await handOver(parts, budget, policy, sending)).auth);
  } catch (fault) {
    tries.failed(fault);
    return eyes.failed.create(fault);
  }
}

/** Whether others than the store are asked of a create, which they are once only. */
function asksOthers({ settings }: Parts, { proof }: CreateAuthenticationRequest): boolean {
  return settings.spamRules.length > 0 || settings.lists.block !== undefined || proof !== undefined || settings.lookupBeforeSend;
}

/** What others than the store say of a create. */
interface Around {
  readonly own: OwnWord;
  readonly pass: Pass;
  readonly ipInfo: IpInfo | undefined;
  readonly network: Network | undefined;
}

/** What others than the store are asked of a create: lists, the caller's own rules and resolver, the challenge, a lookup. */
function askAround(parts: Parts, account: Account, request: CreateAuthenticationRequest, phone: PhoneNumber, id: string, now: number): Soon<Around> {
  return soon(parts.lists.judge({ number: phone.number, ip: request.ip, deviceId: request.device_id }), (listed) => {
    if (listed.block?.kind === "number") throw blockedNumber();
    const answers = allSoon<[OwnWord, IpInfo | undefined, boolean, Network | undefined]>([
      askOwnRules(parts, () => attemptOf(request, phone, id, now)),
      askIpInfo(parts, account, request.ip),
      listed.block === undefined && meetsChallenge(parts, request.proof, request.ip),
      listed.block === undefined && parts.settings.lookupBeforeSend ? lookBeforeSend(parts, account, phone) : undefined,
    ]);
    return soon(answers, ([own, ipInfo, proof, network]) => ({
      own: withListed(own, listed, now),
      pass: { proof, safe: listed.safe || isTestNumber(parts.settings, phone.number) },
      ipInfo,
      network,
    }));
  });
}

function decide(parts: Parts, account: Account, asked: Asked, key: KeyedRequest | undefined, held: Held | undefined): Decided<Created> {
  if (held === undefined || isVoid(held.auth)) return newCreate(parts, account, asked);
  return { result: { auth: key === undefined ? held.auth : key.same(held.auth), known: true } };
}

function newCreate(parts: Parts, account: Account, asked: Asked): Decided<Created> {
  const { request, phone, id } = asked;
  const { own, pass, ipInfo, network } = asked.around;
  const { settings, clock, codes, countries } = parts;
  const { policy, customer } = account;
  const now = clock.now();
  const moment = { now, skew: settings.clockSkew };
  const { country, number } = phone;
  const isNew = policy.spam.newCountries.mode !== "off" && country !== undefined && !pass.safe && !countries.isProven(customer, country, now);
  const origin = originOf(request.ip, own.cells, { pot: isNew, safe: pass.safe }, policy.spam, codes.mask);
  const blank = newAuthentication(parts, account, asked, origin, now);
  const refuse = (status: AuthenticationStatus, decisions: readonly Decision[]): Decided<Created> => {
    const next = refused(blank, status, decisions);
    const result = { auth: next, refusedBy: next.decisions.find(({ mode }) => mode === "enforce")?.rule };
    // Beyond what is kept the answer is the same, and is not written down: refusals must not fill a store.
    return { result, next, claims: refusedClaims(next, moment, codes.mask), refused: () => ({ result }) };
  };
  if (own.decisions.some(({ mode }) => mode === "enforce")) return refuse("spam_detected", []);
  const sending = nextSend(parts, blank, policy, now, network);
  if (sending.unpriced !== undefined) return refuse("rate_limited", [sending.unpriced]);
  const { next } = sending;
  const signals = signalDecisions(policy.spam.signals.mode, { deviceType: request.device_type, deviceId: request.device_id, country }, ipInfo, now);
  const subject = { customer, id, number, createdAt: now, attempt: next.attempts, deviceId: request.device_id, ip: request.ip };
  const isCapped = !isTestNumber(settings, number);
  const caps = isCapped ? createCharges(subject, policy, moment, codes.mask) : none;
  const admission = new Admission(parts, account, sending, caps, pass, signals, moment);
  const { claims, asks } = admission;
  const listed = listedClaims(next, policy, moment, codes.mask, isCapped);
  return {
    result: { auth: next },
    next,
    claims: listed.length === 0 ? claims : [...claims, ...listed],
    asks,
    token: codes.newToken(),
    refused: (claim) => refuse("rate_limited", [admission.refused(claim)]),
    answered: (answer) => ({ auth: next, granted: admission.granted(answer) }),
  };
}

interface Admitted extends Pick<Created, "auth" | "known" | "refusedBy"> {
  readonly sending?: Sending | undefined;
}

/** The verdict on a create that is written down: it goes, or it is settled as refused and taken out of all that counted it. */
function admitted(parts: Parts, budget: StoreBudget, created: Created): Soon<Admitted> {
  const { auth, granted } = created;
  if (granted === undefined) return created;
  const sending = passed(parts, granted);
  const { refusal } = granted.verdict;
  return refusal === undefined ? { auth, sending } : settleRefused(parts, budget, auth, granted, refusal);
}

async function settleRefused(parts: Parts, budget: StoreBudget, auth: Authentication, granted: Granted, refusal: Refusal): Promise<Admitted> {
  const { moment } = granted.admission;
  const { status } = refusal;
  const decisions = await decisionsOf(parts, budget, refusal);
  const returned = granted.admission.returned();
  const settled = await transition(parts.records, budget, auth.customer, auth.id, (current): Decided<Authentication> => {
    const next = refused(withoutSendThatNeverWas(current, auth.attempts, blankOf(auth)), status, decisions);
    const kept = refusedClaims(next, moment, parts.codes.mask);
    return {
      result: next,
      next,
      claims: [...kept, ...returned],
      refused: () => ({ result: next, next: { ...next, keepUntil: moment.now }, claims: returned }),
    };
  });
  const refusedBy = decisions.find(({ mode }) => mode === "enforce")?.rule;
  return { auth: settled ?? refused(blankOf(auth), status, decisions), refusedBy };
}

function newAuthentication(
  { codes }: Parts,
  { customer, policy }: Account,
  { request, phone, id, around, fingerprint }: Asked,
  origin: Origin | undefined,
  now: number,
): Authentication {
  const expiresAt = now + milliseconds(policy.lifetime);
  return {
    customer,
    id,
    number: phone.number,
    sealed: codes.seal(id, phone.number),
    country: phone.country,
    createdAt: now,
    expiresAt,
    keepUntil: expiresAt + milliseconds(policy.tombstone),
    status: "pending",
    attempts: 0,
    sent: 0,
    retries: 0,
    lastSendAt: now,
    wrongChecks: 0,
    validated: false,
    sends: none,
    decisions: around.own.decisions,
    checks: none,
    keptIds: none,
    events: 0,
    outbox: none,
    origin,
    request: fingerprint,
    deviceType: request.device_type,
    appRealm: request.app_realm,
    callbackUrl: request.callback_url,
    settleBy: undefined,
    endsAt: undefined,
  };
}

/** "One created `rate_limited` or `spam_detected` stays until `expires_at` only and holds no code" (docs/contract.md#refused-records). */
function refused(blank: Authentication, status: AuthenticationStatus, decisions: readonly Decision[]): Authentication {
  return decisions.reduce(withDecision, { ...blank, status, keepUntil: blank.expiresAt });
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
  /** What is stored under the key, where that must be known first: under an older secret, or where the caller's rules are to be asked once only. */
  before(budget: StoreBudget, askFirst: boolean): Promise<Authentication | undefined>;
  /** The record of the same request. Throws `bad_request` for that of another. */
  same(auth: Authentication): Authentication;
}

/** "An idempotency key makes the id of the authentication … and a create with a key is the same one commit: whoever is done sends, a twin or a repeat finds the record and answers what is stored" (docs/contract.md#keyed-id). */
function keyedRequest({ codes, records }: Parts, { customer }: Account, request: CreateAuthenticationRequest, key: string): KeyedRequest {
  const [id, ...older] = codes.idsFor(customer, key) as [string, ...string[]];
  const fingerprints = codes.fingerprints("create", JSON.stringify({ ...request, proof: undefined }));
  const same = (auth: Authentication) => {
    if (auth.request !== undefined && fingerprints.includes(auth.request)) return auth;
    throw new VerifierError("bad_request", "The Idempotency-Key was used before with another body; use a new key for a new request.");
  };
  return {
    id,
    fingerprint: fingerprints[0] as string,
    same,
    async before(budget, askFirst) {
      for (const one of askFirst ? [id, ...older] : older) {
        const held = await records.find(budget, customer, one);
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
