import type { HttpResponse } from "../http/message.js";
import { isSent, json, type Outcome } from "./kit/answer.js";
import { type Hook, type Message, makeTokenHook, type TokenHookOptions } from "./kit/hook.js";
import { pick, textOf, timeOf } from "./kit/read.js";

/**
 * The telephony inline hook of Okta, which gives up after 3 s. Without an answer of 200 in its form, Okta sends the code
 * itself: refusals are such answers too. Throws `TypeError` for an invalid option.
 */
export function oktaHook(options: TokenHookOptions): Hook {
  return makeTokenHook("oktaHook", options, { defaults: { name: "okta", ip: "trust", within: 2000 }, failsOpen: true, read, write });
}

const purposes = {
  "com.okta.user.telephony.pre-enrollment": "change",
  "com.okta.user.telephony.mfa-verification": "mfa",
  "com.okta.user.telephony.account-unlock": "reset",
  "com.okta.user.telephony.password-reset": "reset",
};

function read(body: unknown, now: number): Message {
  const message = pick(body, "data", "messageProfile");
  const type = textOf(pick(body, "requestType")) ?? "";
  const expiresAt = timeOf(pick(message, "otpExpires"));
  return {
    phone_number: pick(message, "phoneNumber"),
    code: pick(message, "otpCode"),
    text: pick(message, "msgTemplate"),
    channel: /sms/i.test(textOf(pick(message, "deliveryChannel")) ?? "sms") ? "sms" : "voice",
    purpose: pick(purposes, type) ?? type,
    locale: pick(message, "locale"),
    ip: pick(body, "data", "context", "request", "ipAddress"),
    user_id: pick(body, "data", "userProfile", "userId"),
    expires_in: expiresAt === undefined ? undefined : (expiresAt - now) / 1000,
    idempotency_key: textOf(pick(body, "eventId")),
  };
}

function write(outcome: Outcome): HttpResponse {
  const { status, message, delivery_uuid } = outcome;
  if (!isSent(outcome) && status !== "no_route") return json(200, { error: { errorSummary: message } });
  const word = status === "no_route" ? "FAILED" : status === "pending" ? "PENDING" : "SUCCESSFUL";
  const action = { status: word, provider: "phoneproof", transactionId: delivery_uuid };
  return json(200, { commands: [{ type: "com.okta.telephony.action", value: [action] }] });
}
