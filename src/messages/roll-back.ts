import type { Held } from "../core/records/records.js";
import { type Decided, transact } from "../core/records/transact.js";
import { retryInBackground } from "../core/retry-in-background.js";
import { type Authentication, blankOf, emptyOf, hasNumber, isVoid, withoutTriedSend } from "../domain/authentication.js";
import { checksUsedUp } from "../domain/check.js";
import type { Claim } from "../domain/claim.js";
import { slotOf } from "../domain/ids.js";
import { listedClaims } from "../domain/quota.js";
import { cellsOf, claimsOf, type MessageCommit, wasUnlocked } from "./message-commit.js";
import type { Messages } from "./messages.js";

/**
 * Takes a commit back in the background if its response was lost or late, whether it landed, lands later or never does:
 * "a send that never happened must not cost a retry or push a live code out" (docs/contract.md#take-back).
 */
export function rollBack(messages: Messages, commit: MessageCommit, token = messages.keyring.newToken()): void {
  const { clock, inBackground, monitor } = messages;
  const failed = (err: unknown) =>
    monitor.throttledLog.error(
      { err, authentication_uuid: commit.before.id },
      "a write whose response was late could not be reverted: if it was stored, its send counts although no message was sent",
    );
  inBackground(retryInBackground(clock, () => takeBack(messages, commit, token)).catch(failed));
}

/**
 * Uncounts the send of a commit that lost its race, if the record can no longer take it. In stores that make claims
 * before they write the record, several racers may have claimed that send, and each leaves it to the others.
 */
export function leaveCaps({ clock, inBackground, newDeadline, store }: Messages, commit: MessageCommit, auth: Authentication | undefined): void {
  const claims = unsentClaims(commit, auth);
  if (claims.length === 0) return;
  // If this fails, the send leaves with its window.
  inBackground(retryInBackground(clock, () => newDeadline().call(() => store.commit({ claims, counts: [] }))).catch(() => undefined));
}

function unsentClaims(commit: MessageCommit, auth: Authentication | undefined): Claim[] {
  const { account, message } = commit;
  const { id, attempts } = message.next;
  const isOver = auth?.id === id && auth.attempts < attempts && (auth.validated || checksUsedUp(auth, account.policy));
  if (!isOver) return [];
  return claimsOf(commit).flatMap((claim) => ("sum" in claim ? [] : { ...claim, out: true as const }));
}

/**
 * Makes one write after which the commit has no effect. `token`: shared by all attempts, so that only one counts.
 * Rejects with `unavailable`.
 */
export async function takeBack(messages: Messages, commit: MessageCommit, token: string): Promise<void> {
  const { records, store } = messages;
  const { held: before, message } = commit;
  const { next } = message;
  const claims = claimsOf(commit);
  const cells: readonly Claim[] = cellsOf(commit);
  const deadline = messages.newDeadline();
  let stored: Authentication | undefined;
  const decide = (held: Held | undefined): Decided<"revoked" | "lost"> => {
    stored = held?.auth;
    // Erased in the meantime.
    if (held === undefined && before !== undefined) return { result: "lost" };
    // Nothing has landed, or what landed was erased: only a late write has to be kept out.
    if (held === undefined) return written(messages, commit, emptyOf(next), claims, token);
    // Others have written since: the commit did not land and no longer can. Its claims may still have been made, in
    // stores where they are a separate step.
    const isLost = ![commit.token, token].some((one) => held.tokens.includes(one)) && held.tokens[0] !== before?.tokens[0];
    if (isLost) return { result: "lost" };
    const { auth } = held;
    if (!holdsMessage(auth, next)) return written(messages, commit, { ...auth }, claims, token);
    // A correct code, or an unlock, has already removed the message from its cells.
    const isUncounted = auth.validated || wasUnlocked(commit, auth);
    const isFirst = before === undefined || before.auth.id !== auth.id;
    const without = withoutTriedSend(auth, next.attempts, isFirst ? blankOf(next) : before.auth);
    // The one before had its place.
    const restored = isFirst && before !== undefined && isVoid(without) ? before.auth : without;
    return written(messages, commit, restored, isUncounted ? claims.filter((claim) => !cells.includes(claim)) : claims, token);
  };
  const { result } = await transact(records, deadline, next.customer, slotOf(next.id), decide, before === undefined);
  // The stored record may differ from what an earlier attempt wrote.
  records.forget(next.id);
  if (result === "lost") await deadline.call(() => store.commit({ claims: unsentClaims(commit, stored), revoke: { token: commit.token, claims }, counts: [] }));
}

/**
 * The record that replaces a commit. A void create lasts no longer than its end, and is listed so that an erasure finds
 * it.
 */
function written({ keyring, settings }: Messages, commit: MessageCommit, auth: Authentication, claims: readonly Claim[], token: string): Decided<"revoked"> {
  const next = isVoid(auth) ? { ...auth, keepUntil: auth.expiresAt } : auth;
  const moment = { now: next.createdAt, skew: settings.clockSkew };
  const listed = isVoid(next) && hasNumber(next) ? listedClaims(next, commit.account.policy, moment, keyring.pseudonym, false) : [];
  return { result: "revoked", next, claims: listed, revoke: { token: commit.token, claims }, token };
}

/**
 * Whether the record holds the message that was tried. A slot may hold another verification by now. A later message of
 * the same attempt has another code; an ended record has no code.
 */
function holdsMessage(auth: Authentication, next: Authentication): boolean {
  if (auth.id !== next.id) return false;
  const tried = next.sends.at(-1);
  return auth.sends.some(({ attempt, digest, at }) => attempt === next.attempts && at === next.lastSendAt && (digest === tried?.digest || digest === ""));
}
