import * as z from "zod";
import { channels } from "../../contract/channel.js";
import { described } from "../../contract/fields.js";
import type { LineType } from "../../contract/lookup.js";

/** The line types of this API by the verifier's. */
export const lineTypes = {
  FixedLine: "fixed_line",
  Mobile: "mobile",
  Pager: "pager",
  PremiumRate: "premium_rate",
  Service: "service",
  SharedCost: "shared_cost",
  TollFree: "toll_free",
  UniversalAccess: "universal_access",
  Unknown: "unknown",
  VoiceMail: "voice_mail",
  Voip: "voip",
} as const satisfies Readonly<Record<LineType, string>>;

const Id = described(z.string().regex(/^vrf_[0-7][0-9a-hjkmnp-tv-z]{25}$/), "Id of the verification.");
const RequestId = described(z.string(), "The `x-request-id` of the request, or a random id.");

const Metadata = described(z.strictObject({ correlation_id: z.string() }).optional(), "Of the request that started the verification, or of a later one.");

/** Body of a create: a new verification (`success`), a message in the open one (`retry`), or neither (`blocked`). */
export const CreateResponse = z.strictObject({
  id: Id,
  status: described(
    z.enum(["success", "retry", "blocked"]),
    "`success`: a code is being sent. `retry`: another one, in the same verification. `blocked`: nothing was sent.",
  ),
  method: z.enum(["message", "voice"]),
  channels: described(z.array(z.enum(channels)).length(1).optional(), "The channel of the message. Absent if blocked."),
  reason: described(z.enum(["in_block_list", "invalid_phone_line", "repeated_attempts", "suspicious"]).optional(), "Why nothing was sent; present if blocked."),
  metadata: Metadata,
  request_id: RequestId,
});
export type CreateResponse = z.infer<typeof CreateResponse>;

/** Body of a check. */
export const CheckResponse = z.strictObject({
  id: described(Id, "Id of the verification; a random one if none is open."),
  status: described(
    z.enum(["success", "failure", "expired_or_not_found"]),
    "Only `success` proves the number, and it is returned once. `failure`: a wrong code. `expired_or_not_found`: no verification is open.",
  ),
  metadata: Metadata,
  request_id: RequestId,
});
export type CheckResponse = z.infer<typeof CheckResponse>;

/** Body of a lookup. */
export const LookupResponse = z.strictObject({
  phone_number: z.string(),
  country_code: described(z.string().length(2).optional(), "ISO 3166-1 alpha-2; absent for global ranges."),
  line_type: z.enum(lineTypes),
  network_info: described(
    z.strictObject({ carrier_name: z.string().optional(), mcc: z.string().optional(), mnc: z.string().optional() }).optional(),
    "Where a provider knows it.",
  ),
  flags: described(z.array(z.literal("ported")).length(1).optional(), "Where a provider knows it."),
});
export type LookupResponse = z.infer<typeof LookupResponse>;

/** Body of the calls that do nothing. */
export const NotedResponse = z.strictObject({ status: z.literal("success"), request_id: RequestId });

/** Body of an error. */
export const ErrorResponse = z.strictObject({
  code: described(z.string(), "What went wrong, for programs."),
  message: described(z.string(), "What is wrong, where, and the fix, for people."),
  type: described(z.string(), "Kind of the error."),
  param: described(z.string().optional(), "Path of the field that is wrong."),
  request_id: RequestId,
});
