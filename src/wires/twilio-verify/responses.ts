import * as z from "zod";
import { described } from "../../contract/fields.js";

const sid = (kind: string, what: string) => described(z.string().regex(new RegExp(`^${kind}[0-9a-f]{32}$`)), what);

const AccountSid = sid("AC", "The customer.");
const ServiceSid = sid("VA", "The customer's service.");
const VerificationSid = sid("VE", "The verification: the same for each message in it.");

/** SDKs read no fraction of a second. */
const Time = z.iso.datetime({ precision: 0 });
const none = z.null();

/** As in requests. */
const channel = z.enum(["sms", "call", "whatsapp", "telegram", "viber", "rcs"]);

const of = {
  sid: VerificationSid,
  service_sid: ServiceSid,
  account_sid: AccountSid,
  to: described(z.string(), "The number in canonical E.164 form; masked in a fetch by SID once the verification was canceled."),
  channel: described(channel, "Of the newest message."),
  amount: none,
  payee: none,
  date_created: described(Time, "When the verification started."),
};

/** A verification. */
export const Verification = z.strictObject({
  ...of,
  status: described(
    z.enum(["pending", "canceled", "max_attempts_reached"]),
    "`pending`: a code can be entered. `max_attempts_reached`: no tries left. Approved and expired ones are 404.",
  ),
  valid: z.literal(false),
  date_updated: described(Time, "When its last message was sent, or when it was canceled by this request."),
  lookup: z.strictObject({}),
  send_code_attempts: described(
    z.array(z.strictObject({ time: z.iso.datetime({ precision: 3 }), channel, attempt_sid: sid("VL", "The message.") })).min(1),
    "The first message, and the last three that no carrier rejected.",
  ),
  sna: none,
  url: z.string(),
});
export type Verification = z.infer<typeof Verification>;

/** The result of a check. */
export const VerificationCheck = z.strictObject({
  ...of,
  status: described(z.enum(["approved", "pending"]), "Only `approved` proves the number, and it is returned once. `pending`: a wrong code."),
  valid: described(z.boolean(), "Whether `status` is `approved`."),
  date_updated: described(Time, "When the code was checked."),
  sna_attempts_error_codes: z.array(z.unknown()).max(0),
});
export type VerificationCheck = z.infer<typeof VerificationCheck>;

/** The one service of a customer. */
export const Service = z.strictObject({
  sid: ServiceSid,
  account_sid: AccountSid,
  friendly_name: z.string(),
  code_length: z.int(),
  lookup_enabled: z.literal(false),
  psd2_enabled: z.literal(false),
  skip_sms_to_landlines: z.literal(true),
  dtmf_input_required: z.literal(false),
  tts_name: none,
  do_not_share_warning_enabled: z.literal(false),
  custom_code_enabled: z.literal(false),
  push: z.strictObject({ include_date: z.literal(false), apn_credential_sid: none, fcm_credential_sid: none }),
  totp: z.strictObject({ issuer: none, time_step: none, code_length: none, skew: none }),
  whatsapp: z.strictObject({ msg_service_sid: none, from: none }),
  passkeys: none,
  default_template_sid: none,
  verify_event_subscription_enabled: z.literal(false),
  date_created: none,
  date_updated: none,
  url: z.string(),
  links: z.record(z.string(), z.string()),
});
export type Service = z.infer<typeof Service>;

/** A page of services: the first has the one, and there is no other. */
export const ServiceList = z.strictObject({
  meta: z.strictObject({
    page: z.int(),
    page_size: z.int(),
    first_page_url: z.string(),
    previous_page_url: none,
    next_page_url: none,
    key: z.literal("services"),
    url: z.string(),
  }),
  services: z.array(Service).max(1),
});
export type ServiceList = z.infer<typeof ServiceList>;

/** Body of an error. */
export const ErrorResponse = z.strictObject({
  code: described(z.int(), "What went wrong, for programs."),
  message: described(z.string(), "What went wrong, in the vendor's words."),
  more_info: described(z.string().regex(/\d+$/), "Ends with the code."),
  status: described(z.int(), "The HTTP status."),
  details: described(z.strictObject({ reason: z.string() }).optional(), "What is wrong and how to fix it."),
});
