import * as z from "zod";
import { type Channel, channels } from "./channel.js";
import { described, Timestamp, Uuid } from "./fields.js";

/** Delivery statuses of a message (docs/contract.md#callback-body). */
export const deliveryStatuses = ["submitted", "in_transit", "delivered", "undeliverable", "unknown"] as const;
export type DeliveryStatus = (typeof deliveryStatuses)[number];

/** The forms of callbacks: our own, and that of the Prelude Verify v2 API (docs/contract.md#callback-forms). */
export const callbackForms = ["phoneproof", "prelude-v2"] as const;
export type CallbackForm = (typeof callbackForms)[number];

/** What a delivery-status callback reports about one message. */
export interface DeliveryStatusData {
  /** The authentication whose message it was. */
  authentication_uuid: string;
  /** 1 for the first event of the authentication, then counting up: of two events about one message, the higher is the later. */
  sequence: number;
  /** 1 for the first message of the authentication, then counting up. */
  attempt: number;
  /** Masked, unless the service is configured to send it in full. */
  phone_number: string;
  /** Delivery status of the message; none follows `delivered` or `undeliverable`. */
  status: DeliveryStatus;
  /** The route that the message took, if known. */
  route?: string | undefined;
  /** The channel of the message. Absent: SMS. */
  channel?: Channel | undefined;
  /** The reason, if known. */
  error?: string | undefined;
}

/**
 * The body posted to `callback_url` (docs/contract.md#callback-body). `sequence`: "the events of one send are reported in their order, and none after a final one" (docs/contract.md#callback-order).
 */
export interface DeliveryStatusEvent {
  /** Kind of the event; there is only one. */
  type: "delivery_status";
  /** When it happened, `YYYY-MM-DDTHH:MM:SS.sssZ`. */
  timestamp: string;
  /** The message and its delivery status. */
  data: DeliveryStatusData;
}
export const DeliveryStatusEventSchema = z.strictObject({
  type: described(z.literal("delivery_status"), "Kind of the event; there is only one."),
  timestamp: described(Timestamp, "When it happened, `YYYY-MM-DDTHH:MM:SS.sssZ`."),
  data: described(
    z.strictObject({
      authentication_uuid: described(Uuid, "The authentication whose message it was."),
      sequence: described(
        z.int().min(1),
        "1 for the first event of the authentication, then counting up: of two events about one message, the higher is the later.",
      ),
      attempt: described(z.int().min(1), "1 for the first message of the authentication, then counting up."),
      phone_number: described(z.string(), "Masked, unless the service is configured to send it in full."),
      status: described(z.enum(deliveryStatuses), "Delivery status of the message; none follows `delivered` or `undeliverable`."),
      route: described(z.string().optional(), "The route that the message took, if known."),
      channel: described(z.enum(channels).optional(), "The channel of the message. Absent: SMS."),
      error: described(z.string().optional(), "The reason, if known."),
    }),
    "The message and its delivery status.",
  ),
}) satisfies z.ZodType<DeliveryStatusEvent>;
