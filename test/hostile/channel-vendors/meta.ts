import { createHmac, randomUUID } from "node:crypto";
import { type Hook, jsonOf, type Reply, startVendor, type Vendor } from "./server.js";

export const meta = {
  token: "EAAG-token-of-the-tests",
  phoneNumberId: "106540352242922",
  appSecret: "0123456789abcdef0123456789abcdef",
  verifyToken: "verify-token-of-tests",
};

/** The languages of the template `verification_code`. */
export const templateLanguages = ["en_US", "fr", "pt_BR"];

export interface CloudMessage {
  readonly id: string;
  readonly to: string;
  readonly code: string;
  readonly language: string;
  readonly data: string | undefined;
}

export interface CloudApi extends Vendor {
  readonly taken: CloudMessage[];
  /** The error of the API call, by number without `+`. */
  readonly errors: Map<string, readonly [status: number, code: number]>;
}

/** An error of the Graph API, which repeats what was sent to it. */
export const graphError = (status: number, code: number, details = "Message failed to send."): Reply => ({
  status,
  body: {
    error: {
      message: `(#${code}) ${details}`,
      type: "OAuthException",
      code,
      error_data: { messaging_product: "whatsapp", details },
      fbtrace_id: "Az8or2yhqkZfEZ-_4Qn_Bam",
    },
  },
});

type Component = { type?: string; sub_type?: string; index?: unknown; parameters?: { type?: string; text?: unknown }[] };

/** The code and language that Meta reads in a template, or the error with which it rejects the template. */
export function readTemplate(template: unknown, languages = templateLanguages): { readonly code: string; readonly language: string } | number {
  const { name, language, components } = (template ?? {}) as { name?: unknown; language?: { code?: unknown }; components?: Component[] };
  if (name !== "verification_code") return 132001;
  if (typeof language?.code !== "string" || !languages.includes(language.code)) return 132001;
  if (!Array.isArray(components)) return 132000;
  const [body, button, ...more] = components;
  if (more.length > 0 || body?.type !== "body" || body.parameters?.length !== 1) return 132000;
  // "Button at index 0 of type Url requires a parameter", "must be of type Url".
  if (button?.type !== "button" || button.sub_type !== "url" || String(button.index) !== "0" || button.parameters?.length !== 1) return 132012;
  const texts = [...body.parameters, ...button.parameters];
  if (texts.some(({ type, text }) => type !== "text" || typeof text !== "string" || !/^\d{1,15}$/.test(text))) return 132012;
  return { code: texts[0]!.text === texts[1]!.text ? String(texts[0]!.text) : "two codes", language: language.code };
}

/** The Cloud API: POST /<version>/<phone number id>/messages. */
export async function startCloudApi(host?: string): Promise<CloudApi> {
  const taken: CloudMessage[] = [];
  const errors = new Map<string, readonly [number, number]>();
  const vendor = await startVendor((asked) => {
    if (asked.headers.authorization !== `Bearer ${meta.token}`) return graphError(401, 190, "Error validating access token: Session has expired");
    if (asked.method !== "POST" || !/^\/v\d+\.0\/106540352242922\/messages$/.test(asked.path)) return graphError(400, 100, "Unsupported post request");
    const { messaging_product, recipient_type = "individual", to, type, template, biz_opaque_callback_data, ...rest } = jsonOf(asked) ?? {};
    if (messaging_product !== "whatsapp" || recipient_type !== "individual" || type !== "template" || Object.keys(rest).length > 0)
      return graphError(400, 100, "Invalid parameter");
    if (typeof to !== "string" || !/^\+?[1-9]\d{6,14}$/.test(to)) return graphError(400, 100, "Param to must be a phone number");
    const error = errors.get(to.replace("+", ""));
    if (error !== undefined) return graphError(error[0], error[1], `Failed: ${to}, ${JSON.stringify(template)}`);
    if (biz_opaque_callback_data !== undefined && (typeof biz_opaque_callback_data !== "string" || biz_opaque_callback_data.length > 512))
      return graphError(400, 100, "biz_opaque_callback_data is too long");
    const read = readTemplate(template);
    if (typeof read === "number") return graphError(read === 132001 ? 404 : 400, read);
    const message = { id: `wamid.HBgL${randomUUID()}==`, to: to.replace("+", ""), ...read, data: biz_opaque_callback_data as string | undefined };
    taken.push(message);
    return {
      status: 200,
      body: { messaging_product: "whatsapp", contacts: [{ input: to, wa_id: message.to }], messages: [{ id: message.id, message_status: "accepted" }] },
    };
  }, host);
  return Object.assign(vendor, { taken, errors });
}

/** One status of a message. `failed` has `code`. */
export function cloudStatus(message: CloudMessage, status: string, now: number, { code, data = true }: { code?: number; data?: boolean } = {}): object {
  return {
    id: message.id,
    status,
    timestamp: String(Math.floor(now / 1000)),
    recipient_id: message.to,
    ...(data && message.data !== undefined && { biz_opaque_callback_data: message.data }),
    ...(status === "failed"
      ? {
          errors: [
            {
              code,
              title: "Message undeliverable",
              message: "Message undeliverable",
              error_data: { details: `Message Undeliverable to ${message.to}, code ${message.code}.` },
            },
          ],
        }
      : { pricing: { billable: true, pricing_model: "PMP", category: "authentication", type: "regular" } }),
  };
}

export const change = (value: object, field = "messages"): object => ({
  value: { messaging_product: "whatsapp", metadata: { display_phone_number: "15550783881", phone_number_id: meta.phoneNumberId }, ...value },
  field,
});
export const account = (...entries: readonly (readonly object[])[]): object => ({
  object: "whatsapp_business_account",
  entry: entries.map((changes) => ({ id: "102290129340398", changes })),
});

/** `X-Hub-Signature-256` over the bytes that are sent. */
export const signMeta = (body: string, secret = meta.appSecret): string => `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;

/** Meta escapes slashes and all that is not ASCII in the bodies that it signs and sends. */
const metaJson = (value: object): string =>
  JSON.stringify(value)
    .replaceAll("/", "\\/")
    .replace(/[\u0080-\uffff]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);

export const whatsappRoute = "https://otp.example/receipts/whatsapp";
export function metaPost(payload: object): Hook & { readonly body: string } {
  const body = metaJson(payload);
  return { url: whatsappRoute, headers: { "content-type": "application/json", "x-hub-signature-256": signMeta(body) }, body };
}
/** All statuses in one change. */
export const metaStatuses = (...statuses: readonly object[]): Hook & { readonly body: string } => metaPost(account([change({ statuses })]));
