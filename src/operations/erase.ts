import type * as z from "zod";
import { factsKey } from "../access/number-facts.js";
import { listing } from "../callbacks/dead-letters.js";
import type { NumberRequest } from "../contract/operator.js";
import { chunksOf } from "../core/collections.js";
import { CorruptRecord } from "../core/records/codec.js";
import { type Decided, update } from "../core/records/transact.js";
import { type Authentication, emptyOf } from "../domain/authentication.js";
import type { Claim } from "../domain/claim.js";
import { slotOf } from "../domain/ids.js";
import { type Account, milliseconds, type Policy } from "../domain/policy.js";
import { movedClaims, nobody, readMember, takenOut } from "../domain/quota.js";
import { verifiedWindow } from "../domain/spam-rules.js";
import { base36, day, timestamp } from "../domain/time.js";
import { keysOfListedId } from "../messages/message-ids.js";
import { membersOf, membersOfNumber, type OwnNumber, ownNumbers } from "../messages/number-windows.js";
import { unreachableKeys } from "../messages/unreachable.js";
import type { Context } from "./context.js";

/** The result of an erasure. */
export interface Erasure {
  /** Authentications that were erased; 0 if there were none left. */
  readonly erased: number;
  /**
   * When the remaining counts have ended too: caps of the number, devices, addresses and the customer, under keyed
   * hashes. ISO 8601 timestamp.
   */
  readonly counts_until: string;
}

/** Claims in one commit, and names in one call. */
const atATime = 200;

/** Records emptied in parallel. */
const parallel = 32;

/**
 * Erases a customer's number (docs/contract.md#erase): authentications, callbacks, carriers' ids, trust and windows. A
 * repeated call completes an interrupted erasure: names are deleted after what they name. Retries and checks in
 * progress return `invalid_auth_uuid`; receipts and callbacks end. Counts of caps and wrong codes, and that the number
 * has earned within the day, stay until `counts_until`, under keyed hashes and erased ids: erasing them would bypass
 * the guess budget (docs/contract.md#guess-budget) and earn twice (docs/contract.md#balance). Money and statistics hold
 * no number, and stay.
 */
export async function eraseNumber(parts: Context, account: Account, { phone_number }: z.output<typeof NumberRequest>): Promise<Erasure> {
  const { clock, settings } = parts;
  let erased = 0;
  for (const own of ownNumbers(parts, account, phone_number)) erased += await eraseUnder(parts, account, own);
  return { erased, counts_until: timestamp(clock.now() + countedFor(account.policy) + 4 * settings.clockSkew) };
}

/** Erases what is stored under one secret's names, and returns how many authentications that were. */
async function eraseUnder(parts: Context, { customer, policy }: Account, own: OwnNumber): Promise<number> {
  const { clock, records, store, settings } = parts;
  const { number, pseudonym } = own;
  const { listed, ids } = await membersOfNumber(parts, own);
  const call = (work: () => Promise<unknown>) => parts.newDeadline().call(work);
  const commit = (claims: readonly Claim[]) => call(() => store.commit({ claims, counts: [] }));

  let erased = 0;
  for (const some of chunksOf(ids, parallel)) {
    const emptied = (await Promise.all(some.map((id) => emptyRecord(parts, customer, id)))).filter((auth) => auth !== undefined);
    erased += emptied.length;
    const messageIds = emptied.flatMap(({ keptIds }) => keptIds.flatMap(keysOfListedId));
    for (const values of chunksOf(messageIds, atATime)) await call(() => store.delete({ values }));
    await call(() => store.delete({ records: some.flatMap((id) => [...new Set([slotOf(id), id])].map((at) => ({ customer, id: at }))) }));
    for (const id of some) records.forget(id);
  }

  // Read once no retry can add to them; whatever a concurrent create adds is left to the next erasure.
  const gone = new Set(ids);
  const sends = (await membersOf(parts, own.names.sends)).filter((member) => gone.has(readMember(member).id));
  // The latest time at which another process may have claimed them.
  const latest = clock.now() + 2 * settings.clockSkew;
  const keptFor = longest(policy.limits.perNumber) + 2 * settings.clockSkew;
  // What no cap counts any more is not counted again. A retry may have come as late as its authentication ended.
  const since = latest - keptFor - 2 * settings.clockSkew;
  const isCounted = ({ at, attempt }: ReturnType<typeof readMember>) => at > since - (attempt === 1 ? 0 : milliseconds(policy.lifetime));
  for (const some of chunksOf(sends, atATime)) {
    await commit(movedClaims(own.names.sends, some, latest, keptFor));
    // The same for every erasure, so that a send counts once if two erase it.
    const nameless = some.filter((member) => isCounted(readMember(member))).map((member) => `${nobody}/0/${pseudonym(member).slice(0, 8)}`);
    await commit([...movedClaims(own.names.sends, nameless, latest, keptFor), ...some.map((member) => takenOut(own.names.sends, member, latest, 1))]);
  }
  for (const some of chunksOf(listed, atATime)) await commit(some.map((member) => takenOut(own.names.listed, member, readMember(member).at)));
  const verified = verifiedWindow(customer, number, pseudonym);
  const proven = (await membersOf(parts, verified)).map((member) => readMember(member).at);
  const lastProof = Math.max(0, ...proven);
  const masked = pseudonym(number);
  // Trust lasts for months, and a window may last as long as its longest member: it is deleted whole.
  const windows = [own.names.refused, ...(proven.length > 0 ? [verified] : [])];
  await call(() => store.delete({ windows, values: [factsKey(customer, masked), ...unreachableKeys(customer, masked)] }));
  // The number has been counted as verified for the day, also if it is erased again.
  const hasEarned = lastProof > latest - day - 2 * settings.clockSkew - milliseconds(policy.lifetime);
  if (hasEarned) await commit(movedClaims(verified, [`${nobody}/${base36(lastProof)}`], latest, day + 2 * settings.clockSkew));
  return erased;
}

/**
 * Empties a record except for its carrier ids, and removes its given-up callbacks from their list in the same step. No
 * work in progress can add to it. Returns its last content; `undefined` if it is missing or unreadable.
 */
async function emptyRecord(parts: Context, customer: string, id: string): Promise<Authentication | undefined> {
  try {
    return await update(parts.records, parts.newDeadline(), customer, id, (auth): Decided<Authentication> => {
      const letters = auth.outbox.flatMap((event): Claim[] => (event.dead === undefined ? [] : [{ ...listing(auth, event), out: true }]));
      return { result: auth, next: { ...emptyOf(auth), keepUntil: auth.keepUntil }, claims: letters };
    });
  } catch (err) {
    if ((err as Error).cause instanceof CorruptRecord) return undefined;
    throw err;
  }
}

/** The longest time that a wrong code counts, in milliseconds: a day, and a part of half a day. */
const wrongCodes = (3 / 2) * day;

/**
 * Milliseconds for which anything is counted under or with a number's hash: caps of numbers, devices and addresses
 * (sums for twice their length), wrong codes, and the last unlock.
 */
function countedFor({ limits, lifetime, tombstone }: Policy): number {
  const caps = Math.max(longest(limits.numbersPerDevice), longest(limits.numbersPerIp), 2 * longest(limits.perNumber));
  return Math.max(wrongCodes, caps, milliseconds(lifetime) + milliseconds(tombstone));
}

/** The longest window of the caps, in milliseconds. */
function longest(caps: Policy["limits"]["perNumber"]): number {
  return Math.max(0, ...caps.map(({ window }) => milliseconds(window)));
}
