import { askOwnRules, withListed } from "../access/custom-rules.js";
import { lookAgain, readAgain } from "../access/destination.js";
import type { RetryAnswer } from "../contract/direct.js";
import type { RetryRequest, RetryStatus } from "../contract/retry.js";
import type { StoreDeadline } from "../core/deadline.js";
import type { Held } from "../core/records/records.js";
import { type Decided, transition } from "../core/records/transact.js";
import type { Account } from "../domain/account.js";
import { type Authentication, holdsCodes, isErased, withDecision, withoutCodes } from "../domain/authentication.js";
import type { Moment } from "../domain/claim.js";
import type { Decision } from "../domain/decision.js";
import { checksLeft } from "../domain/left.js";
import type { Policy } from "../domain/policy.js";
import { retryAfter, sendCharges } from "../domain/quota.js";
import { decideRetry, retryResult } from "../domain/retry.js";
import { settleOverdue } from "../domain/send.js";
import { timestamp } from "../domain/time.js";
import { strangeNetwork } from "../messages/country-rules.js";
import { nextSend } from "../messages/plan.js";
import { type Candidate, type Decide, sendOnce } from "../messages/reserve.js";
import { isTestNumber } from "../options/options.js";
import type { Network } from "../ports/sms-sender.js";
import { neededNumber, toldNumber } from "./answers.js";
import { unknownAuthentication } from "./check.js";
import type { Context } from "./context.js";

/** Retry: the rows of `decideRetry`, then the caller's spam rules, caps, ours, then the carrier. */
export async function retryAuthentication(parts: Context, account: Account, request: RetryRequest): Promise<RetryAnswer> {
  const { clock, monitor } = parts;
  const began = clock.now();
  try {
    const answer = await retried(parts, account, request.authentication_uuid);
    monitor.answered("retry", answer.status, began);
    return answer;
  } catch (fault) {
    return monitor.failed.retry(fault);
  }
}

/** A retry that sends nothing: by the record alone, or because something refuses it. */
interface Unsent {
  readonly auth: Authentication;
  readonly status: RetryStatus;
  /** Why it is refused, beyond what the record says. */
  readonly decision?: Decision;
}

async function retried(parts: Context, account: Account, id: string): Promise<RetryAnswer> {
  const { policy } = account;
  const deadline = parts.newDeadline();
  const outside = await askOutside(parts, account, deadline, id);
  const outcome = await sendOnce<Unsent>(parts, account, deadline, id, false, decision(parts, account, outside));
  if ("sent" in outcome) {
    const { result, auth } = outcome.sent;
    if (result === "rejected") return { ...told(parts, auth, "denied", policy), carrier_refused: true };
    return told(parts, auth, "approved", policy);
  }
  if ("answer" in outcome) {
    const { auth, status, decision } = outcome.answer;
    const isOwn = status === "rate_limited" && outside.decisions.some(({ mode }) => mode === "enforce");
    return decision !== undefined || isOwn ? refused(parts, account, auth, outside.decisions, decision) : told(parts, auth, status, policy);
  }
  const { candidate, decision: refusal } = outcome.refusal;
  return refused(parts, account, candidate.before, outside.decisions, refusal);
}

/** What others than the store, and the country's state, say of a retry that the record allows. */
interface Outside {
  readonly decisions: readonly Decision[];
  readonly safe: boolean;
  readonly network?: Network | undefined;
  readonly decided: readonly Decision[];
}

const silent: Outside = { decisions: [], safe: false, decided: [] };

