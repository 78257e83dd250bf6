import type { StoreDeadline } from "../core/deadline.js";
import type { Held } from "../core/records/records.js";
import type { Authentication, SendDecision } from "../domain/authentication.js";
import type { Claim, Moment, SumClaim } from "../domain/claim.js";
import type { Decision } from "../domain/decision.js";
import type { Account } from "../domain/policy.js";
import type { Charge } from "../domain/quota.js";
import { isSpamCharge, type SpamCharge } from "../domain/spam-rules.js";
import type { PlannedMessage, Wanted } from "./plan.js";

/** A message and the commit that stores it. */
export interface MessageCommit {
  readonly token: string;
  /** The stored record that the decision was based on. */
  readonly held: Held | undefined;
  /** The authentication without the message. */
  readonly before: Authentication;
  readonly message: PlannedMessage;
  /** Claims of caps, ceilings and rules, in the order in which they reject. */
  readonly charges: readonly (Charge | SpamCharge)[];
  /** Claims that list the message in the number's history. */
  readonly listed: readonly Claim[];
  readonly moment: Moment;
  readonly account: Account;
}

/** Facts about a message that are not in its record. */
export interface Outside extends Pick<Wanted, "network" | "unreachable"> {
  /** The address and device of the create; a retry counts in the cells of its create. */
  readonly ip?: string | undefined;
  readonly deviceId?: string | undefined;
  /** "Safe beats rules, never caps" (docs/contract.md#lists): the message counts in no cell. */
  readonly safe: boolean;
  /**
   * A challenge was passed: it "waives the spam rules for that request, never the caps and never the crowd rule"
   * (docs/contract.md#challenge).
   */
  readonly proof: boolean;
  /** Decisions of the caller's own rules, unless they are waived, and of the block list. */
  readonly fired: readonly Decision[];
  /** Decisions of the built-in rules that need no count. */
  readonly decided: readonly Decision[];
  /** The caller vouches that the user had confirmed the number before (docs/contract.md#known). */
  readonly known?: boolean | undefined;
}

/** A message that a request asks to send. */
export interface MessageRequest<Status extends string> extends Pick<Wanted, "given" | "channel" | "fallback"> {
  readonly deadline: StoreDeadline;
  readonly id: string;
  /** A create: no record is expected. */
  readonly isNew: boolean;
  readonly outside: Outside;
  readonly decide: (stored: Authentication | undefined, now: number) => SendDecision<Status>;
}

/** Why a message must not be sent. Nothing was written. */
export interface Refusal {
  readonly status: "rate_limited" | "spam_detected";
  readonly decision: Decision;
  /** The authentication without the message. */
  readonly auth: Authentication;
}

/** The result for a request: a status from the record alone, a refusal, or a stored message to hand over. */
export type Reserved<Status extends string> =
  | Exclude<SendDecision<Status>, { readonly send: unknown }>
  | { readonly refusal: Refusal }
  | { readonly commit: MessageCommit };

/** All claims of a commit. */
export function claimsOf({ charges, listed }: MessageCommit): Claim[] {
  return [...charges.map(({ claim }) => claim), ...listed];
}

/** The claims that fill cells of the spam rules. */
export function cellsOf({ charges }: MessageCommit): SumClaim[] {
  return charges.flatMap((charge) => (isSpamCharge(charge) && charge.decided === undefined && "sum" in charge.claim ? charge.claim : []));
}

/** Whether an unlock has since removed the message from its cells. It leaves the only cell of a known user's message, the crowd's. */
export function wasUnlocked({ message: { next } }: MessageCommit, { sent, uncounted }: Authentication): boolean {
  return next.uncounted < next.sent && uncounted >= sent;
}
