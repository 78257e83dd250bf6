import { generateKeyPairSync } from "node:crypto";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { africasTalkingSender } from "../../adapters/sms/africastalking.js";
import { awsSender } from "../../adapters/sms/aws.js";
import { infobipSender } from "../../adapters/sms/infobip.js";
import { messageBirdSender } from "../../adapters/sms/messagebird.js";
import { plivoSender } from "../../adapters/sms/plivo.js";
import { sinchSender } from "../../adapters/sms/sinch.js";
import { telnyxSender } from "../../adapters/sms/telnyx.js";
import { twilioSender } from "../../adapters/sms/twilio.js";
import { vonageSender } from "../../adapters/sms/vonage.js";
import type { SmsSender } from "../../src/ports/sms-sender.js";
import { africasTalkingCarrier, africasTalkingOptions, recipients } from "../support/carriers/africastalking.js";
import { awsCarrier, awsOptions } from "../support/carriers/aws.js";
import { infobipCarrier, infobipOptions } from "../support/carriers/infobip.js";
import { messageBirdCarrier, messageBirdOptions } from "../support/carriers/messagebird.js";
import { aMessage, authentication, inTime, reference } from "../support/carriers/messages.js";
import { plivoCarrier, plivoOptions } from "../support/carriers/plivo.js";
import { type CarrierScript, json, type Mood, type Reply, type RunningCarrier, startCarrier } from "../support/carriers/server.js";
import { sinchCarrier, sinchOptions } from "../support/carriers/sinch.js";
import { telnyxCarrier, telnyxOptions } from "../support/carriers/telnyx.js";
import { twilioCarrier, twilioOptions } from "../support/carriers/twilio.js";
import { vonageCarrier, vonageOptions } from "../support/carriers/vonage.js";

let running: RunningCarrier | undefined;
afterEach(() => running?.close());

async function start(carrier: CarrierScript, mood: Mood = "accepts"): Promise<RunningCarrier> {
  running = await startCarrier(carrier, mood);
  return running;
}

const receipt_url = `https://otp.example/receipts/any?r=${reference}`;
const ourId = `${authentication}/2`;

it.each<[CarrierScript, object]>([
  [twilioCarrier, { from: "+15005550006", receiptUrl: receipt_url }],
  [vonageCarrier, { from: "ACME", receiptUrl: receipt_url, reference }],
  [awsCarrier, { from: "ACME", reference: `${reference} otp` }],
  [messageBirdCarrier, { from: "ACME", receiptUrl: receipt_url, reference }],
  [plivoCarrier, { from: "14155550100", receiptUrl: receipt_url }],
  [sinchCarrier, { from: "ACME", receiptUrl: receipt_url, reference }],
  [infobipCarrier, { from: "ACME", receiptUrl: receipt_url, reference }],
  [telnyxCarrier, { from: "+15005550006", receiptUrl: receipt_url }],
  [africasTalkingCarrier, { from: "ACME" }],
])("$name: passes sender, receipt URL and reference, and returns the carrier's id", async (carrier, taken) => {
  const { url, taken: messages } = await start(carrier);
  const outcome = await carrier.sender(url).send(aMessage({ receipt_url, receipt_reference: reference }), inTime());
  expect(messages).toMatchObject([{ to: "+14155552671", text: "Your code is 493817.", ...taken }]);
  expect(outcome).toEqual({
    outcome: "accepted",
    messageId: expect.stringMatching(/^[\w/-]{7,}$/),
    ...(carrier === africasTalkingCarrier && { idSpace: "africastalking" }),
  });
});

it("infobip: the message id is ours, and a rejection as a duplicate counts as accepted, because the first request was taken", async () => {
  const duplicate = json(200, { messages: [{ messageId: ourId, status: { groupName: "REJECTED", name: "REJECTED_DUPLICATE_MESSAGE_ID" } }] });
  const { url, requests } = await start(infobipCarrier, duplicate);
  expect(await infobipCarrier.sender(url).send(aMessage(), inTime())).toEqual({ outcome: "accepted", messageId: ourId });
  expect(JSON.parse(requests[0]?.body ?? "").messages[0].destinations).toEqual([{ to: "14155552671", messageId: aMessage().idempotency_key }]);
});

