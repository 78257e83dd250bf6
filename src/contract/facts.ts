import * as z from "zod";
import { channels } from "./channel.js";
import { described, Timestamp } from "./fields.js";

/** Facts about an authentication beyond the wire's fields: direct calls return them as further fields, HTTP responses as headers. */
export const facts = {
  channel: described(z.enum(channels), "The channel of the newest message, if it is not SMS; otherwise absent."),
  phone_number: described(
    z.string(),
    "The number in canonical E.164 form. For a retry or check: absent on already_validated and expired_auth, and if the create was rejected.",
  ),
  next_retry_at: described(Timestamp, "When the next message can be requested. For a create or check: absent if no more can be."),
  remaining_retry: described(z.int().min(0), "Messages that can still be requested."),
  remaining_checks: described(z.int().min(0), "Wrong codes that can still be entered; 0 if no code is valid any longer."),
  retry_after: described(
    z.int().min(1),
    "Seconds until the cap or spend ceiling that blocked this call has room; absent if none did, or if the time is unknown.",
  ),
  carrier_refused: described(z.literal(true), "`true` if this call's message is known not to have been sent: no route took it; otherwise absent."),
};

export type Fact = keyof typeof facts;

/** The header that holds each fact. */
export const factHeaders: Readonly<Record<Fact, string>> = {
  channel: "x-phoneproof-channel",
  phone_number: "x-phoneproof-phone-number",
  next_retry_at: "x-phoneproof-next-retry-at",
  remaining_retry: "x-phoneproof-remaining-retry",
  remaining_checks: "x-phoneproof-remaining-checks",
  retry_after: "x-phoneproof-retry-after",
  carrier_refused: "x-phoneproof-carrier-refused",
};
