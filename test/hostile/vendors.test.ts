import { createHmac } from "node:crypto";
import { readFile } from "node:fs/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { hcaptchaChallenge } from "../../adapters/challenge/hcaptcha.js";
import { recaptchaChallenge } from "../../adapters/challenge/recaptcha.js";
import { turnstileChallenge } from "../../adapters/challenge/turnstile.js";
import { vonageLookup } from "../../adapters/lookup/vonage.js";
import { awsReceipts } from "../../adapters/sms/aws.js";
import { httpReceipts, httpSender } from "../../adapters/sms/http.js";
import { infobipReceipts } from "../../adapters/sms/infobip.js";
import { plivoReceipts } from "../../adapters/sms/plivo.js";
import { twilioReceipts, twilioSender } from "../../adapters/sms/twilio.js";
import { vonageReceipts, vonageWhatsappSender } from "../../adapters/sms/vonage.js";
import { router } from "../../src/routing/router.js";
import { aMessage, aReceipt, inTime } from "../support/carriers/messages.js";
import { signAws, signPlivo, signSns } from "../support/carriers/receipts.js";
import { json, type Reply } from "../support/carriers/server.js";
import { snsCertificate } from "../support/carriers/sns-key.js";
import { startLookup } from "../support/lookups/server.js";
import { vonageLookupOptions } from "../support/lookups/vonage.js";
import { make, run, scriptOf } from "./carrier-kit.js";
import { startVendor } from "./channel-vendors/server.js";
import { twilioAccount } from "./channel-vendors/twilio.js";
import { startVonage, vonageAccount, vonageStatus } from "./channel-vendors/vonage.js";
import { aCode, mounted, within } from "./channels-kit.js";
import { begin, listening, messageOf, noon, post, told } from "./receipt-kit.js";

const form = { "content-type": "application/x-www-form-urlencoded" };

/** Kannel's smsbox: it reports by a GET of the given URL, with the type of the report in place of `%d`. */
async function startKannel() {
  const taken: { readonly dlrUrl: string }[] = [];
  const vendor = await startVendor(({ method, path }) => {
    const url = new URL(path, "http://kannel.test");
    const dlrUrl = url.searchParams.get("dlr-url");
    if (method !== "GET" || url.pathname !== "/cgi-bin/sendsms" || !url.searchParams.get("to")) return { status: 400, type: "text/plain", body: "Missing" };
    if (dlrUrl === null || url.searchParams.get("dlr-mask") !== "31") return { status: 400, type: "text/plain", body: "no report is asked for" };
    taken.push({ dlrUrl });
    return { status: 202, type: "text/plain", body: "0: Accepted for delivery" };
  });
  return { url: vendor.url, taken, report: (type: number) => ({ method: "GET", url: taken[0]!.dlrUrl.replace("%d", String(type)) }) as const };
}

describe("Kannel (its user guide, chapter Delivery Reports)", () => {
  it("a report to the message's own URL needs no id: Kannel's example has only `?type=%d` (docs/carriers.md#delivery-receipts)", async () => {
    const kannel = await startKannel();
    const sender = httpSender({
      provider: "kannel",
      url: `${kannel.url}/cgi-bin/sendsms?username=u&password=p&to={to}&from={from}&text={text}&coding={coding}&charset=UTF-8&dlr-mask=31&dlr-url={receipt_url}%26status%3D%25d`,
      from: "ACME",
      accepted: /^0: Accepted/,
    });
    const statuses = { 1: "delivered", 2: "undeliverable", 4: "in_transit", 8: "in_transit", 16: "undeliverable" } as const;
    const one = await mounted(sender, [httpReceipts({ provider: "kannel", statuses })]);
    const id = await one.begin();
    const answers = [await one.network(kannel.report(8)), await one.network(kannel.report(1))];
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    expect(await one.told(id)).toEqual(["1:submitted", "1:in_transit", "1:delivered"]);
  });
});

describe("46elks (46elks.se/docs/sms-delivery-reports, /docs/show-sms-id)", () => {
  it.each(["UTC", "America/New_York", "Asia/Kolkata"])(
    "a time without a zone is read as UTC, whatever the zone of the process: TZ=%s (docs/contract.md#receipt-order)",
    async (zone) => {
      const before = process.env["TZ"];
      onTestFinished(() => {
        if (before === undefined) delete process.env["TZ"];
        else process.env["TZ"] = before;
      });
      process.env["TZ"] = zone;
      const source = httpReceipts({ provider: "elks", statuses: { sent: "in_transit", delivered: "delivered", failed: "undeliverable" }, at: "delivered" });
      const fields = { id: "s3633fa8e62f823e52fbc67ebf6925ab5", status: "delivered", delivered: "2016-08-18T09:55:31.116000" };
      const asked = aReceipt({ url: "https://otp.example/receipts/elks?r=x", headers: form, body: new URLSearchParams(fields).toString() });
      expect(await source.read(asked, noon)).toMatchObject({ receipts: [{ status: "delivered", at: Date.UTC(2016, 7, 18, 9, 55, 31, 116) }] });
    },
  );
});

