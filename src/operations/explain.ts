import type * as z from "zod";
import type { AuthenticationStatus } from "../contract/authentication.js";
import type { DeliveryStatus } from "../contract/callback.js";
import type { Channel } from "../contract/channel.js";
import type { HistoryRequest } from "../contract/operator.js";
import { type Authentication, hasNumber, isVerification, type Send, type SendState } from "../domain/authentication.js";
import { stateOf } from "../domain/check.js";
import type { Decision } from "../domain/decision.js";
import { defined } from "../domain/defined.js";
import type { Account } from "../domain/policy.js";
import { isLimitOfNumber, mostWrongCodes, namesOfNumber, readMember } from "../domain/quota.js";
import { type Left, leftOf } from "../domain/retry.js";
import { timestamp } from "../domain/time.js";
import { unknownAuthentication } from "../errors.js";
import { membersOf, membersOfNumber, ownNumbers, recordsOf } from "../messages/number-windows.js";
import type { Context } from "./context.js";

/** A message, and what a carrier made of it. With failover, one message may be listed once per carrier. */
export interface ExplainedSend {
  /** 1 for the first message tried. */
  readonly attempt: number;
  /** ISO 8601. */
  readonly at: string;
  /** `undecided`: in progress, or accepted with no receipt yet. `rejected`: known not to have been sent. */
  readonly state: SendState | "rejected";
  readonly route?: string;
  /** Absent: SMS. */
  readonly channel?: Channel;
  /** The message replaced one that did not arrive: `decisions` has the reason. */
  readonly fallback?: true;
  /** The carrier's answer to a message that it did not accept. */
  readonly reason?: string;
  /** The last status in the carrier's receipts. */
  readonly delivery?: DeliveryStatus;
}

/** Why an authentication has its status, and its current state: for the operator, never for the end user. */
export interface Explanation {
  /** The explained authentication. */
  readonly authentication_uuid: string;
  /** What the code of a delivery is for. Absent if the codes are ours. */
  readonly purpose?: string;
  /** The caller's own reference. */
  readonly correlation_id?: string;
  /** As returned by create. */
  readonly status: AuthenticationStatus;
  /** ISO 8601. */
  readonly created_at: string;
  /** ISO 8601. */
  readonly expires_at: string;
  /** Whether its code was entered correctly; of a delivery, whether it was confirmed. */
  readonly validated: boolean;
  /** Wrong codes so far. */
  readonly wrong_codes: number;
  /** Checks, retries and seconds left. */
  readonly left: Left;
  /** The last three messages that were not rejected, and the rejected ones among `decisions`; oldest first. */
  readonly sends: readonly ExplainedSend[];
  /**
   * Rules that fired, shadow rules included; with `mode` `route`, routes tried and sends that failed; and `guesses`, at
   * the time of this call, if those of its number are used up. Empty without any. `at`, `until` (when a blocking cap has
   * room again) and `lifted_at` are ISO 8601 timestamps. `lifted_at`, only in `history`: when `unlock` lifted the cap of
   * the number that blocked; absent if it did not, or more than a day ago.
   */
  readonly decisions: readonly (Omit<Decision, "at" | "until"> & { readonly at: string; readonly until?: string; readonly lifted_at?: string })[];
}

/** "Every decision is recorded with rule, the value counted and the threshold" (docs/contract.md#explain). */
export async function explain(parts: Context, account: Account, request: { readonly authentication_uuid: string }): Promise<Explanation> {
  const held = await parts.records.find(parts.newDeadline(), account.customer, request.authentication_uuid);
  if (held === undefined) throw unknownAuthentication();
  return explanationOf(parts, account, held.auth);
}

/** An authentication of a number, and why it has its status. */
export type HistoryEntry = Explanation;

/**
 * "Every decision … can be queried by authentication id or by number (`explain`, `history`)"
 * (docs/contract.md#explain): newest first, blocked ones included, from the number's windows
 * (docs/contract.md#history). Ended records are omitted.
 */
