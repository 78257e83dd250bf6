import type { Channel } from "../contract/channel.js";
import { type Moment, type Period, type SumClaim, sumClaim } from "./claim.js";
import type { Decision } from "./decision.js";
import type { Limits, SpendCeiling } from "./policy.js";
import { type Charge, moneyUnit } from "./quota.js";
import { day, hour } from "./time.js";

/** A ceiling, of all messages or of calls alone. */
export interface Ceiling extends SpendCeiling {
  readonly isOfCalls?: true;
}

/** The ceilings that a message counts towards. */
export function ceilingsOf({ spend, callSpend }: Limits, channel: Channel | undefined): readonly Ceiling[] {
  return channel === "voice" && callSpend.length > 0 ? [...callSpend.map((ceiling) => ({ ...ceiling, isOfCalls: true as const })), ...spend] : spend;
}

/** The maximum cost of a message: a price, `"free"` if it is never sent, or `undefined` if unknown. */
export type Cost = number | "free" | undefined;

/** Returns a price that a sender reported if it is valid: 0 to 1,000,000,000. */
export function parsePrice(price: unknown): number | undefined {
  return typeof price === "number" && price >= 0 && price <= 1e9 ? price : undefined;
}

/** A ceiling counts what was spent for up to a twelfth longer than its length. */
const periods: Readonly<Record<SpendCeiling["per"], Period>> = { hour: { length: hour, parts: 13 }, day: { length: day, parts: 13 } };

/** Prices are rounded up and amounts down. The thousandth of a millionth absorbs the error of floating-point sums. */
const millionths = (price: number) => Math.ceil(price * moneyUnit - 1e-3);
const wholeMillionths = (amount: number) => Math.floor(amount * moneyUnit + 1e-3);

/**
 * `{ amount, per: "hour" or "day" }` over the route's price (docs/contract.md#spend-ceiling). Money is a weight, in
 * millionths: what a message may cost is claimed with the write that precedes it.
 */
export function spendCharges(customer: string, cost: Cost, ceilings: readonly Ceiling[], moment: Moment): Charge[] {
  if (typeof cost !== "number") return [];
  return ceilings.map((ceiling) => ({
    rule: ruleOf(ceiling),
    threshold: ceiling.amount,
    counts: "money",
    period: periods[ceiling.per],
    claim: spendClaim(customer, millionths(cost), ceiling, moment, wholeMillionths(ceiling.amount)),
  }));
}

/** Settles a message that cost `spent`, for which `held` was claimed at `moment`. */
export function spendCorrection(customer: string, held: number, spent: number, ceilings: readonly Ceiling[], moment: Moment): SumClaim[] {
  const weight = millionths(spent) - millionths(held);
  return weight === 0 ? [] : ceilings.map((ceiling) => spendClaim(customer, weight, ceiling, moment));
}

function spendClaim(customer: string, weight: number, { per, isOfCalls }: Ceiling, moment: Moment, limit?: number): SumClaim {
  return sumClaim(`${customer}:s:${isOfCalls ? "calls:" : ""}${per}`, weight, periods[per], moment, { limit });
}

/** "A message without a price is blocked if there is a ceiling" (docs/contract.md#spend-ceiling). */
export function unpricedRefusal(cost: Cost, [ceiling]: readonly Ceiling[], now: number): Decision | undefined {
  if (cost !== undefined || ceiling === undefined) return undefined;
  return { at: now, rule: ruleOf(ceiling), mode: "enforce", threshold: ceiling.amount, reason: "the sender gave no price" };
}

function ruleOf({ amount, per, isOfCalls }: Ceiling): string {
  return `${isOfCalls ? "callSpend" : "spend"} ${amount}/${per}`;
}
