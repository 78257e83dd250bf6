import type { RetryAnswer } from "../contract/direct.js";
import type { RetryRequest, RetryStatus } from "../contract/retry.js";
import { type Authentication, holdsCodes, withDecision, withoutCodes, withoutSendThatNeverWas } from "../domain/authentication.js";
import type { Decision } from "../domain/decision.js";
import { checksLeft } from "../domain/left.js";
import type { Policy } from "../domain/policy.js";
import { retryAfter, sendCharges } from "../domain/quota.js";
import { decideRetry, retryResult } from "../domain/retry.js";
import { settleOverdue } from "../domain/send.js";
import type { Network } from "../ports/sms-sender.js";
import { unknownAuthentication } from "./check.js";
import type { StoreBudget } from "./clock/budget.js";
import type { Account } from "./door/account.js";
import { lookAgain, readAgain } from "./door/destination.js";
import { askOwnRules, withListed } from "./door/spam.js";
import { isTestNumber, newBudget, type Parts } from "./parts.js";
import { Admission, decisionsOf, type Granted, passed } from "./sending/admission.js";
import { handOver } from "./sending/hand-over.js";
import { nextSend, type Sending } from "./sending/next-send.js";
import { Tries } from "./sending/take-back.js";
import { neededNumber, toldNumber } from "./standing.js";
import { timestamp } from "./timestamp.js";
import { type Decided, transition } from "./transition.js";

/** What a retry is answered, and the send to make, when this very retry was granted it. */
interface Retried {
  readonly status: RetryStatus;
  readonly auth: Authentication;
  readonly granted?: Granted & { readonly before: Authentication };
  /** The rule that refused this very retry. */
  readonly refusedBy?: string | undefined;
  /** What the caller's own rules, and those that refuse it, said of this very retry. */
  readonly fired?: readonly Decision[];
}

/** Retry: the rows of `decideRetry`, then the caller's spam rules, caps, ours, then the carrier. */
export async function retryAuthentication(parts: Parts, account: Account, request: RetryRequest): Promise<RetryAnswer> {
  const { clock, eyes } = parts;
  const began = clock.now();
  try {
    const answer = await answerOf(parts, account, request);
    eyes.answered("retry", answer.status, began);
    return answer;
  } catch (fault) {
    return eyes.failed.retry(fault);
  }
}

async function answerOf(parts: Parts, account: Account, request: RetryRequest): Promise<RetryAnswer> {
  const { clock, eyes } = parts;
  const { policy, customer } = account;
  const budget = newBudget(parts);
  const own = await askOwn(parts, account, request, budget);
  const retried = await tried(parts, account, request, own, budget);
  if (retried === undefined) throw unknownAuthentication();
  if (retried.refusedBy !== undefined) parts.statistics.refused(customer, retried.auth.country, retried.refusedBy);
  if (retried.fired !== undefined && retried.status === "rate_limited") eyes.refused("retry", retried.status, retried.auth, retried.fired);
  const { sending, fired = [] } = retried;
  if (sending === undefined) {
    const retry_after = retried.status === "rate_limited" ? retryAfter(fired, clock.now()) : undefined;
    return { ...told(parts, retried.auth, retried.status, policy), ...(retry_after !== undefined && { retry_after }) };
  }
  const { result, auth } = await handOver(parts, budget, policy, sending);
  if (result === "rejected") return { ...told(parts, auth, "denied", policy), carrier_refused: true };
  return told(parts, auth, "approved", policy);
}

async function tried(parts: Parts, account: Account, { authentication_uuid }: RetryRequest, own: OwnRetryWord, budget: StoreBudget) {
  const tries = new Tries(parts);
  try {
    const first = await transition(parts.records, budget, account.customer, authentication_uuid, (auth, held) =>
      tries.of(decide(parts, account, auth, own), held),
    );
    return first && (await admitted(parts, budget, first));
  } catch (fault) {
    tries.failed(fault);
    throw fault;
  }
}

/** What the caller's own rules and lists say of a retry. */
interface OwnRetryWord {
  readonly decisions: readonly Decision[];
  readonly safe: boolean;
  readonly network?: Network | undefined;
}

const silent: OwnRetryWord = { decisions: [], safe: false };

