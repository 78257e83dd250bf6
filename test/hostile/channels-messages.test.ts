import { describe, expect, it } from "vitest";
import { telegramReceipts, telegramSender } from "../../adapters/sms/telegram.js";
import { twilioReceipts, twilioSender, twilioWhatsappSender } from "../../adapters/sms/twilio.js";
import { vonageReceipts, vonageWhatsappSender } from "../../adapters/sms/vonage.js";
import { whatsappReceipts, whatsappSender } from "../../adapters/sms/whatsapp.js";
import { router } from "../../src/routing/router.js";
import { account, change, cloudStatus, meta, metaPost, metaStatuses, signMeta, startCloudApi, whatsappRoute } from "./channel-vendors/meta.js";
import { type Hook, startVendor } from "./channel-vendors/server.js";
import { gatewayReport, gatewayToken, signGateway, startGateway } from "./channel-vendors/telegram.js";
import { contentSids, messageStatus, startTwilio, twilioAccount, twilioPost } from "./channel-vendors/twilio.js";
import { signVonage, startVonage, vonageAccount, vonageStatus } from "./channel-vendors/vonage.js";
import { aCode, leaks, mounted, reference, within } from "./channels-kit.js";

describe("Telegram: the message", () => {
  const gateway = async (options: object = {}) => {
    const vendor = await startGateway();
    return { vendor, sender: telegramSender({ token: gatewayToken, baseUrl: vendor.url, ...options }) };
  };

  it("carries the code, the reference and the receipt URL", async () => {
    const { vendor, sender } = await gateway({ senderUsername: "acme_codes" });
    const message = aCode();
    expect(await sender.send(message, within())).toMatchObject({ outcome: "accepted" });
    expect(vendor.taken[0]).toMatchObject({ phone_number: message.to, code: message.code, payload: reference, sender_username: "acme_codes" });
    expect(vendor.taken[0]!.callback_url).toMatch(/^https:\/\/otp\.example\/receipts\/telegram(\?|$)/);
  });

  it("needs neither callback nor reference without receipts", async () => {
    const cases: readonly (readonly [object, object])[] = [
      [{ receipts: false }, {}],
      [{}, { receipt_reference: undefined, receipt_url: undefined }],
    ];
    for (const [options, fields] of cases) {
      const { vendor, sender } = await gateway(options);
      expect(await sender.send(aCode(fields), within())).toMatchObject({ outcome: "accepted" });
      expect(vendor.taken[0]!.callback_url).toBeUndefined();
    }
  });

  it.each([1, 4, 29, 30, 31, 60, 600, 3599, 3600, 3601, 86_400, 364 * 86_400])(
    "has a ttl of 30 to 3600 for a code that lives for another %i s",
    async (seconds) => {
      const { vendor, sender } = await gateway();
      expect(await sender.send(aCode({ expires_at: Date.now() + seconds * 1000 + 400 }), within())).toMatchObject({ outcome: "accepted" });
      expect(vendor.taken[0]!.ttl).toBeGreaterThanOrEqual(Math.max(30, Math.min(3600, seconds) - 2));
      expect(vendor.taken[0]!.ttl).toBeLessThanOrEqual(Math.max(30, Math.min(3600, seconds)));
    },
  );

  it("has the ttl of the option, which cannot be a value that the vendor rejects", async () => {
    const { vendor, sender } = await gateway({ ttl: 45 });
    await sender.send(aCode(), within());
    expect(vendor.taken[0]!.ttl).toBe(45);
    for (const ttl of [29, 3601, 0, -1, 30.5, Number.NaN, "60", null])
      expect(() => telegramSender({ token: gatewayToken, ttl: ttl as number }), String(ttl)).toThrow();
  });

  it("accepts codes of 4 to 8 digits, and rejects longer ones with the reason", async () => {
    const { vendor, sender } = await gateway();
    for (const code of ["0000", "48291", "482913", "4829131", "00000001"])
      expect(await sender.send(aCode({ code }), within())).toMatchObject({ outcome: "accepted" });
    expect(vendor.taken.map(({ code }) => code)).toEqual(["0000", "48291", "482913", "4829131", "00000001"]);
    for (const code of ["482913482", "4829134829"]) {
      const outcome = await sender.send(aCode({ code }), within());
      expect(outcome).toMatchObject({ outcome: "rejected", reason: expect.stringMatching(/8|digit|CODE/i) });
      expect(JSON.stringify(outcome)).not.toContain(code);
    }
  });

  it.each(["PHONE_NUMBER_NOT_FOUND", "PHONE_NUMBER_NOT_AVAILABLE"])("%s: rejected, and the number is reported as not on Telegram", async (error) => {
    const { vendor, sender } = await gateway();
    const message = aCode();
    vendor.errors.set(message.to, error);
    expect(await sender.send(message, within())).toMatchObject({ outcome: "rejected", unreachable: true, reason: expect.stringContaining(error) });
  });

  it.each(["PHONE_NUMBER_INVALID", "FLOOD_WAIT_86400", "BALANCE_NOT_ENOUGH", "ACCESS_TOKEN_INVALID", "SENDER_NOT_VERIFIED", "TTL_INVALID", "SOMETHING_NEW"])(
    "%s: rejected, and the number is not reported as unreachable",
    async (error) => {
      const { vendor, sender } = await gateway();
      const message = aCode();
      vendor.errors.set(message.to, error);
      const outcome = await sender.send(message, within());
      expect(outcome).toMatchObject({ outcome: "rejected" });
      expect(outcome).not.toHaveProperty("unreachable");
      expect(JSON.stringify(outcome)).toContain(error.replace(/_\d+$/, ""));
    },
  );

  it("MESSAGE_ALREADY_SENT counts as accepted", async () => {
    const { vendor, sender } = await gateway();
    const message = aCode();
    vendor.errors.set(message.to, "MESSAGE_ALREADY_SENT");
    expect(await sender.send(message, within())).toMatchObject({ outcome: "accepted" });
  });

  it("a response whose `ok` is false, missing or not a boolean is not an acceptance", async () => {
    const { vendor, sender } = await gateway();
    for (const body of [{ ok: "false", error: "X" }, { ok: 0 }, { ok: null }, {}, { ok: false }]) {
      vendor.trick = (response) => void response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
      expect((await sender.send(aCode(), within())).outcome, JSON.stringify(body)).not.toBe("accepted");
    }
  });

  it.each([
    ["of http, as in development", "http://otp.example"],
    ["too long for the Gateway", `https://otp.example/${"a".repeat(200)}`],
  ])("a public address %s does not stop the messages", async (_, base) => {
    const { sender } = await gateway();
    expect(await sender.send(aCode({ receipt_url: `${base}/receipts/{provider}?r=${reference}` }), within())).toMatchObject({ outcome: "accepted" });
  });

  it("a public address of 160 characters is short enough", async () => {
    const { vendor, sender } = await gateway();
    const receipt_url = `${"https://otp.example/".padEnd(160, "a")}/receipts/{provider}?r=${reference}`;
    expect(await sender.send(aCode({ receipt_url }), within())).toMatchObject({ outcome: "accepted" });
    expect(vendor.taken).toHaveLength(1);
  });
});

