import type * as z from "zod";
import type { NumberRequest } from "../contract/operator.js";
import { type Decided, update } from "../core/records/transact.js";
import { retryInBackground } from "../core/retry-in-background.js";
import type { Account } from "../domain/account.js";
import { countedAt } from "../domain/authentication.js";
import { type MemberClaim, sinceOf } from "../domain/claim.js";
import { liftedClaims, movedClaims, readMember } from "../domain/quota.js";
import { uncountClaims } from "../domain/spam-rules.js";
import { day, timestamp } from "../domain/time.js";
import { membersOf, membersOfNumber, ownNumber } from "../messages/number-windows.js";
import type { Context } from "./context.js";

/** What became of the caps of a number. */
export interface Unlocking {
  /** Whether this very call lifted them. */
  readonly unlocked: boolean;
  /** When they can be lifted again. ISO 8601 timestamp. */
  readonly next_unlock_at: string;
}

/** How often the caps of one number can be lifted: once in so many milliseconds. */
const onceIn = day;

/** Records read and written at a time. */
const parallel = 16;

/**
 * Lifts what `perNumber` has counted of a number, its wrong keyring, and its messages in the cells of the spam rules, for a user who is locked out (docs/contract.md#unlock): once in 24 hours, however many ask and however often an ask is repeated.
 * Where it breaks off, the claim that allows it once is taken back, and the next call lifts the rest. Wrong codes, retries and cool-downs of each authentication stay as they are, and so do the caps of devices, addresses and the customer.
 *
 * "sends per number per day × checks × 10^-length must stay ≤ `maxGuessOdds`" (docs/contract.md#guess-budget): on a day on which it was lifted a number can get twice the sends, so the odds to guess one of its codes are at most twice `maxGuessOdds`.
 */
export async function unlockNumber(parts: Context, account: Account, { phone_number }: z.output<typeof NumberRequest>): Promise<Unlocking> {
  const { clock, keyring, logger, settings, store } = parts;
  const { customer } = account;
  await parts.records.written();
  const own = ownNumber(parts, account, phone_number);
  const { names } = own;
  const now = clock.now();
  const moment = { now, skew: settings.clockSkew };
  const member = `${keyring.newToken()}/${now.toString(36)}`;
  const lift: MemberClaim = { window: names.lifted, member, limit: 1, now, since: sinceOf(moment, onceIn), keepUntil: now + onceIn + 2 * moment.skew };
  const nextAfter = (at: number) => timestamp(at + onceIn + 2 * moment.skew);
  try {
    const lifted = await parts.newDeadline().call(() => store.commit({ claims: [lift], counts: [] }));
    if (!lifted.done) {
      const [last = member] = await membersOf(parts, names.lifted);
      return { unlocked: false, next_unlock_at: nextAfter(readMember(last).at) };
    }
    const { ids } = await membersOfNumber(parts, own);
    for (let at = 0; at < ids.length; at += parallel)
      await Promise.all(ids.slice(at, at + parallel).map((id) => uncount(parts, account, id, own.phone.number)));
    const sends = await membersOf(parts, names.sends);
    if (sends.length > 0) {
      // As late as another process may have claimed them.
      const latest = now + 2 * moment.skew;
      await parts.newDeadline().call(() => store.commit({ claims: movedClaims(names, sends, latest, onceIn), counts: [] }));
      await parts.newDeadline().call(() => store.commit({ claims: liftedClaims(names, sends, account.policy, { ...moment, now: latest }), counts: [] }));
    }
    await parts.newDeadline().call(() => store.delete({ sums: [...names.sendSums, names.guesses] }));
  } catch (err) {
    // It may not have lifted all: the next call is to.
    const takenBack = retryInBackground(clock, () => store.commit({ claims: [{ ...lift, out: true }], counts: [] }));
    parts.inBackground(
      takenBack.catch((cause) =>
        logger.warn({ err: cause, customer_uuid: customer }, "an unlocking that broke off could not be taken back: the number can be unlocked again in a day"),
      ),
    );
    throw err;
  }
  return { unlocked: true, next_unlock_at: nextAfter(now) };
}

/** Takes the messages of an authentication out of its cells, in the commit that writes so down. */
async function uncount(parts: Context, { customer, policy }: Account, id: string, number: string): Promise<void> {
  const { clock, keyring, records, settings } = parts;
  const token = keyring.newToken();
  await update(records, parts.newDeadline(), customer, id, (auth): Decided<void> => {
    const sentAt = countedAt(auth);
    if (auth.status !== "pending" || auth.validated || sentAt.length === 0) return { result: undefined };
    const moment = { now: clock.now(), skew: settings.clockSkew };
    const claims = uncountClaims({ ...auth, number }, policy.spam, settings.ownCells, sentAt, moment, keyring.pseudonym);
    return { result: undefined, next: { ...auth, uncounted: auth.sent }, claims, token };
  });
}
