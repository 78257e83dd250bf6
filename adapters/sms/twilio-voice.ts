import type { ReceiptSource } from "../../src/ports/receipts.js";
import type { SmsSender } from "../../src/ports/sms-sender.js";
import { pick } from "../kit/json.js";
import { onlyOptions } from "../kit/option-error.js";
import { openTwilioAccount } from "../kit/twilio-account.js";
import { keyUrls, readCallUrl } from "./kit/call-urls.js";
import { carrierSender, silentOptions, type Variables } from "./kit/carrier-sender.js";
import { openSecrets, readReport, statusWords } from "./kit/report.js";
import { escapeXml, type Speech, speechFor, spokenCode } from "./kit/spoken.js";
import { readTwilioRequest } from "./kit/twilio-request.js";
import { judgeCall, keyTimeout, longestCall, longestRing, openPressKey, readCallStatus, type VoiceOptions, withinCountries, withReply } from "./kit/voice.js";

export interface TwilioVoiceSenderOptions extends VoiceOptions<string> {
  /** `AC…`. */
  readonly accountSid: string;
  /** The account's primary auth token, as in `twilioVoiceReceipts`. An API key is not enough. */
  readonly authToken: string;
}

export const twilioVoiceVariables: Variables = {
  needs: { accountSid: "TWILIO_ACCOUNT_SID", authToken: "TWILIO_AUTH_TOKEN", from: "TWILIO_VOICE_FROM", countries: "TWILIO_VOICE_COUNTRIES" },
  may: { baseUrl: "TWILIO_BASE_URL" },
};

/**
 * Calls and says the code twice, each digit apart, through Twilio's Voice API ("Calls resource",
 * twilio.com/docs/voice/api/call-resource): `POST /2010-04-01/Accounts/{sid}/Calls.json`, a form, basic authentication,
 * the text as TwiML. With `pressKey`, the code is not part of this request: when a key is pressed, Twilio asks
 * `twilioVoiceReceipts` what to say, at a URL that holds the code encrypted. The receipt URL is sent as
 * `StatusCallback`.
 *
 * @throws TypeError for missing options and for invalid ones.
 */
export function twilioVoiceSender(options: TwilioVoiceSenderOptions): SmsSender {
  const name = "twilioVoiceSender";
  onlyOptions(name, options, { accountSid: true, authToken: true, countries: true, pressKey: true, ...silentOptions });
  const { headers, accountAt, api } = openTwilioAccount(name, options, "Pass the primary auth token of the Twilio console.");
  const pressKey = openPressKey(name, options);
  const sender = carrierSender(name, options, {
    ...api,
    provider: "twiliovoice",
    channel: "voice",
    request(message, { baseUrl, from, extra, ttl }) {
      const speech = speechFor(message);
      const urls = pressKey ? keyUrls(message, options.authToken) : undefined;
      const form = new URLSearchParams({
        Timeout: String(Math.min(ttl, longestRing)),
        TimeLimit: String(longestCall),
        // A mailbox presses no key, so there is nothing to detect.
        ...(!pressKey && { MachineDetection: "Enable" }),
        ...extra,
        To: message.to,
        From: from as string,
        Twiml: urls === undefined ? twice(speech, spokenCode(speech, message.code)) : prompt(speech, urls.pressed),
      });
      const events = urls?.events ?? message.receipt_url;
      if (events !== undefined) form.set("StatusCallback", events);
      return { url: `${accountAt(baseUrl)}/Calls.json`, headers, form };
    },
    accepted: ({ json }) => judgeCall(pick(json, "sid"), pick(json, "status"), words),
  });
  return withinCountries(name, options.countries, sender);
}

/** TwiML that asks for a key, and requests `url` once one is pressed. Without a key, the call ends. */
function prompt(speech: Speech, url: string): string {
  const gather = `<Gather input="dtmf" numDigits="1" finishOnKey="" timeout="${keyTimeout}" method="POST" action="${escapeXml(url)}">`;
  return `<Response>${gather}${say(speech, speech.press)}</Gather></Response>`;
}

/** TwiML that says a text twice. */
function twice(speech: Speech, text: string): string {
  return `<Response><Pause length="1"/>${say(speech, text)}<Pause length="1"/>${say(speech, text)}</Response>`;
}

function say({ twilio: language }: Speech, text: string): string {
  return `<Say language="${language}" voice="Google.${language}-Standard-A">${escapeXml(text)}</Say>`;
}

const words = statusWords({
  submitted: ["queued", "initiated"],
  in_transit: ["ringing", "in-progress"],
  delivered: ["heard"],
  undeliverable: ["unheard", "busy", "no-answer", "failed", "canceled"],
});

/**
 * Reads the status callbacks of Twilio's calls, and tells Twilio what to say once a key is pressed. Signed like those of
 * messages: see `twilioReceipts`.
 * `delivered`: a key was pressed. Without `pressKey`: the call lasted 5 seconds or more, and no machine was detected.
 *
 * @param options.authToken The account's primary auth token, as in `twilioVoiceSender`; a list allows rotation.
 * @throws TypeError if `authToken` is missing, and for an unknown option.
 */
export function twilioVoiceReceipts(options: { readonly authToken: string | readonly string[] }): ReceiptSource {
  const name = "twilioVoiceReceipts";
  onlyOptions(name, options, { authToken: true });
  const tokens = openSecrets(name, "authToken", options.authToken, "Pass the primary auth token of the Twilio console; an API key's secret signs nothing.");
  return {
    provider: "twiliovoice",
    async read(request, now) {
      const form = readTwilioRequest(request, tokens);
      if (!(form instanceof URLSearchParams)) return form;
      const { isKey, asksForKey, message } = readCallUrl(request, tokens, now);
      const messageId = form.get("CallSid") ?? undefined;
      if (isKey) {
        if (message === undefined || !form.get("Digits")) return withReply({ receipts: [] }, "<Response/>", "text/xml");
        const speech = speechFor(message);
        return withReply(readReport({ messageId, status: "heard" }, words), twice(speech, spokenCode(speech, message.code)), "text/xml");
      }
      const status = form.get("CallStatus") ?? undefined;
      const answeredBy = form.get("AnsweredBy") ?? "";
      if (status === "completed" && /^(machine|fax)/.test(answeredBy)) return readReport({ messageId, status: "unheard", error: answeredBy }, words);
      return readCallStatus({ messageId, status, duration: form.get("CallDuration") }, asksForKey, words);
    },
  };
}
