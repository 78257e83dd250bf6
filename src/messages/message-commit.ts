import type { Held } from "../core/records/records.js";
import type { Authentication } from "../domain/authentication.js";
import type { Claim, Moment, SumClaim } from "../domain/claim.js";
import type { Policy } from "../domain/policy.js";
import type { Charge } from "../domain/quota.js";
import { isSpamCharge, type SpamCharge } from "../domain/spam-rules.js";
import type { PlannedMessage } from "./plan.js";

/** A message, with the commit that writes it down. */
export interface MessageCommit {
  readonly token: string;
  /** What was stored when it was decided. */
  readonly held: Held | undefined;
  /** The authentication without the message. */
  readonly before: Authentication;
  readonly message: PlannedMessage;
  /** What caps, ceilings and rules claim, in the order in which they refuse. */
  readonly charges: readonly (Charge | SpamCharge)[];
  /** What is claimed so that the number's history finds it. */
  readonly listed: readonly Claim[];
  readonly moment: Moment;
  readonly policy: Policy;
}

/** All claims of a commit. */
export function claimsOf({ charges, listed }: MessageCommit): Claim[] {
  return [...charges.map(({ claim }) => claim), ...listed];
}

/** Those of them that fill cells of the spam rules. */
export function cellsOf({ charges }: MessageCommit): SumClaim[] {
  return charges.flatMap((charge) => (isSpamCharge(charge) && charge.decided === undefined && "sum" in charge.claim ? charge.claim : []));
}
