import { generateKeyPairSync } from "node:crypto";
import { twilioVoiceReceipts, twilioVoiceSender } from "../../../adapters/sms/twilio-voice.js";
import { vonageVoiceReceipts, vonageVoiceSender } from "../../../adapters/sms/vonage-voice.js";
import type { ReceiptReading } from "../../../src/ports/receipts.js";
import { signTwilio, signVonage } from "./receipts.js";
import { type CarrierScript, json } from "./server.js";
import { twilioOptions } from "./twilio.js";

const { privateKey } = generateKeyPairSync("rsa", {
  modulusLength: 2048,
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
  publicKeyEncoding: { type: "spki", format: "pem" },
});

/** The digits of a text that are spoken one by one, as one string. */
export const digitsIn = (text: string): string => (/(?:\d, )+\d/.exec(text)?.[0] ?? "").replaceAll(", ", "");

/** The texts of `<Say>` in TwiML. */
export const saidIn = (twiml: string): string[] =>
  [...twiml.matchAll(/<Say language="[\w-]+" voice="Google\.[\w-]+-Standard-A">([^<]*)<\/Say>/g)].map(([, text = ""]) => text);

const unescaped = (text: string) => text.replaceAll("&quot;", '"').replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");

/** The URL that is called when a key is pressed. */
export const actionIn = (twiml: string): string | undefined => {
  const action = /<Gather [^>]*action="([^"]*)"/.exec(twiml)?.[1];
  return action === undefined ? undefined : unescaped(action);
};

const reply = (reading: ReceiptReading): string => ("reply" in reading ? (reading.reply?.body ?? "") : "");

export const twilioVoiceOptions = {
  accountSid: twilioOptions.accountSid,
  authToken: twilioOptions.authToken,
  from: "+15005550006",
  countries: ["US", "FR"],
} as const;

/** Presses a key on the phone; returns the TwiML with which Twilio continues. */
export async function pressTwilio(url: string, digits = "5", now = Date.now()): Promise<ReceiptReading> {
  const source = twilioVoiceReceipts({ authToken: "twilio-auth-token" });
  return source.read(await signTwilio({ CallSid: "CA1", CallStatus: "in-progress", Digits: digits, msg: "Gather End" }, { at: now, url }), now);
}

/** twilio.com/docs/voice/api/call-resource; every call is answered, and a key is pressed when requested. */
export const twilioVoiceCarrier: CarrierScript = {
  name: "twilio-voice",
  async take({ method, url, headers, body }, index) {
    const account = twilioVoiceOptions.accountSid;
    if (headers["authorization"] !== `Basic ${Buffer.from(`${account}:twilio-auth-token`).toString("base64")}`)
      return { reply: json(401, { code: 20003, message: "Authenticate", status: 401 }) };
    if (method !== "POST" || url.pathname !== `/2010-04-01/Accounts/${account}/Calls.json`) return { reply: json(404, { code: 20404, status: 404 }) };
    const form = new URLSearchParams(body);
    const twiml = form.get("Twiml") ?? "";
    const to = form.get("To") ?? "";
    if (!/^\+\d{7,15}$/.test(to)) return { reply: json(400, { code: 21217, message: `Phone number ${to} does not appear to be valid`, status: 400 }) };
    if (!form.get("From")) return { reply: json(400, { code: 21213, message: "No 'From' number is specified", status: 400 }) };
    if (twiml === "" || twiml.length > 4000 || form.has("Url")) return { reply: json(400, { code: 21205, message: "Url is not a valid URL", status: 400 }) };
    const action = actionIn(twiml);
    const texts = saidIn(action === undefined ? twiml : reply(await pressTwilio(action)));
    return {
      message: {
        to,
        text: texts.length === 2 && texts[0] === texts[1] ? digitsIn(texts[0] ?? "") : "",
        from: form.get("From") ?? "",
        receiptUrl: form.get("StatusCallback") ?? undefined,
      },
      reply: json(201, { sid: `CA${String(index).padStart(32, "0")}`, status: "queued", to, from: form.get("From"), direction: "outbound-api" }),
    };
  },
  refusal: json(400, { code: 21215, message: "Account not authorized to call +14155552671", status: 400 }),
  throttled: json(429, { code: 20429, message: "Too Many Requests", status: 429 }),
  failure: json(500, { code: 20500, message: "An internal server error has occurred", status: 500 }),
  sender: (baseUrl) => twilioVoiceSender({ ...twilioVoiceOptions, baseUrl }),
};

export const vonageVoiceOptions = {
  applicationId: "app-1",
  privateKey,
  signatureSecret: "vonage-signature-secret",
  from: "14155550100",
  countries: ["US", "FR"],
} as const;

interface Action {
  readonly action: string;
  readonly text?: string;
  readonly language?: string;
  readonly loop?: number;
  readonly eventUrl?: readonly string[];
}

/** Presses a key on the phone, or none if `digits` is empty; returns the NCCO with which Vonage continues. */
export async function pressVonage(url: string, digits = "5", now = Date.now()): Promise<ReceiptReading> {
  const source = vonageVoiceReceipts({ signatureSecret: "vonage-signature-secret" });
  const event = { uuid: "uuid-1", from: "14155550100", to: "14155552671", timestamp: "2027-01-01T11:59:59.000Z", dtmf: { digits, timed_out: digits === "" } };
  const signed = await signVonage(event, { at: now });
  return source.read({ ...signed, url }, now);
}

/** developer.vonage.com/en/api/voice; every call is answered, and a key is pressed when requested. */
export const vonageVoiceCarrier: CarrierScript = {
  name: "vonage-voice",
  async take({ method, url, headers, body }, index) {
    if (!headers["authorization"]?.startsWith("Bearer ey")) return { reply: json(401, { type: "https://developer.nexmo.com/api-errors#unauthorized" }) };
    if (method !== "POST" || url.pathname !== "/v1/calls") return { reply: json(404, { type: "https://developer.nexmo.com/api-errors#not-found" }) };
    const asked = JSON.parse(body) as {
      to?: { type?: string; number?: string }[];
      from?: { type?: string; number?: string };
      ncco?: Action[];
      event_url?: string[];
    };
    const to = asked.to?.[0];
    if (to?.type !== "phone" || !/^[1-9]\d{6,14}$/.test(to.number ?? "") || asked.from?.type !== "phone" || !Array.isArray(asked.ncco))
      return { reply: json(400, { type: "https://developer.nexmo.com/api-errors#bad-request", title: "Bad Request" }) };
    const pressed = asked.ncco.find(({ action }) => action === "input")?.eventUrl?.[0];
    const said = pressed === undefined ? asked.ncco : (JSON.parse(reply(await pressVonage(pressed))) as Action[]);
    const talks = said.filter(({ action, loop }) => action === "talk" && loop === 2);
    return {
      message: { to: `+${to.number}`, text: digitsIn(talks[0]?.text ?? ""), from: asked.from.number, receiptUrl: asked.event_url?.[0] },
      reply: json(201, { uuid: `63f61863-4a51-4f6b-86e1-${String(index).padStart(12, "0")}`, status: "started", direction: "outbound" }),
    };
  },
  refusal: json(403, { type: "https://developer.nexmo.com/api-errors#forbidden", title: "Forbidden" }),
  throttled: json(429, { type: "https://developer.nexmo.com/api-errors#throttled", title: "Rate Limit Hit" }),
  failure: json(500, { type: "https://developer.nexmo.com/api-errors#internal-error", title: "Internal Error" }),
  sender: (baseUrl) => vonageVoiceSender({ ...vonageVoiceOptions, baseUrl }),
};
