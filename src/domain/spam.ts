import type { CreateAuthenticationRequest } from "../contract/authentication.js";
import type { LineType } from "../contract/lookup.js";
import type { RuleMode } from "./decision.js";

/**
 * What the caller's own spam rules receive for a create or retry: the fields of the create, the number in canonical
 * form, and what the numbering plan knows about it.
 */
export interface SpamCandidate extends Readonly<Omit<CreateAuthenticationRequest, "proof">> {
  /** ISO 3166-1 alpha-2; absent for non-geographic numbers. */
  readonly country_code?: string;
  readonly line_type: LineType;
  readonly authentication_uuid: string;
  /** 1 for a create; for a retry, the number of the message it would send. */
  readonly attempt: number;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** Why an attempt is spam. */
export interface SpamVerdict {
  /** In words; shown by `explain`, never to the end user. */
  readonly reason: string;
  readonly value?: number;
  readonly threshold?: number;
}

/**
 * Your own rule. A create that it flags is `spam_detected`, a retry `rate_limited`. It runs once per request, before
 * any cap (docs/contract.md#own-rules). If it throws or takes longer than 1 s, the error is logged and the attempt is
 * allowed.
 */
export interface JudgingRule {
  /** Shown by `explain`; not the name of a built-in rule. */
  readonly name: string;
  /** Default `enforce`. */
  readonly mode?: RuleMode | undefined;
  /** Returns a verdict to flag the attempt, or `undefined` to allow it. */
  judge(attempt: SpamCandidate): SpamVerdict | undefined | Promise<SpamVerdict | undefined>;
}

/**
 * Your own cell. Like the built-in cells, it blocks a message when `seed` + `perVerified` × verified are open in it
 * over 24 hours, and it costs no extra round trip.
 */
export interface CellRule {
  /** Shown by `explain`; not the name of a built-in rule; 1 to 32 letters, digits, `_` or `-`. */
  readonly name: string;
  /** Default `enforce`. */
  readonly mode?: RuleMode | undefined;
  /**
   * Returns the key that the attempt is counted under, for example its device model; stored as a keyed hash.
   * `undefined`: the rule does not apply. Called on create; a retry counts in the same cell. It must not be async.
   */
  cell(attempt: SpamCandidate): string | undefined;
  /** Messages that may be open before anyone has verified. */
  readonly seed: number;
  /** Additional messages per verification. Default 2. */
  readonly perVerified?: number | undefined;
}

export type SpamRule = JudgingRule | CellRule;

export function isCellRule(rule: SpamRule): rule is CellRule {
  return "cell" in rule;
}
