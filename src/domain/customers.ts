import type { PolicyOverride } from "./policy.js";

/** An API key of a customer in the store. The key itself is never stored. */
export interface CustomerKey {
  /** The first 16 hexadecimal digits of its SHA-256 digest. */
  readonly id: string;
  /** Its SHA-256 digest, 64 lower-case hexadecimal digits. */
  readonly digest: string;
  readonly name?: string | undefined;
  /** Milliseconds since the epoch, like all times here. */
  readonly createdAt: number;
  /** Another key has replaced this one; from this time on, it is rejected. */
  readonly endsAt?: number;
  readonly revokedAt?: number;
}

/** A customer in the store, with its keys. */
export interface CustomerRecord {
  /** Lower case. */
  readonly uuid: string;
  readonly name?: string | undefined;
  readonly createdAt: number;
  readonly suspendedAt?: number | undefined;
  readonly policy?: PolicyOverride | undefined;
  /** The customer's own secrets that sign callbacks, sealed. */
  readonly sealed?: string | undefined;
  /** When a process last re-encrypted them because the customer called. */
  readonly reencryptedAt?: number | undefined;
  /** Newest first. */
  readonly keys: readonly CustomerKey[];
}

/** `active`; `ending`: replaced, but valid until `endsAt`; `ended`; `revoked`. */
export type KeyStatus = "active" | "ending" | "ended" | "revoked";

/** "Two keys can be active at once, so that they overlap during rotation" (docs/contract.md#key-rotation). */
export const mostUsableKeys = 2;

/** How many ended or revoked keys are still shown, newest first. */
const shownOver = 8;

/** The result of a change: the changed customer, or why the change is impossible. */
export type Changed = { readonly next: CustomerRecord; readonly problem?: undefined } | { readonly problem: string; readonly next?: undefined };

export function keyStatus({ endsAt, revokedAt }: CustomerKey, now: number): KeyStatus {
  if (revokedAt !== undefined) return "revoked";
  if (endsAt === undefined) return "active";
  return now < endsAt ? "ending" : "ended";
}

/** Whether requests with this key are accepted. */
export function isUsable(key: CustomerKey, now: number): boolean {
  const status = keyStatus(key, now);
  return status === "active" || status === "ending";
}

/** Adds a key. */
export function withKey(customer: CustomerRecord, key: CustomerKey, now: number): Changed {
  const usable = customer.keys.filter((one) => isUsable(one, now));
  if (usable.length < mostUsableKeys) {
    let over = 0;
    // A key that is no longer listed is rejected like an unknown one: only listed keys are accepted.
    const others = customer.keys.filter((one) => isUsable(one, now) || over++ < shownOver);
    return { next: { ...customer, keys: [key, ...others] } };
  }
  const named = usable.map(({ id, endsAt }) => (endsAt === undefined ? id : `${id}, which ends at ${new Date(endsAt).toISOString()}`)).join(" and ");
  return { problem: `the customer has ${mostUsableKeys} keys in use, ${named}: revoke one of them first` };
}

/** Replaces a key, by default the active one, which ends after `overlap` milliseconds or at its own earlier end. */
export function withKeyInPlaceOf(customer: CustomerRecord, id: string | undefined, key: CustomerKey, overlap: number, now: number): Changed {
  const lasting = customer.keys.filter((one) => (id === undefined ? keyStatus(one, now) === "active" : one.id === id && isUsable(one, now)));
  const [old] = lasting;
  if (old === undefined)
    return { problem: `${id === undefined ? "the customer has no key" : `the customer has no key ${id}`} to take the place of: issue one` };
  if (lasting.length > 1)
    return { problem: `the customer has ${lasting.length} keys, ${lasting.map((one) => one.id).join(" and ")}: name the one to replace as key_id` };
  const endsAt = Math.min(now + overlap, old.endsAt ?? Number.POSITIVE_INFINITY);
  const changed = withKey({ ...customer, keys: customer.keys.map((one) => (one === old ? { ...old, endsAt } : one)) }, key, now);
  // The problem names the keys as they are stored.
  return "problem" in changed ? withKey(customer, key, now) : changed;
}

/** "Revocation is immediate" (docs/contract.md#key-revocation): permanent, and can be repeated. */
export function withoutKey(customer: CustomerRecord, id: string, now: number): Changed {
  const key = customer.keys.find((one) => one.id === id);
  if (key === undefined) return { problem: `the customer has no key ${id}` };
  if (key.revokedAt !== undefined) return { next: customer };
  return { next: { ...customer, keys: customer.keys.map((one) => (one === key ? { ...key, revokedAt: now } : one)) } };
}