/** A verifier that sends its codes to a Gateway run by the test. */
async function byTelegram() {
  const vendor = await startGateway();
  const one = await mounted(telegramSender({ token: gatewayToken, baseUrl: vendor.url }), [telegramReceipts({ token: gatewayToken })]);
  const id = await one.begin();
  return {
    one,
    id,
    vendor,
    message: vendor.taken[0]!,
    report: (status: string | undefined, more?: object) => gatewayReport(vendor.taken[0]!, status, one.clock.now(), more),
  };
}

describe("Telegram: receipts", () => {
  it.each<[string, readonly string[], string | undefined]>([
    ["sent", ["sent"], "in_transit"],
    ["sent, then delivered", ["sent", "delivered"], "delivered"],
    ["read without delivered", ["read"], "delivered"],
    ["expired", ["sent", "expired"], "undeliverable"],
    ["revoked", ["revoked"], "undeliverable"],
    ["delivered before sent", ["delivered", "sent"], "delivered"],
    ["expired, then delivered: final is final", ["expired", "delivered"], "undeliverable"],
    ["a status of next year", ["pondered"], undefined],
  ])("%s", async (_, statuses, expected) => {
    const { one, id, report } = await byTelegram();
    for (const status of statuses) expect((await one.network(report(status))).status).toBe(200);
    expect(await one.delivery(id)).toBe(expected);
  });

  it("a repeated report is passed on once", async () => {
    const { one, id, report } = await byTelegram();
    const word = report("delivered");
    for (let i = 0; i < 3; i++) expect((await one.network(word)).status).toBe(200);
    expect(await one.told(id)).toEqual(["1:submitted", "1:delivered"]);
  });

  it("a report without a delivery status gives 200 and settles nothing", async () => {
    const { one, id, report } = await byTelegram();
    expect((await one.network(report(undefined, { verification_status: { status: "code_valid", updated_at: 1, code_entered: "482913" } }))).status).toBe(200);
    expect(await one.delivery(id)).toBeUndefined();
  });

  it("a report with a missing, invalid or unknown payload gives 200", async () => {
    const { one, id, report } = await byTelegram();
    for (const payload of [undefined, "campaign-7", "", 7, null, { a: 1 }, reference]) {
      const { status } = await one.network(report("delivered", { payload, request_id: "999" }));
      expect(status, String(payload)).toBe(200);
    }
    expect(await one.delivery(id)).toSatisfy((delivery) => delivery === undefined || delivery === "delivered");
  });

  it("a body that differs from the signed bytes gives 403", async () => {
    const { one, id, report } = await byTelegram();
    const word = report("delivered");
    for (const body of [JSON.stringify(JSON.parse(word.body), null, 1), `${word.body}\n`, word.body.replace("delivered", "delivereD"), ""])
      expect((await one.network({ ...word, body })).status).toBe(403);
    expect(await one.delivery(id)).toBeUndefined();
  });

  it("a forged signature or timestamp gives 403", async () => {
    const { one, id, report } = await byTelegram();
    const { url, body, headers = {} } = report("delivered");
    const seconds = headers["x-request-timestamp"]!;
    const right = headers["x-request-signature"]!;
    const forged: Record<string, string>[] = [
      {},
      { "x-request-timestamp": seconds },
      { "x-request-signature": right },
      { "x-request-timestamp": seconds, "x-request-signature": "" },
      { "x-request-timestamp": seconds, "x-request-signature": right.slice(0, 32) },
      { "x-request-timestamp": seconds, "x-request-signature": signGateway(seconds, body, "another token") },
      { "x-request-timestamp": String(Number(seconds) + 1), "x-request-signature": right },
      { "x-request-timestamp": "", "x-request-signature": signGateway("", body) },
      { "x-request-timestamp": "NaN", "x-request-signature": signGateway("NaN", body) },
      { "x-request-timestamp": "1e99", "x-request-signature": signGateway("1e99", body) },
      { "x-request-timestamp": "Infinity", "x-request-signature": signGateway("Infinity", body) },
      { "x-request-timestamp": `${seconds}000`, "x-request-signature": signGateway(`${seconds}000`, body) },
    ];
    for (const one403 of forged) expect((await one.network({ url, body, headers: one403 })).status, JSON.stringify(one403)).toBe(403);
    expect(await one.delivery(id)).toBeUndefined();
  });

  it.each([3600, -3600])("a correctly signed report that is %i s old gives 403", async (off) => {
    const { one, id, message } = await byTelegram();
    expect((await one.network(gatewayReport(message, "delivered", one.clock.now() - off * 1000))).status).toBe(403);
    expect(await one.delivery(id)).toBeUndefined();
  });

  it("malformed bodies with a valid signature give 200 or 400, never an error of ours", async () => {
    const { one, id, message } = await byTelegram();
    const seconds = String(Math.floor(one.clock.now() / 1000));
    for (const body of [
      "",
      "null",
      "[]",
      "7",
      '"x"',
      "{",
      "{}",
      '{"delivery_status":null}',
      '{"delivery_status":[]}',
      '{"delivery_status":{"status":7}}',
      "[".repeat(50_000),
      "\ud800",
      "payload=x",
    ]) {
      const hook: Hook = { url: message.callback_url!, headers: { "x-request-timestamp": seconds, "x-request-signature": signGateway(seconds, body) }, body };
      expect([200, 400], body.slice(0, 30)).toContain((await one.network(hook)).status);
    }
    expect(await one.delivery(id)).toBeUndefined();
    expect(one.log.filter(({ level }) => level === "error")).toEqual([]);
  });

  it("during a rotation, a report signed with the previous token counts", async () => {
    const vendor = await startGateway();
    const one = await mounted(telegramSender({ token: gatewayToken, baseUrl: vendor.url }), [telegramReceipts({ token: ["the next token", gatewayToken] })]);
    const id = await one.begin();
    expect((await one.network(gatewayReport(vendor.taken[0]!, "read", one.clock.now()))).status).toBe(200);
    expect(await one.delivery(id)).toBe("delivered");
  });
});

