import { asQueued } from "./kit/answer.js";
import { byTimedHmac, type Secrets } from "./kit/authentic.js";
import { type Hook, type HookOptions, type Message, makeHook } from "./kit/hook.js";
import { anyOf, pick, repeatKey, textOf, toNumber } from "./kit/read.js";

export interface ZitadelHookOptions extends HookOptions {
  /** The `signingKey` that ZITADEL returned when the provider was created. Several during a rotation. */
  readonly signingKey: Secrets;
}

/** The HTTP SMS provider of ZITADEL, which gives up after 5 s. @throws TypeError for an invalid option. */
export function zitadelHook(options: ZitadelHookOptions): Hook {
  const fix = "Pass the signingKey of the response to POST /admin/v1/sms/http.";
  return makeHook("zitadelHook", options, {
    defaults: { name: "zitadel", within: 4000 },
    options: ["signingKey"],
    authenticate: byTimedHmac("zitadelHook", "signingKey", options.signingKey, "zitadel-signature", fix),
    read,
    write: asQueued,
  });
}

const purposes = {
  "session.otp.sms.challenged": "mfa",
  "user.human.otp.sms.code.added": "mfa",
  "user.human.phone.code.added": "change",
  "user.human.password.code.added": "reset",
};

function read(body: unknown): Message {
  const [context, args] = [pick(body, "contextInfo"), pick(body, "args")];
  const type = textOf(pick(context, "eventType")) ?? "";
  const phone_number = pick(context, "recipientPhoneNumber");
  // ZITADEL makes the first letter of its own names small: Code, OTP.
  const code = anyOf(args, "code", "oTP", "otp");
  const text = pick(body, "templateData", "text");
  return {
    phone_number,
    code,
    text,
    purpose: pick(purposes, type) ?? type,
    known: toNumber(pick(args, "verifiedPhone")) === toNumber(phone_number),
    // It repeats an event for up to five minutes. A notice may well be due again.
    idempotency_key: code === undefined ? undefined : repeatKey(type, code),
  };
}
