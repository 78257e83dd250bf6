import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { africasTalkingReceipts } from "../../adapters/sms/africastalking.js";
import { awsReceipts } from "../../adapters/sms/aws.js";
import { httpReceipts } from "../../adapters/sms/http.js";
import { infobipReceipts } from "../../adapters/sms/infobip.js";
import { messageBirdReceipts } from "../../adapters/sms/messagebird.js";
import { plivoReceipts } from "../../adapters/sms/plivo.js";
import { sinchReceipts } from "../../adapters/sms/sinch.js";
import { telegramReceipts } from "../../adapters/sms/telegram.js";
import { telnyxReceipts } from "../../adapters/sms/telnyx.js";
import { twilioReceipts } from "../../adapters/sms/twilio.js";
import { vonageReceipts } from "../../adapters/sms/vonage.js";
import { whatsappReceipts } from "../../adapters/sms/whatsapp.js";
import type { Receipt, ReceiptRequest, ReceiptSource } from "../../src/ports/receipts.js";
import { aReceipt, authentication, reference } from "../support/carriers/messages.js";
import {
  type Signer,
  signAws,
  signMessageBird,
  signPlivo,
  signSinch,
  signTelegram,
  signTelnyx,
  signTwilio,
  signVonage,
  signWhatsapp,
  statusWebhook,
  telnyxPublicKey,
  topicArn,
} from "../support/carriers/receipts.js";
import { snsCertificate } from "../support/carriers/sns-key.js";

const now = Date.UTC(2027, 0, 1, 12, 0, 0, 250);
const minute = 60_000;

interface Signed {
  readonly source: ReceiptSource;
  readonly sign: Signer;
  /** A report with this status. */
  readonly report: (status: string) => Record<string, unknown>;
  readonly delivered: Receipt;
  readonly statuses: Readonly<Record<string, Receipt["status"]>>;
  /** How long a signed time is valid, in milliseconds; undefined if no time is signed. */
  readonly lifetime?: number;
  /** Name of the header with the signature; undefined for SNS, which signs in the body. */
  readonly signatureHeader?: string;
}

