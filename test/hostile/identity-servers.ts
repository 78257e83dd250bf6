import { createHmac, randomUUID } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { authentikHook, authgearHook, casdoorHook, genericHook, kratosHook, logtoHook, oktaHook, supabaseHook, zitadelHook } from "../../src/hooks/index.js";
import type { Answer, Call } from "../http/client.js";

/** A message that an identity server asks us to send. */
export interface Ask {
  /** E.164; a server that drops the `+` does so in `request`. */
  readonly to: string;
  readonly code: string;
  /** Left out by a server that does not know it. */
  readonly purpose?: "sign_in" | "sign_up" | "mfa" | "reset";
  /** The user's language; a server that renders the text itself uses it. */
  readonly locale?: "en" | "fr";
  readonly ip?: string;
  /** The server's own id of the event. */
  readonly event?: string;
}

/** How the server reads the response: for its user, and for its queue. */
export interface Told {
  /** `again`: it stays in the queue; `falls back`: the server sends the code itself, at the operator's cost. */
  readonly result: "sent" | "refused" | "again" | "falls back";
  /** The text that its user sees, if it is ours. */
  readonly words?: string | undefined;
  /** The status that its API returns, if our response decides it. */
  readonly status?: number | undefined;
  /** Requests that it made. */
  readonly tries: number;
}

/** A server's connection to us. `undefined`: the connection broke, or no response came in time. */
export interface Line {
  send(call: Call): Promise<Answer | undefined>;
  /** Waits, on the verifier's clock. */
  pause(ms: number): Promise<void> | void;
  now(): number;
}

export interface Speaker {
  readonly name: string;
  /** Its hook, as the operator configures it. */
  // biome-ignore lint/suspicious/noExplicitAny: options differ by hook, and these are what a test adds to them.
  hook(options?: any): Parameters<typeof import("../../src/hooks/index.js").hooks>[1][number];
  readonly path: string;
  /** One request, as the server's code builds it. */
  request(ask: Ask, at: number): Call;
  /** How its code reads one response, if it does not retry. */
  conclude(answer: Answer | undefined): Omit<Told, "tries">;
  /** The most requests it makes, and the pause before the next; `undefined`: it does not retry after this response. */
  readonly most: number;
  pauseAfter(answer: Answer | undefined): number | undefined;
  /** Its timeout in milliseconds; ten seconds if it waits longer. */
  readonly timeOut: number;
  /** `signed`: over the raw bytes. */
  readonly proof: "signed" | "token";
  /** Whether it passes its own text, in the user's language. */
  readonly ownText?: true;
  /** The purposes that its requests can state. */
  readonly purposes: readonly NonNullable<Ask["purpose"]>[];
  /** Whether it passes the user's language and leaves the text to us. */
  readonly locale?: true;
  /** Its secrets, for tests that tamper with them or look for leaks. */
  readonly secrets: readonly string[];
}

const is2xx = (answer: Answer | undefined): boolean => answer !== undefined && answer.status >= 200 && answer.status < 300;
const json = (answer: Answer): Record<string, unknown> | undefined => {
  try {
    const value: unknown = JSON.parse(answer.text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
};
/** As Go's encoding/json writes it. */
export const goJson = (value: unknown) =>
  JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
/** As Python's json.dumps writes a flat dict. */
const pythonJson = (value: Readonly<Record<string, unknown>>) => {
  const one = (part: unknown) => JSON.stringify(part).replace(/[\u0080-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const entries = Object.entries(value).filter(([, part]) => part !== undefined);
  return `{${entries.map(([name, part]) => `${one(name)}: ${one(part)}`).join(", ")}}`;
};
/** As Jsonnet prints it: sorted keys, three spaces. */
const jsonnet = (value: unknown): string => `${JSON.stringify(inOrder(value), null, 3)}\n`;
function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, part]) => [name, inOrder(part)]),
  );
}
const digits = (number: string) => number.replace("+", "");
const iso = (at: number) => new Date(at).toISOString();
const go = { "user-agent": "Go-http-client/1.1", "accept-encoding": "gzip" };
export const theirText = ({ code, locale }: Ask) => (locale === "fr" ? `Votre code Acme est ${code}.` : `Your Acme code is ${code}.`);
const base = { most: 1, pauseAfter: () => undefined, purposes: [] } as const;

// Supabase Auth: internal/hooks/hookshttp/hookshttp.go, v0hooks.go, hookserrors.go.

