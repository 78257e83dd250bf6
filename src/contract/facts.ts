import * as z from "zod";
import { described, Timestamp } from "./fields.js";

/** What is told of an authentication beyond the wire's fields: direct calls answer it beside them, over HTTP it stands in headers, and the body stays as it is. */
export const facts = {
  phone_number: described(
    z.string(),
    "The number in canonical E.164 form. Of a retry or check: absent on already_validated and expired_auth, and where create was refused.",
  ),
  next_retry_at: described(Timestamp, "When the next message may be asked for. Of a create or check: absent where none may be any more."),
  remaining_retry: described(z.int().min(0), "Messages that may still be asked for."),
  remaining_checks: described(z.int().min(0), "Wrong codes that may still be typed; 0 where no code can be right any more."),
  retry_after: described(
    z.int().min(1),
    "Seconds until the cap or spend ceiling that refused this call has room; absent where none refused, and where it is not known.",
  ),
  carrier_refused: described(z.literal(true), "Every route surely refused the message of this call; else absent."),
};

export type Fact = keyof typeof facts;

/** The header that holds each fact. */
export const factHeaders: Readonly<Record<Fact, string>> = {
  phone_number: "x-phoneproof-phone-number",
  next_retry_at: "x-phoneproof-next-retry-at",
  remaining_retry: "x-phoneproof-remaining-retry",
  remaining_checks: "x-phoneproof-remaining-checks",
  retry_after: "x-phoneproof-retry-after",
  carrier_refused: "x-phoneproof-carrier-refused",
};
