import { createHash } from "node:crypto";
import { uuidOfHex } from "../../domain/ids.js";

/** `AC`: account, a customer. `VA`: service, the same customer's. `VE`: verification. */
type Kind = "AC" | "VA" | "VE";

/** Returns the SID of a UUID: two letters and its 32 hexadecimal digits. */
export const sidOf = (kind: Kind, uuid: string): string => kind + uuid.replaceAll("-", "");

/** Returns the UUID of a SID. `undefined`: it is not a SID of this kind. */
export function uuidOf(kind: Kind, sid: string): string | undefined {
  const digits = sid.startsWith(kind) ? sid.slice(kind.length).toLowerCase() : "";
  return /^[0-9a-f]{32}$/.test(digits) ? uuidOfHex(digits) : undefined;
}

/** Returns the SID of a verification's message. `attempt`: 1 for the first. */
export function attemptSid(uuid: string, attempt: number): string {
  return `VL${createHash("sha256").update(`${uuid}:${attempt}`).digest("hex").slice(0, 32)}`;
}

/**
 * Returns the `authentication_uuid` of a verification's SID (`VE…`), for `verifier.explain` and the other direct calls.
 * `undefined`: it is not such a SID.
 */
export const authenticationUuidOf = (sid: string): string | undefined => uuidOf("VE", sid);
