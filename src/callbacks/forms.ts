import type { CallbackForm, DeliveryStatusEvent } from "../contract/callback.js";
import { sha256 } from "../core/hash.js";
import type { Authentication, OutboxEvent } from "../domain/authentication.js";
import { timestamp } from "../domain/time.js";
import { typeId } from "../domain/type-id.js";

/** The body of an event in each form (docs/contract.md#callback-forms). `number`: as it may be shown. */
export const bodies: Readonly<Record<CallbackForm, (auth: Authentication, event: OutboxEvent, number: string) => object>> = {
  phoneproof: (auth, event, number): DeliveryStatusEvent => ({
    type: "delivery_status",
    timestamp: timestamp(event.at),
    data: {
      authentication_uuid: auth.id,
      sequence: event.sequence,
      attempt: event.attempt,
      phone_number: number,
      status: event.status,
      ...(event.route !== undefined && { route: event.route }),
      ...(event.channel !== undefined && { channel: event.channel }),
      ...(event.error !== undefined && { error: event.error }),
    },
  }),
  "prelude-v2": (auth, event, number) => {
    const time = timestamp(event.at);
    // The creation time distinguishes records that had the same idempotency key.
    const idOf = (prefix: string, part: number) => typeId(prefix, sha256(`${prefix}\0${auth.id}\0${auth.createdAt}\0${part}`).slice(0, 32));
    return {
      id: idOf("evt", event.sequence),
      type: "verify.delivery_status",
      created_at: time,
      payload: {
        id: idOf("dls", event.sequence),
        verification_id: typeId("vrf", auth.id),
        attempt_id: idOf("att", event.attempt),
        status: event.status,
        target: { type: "phone_number", value: number },
        metadata: auth.correlationId === undefined ? {} : { correlation_id: auth.correlationId },
        time,
      },
    };
  },
};
