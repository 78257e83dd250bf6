import { withTimeout } from "../core/deadline.js";
import type { Account } from "../domain/account.js";
import type { Decision } from "../domain/decision.js";
import type { ListMatch } from "../domain/lists.js";
import type { IpInfo } from "../domain/signals.js";
import { isCellRule, type JudgingRule, type SpamCandidate, spamDecision } from "../domain/spam.js";
import type { Access } from "./access.js";

/** Milliseconds that a spam rule may take. */
const ruleTimeout = 1000;

/** What the caller's own rules say of an attempt. */
export interface CustomRuleResult {
  /** Rules that fired, in their order. */
  readonly decisions: readonly Decision[];
  /** Cells that the attempt is counted in, by rule. */
  readonly cells: Readonly<Record<string, string>>;
}

const silent: CustomRuleResult = { decisions: [], cells: {} };

/** Asks the caller's rules side by side, once for a request. */
export async function askCustomRules(parts: Access, attempt: () => SpamCandidate): Promise<CustomRuleResult> {
  const rules = parts.settings.spamRules.filter(({ mode }) => mode !== "off");
  if (rules.length === 0) return silent;
  const asked = attempt();
  const decisions = await Promise.all(rules.map((rule) => (isCellRule(rule) ? undefined : judge(parts, rule, asked))));
  const cells: Record<string, string> = {};
  for (const rule of rules) {
    if (!isCellRule(rule) || asked.attempt > 1) continue;
    try {
      const cell: unknown = rule.cell(asked);
      if (typeof cell === "string") cells[rule.name] = cell;
      else if (cell !== undefined && cell !== null) throw new TypeError("cell must return a string or undefined");
    } catch (err) {
      letThrough(parts, rule.name, err);
    }
  }
  return { decisions: decisions.filter((decision) => decision !== undefined), cells };
}

async function judge(parts: Access, rule: JudgingRule, attempt: SpamCandidate): Promise<Decision | undefined> {
  try {
    const verdict: unknown = await withTimeout(parts.clock, ruleTimeout, () => rule.judge(attempt));
    if (verdict === undefined || verdict === null) return undefined;
    if (typeof verdict !== "object" || !("reason" in verdict) || typeof verdict.reason !== "string")
      throw new TypeError("a spam rule must return { reason } or undefined");
    const { reason, value, threshold } = verdict as { reason: string; value?: unknown; threshold?: unknown };
    return spamDecision(
      rule,
      { reason: reason.slice(0, 200), ...(typeof value === "number" && { value }), ...(typeof threshold === "number" && { threshold }) },
      attempt.now,
    );
  } catch (err) {
    letThrough(parts, rule.name, err);
    return undefined;
  }
}

/** A rule that throws is reported and lets through (docs/contract.md#own-rules). */
function letThrough({ logger }: Access, rule: string, err: unknown): void {
  logger.error({ err, rule }, "a spam rule failed; the attempt was let through");
}

/** With what the block list says: a listed number, address or device is refused as a rule of the caller's own refuses. */
export function withListed(own: CustomRuleResult, { block }: ListMatch, now: number): CustomRuleResult {
  if (block === undefined) return own;
  const entry = block.kind === "number" ? "" : ` ${block.entry}`;
  return {
    ...own,
    decisions: [...own.decisions, { at: now, rule: "blockList", mode: "enforce", reason: `the ${block.kind} is on the block list${entry && `:${entry}`}` }],
  };
}

/** What the caller's resolver knows of the address; nothing where there is none, or it fails or takes too long. */
export async function askIpInfo(parts: Access, { policy }: Account, ip: string | undefined): Promise<IpInfo | undefined> {
  const { ipInfo } = parts.settings;
  if (ipInfo === undefined || ip === undefined || policy.spam.signals.mode === "off") return undefined;
  try {
    const known: unknown = await withTimeout(parts.clock, ruleTimeout, () => ipInfo(ip));
    if (typeof known !== "object" || known === null) return undefined;
    const { country, kind } = known as { country?: unknown; kind?: unknown };
    return { ...(typeof country === "string" && { country }), ...(typeof kind === "string" && { kind }) };
  } catch (err) {
    letThrough(parts, "ipInfo", err);
    return undefined;
  }
}
