/** `enforce` refuses, `shadow` decides, records and lets through, `off` is not asked (docs/contract.md#modes). */
export type RuleMode = "enforce" | "shadow" | "off";

/** One rule that fired, or one route that was tried (`mode` `route`). "Every decision is recorded with rule, the value counted and the threshold" (docs/contract.md#explain). */
export interface Decision {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Name of the rule, for example `number 5/600s` or the name of a spam rule. */
  readonly rule: string;
  readonly mode: "enforce" | "shadow" | "route";
  /** What was measured, when the rule measures. */
  readonly value?: number;
  /** What it was measured against. */
  readonly threshold?: number;
  /** When there is room again, of a cap or ceiling that refused, where the store tells it. Milliseconds since the epoch. */
  readonly until?: number;
  /** In words, from a caller-supplied rule. */
  readonly reason?: string;
}

/** Whether a rule that fired refuses, and does not only watch. */
export function isEnforced({ mode }: Decision): boolean {
  return mode === "enforce";
}
