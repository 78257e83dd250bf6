import type { CreateAuthenticationRequest } from "../contract/authentication.js";
import type { LineType } from "../contract/lookup.js";
import type { Decision, RuleMode } from "./decision.js";

/** What the caller's own spam rules see of a create or a retry: the caller's fields (of a create), with the number in canonical form and what the numbering plan says of it. */
export interface SpamCandidate extends Readonly<Omit<CreateAuthenticationRequest, "proof">> {
  /** ISO 3166-1 alpha-2, absent for non-geographic numbers. */
  readonly country_code?: string;
  readonly line_type: LineType;
  readonly authentication_uuid: string;
  /** 1 for a create; for a retry the number of the message that it would send. */
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
 * A rule of yours: a create that it flags is `spam_detected`, a retry `rate_limited`. Asked once for each request, before any cap (docs/contract.md#own-rules): one that throws or takes longer than 1 s is reported to the logger and
 * lets the attempt through.
 */
export interface JudgingRule {
  /** Shown by `explain`. */
  readonly name: string;
  /** Default `enforce`. */
  readonly mode?: RuleMode | undefined;
  /** A verdict flags the attempt; `undefined` lets it through. */
  judge(attempt: SpamCandidate): SpamVerdict | undefined | Promise<SpamVerdict | undefined>;
}

/** A cell of yours: it refuses a message when `seed` + `perVerified` × verified are open in it over 24 hours, as ours do, and costs no round trip. */
export interface CellRule {
  /** Shown by `explain`; 1 to 32 letters, digits, `_` or `-`. */
  readonly name: string;
  /** Default `enforce`. */
  readonly mode?: RuleMode | undefined;
  /** What the attempt is counted in, for example its device model; kept as a keyed hash. `undefined`: this rule is not for it. Asked on create; a retry counts in the same cell. */
  cell(attempt: SpamCandidate): string | undefined;
  /** Messages that may be open where nobody has verified yet. */
  readonly seed: number;
  /** Messages more for each verified. Default 2. */
  readonly perVerified?: number | undefined;
}

export type SpamRule = JudgingRule | CellRule;

export function isCellRule(rule: SpamRule): rule is CellRule {
  return "cell" in rule;
}

/** The record of a rule that flagged the attempt. */
export function spamDecision(rule: JudgingRule, verdict: SpamVerdict, now: number): Decision {
  const { reason, value, threshold } = verdict;
  return {
    at: now,
    rule: rule.name,
    mode: rule.mode === "shadow" ? "shadow" : "enforce",
    reason,
    ...(value !== undefined && { value }),
    ...(threshold !== undefined && { threshold }),
  };
}