const wrong: readonly [CarrierScript, (baseUrl: string) => SmsSender, string | undefined][] = [
  [twilioCarrier, (baseUrl) => twilioSender({ ...twilioOptions, authToken: "no", baseUrl }), "20003"],
  [vonageCarrier, (baseUrl) => vonageSender({ ...vonageOptions, apiSecret: "no", baseUrl }), "unauthorized"],
  [
    awsCarrier,
    (baseUrl) => awsSender({ ...awsOptions, credentials: { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "no", sessionToken: "session/token==" }, baseUrl }),
    "InvalidSignatureException",
  ],
  [messageBirdCarrier, (baseUrl) => messageBirdSender({ ...messageBirdOptions, accessKey: "no", baseUrl }), "2"],
  [plivoCarrier, (baseUrl) => plivoSender({ ...plivoOptions, authToken: "no", baseUrl }), "authentication_failed"],
  [sinchCarrier, (baseUrl) => sinchSender({ ...sinchOptions, apiToken: "no", baseUrl }), undefined],
  [infobipCarrier, (baseUrl) => infobipSender({ ...infobipOptions, apiKey: "no", baseUrl }), "E401"],
  [telnyxCarrier, (baseUrl) => telnyxSender({ ...telnyxOptions, apiKey: "no", baseUrl }), "10009"],
  [africasTalkingCarrier, (baseUrl) => africasTalkingSender({ ...africasTalkingOptions, apiKey: "no", baseUrl }), undefined],
];

it.each(wrong)("$name: wrong credentials give `rejected` with the HTTP status and the carrier's error code, if any", async (carrier, sender, code) => {
  const { url, taken } = await start(carrier);
  expect(await sender(url).send(aMessage(), inTime())).toEqual({
    outcome: "rejected",
    reason: expect.stringMatching(code === undefined ? /^HTTP 401$/ : new RegExp(`^HTTP 40[01], code ${code}$`)),
  });
  expect(taken).toEqual([]);
});