describe("Telegram, before SMS in a router", () => {
  const sms = async () => {
    const texts: URLSearchParams[] = [];
    const vendor = await startVendor((asked) => {
      texts.push(new URLSearchParams(asked.body));
      return { status: 201, body: { sid: "SM1", status: "queued" } };
    });
    return { texts, sender: twilioSender({ ...twilioAccount, from: "+15005550006", baseUrl: vendor.url }) };
  };
  const both = async () => {
    const [gateway, text] = [await startGateway(), await sms()];
    const sender = router({
      routes: [
        { name: "telegram", sender: telegramSender({ token: gatewayToken, baseUrl: gateway.url }), priority: 0 },
        { name: "sms", sender: text.sender },
      ],
    });
    const one = await mounted(sender, [telegramReceipts({ token: gatewayToken }), twilioReceipts({ authToken: twilioAccount.authToken })]);
    return { gateway, text, one };
  };

  it.each(["PHONE_NUMBER_NOT_FOUND", "FLOOD_WAIT_5", "BALANCE_NOT_ENOUGH"])("%s: an SMS follows in the same request, with the same code", async (error) => {
    const { gateway, text, one } = await both();
    gateway.errors.set("+33612345678", error);
    const id = await one.begin("+33612345678");
    expect(text.texts).toHaveLength(1);
    const { code } = one.messageOf(id);
    expect(text.texts[0]!.get("Body")).toContain(code);
    expect(await one.check(id, code)).toMatchObject({ status: "valid" });
  });

  it("HTTP 500, after which the message may have been sent: no SMS", async () => {
    const { gateway, text, one } = await both();
    gateway.trick = (response) => void response.writeHead(500).end();
    const id = await one.begin("+33612345678");
    expect(text.texts).toEqual([]);
    expect((await one.explain(id)).sends.at(-1)).toMatchObject({ route: "telegram", state: "unknown" });
  });
});

/** WhatsApp by the Cloud API, with a template in three languages. */
async function cloud(options: object = {}) {
  const vendor = await startCloudApi();
  const languages = { default: "en_US", fr: "fr", pt: "pt_BR" };
  const sender = whatsappSender({
    token: meta.token,
    phoneNumberId: meta.phoneNumberId,
    template: "verification_code",
    languages,
    baseUrl: vendor.url,
    ...options,
  } as never);
  return { vendor, sender };
}
const metaSource = () => whatsappReceipts({ appSecret: meta.appSecret, verifyToken: meta.verifyToken });