export async function historyOf(parts: Context, account: Account, { phone_number, limit }: z.output<typeof HistoryRequest>): Promise<readonly HistoryEntry[]> {
  await parts.records.written();
  const own = ownNumbers(parts, account, phone_number);
  const [{ ids }, ...lifts] = await Promise.all([membersOfNumber(parts, ...own), ...own.map(({ names }) => membersOf(parts, names.lifted))]);
  const liftedAt = Math.max(0, ...lifts.flat().map((member) => readMember(member).at));
  const found = await recordsOf(parts, account, ids, limit);
  const newestFirst = found.map(({ auth }) => auth).sort((a, b) => b.createdAt - a.createdAt);
  return Promise.all(newestFirst.map((auth) => explanationOf(parts, account, auth, liftedAt)));
}

/**
 * Why checks of a verification that has not ended are `rate_limited`, if its number's guesses are used up
 * (docs/contract.md#guesses-claimed). A rejected check writes nothing, so the number's sum is read; if that fails, the
 * rest is shown without it.
 */
async function guessesUsedUp(parts: Context, { customer, policy }: Account, auth: Authentication): Promise<Decision | undefined> {
  const { clock, keyring, newDeadline, settings, store } = parts;
  const now = clock.now();
  const state = stateOf(auth, now, policy);
  if (!isVerification(auth) || !hasNumber(auth) || (state !== "open" && state !== "used_up")) return undefined;
  const { guesses } = namesOfNumber(customer, keyring.pseudonym(auth.number), policy, { now, skew: settings.clockSkew });
  const counted = await newDeadline()
    .call(() => store.commit({ asks: [guesses] }))
    .catch(() => undefined);
  const value = counted?.done ? (counted.asked[0] ?? 0) : 0;
  const threshold = mostWrongCodes(policy);
  return value < threshold ? undefined : { at: now, rule: "guesses", mode: "enforce", value, threshold };
}

/** `liftedAt`: when the caps of its number were last lifted, if that is known. */
async function explanationOf(parts: Context, account: Account, auth: Authentication, liftedAt = 0): Promise<Explanation> {
  const guesses = await guessesUsedUp(parts, account, auth);
  return defined({
    authentication_uuid: auth.id,
    purpose: auth.purpose,
    correlation_id: auth.correlationId,
    status: auth.status,
    created_at: timestamp(auth.createdAt),
    expires_at: timestamp(auth.expiresAt),
    validated: auth.validated,
    wrong_codes: auth.wrongChecks,
    left: { ...leftOf(auth, parts.clock.now(), account.policy), ...(guesses !== undefined && { checks: 0 }) },
    sends: [...auth.decisions.flatMap(rejectedSend), ...auth.sends.map((send) => explainedSend(send, auth.decisions))].sort((a, b) => a.attempt - b.attempt),
    decisions: [...auth.decisions, ...(guesses === undefined ? [] : [guesses])].map((decision) =>
      defined({
        ...decision,
        at: timestamp(decision.at),
        until: decision.until === undefined ? undefined : timestamp(decision.until),
        lifted_at: isLimitOfNumber(decision) && decision.at <= liftedAt ? timestamp(liftedAt) : undefined,
      }),
    ),
  });
}

function explainedSend({ attempt, at, state, route, channel, fallback, delivery }: Send, decisions: readonly Decision[]): ExplainedSend {
  const open = decisions.find((one) => one.outcome === "unknown" && one.attempt === attempt && (route === undefined || one.rule === route));
  return defined({ attempt, at: timestamp(at), state, route, channel, fallback, reason: open?.answer, delivery });
}

/** A message that a route rejected is no longer among the record's sends (docs/contract.md#send-outcome). */
function rejectedSend({ attempt, at, outcome, rule, channel, answer }: Decision): ExplainedSend[] {
  if (outcome !== "rejected" || attempt === undefined) return [];
  return [defined({ attempt, at: timestamp(at), state: outcome, route: rule, channel, reason: answer })];
}
