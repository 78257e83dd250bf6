import { asQueued } from "./kit/answer.js";
import { type Confirmation, type Hook, type Message, makeTokenHook, type TokenHookOptions } from "./kit/hook.js";
import { anyOf, isBeforeToday, pick, repeatKey, textOf, toNumber } from "./kit/read.js";

/**
 * The courier channel `sms` of Ory Kratos, with this Jsonnet as its body:
 *
 *     function(ctx) {
 *       to: ctx.recipient, text: ctx.body, type: ctx.template_type, data: ctx.template_data,
 *       headers: if std.objectHas(ctx, "request_headers") then ctx.request_headers else null
 *     }
 *
 * A `web_hook` after sign-in posts `{ to: ctx.identity.traits.phone }` to `/hooks/kratos/confirmed`, with the same
 * token. Throws `TypeError` for an invalid option.
 */
export function kratosHook(options: TokenHookOptions): Hook {
  return makeTokenHook("kratosHook", options, { defaults: { name: "kratos" }, read, write: asQueued, readConfirmed: readFlow });
}

const purposes = {
  login_code_valid: "sign_in",
  registration_code_valid: "sign_up",
  verification_code_valid: "change",
  recovery_code_valid: "reset",
};

function read(body: unknown, now: number): Message {
  const [data, text, headers] = ["data", "text", "headers"].map((name) => pick(body, name));
  const type = textOf(pick(body, "type")) ?? "";
  const phone_number = pick(body, "to");
  // For recovery, the code is the verification_code again.
  const code = anyOf(data, "login_code", "registration_code", "verification_code", "recovery_code");
  const addresses = [pick(data, "identity", "verifiable_addresses") ?? []].flat();
  return {
    phone_number,
    code,
    text,
    purpose: pick(purposes, type) ?? type,
    locale: textOf(pick(headers, "Accept-Language", 0))?.split(/[,;]/)[0] ?? pick(data, "identity", "traits", "locale"),
    ip: pick(headers, "True-Client-Ip", 0) ?? pick(headers, "X-Forwarded-For", 0),
    user_id: pick(data, "identity", "id"),
    known: addresses.some((one) => toNumber(pick(one, "value")) === toNumber(phone_number) && isBeforeToday(pick(one, "verified_at"), now)),
    expires_in: Number(pick(data, "expires_in_minutes")) * 60,
    // The queue repeats the same code much later than users ask for another. A notice may well be due again.
    idempotency_key: code === undefined ? undefined : repeatKey(type, code),
  };
}

/** Somebody who signed in by e-mail has no number. */
function readFlow(body: unknown): Confirmation | "nobody" | undefined {
  if (typeof body !== "object" || body === null) return undefined;
  const phone_number = anyOf(body, "to", "phone_number");
  return phone_number === undefined ? "nobody" : { phone_number, at: pick(body, "at") };
}
