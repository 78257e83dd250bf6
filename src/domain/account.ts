import type { Policy } from "./policy.js";

/** A customer that was let in, with the policy that holds for it. */
export interface Account {
  /** Lower case. */
  readonly customer: string;
  readonly policy: Policy;
}
