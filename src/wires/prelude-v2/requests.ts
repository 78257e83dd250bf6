import * as z from "zod";
import { printableForm } from "../../contract/authentication.js";
import { described } from "../../contract/fields.js";
import { refusal } from "./errors.js";

/** A text whose form the verifier checks. */
const text = z.string("must be a string");

const target = z.object(
  {
    type: described(z.enum(["phone_number", "email_address"], 'must be "phone_number"'), "`phone_number`; e-mail addresses are rejected."),
    value: described(text, "The number in E.164 form: + and digits."),
  },
  'must be { "type": "phone_number", "value": "+33612345678" }',
);

const ignored = (why = "Ignored.") => described(z.unknown().optional(), why);

/** A field that must be absent. */
const refused = (message: string) => z.never(message).optional();

const codeSize = "must be a whole number from 4 to 8";

const appRealm = z.object({
  platform: z.literal("android", 'must be "android"; for the last line of a web app, leave app_realm out and say signals.device_platform "web"'),
  value: described(text, "The 11-character SMS Retriever hash of the app."),
});

const options = z.object({
  app_realm: described(appRealm.optional(), "Android app that reads the code by itself."),
  callback_url: described(text.optional(), "Webhook URL to which delivery statuses are sent; https."),
  channels: described(z.array(text).optional(), "The first that the service has is taken as `preferred_channel`; it must have one of them."),
  code_size: described(z.int(codeSize).min(4, codeSize).max(8, codeSize).optional(), "Digits of the code, where the guess budget allows it."),
  custom_code: described(
    refused("is not supported on this wire: the service makes each code itself and stores only its digest. Leave it out"),
    "Not supported.",
  ),
  integration: described(z.enum(["auth0", "supabase"], 'must be "auth0" or "supabase"').optional(), "Ignored."),
  locale: described(text.optional(), "Language of the message, BCP 47, if the service has a text in it."),
  method: described(
    z.enum(["auto", "message", "voice"], 'must be "auto", "message" or "voice"').optional(),
    "`voice`: a call, if the service makes calls. `message`: no call, also after one.",
  ),
  preferred_channel: described(text.optional(), "A wish: one that the service does not have is ignored."),
  sender_id: ignored("Ignored: the service sets the sender."),
  template_id: ignored("Ignored: the service sets the text."),
  variables: ignored("Ignored: the service sets the text."),
});

/** The verifier's device types by platform. */
export const deviceTypes = { android: "ANDROID", ios: "IOS", ipados: "IOS", tvos: "IOS", web: "WEB" } as const;

const signals = z.object({
  app_version: described(text.optional(), "1 to 128 printable characters."),
  device_id: described(text.optional(), "1 to 128 printable characters."),
  device_model: described(text.optional(), "1 to 128 printable characters."),
  device_platform: described(
    z.enum(Object.keys(deviceTypes) as [keyof typeof deviceTypes], "must be android, ios, ipados, tvos or web").optional(),
    "What the code is typed on.",
  ),
  ip: described(text.optional(), "IPv4 or IPv6 address of the user's device."),
  is_trusted_user: ignored("Ignored: it switches no rule off."),
  ja4_fingerprint: ignored(),
  os_version: described(text.optional(), "1 to 128 printable characters."),
  user_agent: ignored(),
});

const correlationForm = "must be 1 to 80 printable characters";
const correlationId = text.regex(printableForm, correlationForm).max(80, correlationForm);

/** Body of `POST /v2/verification`. Unknown fields are left out, and `null` counts as left out. */
export const CreateRequest = z.object({
  target,
  dispatch_id: ignored(),
  metadata: z.object({ correlation_id: correlationId.optional() }).optional(),
  options: options.optional(),
  signals: signals.optional(),
});
export type CreateRequest = z.infer<typeof CreateRequest>;

/** Body of `POST /v2/verification/check`. */
export const CheckRequest = z.object({
  target,
  code: described(text, "The code as the user entered it, up to 64 characters."),
  psd2: described(refused("is not supported: a payment cannot be confirmed with a code for signing in"), "Not supported."),
});
export type CheckRequest = z.infer<typeof CheckRequest>;

/** The codes of wrong values; values of a wrong type are `invalid_request`. */
const codes: Readonly<Record<string, string>> = {
  "metadata.correlation_id": "invalid_correlation_id",
  "options.app_realm.platform": "invalid_app_realm_platform",
  "options.channels": "channel_not_enabled_in_region",
  "options.code_size": "invalid_code_size",
  "options.custom_code": "custom_code_not_allowed",
  "options.integration": "invalid_integration",
  "options.method": "invalid_method",
  "signals.device_platform": "invalid_device_platform",
};

/** What the fields must be whose schemas have no message of their own. */
const wrongTypes: Readonly<Record<string, string>> = { array: "must be an array", object: "must be an object" };

/** Parses a request. Throws `WireError` of the first field that is wrong. */
export function parse<S extends typeof CreateRequest | typeof CheckRequest>(schema: S, body: unknown): z.output<S> {
  const parsed = schema.safeParse(withoutNulls(body), { error: ({ code, expected }) => (code === "invalid_type" ? wrongTypes[expected] : undefined) });
  const [issue] = parsed.error?.issues ?? [];
  if (issue !== undefined) {
    const path = issue.path.join(".");
    const isOfWrongType = issue.code === "invalid_type" && issue.expected !== "never";
    const code = isOfWrongType ? undefined : codes[path];
    throw refusal(400, code ?? "invalid_request", `${path || "The request"} ${path ? issue.message : "must be a JSON object"}.`, path || undefined);
  }
  const read = parsed.data as z.output<S>;
  if (read.target.type === "email_address")
    throw refusal(400, "email_verification_not_allowed", "target.type must be phone_number: codes are sent to phones only.", "target.type");
  return read;
}

function withoutNulls(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).flatMap(([name, inner]) => (inner === null ? [] : [[name, withoutNulls(inner)]])));
}
