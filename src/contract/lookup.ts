import * as z from "zod";
import { CustomerUuid, described, PhoneNumber } from "./fields.js";

export const lineTypes = [
  "FixedLine",
  "Mobile",
  "TollFree",
  "PremiumRate",
  "SharedCost",
  "Voip",
  "Pager",
  "VoiceMail",
  "UniversalAccess",
  "Service",
  "Unknown",
] as const;
export type LineType = (typeof lineTypes)[number];

/** Input of Lookup (docs/contract.md#lookup): the path's phone_number and the customer-uuid header. */
export const LookupRequest = z.object({
  customer_uuid: CustomerUuid,
  phone_number: PhoneNumber,
});
export type LookupRequest = z.infer<typeof LookupRequest>;

/**
 * Response of Lookup.
 *
 * "Lookup always returns `phone_number` and `line_type`; `country_code`, `carrier`, `mcc`, `mnc`, `number_ported` only when known. Never `null`, never a guess … Non-geographic numbers have no country, so `country_code` is omitted" (docs/contract.md#lookup).
 */
export interface LookupResponse {
  /** Carrier of the number, if a provider knows it. */
  carrier?: string | undefined;
  /** ISO 3166-1 alpha-2 country code, or XK (Kosovo), AC (Ascension) or TA (Tristan da Cunha); absent for global ranges. */
  country_code?: string | undefined;
  /** Kind of line; `Unknown` if neither the numbering plan nor a provider knows it. */
  line_type: LineType;
  /** Mobile country code, if a provider knows it. */
  mcc?: string | undefined;
  /** Mobile network code, if a provider knows it. */
  mnc?: string | undefined;
  /** Whether the number has been ported, if a provider knows it. */
  number_ported?: boolean | undefined;
  /** The number in E.164 form. */
  phone_number: string;
}
export const LookupResponseSchema = z.strictObject({
  carrier: described(z.string().optional(), "Carrier of the number, if a provider knows it."),
  country_code: described(
    z.string().length(2).optional(),
    "ISO 3166-1 alpha-2 country code, or XK (Kosovo), AC (Ascension) or TA (Tristan da Cunha); absent for global ranges.",
  ),
  line_type: described(z.enum(lineTypes), "Kind of line; `Unknown` if neither the numbering plan nor a provider knows it."),
  mcc: described(z.string().optional(), "Mobile country code, if a provider knows it."),
  mnc: described(z.string().optional(), "Mobile network code, if a provider knows it."),
  number_ported: described(z.boolean().optional(), "Whether the number has been ported, if a provider knows it."),
  phone_number: described(z.string(), "The number in E.164 form."),
}) satisfies z.ZodType<LookupResponse>;
