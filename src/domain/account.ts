import type { Policy } from "./policy.js";

/** An admitted customer and its effective policy. */
export interface Account {
  /** Lower case. */
  readonly customer: string;
  readonly policy: Policy;
}
