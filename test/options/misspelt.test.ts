import { metrics, trace } from "@opentelemetry/api";
import { describe, expect, it } from "vitest";
import { hcaptchaChallenge } from "../../adapters/challenge/hcaptcha.js";
import { recaptchaChallenge } from "../../adapters/challenge/recaptcha.js";
import { turnstileChallenge } from "../../adapters/challenge/turnstile.js";
import { type LookupChainOptions, lookupChain } from "../../adapters/lookup/chain.js";
import { httpLookup } from "../../adapters/lookup/http.js";
import { telnyxLookup } from "../../adapters/lookup/telnyx.js";
import { twilioLookup } from "../../adapters/lookup/twilio.js";
import { vonageLookup } from "../../adapters/lookup/vonage.js";
import { openTelemetry } from "../../adapters/otel/index.js";
import { africasTalkingReceipts, africasTalkingSender } from "../../adapters/sms/africastalking.js";
import { type AwsClientOptions, type AwsSignedOptions, awsReceipts, awsSender } from "../../adapters/sms/aws.js";
import { consoleSender } from "../../adapters/sms/console.js";
import { httpReceipts, httpSender } from "../../adapters/sms/http.js";
import { inboxSender } from "../../adapters/sms/inbox.js";
import { infobipSender } from "../../adapters/sms/infobip.js";
import { acceptedAs, carrierSender, framedSender } from "../../adapters/sms/kit/index.js";
import { messageBirdReceipts, messageBirdSender } from "../../adapters/sms/messagebird.js";
import { plivoReceipts, plivoSender } from "../../adapters/sms/plivo.js";
import { sinchReceipts, sinchSender } from "../../adapters/sms/sinch.js";
import { smppSender } from "../../adapters/sms/smpp/index.js";
import { telegramReceipts, telegramSender } from "../../adapters/sms/telegram.js";
import { telnyxReceipts, telnyxSender } from "../../adapters/sms/telnyx.js";
import { twilioReceipts, twilioSender, twilioWhatsappSender } from "../../adapters/sms/twilio.js";
import { twilioVoiceReceipts, twilioVoiceSender } from "../../adapters/sms/twilio-voice.js";
import { vonageReceipts, vonageSender, vonageWhatsappSender } from "../../adapters/sms/vonage.js";
import { vonageVoiceReceipts, vonageVoiceSender } from "../../adapters/sms/vonage-voice.js";
import { whatsappReceipts, whatsappSender } from "../../adapters/sms/whatsapp.js";
import { telnyxPublicKey, topicArn } from "../support/carriers/receipts.js";
import { vonageVoiceOptions } from "../support/carriers/voice.js";
import { vonageLookupOptions } from "../support/lookups/vonage.js";
import { logger } from "../support/verifier.js";

/** Each option by name; `undefined` for one that excludes another, or that the carrier does not support. */
type All<Options> = { readonly [name in keyof Options]-?: Options[name] | undefined };

interface Taker {
  readonly name: string;
  readonly misspelt: string;
  readonly known: readonly string[];
  make(options?: unknown): unknown;
  /** With all options, and `more`. */
  makeOf(more: object): unknown;
}

/** A factory with options, and every option of its type. */
function taker<Options>(name: string, make: (options: Options) => unknown, all: All<Options>, misspelt: string): Taker {
  return {
    name,
    misspelt,
    known: Object.keys(all),
    make: (options) => make(options as Options),
    makeOf: (more) => make({ ...all, ...more } as Options),
  };
}

const fetch = async () => ({ status: 200, body: null });
const overHttp = { fetch, timeout: 3 };
const transport = { ...overHttp, baseUrl: "https://carrier.example" };
const common = { ...transport, from: "ACME", extra: {}, receipts: false, conversions: undefined };
const { conversions: _, ...silent } = common;
const listens = { ...common, conversions: true };
const lookup = { ...transport, price: 0.01 };
const siteverify = { secret: "s", hostname: "example.com", fetch: undefined, baseUrl: "https://captcha.example", timeout: 1 };
const clock = { now: Date.now, after: () => () => {} };
const secret = "0123456789abcdef";
const credentials = { accessKeyId: "a", secretAccessKey: "s" };
const source = { lookup: async () => undefined };
class Command {}