describe("documented responses", () => {
  const twilioProblem = (status: number, code: number) => json(status, { code, message: "to +14155552671", status });
  const vonageProblem = (status: number, code: string) => json(status, { type: `https://developer.vonage.com/api-errors/messages#${code}`, title: "…" });
  const awsProblem = (status: number, type: string, fields: object = {}) => json(status, { __type: type, ...fields });
  const infobipStatus = (groupName: string, name: string) => json(200, { messages: [{ messageId: "m1", status: { groupName, name } }] });
  const plain = (status: number, body = "") => ({ status, body, contentType: "text/plain" });

  it.each<[CarrierScript, string, Reply, string, string | undefined]>([
    [twilioCarrier, "an unverified number of a trial", twilioProblem(400, 21608), "rejected", "HTTP 400, code 21608"],
    [twilioCarrier, "a country without permission", twilioProblem(403, 21408), "rejected", "HTTP 403, code 21408"],
    [twilioCarrier, "an account that is suspended", twilioProblem(401, 20003), "rejected", "HTTP 401, code 20003"],
    [twilioCarrier, "a service that is unavailable", twilioProblem(503, 20503), "unknown", "HTTP 503, code 20503"],
    [
      twilioCarrier,
      "a message that failed at once",
      json(201, { sid: "SM1", status: "failed", error_code: 30007 }),
      "rejected",
      "rejected by the carrier, code 30007",
    ],
    [twilioCarrier, "no sid", json(201, { status: "queued" }), "unknown", "the carrier's response is not in the expected format"],
    [
      twilioCarrier,
      "a sid that is no text",
      json(201, { status: "queued", sid: { $ne: null } }),
      "unknown",
      "the carrier's response is not in the expected format",
    ],
    [vonageCarrier, "no credit", vonageProblem(402, "1070"), "rejected", "HTTP 402, code 1070"],
    [vonageCarrier, "not submitted for want of communication", vonageProblem(500, "1100"), "rejected", "HTTP 500, code 1100"],
    [vonageCarrier, "an internal error", vonageProblem(500, "1030"), "unknown", "HTTP 500, code 1030"],
    [awsCarrier, "denied", awsProblem(400, "AccessDeniedException"), "rejected", "HTTP 400, code AccessDeniedException"],
    [
      awsCarrier,
      "a quota used up",
      awsProblem(400, "com.amazonaws.x#ServiceQuotaExceededException"),
      "rejected",
      "HTTP 400, code ServiceQuotaExceededException",
    ],
    [
      awsCarrier,
      "a spend limit reached, by its reason",
      awsProblem(400, "ServiceQuotaExceededException", { Reason: "MONTHLY_SPEND_LIMIT_REACHED_FOR_TEXT" }),
      "rejected",
      "HTTP 400, code ServiceQuotaExceededException.MONTHLY_SPEND_LIMIT_REACHED_FOR_TEXT",
    ],
    [
      awsCarrier,
      "a reason that is a sentence",
      awsProblem(400, "ConflictException", { Reason: "+14155552671 opted out" }),
      "rejected",
      "HTTP 400, code ConflictException",
    ],
    [
      messageBirdCarrier,
      "no credit",
      json(402, { errors: [{ code: 25, description: "Not enough balance", parameter: null }] }),
      "rejected",
      "HTTP 402, code 25",
    ],
    [
      messageBirdCarrier,
      "a recipient that failed at once",
      json(201, { id: "m1", recipients: { items: [{ status: "delivery_failed", statusErrorCode: 1 }] } }),
      "rejected",
      "rejected by the carrier, code 1",
    ],
    [
      plivoCarrier,
      "an invalid number, told with success",
      json(202, { message: "message(s) queued", message_uuid: [], invalid_number: ["14155552671"] }),
      "rejected",
      "rejected by the carrier, code invalid_number",
    ],
    [plivoCarrier, "an error in a sentence", json(400, { error: "14155552671 is not valid" }), "rejected", "HTTP 400"],
    [
      sinchCarrier,
      "a body that is turned down",
      json(400, { code: "syntax_invalid_parameter_format", text: "…" }),
      "rejected",
      "HTTP 400, code syntax_invalid_parameter_format",
    ],
    [
      infobipCarrier,
      "no route",
      infobipStatus("REJECTED", "REJECTED_ROUTE_NOT_AVAILABLE"),
      "rejected",
      "rejected by the carrier, code REJECTED_ROUTE_NOT_AVAILABLE",
    ],
    [
      infobipCarrier,
      "the older form of an error",
      json(401, { requestError: { serviceException: { messageId: "UNAUTHORIZED", text: "Invalid login details" } } }),
      "rejected",
      "HTTP 401, code UNAUTHORIZED",
    ],
    [telnyxCarrier, "a number that opted out", json(400, { errors: [{ code: "40300", detail: "+14155552671" }] }), "rejected", "HTTP 400, code 40300"],
    [
      telnyxCarrier,
      "a sending that failed at once",
      json(200, { data: { id: "m1", to: [{ status: "sending_failed" }], errors: [{ code: "40001" }] } }),
      "rejected",
      "rejected by the carrier, code 40001",
    ],
    ...[402, 403, 404, 405, 406, 407, 409, 502].map((code): [CarrierScript, string, Reply, string, string] => [
      africasTalkingCarrier,
      `status code ${code}`,
      recipients(code, "…", "None"),
      "rejected",
      `rejected by the carrier, code ${code}`,
    ]),
    ...[401, 500, 501, 999].map((code): [CarrierScript, string, Reply, string, string] => [
      africasTalkingCarrier,
      `status code ${code}`,
      recipients(code, "…", "None"),
      "unknown",
      `the carrier holds it back, code ${code}`,
    ]),
    [africasTalkingCarrier, "status code 100", recipients(100, "Processed", "ATXid_1"), "accepted", undefined],
    [africasTalkingCarrier, "status code 102", recipients(102, "Queued", "ATXid_1"), "accepted", undefined],
    [
      africasTalkingCarrier,
      "a sender id that is not ours",
      json(201, { SMSMessageData: { Message: "InvalidSenderId", Recipients: [] } }),
      "rejected",
      "rejected by the carrier, code InvalidSenderId",
    ],
    [africasTalkingCarrier, "a success in words only", plain(201, "Sent to 1/1"), "unknown", "the carrier's response is not in the expected format"],
    [twilioCarrier, "400 by something that speaks no JSON", plain(400, "Bad Request"), "rejected", "HTTP 400"],
    [twilioCarrier, "408", plain(408), "unknown", "HTTP 408"],
    [twilioCarrier, "409", plain(409), "unknown", "HTTP 409"],
    [twilioCarrier, "413", plain(413), "rejected", "HTTP 413"],
    [twilioCarrier, "499", plain(499), "unknown", "HTTP 499"],
    [twilioCarrier, "502 by a proxy", plain(502, "<html>Bad Gateway"), "unknown", "HTTP 502"],
    [twilioCarrier, "302", plain(302), "unknown", "HTTP 302"],
    [twilioCarrier, "204", { status: 204, body: "" }, "unknown", "the carrier's response is not in the expected format"],
    [twilioCarrier, "JSON that is no object", json(201, null), "unknown", "the carrier's response is not in the expected format"],
    [twilioCarrier, "the code for an error code", json(400, { code: 493817 }), "rejected", "HTTP 400, code ******"],
    [twilioCarrier, "the number for an error code", json(400, { code: "14155552671" }), "rejected", "HTTP 400"],
  ])("$name: %s", async (carrier, _, reply, outcome, reason) => {
    const { url, requests } = await start(carrier, reply);
    const result = await carrier.sender(url).send(aMessage(), inTime());
    expect(result).toEqual(outcome === "accepted" ? { outcome, messageId: "ATXid_1", idSpace: "africastalking" } : { outcome, reason });
    expect(requests).toHaveLength(1);
  });
});