describe("WhatsApp: the message", () => {
  it("has the code twice, in the body and in a button of sub_type url, and our reference", async () => {
    const { vendor, sender } = await cloud();
    const message = aCode({ code: "004829" });
    await sender.send(message, within());
    const sent = JSON.parse(vendor.seen[0]!.body) as Record<string, unknown>;
    expect(sent).toMatchObject({
      messaging_product: "whatsapp",
      to: message.to.slice(1),
      type: "template",
      template: {
        name: "verification_code",
        language: { code: "fr" },
        components: [
          { type: "body", parameters: [{ type: "text", text: "004829" }] },
          { type: "button", sub_type: "url", index: "0", parameters: [{ type: "text", text: "004829" }] },
        ],
      },
      biz_opaque_callback_data: reference,
    });
    expect(vendor.seen[0]!.body).not.toContain(message.text);
    expect(vendor.seen[0]!.path).toBe("/v25.0/106540352242922/messages");
  });

  it("goes to the configured version of the Graph API", async () => {
    const { vendor, sender } = await cloud({ version: "v26.0" });
    await sender.send(aCode(), within());
    expect(vendor.seen[0]!.path).toBe("/v26.0/106540352242922/messages");
  });

  it.each<[string | undefined, string | undefined, string]>([
    [undefined, "FR", "fr"],
    [undefined, "BR", "pt_BR"],
    [undefined, "US", "en_US"],
    [undefined, "JP", "en_US"],
    [undefined, undefined, "en_US"],
    ["pt", "FR", "pt_BR"],
    ["PT-br", "FR", "pt_BR"],
    ["pt-PT", "FR", "pt_BR"],
    ["fr-CA", "US", "fr"],
    ["FR", "US", "fr"],
  ])("locale %s in %s: %s", async (locale, country, language) => {
    const { vendor, sender } = await cloud();
    expect(await sender.send(aCode({ locale, country }), within())).toMatchObject({ outcome: "accepted" });
    expect(vendor.taken[0]!.language).toBe(language);
  });

  it("a locale in the language of the default template gets that template, in any country", async () => {
    const { vendor, sender } = await cloud();
    await sender.send(aCode({ locale: "en-GB", country: "FR" }), within());
    expect(vendor.taken[0]!.language).toBe("en_US");
  });

  it("a locale without a template gets the default template, never an error", async () => {
    const { vendor, sender } = await cloud();
    for (const locale of ["ja", "zh-Hant-TW", "tlh", "x-private", "constructor", "__proto__", "default", "", "*"]) {
      expect(await sender.send(aCode({ locale, country: undefined }), within()), locale).toMatchObject({ outcome: "accepted" });
    }
    expect(new Set(vendor.taken.map(({ language }) => language))).toEqual(new Set(["en_US"]));
  });

  it("a single language is used for every locale", async () => {
    const { vendor, sender } = await cloud({ languages: "pt_BR" });
    await sender.send(aCode({ locale: "fr" }), within());
    expect(vendor.taken[0]!.language).toBe("pt_BR");
  });

  it("131026 in the response: rejected, and the number is reported as not on WhatsApp", async () => {
    const { vendor, sender } = await cloud();
    const message = aCode();
    vendor.errors.set(message.to.slice(1), [400, 131026]);
    expect(await sender.send(message, within())).toMatchObject({ outcome: "rejected", unreachable: true, reason: expect.stringContaining("131026") });
  });

  it.each([1, 2, 131000, 131016])("Meta's own error (%i) with HTTP 500: unknown", async (code) => {
    const { vendor, sender } = await cloud();
    const message = aCode();
    vendor.errors.set(message.to.slice(1), [500, code]);
    expect(await sender.send(message, within())).toMatchObject({ outcome: "unknown", reason: expect.stringContaining("500") });
  });

  it("with an expired token (190), a router sends the code by SMS in the same request", async () => {
    const { vendor, sender } = await cloud({ token: "expired" });
    const texts: string[] = [];
    const carrier = await startVendor((asked) => {
      texts.push(asked.body);
      return { status: 201, body: { sid: "SM1", status: "queued" } };
    });
    const sms = twilioSender({ ...twilioAccount, from: "+15005550006", baseUrl: carrier.url });
    const one = await mounted(
      router({
        routes: [
          { name: "wa", sender, priority: 0 },
          { name: "sms", sender: sms },
        ],
      }),
      [metaSource(), twilioReceipts({ authToken: twilioAccount.authToken })],
    );
    const id = await one.begin();
    expect(texts).toHaveLength(1);
    expect(vendor.taken).toEqual([]);
    const { sends } = await one.explain(id);
    expect(JSON.stringify(sends)).toContain("190");
  });
});

async function byWhatsapp() {
  const { vendor, sender } = await cloud();
  const one = await mounted(sender, [metaSource()]);
  const id = await one.begin();
  const message = vendor.taken[0]!;
  const status = (name: string, how?: Parameters<typeof cloudStatus>[3]) => cloudStatus(message, name, one.clock.now(), how);
  return { one, id, vendor, message, status };
}

describe("WhatsApp: the webhook's setup", () => {
  const ask = (query: string) => ({ method: "GET", url: `${whatsappRoute}?${query}` });

  it("returns the challenge as plain text", async () => {
    const { one } = await byWhatsapp();
    for (const challenge of ["1158201444", "0", "a-b_c.d"]) {
      const query = new URLSearchParams({ "hub.mode": "subscribe", "hub.challenge": challenge, "hub.verify_token": meta.verifyToken });
      const answer = await one.network(ask(query.toString()));
      expect(answer).toMatchObject({ status: 200, type: expect.stringMatching(/^text\/plain/) });
      expect(answer.text).toBe(challenge);
    }
  });

  it("does not return a challenge that a browser could run as a page", async () => {
    const { one } = await byWhatsapp();
    const query = new URLSearchParams({ "hub.mode": "subscribe", "hub.challenge": "<script>alert(1)</script>", "hub.verify_token": meta.verifyToken });
    const { type, text } = await one.network(ask(query.toString()));
    expect(type.startsWith("text/plain") || !text.includes("<script>")).toBe(true);
  });

  it("returns 403 without the challenge for a wrong or missing verify token", async () => {
    const { one } = await byWhatsapp();
    const right = `hub.mode=subscribe&hub.challenge=1158201444`;
    for (const query of [
      right,
      `${right}&hub.verify_token=`,
      `${right}&hub.verify_token=wrong`,
      `${right}&hub.verify_token=${meta.verifyToken}x`,
      `${right}&hub.verify_token=${meta.verifyToken.toUpperCase()}`,
      `${right}&hub_verify_token=${meta.verifyToken}`,
      `${right}&hub.verify_token=wrong&hub.verify_token=${meta.verifyToken}`,
    ]) {
      const answer = await one.network(ask(query));
      expect(answer.status, query).toBe(403);
      expect(answer.text).not.toContain("1158201444");
      expect(answer.text).not.toContain(meta.verifyToken);
    }
  });

  it("returns 400 or 403 for a missing or other mode, or without a challenge", async () => {
    const { one } = await byWhatsapp();
    for (const query of [
      `hub.challenge=1&hub.verify_token=${meta.verifyToken}`,
      `hub.mode=unsubscribe&hub.challenge=1&hub.verify_token=${meta.verifyToken}`,
      `hub.mode=subscribe&hub.verify_token=${meta.verifyToken}`,
      "",
    ])
      expect([400, 403], query).toContain((await one.network(ask(query))).status);
  });
});