/** The secrets end with a line break, as in many files. */
const signed: Readonly<Record<string, Signed>> = {
  twilio: {
    source: twilioReceipts({ authToken: "twilio-auth-token\n" }),
    sign: signTwilio,
    signatureHeader: "x-twilio-signature",
    report: (status) => ({
      MessageSid: "SM1",
      SmsSid: "SM1",
      MessageStatus: status,
      SmsStatus: status,
      To: "+14155552671",
      From: "+15005550006",
      AccountSid: "AC1",
      ApiVersion: "2010-04-01",
    }),
    delivered: { messageId: "SM1", status: "delivered" },
    statuses: {
      queued: "submitted",
      accepted: "submitted",
      scheduled: "submitted",
      sending: "submitted",
      sent: "in_transit",
      delivered: "delivered",
      read: "delivered",
      undelivered: "undeliverable",
      failed: "undeliverable",
      canceled: "undeliverable",
    },
  },
  vonage: {
    source: vonageReceipts({ signatureSecret: "vonage-signature-secret\n" }),
    sign: signVonage,
    signatureHeader: "authorization",
    report: (status) => ({
      message_uuid: "aaaaaaaa-bbbb-4ccc-8ddd-0123456789ab",
      to: "14155552671",
      from: "ACME",
      timestamp: "2027-01-01T11:59:59.000Z",
      status,
      channel: "sms",
      client_ref: reference,
      usage: { currency: "EUR", price: "0.0333" },
    }),
    delivered: { messageId: "aaaaaaaa-bbbb-4ccc-8ddd-0123456789ab", status: "delivered", at: Date.UTC(2027, 0, 1, 11, 59, 59), reference },
    statuses: { submitted: "submitted", delivered: "delivered", read: "delivered", rejected: "undeliverable", undeliverable: "undeliverable" },
    lifetime: 5 * minute,
  },
  aws: {
    source: awsReceipts({ topicArn, fetch: async () => new Response(snsCertificate) }),
    sign: signAws,
    report: (status) => ({
      eventType: `TEXT_${status}`,
      eventVersion: "1.0",
      eventTimestamp: now - 1000,
      isFinal: status !== "SUCCESSFUL",
      destinationPhoneNumber: "+14155552671",
      isoCountryCode: "US",
      messageId: "862a8790-60c0-4430-9b2b-658bd0000001",
      messageStatus: status,
      context: { phoneproof: reference },
    }),
    delivered: { messageId: "862a8790-60c0-4430-9b2b-658bd0000001", status: "delivered", at: now - 1000, reference },
    statuses: {
      QUEUED: "submitted",
      PENDING: "in_transit",
      SENT: "in_transit",
      SUCCESSFUL: "in_transit",
      DELIVERED: "delivered",
      INVALID: "undeliverable",
      INVALID_MESSAGE: "undeliverable",
      UNREACHABLE: "undeliverable",
      CARRIER_UNREACHABLE: "undeliverable",
      BLOCKED: "undeliverable",
      CARRIER_BLOCKED: "undeliverable",
      PROTECT_BLOCKED: "undeliverable",
      SPAM: "undeliverable",
      TTL_EXPIRED: "undeliverable",
      UNKNOWN: "unknown",
    },
    lifetime: 60 * minute,
  },
  messagebird: {
    source: messageBirdReceipts({ signingKey: "messagebird-signing-key\n" }),
    sign: signMessageBird,
    signatureHeader: "messagebird-signature-jwt",
    report: (status) => ({
      id: "e8077d803532c0b5937c639b60216938",
      reference,
      recipient: "14155552671",
      status,
      statusDatetime: "2027-01-01T11:59:59+00:00",
      statusErrorCode: "0",
    }),
    delivered: { messageId: "e8077d803532c0b5937c639b60216938", status: "delivered", at: Date.UTC(2027, 0, 1, 11, 59, 59), reference },
    statuses: {
      scheduled: "submitted",
      buffered: "in_transit",
      sent: "in_transit",
      delivered: "delivered",
      expired: "undeliverable",
      delivery_failed: "undeliverable",
    },
    lifetime: minute + 5000,
  },
  plivo: {
    source: plivoReceipts({ authToken: "plivo-auth-token\n" }),
    sign: signPlivo,
    signatureHeader: "x-plivo-signature-v3",
    report: (status) => ({
      MessageUUID: "db3ce55a-7f1d-11e1-8ea7-1231380bc196",
      Status: status,
      To: "14155552671",
      From: "14155550100",
      Units: "1",
      SentTime: "2027-01-01 11:59:58.123456",
      DeliveryReportTime: "2027-01-01 11:59:59.654321",
    }),
    delivered: { messageId: "db3ce55a-7f1d-11e1-8ea7-1231380bc196", status: "delivered", at: Date.UTC(2027, 0, 1, 11, 59, 59, 654) },
    statuses: {
      queued: "submitted",
      sent: "in_transit",
      delivered: "delivered",
      read: "delivered",
      undelivered: "undeliverable",
      failed: "undeliverable",
      rejected: "undeliverable",
    },
  },
  sinch: {
    source: sinchReceipts({ webhookSecret: "sinch-webhook-secret\n" }),
    sign: signSinch,
    signatureHeader: "x-sinch-webhook-signature",
    report: (status) => ({
      type: "recipient_delivery_report_sms",
      batch_id: "01FC66621XXXXX119Z8PMV1QPQ",
      recipient: "14155552671",
      code: 401,
      status,
      at: "2027-01-01T11:59:58.000Z",
      operator_status_at: "2027-01-01T11:59:59.000Z",
      client_reference: reference,
    }),
    delivered: { messageId: "01FC66621XXXXX119Z8PMV1QPQ", status: "delivered", at: Date.UTC(2027, 0, 1, 11, 59, 59), reference },
    statuses: {
      Queued: "submitted",
      Dispatched: "in_transit",
      Delivered: "delivered",
      Aborted: "undeliverable",
      Cancelled: "undeliverable",
      Rejected: "undeliverable",
      Deleted: "undeliverable",
      Failed: "undeliverable",
      Expired: "undeliverable",
      Unknown: "unknown",
    },
    lifetime: 5 * minute,
  },
  telnyx: {
    source: telnyxReceipts({ publicKey: telnyxPublicKey }),
    sign: signTelnyx,
    signatureHeader: "telnyx-signature-ed25519",
    report: (status) => ({
      data: {
        event_type: "message.finalized",
        id: "evt",
        occurred_at: "2027-01-01T11:59:59.000+00:00",
        payload: { id: "40385f64-5717-4562-b3fc-2c963f66afa6", direction: "outbound", to: [{ phone_number: "+14155552671", status }], errors: [] },
        record_type: "event",
      },
      meta: { attempt: 1 },
    }),
    delivered: { messageId: "40385f64-5717-4562-b3fc-2c963f66afa6", status: "delivered", at: Date.UTC(2027, 0, 1, 11, 59, 59) },
    statuses: {
      queued: "submitted",
      sending: "submitted",
      sent: "in_transit",
      delivered: "delivered",
      sending_failed: "undeliverable",
      delivery_failed: "undeliverable",
      expired: "undeliverable",
      cancelled: "undeliverable",
      GW_REJECT: "undeliverable",
      delivery_unconfirmed: "unknown",
      gw_timeout: "unknown",
      dlr_timeout: "unknown",
    },
    lifetime: 5 * minute,
  },
  telegram: {
    source: telegramReceipts({ token: "telegram-token\n" }),
    sign: signTelegram,
    signatureHeader: "x-request-signature",
    report: (status) => ({
      request_id: "500000123456",
      phone_number: "+14155552671",
      request_cost: 0.01,
      delivery_status: { status, updated_at: Math.floor(now / 1000) - 1 },
      payload: reference,
    }),
    delivered: { messageId: "500000123456", status: "delivered", at: Math.floor(now / 1000) * 1000 - 1000, reference },
    statuses: { sent: "in_transit", delivered: "delivered", read: "delivered", expired: "undeliverable", revoked: "undeliverable" },
    lifetime: 5 * minute,
  },
  whatsapp: {
    source: whatsappReceipts({ appSecret: "meta-app-secret\n", verifyToken: "verify-token\n" }),
    sign: signWhatsapp,
    signatureHeader: "x-hub-signature-256",
    report: (status) =>
      statusWebhook({
        id: "wamid.HBgLMTQxNTU1NTI2NzE=",
        status,
        timestamp: String(Math.floor(now / 1000) - 1),
        recipient_id: "14155552671",
        biz_opaque_callback_data: reference,
        pricing: { billable: true, pricing_model: "PMP", category: "authentication" },
      }),
    delivered: {
      messageId: "wamid.HBgLMTQxNTU1NTI2NzE=",
      idSpace: "whatsapp",
      status: "delivered",
      at: Math.floor(now / 1000) * 1000 - 1000,
      reference,
    },
    statuses: { sent: "in_transit", delivered: "delivered", read: "delivered", played: "delivered", failed: "undeliverable" },
  },
};