describe("AWS End User Messaging (Example event data, configuration-sets-event-format.html)", () => {
  it.each(["TEXT_CARRIER_UNREACHABLE", "TEXT_UNREACHABLE", "TEXT_UNKNOWN"])(
    "%s with isFinal false does not end its message: a later event is reported (docs/contract.md#receipt-order)",
    async (eventType) => {
      const one = listening();
      const id = await begin(one);
      const { receipt_reference } = messageOf(one, id);
      const says = async (type: string, isFinal: boolean) => {
        const event = {
          eventType: type,
          eventVersion: "1.0",
          isFinal,
          eventTimestamp: noon,
          messageId: "862a8790",
          context: { phoneproof: receipt_reference },
        };
        const made = await signAws(event, { at: noon });
        return (await post(one.verifier, { url: "https://otp.example/receipts/aws", body: made.body })).status;
      };
      expect(await says(eventType, false)).toBe(200);
      expect((await told(one, id)).at(-1)).not.toMatch(/undeliverable/);
      expect(await says("TEXT_DELIVERED", true)).toBe(200);
      expect((await told(one, id)).at(-1)).toBe("1:delivered");
    },
  );

  it.each([
    ["arn:aws-us-gov:sns:us-gov-west-1:123456789012:sms", "sns.us-gov-west-1.amazonaws.com"],
    ["arn:aws-cn:sns:cn-north-1:123456789012:sms", "sns.cn-north-1.amazonaws.com.cn"],
  ])("SNS of another partition, %s: notifications are read, subscriptions are confirmed (docs/carriers.md#delivery-receipts)", async (topicArn, host) => {
    const fetched: string[] = [];
    const fetch = async (url: string) => {
      fetched.push(url);
      return new Response(snsCertificate);
    };
    const source = awsReceipts({ topicArn, fetch });
    const envelope = { TopicArn: topicArn, SigningCertURL: `https://${host}/SimpleNotificationService-0123456789abcdef.pem` };
    const event = { eventType: "TEXT_DELIVERED", isFinal: true, messageId: "m1", eventTimestamp: noon };
    expect(await source.read(signSns({ ...envelope, Message: JSON.stringify(event) }, { at: noon }), noon)).toMatchObject({
      receipts: [{ status: "delivered" }],
    });
    const SubscribeURL = `https://${host}/?Action=ConfirmSubscription&TopicArn=${topicArn}&Token=t`;
    const confirmation = { ...envelope, Type: "SubscriptionConfirmation", Message: "You have chosen", Token: "t", SubscribeURL };
    expect(await source.read(signSns(confirmation, { at: noon }), noon)).toEqual({ receipts: [] });
    expect(fetched.at(-1)).toBe(SubscribeURL);
  });
});

describe("Infobip (Message status codes, infobip.com/docs/developer-resources/api-fundamentals/message-status-codes)", () => {
  const status = (groupId: number, groupName: string, id: number, name: string) => ({ groupId, groupName, id, name, description: "…" });
  const report = (of: object) =>
    infobipReceipts().read(
      aReceipt({ headers: { "content-type": "application/json" }, body: JSON.stringify({ results: [{ messageId: "m1", status: of, callbackData: "r" }] }) }),
      noon,
    );

  it("EXPIRED_DLR_UNKNOWN, whose delivery status is unknown, is not reported as undeliverable (docs/contract.md#receipt-order)", async () => {
    expect(await report(status(4, "EXPIRED", 29, "EXPIRED_DLR_UNKNOWN"))).toMatchObject({ receipts: [{ status: "unknown" }] });
  });

  it("DELIVERED_TO_OPERATOR is in transit, DELIVERED_TO_HANDSET is delivered (docs/contract.md#receipt-order)", async () => {
    expect(await report(status(3, "DELIVERED", 2, "DELIVERED_TO_OPERATOR"))).toMatchObject({ receipts: [{ status: "in_transit" }] });
    expect(await report(status(3, "DELIVERED", 5, "DELIVERED_TO_HANDSET"))).toMatchObject({ receipts: [{ status: "delivered" }] });
  });

  const sendAnswer = (of: object) => json(200, { bulkId: "b", messages: [{ messageId: "x", destination: "14155552671", status: of }] });

  it("UNDELIVERABLE_NOT_SENT in the response to a send is a rejection: the message was not sent (docs/contract.md#send-outcome)", async () => {
    const carrier = await run(scriptOf("infobip"), sendAnswer(status(2, "UNDELIVERABLE", 31, "UNDELIVERABLE_NOT_SENT")));
    expect(await make("infobip", { baseUrl: carrier.url }).send(aMessage(), inTime())).toMatchObject({ outcome: "rejected" });
  });
});