describe("WhatsApp: receipts", () => {
  it("131026 three seconds after the 200 is undeliverable, and the code stays live", async () => {
    const { one, id, status } = await byWhatsapp();
    one.clock.advance(3_000);
    expect((await one.network(metaStatuses(status("failed", { code: 131026 })))).status).toBe(200);
    expect(await one.delivery(id)).toBe("undeliverable");
    expect(await one.told(id)).toEqual(["1:submitted", expect.stringMatching(/^1:undeliverable/)]);
    expect(await one.check(id, one.messageOf(id).code)).toMatchObject({ status: "valid" });
  });

  it.each([131026, 131049, 130472])("the error %i is reported unchanged", async (code) => {
    const { one, id, status } = await byWhatsapp();
    await one.network(metaStatuses(status("failed", { code })));
    expect((await one.told(id)).at(-1)).toContain(String(code));
  });

  it("`failed` without our reference finds its message by the id", async () => {
    const { one, id, status } = await byWhatsapp();
    expect((await one.network(metaStatuses(status("failed", { code: 131026, data: false })))).status).toBe(200);
    expect(await one.delivery(id)).toBe("undeliverable");
  });

  it.each<[string, readonly string[], string]>([
    ["sent", ["sent"], "in_transit"],
    ["read without delivered", ["read"], "delivered"],
    ["played", ["played"], "delivered"],
    ["sent, delivered, read", ["sent", "delivered", "read"], "delivered"],
    ["delivered before sent", ["delivered", "sent"], "delivered"],
    ["failed, then delivered: final is final", ["failed", "delivered"], "undeliverable"],
    ["delivered, then failed: final is final", ["delivered", "failed"], "delivered"],
  ])("%s, each in a separate request", async (_, statuses, expected) => {
    const { one, id, status } = await byWhatsapp();
    for (const name of statuses) expect((await one.network(metaStatuses(status(name, { code: 131049 })))).status).toBe(200);
    expect(await one.delivery(id)).toBe(expected);
  });

  it("two statuses in one body are both reported", async () => {
    const { one, id, status } = await byWhatsapp();
    expect((await one.network(metaStatuses(status("sent"), status("delivered")))).status).toBe(200);
    expect(await one.told(id)).toEqual(["1:submitted", "1:in_transit", "1:delivered"]);
  });

  it("a repeated webhook is reported once", async () => {
    const { one, id, status } = await byWhatsapp();
    const word = metaStatuses(status("delivered"));
    for (let i = 0; i < 3; i++) expect((await one.network(word)).status).toBe(200);
    expect((await Promise.all(Array.from({ length: 8 }, () => one.network(word)))).every((answer) => answer.status === 200)).toBe(true);
    expect(await one.told(id)).toEqual(["1:submitted", "1:delivered"]);
  });

  it("a status is reported with the vendor's time", async () => {
    const { one, id, status } = await byWhatsapp();
    one.clock.advance(60_000);
    const word = metaStatuses(status("delivered"));
    const at = one.clock.now();
    one.clock.advance(86_000);
    await one.network(word);
    await one.verifier.flush();
    expect(one.hook.posted.filter(({ event }) => event.data.authentication_uuid === id).at(-1)!.event.timestamp).toBe(new Date(at).toISOString());
  });

  it("statuses of many messages are read from one change, several changes and several entries", async () => {
    const { one, vendor } = await byWhatsapp();
    const ids: string[] = [];
    for (let i = 2; i < 8; i++) ids.push(await one.begin(i));
    const now = one.clock.now();
    const [a, b, c, d, e, f] = vendor.taken
      .slice(1)
      .map((message, i) => cloudStatus(message, i % 2 === 0 ? "read" : "failed", now, { code: 131026, data: i !== 3 }));
    const payload = account(
      [change({ statuses: [a, b] }), change({ statuses: [c] })],
      [change({ statuses: [d] }), change({ messages: [{ from: "33600000000", type: "text" }], statuses: [e, f] })],
    );
    expect((await one.network(metaPost(payload))).status).toBe(200);
    const expected = ["delivered", "undeliverable", "delivered", "undeliverable", "delivered", "undeliverable"];
    expect(await Promise.all(ids.map((id) => one.delivery(id)))).toEqual(expected);
  });

  it("unknown and malformed statuses do not affect others in the same body", async () => {
    const { one, id, status } = await byWhatsapp();
    const odd = [
      { id: 7, status: "sent" },
      { id: "wamid.other", status: "delivered", timestamp: "1700000000", recipient_id: "33600000001" },
      { id: "wamid.other", status: "failed", biz_opaque_callback_data: "campaign" },
      { ...status("delivered"), status: "deleted" },
      { ...status("sent"), timestamp: 17, conversation: null, type: "message" },
    ];
    const answer = await one.network(metaStatuses(...(odd as object[]), status("read")));
    expect(answer.status).toBe(200);
    expect(await one.delivery(id)).toBe("delivered");
  });

  it("a signature does not hold for a re-serialized body: 403", async () => {
    const { one, id, status } = await byWhatsapp();
    const word = metaPost(account([change({ contacts: [{ profile: { name: "Zoë 📞" }, url: "https://a/b" }], statuses: [status("delivered")] })]));
    const again = JSON.stringify(JSON.parse(word.body));
    expect(again).not.toBe(word.body);
    expect((await one.network({ ...word, body: again })).status).toBe(403);
    expect((await one.network({ ...word, headers: { ...word.headers, "x-hub-signature-256": signMeta(again) } })).status).toBe(403);
    expect(await one.delivery(id)).toBeUndefined();
    expect((await one.network(word)).status).toBe(200);
    expect(await one.delivery(id)).toBe("delivered");
  });

  it("a forged signature gives 403", async () => {
    const { one, id, status } = await byWhatsapp();
    const { url, body } = metaStatuses(status("delivered"));
    const right = signMeta(body);
    const { createHmac } = await import("node:crypto");
    const forged: Record<string, string>[] = [
      {},
      { "x-hub-signature-256": "" },
      { "x-hub-signature-256": "sha256=" },
      { "x-hub-signature-256": right.slice(7) },
      { "x-hub-signature-256": right.slice(0, 40) },
      { "x-hub-signature-256": `${right}00` },
      { "x-hub-signature-256": right.replace("sha256", "sha1") },
      { "x-hub-signature": `sha1=${createHmac("sha1", meta.appSecret).update(body).digest("hex")}` },
      { "x-hub-signature-256": `sha1=${createHmac("sha1", meta.appSecret).update(body).digest("hex")}` },
      { "x-hub-signature-256": signMeta(body, "another app's secret") },
      { "x-hub-signature-256": signMeta(body, meta.verifyToken) },
      { "x-hub-signature-256": signMeta("") },
      { "x-hub-signature-256": `${right}, ${right}` },
    ];
    for (const headers of forged) expect((await one.network({ url, body, headers })).status, JSON.stringify(headers)).toBe(403);
    expect((await one.network({ url: `${url}?hub.verify_token=${meta.verifyToken}&hub.mode=subscribe`, body })).status).toBe(403);
    expect(await one.delivery(id)).toBeUndefined();
  });

  it("a GET with a valid verify token and signature settles nothing", async () => {
    const { one, id, status } = await byWhatsapp();
    const { url, headers = {} } = metaStatuses(status("delivered"));
    await one.network({ method: "GET", url: `${url}?hub.mode=subscribe&hub.challenge=1&hub.verify_token=${meta.verifyToken}`, headers });
    expect(await one.delivery(id)).toBeUndefined();
  });

  it("inbound messages, other fields, other objects and account errors give 200, and no warning is logged", async () => {
    const { one, id } = await byWhatsapp();
    const text = { from: "33612000099", id: "wamid.in", timestamp: "1700000000", type: "text", text: { body: "is 482913 the code?" } };
    for (const payload of [
      account([change({ contacts: [{ wa_id: "33612000099", profile: { name: "A" } }], messages: [text] })]),
      account([change({ errors: [{ code: 130501, title: "Message type is not currently supported" }] })]),
      account([change({ event: "APPROVED", message_template_id: 1, message_template_name: "verification_code" }, "message_template_status_update")]),
      account([change({ event: "DISABLED_UPDATE" }, "account_update")]),
      account([change({ statuses: "none" })]),
      account([change({ calls: [{ id: "wacid" }] }, "calls")]),
      account([]),
      account(),
      { object: "page", entry: [{ id: "1", messaging: [] }] },
      { object: "whatsapp_business_account", entry: [{ id: "1", changes: [{ field: "messages" }] }] },
      { object: "whatsapp_business_account", entry: [{ id: "1", changes: [{ field: "messages", value: null }] }] },
      { object: "whatsapp_business_account", entry: [{ id: "1" }] },
    ])
      expect((await one.network(metaPost(payload))).status, JSON.stringify(payload).slice(0, 120)).toBe(200);
    expect(await one.delivery(id)).toBeUndefined();
    expect(one.log.filter(({ level }) => level !== "info")).toEqual([]);
  });

  it("malformed bodies with a valid signature give 200 or 400, never an error of ours", async () => {
    const { one } = await byWhatsapp();
    for (const body of [
      "",
      "null",
      "[]",
      "7",
      "{",
      '{"entry":null}',
      '{"entry":[null,7,[]]}',
      '{"entry":[{"changes":[null,7]}]}',
      "[".repeat(60_000),
      '{"entry":[{"changes":[{"value":{"statuses":[[[[]]]]}}]}]}',
    ])
      expect([200, 400], body.slice(0, 40)).toContain(
        (await one.network({ url: whatsappRoute, headers: { "x-hub-signature-256": signMeta(body) }, body })).status,
      );
    expect(one.log.filter(({ level }) => level === "error")).toEqual([]);
  });

  it("callbacks, log and explain contain neither the code nor the number of a receipt's error", async () => {
    const { one, id, status, message } = await byWhatsapp();
    const { code } = one.messageOf(id);
    const words = `to +${message.to}: ${code} could not be shown, ${[...code].join("-")}`;
    const spilled = { ...status("failed"), errors: [{ code: 131026, title: words, message: words, error_data: { details: words }, href: words }] };
    expect((await one.network(metaStatuses(spilled))).status).toBe(200);
    const told = await one.told(id);
    expect(told).toHaveLength(2);
    for (const text of [JSON.stringify(told), JSON.stringify(one.log), JSON.stringify(await one.explain(id))])
      expect(leaks(text, { code, to: `+${message.to}` })).toBe(false);
  });

  it.each<[string, unknown]>([
    ["no errors", undefined],
    ["an empty list", []],
    ["a null", [null]],
    ["a code in a text", [{ code: "131049" }]],
    ["no code", [{ title: "no" }]],
  ])("`failed` with %s is still undeliverable", async (_, errors) => {
    const { one, id, status } = await byWhatsapp();
    expect((await one.network(metaStatuses({ ...status("failed"), errors }))).status).toBe(200);
    expect(await one.delivery(id)).toBe("undeliverable");
  });

  it("a reference posted to another service does not settle its message", async () => {
    const [mine, theirs] = [await byWhatsapp(), await byWhatsapp()];
    expect((await mine.one.network(metaStatuses({ ...theirs.status("delivered"), id: mine.message.id }))).status).toBe(200);
    expect(await mine.one.delivery(mine.id)).toSatisfy((delivery) => delivery === undefined || delivery === "delivered");
    expect(await theirs.one.delivery(theirs.id)).toBeUndefined();
  });

  it("concurrent webhooks that arrive before the vendor's response settle their messages", async () => {
    const { vendor, sender } = await cloud();
    const one = await mounted(sender, [metaSource()]);
    const early: Promise<unknown>[] = [];
    vendor.trick = (response, reply) => {
      const message = vendor.taken.at(-1)!;
      const word = metaStatuses(cloudStatus(message, "delivered", one.clock.now(), { data: early.length % 2 === 0 }));
      early.push(one.network(word).then(() => response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(reply.body))));
    };
    const ids = await Promise.all(Array.from({ length: 20 }, (_, i) => one.begin(i + 1)));
    await Promise.all(early);
    await one.verifier.flush();
    expect(await Promise.all(ids.map((id) => one.delivery(id)))).toEqual(ids.map(() => "delivered"));
  });
});

