import * as z from "zod";
import { gaps, toAsciiDigits } from "./digits.js";
import { CustomerUuid, described, Uuid } from "./fields.js";

export const checkStatuses = ["valid", "invalid", "without_attempt", "rate_limited", "already_validated", "expired_auth"] as const;
export type CheckStatus = (typeof checkStatuses)[number];

const empty = "must not be empty";
const separators = new RegExp(`[${gaps}]`, "gu");

/**
 * "surrounding and inner spaces, hyphens and invisible characters are dropped, Unicode decimal digits are read as ASCII. Any other string up to 64 characters is a wrong code … empty or longer is `bad_request`" (docs/contract.md#check-code).
 */
export const CheckCode = z
  .string("must be a string: the code the user entered, in quotes")
  .min(1, empty)
  .max(64, "must be at most 64 characters")
  .transform((typed) => toAsciiDigits(typed.replace(separators, "")))
  .pipe(z.string().min(1, empty));

/** Request body of Check (docs/contract.md#check-operation). */
export const CheckRequest = z.object({
  authentication_uuid: described(Uuid, "Returned by Create authentication."),
  check_code: described(CheckCode, "The code the user entered. Spaces, hyphens and invisible characters are dropped; at least one character must be left."),
  customer_uuid: CustomerUuid,
});
export type CheckRequest = z.infer<typeof CheckRequest>;

/** Response of Check (docs/contract.md#exact-fields). */
export interface CheckResponse {
  /** The authentication that was checked. */
  authentication_uuid: string;
  /** Only `valid` is success. `invalid`: a wrong code. `without_attempt`: no code was sent. `rate_limited`: no tries left. `expired_auth`, `already_validated`: it has ended; neither proves anything. */
  status: CheckStatus;
}
export const CheckResponseSchema = z.strictObject({
  authentication_uuid: described(Uuid, "The authentication that was checked."),
  status: described(
    z.enum(checkStatuses),
    "Only `valid` is success. `invalid`: a wrong code. `without_attempt`: no code was sent. `rate_limited`: no tries left. `expired_auth`, `already_validated`: it has ended; neither proves anything.",
  ),
}) satisfies z.ZodType<CheckResponse>;