/** The carrier's word for "delivered". */
const deliveredWord = (carrier: Signed) => Object.entries(carrier.statuses).find(([, status]) => status === "delivered")?.[0] ?? "";
const good = (carrier: Signed, signing: { at?: number; secret?: string } = {}) =>
  Promise.resolve(carrier.sign(carrier.report(deliveredWord(carrier)), { at: now, ...signing }));

function withHeader(request: ReceiptRequest, name: string, change: (value: string) => string | undefined): ReceiptRequest {
  return { ...request, header: (asked) => (asked === name ? change(request.header(asked) ?? "") : request.header(asked)) };
}

describe.each(Object.entries(signed))("%s", (name, carrier) => {
  const { source } = carrier;

  it("has the name of its provider", () => {
    expect(source.provider).toBe(name);
  });

  it("reads a valid receipt, and the same one again when it is repeated", async () => {
    const request = await good(carrier);
    expect(await source.read(request, now)).toEqual({ receipts: [carrier.delivered] });
    expect(await source.read(request, now + 1000)).toEqual({ receipts: [carrier.delivered] });
  });

  it.each(Object.entries(carrier.statuses))("reads %s as %s", async (word, status) => {
    const reading = await source.read(await carrier.sign(carrier.report(word), { at: now }), now);
    expect(reading).toMatchObject({ receipts: [{ status, messageId: carrier.delivered.messageId }] });
  });

  it("ignores an unknown status, which must not become the message's final one", async () => {
    expect(await source.read(await carrier.sign(carrier.report("invented"), { at: now }), now)).toEqual({ receipts: [] });
  });

  it("rejects a tampered receipt", async () => {
    const request = await good(carrier);
    // Changes the word for the status, as an attacker would.
    const tampered =
      name === "messagebird"
        ? { ...request, url: request.url.replace("delivered", "scheduled") }
        : {
            ...request,
            body: Buffer.from(
              Buffer.from(request.body)
                .toString()
                .replace(/delivered/i, "queued"),
            ),
          };
    expect(tampered).not.toEqual(request);
    expect(await source.read(tampered, now)).toMatchObject({ refused: "signature" });
  });

  it("rejects a signature made with another secret", async () => {
    expect(await source.read(await good(carrier, { secret: "another" }), now)).toMatchObject({ refused: "signature" });
  });

  const header = carrier.signatureHeader;
  if (header !== undefined) {
    it("rejects a receipt whose signature is missing, truncated, extended or in another case", async () => {
      const request = await good(carrier);
      expect(
        await source.read(
          withHeader(request, header, () => undefined),
          now,
        ),
      ).toMatchObject({ refused: "signature" });
      const changes: ((value: string) => string)[] = [
        () => "",
        (value) => value.slice(0, -4),
        (value) => value.slice(0, value.length >> 1),
        (value) => value.slice(0, 1),
        (value) => `${value}AAAA`,
        (value) => `${value}.AAAA`,
        (value) => value.replace(/[a-z]/, (letter) => letter.toUpperCase()),
      ];
      for (const change of changes) {
        // The case of the scheme before a token does not matter, so only the token changes.
        const changed = withHeader(request, header, (value) => (header === "authorization" ? `Bearer ${change(value.slice(7))}` : change(value)));
        expect(await source.read(changed, now)).toMatchObject({ refused: "signature" });
      }
    });
  }

  const lifetime = carrier.lifetime;
  if (lifetime !== undefined) {
    it(`rejects a signed time more than ${lifetime / 1000} s old or too far in the future`, async () => {
      const second = Math.floor(now / 1000) * 1000;
      expect(await source.read(await good(carrier, { at: second }), second + lifetime - 1)).toEqual({ receipts: [carrier.delivered] });
      expect(await source.read(await good(carrier, { at: second }), second + lifetime + 1)).toMatchObject({ refused: "expired" });
      const ahead = name === "messagebird" ? 5000 : lifetime;
      expect(await source.read(await good(carrier, { at: second + ahead }), second)).toEqual({ receipts: [carrier.delivered] });
      expect(await source.read(await good(carrier, { at: second + ahead + 1000 }), second)).toMatchObject({ refused: "expired" });
    });
  }

  it("rejects an authentic but invalid report as malformed", async () => {
    for (const content of [
      { nothing: "1" },
      {
        ...carrier.report("delivered"),
        MessageSid: "",
        MessageUUID: "",
        id: "",
        message_uuid: "x".repeat(300),
        client_ref: 7,
        reference: "",
        data: [],
        batch_id: null,
        client_reference: {},
        messageId: {},
        context: null,
        request_id: "",
        payload: 7,
        object: null,
      },
    ]) {
      expect(await source.read(await carrier.sign(content, { at: now }), now)).toMatchObject({ refused: "malformed" });
    }
  });

  it("rejects invalid requests without throwing, and never shows the number", async () => {
    const request = await good(carrier);
    const bodies = [
      "",
      "null",
      "[]",
      "{}",
      '"',
      "{",
      '{"a":',
      '{"data":{"payload":{"to":null}}}',
      "a=b&c",
      "%zz=%",
      "\u0000",
      '{"__proto__":{"x":1}}',
      "9".repeat(5000),
    ].map((text) => Buffer.from(text));
    for (const body of [...bodies, Buffer.from([0xff, 0xfe, 0x80]), Buffer.alloc(70_000, 0x5b)]) {
      for (const changed of [
        { ...request, body },
        aReceipt({ body }),
        aReceipt({ body, url: "nonsense", method: "PURGE" }),
        { ...request, url: "", body },
        withHeader({ ...request, body }, "authorization", () => "Bearer a.b.c"),
      ]) {
        const reading = await source.read(changed, now);
        if ("receipts" in reading) expect(name, "only a GET carrier may take a request whose body is empty").toBe("messagebird");
        else expect(reading.reason).not.toMatch(/4155552671/);
      }
    }
  });
});

