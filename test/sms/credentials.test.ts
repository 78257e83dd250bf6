import { describe, expect, it } from "vitest";
import { africasTalkingSender } from "../../adapters/sms/africastalking.js";
import { awsSender } from "../../adapters/sms/aws.js";
import { httpSender } from "../../adapters/sms/http.js";
import { infobipSender } from "../../adapters/sms/infobip.js";
import type { Fetch } from "../../adapters/sms/kit/index.js";
import { messageBirdSender } from "../../adapters/sms/messagebird.js";
import { plivoSender } from "../../adapters/sms/plivo.js";
import { sinchSender } from "../../adapters/sms/sinch.js";
import { telnyxSender } from "../../adapters/sms/telnyx.js";
import { twilioSender } from "../../adapters/sms/twilio.js";
import { twilioVoiceSender } from "../../adapters/sms/twilio-voice.js";
import { vonageSender } from "../../adapters/sms/vonage.js";
import { whatsappSender } from "../../adapters/sms/whatsapp.js";
import type { SmsSender } from "../../src/index.js";
import { router } from "../../src/routing/router.js";

interface Asked {
  readonly url: string;
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: string;
}

/** A carrier that gives every request the same response. */
function answering(status: number, body = "{}") {
  const asked: Asked[] = [];
  const fetch: Fetch = async (url, { method, headers, body: sent }) => {
    asked.push({ url, method, headers, ...(sent !== undefined && { body: sent }) });
    return { status, body: new Response(body).body as never };
  };
  return { asked, fetch };
}

const from = "+15005550006";
const credentials = { accessKeyId: "AKIAEXAMPLE", secretAccessKey: "secret" };

/** Each carrier that documents a call which sends nothing, that call, and the header with the credentials. */
const carriers: readonly (readonly [name: string, make: (fetch: Fetch) => SmsSender, request: string, header: string])[] = [
  [
    "twilio",
    (fetch) => twilioSender({ accountSid: "AC1", authToken: "t", from, fetch }),
    "GET https://api.twilio.com/2010-04-01/Accounts/AC1.json",
    "authorization",
  ],
  ["vonage", (fetch) => vonageSender({ apiKey: "k", apiSecret: "s", from, fetch }), "GET https://rest.nexmo.com/account/get-balance", "authorization"],
  [
    "whatsapp",
    (fetch) => whatsappSender({ token: "t", phoneNumberId: "1065", template: "otp", languages: "en_US", fetch }),
    "GET https://graph.facebook.com/v25.0/1065?fields=id",
    "authorization",
  ],
  [
    "twiliovoice",
    (fetch) => twilioVoiceSender({ accountSid: "AC1", authToken: "t", from, countries: ["FR"], fetch }),
    "GET https://api.twilio.com/2010-04-01/Accounts/AC1.json",
    "authorization",
  ],
  ["telnyx", (fetch) => telnyxSender({ apiKey: "k", from, fetch }), "GET https://api.telnyx.com/v2/balance", "authorization"],
  ["plivo", (fetch) => plivoSender({ authId: "MA1", authToken: "t", from, fetch }), "GET https://api.plivo.com/v1/Account/MA1/", "authorization"],
  ["messagebird", (fetch) => messageBirdSender({ accessKey: "k", from, fetch }), "GET https://rest.messagebird.com/balance", "authorization"],
  [
    "infobip",
    (fetch) => infobipSender({ baseUrl: "https://x.api.infobip.com", apiKey: "k", from, fetch }),
    "GET https://x.api.infobip.com/account/1/balance",
    "authorization",
  ],
  [
    "sinch",
    (fetch) => sinchSender({ servicePlanId: "p", apiToken: "t", fetch }),
    "GET https://us.sms.api.sinch.com/xms/v1/p/groups?page_size=1",
    "authorization",
  ],
  [
    "africastalking",
    (fetch) => africasTalkingSender({ username: "u", apiKey: "k", fetch }),
    "GET https://api.africastalking.com/version1/user?username=u",
    "apikey",
  ],
  ["aws", (fetch) => awsSender({ region: "eu-west-1", credentials, fetch }), "POST https://sms-voice.eu-west-1.amazonaws.com/", "authorization"],
];

