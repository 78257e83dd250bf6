import * as z from "zod";
import { CheckCode } from "../../contract/check.js";
import { described } from "../../contract/fields.js";
import { invalidParameter } from "./errors.js";

const text = z.string("is required");
const ignored = described(text.optional(), "Ignored.");

/** A raw `+` arrives as a space. */
const number = text.transform((given) => given.replace(/^ /, "+"));

const refused = described(
  text.max(0, "is not supported: a payment cannot be confirmed with a code for signing in").optional(),
  "Not supported: a code for signing in cannot confirm a payment.",
);

const isJson = (given: string): boolean => {
  try {
    JSON.parse(given);
    return true;
  } catch {
    return false;
  }
};

/** Body of `POST /v2/Services/{Service}/Verifications`. Other fields, and empty ones, are left out. */
export const CreateRequest = z.object({
  To: described(number, "The number in E.164 form: + and digits."),
  Channel: described(text, "`sms`; `whatsapp` or `call`, if the service has it."),
  AppHash: described(text.optional(), "The 11-character SMS Retriever hash of the Android app."),
  DeviceIp: described(text.optional(), "IPv4 or IPv6 address of the user's device."),
  Locale: described(text.optional(), "Language of the message, if the service has a text in it."),
  Amount: refused,
  Payee: refused,
  RateLimits: described(text.refine(isJson, "must be JSON").optional(), "JSON; ignored."),
  CustomCode: described(text.optional(), "Ignored: the service makes each code itself."),
  CustomFriendlyName: ignored,
  RiskCheck: described(text.optional(), "Ignored: it switches no rule off."),
  Tags: ignored,
  TemplateSid: ignored,
});

/** Body of `POST /v2/Services/{Service}/Verifications/{Sid}`. */
export const UpdateRequest = z.object({
  Status: described(z.literal("canceled", 'must be "canceled": only a right code approves a verification'), "`canceled`."),
});

/** Body of `POST /v2/Services/{Service}/VerificationCheck`. */
export const CheckRequest = z.object({
  Code: described(text.pipe(CheckCode).pipe(z.string().regex(/^\d{4,10}$/, "must be 4 to 10 digits")), "The code as the user entered it."),
  To: described(number.optional(), "The number; or `VerificationSid`."),
  VerificationSid: described(text.optional(), "SID of the verification (`VE…`); or `To`."),
  Amount: refused,
  Payee: refused,
});

/** Body of `POST /v2/Services`, and of an update. */
export const ServiceRequest = z.object({
  FriendlyName: described(text.max(30, "must be at most 30 characters").optional(), "Not stored."),
  CodeLength: described(text.optional(), "Not stored."),
});

/** Parses a form. Throws `WireError` 60200 of the first field that is wrong. */
export function parse<S extends z.ZodObject>(schema: S, form: URLSearchParams): z.output<S> {
  const repeated = Object.keys(schema.shape).find((name) => form.getAll(name).length > 1);
  if (repeated !== undefined) throw invalidParameter(repeated, `${repeated} must be given once.`);
  const parsed = schema.safeParse(fieldsOf(form));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const name = String(issue?.path[0]);
  throw invalidParameter(name, `${name} ${issue?.message}.`);
}

/** The fields of a form; empty ones are left out. */
export const fieldsOf = (form: URLSearchParams): Readonly<Record<string, string>> => Object.fromEntries([...form].filter(([, value]) => value !== ""));
