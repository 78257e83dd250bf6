import type { HttpResponse } from "../http/message.js";
import { isSent, json, type Outcome, outerStatusOf } from "./kit/answer.js";
import { byBodyHmac, type Secrets } from "./kit/authentic.js";
import { type Hook, type HookOptions, type Message, makeHook } from "./kit/hook.js";
import { pick, repeatKey, textOf } from "./kit/read.js";

export interface AuthgearHookOptions extends HookOptions {
  /** The project's webhook signing secret. Several during a rotation. */
  readonly signingKey: Secrets;
}

/** The custom SMS gateway of Authgear, as a webhook. @throws TypeError for an invalid option. */
export function authgearHook(options: AuthgearHookOptions): Hook {
  const fix = "Pass the project's webhook signing secret.";
  return makeHook("authgearHook", options, {
    defaults: { name: "authgear" },
    options: ["signingKey"],
    authenticate: byBodyHmac("authgearHook", "signingKey", options.signingKey, "x-authgear-body-signature", fix),
    read,
    write,
  });
}

/** By the start of `template_name`. */
const purposes = [
  ["authenticate_primary", "sign_in"],
  ["setup_primary", "sign_up"],
  ["authenticate_secondary", "mfa"],
  ["setup_secondary", "mfa"],
  ["forgot_password", "reset"],
  ["verification", "change"],
] as const;

function read(body: unknown): Message {
  const template = textOf(pick(body, "template_name")) ?? "";
  const [code, text] = [pick(body, "template_variables", "code"), pick(body, "body")];
  return {
    phone_number: pick(body, "to"),
    code,
    text,
    purpose: purposes.find(([start]) => template.startsWith(start))?.[1] ?? template,
    locale: pick(body, "language_tag"),
    // The signature holds no time, and each code is a new one.
    idempotency_key: code === undefined ? undefined : repeatKey(template, code, text),
  };
}

/** Its words for our outcomes. Any other word is a failure. */
const codes: Readonly<Record<Outcome["status"], string>> = {
  sent: "ok",
  pending: "ok",
  repeated: "ok",
  rate_limited: "rate_limited",
  spam_detected: "rate_limited",
  invalid: "invalid_phone_number",
  no_route: "delivery_rejected",
  unsupported: "unsupported_request",
  malformed: "unsupported_request",
  unavailable: "unavailable",
  failed: "failed",
};

function write(outcome: Outcome): HttpResponse {
  const code = codes[outcome.status];
  if (isSent(outcome)) return json(200, { code });
  // Older releases read the provider's code at the top.
  const error = { provider_name: "phoneproof", provider_error_code: code };
  return json(outerStatusOf(outcome), { code, description: outcome.message, info: error, provider_error_code: code });
}