const takers: readonly Taker[] = [
  taker("africasTalkingSender", africasTalkingSender, { ...common, username: "sandbox", apiKey: "k" }, "apikey"),
  taker<AwsSignedOptions>("awsSender", awsSender, { ...listens, region: "eu-west-1", credentials, configurationSet: "otp" }, "configurationset"),
  taker<AwsClientOptions>(
    "awsSender",
    awsSender,
    { client: { send: async () => ({}) }, command: Command, configurationSet: "otp", from: "ACME", extra: {}, receipts: true },
    "region",
  ),
  taker("consoleSender", consoleSender, { channel: "voice", write: () => {}, allowInProduction: true }, "allowInProd"),
  taker(
    "httpSender",
    httpSender,
    {
      ...overHttp,
      provider: "kannel",
      channel: "viber",
      url: "https://sms.example/send",
      method: "POST",
      headers: { "x-a": "b" },
      form: undefined,
      json: { to: "{to}", text: "{text}", from: "{from}" },
      body: undefined,
      accepted: /ok/,
      rejected: /no/,
      messageId: "id",
      errorCode: "code",
      receiptsById: true,
      from: "ACME",
      receipts: true,
    },
    "baseUrl",
  ),
  taker("inboxSender", inboxSender, { outcome: { outcome: "accepted" }, limit: 3 }, "outcomes"),
  taker("infobipSender", infobipSender, { ...common, apiKey: "k" }, "timeOut"),
  taker("messageBirdSender", messageBirdSender, { ...common, accessKey: "k" }, "recipts"),
  taker("plivoSender", plivoSender, { ...common, authId: "i", authToken: "t", powerpackUuid: "u" }, "powerPackUuid"),
  taker("sinchSender", sinchSender, { ...common, servicePlanId: "p", apiToken: "t", region: "eu" }, "regoin"),
  taker(
    "smppSender",
    smppSender,
    {
      host: "smpp.example",
      port: 2775,
      tls: false,
      systemId: "s",
      password: "p",
      systemType: "t",
      serviceType: "t",
      bindType: "transceiver",
      from: "ACME",
      fromTon: 5,
      fromNpi: 0,
      destinationTon: 1,
      destinationNpi: 1,
      alphabet: "gsm",
      dataCoding: 0,
      longMessages: "udh",
      validityPeriod: "none",
      parameters: [],
      window: 5,
      messagesPerSecond: 10,
      bindTimeout: 1,
      responseTimeout: 1,
      enquireLinkAfter: 1,
      rebind: { min: 1, max: 2 },
      throttlePause: 1,
      drainTimeout: 1,
      onReceipt: () => {},
      receiptIds: "same",
      idSpace: "a",
      receiptOffset: "+00:00",
      logger: logger(),
      clock,
    },
    "idspace",
  ),
  taker("telnyxSender", telnyxSender, { ...common, apiKey: "k", messagingProfileId: "p" }, "messagingProfileID"),
  taker(
    "twilioSender",
    twilioSender,
    { ...listens, accountSid: `AC${"0".repeat(32)}`, authToken: "t", apiKeySid: "SK1", messagingServiceSid: "MG1" },
    "conversion",
  ),
  taker("telegramSender", telegramSender, { ...transport, extra: {}, receipts: false, token: "t", ttl: 60, senderUsername: "acme" }, "senderUserName"),
  taker(
    "whatsappSender",
    whatsappSender,
    { ...transport, extra: {}, receipts: false, token: "t", phoneNumberId: "1", template: "otp", languages: "en_US", version: "v25.0" },
    "language",
  ),
  taker(
    "twilioWhatsappSender",
    twilioWhatsappSender,
    { ...silent, accountSid: "AC1", authToken: "t", apiKeySid: "SK1", messagingServiceSid: "MG1", contentSid: "HX1" },
    "contentSID",
  ),
  taker(
    "vonageWhatsappSender",
    vonageWhatsappSender,
    { ...silent, apiKey: "k", apiSecret: "s", applicationId: undefined, privateKey: undefined, template: "otp", languages: "en_US" },
    "language",
  ),
  taker("twilioVoiceSender", twilioVoiceSender, { ...silent, accountSid: "AC1", authToken: "t", countries: ["FR"], pressKey: false }, "presskey"),
  taker("vonageVoiceSender", vonageVoiceSender, { ...silent, ...vonageVoiceOptions, countries: ["FR"], from: "ACME", pressKey: false }, "country"),
  taker("vonageSender", vonageSender, { ...listens, apiKey: "k", apiSecret: "s", applicationId: undefined, privateKey: undefined }, "applicationID"),

  taker("africasTalkingReceipts", africasTalkingReceipts, { secret }, "secrets"),
  taker("awsReceipts", awsReceipts, { topicArn, fetch, tolerance: 5 }, "topicArns"),
  taker(
    "httpReceipts",
    httpReceipts,
    {
      provider: "kannel",
      statuses: { DELIVRD: "delivered" },
      status: "s",
      messageId: "i",
      reference: "r",
      at: "a",
      error: "e",
      reports: "l",
      secret,
    },
    "errorCode",
  ),
  taker("messageBirdReceipts", messageBirdReceipts, { signingKey: "k" }, "tolerance"),
  taker("plivoReceipts", plivoReceipts, { authToken: "t", acceptV2: false }, "acceptv2"),
  taker("sinchReceipts", sinchReceipts, { webhookSecret: "s", tolerance: 5 }, "tolerence"),
  taker("telegramReceipts", telegramReceipts, { token: "t", tolerance: 5 }, "tolerence"),
  taker("whatsappReceipts", whatsappReceipts, { appSecret: "s", verifyToken: "v" }, "tolerance"),
  taker("twilioVoiceReceipts", twilioVoiceReceipts, { authToken: "t" }, "tolerance"),
  taker("vonageVoiceReceipts", vonageVoiceReceipts, { signatureSecret: "s", tolerance: 5 }, "tolerence"),
  taker("telnyxReceipts", telnyxReceipts, { publicKey: telnyxPublicKey, tolerance: 5 }, "tolerence"),
  taker("twilioReceipts", twilioReceipts, { authToken: "t" }, "tolerance"),
  taker("vonageReceipts", vonageReceipts, { signatureSecret: "s", tolerance: 5 }, "tolerence"),

  taker(
    "httpLookup",
    httpLookup,
    {
      ...overHttp,
      price: 0,
      url: "https://hlr.example/{number}",
      method: "POST",
      headers: {},
      form: { a: "b" },
      json: undefined,
      facts: { carrier: "a", line_type: "b", mcc: "c", mnc: "d", mccmnc: "e", number_ported: "f" },
      lineTypes: { m: "Mobile" },
      portedWords: { Y: true },
      number: "n",
      unknown: /none/,
      errorCode: "e",
    },
    "lineType",
  ),
  taker<LookupChainOptions>("lookupChain", (options) => lookupChain([source], options), { timeout: 3, wants: ["mcc"], clock }, "timeOut"),
  taker("telnyxLookup", telnyxLookup, { ...lookup, apiKey: "k" }, "prize"),
  taker("twilioLookup", twilioLookup, { ...lookup, accountSid: "AC1", authToken: "t", apiKeySid: "SK1" }, "apiKeySID"),
  taker("vonageLookup", vonageLookup, { ...lookup, ...vonageLookupOptions }, "apiKey"),

  taker("hcaptchaChallenge", hcaptchaChallenge, { ...siteverify, siteKey: "k" }, "sitekey"),
  taker("recaptchaChallenge", recaptchaChallenge, { ...siteverify, minScore: 0.7, action: "a" }, "minscore"),
  taker("turnstileChallenge", turnstileChallenge, { ...siteverify, action: "a" }, "hostnames"),

  taker("openTelemetry", openTelemetry, { tracer: trace.getTracer("t"), meter: metrics.getMeter("t") }, "metre"),
];