describe("rotation of secrets, and tolerance", () => {
  it("accepts the old and the new secret, and no third one", async () => {
    const sources: [Signed, ReceiptSource][] = [
      [signed["twilio"]!, twilioReceipts({ authToken: ["new", "twilio-auth-token"] })],
      [signed["vonage"]!, vonageReceipts({ signatureSecret: ["new", "vonage-signature-secret"] })],
      [signed["messagebird"]!, messageBirdReceipts({ signingKey: ["new", "messagebird-signing-key"] })],
      [signed["plivo"]!, plivoReceipts({ authToken: ["new", "plivo-auth-token"] })],
      [signed["sinch"]!, sinchReceipts({ webhookSecret: ["new", "sinch-webhook-secret"] })],
      [signed["telegram"]!, telegramReceipts({ token: ["new", "telegram-token"] })],
      [signed["whatsapp"]!, whatsappReceipts({ appSecret: ["new", "meta-app-secret"], verifyToken: "v" })],
    ];
    for (const [carrier, source] of sources) {
      expect(await source.read(await good(carrier), now)).toHaveProperty("receipts.length", 1);
      expect(await source.read(await good(carrier, { secret: "new" }), now)).toHaveProperty("receipts.length", 1);
      expect(await source.read(await good(carrier, { secret: "third" }), now)).toHaveProperty("refused", "signature");
    }
  });

  it("applies the option `tolerance`", async () => {
    const strict = sinchReceipts({ webhookSecret: "sinch-webhook-secret", tolerance: 10 });
    expect(await strict.read(await good(signed["sinch"]!, { at: now - 12_000 }), now)).toMatchObject({ refused: "expired" });
    expect(await strict.read(await good(signed["sinch"]!, { at: now - 9000 }), now)).toHaveProperty("receipts.length", 1);
  });
});