describe("from", () => {
  const map = { GB: "ACME", default: "+15005550006" };
  it.each([
    ["one for all", "ACME", "US", "ACME"],
    ["by country", map, "GB", "ACME"],
    ["the default for another country", map, "FR", "+15005550006"],
    ["the default without a country", map, undefined, "+15005550006"],
    ["by a rule", (message: { country?: string | undefined }) => `To${message.country}`, "FR", "ToFR"],
  ])("%s", async (_, from, country, expected) => {
    const { url, taken } = await start(twilioCarrier);
    const { country: __, ...message } = aMessage();
    await twilioSender({ ...twilioOptions, from, baseUrl: url }).send(country === undefined ? message : { ...message, country }, inTime());
    expect(taken[0]?.from).toBe(expected);
  });

  it.each([
    ["a map without that country or a default", { GB: "ACME" }, /option from names no sender for US/],
    ["a rule that names no one", () => undefined, /option from names no sender for US/],
    ["a rule that names nothing", () => " ", /option from names no sender for US/],
    [
      "a rule that fails",
      () => {
        throw new RangeError("493817 +1 415 555 26 71");
      },
      /^not sent: option from failed: RangeError: \*{6} \+…$/,
    ],
  ])("%s: rejected and not sent", async (_, from, reason) => {
    const { url, requests } = await start(twilioCarrier);
    expect(await twilioSender({ ...twilioOptions, from, baseUrl: url }).send(aMessage(), inTime())).toEqual({
      outcome: "rejected",
      reason: expect.stringMatching(reason),
    });
    expect(requests).toEqual([]);
  });

  it.each<[CarrierScript, (baseUrl: string) => SmsSender, string | undefined]>([
    [
      twilioCarrier,
      (baseUrl) => twilioSender({ accountSid: twilioOptions.accountSid, authToken: twilioOptions.authToken, messagingServiceSid: "MG1", baseUrl }),
      "MG1",
    ],
    [
      plivoCarrier,
      (baseUrl) => plivoSender({ authId: plivoOptions.authId, authToken: plivoOptions.authToken, powerpackUuid: "pp1", from: { GB: "ACME" }, baseUrl }),
      "pp1",
    ],
    [telnyxCarrier, (baseUrl) => telnyxSender({ apiKey: telnyxOptions.apiKey, messagingProfileId: "mp1", baseUrl }), "mp1"],
    [sinchCarrier, (baseUrl) => sinchSender({ servicePlanId: "plan1", apiToken: "sinch-token", baseUrl }), undefined],
    [africasTalkingCarrier, (baseUrl) => africasTalkingSender({ username: "acme", apiKey: "at-key", baseUrl }), undefined],
  ])("$name: the carrier chooses the sender if `from` names none", async (carrier, sender, from) => {
    const { url, taken } = await start(carrier);
    expect(await sender(url).send(aMessage(), inTime())).toMatchObject({ outcome: "accepted" });
    expect(taken[0]?.from).toBe(from);
  });
});