function faultOf(make: () => unknown): unknown {
  try {
    make();
  } catch (error) {
    return error;
  }
  return "no error";
}
const messageOf = (make: () => unknown) => {
  const fault = faultOf(make);
  expect(fault).toBeInstanceOf(TypeError);
  return (fault as TypeError).message;
};

describe("an unknown option", () => {
  it.each(takers)("$name rejects $misspelt, names the options that exist, and accepts all of them", ({ name, misspelt, known, makeOf }) => {
    const start = `${name}: option ${misspelt} is not an option. Remove it or fix its spelling; there ${known.length === 1 ? "is" : "are"}: `;
    for (const value of [true, undefined]) {
      const message = messageOf(() => makeOf({ [misspelt]: value }));
      expect(message.slice(0, start.length)).toBe(start);
      expect(message.slice(start.length, -1).split(", ").sort()).toEqual([...known].sort());
    }
    expect(faultOf(() => makeOf({}))).toBe("no error");
  });

  it("is named by its path in a nested object", () => {
    const number = "n";
    expect(messageOf(() => httpLookup({ url: "https://hlr.example/{number}", number, facts: { mcc: "a", lineType: "b" } as never }))).toBe(
      "httpLookup: option facts.lineType is not an option. Remove it or fix its spelling; there are: carrier, line_type, mcc, mnc, mccmnc, number_ported.",
    );
    expect(messageOf(() => httpLookup({ url: "https://hlr.example/{number}", number, facts: "mcc" as never }))).toContain(
      "httpLookup: option facts must be an object with any of these: carrier, line_type",
    );
    expect(messageOf(() => smppSender({ host: "smpp.example", systemId: "s", password: "p", rebind: { minimum: 1 } as never }))).toBe(
      "smppSender: option rebind.minimum is not an option. Remove it or fix its spelling; there are: min, max.",
    );
  });

  it("is not detected in a sender made with the kit, whose options only its author knows", () => {
    const options = { from: "ACME", apiKey: "k" };
    const api = { provider: "acme", url: "https://sms.example", request: () => ({ url: "https://sms.example", headers: {} }), accepted: () => acceptedAs("1") };
    expect(faultOf(() => carrierSender("acmeSender", options, api))).toBe("no error");
    expect(faultOf(() => framedSender("acmeSender", options, { provider: "acme", hand: async () => acceptedAs("1") }))).toBe("no error");
  });
});

it.each(takers)("$name treats the exports of a module like an object", ({ make }) => {
  expect(String(faultOf(() => make({ [Symbol.toStringTag]: "Module" })))).toBe(String(faultOf(() => make({}))));
});

describe("no options at all", () => {
  const needy = takers.filter(({ make }) => faultOf(() => make({})) !== "no error");
  it.each(needy)("$name", ({ name, make }) => {
    expect(String(faultOf(() => make()))).toMatch(new RegExp(`^\\w*Error: ${name}(: the options are missing\\. Call ${name}\\(\\{ … \\}\\)| needs options: )`));
    for (const none of [null, "key", () => ({})])
      expect(String(faultOf(() => make(none)))).toMatch(new RegExp(`^\\w*Error: ${name}(: its options must be| needs)`));
  });
});