describe("the carriers' error codes", () => {
  it.each([
    ["twilio", { MessageSid: "SM1", MessageStatus: "undelivered", ErrorCode: "30003" }, "30003"],
    ["twilio", { MessageSid: "SM1", MessageStatus: "failed", ErrorCode: "The number +14155552671" }, undefined],
    [
      "vonage",
      {
        message_uuid: "m1",
        status: "rejected",
        error: { type: "https://developer.vonage.com/api-errors/messages#1260", title: "1260", detail: "to 14155552671" },
      },
      "1260",
    ],
    ["vonage", { message_uuid: "m1", status: "rejected", error: { title: "1260" } }, "1260"],
    ["plivo", { MessageUUID: "m1", Status: "failed", ErrorCode: "300" }, "300"],
    ["plivo", { MessageUUID: "m1", Status: "delivered", ErrorCode: "000" }, undefined],
    ["messagebird", { id: "m1", status: "delivery_failed", statusErrorCode: "104" }, "104"],
    ["sinch", { type: "recipient_delivery_report_sms", batch_id: "m1", status: "Failed", code: 402 }, "402"],
    ["sinch", { type: "recipient_delivery_report_sms", batch_id: "m1", status: "Delivered", code: 0 }, undefined],
    [
      "telnyx",
      {
        data: {
          event_type: "message.finalized",
          payload: { id: "m1", to: [{ status: "delivery_failed" }], errors: [{ code: "40008", detail: "+14155552671" }] },
        },
      },
      "40008",
    ],
    ["twilio", { MessageSid: "SM1", MessageStatus: "undelivered", To: "whatsapp:+14155552671", ErrorCode: "63024" }, "63024"],
    [
      "whatsapp",
      statusWebhook({ id: "wamid.1", status: "failed", timestamp: "1800000000", errors: [{ code: 131026, title: "Message undeliverable to 14155552671" }] }),
      "131026",
    ],
    ["aws", { eventType: "TEXT_CARRIER_BLOCKED", messageId: "m1", messageStatus: "CARRIER_BLOCKED" }, "CARRIER_BLOCKED"],
  ])("%s: %j has the error %s", async (name, content, error) => {
    const carrier = signed[name]!;
    const reading = await carrier.source.read(await carrier.sign(content, { at: now }), now);
    if (!("receipts" in reading)) throw new Error(reading.reason);
    expect(reading.receipts).toHaveLength(1);
    expect(reading.receipts[0]?.error).toBe(error);
  });
});

it("plivo: the main account's signature counts as V3 or V2, and a valid V2 signature does not make up for an invalid V3 one", async () => {
  const { source } = signed["plivo"]!;
  const request = await good(signed["plivo"]!);
  const v3 = request.header("x-plivo-signature-v3");
  const named = (names: Record<string, string | undefined>) => ({
    ...request,
    header: (asked: string) => (asked in names ? names[asked] : request.header(asked)),
  });
  expect(await source.read(named({ "x-plivo-signature-v3": undefined, "x-plivo-signature-ma-v3": v3 }), now)).toHaveProperty("receipts.length", 1);
  expect(await source.read(named({ "x-plivo-signature-v3": "AAAA", "x-plivo-signature-ma-v3": v3 }), now)).toHaveProperty("receipts.length", 1);
  const v2 = createHmac("sha256", "plivo-auth-token")
    .update(`${request.url.replace(/\?.*/, "")}1`)
    .digest("base64");
  const both = { "x-plivo-signature-v2": v2, "x-plivo-signature-v2-nonce": "1" };
  const noV3 = { "x-plivo-signature-v3": undefined, "x-plivo-signature-v3-nonce": undefined };
  expect(await source.read(named({ ...both, ...noV3 }), now)).toMatchObject({ vouched: false });
  const main = { ...both, "x-plivo-signature-v2": "AAAA", "x-plivo-signature-ma-v2": v2, ...noV3 };
  expect(await source.read(named(main), now)).toMatchObject({ vouched: false });
  expect(await source.read(named({ ...both, "x-plivo-signature-v3": "AAAA" }), now)).toMatchObject({ refused: "signature" });
});

it("aws: a TEXT_SUCCESSFUL event marked as final gives delivered", async () => {
  const { source, report, sign } = signed["aws"]!;
  expect(await source.read(await sign({ ...report("SUCCESSFUL"), isFinal: true }, { at: now }), now)).toMatchObject({ receipts: [{ status: "delivered" }] });
});

it.each([
  ["aws", { eventType: "VOICE_COMPLETED", messageId: "m1" }],
  ["aws", { eventType: "MEDIA_DELIVERED", messageId: "m1" }],
  ["sinch", { type: "delivery_report_sms", batch_id: "m1", statuses: [], total_message_count: 1 }],
  ["telnyx", { data: { event_type: "message.received", payload: { id: "m1" } } }],
  ["telegram", { request_id: "1", verification_status: { status: "code_valid", updated_at: 1 } }],
  [
    "whatsapp",
    { object: "whatsapp_business_account", entry: [{ changes: [{ field: "messages", value: { messages: [{ from: "14155552671", type: "text" }] } }] }] },
  ],
  ["whatsapp", { object: "whatsapp_business_account", entry: [{ changes: [{ field: "message_template_status_update", value: { event: "APPROVED" } }] }] }],
])("%s: other authentic events at the same URL give no receipts: %j", async (name, content) => {
  const { source, sign } = signed[name]!;
  expect(await source.read(await sign(content, { at: now }), now)).toEqual({ receipts: [] });
});