export const supabaseSecret = `v1,whsec_${Buffer.from("supabase hook secret, 32 bytes !").toString("base64")}`;
export const supabaseNext = `v1,whsec_${Buffer.from("the next supabase hook secret...").toString("base64")}`;
export const supabaseConfirmToken = "supabase-confirm-5f0d2c9e7b1a4638";

/** The headers of one request, each with its own id and time. */
export function supabaseHeaders(body: string, at: number, secrets: readonly string[] = [supabaseSecret], id: string = randomUUID()) {
  const signatures = secrets.map((secret) => new Webhook(secret.replace("v1,", "")).sign(id, new Date(at), body));
  return {
    "content-type": "application/json",
    "webhook-id": id,
    "webhook-timestamp": String(Math.floor(at / 1000)),
    "webhook-signature": signatures.join(", "),
    "accept-encoding": "identity",
    "user-agent": "Go-http-client/1.1",
  };
}

export const supabaseUser = (phone: string, at: number, more: object = {}) => ({
  id: "5d3c8f0e-6f5b-4d6e-9a57-0b3f6a1d2c4e",
  aud: "authenticated",
  role: "authenticated",
  email: "",
  phone,
  phone_confirmed_at: null,
  confirmation_sent_at: iso(at - 5),
  app_metadata: { provider: "phone", providers: ["phone"] },
  user_metadata: { name: "Zoë <b>& Co</b>" },
  identities: [
    { identity_id: "0c0e2b8e-1a43-4e5c-8c53-2f3a54f9a3a1", id: "5d3c8f0e", user_id: "5d3c8f0e", identity_data: { phone_verified: false }, provider: "phone" },
  ],
  created_at: iso(at - 100),
  updated_at: iso(at),
  is_anonymous: false,
  ...more,
});

export function supabaseBody({ to, code, purpose, locale, ip, event = randomUUID() }: Ask, at: number) {
  const phone = digits(to);
  return {
    metadata: { uuid: event, time: iso(at), name: "send-sms", ...(ip !== undefined && { ip_address: ip }) },
    user: supabaseUser(phone, at, locale === undefined ? {} : { user_metadata: { locale } }),
    sms: { otp: code, ...(purpose === "mfa" && { sms_type: "mfa" }), phone },
  };
}

function supabaseTold(answer: Answer | undefined): Omit<Told, "tries"> {
  if (answer === undefined) return { result: "refused", status: 422 };
  const type = answer.headers["content-type"] ?? "";
  if (![200, 202, 204].includes(answer.status)) return { result: "refused", status: 500 };
  if (answer.status === 204 && type === "") return { result: "sent" };
  const body = json(answer);
  if (type.split(";")[0]?.trim() !== "application/json" || body === undefined) return { result: "refused", status: type === "" ? 400 : 500 };
  const { error } = body as { error?: { http_code?: number; message?: string } };
  return error?.message ? { result: "refused", status: error.http_code || 500, words: error.message } : { result: "sent" };
}

export const supabase: Speaker = {
  name: "Supabase",
  hook: (options = {}) => supabaseHook({ secrets: supabaseSecret, confirmToken: supabaseConfirmToken, ...options }),
  path: "/hooks/supabase",
  request(ask, at) {
    const body = goJson(supabaseBody(ask, at));
    return { method: "POST", path: this.path, headers: supabaseHeaders(body, at), body };
  },
  conclude: supabaseTold,
  most: 3,
  pauseAfter(answer) {
    if (answer === undefined) return 2_000;
    return [429, 503].includes(answer.status) && answer.headers["retry-after"] !== undefined ? 0 : undefined;
  },
  timeOut: 5_000,
  proof: "signed",
  purposes: ["mfa"],
  locale: true,
  secrets: [supabaseSecret, supabaseConfirmToken],
};

/** Before September 2025: no `metadata`, no `sms.phone`. */
export const oldSupabase: Speaker = {
  ...supabase,
  name: "Supabase before metadata",
  request(ask, at) {
    const { user, sms } = supabaseBody(ask, at);
    const { phone: _later, ...rest } = sms;
    const body = goJson({ user, sms: rest });
    return { method: "POST", path: this.path, headers: supabaseHeaders(body, at), body };
  },
};

// Logto: packages/connectors/connector-http-sms/src/index.ts.

