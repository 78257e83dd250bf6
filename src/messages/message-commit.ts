import type { Held } from "../core/records/records.js";
import type { Account } from "../domain/account.js";
import type { Authentication } from "../domain/authentication.js";
import type { Claim, Moment, SumClaim } from "../domain/claim.js";
import type { Charge } from "../domain/quota.js";
import { isSpamCharge, type SpamCharge } from "../domain/spam-rules.js";
import type { PlannedMessage } from "./plan.js";

/** A message and the commit that stores it. */
export interface MessageCommit {
  readonly token: string;
  /** The stored record that the decision was based on. */
  readonly held: Held | undefined;
  /** The authentication without the message. */
  readonly before: Authentication;
  readonly message: PlannedMessage;
  /** Claims of caps, ceilings and rules, in the order in which they reject. */
  readonly charges: readonly (Charge | SpamCharge)[];
  /** Claims that list the message in the number's history. */
  readonly listed: readonly Claim[];
  readonly moment: Moment;
  readonly account: Account;
}

/** All claims of a commit. */
export function claimsOf({ charges, listed }: MessageCommit): Claim[] {
  return [...charges.map(({ claim }) => claim), ...listed];
}

/** The claims that fill cells of the spam rules. */
export function cellsOf({ charges }: MessageCommit): SumClaim[] {
  return charges.flatMap((charge) => (isSpamCharge(charge) && charge.decided === undefined && "sum" in charge.claim ? charge.claim : []));
}