describe("WhatsApp by Twilio", () => {
  const twilio = async (options: object = {}) => {
    const vendor = await startTwilio();
    return {
      vendor,
      sender: twilioWhatsappSender({
        ...twilioAccount,
        from: "+15005550006",
        contentSid: { default: contentSids.en, fr: contentSids.fr },
        baseUrl: vendor.url,
        ...options,
      } as never),
    };
  };

  it("sends the content of the language to the channel, with the code as its variable", async () => {
    const { vendor, sender } = await twilio();
    for (const [locale, country] of [
      [undefined, "FR"],
      ["fr-BE", "US"],
      ["de", "US"],
      [undefined, undefined],
    ] as const)
      expect(await sender.send(aCode({ locale, country }), within())).toMatchObject({ outcome: "accepted" });
    expect(vendor.messages.map(({ form }) => form.get("ContentSid"))).toEqual([contentSids.fr, contentSids.fr, contentSids.en, contentSids.en]);
    for (const { form } of vendor.messages) {
      expect(form.get("From")).toBe("whatsapp:+15005550006");
      expect(JSON.parse(form.get("ContentVariables")!)).toEqual({ 1: "482913" });
      expect(form.has("Body")).toBe(false);
    }
  });

  it("errors of the API call are rejected with their code, 63003 and 63024 too", async () => {
    const { vendor, sender } = await twilio();
    for (const [status, code] of [
      [400, 63003],
      [400, 63024],
      [400, 63016],
      [400, 21655],
      [429, 63018],
    ] as const) {
      const message = aCode();
      vendor.errors.set(message.to, [status, code]);
      const outcome = await sender.send(message, within());
      expect(outcome).toMatchObject({ outcome: "rejected", reason: expect.stringContaining(String(code)) });
      expect(leaks(outcome, message)).toBe(false);
    }
  });

  const by = async () => {
    const { vendor, sender } = await twilio();
    const one = await mounted(sender, [twilioReceipts({ authToken: twilioAccount.authToken })]);
    const id = await one.begin();
    return { one, id, taken: vendor.messages[0]! };
  };

  it.each<[readonly string[], Record<string, string>, string | undefined]>([
    [["queued", "sent"], {}, "in_transit"],
    [["sent", "delivered", "read"], {}, "delivered"],
    [["read"], {}, "delivered"],
    [["undelivered"], { ErrorCode: "63024" }, "undeliverable"],
    [["failed"], { ErrorCode: "63003" }, "undeliverable"],
    [["failed", "delivered"], {}, "undeliverable"],
  ])("%j %j: %s", async (statuses, more, expected) => {
    const { one, id, taken } = await by();
    for (const status of statuses) expect((await one.network(messageStatus(taken, status, more))).status).toBe(200);
    expect(await one.delivery(id)).toBe(expected);
    if (more["ErrorCode"] !== undefined) expect((await one.told(id)).at(-1)).toContain(more["ErrorCode"]);
  });

  it("a forged signature, another query or another field gives 403", async () => {
    const { one, id, taken } = await by();
    const word = messageStatus(taken, "delivered");
    const other = new URL(word.url);
    other.searchParams.append("bodySHA256", "0");
    for (const hook of [
      { ...word, headers: { "content-type": "application/x-www-form-urlencoded" } },
      { ...word, headers: { ...word.headers, "x-twilio-signature": "AAAA" } },
      { ...word, body: word.body.replace("delivered", "failed") },
      { ...word, body: `${word.body}&ErrorCode=1` },
      { ...word, url: other.href },
      twilioPost(word.url, { MessageStatus: "delivered" }, "another account's token"),
    ])
      expect((await one.network(hook)).status, hook.body).toBe(403);
    expect(await one.delivery(id)).toBeUndefined();
  });
});