describe("whatsapp", () => {
  const { source } = signed["whatsapp"]!;
  const subscribe = (query: Record<string, string>) =>
    source.read(aReceipt({ method: "GET", url: `https://otp.example/receipts/whatsapp?${new URLSearchParams(query)}` }), now);
  const good = { "hub.mode": "subscribe", "hub.verify_token": "verify-token", "hub.challenge": "1158201444" };

  it("returns the challenge by which Meta verifies the URL, only for the verify token", async () => {
    expect(await subscribe(good)).toEqual({ receipts: [], reply: { status: 200, body: "1158201444", contentType: "text/plain" } });
    for (const token of ["", "verify-toke", "verify-token2", "VERIFY-TOKEN"])
      expect(await subscribe({ ...good, "hub.verify_token": token })).toMatchObject({ refused: "signature" });
    for (const challenge of ["", "<script>", "a b", "x".repeat(300)])
      expect(await subscribe({ ...good, "hub.challenge": challenge })).toMatchObject({ refused: "malformed" });
    expect(await subscribe({ ...good, "hub.mode": "unsubscribe" })).toMatchObject({ refused: "malformed" });
    expect(await subscribe({})).toMatchObject({ refused: "malformed" });
  });

  it("reads several statuses of one webhook, with and without our reference", async () => {
    const webhook = statusWebhook(
      { id: "wamid.1", status: "read", timestamp: "1800000000", biz_opaque_callback_data: reference },
      { id: "wamid.2", status: "failed", timestamp: "1800000001", errors: [{ code: 131049 }] },
      { id: "wamid.3", status: "sent", timestamp: "1800000002", biz_opaque_callback_data: "somebody else's" },
    );
    expect(await source.read(await signWhatsapp(webhook, { at: now }), now)).toEqual({
      receipts: [
        { messageId: "wamid.1", idSpace: "whatsapp", status: "delivered", at: 1_800_000_000_000, reference },
        { messageId: "wamid.2", idSpace: "whatsapp", status: "undeliverable", at: 1_800_000_001_000, error: "131049" },
        { messageId: "wamid.3", idSpace: "whatsapp", status: "in_transit", at: 1_800_000_002_000 },
      ],
    });
  });

  it("rejects a body that was serialized again with the same content", async () => {
    const request = await signWhatsapp(statusWebhook({ id: "wamid.1", status: "sent" }), { at: now });
    const body = Buffer.from(JSON.stringify(JSON.parse(Buffer.from(request.body).toString()), undefined, 1));
    expect(await source.read({ ...request, body }, now)).toMatchObject({ refused: "signature" });
  });
});

