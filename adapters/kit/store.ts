import type { Claim, StoredRecord, SumClaim } from "../../src/ports/store.js";

/** "A small value (at most 64 KiB)", and the same for a record's data; in bytes. */
const maxBytes = 64 * 1024;

/** Rejects a text that is larger than a store accepts. `store`: the function that the user called. */
export function refuseLarge(store: string, what: string, text: string | undefined): void {
  if (text !== undefined && Buffer.byteLength(text) > maxBytes) throw new RangeError(`${store}: ${what} is larger than ${maxBytes} bytes`);
}

/** A stored record cannot be read. */
export class CorruptRecord extends Error {
  constructor(store: string, customer: unknown, id: unknown) {
    super(`${store}: the record of authentication ${id} of customer ${customer} is corrupt; it was left as it is`);
  }
}

/**
 * Parses leased records. A corrupt one, or a node that is down (`errors`), must not hold up the others: an error is
 * thrown only if nothing else was found.
 */
export function parseEach<T>(found: readonly T[], parse: (one: T) => StoredRecord, errors: unknown[] = []): StoredRecord[] {
  const records = found.flatMap((one) => {
    try {
      return parse(one);
    } catch (error) {
      errors.push(error);
      return [];
    }
  });
  if (records.length === 0 && errors.length > 0) throw errors[0];
  return records;
}

/** The total of a sum that holds `held` after a claim. */
export function raised(held: number, { weight, floor = Number.NEGATIVE_INFINITY }: Pick<SumClaim, "weight" | "floor">): number {
  return Math.max(floor, Math.max(floor, held) + weight);
}

/** The largest limit that the claims of a commit set for a window; 0 for none. */
export function largestLimit(claims: readonly Claim[], window: string): number {
  return claims.reduce((most, claim) => ("window" in claim && claim.window === window ? Math.max(most, claim.limit ?? 0) : most), 0);
}

/** The customer in the name of a window or sum. */
export function customerOf(name: string): string {
  const colon = name.indexOf(":");
  return colon === -1 ? name : name.slice(0, colon);
}
