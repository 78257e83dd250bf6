import type { ReceiptSource } from "../../src/ports/receipts.js";
import type { SmsSender } from "../../src/ports/sms-sender.js";
import { pick } from "../kit/json.js";
import { onlyOptions, requireText } from "../kit/option-error.js";
import { digits } from "../kit/spelling.js";
import { applicationToken } from "../kit/vonage-token.js";
import { keyUrls, readCallUrl } from "./kit/call-urls.js";
import { carrierSender, silentOptions, type Variables } from "./kit/carrier-sender.js";
import { bodyJson, isoTime, malformed, readReport, statusWords } from "./kit/report.js";
import { type Speech, speechFor, spokenCode } from "./kit/spoken.js";
import { judgeCall, keyTimeout, longestCall, longestRing, openPressKey, readCallStatus, type VoiceOptions, withinCountries, withReply } from "./kit/voice.js";
import { openWebhooks, refuseVonage, type VonageWebhookOptions } from "./kit/vonage-webhook.js";

export type { VonageWebhookOptions };

export interface VonageVoiceSenderOptions extends VoiceOptions {
  readonly applicationId: string;
  /** PEM. */
  readonly privateKey: string;
  /** The account's signature secret, as in `vonageVoiceReceipts`. Required with `pressKey`. */
  readonly signatureSecret?: string;
}

export const vonageVoiceVariables: Variables = {
  needs: {
    applicationId: "VONAGE_APPLICATION_ID",
    privateKey: "VONAGE_PRIVATE_KEY",
    from: "VONAGE_VOICE_FROM",
    countries: "VONAGE_VOICE_COUNTRIES",
  },
  may: { baseUrl: "VONAGE_BASE_URL" },
};

/**
 * Calls and says the code twice, each digit apart, through Vonage's Voice API ("Create an outbound call",
 * developer.vonage.com/en/api/voice; "NCCO reference", developer.vonage.com/en/voice/voice-api/ncco-reference): `POST
 * /v1/calls`, JSON, a token of an application. With `pressKey`, the code is not part of this request: when a key is
 * pressed, Vonage asks `vonageVoiceReceipts` what to say, at a URL that holds the code encrypted. Without it, the call
 * ends if Vonage detects a machine. The receipt URL is sent as `event_url`.
 *
 * @throws TypeError for missing options and for invalid ones.
 */
export function vonageVoiceSender(options: VonageVoiceSenderOptions): SmsSender {
  const name = "vonageVoiceSender";
  onlyOptions(name, options, { applicationId: true, privateKey: true, signatureSecret: true, countries: true, pressKey: true, ...silentOptions });
  const authorization = applicationToken(name, options.applicationId, options.privateKey);
  const pressKey = openPressKey(name, options);
  const secret = pressKey
    ? requireText(name, "signatureSecret", options.signatureSecret, "Pass the signature secret of the Vonage dashboard (API settings), or pressKey: false.")
    : "";
  const sender = carrierSender(name, options, {
    provider: "vonagevoice",
    channel: "voice",
    url: "https://api.nexmo.com",
    request(message, { baseUrl, from, extra, ttl }) {
      const speech = speechFor(message);
      const urls = pressKey ? keyUrls(message, secret) : undefined;
      const events = urls?.events ?? message.receipt_url;
      return {
        url: `${baseUrl}/v1/calls`,
        headers: { authorization: authorization() },
        json: {
          ringing_timer: Math.min(ttl, longestRing),
          length_timer: longestCall,
          // A mailbox presses no key, so there is nothing to detect.
          ...(!pressKey && { machine_detection: "hangup" }),
          ...extra,
          to: [{ type: "phone", number: digits(message.to) }],
          from: { type: "phone", number: digits(from as string) },
          ncco: urls === undefined ? twice(speech, spokenCode(speech, message.code)) : prompt(speech, urls.pressed),
          ...(events !== undefined && { event_url: [events], event_method: "POST" }),
        },
      };
    },
    accepted: ({ json }) => judgeCall(pick(json, "uuid"), pick(json, "status"), words),
    errorCode: ({ json }) => String(pick(json, "type") ?? "").split("#")[1],
  });
  return withinCountries(name, options.countries, sender);
}

/** An NCCO that asks for a key, and requests `url` once one is pressed or none is. */
function prompt({ vonage: language, press }: Speech, url: string): readonly object[] {
  return [
    { action: "talk", text: press, language, bargeIn: true },
    { action: "input", type: ["dtmf"], dtmf: { maxDigits: 1, timeOut: keyTimeout }, eventUrl: [url], eventMethod: "POST" },
  ];
}

/** An NCCO that says a text twice. */
function twice({ vonage: language }: Speech, text: string): readonly object[] {
  return [{ action: "talk", text, language, loop: 2 }];
}

const words = statusWords({
  submitted: ["started"],
  in_transit: ["ringing", "answered"],
  delivered: ["heard"],
  undeliverable: ["unheard", "machine", "busy", "cancelled", "failed", "rejected", "timeout", "unanswered"],
});

/**
 * Reads the event webhooks of Vonage's calls ("Voice API webhooks reference",
 * developer.vonage.com/en/voice/voice-api/webhook-reference), and tells Vonage what to say once a key is pressed. Signed
 * like those of messages: see `vonageReceipts`.
 * `delivered`: a key was pressed. Without `pressKey`: the call lasted 5 seconds or more, and no machine was detected.
 *
 * @throws TypeError if `signatureSecret` is missing, and for an unknown option.
 */
export function vonageVoiceReceipts(options: VonageWebhookOptions): ReceiptSource {
  const name = "vonageVoiceReceipts";
  onlyOptions(name, options, { signatureSecret: true, tolerance: true });
  const webhooks = openWebhooks(name, options);
  return {
    provider: "vonagevoice",
    async read(request, now) {
      const refused = refuseVonage(request, now, webhooks);
      if (refused !== undefined) return refused;
      if (!URL.canParse(request.url)) return malformed("the request has no absolute URL");
      const { isKey, asksForKey, message } = readCallUrl(request, webhooks.secrets, now);
      const body = bodyJson(request);
      // An event about a machine names its call otherwise than the rest.
      const call = { messageId: pick(body, "uuid") ?? pick(body, "call_uuid"), at: isoTime(pick(body, "timestamp")) };
      if (isKey) {
        const keys = pick(body, "dtmf", "digits");
        if (message === undefined || typeof keys !== "string" || keys === "") return withReply({ receipts: [] }, "[]", "application/json");
        const speech = speechFor(message);
        const ncco = JSON.stringify(twice(speech, spokenCode(speech, message.code)));
        return withReply(readReport({ ...call, status: "heard" }, words), ncco, "application/json");
      }
      const status = pick(body, "status");
      // Events of another kind have no status; those of errors name only the conversation.
      if (status === undefined && (call.messageId ?? pick(body, "conversation_uuid")) !== undefined) return { receipts: [] };
      return readCallStatus({ ...call, status, duration: pick(body, "duration") }, asksForKey, words);
    },
  };
}
