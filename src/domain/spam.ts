import type { CreateAuthenticationRequest } from "../contract/authentication.js";
import type { LineType } from "../contract/lookup.js";
import type { Decision, RuleMode } from "./decision.js";

/** What a spam rule sees of a create: the caller's fields, with the number in canonical form and what the numbering plan says of it. */
export interface SpamAttempt extends Readonly<CreateAuthenticationRequest> {
  /** ISO 3166-1 alpha-2, absent for non-geographic numbers. */
  readonly country_code?: string;
  readonly line_type: LineType;
}

/** Why an attempt is spam. */
export interface SpamVerdict {
  /** In words; shown by `explain`, never to the end user. */
  readonly reason: string;
  readonly value?: number;
  readonly threshold?: number;
}

/**
 * A rule that flags creates as spam. "spam rules fail open … reported": one that throws or takes longer than 1 s is reported to the logger and lets the attempt through.
 */
export interface SpamRule {
  /** Shown by `explain`. */
  readonly name: string;
  /** Default `enforce`. */
  readonly mode?: RuleMode;
  /** A verdict flags the attempt; `undefined` lets it through. */
  judge(attempt: SpamAttempt): SpamVerdict | undefined | Promise<SpamVerdict | undefined>;
}

/** "Each rule is `enforce`, `shadow` (decides, records, lets through) or `off`" (contract.md, Limits). `is_returning_user` walks past none: it is the caller's word, for the caller's own rules. */
export function rulesToAsk(rules: readonly SpamRule[]): readonly SpamRule[] {
  return rules.filter((rule) => rule.mode !== "off");
}

/** The record of a rule that flagged the attempt. */
export function spamDecision(rule: SpamRule, verdict: SpamVerdict, now: number): Decision {
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
