import * as z from "zod";
import { CreateAuthenticationRequest, printable } from "./authentication.js";
import { conversions } from "./conversion.js";
import { integer, locale, PhoneNumber, Uuid } from "./fields.js";

const code = z.string("must be a string").regex(/^[0-9A-Za-z-]{4,16}$/, "must be 4 to 16 letters, digits or hyphens");
const text = z.string("must be a string").min(1, "must be 1 to 1600 characters").max(1600, "must be 1 to 1600 characters");
const purpose = z.string("must be a string").regex(/^[\w.:-]{1,64}$/, "must be 1 to 64 letters, digits, _, -, . or :");
const idempotencyKey = z.string("must be a string").regex(/^[\x20-\x7e]{1,255}$/, "must be 1 to 255 printable ASCII characters");

const { customer_uuid, phone_number, ip, device_id, device_type, app_realm, callback_url, channel } = CreateAuthenticationRequest.shape;

export const DeliverRequest = z
  .object({
    ...{ customer_uuid, phone_number, ip, device_id, device_type, app_realm, callback_url, channel },
    code: code.optional(),
    text: text.optional(),
    purpose: purpose.default("sign_in"),
    locale: locale.optional(),
    expires_in: integer(30, 3600, "must be a whole number of seconds from 30 to 3600").default(300),
    known: z.boolean("must be true or false").default(false),
    conversion: z.enum(conversions, `must be ${conversions.join(", ")}`).optional(),
    correlation_id: printable.optional(),
    idempotency_key: idempotencyKey.optional(),
    within: integer(100, 600_000, "must be a whole number of milliseconds from 100 to 600000").optional(),
  })
  .refine(({ code, text }) => code !== undefined || text !== undefined, { path: ["code"], error: "or text is required" });
export type DeliverRequest = z.infer<typeof DeliverRequest>;

const moment = "must be a Date, a timestamp such as 2026-03-01T12:00:00Z, or milliseconds since the epoch";

export const ConfirmRequest = z
  .object({
    customer_uuid: Uuid,
    phone_number: PhoneNumber.optional(),
    delivery_uuid: Uuid.optional(),
    at: z
      .union([z.iso.datetime({ offset: true, error: moment }), z.date(moment), z.number(moment)], moment)
      .transform((one) => new Date(one).getTime())
      .optional(),
  })
  .refine((one) => (one.phone_number === undefined) !== (one.delivery_uuid === undefined), {
    path: ["phone_number"],
    error: "or delivery_uuid is required, and not both",
  });
export type ConfirmRequest = z.infer<typeof ConfirmRequest>;

/** Why no message can go to a number at all. */
export type DestinationReason = "invalid_phone_number" | "unsupported_region" | "invalid_line" | "blocked_number";

/** Result of `deliver`. */
export interface DeliverResult {
  /**
   * - `sent`: a carrier accepted the message.
   * - `pending`: it may have been sent, or is being sent; the carrier has not responded yet.
   * - `repeated`: an earlier call sent this message; nothing was sent again.
   * - `rate_limited`: a cap or the spend ceiling blocked it. `spam_detected`: a spam rule, or your own, blocked it.
   * - `no_route`: every carrier rejected it; nothing was sent.
   * - `invalid`: no message can go to this number; see `reason`.
   * - `unavailable`: the store failed, so nothing was sent. Try again.
   */
  readonly status: "sent" | "pending" | "repeated" | "rate_limited" | "spam_detected" | "no_route" | "invalid" | "unavailable";
  /** For `confirm`, `explain` and callbacks. The messages of one sign-in share it. Absent for `invalid` and `unavailable`. */
  readonly delivery_uuid?: string;
  /** The number in canonical E.164 form. Absent if it is invalid. */
  readonly phone_number?: string;
  /** Why the number is `invalid`. */
  readonly reason?: DestinationReason;
  /** Whole seconds until the cap or spend ceiling that blocked this call has room, if known. */
  readonly retry_after?: number;
  /**
   * One sentence for the end user, in the language of `locale` if there is one, else English. It never names the rule.
   * Absent if the message was or may have been sent.
   */
  readonly message?: string;
}

/** Result of `confirm`. */
export interface ConfirmResult {
  /**
   * `confirmed`: counted. `already_confirmed`: an earlier call was counted; this one changes nothing. `not_found`: no
   * message was sent to the number within 24 hours, or none before `at`.
   */
  readonly status: "confirmed" | "already_confirmed" | "not_found";
  /** The delivery; absent if none was found. */
  readonly delivery_uuid?: string;
}
