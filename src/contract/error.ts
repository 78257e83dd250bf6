import * as z from "zod";
import { described } from "./fields.js";

/** Codes of errors that the caller can act on; their status is 400, and no other code's is (docs/contract.md#caller-faults). */
export const callerErrorCodes = [
  "bad_request",
  "invalid_phone_number",
  "invalid_auth_uuid",
  "account_invalid",
  "unsupported_region",
  "invalid_line",
  "blocked_number",
  "invalid_app_realm",
  "app_realm_require_device_type",
  "unsupported_app_realm_device_type",
  "invalid_app_version",
  "invalid_os_version",
  "invalid_device_model",
  "invalid_device_id",
] as const;

/** Codes of the other HTTP failures (docs/contract.md#other-faults). */
export const transportErrorCodes = [
  "forbidden",
  "not_found",
  "method_not_allowed",
  "request_timeout",
  "payload_too_large",
  "internal_server_error",
  "unavailable",
] as const;

/** All codes of the wire. The specification has `negative_balance`, which is never returned (docs/contract.md#caller-faults). */
export const errorCodes = [...callerErrorCodes, "negative_balance", ...transportErrorCodes] as const;

export type CallerErrorCode = (typeof callerErrorCodes)[number];
export type ErrorCode = (typeof errorCodes)[number];

/** The body of an error, "all strings" (docs/contract.md#caller-faults). */
export interface ErrorBody {
  /** What went wrong, for programs. */
  code: ErrorCode;
  /** What is wrong, where, and how to fix it, for people. */
  message: string;
  /** Where the code is explained. */
  doc_url: string;
}
export const ErrorBodySchema = z.strictObject({
  code: described(z.enum(errorCodes), "What went wrong, for programs."),
  message: described(z.string(), "What is wrong, where, and how to fix it, for people."),
  doc_url: described(z.string(), "Where the code is explained."),
}) satisfies z.ZodType<ErrorBody>;