describe("Vonage", () => {
  it("1300, not a user in the provider network: WhatsApp is skipped for the next message (docs/contract.md#unreachable)", async () => {
    const vonage = await startVonage();
    let sms = 0;
    const carrier = await startVendor(() => ({ status: 201, body: { sid: `SM${++sms}`, status: "queued" } }));
    const { apiKey, apiSecret, signatureSecret } = vonageAccount;
    const options = { apiKey, apiSecret, from: "447700900000", template: "verification_code", languages: "en_US", baseUrl: vonage.url };
    const sender = router({
      routes: [
        { name: "wa", sender: vonageWhatsappSender(options), priority: 0 },
        { name: "sms", sender: twilioSender({ ...twilioAccount, from: "+15005550006", baseUrl: carrier.url }) },
      ],
    });
    const one = await mounted(sender, [vonageReceipts({ signatureSecret }), twilioReceipts({ authToken: twilioAccount.authToken })]);
    await one.begin(1);
    // developer.vonage.com/en/messages/concepts/messages-status-callbacks: a rejected callback has an error object.
    const error = { type: "https://developer.vonage.com/api-errors/messages#1300", title: 1300, detail: "Not part of the provider network", instance: "i" };
    expect((await one.network(vonageStatus(vonage.messages[0]!, "rejected", one.clock.now(), { error }))).status).toBe(200);
    one.clock.advance(660_000);
    await one.begin(1);
    expect({ whatsapp: vonage.messages.length, sms }).toEqual({ whatsapp: 1, sms: 1 });
  });

  it("the page documents the required setup: the account's SMS setting must be `Messages API` (docs/carriers.md#delivery-receipts)", async () => {
    const page = await readFile(new URL("../../docs/carriers.md", import.meta.url), "utf8");
    const row = page.split("\n").find((line) => line.startsWith("| Vonage |"));
    expect(row?.split("|")[3]?.trim()).toMatch(/Messages API/);
  });

  it("Identity Insights: a failed insight leaves the rest, and the facts are marked as incomplete (docs/lookup.md#cache)", async () => {
    const insights = {
      format: { country_code: "US", number_international: "14155552671", is_format_valid: true, status: { code: "OK", message: "Success" } },
      original_carrier: { name: "Orange", network_type: "MOBILE", country_code: "US", network_code: "310260", status: { code: "OK", message: "Success" } },
      current_carrier: { status: { code: "INTERNAL_ERROR", message: "…" } },
    };
    const vendor = await startLookup({ answer: () => json(200, { request_id: "r", insights }) });
    onTestFinished(() => vendor.close());
    const provider = vonageLookup({ ...vonageLookupOptions, baseUrl: vendor.url });
    const facts = await provider.lookup({ phone_number: "+14155552671", country_code: "US", line_type: "Unknown" }, within());
    expect(facts).toMatchObject({ line_type: "Mobile", incomplete: true });
    expect(facts).not.toHaveProperty("mcc");
  });
});

describe("Twilio", () => {
  // twilio-node, src/webhooks/webhooks.ts: "signature generation on the back end is inconsistent".
  it.each([
    ["https://otp.example", "https://otp.example:443"],
    ["https://otp.example:8443", "https://otp.example"],
    ["https://otp.example:8443", "https://otp.example:8443"],
  ])("a receipt at %s, signed for %s, is accepted (docs/carriers.md#delivery-receipts)", async (at, signed) => {
    const path = "/receipts/twilio?r=x";
    const fields = { MessageSid: "SM1", MessageStatus: "delivered", To: "+33612345678" };
    const content = `MessageSid${fields.MessageSid}MessageStatus${fields.MessageStatus}To${fields.To}`;
    const sign = (url: string) =>
      createHmac("sha1", "twilio-auth-token")
        .update(url + content)
        .digest("base64");
    const body = new URLSearchParams(fields).toString();
    const source = twilioReceipts({ authToken: "twilio-auth-token" });
    const asked = (signature: string) => aReceipt({ url: at + path, headers: { ...form, "x-twilio-signature": signature }, body });
    expect(await source.read(asked(sign(signed + path)), noon)).toMatchObject({ receipts: [{ status: "delivered" }] });
    expect(await source.read(asked(sign(`https://other.example${path}`)), noon)).toMatchObject({ refused: "signature" });
  });
});

