import { readAgain, readNumber } from "../access/destination.js";
import type { Core } from "../core/core.js";
import type { Held } from "../core/records/records.js";
import type { PhoneNumber } from "../domain/phone-number.js";
import type { Account } from "../domain/policy.js";
import { type NumberNames, namesOfNumber, nobody, type Pseudonym, readMember, readUncreated } from "../domain/quota.js";
import type { Messages } from "./messages.js";

/** A customer's number, and the names derived from it under one secret. */
export interface OwnNumber {
  readonly number: string;
  readonly pseudonym: Pseudonym;
  readonly names: NumberNames;
}

/**
 * Parses a number. Numbers that were valid only in an older numbering plan are accepted. Throws
 * `invalid_phone_number`.
 */
export function storedNumber(parts: Messages, phoneNumber: string): PhoneNumber {
  return readAgain(parts, phoneNumber) ?? readNumber(parts, phoneNumber);
}

/** The number under each secret, the one in use first. Throws `invalid_phone_number`. */
export function ownNumbers(parts: Messages, { customer, policy }: Account, phoneNumber: string): OwnNumber[] {
  const { clock, keyring, settings } = parts;
  const { number } = storedNumber(parts, phoneNumber);
  const moment = { now: clock.now(), skew: settings.clockSkew };
  return keyring.pseudonyms.map((pseudonym) => ({ number, pseudonym, names: namesOfNumber(customer, pseudonym(number), policy, moment) }));
}

/** "the window may keep its newest 10,000 only" (domain/claim.ts); a window with limits keeps fewer. */
const mostMembers = 10_000;

/** The members of a window, newest first. */
export function membersOf({ newDeadline, store }: Core, window: string, deadline = newDeadline()): Promise<string[]> {
  return deadline.call(() => store.members(window, mostMembers));
}

/** The members of a number's windows; `ids`: authentications, newest first. */
export async function membersOfNumber(parts: Messages, ...own: readonly OwnNumber[]) {
  const read = async (of: "sends" | "listed" | "refused") => (await Promise.all(own.map(({ names }) => membersOf(parts, names[of])))).flat();
  const [sends, listed, refused] = await Promise.all([read("sends"), read("listed"), read("refused")]);
  const first = new Map<string, number>();
  const created = refused.filter((member) => readUncreated(member) === undefined);
  for (const { id, at } of [...sends, ...listed, ...created].map(readMember)) if (id !== nobody) first.set(id, Math.min(at, first.get(id) ?? at));
  const ids = [...first].sort(([, a], [, b]) => b - a).map(([id]) => id);
  return { listed, ids };
}

/** Records read in parallel. */
const parallel = 32;

/**
 * Returns the existing records of authentications in order, up to `enough`. Each read has its own deadline. Rejects
 * with `unavailable`.
 */
export async function recordsOf(parts: Messages, { customer }: Account, ids: readonly string[], enough = ids.length): Promise<Held[]> {
  const found: Held[] = [];
  for (let at = 0; at < ids.length && found.length < enough; at += parallel) {
    const read = await Promise.all(ids.slice(at, at + parallel).map((id) => parts.records.find(parts.newDeadline(), customer, id)));
    found.push(...read.filter((held) => held !== undefined));
  }
  return found.slice(0, enough);
}
