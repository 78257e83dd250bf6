import { typeId, uuidOf } from "../../domain/ids.js";

/** Returns the id of a verification on this wire. */
export const verificationId = (uuid: string): string => typeId("vrf", uuid);

/**
 * Returns the `authentication_uuid` of an id of this wire, for `verifier.explain` and the other direct calls.
 * `undefined`: it is not such an id.
 */
export const authenticationUuidOf = (id: string): string | undefined => uuidOf("vrf", id);
