import { propertiesOf } from "../core/collections.js";
import { withTimeout } from "../core/deadline.js";
import { withoutNumbers } from "../core/loggers.js";
import { countryError } from "../domain/countries.js";
import type { Decision } from "../domain/decision.js";
import type { ListMatch } from "../domain/lists.js";
import type { Account } from "../domain/policy.js";
import { synchronous } from "../domain/promises.js";
import type { IpInfo } from "../domain/signals.js";
import { isCellRule, type JudgingRule, type SpamCandidate } from "../domain/spam.js";
import type { Access } from "./access.js";

/** Timeout of a spam rule in milliseconds. */
const ruleTimeout = 1000;

/** The results of the caller's own rules for an attempt. */
export interface CustomRuleResult {
  /** Rules that fired, in order. */
  readonly decisions: readonly Decision[];
  /** The cells that count the attempt, by rule. */
  readonly cells: Readonly<Record<string, string>>;
}

const silent: CustomRuleResult = { decisions: [], cells: {} };

/** Runs the caller's rules in parallel, once per request. */
export async function askCustomRules(parts: Access, attempt: () => SpamCandidate): Promise<CustomRuleResult> {
  const rules = parts.settings.spamRules.filter(({ mode }) => mode !== "off");
  if (rules.length === 0) return silent;
  const asked = attempt();
  const decisions = await Promise.all(rules.map((rule) => (isCellRule(rule) ? undefined : judge(parts, rule, asked))));
  const cells: Record<string, string> = {};
  for (const rule of rules) {
    if (!isCellRule(rule) || asked.attempt > 1) continue;
    try {
      const cell: unknown = synchronous("cell", rule.cell(asked));
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
    const { reason, value, threshold } = propertiesOf(verdict);
    if (typeof reason !== "string") throw new TypeError("a spam rule must return { reason } or undefined");
    return {
      at: attempt.now,
      rule: rule.name,
      mode: rule.mode === "shadow" ? "shadow" : "enforce",
      reason: withoutNumbers(reason).slice(0, 200),
      ...(typeof value === "number" && { value }),
      ...(typeof threshold === "number" && { threshold }),
    };
  } catch (err) {
    letThrough(parts, rule.name, err);
    return undefined;
  }
}

/** A rule that throws is logged and allows the attempt (docs/contract.md#own-rules). */
function letThrough({ monitor }: Access, rule: string, err: unknown): void {
  monitor.throttledLog.error({ err, rule }, "a spam rule failed; the attempt was allowed");
}

/** Adds the block list's match: a listed number, address or device is blocked as by one of the caller's own rules. */
export function withListed(own: readonly Decision[], { block }: ListMatch, now: number): readonly Decision[] {
  if (block === undefined) return own;
  const { kind, range } = block;
  return [...own, { at: now, rule: "blockList", mode: "enforce", reason: `the ${kind} is on the block list${range === undefined ? "" : `: ${range}`}` }];
}

/** The resolver's information about the address; `undefined` without a resolver, or if it fails, times out or names an unknown country. */
export async function askIpInfo(parts: Access, { policy }: Account, ip: string | undefined): Promise<IpInfo | undefined> {
  const { ipInfo } = parts.settings;
  if (ipInfo === undefined || ip === undefined || policy.spam.signals.mode === "off") return undefined;
  try {
    const known: unknown = await withTimeout(parts.clock, ruleTimeout, () => ipInfo(ip));
    const { country, kind } = propertiesOf(known);
    const problem = typeof country === "string" ? countryError(country) : undefined;
    if (problem !== undefined) throw new Error(`ipInfo: country ${problem}`);
    return { ...(typeof country === "string" && { country }), ...(typeof kind === "string" && { kind }) };
  } catch (err) {
    letThrough(parts, "ipInfo", err);
    return undefined;
  }
}
