/** `phoneproof/hooks/kit`: the building blocks of the built-in hooks, for your own. */

export type { DeliverResult } from "../../contract/delivery.js";
export type { ConfirmRequest, DeliverRequest } from "../../contract/direct.js";
export type { HttpResponse } from "../../http/message.js";
export { asQueued, asText, isSent, json, type Outcome, outerStatusOf, plain, statusOf } from "./answer.js";
export { type Authenticate, byBodyHmac, byStandardWebhook, byTimedHmac, byToken, type HookRequest, type Secrets, sameText } from "./authentic.js";
export { type Confirmation, type Confirmed, type Hook, type HookApi, type HookOptions, type Message, makeHook, type TokenHookOptions } from "./hook.js";
export { openSecrets, optionError } from "./option-error.js";
export { anyOf, codeInText, isBeforeToday, pick, repeatKey, textOf, timeOf, toNumber } from "./read.js";