describe("WhatsApp by Vonage", () => {
  const vonage = async (options: object = {}) => {
    const vendor = await startVonage();
    const { apiKey, apiSecret } = vonageAccount;
    const languages = { default: "en_US", fr: "fr", pt: "pt_BR" };
    return {
      vendor,
      sender: vonageWhatsappSender({
        apiKey,
        apiSecret,
        from: "447700900000",
        template: "verification_code",
        languages,
        baseUrl: vendor.url,
        ...options,
      } as never),
    };
  };

  it("sends a custom template of the language, with the code twice and a reference", async () => {
    const { vendor, sender } = await vonage();
    for (const [locale, country] of [
      [undefined, "BR"],
      ["fr", "US"],
      ["de", "US"],
    ] as const)
      expect(await sender.send(aCode({ locale, country }), within())).toMatchObject({ outcome: "accepted" });
    expect(vendor.messages.map(({ language }) => language)).toEqual(["pt_BR", "fr", "en_US"]);
    expect(vendor.messages.map(({ code }) => code)).toEqual(["482913", "482913", "482913"]);
    expect(vendor.messages[0]!.client_ref ?? vendor.messages[0]!.webhook_url).toContain(reference);
  });

  it("authenticates with an application and its key", async () => {
    const { applicationId, privateKey } = vonageAccount;
    const { vendor, sender } = await vonage({ apiKey: undefined, apiSecret: undefined, applicationId, privateKey });
    expect(await sender.send(aCode(), within())).toMatchObject({ outcome: "accepted" });
    expect(vendor.seen[0]!.headers.authorization).toMatch(/^Bearer /);
  });

  const by = async () => {
    const { vendor, sender } = await vonage();
    const one = await mounted(sender, [vonageReceipts({ signatureSecret: vonageAccount.signatureSecret })]);
    const id = await one.begin();
    return { one, id, message: vendor.messages[0]! };
  };

  it.each<[readonly string[], object, string | undefined]>([
    [["submitted"], {}, "submitted"],
    [["submitted", "delivered", "read"], {}, "delivered"],
    [["read"], {}, "delivered"],
    [
      ["rejected"],
      { error: { type: "https://developer.vonage.com/api-errors/messages#1340", title: 1340, detail: "Outside of the allowed window" } },
      "undeliverable",
    ],
    [["undeliverable"], { error: { type: "x#131026", title: 131026 } }, "undeliverable"],
    [["rejected", "delivered"], {}, "undeliverable"],
  ])("%j %j: %s", async (statuses, more, expected) => {
    const { one, id, message } = await by();
    for (const status of statuses) expect((await one.network(vonageStatus(message, status, one.clock.now(), more))).status).toBe(200);
    expect(await one.delivery(id)).toBe(expected);
  });

  it("a forged token, an old one or another body gives 403", async () => {
    const { one, id, message } = await by();
    const now = one.clock.now();
    const word = vonageStatus(message, "delivered", now);
    const none = Buffer.from(JSON.stringify({ alg: "none", typ: "JWT" })).toString("base64url");
    const [head, claims, mark] = signVonage(word.body, now).slice(7).split(".");
    for (const [what, authorization, body] of [
      ["none", "", word.body],
      ["another secret", signVonage(word.body, now, { secret: "another account's signature secret" }), word.body],
      ["another body", signVonage(word.body, now), word.body.replace("delivered", "rejected")],
      ["serialised again", signVonage(word.body, now), JSON.stringify(JSON.parse(word.body), null, 1)],
      ["no hash", signVonage(word.body, now, { claims: { payload_hash: undefined } }), word.body],
      ["an empty hash", signVonage(word.body, now, { claims: { payload_hash: "" } }), word.body],
      ["alg none", `Bearer ${none}.${claims}.`, word.body],
      ["alg none with the mark", `Bearer ${none}.${claims}.${mark}`, word.body],
      ["alg in another case", signVonage(word.body, now, { head: { alg: "RS256", typ: "JWT" } }), word.body],
      ["half a token", `Bearer ${head}.${claims}`, word.body],
      ["an hour old", signVonage(word.body, now - 3_600_000), word.body],
      ["an hour ahead", signVonage(word.body, now + 3_600_000), word.body],
      ["without a time", signVonage(word.body, now, { claims: { iat: undefined } }), word.body],
      ["expired", signVonage(word.body, now, { claims: { exp: Math.floor(now / 1000) - 3600 } }), word.body],
    ] as const)
      expect(
        (await one.network({ url: word.url, headers: { "content-type": "application/json", ...(authorization !== "" && { authorization }) }, body })).status,
        what,
      ).toBe(403);
    expect(await one.delivery(id)).toBeUndefined();
    expect((await one.network(word)).status).toBe(200);
  });
});

