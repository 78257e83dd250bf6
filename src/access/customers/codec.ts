import { CorruptRecord } from "../../core/records/codec.js";
import type { CustomerKey, CustomerRecord } from "../../domain/customers.js";

/** Encodes a customer as JSON for the store. Fields must never be renamed. */
export function encodeCustomer({ uuid: _, ...stored }: CustomerRecord): string {
  return JSON.stringify(stored);
}

/** Throws `CorruptRecord` if the text is invalid: unreadable keys grant no access. */
export function decodeCustomer(uuid: string, data: string): CustomerRecord {
  try {
    const stored = JSON.parse(data) as Omit<CustomerRecord, "uuid">;
    const { name, createdAt, suspendedAt, policy, sealed, reencryptedAt, keys } = stored;
    const areTimes = isTime(createdAt) && [suspendedAt, reencryptedAt].every(isTimeOrNone);
    const isSound = [name, sealed].every(isTextOrNone) && areTimes && isObjectOrNone(policy) && keys.every(isKey);
    if (!isSound) throw new TypeError("a field does not have the form that was written");
    return { ...stored, uuid };
  } catch (cause) {
    throw new CorruptRecord(`the stored customer ${uuid} is corrupt; it was left as it is`, { cause });
  }
}

function isKey({ id, digest, name, createdAt, endsAt, revokedAt }: CustomerKey): boolean {
  const isDigest = /^[0-9a-f]{64}$/.test(digest) && digest.slice(0, 16) === id;
  return isDigest && isTextOrNone(name) && isTime(createdAt) && [endsAt, revokedAt].every(isTimeOrNone);
}

const isTextOrNone = (value: unknown) => value === undefined || typeof value === "string";
const isObjectOrNone = (value: unknown) => value === undefined || (typeof value === "object" && value !== null);
const isTime = (value: unknown) => Number.isSafeInteger(value);
const isTimeOrNone = (value: unknown) => value === undefined || isTime(value);