describe("carriers that do not sign", () => {
  it("infobip: reads several results at once, with intermediate ones as in transit", async () => {
    const source = infobipReceipts();
    expect(source.provider).toBe("infobip");
    const result = (groupName: string, name: string, error = "NO_ERROR") => ({
      messageId: `${authentication}/2`,
      to: "14155552671",
      doneAt: "2027-01-01T11:59:59.000+0000",
      status: { groupName, name },
      error: { name: error },
      callbackData: reference,
    });
    const body = JSON.stringify({
      results: [
        result("PENDING", "PENDING_WAITING_DELIVERY"),
        result("DELIVERED", "DELIVERED_TO_OPERATOR"),
        result("DELIVERED", "DELIVERED_TO_HANDSET"),
        result("EXPIRED", "EXPIRED_EXPIRED", "EC_ABSENT_SUBSCRIBER"),
        result("REJECTED", "REJECTED_NETWORK"),
        result("UNDELIVERABLE", "UNDELIVERABLE_NOT_DELIVERED"),
        result("OK", "OTHER"),
      ],
    });
    const reading = await source.read(aReceipt({ body }), now);
    const base = { messageId: `${authentication}/2`, at: Date.UTC(2027, 0, 1, 11, 59, 59), reference };
    expect(reading).toEqual({
      vouched: false,
      ignored: [reference],
      receipts: [
        { ...base, status: "in_transit" },
        { ...base, status: "in_transit" },
        { ...base, status: "delivered" },
        { ...base, status: "undeliverable", error: "EC_ABSENT_SUBSCRIBER" },
        { ...base, status: "undeliverable" },
        { ...base, status: "undeliverable" },
      ],
    });
    for (const nonsense of ["", "{}", '{"results":{}}', '{"results":[null]}', '{"results":[{"messageId":"m"}]}']) {
      expect(await source.read(aReceipt({ body: nonsense }), now)).toMatchObject({ refused: "malformed" });
    }
  });

  const secret = "at-secret-of-the-dashboard";
  const dashboard = `https://otp.example/receipts/africastalking?key=${secret}`;

  it.each([
    ["Sent", "submitted"],
    ["Submitted", "in_transit"],
    ["Buffered", "in_transit"],
    ["Success", "delivered"],
    ["Rejected", "undeliverable"],
    ["Failed", "undeliverable"],
    ["AbsentSubscriber", "undeliverable"],
    ["Expired", "undeliverable"],
  ])("africastalking: %s is %s", async (word, status) => {
    const source = africasTalkingReceipts({ secret });
    expect(source.provider).toBe("africastalking");
    const form = new URLSearchParams({
      id: "ATXid_1",
      status: word,
      phoneNumber: "+254712345678",
      networkCode: "63902",
      failureReason: word === "Failed" ? "UserInBlackList" : "",
      retryCount: "0",
    });
    const reading = await source.read(aReceipt({ body: form.toString(), url: dashboard }), now);
    expect(reading).toEqual({
      receipts: [{ messageId: "ATXid_1", idSpace: "africastalking", status, ...(word === "Failed" ? { error: "UserInBlackList" } : {}) }],
    });
  });

  it("africastalking: rejects receipts without the secret in the dashboard's URL, and accepts two secrets during rotation", async () => {
    const body = "id=ATXid_1&status=Success";
    const source = africasTalkingReceipts({ secret: [secret, "the-secret-before-that"] });
    for (const url of [dashboard, dashboard.replace(secret, "the-secret-before-that")])
      expect(await source.read(aReceipt({ body, url }), now)).toHaveProperty("receipts");
    for (const query of ["", "?key=", `?key=${secret}x`, `?key=${secret.slice(0, -1)}`, `?KEY=${secret}`, `?r=${secret}`])
      expect(await source.read(aReceipt({ body, url: dashboard.replace(/\?.*/, query) }), now)).toMatchObject({ refused: "signature" });
    expect(await source.read(aReceipt({ body: `${body}&key=${secret}`, url: dashboard.replace(/\?.*/, "") }), now)).toMatchObject({ refused: "signature" });
  });

  it("africastalking: invalid bodies are malformed", async () => {
    const source = africasTalkingReceipts({ secret });
    for (const body of ["", "id=1", "status=Success", "{}", "id=a%20b&status=Success"])
      expect(await source.read(aReceipt({ body, url: dashboard }), now)).toMatchObject({ refused: "malformed" });
    expect(await source.read(aReceipt({ body: Buffer.from([0xff]), url: dashboard }), now)).toMatchObject({ refused: "malformed" });
  });

  it("http: reads a dashboard's URL with a secret and several reports at once, as Gupshup and others post them", async () => {
    const gupshup = httpReceipts({
      provider: "gupshup",
      secret: "gupshup-secret-in-url",
      reports: "response",
      messageId: "externalId",
      status: "eventType",
      at: "eventTs",
      error: "cause",
      statuses: { DELIVERED: "delivered", FAILED: "undeliverable" },
    });
    const url = "https://otp.example/receipts/gupshup?key=gupshup-secret-in-url";
    const events = [
      { externalId: "3562707498794989059-328736121207676738", eventType: "DELIVERED", eventTs: 1_526_347_800_000, destAddr: 919892488888, cause: "SUCCESS" },
      { externalId: "3798318073013708082-252169030017029882", eventType: "FAILED", eventTs: 1_526_347_800_000, cause: "UNKNOWN_SUBSCRIBER" },
      { externalId: "x", eventType: "SENT" },
    ];
    const reading = {
      receipts: [
        { messageId: events[0]?.externalId, idSpace: "gupshup", status: "delivered", at: 1_526_347_800_000, error: "SUCCESS" },
        { messageId: events[1]?.externalId, idSpace: "gupshup", status: "undeliverable", at: 1_526_347_800_000, error: "UNKNOWN_SUBSCRIBER" },
      ],
    };
    const list = JSON.stringify(events);
    for (const body of [list, `{"response":${list}}`, new URLSearchParams({ response: list }).toString()])
      expect(await gupshup.read(aReceipt({ body, url }), now)).toEqual(reading);
    expect(await gupshup.read(aReceipt({ body: list, url: url.replace(/key=.*/, "key=x") }), now), "then only references count").toMatchObject({
      vouched: false,
    });
    for (const body of ['[{"externalId":"x"}]', "[null]", "[[]]", '["x"]'])
      expect(await gupshup.read(aReceipt({ body, url }), now)).toMatchObject({ refused: "malformed" });
  });

  it("http: ignores the reports of another system's messages, whose reference is not ours (docs/contract.md#receipt-reference)", async () => {
    const source = httpReceipts({ secret: "a-secret-in-the-url", reference: "ref", statuses: { DELIVRD: "delivered" } });
    const body = JSON.stringify(["order-77", reference].map((ref) => ({ ref, status: "DELIVRD" })));
    const url = "https://otp.example/receipts/http?key=a-secret-in-the-url";
    expect(await source.read(aReceipt({ body, url }), now)).toEqual({ receipts: [{ reference, status: "delivered" }] });
  });

  it("http: reads a query, a form and JSON by the field names in its options", async () => {
    const kannel = httpReceipts({
      provider: "kannel",
      status: "type",
      messageId: "mid",
      statuses: { "1": "delivered", "2": "undeliverable", "8": "submitted" },
    });
    expect(kannel.provider).toBe("kannel");
    expect(await kannel.read(aReceipt({ method: "GET", url: "https://otp.example/receipts/kannel?a=1&t=x&type=1&mid=77" }), now)).toEqual({
      vouched: false,
      ignored: [],
      receipts: [{ messageId: "77", status: "delivered" }],
    });
    expect(await kannel.read(aReceipt({ url: "https://otp.example/receipts/kannel?a=1", body: "type=2&mid=77" }), now)).toEqual({
      vouched: false,
      ignored: [],
      receipts: [{ messageId: "77", status: "undeliverable" }],
    });
    expect(await kannel.read(aReceipt({ body: '{"type":8,"mid":77}' }), now)).toEqual({
      vouched: false,
      ignored: [],
      receipts: [{ messageId: "77", status: "submitted" }],
    });
    const deep = httpReceipts({
      status: "data.state",
      messageId: "data.id",
      reference: "data.ref",
      at: "data.when",
      error: "data.error",
      statuses: { DELIVRD: "delivered", UNDELIV: "undeliverable" },
    });
    const body = JSON.stringify({ data: { state: "undeliv", id: "m1", ref: reference, when: "2027-01-01T00:00:00Z", error: "E7" } });
    expect(await deep.read(aReceipt({ body }), now)).toEqual({
      vouched: false,
      ignored: [],
      receipts: [{ messageId: "m1", status: "undeliverable", at: Date.UTC(2027, 0, 1), error: "E7", reference }],
    });
    expect(await deep.read(aReceipt({ body: JSON.stringify({ data: { state: "ENROUTE", id: "m1" } }) }), now)).toEqual({
      vouched: false,
      ignored: [],
      receipts: [],
    });
    expect(await deep.read(aReceipt({ body: `\uFEFF${body}` }), now), "a byte order mark").toHaveProperty("receipts.length", 1);
    for (const nonsense of ["", "[null]", "null", "{", '{"data":[]}'])
      expect(await deep.read(aReceipt({ body: nonsense }), now)).toMatchObject({ refused: "malformed" });
  });
});

