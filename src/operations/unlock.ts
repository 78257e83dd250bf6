import type * as z from "zod";
import type { NumberRequest } from "../contract/operator.js";
import { chunksOf } from "../core/collections.js";
import { type Decided, update } from "../core/records/transact.js";
import { retryInBackground } from "../core/retry-in-background.js";
import { callsAt, countedAt } from "../domain/authentication.js";
import { type MemberClaim, type Moment, sinceOf } from "../domain/claim.js";
import type { Account } from "../domain/policy.js";
import { liftedClaims, movedClaims, readMember } from "../domain/quota.js";
import { uncountClaims } from "../domain/spam-rules.js";
import { base36, day, timestamp } from "../domain/time.js";
import { membersOf, membersOfNumber, type OwnNumber, ownNumbers } from "../messages/number-windows.js";
import type { Context } from "./context.js";

/** The result of an unlock. */
export interface Unlocking {
  /** Whether this call lifted the caps. */
  readonly unlocked: boolean;
  /** When they can be lifted again. ISO 8601 timestamp. */
  readonly next_unlock_at: string;
}

/** The caps of a number can be lifted once in this time. Milliseconds. */
const onceIn = day;

/** Records read and written in parallel. */
const parallel = 16;

/**
 * Lifts a number's `perNumber` counts, wrong codes and messages in spam-rule cells (docs/contract.md#unlock): once in
 * 24 hours, however often it is called. If it fails, the next call lifts the rest. Limits of each authentication stay,
 * and so do caps of devices, addresses and the customer.
 *
 * An unlocked number can get twice the sends in a day, so its guess odds are up to twice `maxGuessOdds`
 * (docs/contract.md#guess-budget).
 */
export async function unlockNumber(parts: Context, account: Account, { phone_number }: z.output<typeof NumberRequest>): Promise<Unlocking> {
  const { clock, keyring, logger, settings, store } = parts;
  const { customer } = account;
  await parts.records.written();
  const own = ownNumbers(parts, account, phone_number);
  const now = clock.now();
  const moment = { now, skew: settings.clockSkew };
  const member = `${keyring.newToken()}/${base36(now)}`;
  const lifts = own.map(({ names: { lifted: window } }): MemberClaim => {
    return { window, member, limit: 1, now, since: sinceOf(moment, onceIn), keepUntil: now + onceIn + 2 * moment.skew };
  });
  const nextAfter = (at: number) => timestamp(at + onceIn + 2 * moment.skew);
  try {
    const lifted = await parts.newDeadline().call(() => store.commit({ claims: lifts, counts: [] }));
    if (!lifted.done) {
      const [last = member] = await membersOf(parts, (lifts[lifted.refusedBy ?? 0] as MemberClaim).window);
      return { unlocked: false, next_unlock_at: nextAfter(readMember(last).at) };
    }
    for (const one of own) await liftUnder(parts, account, one, moment);
  } catch (err) {
    // It may have failed halfway: the next call must lift the rest.
    const takenBack = retryInBackground(clock, () => store.commit({ claims: lifts.map((lift) => ({ ...lift, out: true })), counts: [] }));
    parts.inBackground(
      takenBack.catch((cause) =>
        logger.warn({ err: cause, customer_uuid: customer }, "an unlock that failed could not be reverted: the number can be unlocked again in a day"),
      ),
    );
    throw err;
  }
  return { unlocked: true, next_unlock_at: nextAfter(now) };
}

/** Lifts what is counted under one secret's names. */
async function liftUnder(parts: Context, account: Account, own: OwnNumber, moment: Moment): Promise<void> {
  const { store } = parts;
  const { names } = own;
  const { ids } = await membersOfNumber(parts, own);
  for (const some of chunksOf(ids, parallel)) await Promise.all(some.map((id) => uncount(parts, account, id, own)));
  const sends = await membersOf(parts, names.sends);
  if (sends.length > 0) {
    // The latest time at which another process may have claimed them.
    const latest = moment.now + 2 * moment.skew;
    await parts.newDeadline().call(() => store.commit({ claims: movedClaims(names.sends, sends, latest, onceIn), counts: [] }));
    await parts.newDeadline().call(() => store.commit({ claims: liftedClaims(names, sends, account.policy, { ...moment, now: latest }), counts: [] }));
  }
  await parts.newDeadline().call(() => store.delete({ sums: [...names.sendSums, ...names.callSums, names.guesses] }));
}

/** Removes an authentication's messages from its cells, in the commit that records the removal. */
async function uncount(parts: Context, { customer, policy }: Account, id: string, { number, pseudonym }: OwnNumber): Promise<void> {
  const { clock, keyring, records, settings } = parts;
  const token = keyring.newToken();
  await update(records, parts.newDeadline(), customer, id, (auth): Decided<void> => {
    const sentAt = countedAt(auth);
    if (auth.status !== "pending" || auth.validated || sentAt.length === 0) return { result: undefined };
    const moment = { now: clock.now(), skew: settings.clockSkew };
    const claims = uncountClaims({ ...auth, number, calls: callsAt(auth) }, policy.spam, settings.ownCells, sentAt, moment, pseudonym);
    return { result: undefined, next: { ...auth, uncounted: auth.sent, unlocked: true }, claims, token };
  });
}