export const logtoToken = "8d3f5b1c9e7a42608d3f5b1c9e7a4260";
export const logtoSigningKey = "logto-webhook-signing-key-1c9e7a";
const logtoTypes = { sign_in: "SignIn", sign_up: "Register", mfa: "MfaVerification", reset: "ForgotPassword" } as const;

export const logto: Speaker = {
  ...base,
  name: "Logto",
  hook: (options = {}) => logtoHook({ token: logtoToken, signingKey: logtoSigningKey, ...options }),
  path: "/hooks/logto",
  request({ to, code, purpose, locale, ip }) {
    const payload = { code, ...(locale !== undefined && { locale, uiLocales: locale }) };
    return {
      method: "POST",
      path: this.path,
      headers: { "user-agent": "got (https://github.com/sindresorhus/got)", authorization: `Bearer ${logtoToken}`, "content-type": "application/json" },
      body: JSON.stringify({ to: digits(to), type: logtoTypes[purpose ?? "sign_in"], payload, ...(ip !== undefined && { ip }) }),
    };
  },
  conclude: (answer) => (is2xx(answer) ? { result: "sent" } : { result: "refused", status: 500, words: answer?.text }),
  timeOut: 10_000,
  proof: "token",
  purposes: ["sign_in", "sign_up", "mfa", "reset"],
  locale: true,
  secrets: [logtoToken, logtoSigningKey],
};

/** A webhook as Logto sends it: packages/core/src/libraries/hook/utils.ts. */
export function logtoWebhook(event: string, phone: string | null, at: number, key = logtoSigningKey): Call {
  const user = { id: "x1v9k2", username: null, primaryEmail: null, primaryPhone: phone, name: null, lastSignInAt: at, createdAt: at - 1000, updatedAt: at };
  const body = JSON.stringify({
    hookId: "h1",
    event,
    createdAt: iso(at),
    userAgent: "Mozilla/5.0",
    userId: "x1v9k2",
    sessionId: "s1",
    userIp: "203.0.113.7",
    user,
  });
  const signature = createHmac("sha256", key).update(body).digest("hex");
  const headers = { "user-agent": "Logto (https://logto.io/)", "content-type": "application/json", "logto-signature-sha-256": signature };
  return { method: "POST", path: "/hooks/logto/confirmed", headers, body };
}

// Ory Kratos: courier/http_channel.go, courier/courier_dispatcher.go, and the Jsonnet of docs/behind/kratos.md.

export const kratosToken = "kratos-2b7e151628aed2a6abf71588";
const kratosTypes = {
  sign_in: ["login_code_valid", "login_code"],
  sign_up: ["registration_code_valid", "registration_code"],
  mfa: ["login_code_valid", "login_code"],
  reset: ["recovery_code_valid", "verification_code"],
} as const;

export const kratos: Speaker = {
  name: "Kratos",
  hook: (options = {}) => kratosHook({ token: kratosToken, ...options }),
  path: "/hooks/kratos",
  request(ask) {
    const [type, field] = kratosTypes[ask.purpose ?? "sign_in"];
    const headers = {
      "User-Agent": ["Mozilla/5.0"],
      "Accept-Language": [ask.locale === "fr" ? "fr-FR,fr;q=0.9" : "en-GB,en;q=0.8"],
      ...(ask.ip !== undefined && { "True-Client-Ip": [ask.ip] }),
    };
    const data = {
      to: ask.to,
      [field]: ask.code,
      identity: { id: "9f425a8d-7efc-4768-8f23-7647a74fdf13", schema_id: "default", state: "active", traits: { phone: ask.to } },
      request_url: "https://acme.example/self-service/login/browser",
      request_url_domain: "acme.example",
      transient_payload: {},
      // `selfservice.methods.code.config.lifespan` is an hour by default.
      expires_in_minutes: 60,
    };
    return {
      method: "POST",
      path: this.path,
      headers: { ...go, "content-type": "application/json", authorization: `Bearer ${kratosToken}` },
      body: jsonnet({ to: ask.to, text: theirText(ask), type, data, headers }),
    };
  },
  conclude: (answer) => ({ result: is2xx(answer) ? "sent" : "again" }),
  most: 6,
  pauseAfter: (answer) => (is2xx(answer) ? undefined : 60_000),
  timeOut: 10_000,
  proof: "token",
  ownText: true,
  purposes: ["sign_in", "sign_up", "reset"],
  secrets: [kratosToken],
};

