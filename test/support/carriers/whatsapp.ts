import { twilioWhatsappSender } from "../../../adapters/sms/twilio.js";
import { vonageWhatsappSender } from "../../../adapters/sms/vonage.js";
import { whatsappSender } from "../../../adapters/sms/whatsapp.js";
import { type Answer, type CarrierScript, json } from "./server.js";
import { twilioCarrier, twilioOptions } from "./twilio.js";
import { vonageCarrier, vonageOptions } from "./vonage.js";

export const whatsappOptions = { token: "whatsapp-token", phoneNumberId: "106540352242922", template: "otp", languages: { fr: "fr", default: "en_US" } };

const problem = (status: number, code: number, message: string) =>
  json(status, { error: { message: `(#${code}) ${message}`, type: "OAuthException", code, fbtrace_id: "AbCdEf" } });

interface Template {
  readonly name?: unknown;
  readonly language?: { readonly code?: unknown };
  readonly components?: readonly { readonly type?: unknown; readonly sub_type?: unknown; readonly index?: unknown; readonly parameters?: unknown }[];
}

/** The code of an authentication template, which must be in both text and button; or the error of the template. */
function codeIn({ name, language, components = [] }: Template): { readonly code: string } | { readonly number: number; readonly words: string } {
  if (name !== "otp" || (language?.code !== "en_US" && language?.code !== "fr"))
    return { number: 132001, words: "Template name does not exist in the translation" };
  const [body, button, ...others] = components;
  const code = (body?.parameters as { text?: string }[] | undefined)?.[0]?.text;
  const alike = JSON.stringify(body?.parameters) === JSON.stringify(button?.parameters);
  if (body?.type !== "body" || typeof code !== "string" || code.length > 15 || others.length > 0)
    return { number: 132000, words: "Number of parameters does not match the expected number of params" };
  if (button?.type !== "button" || button.sub_type !== "url" || button.index !== "0" || !alike)
    return { number: 131009, words: "Button at index 0 of type Url requires a parameter" };
  return { code };
}

/** developers.facebook.com/documentation/business-messaging/whatsapp: messages, templates, error codes. */
export const whatsappCarrier: CarrierScript = {
  name: "whatsapp",
  take({ method, url, headers, body }, index) {
    if (headers["authorization"] !== "Bearer whatsapp-token") return { reply: problem(401, 190, "Error validating access token") };
    if (method !== "POST" || url.pathname !== "/v25.0/106540352242922/messages") return { reply: problem(400, 100, "Unsupported post request") };
    const asked = JSON.parse(body) as Record<string, unknown>;
    const to = asked["to"];
    if (asked["messaging_product"] !== "whatsapp" || asked["type"] !== "template" || typeof to !== "string" || !/^[1-9]\d{6,14}$/.test(to))
      return { reply: problem(400, 100, "Invalid parameter") };
    const found = codeIn(asked["template"] as Template);
    if (!("code" in found)) return { reply: problem(400, found.number, found.words) };
    return {
      message: { to: `+${to}`, text: found.code, reference: asked["biz_opaque_callback_data"] as string | undefined },
      reply: json(200, {
        messaging_product: "whatsapp",
        contacts: [{ input: to, wa_id: to }],
        messages: [{ id: `wamid.HBgLMTQxNTU1NTI2NzEVAgARGBI${String(index).padStart(8, "0")}==`, message_status: "accepted" }],
      }),
    };
  },
  refusal: problem(400, 132001, "Template name does not exist in the translation"),
  throttled: problem(429, 130429, "Rate limit hit"),
  failure: problem(500, 131000, "Something went wrong"),
  sender: (baseUrl) => whatsappSender({ ...whatsappOptions, baseUrl }),
};

export const twilioWhatsappOptions = { ...twilioOptions, contentSid: { fr: `HX${"f".repeat(32)}`, default: `HX${"0".repeat(32)}` } };

/**
 * The same resource as for SMS, with content instead of a text:
 * twilio.com/docs/content/send-templates-created-with-the-content-template-builder.
 */
export const twilioWhatsappCarrier: CarrierScript = {
  ...twilioCarrier,
  name: "twilio-whatsapp",
  async take(request, index): Promise<Answer> {
    const form = new URLSearchParams(request.body);
    const wrong = (code: number, message: string): Answer => ({ reply: json(400, { code, message, status: 400 }) });
    for (const name of ["To", "From"]) if (!/^whatsapp:\+\d{7,15}$/.test(form.get(name) ?? "")) return wrong(63007, "Could not find a Channel with the From");
    if (form.has("Body")) return wrong(21619, "Body and ContentSid exclude each other");
    if (!/^HX[0-9a-f]{32}$/.test(form.get("ContentSid") ?? "")) return wrong(21655, "The ContentSid is invalid");
    const { 1: code, ...others } = JSON.parse(form.get("ContentVariables") ?? "{}") as Record<string, string>;
    if (code === undefined || Object.keys(others).length > 0) return wrong(21656, "The ContentVariables parameter is invalid");
    for (const name of ["To", "From"]) form.set(name, (form.get(name) ?? "").replace("whatsapp:", ""));
    form.set("Body", code);
    return twilioCarrier.take({ ...request, body: form.toString() }, index);
  },
  refusal: json(400, { code: 63024, message: "Invalid message recipient", status: 400 }),
  sender: (baseUrl) => twilioWhatsappSender({ ...twilioWhatsappOptions, baseUrl }),
};

export const vonageWhatsappOptions = { ...vonageOptions, from: "14157386102", template: "otp", languages: "en_US" };

/** developer.vonage.com/en/messages/code-snippets/whatsapp/send-authentication-template. */
export const vonageWhatsappCarrier: CarrierScript = {
  ...vonageCarrier,
  name: "vonage-whatsapp",
  async take(request, index): Promise<Answer> {
    const asked = JSON.parse(request.body) as Record<string, unknown> & { readonly custom?: { readonly type?: unknown; readonly template?: Template } };
    const found = codeIn(asked.custom?.template ?? {});
    const fits = asked["channel"] === "whatsapp" && asked["message_type"] === "custom" && asked.custom?.type === "template" && "code" in found;
    return vonageCarrier.take(
      { ...request, body: JSON.stringify(fits ? { ...asked, channel: "sms", message_type: "text", text: found.code } : { ...asked, channel: undefined }) },
      index,
    );
  },
  sender: (baseUrl) => vonageWhatsappSender({ ...vonageWhatsappOptions, baseUrl }),
};
