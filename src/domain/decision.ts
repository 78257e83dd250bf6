/** `enforce` blocks, `shadow` decides and records but allows, `off` does not run (docs/contract.md#modes). */
export type RuleMode = "enforce" | "shadow" | "off";

/**
 * One rule that fired, or one route that was tried (`mode` `route`). "Every decision is recorded with rule, the value
 * counted and the threshold" (docs/contract.md#explain).
 */
export interface Decision {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Name of the rule, for example `number 5/600s` or the name of a spam rule. */
  readonly rule: string;
  readonly mode: "enforce" | "shadow" | "route";
  /** The measured value, if the rule measures one. */
  readonly value?: number;
  /** The threshold that `value` is compared with. */
  readonly threshold?: number;
  /** When the blocking cap or ceiling has room again, if the store reports it. Milliseconds since the epoch. */
  readonly until?: number;
  /** The reason in words, from a caller-supplied rule. */
  readonly reason?: string;
}

/** Whether a rule that fired blocks, rather than only observes. */
export function isEnforced({ mode }: Decision): boolean {
  return mode === "enforce";
}