// ZITADEL: pkg/actions/signing.go, internal/notification/channels/webhook/channel.go.

export const zitadelKey = "zitadel-signing-key-Jk3bQ9";
export const zitadelNext = "zitadel-signing-key-next-W5";

export function zitadelSignature(body: string, at: number, keys: readonly string[] = [zitadelKey]): string {
  const seconds = Math.floor(at / 1000);
  return [`t=${seconds}`, ...keys.map((key) => `v1=${createHmac("sha256", key).update(`${seconds}.${body}`).digest("hex")}`)].join(",");
}

export function zitadelBody(ask: Ask, more: object = {}) {
  return {
    contextInfo: { eventType: "session.otp.sms.challenged", provider: { id: "285188", description: "phoneproof" }, recipientPhoneNumber: ask.to },
    templateData: {
      title: "ZITADEL",
      preHeader: "",
      subject: "",
      greeting: "",
      text: `${theirText(ask)}\n\n@acme.example #${ask.code}`,
      url: "",
      buttonText: "",
      primaryColor: "#5469d4",
      fontColor: "#000000",
    },
    args: { verifiedPhone: "", lastPhone: ask.to, oTP: ask.code, loginName: "zoe@acme.example", preferredLoginName: "zoe@acme.example" },
    ...more,
  };
}

export const zitadel: Speaker = {
  name: "ZITADEL",
  hook: (options = {}) => zitadelHook({ signingKey: zitadelKey, ...options }),
  path: "/hooks/zitadel",
  request(ask, at) {
    const body = goJson(zitadelBody(ask));
    const headers = { ...go, "content-type": "application/json", "zitadel-signature": zitadelSignature(body, at) };
    return { method: "POST", path: this.path, headers, body };
  },
  conclude: (answer) => ({ result: is2xx(answer) ? "sent" : "again" }),
  most: 10,
  pauseAfter: (answer) => (is2xx(answer) ? undefined : 30_000),
  timeOut: 5_000,
  proof: "signed",
  ownText: true,
  purposes: [],
  secrets: [zitadelKey],
};

// Okta: the telephony inline hook's reference page.

export const oktaToken = "okta-00a1b2c3d4e5f60718293a4b";

export function oktaBody({ to, code, purpose, locale, ip, event = randomUUID() }: Ask, at: number, more: object = {}) {
  const types = { sign_in: "mfa-verification", sign_up: "pre-enrollment", mfa: "mfa-verification", reset: "password-reset" };
  return {
    eventId: event,
    eventTime: iso(at),
    eventType: "com.okta.telephony.provider",
    eventTypeVersion: "1.0",
    contentType: "application/json",
    cloudEventVersion: "0.1",
    source: "https://acme.okta.example/api/v1/inlineHooks/calz6lVQA77AwFeEe0g3",
    requestType: `com.okta.user.telephony.${types[purpose ?? "mfa"]}`,
    data: {
      context: { request: { id: "reqRgSk8IBBRhuo0YdlEDTmUw", method: "POST", url: { value: "/api/internal/v1/x" }, ipAddress: ip ?? "203.0.113.7" } },
      userProfile: { firstName: "Zoë", lastName: "User", login: "zoe@acme.example", userId: "00uyxxSknGtK8022w0g3" },
      messageProfile: {
        msgTemplate: `Your code is ${code}`,
        phoneNumber: to,
        otpExpires: iso(at + 300_000),
        deliveryChannel: "SMS",
        otpCode: code,
        locale: locale === "fr" ? "FR-FR" : "EN-US",
        ...more,
      },
    },
  };
}

export const okta: Speaker = {
  name: "Okta",
  hook: (options = {}) => oktaHook({ token: oktaToken, ...options }),
  path: "/hooks/okta",
  request(ask, at) {
    const headers = { "content-type": "application/json", accept: "application/json", authorization: `Bearer ${oktaToken}` };
    return { method: "POST", path: this.path, headers, body: JSON.stringify(oktaBody(ask, at)) };
  },
  conclude(answer) {
    if (answer?.status !== 200) return { result: "falls back" };
    const body = json(answer) as {
      error?: { errorSummary?: string };
      commands?: { type?: string; value?: { status?: string; provider?: string; transactionId?: string }[] }[];
    };
    if (body?.error !== undefined) return { result: "refused", words: body.error.errorSummary };
    const command = body?.commands?.[0];
    const { status, provider, transactionId } = command?.value?.[0] ?? {};
    const whole = command?.type === "com.okta.telephony.action" && typeof provider === "string" && typeof transactionId === "string";
    return { result: whole && (status === "SUCCESSFUL" || status === "PENDING") ? "sent" : "falls back" };
  },
  most: 2,
  pauseAfter: (answer) => (answer === undefined ? 0 : undefined),
  timeOut: 3_000,
  proof: "token",
  purposes: ["mfa", "reset"],
  secrets: [oktaToken],
};

