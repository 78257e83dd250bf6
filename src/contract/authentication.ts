import * as z from "zod";
import { WishedChannel } from "./channel.js";
import type { CallerErrorCode } from "./error.js";
import { CustomerUuid, described, PhoneNumber, Timestamp, Uuid } from "./fields.js";

export const deviceTypes = ["IOS", "ANDROID", "WEB"] as const;
export type DeviceType = (typeof deviceTypes)[number];

export const authenticationStatuses = ["pending", "rate_limited", "spam_detected"] as const;
export type AuthenticationStatus = (typeof authenticationStatuses)[number];

/** "1–128 printable characters, else their own `invalid_*` code" (docs/contract.md#device-fields). */
export const printableForm = /^[^\p{C}\p{Zl}\p{Zp}]{1,128}$/u;
/** The same for OpenAPI documents, less strict: generated clients of any language read it, without the flag `u`. */
export const printablePattern = String.raw`^[^\x00-\x1f\x7f-\x9f]{1,128}$`;
export const printable = z.string("must be a string").regex(printableForm, "must be 1 to 128 printable characters");

/** "`app_realm` is the 11-character SMS Retriever hash" (docs/contract.md#app-realm). */
const realm = z.string("must be a string").regex(/^[A-Za-z0-9+/]{11}$/, "must be the 11-character SMS Retriever hash of the app (A-Z a-z 0-9 + /)");

/** A challenge provider's token, opaque to us. */
const proof = z.string("must be a string").min(1, "must be 1 to 8192 characters").max(8192, "must be 1 to 8192 characters");

/** Request body of Create authentication (docs/contract.md#create-authentication). Unknown fields are ignored. */
export const CreateAuthenticationRequest = z.object({
  customer_uuid: CustomerUuid,
  phone_number: PhoneNumber,
  app_realm: described(realm.optional(), "Android SMS Retriever hash; goes with device_type ANDROID."),
  app_version: described(printable.optional(), "Version of the caller's app. No invisible characters."),
  callback_url: described(z.string("must be a string").optional(), "Webhook URL to which delivery statuses are sent; https."),
  channel: described(
    WishedChannel,
    "An addition to the specification: the channel that the user wishes for, if the service has it: sms, whatsapp, telegram, viber, rcs, or voice for a call.",
  ),
  device_id: described(printable.optional(), "ANDROID_ID on Android, identifierForVendor on iOS. No invisible characters."),
  device_model: described(printable.optional(), "Model of the user's device. No invisible characters."),
  device_type: described(
    z.enum(deviceTypes, "must be IOS, ANDROID or WEB").optional(),
    "The platform on which the code is entered: IOS, ANDROID or WEB; selects the last line of the message, for autofill.",
  ),
  ip: described(z.union([z.ipv4(), z.ipv6()], "must be an IPv4 or IPv6 address").optional(), "IP address of the user's device."),
  is_returning_user: described(z.boolean("must be true or false").optional(), "Whether the user is a returning user of the caller's app."),
  os_version: described(printable.optional(), "Operating system version of the user's device. No invisible characters."),
  proof: described(proof.optional(), "The token that the user's device received for solving this service's challenge; valid for one request."),
});
export type CreateAuthenticationRequest = z.infer<typeof CreateAuthenticationRequest>;

/** The error code of a string in the wrong format, if it is not `bad_request`. */
export const createFormatErrors: Readonly<Record<string, CallerErrorCode>> = {
  app_realm: "invalid_app_realm",
  app_version: "invalid_app_version",
  device_id: "invalid_device_id",
  device_model: "invalid_device_model",
  os_version: "invalid_os_version",
};

/** Response of Create authentication (docs/contract.md#exact-fields). */
export interface AuthenticationResponse {
  /** Unique identifier of the authentication; used in retry and check. */
  authentication_uuid: string;
  /** Creation time, `YYYY-MM-DDTHH:MM:SS.sssZ`. */
  created_at: string;
  /** Time after which the authentication can no longer be checked or retried, `YYYY-MM-DDTHH:MM:SS.sssZ`. */
  expires_at: string;
  /** `pending`: the code is being sent. `rate_limited`: a limit blocked it. `spam_detected`: a spam rule blocked it. */
  status: AuthenticationStatus;
}
export const AuthenticationResponseSchema = z.strictObject({
  authentication_uuid: described(Uuid, "Unique identifier of the authentication; used in retry and check."),
  created_at: described(Timestamp, "Creation time, `YYYY-MM-DDTHH:MM:SS.sssZ`."),
  expires_at: described(Timestamp, "Time after which the authentication can no longer be checked or retried, `YYYY-MM-DDTHH:MM:SS.sssZ`."),
  status: described(
    z.enum(authenticationStatuses),
    "`pending`: the code is being sent. `rate_limited`: a limit blocked it. `spam_detected`: a spam rule blocked it.",
  ),
}) satisfies z.ZodType<AuthenticationResponse>;
