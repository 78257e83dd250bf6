import type { HttpResponse } from "../http/message.js";
import { json, type Outcome, statusOf } from "./kit/answer.js";
import { type Confirmation, type Hook, type Message, makeTokenHook, type TokenHookOptions } from "./kit/hook.js";
import { anyOf, codeInText, pick, repeatKey, textOf } from "./kit/read.js";

/**
 * For servers without a hook of their own: an Auth0 Action, a Cognito Lambda, FusionAuth, plugins of Keycloak, CAS.
 * Body, as JSON or a form: `to` (or `phone_number`, `phoneNumber`), `code`, `text` (or `textMessage`, `message`), and
 * optionally `purpose` (or `type`), `locale`, `ip`, `user_id`, `id` (of the event), `known` (only `true` in JSON),
 * `expires_in`. Without `code`, the one run of 4 to 10 digits in the text is the code, except in messages of Auth0 and
 * Cognito that have none.
 *
 * Answers with `{ status, id, message, retry_after }`: 200 if it was sent, 4xx if it must not be sent, 5xx if it may be
 * tried again. Show users only `message`. `/hooks/generic/confirmed` takes `{ to, at }` or `{ id, at }`. Throws `TypeError`
 * for an invalid option.
 */
export function genericHook(options: TokenHookOptions): Hook {
  return makeTokenHook("genericHook", options, { defaults: { name: "generic" }, read, write, readConfirmed: readConfirmation });
}

const numberNames = ["to", "phone_number", "phoneNumber"];

/** The words of Auth0's message types and of Cognito's trigger sources. */
const purposes = {
  otp_verify: "mfa",
  otp_enroll: "mfa",
  change_password: "reset",
  CustomSMSSender_SignUp: "sign_up",
  CustomSMSSender_ResendCode: "sign_up",
  CustomSMSSender_ForgotPassword: "reset",
  CustomSMSSender_UpdateUserAttribute: "change",
  CustomSMSSender_VerifyUserAttribute: "change",
  CustomSMSSender_Authentication: "mfa",
};

const call = /^(voice|((voice|phone)[ _-]?)?call)$/i;

/** Cognito's trigger source of a temporary password, and Auth0's types without a code: digits in them are not a code. */
const notices = ["CustomSMSSender_AdminCreateUser", "blocked_account", "change_password", "password_breach"];

function read(body: unknown): Message {
  const type = textOf(pick(body, "type")) ?? "";
  // FusionAuth's type is the channel.
  const isChannel = /^(sms|voice)$/i.test(type);
  const isVoice = [type, pick(body, "channel"), pick(body, "delivery_method")].some((one) => call.test(String(one)));
  const text = textOf(anyOf(body, "text", "textMessage", "message"));
  const code = textOf(pick(body, "code"));
  const purpose = textOf(pick(body, "purpose")) ?? (isChannel ? "" : type);
  const id = textOf(pick(body, "id"));
  return {
    phone_number: anyOf(body, ...numberNames),
    ...(code !== undefined ? { code, text } : notices.includes(type) ? { text } : codeInText(text)),
    purpose: pick(purposes, purpose) ?? purpose,
    locale: pick(body, "locale"),
    ip: anyOf(body, "ip", "clientIpAddress"),
    user_id: anyOf(body, "user_id", "userId"),
    known: pick(body, "known") === true,
    expires_in: pick(body, "expires_in"),
    // An id may be that of a sign-in, in which the user asks for another code.
    idempotency_key: id === undefined ? undefined : repeatKey(id, code ?? text),
    channel: isVoice ? "voice" : "sms",
  };
}

function write(outcome: Outcome): HttpResponse {
  const { status, delivery_uuid: id, message, retry_after, detail } = outcome;
  return json(statusOf(outcome), { status, id, message: detail ?? message, retry_after });
}

function readConfirmation(body: unknown): Confirmation | undefined {
  const [phone_number, delivery_uuid] = [anyOf(body, ...numberNames), pick(body, "id")];
  // The number is enough, even if the event has an id of its own.
  return phone_number === undefined ? { delivery_uuid, at: pick(body, "at") } : { phone_number, at: pick(body, "at") };
}
