import type { CheckRequest, CheckStatus } from "../contract/check.js";
import type { CheckAnswer } from "../contract/direct.js";
import type { Authentication } from "../domain/authentication.js";
import { type Answer, Questions, verifiedAt } from "../domain/cells.js";
import { decideCheck } from "../domain/check.js";
import type { Policy } from "../domain/policy.js";
import { guessClaim } from "../domain/quota.js";
import { askCountry, creditClaims, potCredit } from "../domain/spam-rules.js";
import { VerifierError } from "../errors.js";
import type { Account } from "./door/account.js";
import { isTestNumber, newBudget, type Parts } from "./parts.js";
import { feedBack } from "./sending/feedback.js";
import { neededNumber, toldNumber, withStanding } from "./standing.js";
import { type Decided, transition } from "./transition.js";

/** Check: one commit that counts a wrong code or validates; "counted under any concurrency" (docs/contract.md#checks). */
export function checkAuthentication(parts: Parts, account: Account, request: CheckRequest, idempotencyKey?: string): Promise<CheckAnswer> {
  const { authentication_uuid, check_code } = request;
  const began = parts.clock.now();
  const keyed = idempotencyKey === undefined ? undefined : keyedCheck(parts, authentication_uuid, idempotencyKey, check_code);
  const decided = (auth: Authentication) => keyed?.answered(auth) ?? decide(parts, account, auth, check_code, keyed);
  return transition(parts.records, newBudget(parts), account.customer, authentication_uuid, decided).then(
    (verdict) => (verdict === undefined ? parts.eyes.failed.check(unknownAuthentication()) : told(parts, account, verdict, began)),
    parts.eyes.failed.check,
  );
}

function told(parts: Parts, { customer, policy }: Account, verdict: Verdict, began: number): CheckAnswer {
  const { eyes, alarms, statistics, clock } = parts;
  const { status, validated } = verdict;
  if (status === "valid" || status === "invalid") alarms.judged(customer, status === "valid", policy.codeLength);
  if (validated !== undefined) {
    feedBack(parts, validated.auth, validated.attempt, "validated");
    const { country, sends } = validated.auth;
    statistics.verified(customer, country, sends.find(({ attempt }) => attempt === validated.attempt)?.route);
    if (verdict.inNewCountry) creditPot(parts, validated.auth);
  }
  if (verdict.auth !== undefined) eyes.checked(verdict.auth, status, validated?.attempt);
  eyes.answered("check", status, began);
  return answerOf(verdict, policy, clock.now());
}

function answerOf({ status, after }: Verdict, policy: Policy, now: number): CheckAnswer {
  if (status === "valid") return withStanding({ authentication_uuid: after.id, status, phone_number: after.number }, after, policy, now);
  const phone_number = toldNumber(after, status);
  const answer = phone_number === undefined ? { authentication_uuid: after.id, status } : { authentication_uuid: after.id, status, phone_number };
  return withStanding(answer, after, policy, now);
}

/** "unknown, forgotten, or another customer's authentication: indistinguishable" (docs/contract.md#unknown-authentication). */
export function unknownAuthentication(): VerifierError {
  return new VerifierError("invalid_auth_uuid", "authentication_uuid is not an authentication of this customer, or was forgotten after its end.");
}

/** A new country's verification gives back to the pot, too. */
function creditPot(parts: Parts, { customer, sent, id }: Authentication): void {
  const { store, clock, settings, eyes } = parts;
  const credited = store.commit({ claims: potCredit(customer, sent, { now: clock.now(), skew: settings.clockSkew }) }).then(
    () => undefined,
    (err: unknown) => eyes.sparse.warn({ err, authentication_uuid: id }, "a verification could not be credited to the pot of new countries"),
  );
  parts.beside(credited);
}

/** What a check is answered, and the send whose code it was, when this very check validates. */
interface Verdict {
  readonly status: CheckStatus;
  /** As it was judged; absent where it had been, under the same key. */
  readonly auth?: Authentication;
  /** As it stands after it, before its number is masked. */
  readonly after: Authentication;
  readonly validated?: { readonly auth: Authentication; readonly attempt: number } | undefined;
  /** It validated a number of a country in which few had verified. */
  readonly inNewCountry?: boolean;
}

function decide(parts: Parts, { policy }: Account, auth: Authentication, code: string, keyed: KeyedRequest | undefined): Decided<Verdict> {
  const { codes, clock, settings } = parts;
  const now = clock.now();
  const { status, next: judged, proved } = decideCheck(auth, codes, code, now, policy);
  if (proved !== undefined) neededNumber(auth);
  const next = judged !== undefined && keyed !== undefined ? keyed.remember(judged, status) : judged;
  const result: Verdict = { status, auth, after: judged ?? auth, validated: proved && { auth, attempt: proved.attempt } };
  const { customer, number } = auth;
  const isTest = isTestNumber(settings, number) && (proved !== undefined || status === "invalid");
  if (proved === undefined && !isTest) return { result, next };
  const moment = { now, skew: settings.clockSkew };
  if (isTest) {
    const claims = [guessClaim(customer, number, proved === undefined ? 1 : 0, policy, moment, codes.mask)];
    return { result, next, claims, refused: () => ({ result: { status: "rate_limited", auth, after: auth } }) };
  }
  const { country, origin = {}, sent } = auth;
  // The cells that the messages had filled are credited by the very commit that validates.
  const claims = creditClaims({ customer, number, country, origin }, policy, settings.ownCells, sent, moment, codes.mask);
  if (origin.p === undefined || country === undefined) return { result, next, claims };
  const questions = new Questions(customer, moment);
  const verified = askCountry(questions, country);
  const answered = (answer: Answer): Verdict => ({ ...result, inNewCountry: verifiedAt(answer, verified).verified <= policy.spam.newCountries.provenAt });
  return { result, next, claims, asks: questions.asks, answered };
}

interface KeyedRequest {
  /** What the same key was answered before. Throws `bad_request` when it came with another code. */
  answered(auth: Authentication): Decided<Verdict> | undefined;
  /** The record with the answer under the key, in the same write that counts it. */
  remember(next: Authentication, status: CheckStatus): Authentication;
}

/** "the same key and body answer the same result without … a second count" (docs/contract.md#idempotency). Answers that count nothing are decided anew. */
function keyedCheck({ codes }: Parts, id: string, idempotencyKey: string, code: string): KeyedRequest {
  const keys = codes.fingerprints("check-key", `${id}\0${idempotencyKey}`);
  const requests = codes.fingerprints("check", `${id}\0${code}`);
  return {
    answered(auth) {
      const before = auth.checks.find((check) => keys.includes(check.key));
      if (before === undefined) return undefined;
      if (requests.includes(before.request)) {
        if (before.status === "valid") neededNumber(auth);
        return { result: { status: before.status, after: auth } };
      }
      throw new VerifierError("bad_request", "The Idempotency-Key was used before with another code; use a new key for a new check.");
    },
    remember: (next, status) => ({ ...next, checks: [...next.checks, { key: keys[0] as string, request: requests[0] as string, status }] }),
  };
}
