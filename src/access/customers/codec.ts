import { CorruptRecord } from "../../core/records/codec.js";
import type { CustomerKey, KeptCustomer } from "../../domain/customers.js";

/** A customer as it is kept: JSON. Names of fields are for good. */
export function encodeCustomer({ uuid: _, ...kept }: KeptCustomer): string {
  return JSON.stringify(kept);
}

/** The customer that was kept under this UUID. Throws `CorruptRecord` where the text is not what was written: a key that cannot be read lets nobody in. */
export function decodeCustomer(uuid: string, data: string): KeptCustomer {
  let kept: Partial<KeptCustomer> | null;
  try {
    kept = JSON.parse(data) as Partial<KeptCustomer> | null;
  } catch (cause) {
    throw corrupt(uuid, cause);
  }
  const { name, createdAt, suspendedAt, policy, sealed, keys } = kept ?? {};
  const sound =
    isMaybe(isText, name) &&
    isTime(createdAt) &&
    isMaybe(isTime, suspendedAt) &&
    isMaybe((value) => typeof value === "object" && value !== null, policy) &&
    isMaybe(isText, sealed) &&
    Array.isArray(keys) &&
    keys.every(isKey);
  if (!sound) throw corrupt(uuid);
  return { ...(kept as Omit<KeptCustomer, "uuid">), uuid };
}

function isKey(value: unknown): boolean {
  const { id, digest, name, createdAt, endsAt, revokedAt } = (value ?? {}) as Partial<CustomerKey>;
  const isDigest = isText(digest) && /^[0-9a-f]{64}$/.test(digest as string) && (digest as string).slice(0, 16) === id;
  return isDigest && isMaybe(isText, name) && isTime(createdAt) && isMaybe(isTime, endsAt) && isMaybe(isTime, revokedAt);
}

const isText = (value: unknown) => typeof value === "string";
const isTime = (value: unknown) => Number.isSafeInteger(value);
const isMaybe = (is: (value: unknown) => boolean, value: unknown) => value === undefined || is(value);

function corrupt(uuid: string, cause?: unknown): CorruptRecord {
  return new CorruptRecord(`what is stored of customer ${uuid} is not what was written; it is left as it is`, { cause });
}