/** Asks others than the store, each once. The record is read first where something depends on it. */
async function askOutside(parts: Context, account: Account, deadline: StoreDeadline, id: string): Promise<Outside> {
  const { clock, countries, lists, records, settings } = parts;
  const { customer, policy } = account;
  const { block, safe } = settings.lists;
  const asks = settings.spamRules.length > 0 || block !== undefined || safe !== undefined || settings.lookupBeforeSend;
  const remembered = asks ? undefined : records.recall(customer, id);
  const { auth } = remembered ?? (await records.find(deadline, customer, id)) ?? {};
  const now = clock.now();
  if (auth === undefined || decideRetry(auth, now, policy) !== "approved") return silent;
  const { number, attempts, deviceType, origin } = auth;
  const alarm = auth.country === undefined ? undefined : countries.alarmOf(account, auth.country);
  const decided = await strangeNetwork(parts, account, deadline, auth.country ?? "", origin?.w, alarm, now);
  if (!asks) return { ...silent, decided };
  const phone = readAgain(parts, number);
  const listed = await lists.judge({ number });
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
  const network = await lookAgain(parts, account, phone);
  return { decisions: withListed(own, listed, now).decisions, safe: listed.safe, network, decided };
}

function decision(parts: Context, account: Account, outside: Outside): Decide<Unsent> {
  const { clock, keyring, settings } = parts;
  const { policy } = account;
  return (held: Held | undefined): Candidate | { readonly answer: Unsent; readonly next?: Authentication } => {
    if (held === undefined || isErased(held.auth)) throw unknownAuthentication();
    const { auth } = held;
    const moment: Moment = { now: clock.now(), skew: settings.clockSkew };
    const status = decideRetry(auth, moment.now, policy);
    // "The record stays 24 h more, without its codes" (docs/contract.md#tombstone).
    if (status === "expired_auth" && holdsCodes(auth)) return { answer: { status, auth }, next: withoutCodes(auth) };
    if (status !== "approved") return { answer: { status, auth } };
    neededNumber(auth);
    if (outside.decisions.some(({ mode }) => mode === "enforce")) return { answer: { status: "rate_limited", auth } };
    const noted = outside.decisions.reduce(withDecision, auth);
    const sending = nextSend(parts, settleOverdue(noted, policy, moment.now), policy, moment.now, outside.network);
    if (sending.unpriced !== undefined) return { answer: { status: "rate_limited", auth, decision: sending.unpriced } };
    const { next } = sending;
    const isSafe = outside.safe || next.origin?.s === 1;
    return {
      before: auth,
      sending: isSafe ? { ...sending, next: { ...next, uncounted: next.uncounted + 1 } } : sending,
      caps: isTestNumber(settings, next.number) ? [] : sendCharges({ ...next, attempt: next.attempts }, policy, moment, keyring.mask),
      listed: [],
      safe: isSafe,
      proof: false,
      decided: outside.decided,
      moment,
    };
  };
}

/** "A refusal writes nothing and consumes nothing" (docs/contract.md#refusal-consumes-nothing). What refused it is noted in the record, in the background. */
function refused(parts: Context, account: Account, auth: Authentication, own: readonly Decision[], decision: Decision | undefined): RetryAnswer {
  const { inBackground, clock, monitor, records, statistics } = parts;
  const { customer, id } = auth;
  const fired = decision === undefined ? own : [...own, decision];
  const noted = transition(records, parts.newDeadline(), customer, id, (current): Decided<void> => {
    return { result: undefined, next: fired.reduce(withDecision, current) };
  });
  records.pending(id, noted);
  inBackground(
    noted.catch((err: unknown) =>
      monitor.sparse.warn({ err, authentication_uuid: id }, "why a retry was refused could not be kept; `explain` will not find it"),
    ),
  );
  const refusedBy = fired.find(({ mode }) => mode === "enforce")?.rule;
  if (refusedBy !== undefined) statistics.refused(customer, auth.country, refusedBy);
  monitor.refused("retry", "rate_limited", auth, fired);
  const retry_after = retryAfter(fired, clock.now());
  return { ...told(parts, auth, "rate_limited", account.policy), ...(retry_after !== undefined && { retry_after }) };
}

function told({ clock }: Context, auth: Authentication, status: RetryStatus, policy: Policy): RetryAnswer {
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
