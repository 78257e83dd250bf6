import type { CheckRequest, CheckStatus } from "../contract/check.js";
import type { CheckAnswer } from "../contract/direct.js";
import { type Decided, transition } from "../core/records/transact.js";
import type { Account } from "../domain/account.js";
import { type Authentication, countedAt, hasNumber, isErased } from "../domain/authentication.js";
import { decideCheck } from "../domain/check.js";
import type { Claim, Moment } from "../domain/claim.js";
import type { Policy } from "../domain/policy.js";
import { growthClaims, guessClaim } from "../domain/quota.js";
import { creditClaims } from "../domain/spam-rules.js";
import { VerifierError } from "../errors.js";
import { feedBack } from "../messages/feedback.js";
import { isTestNumber } from "../options/options.js";
import { neededNumber, toldNumber, withStanding } from "./answers.js";
import type { Context } from "./context.js";

/** Check: one commit that counts a wrong code or validates; "counted under any concurrency" (docs/contract.md#checks). */
export async function checkAuthentication(parts: Context, account: Account, request: CheckRequest, idempotencyKey?: string): Promise<CheckAnswer> {
  const { clock, monitor, records } = parts;
  const { authentication_uuid, check_code } = request;
  const began = clock.now();
  try {
    const keyed = idempotencyKey === undefined ? undefined : keyedCheck(parts, authentication_uuid, idempotencyKey, check_code);
    const verdict = await transition(records, parts.newDeadline(), account.customer, authentication_uuid, (auth) => {
      if (isErased(auth)) throw unknownAuthentication();
      return keyed?.answered(auth) ?? decide(parts, account, auth, check_code, keyed);
    });
    if (verdict === undefined) throw unknownAuthentication();
    report(parts, account, verdict);
    monitor.answered("check", verdict.status, began);
    return answerOf(verdict, account.policy, clock.now());
  } catch (fault) {
    return monitor.failed.check(fault);
  }
}

/** Reports what a check found. */
function report(parts: Context, account: Account, { auth, status, attempt }: Verdict): void {
  const { monitor, alarms, countries, settings, statistics } = parts;
  const { customer, policy } = account;
  if (status === "valid" || status === "invalid") alarms.judged(customer, status === "valid", policy.codeLength);
  if (auth === undefined) return;
  monitor.checked(auth, status, attempt);
  if (attempt === undefined || isTestNumber(settings, auth.number)) return;
  const { country, origin, sends } = auth;
  feedBack(parts, auth, attempt, "validated");
  statistics.verified(customer, country, sends.find((send) => send.attempt === attempt)?.route);
  if (country !== undefined && origin?.s !== 1) countries.verified(account, country, countedAt(auth).length, origin?.w);
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

/** What a check is answered. */
interface Verdict {
  readonly status: CheckStatus;
  /** As it was judged; absent where it had been, under the same key. */
  readonly auth?: Authentication;
  /** As it stands after it, before its number is masked. */
  readonly after: Authentication;
  /** The attempt whose code it was, when this very check validates. */
  readonly attempt?: number | undefined;
}

function decide(parts: Context, { customer, policy }: Account, auth: Authentication, code: string, keyed: KeyedRequest | undefined): Decided<Verdict> {
  const { keyring, clock, settings } = parts;
  const moment: Moment = { now: clock.now(), skew: settings.clockSkew };
  const { status, next: judged, proved } = decideCheck(auth, keyring, code, moment.now, policy);
  const result: Verdict = { status, auth, after: judged ?? auth, attempt: proved?.attempt };
  if (judged === undefined || (status !== "valid" && status !== "invalid")) return { result, next: judged };
  if (status === "valid") neededNumber(auth);
  const next = keyed === undefined ? judged : keyed.remember(judged, status);
  // A wrong code under a number that cannot be read any more matches nothing, however often it is typed.
  const guesses = hasNumber(auth) ? [guessClaim(customer, auth.number, status === "valid" ? 0 : 1, policy, moment, keyring.mask)] : [];
  const usedUp: Decided<Verdict> = { result: { status: "rate_limited", auth, after: auth } };
  const write = (credits: readonly Claim[], again?: () => Decided<Verdict>): Decided<Verdict> => {
    const refused = ({ refusedBy }: { readonly refusedBy: number }) => (refusedBy < guesses.length || again === undefined ? usedUp : again());
    return { result, next, claims: [...guesses, ...credits], refused, looksAgain: keyed !== undefined };
  };
  if (proved === undefined || isTestNumber(settings, auth.number)) return write([]);
  const sentAt = countedAt(auth);
  const growth = growthClaims(customer, policy, moment);
  const credits = (earns: boolean) => [...creditClaims(auth, policy.spam, settings.ownCells, sentAt, earns, moment, keyring.mask), ...growth];
  // The only other claim with a limit: the number has earned within the day.
  return write(credits(true), () => write(credits(false)));
}

interface KeyedRequest {
  /** What the same key was answered before. Throws `bad_request` when it came with another code. */
  answered(auth: Authentication): Decided<Verdict> | undefined;
  /** The record with the answer under the key, in the same write that counts it. */
  remember(next: Authentication, status: CheckStatus): Authentication;
}

/** "the same key and body answer the same result without … a second count" (docs/contract.md#idempotency). Answers that count nothing are decided anew. */
function keyedCheck({ keyring }: Context, id: string, idempotencyKey: string, code: string): KeyedRequest {
  const keys = keyring.fingerprints("check-key", `${id}\0${idempotencyKey}`);
  const requests = keyring.fingerprints("check", `${id}\0${code}`);
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