/** What the caller's own rules and lists say of a retry that the record allows; they are asked once. */
async function askOwn(parts: Parts, account: Account, { authentication_uuid }: RetryRequest, budget: StoreBudget): Promise<OwnRetryWord> {
  const { clock, records, settings } = parts;
  const { customer, policy } = account;
  if (settings.spamRules.length === 0 && settings.lists.block === undefined && settings.lists.safe === undefined && !settings.lookupBeforeSend) return silent;
  const held = await records.find(budget, customer, authentication_uuid);
  const now = clock.now();
  if (held === undefined || decideRetry(held.auth, now, policy) !== "approved") return silent;
  const { id, number, attempts, deviceType } = held.auth;
  const phone = readAgain(parts, number);
  const listed = await parts.lists.judge({ number });
  const own = await askOwnRules(parts, () => ({
    customer_uuid: customer,
    phone_number: number,
    line_type: phone?.lineType ?? "Unknown",
    ...(phone?.country !== undefined && { country_code: phone.country }),
    ...(deviceType !== undefined && { device_type: deviceType }),
    authentication_uuid: id,
    attempt: attempts + 1,
    now,
  }));
  return { decisions: withListed(own, listed, now).decisions, safe: listed.safe, network: await lookAgain(parts, account, phone) };
}

function decide(parts: Parts, account: Account, auth: Authentication, own: OwnRetryWord): Decided<Retried> {
  const { clock, codes, settings } = parts;
  const { policy } = account;
  const now = clock.now();
  const moment = { now, skew: settings.clockSkew };
  const status = decideRetry(auth, now, policy);
  // "The record stays 24 h more, without its codes" (docs/contract.md#tombstone).
  if (status === "expired_auth" && holdsCodes(auth)) return { result: { status, auth }, next: withoutCodes(auth) };
  if (status !== "approved") return { result: { status, auth } };
  neededNumber(auth);

  const noted = own.decisions.reduce(withDecision, auth);
  const refuse = (decision?: Decision): Decided<Retried> => {
    const next = decision === undefined ? noted : withDecision(noted, decision);
    const refusedBy = decision?.rule ?? own.decisions.find(({ mode }) => mode === "enforce")?.rule;
    return { result: { status: "rate_limited", auth: next, refusedBy, fired: decision === undefined ? own.decisions : [...own.decisions, decision] }, next };
  };
  if (own.decisions.some(({ mode }) => mode === "enforce")) return refuse();
  const sending = nextSend(parts, settleOverdue(noted, policy, now), policy, now, own.network);
  if (sending.unpriced !== undefined) return refuse(sending.unpriced);
  const { next } = sending;
  const caps = isTestNumber(settings, next.number) ? [] : sendCharges({ ...next, attempt: next.attempts }, policy, moment, codes.mask);
  const admission = new Admission(parts, account, sending, caps, { proof: false, safe: own.safe || auth.origin?.s === 1 }, [], moment);
  const { claims, asks } = admission;
  return {
    result: { status, auth: next },
    next,
    claims,
    asks,
    token: codes.newToken(),
    refused: (claim) => refuse(admission.refused(claim)),
    answered: (answer) => ({ status, auth: next, fired: own.decisions, granted: { before: auth, ...admission.granted(answer) } }),
  };
}

/** The verdict on a retry that is written down: it goes, or it is as if it had never been tried. "A refusal consumes nothing" (docs/contract.md#refusal-consumes-nothing). */
async function admitted(parts: Parts, budget: StoreBudget, retried: Retried): Promise<Omit<Retried, "granted"> & { readonly sending?: Sending }> {
  const { status, auth, granted, fired = [] } = retried;
  if (granted === undefined) return retried;
  const sending = passed(parts, granted);
  if (sending !== undefined) return { status, auth, sending };
  const { before, verdict } = granted;
  const decisions = verdict.refusal === undefined ? [] : await decisionsOf(parts, budget, verdict.refusal);
  const returned = granted.admission.returned();
  const settled = await transition(parts.records, budget, auth.customer, auth.id, (current): Decided<Authentication> => {
    const next = decisions.reduce(withDecision, withoutSendThatNeverWas(current, auth.attempts, before));
    return { result: next, next, claims: returned };
  });
  return {
    status: "rate_limited",
    auth: settled ?? before,
    refusedBy: decisions.find(({ mode }) => mode === "enforce")?.rule,
    fired: [...fired, ...decisions],
  };
}

function told({ clock }: Parts, auth: Authentication, status: RetryStatus, policy: Policy): RetryAnswer {
  const now = clock.now();
  const { remaining, nextRetryAt } = retryResult(auth, status, policy);
  const number = toldNumber(auth, status);
  return {
    authentication_uuid: auth.id,
    created_at: timestamp(now),
    next_retry_at: timestamp(nextRetryAt),
    remaining_retry: remaining,
    status,
    ...(number !== undefined && { phone_number: number }),
    remaining_checks: checksLeft(auth, now, policy),
  };
}
