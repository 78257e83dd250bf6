import type { Authentication, SendDecision } from "../domain/authentication.js";
import type { Decision } from "../domain/decision.js";
import type { Network } from "../ports/sms-sender.js";
import type { MessageCommit } from "./message-commit.js";

/** What is known of a message from elsewhere than its record. */
export interface Outside {
  /** The create's address and device; a retry counts in the cells of its create. */
  readonly ip?: string | undefined;
  readonly deviceId?: string | undefined;
  readonly network?: Network | undefined;
  /** "Safe beats rules, never caps" (docs/contract.md#lists): the message is in no cell. */
  readonly safe: boolean;
  /** A challenge was met: it "waives the spam rules for that request, never the caps and never the crowd rule" (docs/contract.md#challenge). */
  readonly proof: boolean;
  /** What our rules decided that need no count. */
  readonly decided: readonly Decision[];
}

/** A message that a request wants to send. */
export interface MessageRequest<Status extends string> {
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

/** What a request comes to: what the record alone says, a refusal, or a message that is written down and must now be handed over. */
export type Reserved<Status extends string> =
  | Exclude<SendDecision<Status>, { readonly send: unknown }>
  | { readonly refusal: Refusal }
  | { readonly commit: MessageCommit };
