import * as z from "zod";
import { described, Timestamp, Uuid } from "./fields.js";

export const retryStatuses = ["approved", "denied", "no_attempt", "rate_limited", "expired_auth", "already_validated"] as const;
export type RetryStatus = (typeof retryStatuses)[number];

/** Request body of Retry (spec.md, Endpoints 2). */
export const RetryRequest = z.object({
  authentication_uuid: described(Uuid, "Returned by Create authentication."),
  customer_uuid: described(Uuid, "The caller's customer identifier."),
});
export type RetryRequest = z.infer<typeof RetryRequest>;

/** Response of Retry (spec.md, Resources: Retry result). */
export const RetryResponse = z.strictObject({
  authentication_uuid: described(Uuid, "The authentication the retry belongs to."),
  created_at: described(Timestamp, "Time of the retry result."),
  next_retry_at: described(Timestamp, "Time at which the next retry becomes available."),
  remaining_retry: described(z.int().min(0), "Number of retries still available."),
  status: z.enum(retryStatuses),
});
export type RetryResponse = z.infer<typeof RetryResponse>;
