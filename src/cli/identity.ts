import { randomBytes, randomUUID } from "node:crypto";
import { generateApiKey } from "../access/accounts.js";
import { day } from "../domain/time.js";
import type { Store } from "../ports/store.js";
import type { Identity } from "./settings.js";

/** The customer that calls the demo, and a second one, whose authentications expire soon. */
export interface DevIdentity extends Identity {
  readonly hasty: Pick<Identity, "customer_uuid" | "api_key">;
}

/** Where the store keeps it. No real customer has this name. */
const place = { customer: "phoneproof dev", id: "identity" };

/** Returns the identity that `phoneproof dev` has stored there, if any. */
export async function knownIdentity(store: Store): Promise<Identity | undefined> {
  const record = await store.find(place.customer, place.id);
  return record === undefined ? undefined : (JSON.parse(record.data) as Identity);
}

const keptFor = 50 * 365 * day;

/**
 * Completes the identity. Missing values are created by the first process that asks, and stored, so that the stored
 * data still belongs to the same customer after a restart.
 */
export async function identityIn(store: Store, given: Partial<Identity>): Promise<DevIdentity> {
  const caller = () => ({ customer_uuid: randomUUID(), api_key: generateApiKey().key });
  const made: DevIdentity = { ...caller(), secret: randomBytes(32).toString("base64url"), hasty: caller() };
  const now = Date.now();
  const result = await store.commit({ record: { ...place, tokens: [randomUUID()], data: JSON.stringify(made), now, keepUntil: now + keptFor } });
  const kept = result.done || result.refusedBy !== undefined || result.current === undefined ? made : (JSON.parse(result.current.data) as DevIdentity);
  return { ...kept, ...given };
}
