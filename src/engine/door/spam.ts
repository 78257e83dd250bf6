import type { CreateAuthenticationRequest } from "../../contract/authentication.js";
import type { Decision } from "../../domain/decision.js";
import type { PhoneNumber } from "../../domain/phone-number.js";
import { rulesToAsk, type SpamAttempt, type SpamRule, spamDecision } from "../../domain/spam.js";
import { withTimeout } from "../clock/budget.js";
import type { Parts } from "../parts.js";

/** Milliseconds that a spam rule may take. */
const ruleTimeout = 1000;

/** Asks the spam rules side by side; those that fired come back in the order of the rules. */
export async function judgeSpam(parts: Parts, request: CreateAuthenticationRequest, phone: PhoneNumber): Promise<readonly Decision[]> {
  if (parts.settings.spamRules.length === 0) return [];
  const attempt: SpamAttempt = {
    ...request,
    phone_number: phone.number,
    line_type: phone.lineType,
    ...(phone.country !== undefined && { country_code: phone.country }),
  };
  const decisions = await Promise.all(rulesToAsk(parts.settings.spamRules).map((rule) => ask(parts, rule, attempt)));
  return decisions.filter((decision) => decision !== undefined);
}

/** "spam rules fail open … reported" (contract.md, Limits). */
async function ask({ clock, logger }: Parts, rule: SpamRule, attempt: SpamAttempt): Promise<Decision | undefined> {
  try {
    const verdict: unknown = await withTimeout(clock, ruleTimeout, () => rule.judge(attempt));
    if (verdict === undefined || verdict === null) return undefined;
    if (typeof verdict !== "object" || !("reason" in verdict) || typeof verdict.reason !== "string")
      throw new TypeError("a spam rule answers { reason } or undefined");
    const { reason, value, threshold } = verdict as { reason: string; value?: unknown; threshold?: unknown };
    return spamDecision(
      rule,
      { reason: reason.slice(0, 200), ...(typeof value === "number" && { value }), ...(typeof threshold === "number" && { threshold }) },
      clock.now(),
    );
  } catch (err) {
    logger.error({ err, rule: rule.name }, "a spam rule failed; the attempt was let through");
    return undefined;
  }
}