describe("options that cannot work", () => {
  it.each<[string, () => unknown]>([
    ["Telegram without a token", () => telegramSender({ token: "" })],
    ["Telegram's receipts without a token", () => telegramReceipts({ token: "" })],
    ["Telegram's receipts without any", () => telegramReceipts({ token: [] })],
    ["Telegram with conversions", () => telegramSender({ token: gatewayToken, conversions: true } as never)],
    ["WhatsApp without a template", () => whatsappSender({ token: "t", phoneNumberId: "1", template: "", languages: "en" })],
    ["WhatsApp without languages", () => whatsappSender({ token: "t", phoneNumberId: "1", template: "a" } as never)],
    ["WhatsApp with languages but no default", () => whatsappSender({ token: "t", phoneNumberId: "1", template: "a", languages: { fr: "fr" } } as never)],
    [
      "WhatsApp with a version that is none",
      () => whatsappSender({ token: "t", phoneNumberId: "1", template: "a", languages: "en", version: "../me" } as never),
    ],
    ["its receipts without a secret", () => whatsappReceipts({ appSecret: "", verifyToken: "v" })],
    ["its receipts without a verify token", () => whatsappReceipts({ appSecret: "s", verifyToken: "" })],
    ["Twilio's WhatsApp without content", () => twilioWhatsappSender({ ...twilioAccount, from: "+15005550006" } as never)],
    ["Vonage's WhatsApp without a template", () => vonageWhatsappSender({ apiKey: "a", apiSecret: "b", from: "1", languages: "en" } as never)],
  ])("%s: throws a TypeError when made", (_, make) => {
    expect(make).toThrow(TypeError);
  });

  it("creating a verifier with receipts fails without the source of its channel", async () => {
    const { sender } = await cloud();
    await expect(mounted(sender, [telegramReceipts({ token: gatewayToken })])).rejects.toThrow(/whatsapp/);
  });
});