it("twilio: an API key authenticates instead of the account", async () => {
  const { url } = await start(twilioCarrier);
  expect(await twilioSender({ ...twilioOptions, apiKeySid: "SK1", baseUrl: url }).send(aMessage(), inTime())).toMatchObject({ outcome: "accepted" });
});

it("`extra` fields are sent too, and do not override the message", async () => {
  const { url, requests, taken } = await start(twilioCarrier);
  await twilioSender({ ...twilioOptions, extra: { ValidityPeriod: "600", To: "+1999", Body: "x" }, baseUrl: url }).send(aMessage(), inTime());
  expect(new URLSearchParams(requests[0]?.body).get("ValidityPeriod")).toBe("600");
  expect(taken).toMatchObject([{ to: "+14155552671", text: "Your code is 493817." }]);
  const vonage = await startCarrier(vonageCarrier, "accepts");
  await vonageSender({ ...vonageOptions, extra: { ttl: 600, to: "1999" }, baseUrl: vonage.url }).send(aMessage(), inTime());
  expect(JSON.parse(vonage.requests[0]?.body ?? "")).toMatchObject({ ttl: 600, to: "14155552671" });
  await vonage.close();
});

it.each<[string, () => unknown, RegExp]>([
  ["twilio", () => twilioSender({} as never), /^twilioSender: option accountSid is missing\. Pass the Account SID/],
  [
    "twilio",
    () => twilioSender({ accountSid: "SK1", authToken: "t", from: "x" }),
    /option accountSid is the SID of an API key\. Pass the Account SID .*apiKeySid/,
  ],
  ["twilio", () => twilioSender({ accountSid: "AC1", authToken: "", from: "x" }), /option authToken must be a non-empty string/],
  ["twilio", () => twilioSender({ accountSid: "AC1", authToken: "t" }), /option from is missing\. Pass .*messagingServiceSid/],
  ["twilio", () => twilioSender({ ...twilioOptions, from: {} }), /option from is an empty map/],
  [
    "twilio",
    () => twilioSender({ ...twilioOptions, from: { gb: "ACME" } as never }),
    /option from\.gb must be an ISO 3166-1 alpha-2 code in capitals.*for "gb" say "GB"/,
  ],
  ["twilio", () => twilioSender({ ...twilioOptions, from: { GB: "" } }), /option from\.GB must be a non-empty string/],
  ["twilio", () => twilioSender({ ...twilioOptions, from: 7 as never }), /option from is neither text, a map nor a function/],
  ["twilio", () => twilioSender({ ...twilioOptions, baseUrl: "api.twilio.com" }), /option baseUrl must be a URL that starts with https/],
  ["twilio", () => twilioSender({ ...twilioOptions, baseUrl: "ftp://api.twilio.com" }), /option baseUrl must be a URL that starts with https/],
  ...["https://user:password@sms.example", "https://sms.example/gateway?tenant=1", "https://sms.example/#eu", "https://sms .example"].map(
    (baseUrl): [string, () => unknown, RegExp] => [
      "twilio",
      () => twilioSender({ ...twilioOptions, baseUrl }),
      /option baseUrl must be a URL .*without credentials/,
    ],
  ),
  ["twilio", () => twilioSender({ ...twilioOptions, baseUrl: new URL("https://sms.example") as never }), /option baseUrl must be a non-empty string/],
  [
    "infobip",
    () => infobipSender({ ...infobipOptions, baseUrl: "xyz123.api.infobip.com" }),
    /option baseUrl must be a URL .*Pass for example "https:\/\/xyz123\.api\.infobip\.com"/,
  ],
  ["infobip", () => infobipSender({ ...infobipOptions, baseUrl: "ftp://x" }), /option baseUrl must be a URL .*Pass for example "https:\/\/xxxxx\.api/],
  ["twilio", () => twilioSender({ ...twilioOptions, timeout: 0 }), /option timeout must be a number of seconds, above 0 and at most 24 days/],
  ["twilio", () => twilioSender({ ...twilioOptions, timeout: Number.POSITIVE_INFINITY }), /option timeout/],
  ["twilio", () => twilioSender({ ...twilioOptions, fetch: "x" as never }), /option fetch must be a function/],
  ["vonage", () => vonageSender({ from: "x" }), /^vonageSender: option apiKey is missing\. Pass either apiKey and apiSecret or applicationId and privateKey/],
  ["vonage", () => vonageSender({ from: "x", apiKey: "k", apiSecret: "s", applicationId: "a" }), /option apiKey and applicationId exclude each other/],
  ["vonage", () => vonageSender({ from: "x", apiKey: "k" }), /option apiSecret is missing/],
  ["vonage", () => vonageSender({ from: "x", applicationId: "a" }), /option privateKey is missing/],
  ["vonage", () => vonageSender({ from: "x", applicationId: "a", privateKey: "-----BEGIN" }), /option privateKey is not an RSA private key/],
  ["vonage", () => vonageSender({ apiKey: "k", apiSecret: "s" } as never), /option from is missing/],
  ["aws", () => awsSender({} as never), /^awsSender: option region is missing/],
  ["aws", () => awsSender({ region: "Ireland", credentials: awsOptions.credentials }), /option region is not a region/],
  ["aws", () => awsSender({ region: "eu-west-1" } as never), /option credentials is missing/],
  ["aws", () => awsSender({ region: "eu-west-1", credentials: { accessKeyId: "a" } as never }), /option credentials\.secretAccessKey is missing/],
  ["aws", () => awsSender({ client: {} as never, command: class {} }), /option client has no method send/],
  ["aws", () => awsSender({ client: { send: async () => ({}) } } as never), /option command is missing/],
  ["messagebird", () => messageBirdSender({ from: "x" } as never), /^messageBirdSender: option accessKey is missing/],
  ["plivo", () => plivoSender({ from: "x" } as never), /^plivoSender: option authId is missing/],
  ["plivo", () => plivoSender({ authId: "a", authToken: "t" }), /option from is missing/],
  ["sinch", () => sinchSender({ servicePlanId: "p" } as never), /^sinchSender: option apiToken is missing/],
  ["sinch", () => sinchSender({ servicePlanId: "p", apiToken: "t", region: "evil.example/" }), /option region is not a region/],
  ["infobip", () => infobipSender({ apiKey: "k", from: "x" } as never), /^infobipSender: option baseUrl is missing/],
  ["infobip", () => infobipSender({ baseUrl: "https://x.api.infobip.com", from: "x" } as never), /option apiKey is missing/],
  ["telnyx", () => telnyxSender({ apiKey: "k" }), /^telnyxSender: option from is missing/],
  ["africastalking", () => africasTalkingSender({ apiKey: "k" } as never), /^africasTalkingSender: option username is missing/],
])("%s: invalid options throw at construction, with the fix", (_, make, message) => {
  expect(make).toThrow(TypeError);
  expect(make).toThrow(message);
});

it("no error shows a secret", () => {
  for (const make of [
    () => vonageSender({ from: "x", applicationId: "a", privateKey: "s3cret-pem" }),
    () => twilioSender({ accountSid: "AC1", authToken: "s3cret", from: {} }),
  ]) {
    expect(make).toThrow(expect.not.objectContaining({ message: expect.stringContaining("s3cret") }));
  }
});

it.each<[string, (around: string, fetch: typeof globalThis.fetch) => SmsSender]>([
  ["twilioSender, authToken", (around, fetch) => twilioSender({ fetch, ...twilioOptions, authToken: `${around}t${around}` })],
  ["twilioSender, apiKeySid", (around, fetch) => twilioSender({ fetch, ...twilioOptions, apiKeySid: `${around}SK1${around}` })],
  ["vonageSender, apiKey", (around, fetch) => vonageSender({ fetch, from: "ACME", apiKey: `${around}k${around}`, apiSecret: "s" })],
  ["vonageSender, apiSecret", (around, fetch) => vonageSender({ fetch, from: "ACME", apiKey: "k", apiSecret: `${around}s${around}` })],
  [
    "awsSender, credentials.secretAccessKey",
    (around, fetch) => awsSender({ fetch, ...awsOptions, credentials: { accessKeyId: "AKIA1", secretAccessKey: `${around}s${around}` } }),
  ],
  [
    "awsSender, credentials.sessionToken",
    (around, fetch) => awsSender({ fetch, ...awsOptions, credentials: { accessKeyId: "AKIA1", secretAccessKey: "s", sessionToken: `${around}t${around}` } }),
  ],
  ["messageBirdSender, accessKey", (around, fetch) => messageBirdSender({ fetch, ...messageBirdOptions, accessKey: `${around}k${around}` })],
  ["plivoSender, authToken", (around, fetch) => plivoSender({ fetch, ...plivoOptions, authToken: `${around}t${around}` })],
  ["sinchSender, apiToken", (around, fetch) => sinchSender({ fetch, ...sinchOptions, apiToken: `${around}t${around}` })],
  [
    "infobipSender, apiKey",
    (around, fetch) => infobipSender({ fetch, ...infobipOptions, baseUrl: "https://x.api.infobip.com", apiKey: `${around}k${around}` }),
  ],
  ["infobipSender, baseUrl", (around, fetch) => infobipSender({ fetch, ...infobipOptions, baseUrl: `${around}https://x.api.infobip.com${around}` })],
  ["telnyxSender, apiKey", (around, fetch) => telnyxSender({ fetch, ...telnyxOptions, apiKey: `${around}k${around}` })],
  ["africasTalkingSender, apiKey", (around, fetch) => africasTalkingSender({ fetch, ...africasTalkingOptions, apiKey: `${around}k${around}` })],
])("%s may have line breaks around it, as in many files: the requests are the same", async (_, make) => {
  vi.useFakeTimers({ now: 0, toFake: ["Date"] });
  onTestFinished(() => void vi.useRealTimers());
  const requestOf = async (around: string) => {
    const sent: unknown[] = [];
    const fetch: typeof globalThis.fetch = async (url, init) => {
      sent.push(String(url), Object.fromEntries(new Headers(init?.headers)));
      return new Response("{}");
    };
    await make(around, fetch).send(aMessage(), inTime());
    return sent;
  };
  expect(await requestOf("")).toHaveLength(2);
  expect(await requestOf("\n")).toEqual(await requestOf(""));
});

it("the line break at the end of a private key is no error", () => {
  const privateKey = generateKeyPairSync("rsa", { modulusLength: 1024 }).privateKey.export({ type: "pkcs8", format: "pem" }) as string;
  expect(privateKey.endsWith("\n")).toBe(true);
  expect(() => vonageSender({ from: "ACME", applicationId: "a", privateKey })).not.toThrow();
});
