import type { Channel } from "../contract/channel.js";

/** `enforce` blocks, `shadow` decides and records but allows, `off` does not run (docs/contract.md#modes). */
export type RuleMode = "enforce" | "shadow" | "off";

/**
 * One rule that fired, or one route that was tried (`mode` `route`). "Every decision is recorded with rule, the value
 * counted and the threshold" (docs/contract.md#explain).
 */
export interface Decision {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Name of the rule, for example `perNumber 5/600s` or the name of a spam rule. */
  readonly rule: string;
  readonly mode: "enforce" | "shadow" | "route";
  /** The measured value, if the rule measures one. */
  readonly value?: number;
  /** The threshold that `value` is compared with. */
  readonly threshold?: number;
  /** When the blocking cap or ceiling has room again, if the store reports it. Milliseconds since the epoch. */
  readonly until?: number;
  /** The reason in words, from a caller-supplied rule; or why a route was tried, and what came of it. */
  readonly reason?: string;
  /** The attempt number of the message that a route was tried for. */
  readonly attempt?: number;
  /** What the route made of that message. */
  readonly outcome?: "accepted" | "rejected" | "unknown";
  /** The channel of the route. Absent: `sms`. */
  readonly channel?: Channel;
  /** Why the route did not accept it, in the carrier's words. */
  readonly answer?: string;
}

/** Whether a rule that fired blocks, rather than only observes. */
export function isEnforced({ mode }: Decision): boolean {
  return mode === "enforce";
}
