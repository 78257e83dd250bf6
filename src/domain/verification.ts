import { type Authentication, isCarrierRefused, isExpired, isVoid } from "./authentication.js";
import { checksUsedUp } from "./check.js";
import type { Policy } from "./policy.js";

/** What a verification by number is now. */
export type VerificationState = "open" | "used_up" | "verified" | "canceled" | "expired";

export function stateOf(auth: Authentication, now: number, policy: Policy): VerificationState {
  if (auth.validated) return "verified";
  if (auth.canceled === true) return "canceled";
  // Without a message that was sent, there is nothing to wait for.
  if (isExpired(auth, now) || auth.status !== "pending" || isVoid(auth) || isCarrierRefused(auth)) return "expired";
  return checksUsedUp(auth, policy) ? "used_up" : "open";
}