const verify = (sender: SmsSender) => sender.verify?.({ signal: AbortSignal.timeout(10_000) });

describe.each(carriers)("%s: verify checks the credentials", (name, make, request, header) => {
  it("makes one request, which sends no message", async () => {
    const { asked, fetch } = answering(200);
    expect(await verify(make(fetch))).toEqual([{ name, credentials: "accepted" }]);
    expect(asked.map(({ method, url }) => `${method} ${url}`)).toEqual([request]);
    expect(asked[0]?.headers[header]).toBeTruthy();
    expect(asked[0]?.headers["accept"]).toBe("application/json");
    if (name === "aws") expect(asked[0]?.headers["x-amz-target"]).toBe("PinpointSMSVoiceV2.DescribeSpendLimits");
  });

  it.each([
    [401, "rejected", "HTTP 401"],
    [403, "unknown", "HTTP 403"],
    [500, "unknown", "HTTP 500"],
  ])("HTTP %i gives `%s`", async (status, word, reason) => {
    expect(await verify(make(answering(status).fetch))).toEqual([{ name, credentials: word, reason }]);
  });

  it("a web page gives `unknown`: the response is not the carrier's", async () => {
    const { fetch } = answering(200, "<!doctype html><title>Portal</title>");
    expect(await verify(make(fetch))).toEqual([{ name, credentials: "unknown", reason: "the response is not the carrier's: check baseUrl" }]);
  });

  it("no response gives `unknown`, not `rejected`", async () => {
    const fetch: Fetch = async () => Promise.reject(Object.assign(new Error("no"), { code: "ECONNREFUSED" }));
    expect(await verify(make(fetch))).toEqual([{ name, credentials: "unknown", reason: "no connection, code ECONNREFUSED" }]);
  });
});

it("aws: HTTP 400 gives `rejected` for an unknown key and `unknown` for denied access", async () => {
  const { fetch } = answering(400, '{"__type":"com.amazon.coral.service#UnrecognizedClientException"}');
  expect(await verify(awsSender({ region: "eu-west-1", credentials, fetch }))).toMatchObject([{ credentials: "rejected" }]);
  const denied = answering(400, '{"__type":"com.amazonaws.pinpointsmsvoicev2#AccessDeniedException"}');
  expect(await verify(awsSender({ region: "eu-west-1", credentials, fetch: denied.fetch }))).toMatchObject([{ credentials: "unknown" }]);
});

it("whatsapp: HTTP 400 with code 190, an expired token, gives `rejected`", async () => {
  const { fetch } = answering(400, '{"error":{"code":190,"error_subcode":463}}');
  const sender = whatsappSender({ token: "t", phoneNumberId: "1065", template: "otp", languages: "en_US", fetch });
  expect(await verify(sender)).toEqual([{ name: "whatsapp", credentials: "rejected", reason: "HTTP 400, code 190" }]);
});

it("http: a sender from a template has no verify, because a template names no call that sends nothing", async () => {
  expect(httpSender({ url: "https://sms.example/send?to={to}&text={text}" }).verify).toBeUndefined();
});

it("a router verifies the sender of each route and reports each route by name", async () => {
  const sender = router({
    routes: [
      { name: "first", sender: twilioSender({ accountSid: "AC1", authToken: "t", from, fetch: answering(401).fetch }) },
      { name: "second", sender: { send: async () => ({ outcome: "accepted" }) } },
      { name: "third", sender: { send: async () => ({ outcome: "accepted" }), verify: async () => Promise.reject(new Error("no")) } },
    ],
  });
  expect(await verify(sender)).toEqual([
    { name: "first", credentials: "rejected", reason: "HTTP 401" },
    { name: 'route "second"', credentials: "unknown" },
    { name: "third", credentials: "unknown", reason: "the check failed" },
  ]);
});
