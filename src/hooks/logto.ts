import { asText } from "./kit/answer.js";
import { byBodyHmac, byToken, type Secrets } from "./kit/authentic.js";
import { type Confirmation, type Hook, type Message, makeHook, type TokenHookOptions } from "./kit/hook.js";
import { pick, textOf, timeOf } from "./kit/read.js";

export interface LogtoHookOptions extends TokenHookOptions {
  /**
   * The signing key of a Logto webhook that sends `PostSignIn`, `PostRegister` and `PostResetPassword` to
   * `/hooks/logto/confirmed`. Default: no such route.
   */
  readonly signingKey?: Secrets | undefined;
}

/** The HTTP SMS connector of Logto. @throws TypeError for an invalid option. */
export function logtoHook(options: LogtoHookOptions): Hook {
  const owner = "logtoHook";
  const { signingKey } = options;
  const fix = "Copy it from the webhook's page in the Logto console.";
  return makeHook(owner, options, {
    defaults: { name: "logto", expiresIn: 600 },
    options: ["token", "header", "signingKey"],
    authenticate: byToken(owner, options),
    read,
    write: asText,
    confirmed:
      signingKey === undefined ? undefined : { authenticate: byBodyHmac(owner, "signingKey", signingKey, "logto-signature-sha-256", fix), read: readEvent },
  });
}

const purposes = {
  SignIn: "sign_in",
  Register: "sign_up",
  ForgotPassword: "reset",
  BindNewIdentifier: "change",
  MfaVerification: "mfa",
  BindMfa: "mfa",
};

function read(body: unknown): Message {
  const payload = pick(body, "payload");
  const type = textOf(pick(body, "type")) ?? "";
  return {
    phone_number: pick(body, "to"),
    code: pick(payload, "code"),
    // An invitation has a link, and no text.
    text: pick(payload, "link"),
    purpose: pick(purposes, type) ?? type,
    locale: pick(payload, "locale") ?? textOf(pick(payload, "uiLocales"))?.split(" ")[0],
    ip: pick(body, "ip"),
  };
}

function readEvent(body: unknown): Confirmation | "nobody" | undefined {
  const event = pick(body, "event");
  if (typeof event !== "string") return undefined;
  const phone_number = textOf(pick(body, "user", "primaryPhone"));
  if (!["PostSignIn", "PostRegister", "PostResetPassword"].includes(event) || phone_number === undefined) return "nobody";
  return { phone_number, at: timeOf(pick(body, "createdAt")) };
}
