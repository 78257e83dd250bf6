import * as z from "zod";
import { described, Timestamp, Uuid } from "./fields.js";

/** "`status` one of `submitted`, `in_transit`, `delivered`, `undeliverable`, `unknown`" (contract.md, Delivery-status callbacks). */
export const deliveryStatuses = ["submitted", "in_transit", "delivered", "undeliverable", "unknown"] as const;
export type DeliveryStatus = (typeof deliveryStatuses)[number];

/**
 * "POST to `callback_url`, JSON `{ type: "delivery_status", timestamp, data: { authentication_uuid, attempt, phone_number, status, … } }` … with a `sequence` per authentication: the events of one send are told in their order, and none
 * after a final one" (contract.md, Delivery-status callbacks).
 */
export const DeliveryStatusEvent = z.strictObject({
  type: z.literal("delivery_status"),
  timestamp: described(Timestamp, "When it happened."),
  data: z.strictObject({
    authentication_uuid: Uuid,
    sequence: described(z.int().min(1), "1 for the first event of the authentication, one more for each: of two about one message, the higher is the later."),
    attempt: described(z.int().min(1), "1 for the first message of the authentication, one more for each."),
    phone_number: described(z.string(), "Masked, unless the service is set to send it in full."),
    status: z.enum(deliveryStatuses),
    route: described(z.string().optional(), "The route that the message took, where known."),
    error: described(z.string().optional(), "Why, where known."),
  }),
});
export type DeliveryStatusEvent = z.infer<typeof DeliveryStatusEvent>;
