import { asText } from "./kit/answer.js";
import { type Hook, type Message, makeTokenHook, type TokenHookOptions } from "./kit/hook.js";
import { anyOf, codeInText, textOf } from "./kit/read.js";

/**
 * The SMS provider "Custom HTTP SMS" of Casdoor, with the method POST. With the template `%s`, the code arrives bare;
 * any other text is sent as it is. Throws `TypeError` for an invalid option.
 */
export function casdoorHook(options: TokenHookOptions): Hook {
  return makeTokenHook("casdoorHook", options, { defaults: { name: "casdoor" }, secretInPath: true, read, write: asText });
}

const numberNames = ["phoneNumber", "phone_number", "to"];

/** The name of the text is the operator's choice. */
function read(body: unknown): Message {
  const others = Object.keys(body ?? {}).filter((name) => !numberNames.includes(name));
  return { phone_number: anyOf(body, ...numberNames), ...codeInText(textOf(anyOf(body, "code", "content", "text", "message", ...others))) };
}
