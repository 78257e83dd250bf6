import type { Change, Claim, MemberClaim, StoredRecord, SumClaim, SumParts } from "../../src/ports/store.js";

/** "A small value (at most 64 KiB)", and the same for a record's data; in bytes. */
const maxBytes = 64 * 1024;

/** Rejects a text that is larger than a store accepts. `store`: the function that the user called. */
export function refuseLarge(store: string, what: string, text: string | undefined): void {
  if (text !== undefined && Buffer.byteLength(text) > maxBytes) throw new RangeError(`${store}: ${what} is larger than ${maxBytes} bytes`);
}

/** Whether a client, possibly a function, has these methods. */
export function has<Client = object>(client: unknown, ...methods: string[]): client is Client {
  const isAny = (typeof client === "object" && client !== null) || typeof client === "function";
  return isAny && methods.every((method) => typeof (client as Record<string, unknown>)[method] === "function");
}

/** A stored record cannot be read. */
export class CorruptRecord extends Error {
  constructor(store: string, customer: unknown, id: unknown) {
    super(`${store}: the record of authentication ${id} of customer ${customer} is corrupt; it was left as it is`);
  }
}

/** Parses leased records. An error, also one of `errors`, is thrown only if nothing else was found. */
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

/** What a store counts for claims. */
export interface Counts {
  /** The total of the parts of a sum that count. */
  total(parts: SumParts): number;
  /** How many members of a window are newer than `since`, excluding `except`. */
  newer(claim: MemberClaim, except?: string): number;
  /** The time of the member after the `skipped` newest of a window, ignoring the claim's; or `undefined`. */
  timeOf(claim: MemberClaim, skipped: number): number | undefined;
}

/** The count without a claim that is rejected, and when it would be granted; `undefined` if it is granted now. */
export function refusalOf(claim: Claim, { total, newer, timeOf }: Counts): { count: number; roomSince?: number; roomPart?: number } | undefined {
  const { limit } = claim;
  if (limit === undefined || ("sum" in claim ? claim.weight < 0 : claim.out)) return undefined;
  if ("sum" in claim) {
    const { sum, part, parts } = claim;
    const count = total(claim);
    if (raised(count, claim) <= limit) return undefined;
    const later = Array.from({ length: parts + 1 }, (_, at) => part + 1 + at);
    const roomPart = later.find((part) => raised(total({ sum, part, parts }), claim) <= limit);
    return roomPart === undefined ? { count } : { count, roomPart };
  }
  const count = newer(claim, claim.member);
  if (count < limit) return undefined;
  const roomSince = timeOf(claim, limit - 1);
  return roomSince === undefined ? { count } : { count, roomSince };
}

/** The largest limit that the claims of a commit set for a window; 0 for none. */
export function largestLimit(claims: readonly Claim[], window: string): number {
  return claims.reduce((most, claim) => ("window" in claim && claim.window === window ? Math.max(most, claim.limit ?? 0) : most), 0);
}

/** The first window or sum that a change names; `""` if it names none. All belong to one customer. */
export function firstName({ claims = [], asks = [], revoke }: Change): string {
  const first = claims[0] ?? revoke?.claims[0] ?? asks[0];
  if (first === undefined) return "";
  return "sum" in first ? first.sum : first.window;
}

/** The customer in the name of a window or sum. */
export function customerOf(name: string): string {
  const colon = name.indexOf(":");
  return colon === -1 ? name : name.slice(0, colon);
}
