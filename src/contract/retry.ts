import * as z from "zod";
import { WishedChannel } from "./channel.js";
import { CustomerUuid, described, Timestamp, Uuid } from "./fields.js";

export const retryStatuses = ["approved", "denied", "no_attempt", "rate_limited", "expired_auth", "already_validated"] as const;
export type RetryStatus = (typeof retryStatuses)[number];

/** Request body of Retry (docs/contract.md#retry-operation). */
export const RetryRequest = z.object({
  authentication_uuid: described(Uuid, "Returned by Create authentication."),
  customer_uuid: CustomerUuid,
  channel: described(
    WishedChannel,
    "An addition to the specification: the channel that the user wishes for; voice for a call. Default: a call if the create was one, otherwise the service chooses.",
  ),
});
export type RetryRequest = z.infer<typeof RetryRequest>;

/** Response of Retry (docs/contract.md#exact-fields). */
export interface RetryResponse {
  /** The authentication the retry belongs to. */
  authentication_uuid: string;
  /** Time of the retry result, `YYYY-MM-DDTHH:MM:SS.sssZ`. */
  created_at: string;
  /** Time at which the next retry becomes available, `YYYY-MM-DDTHH:MM:SS.sssZ`; `expires_at` if none does. */
  next_retry_at: string;
  /** Number of retries still available. */
  remaining_retry: number;
  /** `approved`: a new code was sent. `denied`: not now, see `next_retry_at`. `no_attempt`: no code was sent before. `rate_limited`: no retries left, or a limit blocks the message for now. `expired_auth`, `already_validated`: it has ended. */
  status: RetryStatus;
}
export const RetryResponseSchema = z.strictObject({
  authentication_uuid: described(Uuid, "The authentication the retry belongs to."),
  created_at: described(Timestamp, "Time of the retry result, `YYYY-MM-DDTHH:MM:SS.sssZ`."),
  next_retry_at: described(Timestamp, "Time at which the next retry becomes available, `YYYY-MM-DDTHH:MM:SS.sssZ`; `expires_at` if none does."),
  remaining_retry: described(z.int().min(0), "Number of retries still available."),
  status: described(
    z.enum(retryStatuses),
    "`approved`: a new code was sent. `denied`: not now, see `next_retry_at`. `no_attempt`: no code was sent before. `rate_limited`: no retries left, or a limit blocks the message for now. `expired_auth`, `already_validated`: it has ended.",
  ),
}) satisfies z.ZodType<RetryResponse>;