describe("Plivo (validateV3Signature of npm plivo, lib/utils/v3Security.js)", () => {
  it("one valid signature of several in the header is enough, as during a change of the auth token (docs/carriers.md#delivery-receipts)", async () => {
    const made = await signPlivo({ MessageUUID: "m1", Status: "delivered" }, { at: noon });
    const [right, nonce] = [made.header("x-plivo-signature-v3") ?? "", made.header("x-plivo-signature-v3-nonce") ?? ""];
    const other = createHmac("sha256", "another").update("x").digest("base64");
    const read = (signatures: string) =>
      plivoReceipts({ authToken: "plivo-auth-token" }).read(
        aReceipt({ url: made.url, headers: { ...form, "X-Plivo-Signature-V3": signatures, "X-Plivo-Signature-V3-Nonce": nonce }, body: made.body }),
        noon,
      );
    for (const signatures of [`${right},${other}`, `${other},${right}`]) expect(await read(signatures)).toMatchObject({ receipts: [{ status: "delivered" }] });
    expect(await read(`${other},${other}`)).toMatchObject({ refused: "signature" });
  });
});

describe("2xx responses that do not report a sent message (docs/contract.md#send-outcome)", () => {
  const at = (statusCode: number) =>
    json(201, { SMSMessageData: { Message: "Sent to 0/1", Recipients: [{ statusCode, number: "+14155552671", status: "…", cost: "0", messageId: "None" }] } });
  const cases: [string, string, string, Reply][] = [
    ...[402, 403, 404, 405, 406, 407, 409, 502].map((code): [string, string, string, Reply] => ["africastalking", String(code), "rejected", at(code)]),
    ...[401, 500, 501].map((code): [string, string, string, Reply] => ["africastalking", String(code), "unknown", at(code)]),
    ["africastalking", "no recipients", "rejected", json(201, { SMSMessageData: { Message: "InvalidSenderId", Recipients: [] } })],
    ["plivo", "invalid_number", "rejected", json(202, { api_id: "a", message: "message(s) queued", message_uuid: [], invalid_number: ["14155552671"] })],
    [
      "telnyx",
      "sending_failed",
      "rejected",
      json(200, { data: { id: "x", to: [{ status: "sending_failed" }], errors: [{ code: "40300", title: "Blocked" }] } }),
    ],
  ];
  it.each(cases)("%s, %s: %s", async (name, _what, outcome, reply) => {
    const carrier = await run(scriptOf(name), reply);
    expect(await make(name, { baseUrl: carrier.url }).send(aCode(), within())).toMatchObject({ outcome });
  });
});

describe("challenges: an error of the page is a wrong proof, an error of the operator or vendor is reported (docs/contract.md#challenge)", () => {
  const makers = { turnstile: turnstileChallenge, hcaptcha: hcaptchaChallenge, recaptcha: recaptchaChallenge };
  const wrong: [keyof typeof makers, string][] = [
    ["turnstile", "invalid-input-response"],
    ["turnstile", "timeout-or-duplicate"],
    ["hcaptcha", "expired-input-response"],
    ["hcaptcha", "already-seen-response"],
    ["recaptcha", "timeout-or-duplicate"],
  ];
  const faults: [keyof typeof makers, string][] = [
    ["turnstile", "invalid-input-secret"],
    ["turnstile", "internal-error"],
    ["hcaptcha", "sitekey-secret-mismatch"],
    ["hcaptcha", "invalid-input-secret"],
    ["recaptcha", "invalid-input-secret"],
    ["recaptcha", "bad-request"],
  ];
  const verify = (name: keyof typeof makers, code: string, status: number) => {
    const fetch = async () =>
      new Response(JSON.stringify({ success: false, "error-codes": [code] }), { status, headers: { "content-type": "application/json" } });
    return makers[name]({ secret: "s", fetch }).verify("proof", within());
  };
  it.each(wrong)("%s, %s: false", async (name, code) => {
    expect([await verify(name, code, 200), await verify(name, code, 400)]).toEqual([false, false]);
  });
  it.each(faults)("%s, %s: an error that names the code", async (name, code) => {
    await expect(verify(name, code, 200)).rejects.toThrow(code);
  });
});

describe("regional hosts", () => {
  const hostOf = async (name: string, options: object) => {
    const asked: string[] = [];
    const fetch = async (url: string) => {
      asked.push(new URL(url).host);
      return new Response("{}", { status: 400 });
    };
    await make(name, { fetch, ...options }).send(aMessage(), inTime());
    return asked;
  };
  it.each([
    ["sinch", { region: "eu" }, "eu.sms.api.sinch.com"],
    ["sinch", { region: "ca" }, "ca.sms.api.sinch.com"],
    ["aws", { region: "us-gov-west-1" }, "sms-voice.us-gov-west-1.amazonaws.com"],
    ["africastalking", { username: "sandbox" }, "api.sandbox.africastalking.com"],
  ])("%s %j: %s (docs/carriers.md#the-senders)", async (name, options, host) => {
    expect(await hostOf(name, options)).toEqual([host]);
  });
});