// Authentik: authentik/stages/authenticator_sms/models.py.

export const authentikToken = "authentik-77c1f0a2b94e4d3f8a56";

export const authentik: Speaker = {
  ...base,
  name: "Authentik",
  hook: (options = {}) => authentikHook({ token: authentikToken, ...options }),
  path: "/hooks/authentik",
  request(ask) {
    const payload = { From: "Acme", To: ask.to, Body: ask.code, Message: theirText(ask), ip: ask.ip, ...(ask.ip !== undefined && { user_id: "7" }) };
    const headers = { "user-agent": "authentik@2026.10.1", accept: "*/*", "content-type": "application/json", authorization: `Bearer ${authentikToken}` };
    return { method: "POST", path: this.path, headers, body: pythonJson(payload) };
  },
  // `raise_for_status`, then `ValidationError(response.text)`.
  conclude: (answer) => (answer === undefined || answer.status >= 400 ? { result: "refused", words: answer?.text } : { result: "sent" }),
  timeOut: 10_000,
  proof: "token",
  ownText: true,
  secrets: [authentikToken],
};

// Authgear: docs/specs/sms_gateway.md, pkg/lib/infra/sms/custom/client.go, pkg/lib/hook/http.go.

export const authgearKey = "authgear-webhook-secret-key-5a6b";
const authgearTemplates = {
  sign_in: "authenticate_primary_oob_sms.txt",
  sign_up: "setup_primary_oob_sms.txt",
  mfa: "authenticate_secondary_oob_sms.txt",
  reset: "forgot_password_oob_sms.txt",
};
const authgearKinds = ["invalid_phone_number", "rate_limited", "unsupported_request", "authentication_failed", "delivery_rejected", "timeout"];
export const hexHmac = (body: string, key: string) => createHmac("sha256", key).update(body).digest("hex");

export const authgear: Speaker = {
  ...base,
  name: "Authgear",
  hook: (options = {}) => authgearHook({ signingKey: authgearKey, ...options }),
  path: "/hooks/authgear",
  request(ask) {
    const variables = { app_name: "Acme", code: ask.code, client_id: "c1", host: "acme.example", phone: ask.to, has_password: false, state: "", x_step: "" };
    const language_tag = ask.locale ?? "en";
    const body = goJson({
      to: ask.to,
      body: theirText(ask),
      app_id: "acme",
      template_name: authgearTemplates[ask.purpose ?? "sign_in"],
      language_tag,
      template_variables: variables,
    });
    const headers = { ...go, "content-type": "application/json", "x-authgear-body-signature": hexHmac(body, authgearKey) };
    return { method: "POST", path: this.path, headers, body };
  },
  conclude(answer) {
    const code = answer && json(answer)?.["code"];
    if (code === undefined) return { result: is2xx(answer) ? "sent" : "refused" };
    if (code === "ok") return { result: "sent" };
    return { result: "refused", words: authgearKinds.includes(String(code)) ? String(code) : undefined };
  },
  timeOut: 10_000,
  proof: "signed",
  ownText: true,
  purposes: ["sign_in", "reset"],
  secrets: [authgearKey],
};

// Casdoor: object/sms_custom_http.go, template `%s`, parameter `code`. The form is its default.

export const casdoorToken = "casdoor-c3d2e1f0a9b8";

const casdoorWays = {
  form: (ask: Ask) => ["application/x-www-form-urlencoded", new URLSearchParams({ code: ask.code, phoneNumber: ask.to }).toString()],
  JSON: (ask: Ask) => ["application/json", goJson({ code: ask.code, phoneNumber: ask.to })],
} as const;

