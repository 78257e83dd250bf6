import type { CheckRequest, CheckStatus } from "../contract/check.js";
import type { CheckResult } from "../contract/direct.js";
import { requireNumber } from "../core/records/records.js";
import { type Decided, transact } from "../core/records/transact.js";
import { type Authentication, callsAt, countedAt, hasNumber, isVerification, sendOf } from "../domain/authentication.js";
import { decideCheck, liveSends } from "../domain/check.js";
import type { Moment } from "../domain/claim.js";
import type { Account } from "../domain/policy.js";
import { growthClaims, guessClaim } from "../domain/quota.js";
import { creditClaims } from "../domain/spam-rules.js";
import { unknownAuthentication, VerifierError } from "../errors.js";
import { sendFeedback } from "../messages/feedback.js";
import { isTestNumber } from "../options/options.js";
import { toCheckResult } from "./answers.js";
import type { Context } from "./context.js";
import { type CheckCall, type KeyedCheck, keyedCheck } from "./idempotency.js";

/** The result of a check. */
export interface Verdict {
  readonly status: CheckStatus;
  /** The checked record; absent if an earlier check had the same key. */
  readonly auth?: Authentication;
  /** The record after the check, before its number is masked. */
  readonly after: Authentication;
  /** The attempt that carried the code, if this check validates. */
  readonly attempt?: number | undefined;
}

const otherCode = "The Idempotency-Key was used before with another code; use a new key for a new check.";

export async function check(context: Context, account: Account, request: CheckRequest, idempotencyKey?: string): Promise<CheckResult> {
  const { after, status } = await checkCode(context, account, request, { idempotencyKey });
  return toCheckResult(after, status, account.policy, context.clock.now());
}

/**
 * Checks a code in one commit that counts a wrong code or validates; "counted under any concurrency"
 * (docs/contract.md#checks).
 */
export async function checkCode(context: Context, account: Account, request: CheckRequest, call: CheckCall): Promise<Verdict> {
  const { records } = context;
  const { customer } = account;
  const { authentication_uuid: id, check_code: code } = request;
  const keyed = keyedCheck(context, code, call);
  const deadline = context.newDeadline();
  const attempt = (earns: boolean) =>
    transact(records, deadline, customer, id, (held): Decided<Verdict | undefined> => {
      if (held === undefined || !isVerification(held.auth)) throw unknownAuthentication();
      return decide(context, account, held.auth, code, keyed, earns);
    });
  const first = await attempt(true);
  // Two claims have a limit: the number's wrong codes, and its credit once a day.
  const isSpent = first.refused?.refusedBy === 0;
  const { result, refused } = first.refused === undefined || isSpent ? first : await attempt(false);
  if (result === undefined) throw new VerifierError("bad_request", otherCode);
  const verdict: Verdict = refused === undefined || result.auth === undefined ? result : { status: "rate_limited", auth: result.auth, after: result.auth };
  report(context, account, verdict, first.refused === undefined);
  return verdict;
}

/**
 * Decides a check on a record, with its claims: the guess, and for a correct code what the verification gives back.
 * `earns`: with credit. `undefined`: its key was used with another code.
 */
function decide(
  { keyring, clock, settings }: Context,
  { customer, policy }: Account,
  auth: Authentication,
  code: string,
  keyed: KeyedCheck | undefined,
  earns: boolean,
): Decided<Verdict | undefined> {
  const answered = keyed?.answered(auth, policy);
  if (answered !== undefined) return answered;
  const moment: Moment = { now: clock.now(), skew: settings.clockSkew };
  const match = keyring.matching(auth.id, code, liveSends(auth, policy));
  const { status, next: checked, proved } = decideCheck(auth, match, moment.now, policy);
  const result: Verdict = { status, auth, after: checked ?? auth, attempt: proved?.attempt };
  if (checked === undefined || (status !== "valid" && status !== "invalid")) return { result, next: checked };
  if (status === "valid") requireNumber(auth);
  const next = keyed === undefined ? checked : keyed.remember(checked, status);
  // If the number can no longer be decrypted, wrong codes match nothing, however often they are entered.
  const guesses = hasNumber(auth) ? [guessClaim(customer, auth.number, status === "valid" ? 0 : 1, policy, moment, keyring.pseudonym)] : [];
  const looksAgain = keyed !== undefined;
  if (proved === undefined || isTestNumber(settings, auth.number)) return { result, next, claims: guesses, looksAgain };
  const credits = creditClaims({ calls: callsAt(auth), ...auth }, policy, settings.ownCells, countedAt(auth), earns, moment, keyring.pseudonym);
  return { result, next, claims: [...guesses, ...credits, ...(earns ? growthClaims(customer, policy, moment) : [])], looksAgain };
}

/** Reports the result of a check. `earns`: its number had not verified within a day. */
function report(context: Context, account: Account, { auth, status, attempt }: Verdict, earns: boolean): void {
  const { monitor, alarms, countries, settings, statistics } = context;
  const { customer, policy } = account;
  if (status === "valid" || status === "invalid") alarms.judged(customer, status === "valid", policy.codeLength);
  if (auth === undefined) return;
  const counted = isTestNumber(settings, auth.number) ? undefined : attempt;
  monitor.checked(auth, status, counted);
  if (counted === undefined) return;
  const { country, origin } = auth;
  sendFeedback(context, auth, counted, "validated");
  statistics.verified(customer, country, sendOf(auth, counted));
  if (country !== undefined && origin?.s !== 1) countries.verified(account, country, { messages: countedAt(auth).length, earns, network: origin?.w });
}