it.each<[string, () => unknown, RegExp]>([
  ["twilio", () => twilioReceipts({} as never), /twilioReceipts: option authToken is missing\. Pass /],
  ["twilio", () => twilioReceipts({ authToken: [] }), /option authToken is an empty list/],
  ["vonage", () => vonageReceipts({ signatureSecret: " " }), /vonageReceipts: option signatureSecret must be a non-empty string/],
  ["vonage", () => vonageReceipts({ signatureSecret: "x", tolerance: 0 }), /option tolerance must be a number of seconds, above 0 and at most 24 days/],
  ["aws", () => awsReceipts({} as never), /awsReceipts: option topicArn is missing/],
  ["aws", () => awsReceipts({ topicArn: [] }), /option topicArn is an empty list/],
  ["aws", () => awsReceipts({ topicArn: "sms-events" }), /option topicArn is not the ARN of an SNS topic/],
  ["messagebird", () => messageBirdReceipts({ signingKey: ["a", ""] }), /option signingKey must be a non-empty string/],
  ["plivo", () => plivoReceipts({} as never), /option authToken is missing/],
  ["sinch", () => sinchReceipts({ webhookSecret: "s", tolerance: Number.NaN }), /option tolerance/],
  ["telnyx", () => telnyxReceipts({ publicKey: "c2hvcnQ=" }), /option publicKey is not an Ed25519 key/],
  ["telegram", () => telegramReceipts({} as never), /telegramReceipts: option token is missing/],
  ["telegram", () => telegramReceipts({ token: "t", tolerance: -1 }), /option tolerance/],
  ["whatsapp", () => whatsappReceipts({ verifyToken: "v" } as never), /whatsappReceipts: option appSecret is missing/],
  ["whatsapp", () => whatsappReceipts({ appSecret: "s" } as never), /option verifyToken is missing\. Make one with/],
  ["africastalking", () => africasTalkingReceipts({} as never), /africasTalkingReceipts: option secret is missing\. Make one with/],
  ["africastalking", () => africasTalkingReceipts({ secret: "short" }), /option secret must be 16 or more letters/],
  ["africastalking", () => africasTalkingReceipts({ secret: "white space is no part of a URL" }), /option secret must be 16 or more letters/],
  ["http", () => httpReceipts({ secret: [], statuses: { a: "delivered" } }), /option secret is an empty list/],
  ["http", () => httpReceipts({ statuses: {} }), /option statuses is missing/],
  ["http", () => httpReceipts({ statuses: { ok: "DELIVERED" as never } }), /option statuses.ok is not a status. Pass one of submitted, in_transit/],
  ["http", () => httpReceipts({ provider: "My Carrier", statuses: { a: "delivered" } }), /option provider must be lower-case letters/],
])("%s: invalid options throw at construction, with the fix", (_, make, message) => {
  expect(make).toThrow(TypeError);
  expect(make).toThrow(message);
});