const casdoorBy = (way: keyof typeof casdoorWays, inUrl = false): Speaker => ({
  ...base,
  name: `Casdoor, ${way}${inUrl ? ", the token in the URL" : ""}`,
  hook: (options = {}) => casdoorHook({ token: casdoorToken, ...options }),
  path: `/hooks/casdoor${inUrl ? `/${casdoorToken}` : ""}`,
  request(ask) {
    const [type, body] = casdoorWays[way](ask) as [string, string];
    return { method: "POST", path: this.path, headers: { ...go, "content-type": type, ...(!inUrl && { authorization: `Bearer ${casdoorToken}` }) }, body };
  },
  conclude: (answer) => ({ result: answer?.status === 200 ? "sent" : "refused" }),
  timeOut: 10_000,
  proof: "token",
  secrets: [casdoorToken],
});

// Servers on the generic route.

export const genericToken = "generic-0011223344556677";

const generic = (name: string, request: (ask: Ask) => Pick<Call, "headers" | "body">, more: Partial<Speaker> = {}): Speaker => ({
  ...base,
  name,
  hook: (options = {}) => genericHook({ token: genericToken, ...options }),
  path: "/hooks/generic",
  request(ask) {
    return { method: "POST", path: this.path, ...request(ask) };
  },
  conclude: (answer) => ({ result: is2xx(answer) ? "sent" : "refused" }),
  timeOut: 10_000,
  proof: "token",
  secrets: [genericToken],
  ...more,
});

const bearer = { "content-type": "application/json", authorization: `Bearer ${genericToken}` };

/** The request to the generic route as the docs page shows it. */
export const plain = generic("the generic route", ({ to, code, purpose, locale, ip, event }) => ({
  headers: bearer,
  body: JSON.stringify({ to, code, type: purpose, locale, ip, id: event }),
}));

export const fusionauth = generic("FusionAuth", (ask) => ({
  headers: { ...bearer, "user-agent": "FusionAuth" },
  body: JSON.stringify({ code: ask.code, phoneNumber: ask.to, textMessage: theirText(ask), type: "SMS", userId: "2b1e0e0c-5d3b-4c88-9ed7-5cd1a1e2a1a3" }),
}));

/** keycloak-mfa-plugins, ApiSmsService.java: `String.format` of the page's template. Java's client asks for HTTP/2. */
export const keycloak = generic(
  "Keycloak",
  (ask) => ({
    headers: {
      ...bearer,
      connection: "Upgrade, HTTP2-Settings",
      upgrade: "h2c",
      "http2-settings": "AAEAAEAAAAIAAAAAAAMAAAAAAAQBAAAAAAUAAEAAAAYABgAA",
      "user-agent": "Java-http-client/21",
    },
    body: `{"id":"${randomUUID()}","to":"${ask.to}","text":"${theirText(ask)}"}`,
  }),
  // It logs errors and swallows them.
  { conclude: () => ({ result: "sent" }), ownText: true },
);

export const cas = generic(
  "Apereo CAS [documentation only]",
  (ask) => ({
    headers: { "content-type": "application/json", authorization: `Basic ${Buffer.from(`cas:${genericToken}`).toString("base64")}` },
    body: JSON.stringify({ clientIpAddress: ask.ip ?? "203.0.113.7", serverIpAddress: "10.0.0.2", from: "Acme", to: ask.to, text: theirText(ask) }),
  }),
  { ownText: true },
);

export const casdoor = casdoorBy("form");

export const speakers: readonly Speaker[] = [
  supabase,
  oldSupabase,
  logto,
  kratos,
  zitadel,
  okta,
  authentik,
  authgear,
  casdoor,
  casdoorBy("JSON"),
  casdoorBy("form", true),
  plain,
  fusionauth,
  keycloak,
  cas,
];

/** One of each hook. */
export const oneOfEach: readonly Speaker[] = [supabase, logto, kratos, zitadel, okta, authentik, authgear, casdoor, plain];

/** Sends the request as the server does, retries included. */
export async function speak(speaker: Speaker, line: Line, ask: Ask): Promise<Told> {
  const one = { event: randomUUID(), ...ask };
  const first = line.now();
  for (let tries = 1; ; tries++) {
    const answer = await line.send(speaker.request(one, line.now()));
    const pause = speaker.pauseAfter(answer);
    if (pause === undefined || tries >= speaker.most) return { ...speaker.conclude(answer), tries };
    await line.pause(pause);
    // ZITADEL's MaxTtl; the others end sooner.
    if (line.now() - first > 300_000) return { ...speaker.conclude(answer), tries };
  }
}
