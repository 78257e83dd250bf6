import { z } from "zod";
import { Timestamp, Uuid } from "./fields.js";

export const retryStatuses = ["approved", "denied", "no_attempt", "rate_limited", "expired_auth", "already_validated"] as const;
export type RetryStatus = (typeof retryStatuses)[number];

/** Request body of Retry (spec.md, Endpoints 2). */
export const RetryRequest = z.object({
  authentication_uuid: Uuid.describe("Returned by Create authentication."),
  customer_uuid: Uuid.describe("The caller's customer identifier."),
});
export type RetryRequest = z.infer<typeof RetryRequest>;

/** Response of Retry (spec.md, Resources: Retry result). */
export const RetryResponse = z.strictObject({
  authentication_uuid: Uuid.describe("The authentication the retry belongs to."),
  created_at: Timestamp.describe("Time of the retry result."),
  next_retry_at: Timestamp.describe("Time at which the next retry becomes available."),
  remaining_retry: z.int().min(0).describe("Number of retries still available."),
  status: z.enum(retryStatuses),
});
export type RetryResponse = z.infer<typeof RetryResponse>;
