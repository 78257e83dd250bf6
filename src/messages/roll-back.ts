import type { Held } from "../core/records/records.js";
import { creation, type Decided, transition } from "../core/records/transact.js";
import { retryInBackground } from "../core/retry-in-background.js";
import { type Authentication, blankOf, hasNumber, isVoid, withoutSendThatNeverWas } from "../domain/authentication.js";
import type { Claim, SumClaim } from "../domain/claim.js";
import type { Policy } from "../domain/policy.js";
import { listedClaims } from "../domain/quota.js";
import type { Messages } from "./messages.js";

/** A commit for a send, as it was tried. */
export interface Tried {
  readonly token: string;
  readonly next: Authentication;
  readonly before: Held | undefined;
  readonly claims: readonly Claim[];
  /** Those of them that fill cells of the spam rules. */
  readonly cells: readonly SumClaim[];
  readonly policy: Policy;
}

/**
 * Takes a commit back in the background whose answer was lost or late, whether it landed, never will, or lands later: "no send that never was may cost a retry or push a live code out" (docs/contract.md#take-back).
 */
export function rollBack(parts: Messages, tried: Tried, token = parts.keyring.newToken()): void {
  const failed = (err: unknown) =>
    parts.monitor.sparse.error(
      { err, authentication_uuid: tried.next.id },
      "a write whose answer was late could not be taken back: if it landed, its send counts though no message was sent",
    );
  parts.inBackground(retryInBackground(parts.clock, () => takeBack(parts, tried, token)).catch(failed));
}

/** One write after which the commit has no effect. `token`: of every attempt at it, so that only one counts. Rejects with `unavailable`. */
export async function takeBack(parts: Messages, tried: Tried, token: string): Promise<void> {
  const { records, store } = parts;
  const { next, before, claims } = tried;
  const { customer, id } = next;
  const deadline = parts.newDeadline();
  const decide = (held: Held | undefined): Decided<"revoked" | "lost"> => {
    if (held === undefined) return written(parts, tried, blankOf(next), claims, token);
    // Others have written since: it did not land, and cannot any more. Its claims may have been made all the same, where they are a step of their own.
    const isLost = ![tried.token, token].some((one) => held.tokens.includes(one)) && held.tokens[0] !== before?.tokens[0];
    if (isLost) return { result: "lost" };
    const { auth } = held;
    if (!holdsTried(auth, next)) return written(parts, tried, { ...auth }, claims, token);
    // A right code, or an unlocking, has taken the message out of its cells already.
    const isUncounted = auth.validated || auth.uncounted >= auth.sent;
    const without = withoutSendThatNeverWas(auth, next.attempts, before?.auth ?? blankOf(next));
    return written(parts, tried, without, isUncounted ? claims.filter((claim) => !("sum" in claim) || !tried.cells.includes(claim)) : claims, token);
  };
  const done =
    before === undefined
      ? await creation(records, deadline, customer, id, decide)
      : await transition(records, deadline, customer, id, (_auth, held) => decide(held));
  // What an attempt before this one wrote may not be what is stored now.
  records.forget(id);
  if (done !== "revoked") await deadline.call(() => store.commit({ revoke: { token: tried.token, claims }, counts: [] }));
}

/** What is written instead of a commit. A create that is void stays no longer than its end, and is listed, so that an erasure finds it. */
function written({ keyring, settings }: Messages, tried: Tried, auth: Authentication, claims: readonly Claim[], token: string): Decided<"revoked"> {
  const next = isVoid(auth) ? { ...auth, keepUntil: auth.expiresAt } : auth;
  const { createdAt: now } = next;
  const listed = isVoid(next) && hasNumber(next) ? listedClaims(next, tried.policy, { now, skew: settings.clockSkew }, keyring.mask, false) : [];
  return { result: "revoked", next, claims: listed, revoke: { token: tried.token, claims }, token };
}

/** Whether the record has the send that was tried. A later send of the same number has another code; none is kept of one that is over. */
function holdsTried(auth: Authentication, next: Authentication): boolean {
  const tried = next.sends.at(-1);
  return auth.sends.some(({ attempt, digest, at }) => attempt === next.attempts && at === next.lastSendAt && (digest === tried?.digest || digest === ""));
}
