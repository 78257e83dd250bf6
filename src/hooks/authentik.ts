import { asText } from "./kit/answer.js";
import { type Hook, type Message, makeTokenHook, type TokenHookOptions } from "./kit/hook.js";
import { codeInText, pick, textOf } from "./kit/read.js";

/**
 * The SMS authenticator stage of Authentik with the provider `generic`, which shows our sentence to the user. A webhook
 * mapping may add `ip` and `user_id` to its fields. Throws `TypeError` for an invalid option.
 */
export function authentikHook(options: TokenHookOptions): Hook {
  return makeTokenHook("authentikHook", options, { defaults: { name: "authentik" }, read, write: asText });
}

function read(body: unknown): Message {
  const [code, text] = [textOf(pick(body, "Body")), textOf(pick(body, "Message"))];
  const parts = text === undefined ? codeInText(code) : { code, text };
  return { phone_number: pick(body, "To"), ...parts, purpose: "mfa", ip: pick(body, "ip"), user_id: pick(body, "user_id") };
}
