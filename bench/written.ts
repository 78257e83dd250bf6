import { randomBytes, randomUUID } from "node:crypto";
import type { Claim, Store, StoredRecord } from "phoneproof";
import { memoryStore } from "phoneproof/memory";
import { benchVerifier, customerFor, customerOf, numberOf } from "./service.js";

/** What the engine writes: a record, and the claims of its create. */
export interface Written {
  readonly record: StoredRecord;
  readonly claims: readonly Claim[];
}

/** Fields of the create, and whether a retry follows at once. */
export interface Wanted {
  readonly callback_url?: string;
  readonly retry?: boolean;
}

/** Runs one create (and a retry) on a memory store of its own and reads back what was written. */
export async function writeOne({ retry = false, ...fields }: Wanted = {}): Promise<Written> {
  const memory = memoryStore({ name: randomUUID() });
  const claims: Claim[] = [];
  const store: Store = {
    find: (customer, id) => memory.find(customer, id),
    compareAndSwap: (next, expected) => memory.compareAndSwap(next, expected),
    count: (windows) => memory.count(windows),
    due: (until, limit) => memory.due(until, limit),
    get: (key) => memory.get(key),
    put: (key, value, keepUntil) => memory.put(key, value, keepUntil),
    async reserve(asked) {
      if (claims.length === 0) claims.push(...asked);
      return memory.reserve(asked);
    },
  };
  const { verifier } = benchVerifier(store, { policy: { retryCooldowns: [0, 60, 90, 120] } });
  const customer_uuid = customerOf(0);
  const { authentication_uuid } = await verifier.createAuthentication({ customer_uuid, phone_number: numberOf(0), ...fields });
  if (retry) {
    const { status } = await verifier.retry({ customer_uuid, authentication_uuid });
    if (status !== "approved") throw new Error(`expected approved, got ${status}`);
  }
  const record = await memory.find(customer_uuid, authentication_uuid);
  await memory.close?.();
  if (record === undefined) throw new Error("nothing was written");
  return { record, claims };
}

/** The record of create `index`, with a customer, id, tokens, number and digests of its own. */
export function recordOf({ record }: Written, index: number): StoredRecord {
  const data = record.data.replace(numberOf(0), numberOf(index)).replaceAll(/"[\w-]{22}"/g, () => `"${randomBytes(16).toString("base64url")}"`);
  return { ...record, customer: customerOf(customerFor(index)), id: randomUUID(), tokens: record.tokens.map(() => randomBytes(8).toString("base64url")), data };
}

/** The claims of create `index`. */
export function claimsOf({ record, claims }: Written, index: number): Claim[] {
  const id = randomUUID();
  const customer = customerOf(customerFor(index));
  return claims.map((claim) => ({
    ...claim,
    window: claim.window.replace(record.customer, customer).replace(numberOf(0), numberOf(index)),
    member: claim.member.replace(record.id, id),
  }));
}
