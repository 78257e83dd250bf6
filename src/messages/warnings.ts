import { near } from "../domain/alarms.js";
import type { Authentication } from "../domain/authentication.js";
import type { Decision } from "../domain/decision.js";
import { type Charge, measured } from "../domain/quota.js";
import type { Messages } from "./messages.js";

function alarmOf({ rule, counts }: Charge): "customer_cap" | "spend" | undefined {
  return rule.startsWith("perCustomer") ? "customer_cap" : counts === "money" ? "spend" : undefined;
}

/** Whether an alarm exists for a cap or ceiling that is nearly used up. */
export function isWatched(charge: Charge): boolean {
  return alarmOf(charge) !== undefined;
}

/** Raises the alarm for a cap of the customer, or a ceiling, at 80 % of its limit. */
export function warnOfCap({ alarms }: Messages, customer: string, charge: Charge, count: number | undefined): void {
  const { rule, counts, claim } = charge;
  const alarm = alarmOf(charge);
  if (alarm === undefined || count === undefined) return;
  const { value, threshold } = measured(charge, counts === "money" && "weight" in claim ? count - claim.weight : count);
  if (value >= near * threshold) alarms.raise(customer, { alarm, rule }, value, threshold);
}

/** Raises the alarm for a range that the crowd rule blocks, or would block in shadow mode. */
export function warnOfCrowd({ alarms }: Messages, { customer, number }: Authentication, { rule, value = 0, threshold = 0 }: Decision): void {
  if (rule === "crowd") alarms.raise(customer, { alarm: "crowd", range: `${number.slice(0, -4)}****` }, value, threshold);
}
