import { describe, expect, it } from "vitest";
import { telegramReceipts, telegramSender } from "../../adapters/sms/telegram.js";
import { twilioReceipts, twilioSender, twilioWhatsappSender } from "../../adapters/sms/twilio.js";
import { twilioVoiceReceipts, twilioVoiceSender } from "../../adapters/sms/twilio-voice.js";
import { vonageReceipts, vonageWhatsappSender } from "../../adapters/sms/vonage.js";
import { whatsappReceipts, whatsappSender } from "../../adapters/sms/whatsapp.js";
import type { ReceiptSource, SmsSender, VerifierOptions } from "../../src/index.js";
import { type RouterOptions, router } from "../../src/routing/router.js";
import { cloudStatus, meta, metaStatuses, startCloudApi } from "./channel-vendors/meta.js";
import { startVendor } from "./channel-vendors/server.js";
import { gatewayReport, gatewayToken, startGateway } from "./channel-vendors/telegram.js";
import { contentSids, messageStatus, playCall, startTwilio, twilioAccount, twilioPost, unanswered } from "./channel-vendors/twilio.js";
import { startVonage, vonageAccount, vonageStatus } from "./channel-vendors/vonage.js";
import { type Mounted, mounted } from "./channels-kit.js";
import { numberAt } from "./kit.js";

const seconds = (count: number) => count * 1_000;
const _times = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));

/** SMS by Twilio, with the messages that it accepted. */
async function textMessages() {
  const taken: { readonly to: string; readonly body: string; readonly statusCallback: string }[] = [];
  const vendor = await startVendor(({ body }) => {
    const form = new URLSearchParams(body);
    taken.push({ to: form.get("To") ?? "", body: form.get("Body") ?? "", statusCallback: form.get("StatusCallback") ?? "" });
    return { status: 201, body: { sid: `SM${String(taken.length).padStart(32, "0")}`, status: "queued" } };
  });
  const codeTo = (to: string) => /\d{6}/.exec(taken.find((one) => one.to === to)?.body ?? "")?.[0] ?? "none";
  return { taken, codeTo, sender: twilioSender({ ...twilioAccount, from: "+15005550006", baseUrl: vendor.url }) };
}

/** Advances the clock, and runs the worker every five seconds. */
async function wait({ clock, verifier }: Pick<Mounted, "clock" | "verifier">, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 5_000) {
    clock.advance(Math.min(5_000, ms - passed));
    await verifier.flush();
  }
}

interface More extends Partial<VerifierOptions> {
  readonly fallback?: RouterOptions["fallback"];
  readonly price?: number;
}

/** A verifier that sends by `first`, and then by SMS. */
async function withSms(first: SmsSender, source: ReceiptSource, { fallback = {}, price, ...more }: More = {}) {
  const sms = await textMessages();
  const priced = price !== undefined && { price };
  const sender = router({
    routes: [
      { name: "first", sender: first, priority: 0, ...priced },
      { name: "sms", sender: sms.sender, priority: 1, ...priced },
    ],
    fallback: { worker: "elsewhere", ...fallback },
    random: () => 0.5,
  });
  const sources = [source, ...(source.provider === "twilio" ? [] : [twilioReceipts({ authToken: twilioAccount.authToken })])];
  const one = await mounted(sender, sources, { conversion: "reported", ...more });
  const routesOf = async (id: string) => (await one.explain(id)).sends.map(({ attempt, route }) => `${attempt} ${route}`);
  return { ...one, sms, routesOf };
}

const cloudSender = (baseUrl: string, token = meta.token) =>
  whatsappSender({ token, phoneNumberId: meta.phoneNumberId, template: "verification_code", languages: "en_US", baseUrl });
const cloudReceipts = () => whatsappReceipts({ appSecret: meta.appSecret, verifyToken: meta.verifyToken });

async function whatsapp(more: More = {}, token = meta.token) {
  const vendor = await startCloudApi();
  const one = await withSms(cloudSender(vendor.url, token), cloudReceipts(), more);
  const status = (name: string, how?: Parameters<typeof cloudStatus>[3], i = 0) => cloudStatus(vendor.taken[i]!, name, one.clock.now(), how);
  return { ...one, vendor, status };
}

describe("WhatsApp by the Cloud API falls back to SMS (docs/contract.md#fallback)", () => {
  it("131026 in a webhook: one SMS, both codes are valid, and the next create skips WhatsApp", async () => {
    for (const which of ["first", "second"]) {
      const w = await whatsapp();
      const id = await w.begin();
      w.clock.advance(seconds(3));
      expect((await w.network(metaStatuses(w.status("failed", { code: 131026 })))).status).toBe(200);
      await w.verifier.flush();
      expect(w.sms.taken.map(({ to }) => to)).toEqual([numberAt(1)]);
      await wait(w, seconds(120));
      expect(w.sms.taken).toHaveLength(1);
      expect(await w.routesOf(id)).toEqual(["1 first", "2 sms"]);
      const [first, second] = [w.vendor.taken[0]!.code, w.sms.codeTo(numberAt(1))];
      expect(first).not.toBe(second);
      expect((await w.check(id, which === "first" ? first : second)).status).toBe("valid");
      w.clock.advance(seconds(600));
      await w.begin();
      expect([w.vendor.taken.length, w.sms.taken.length]).toEqual([1, 2]);
    }
  });

  it.each([131049, 131050, 130472, 131056, 131048])("%i in a webhook: one SMS, and the next create tries WhatsApp again", async (code) => {
    const w = await whatsapp();
    await w.begin();
    await w.network(metaStatuses(w.status("failed", { code })));
    await wait(w, seconds(60));
    expect(w.sms.taken).toHaveLength(1);
    w.clock.advance(seconds(600));
    await w.begin();
    expect([w.vendor.taken.length, w.sms.taken.length]).toEqual([2, 1]);
  });

  it("131026 in the response: SMS in the same request, and the next create skips WhatsApp", async () => {
    const w = await whatsapp();
    w.vendor.errors.set(numberAt(1).slice(1), [400, 131026]);
    const id = await w.begin();
    expect(w.sms.taken).toHaveLength(1);
    expect((await w.check(id, w.sms.codeTo(numberAt(1)))).status).toBe("valid");
    await w.begin();
    expect([w.vendor.seen.length, w.sms.taken.length]).toEqual([1, 2]);
    await wait(w, seconds(120));
    expect(w.sms.taken).toHaveLength(2);
  });

  it.each([["delivered,read"], ["sent,read"], ["read,delivered"], ["played"]])("statuses that confirm the arrival: no fallback (%s)", async (statuses) => {
    const w = await whatsapp();
    await w.begin();
    for (const name of statuses.split(",")) await w.network(metaStatuses(w.status(name)));
    await wait(w, seconds(120));
    expect(w.sms.taken).toEqual([]);
  });

  it("`sent` and nothing more, as for a user who blocked the business: SMS after 20 s", async () => {
    const w = await whatsapp();
    await w.begin();
    await w.network(metaStatuses(w.status("sent")));
    await wait(w, 19_999);
    expect(w.sms.taken).toEqual([]);
    w.clock.advance(1);
    await w.verifier.flush();
    expect(w.sms.taken).toHaveLength(1);
    await wait(w, seconds(120));
    expect(w.sms.taken).toHaveLength(1);
  });

  it("`delivered`, then `failed`: no fallback", async () => {
    const w = await whatsapp();
    await w.begin();
    await w.network(metaStatuses(w.status("delivered")));
    await w.network(metaStatuses(w.status("failed", { code: 131026 })));
    await wait(w, seconds(120));
    expect(w.sms.taken).toEqual([]);
  });

  it("each status in a body counts for its own message", async () => {
    const w = await whatsapp();
    const ids = [await w.begin(1), await w.begin(2), await w.begin(3)];
    await w.network(metaStatuses(w.status("sent"), w.status("failed", { code: 131026 })));
    await w.network(metaStatuses(w.status("delivered", {}, 1), w.status("failed", { code: 131049 }, 2)));
    await w.verifier.flush();
    expect(w.sms.taken.map(({ to }) => to).sort()).toEqual([numberAt(1), numberAt(3)].sort());
    await wait(w, seconds(120));
    expect(await Promise.all(ids.map(w.routesOf))).toEqual([["1 first", "2 sms"], ["1 first"], ["1 first", "2 sms"]]);
  });

  it("Meta's own error (HTTP 500), after which the message may have been sent: SMS after 20 s, not before", async () => {
    const w = await whatsapp();
    w.vendor.trick = (response) => void response.writeHead(500).end();
    await w.begin();
    expect(w.sms.taken).toEqual([]);
    await wait(w, seconds(25));
    expect(w.sms.taken).toHaveLength(1);
  });

  it("the ceiling is reached between the first message and the fallback: no SMS, then or later, and the first code is valid", async () => {
    const w = await whatsapp({ price: 1, policy: { limits: { spend: [{ amount: 3, per: "day" }] } } });
    const id = await w.begin(1);
    await w.begin(2);
    await w.begin(3);
    await w.network(metaStatuses(w.status("failed", { code: 131026 })));
    await wait(w, seconds(300));
    expect(w.sms.taken).toEqual([]);
    expect(JSON.stringify((await w.explain(id)).decisions)).toContain("spend");
    expect((await w.check(id, w.vendor.taken[0]!.code)).status).toBe("valid");
  });

  it("reports about the SMS, even `undelivered`, cause no further message", async () => {
    const w = await whatsapp();
    const id = await w.begin();
    await wait(w, seconds(20));
    expect(w.sms.taken).toHaveLength(1);
    const word = twilioPost(w.sms.taken[0]!.statusCallback, { MessageSid: `SM${"0".repeat(31)}1`, MessageStatus: "undelivered", ErrorCode: "30003" });
    expect((await w.network(word)).status).toBe(200);
    await w.network(metaStatuses(w.status("failed", { code: 131026 })));
    await wait(w, seconds(300));
    expect(await w.routesOf(id)).toEqual(["1 first", "2 sms"]);
    expect((await w.explain(id)).sends.map(({ delivery }) => delivery)).toEqual(["undeliverable", "undeliverable"]);
  });
});

describe("WhatsApp by a carrier falls back to SMS (docs/contract.md#fallback)", () => {
  const byTwilio = async () => {
    const vendor = await startTwilio();
    const sender = twilioWhatsappSender({ ...twilioAccount, from: "+15005550006", contentSid: contentSids.en, baseUrl: vendor.url });
    return { ...(await withSms(sender, twilioReceipts({ authToken: twilioAccount.authToken }))), vendor };
  };

  it.each<[string, boolean]>([
    ["63024", true],
    ["63003", true],
    ["63018", false],
  ])("Twilio, %s: one SMS; remembered: %s", async (ErrorCode, remembered) => {
    const w = await byTwilio();
    await w.begin();
    expect((await w.network(messageStatus(w.vendor.messages[0]!, "undelivered", { ErrorCode }))).status).toBe(200);
    await w.verifier.flush();
    expect(w.sms.taken).toHaveLength(1);
    w.clock.advance(seconds(600));
    await w.begin();
    expect([w.vendor.messages.length, w.sms.taken.length]).toEqual(remembered ? [1, 2] : [2, 1]);
  });

  it("Twilio and Vonage, silent: SMS after 20 s; read: none", async () => {
    const w = await byTwilio();
    const vonage = await startVonage();
    const { apiKey, apiSecret, signatureSecret } = vonageAccount;
    const v = await withSms(
      vonageWhatsappSender({ apiKey, apiSecret, from: "447700900000", template: "verification_code", languages: "en_US", baseUrl: vonage.url } as never),
      vonageReceipts({ signatureSecret }),
    );
    for (const one of [w, v]) for (const number of [1, 2]) await one.begin(number);
    expect((await w.network(messageStatus(w.vendor.messages[0]!, "read"))).status).toBe(200);
    expect((await v.network(vonageStatus(vonage.messages[0]!, "read", v.clock.now()))).status).toBe(200);
    for (const one of [w, v]) {
      await wait(one, seconds(25));
      expect(one.sms.taken.map(({ to }) => to)).toEqual([numberAt(2)]);
    }
  });
});

async function telegram({ ttl, ...more }: More & { readonly ttl?: number } = {}) {
  const vendor = await startGateway();
  const first = telegramSender({ token: gatewayToken, baseUrl: vendor.url, ...(ttl !== undefined && { ttl }) });
  return { ...(await withSms(first, telegramReceipts({ token: gatewayToken }), more)), vendor };
}

describe("Telegram falls back to SMS (docs/contract.md#fallback)", () => {
  it.each(["PHONE_NUMBER_NOT_FOUND", "PHONE_NUMBER_NOT_AVAILABLE"])(
    "%s: SMS in the same request, and creates skip Telegram for seven days (docs/contract.md#unreachable)",
    async (error) => {
      const w = await telegram();
      w.vendor.errors.set(numberAt(1), error);
      const id = await w.begin();
      expect(w.sms.taken).toHaveLength(1);
      expect((await w.check(id, w.sms.codeTo(numberAt(1)))).status).toBe("valid");
      w.clock.advance(seconds(660));
      await w.begin();
      expect([w.vendor.seen.length, w.sms.taken.length]).toEqual([1, 2]);
      w.clock.advance(seconds(7 * 86_400));
      await w.begin();
      expect(w.vendor.seen).toHaveLength(2);
    },
  );

  it.each(["PHONE_NUMBER_INVALID", "FLOOD_WAIT_5", "BALANCE_NOT_ENOUGH", "ACCESS_TOKEN_INVALID"])(
    "%s: SMS in the same request, and Telegram is tried again",
    async (error) => {
      const w = await telegram();
      w.vendor.errors.set(numberAt(1), error);
      await w.begin();
      await w.begin();
      expect([w.vendor.seen.length, w.sms.taken.length]).toEqual([2, 2]);
    },
  );

  it("is asked not to deliver the first message after the second was sent", async () => {
    for (const after of [20, 60, 300]) {
      const w = await telegram({ fallback: { after } });
      await w.begin();
      // The Gateway's minimum is 30 s, counted from the time of the request, on the system clock.
      expect(w.vendor.taken[0]!.ttl).toBeGreaterThanOrEqual(Math.max(30, after - 5));
      expect(w.vendor.taken[0]!.ttl).toBeLessThanOrEqual(Math.max(30, after));
    }
    const w = await telegram({ ttl: 45 });
    await w.begin();
    expect(w.vendor.taken[0]!.ttl).toBeLessThanOrEqual(45);
  });

  it.each<[readonly string[], number]>([
    [["sent", "delivered"], 0],
    [["read"], 0],
    [["sent"], 1],
    [["expired"], 1],
    [["revoked"], 1],
    [["delivered", "expired"], 0],
  ])("reports %j: %i SMS", async (statuses, count) => {
    const w = await telegram();
    await w.begin();
    for (const name of statuses) expect((await w.network(gatewayReport(w.vendor.taken[0]!, name, w.clock.now()))).status).toBe(200);
    await wait(w, seconds(120));
    expect(w.sms.taken).toHaveLength(count);
  });

  it("`expired` after the SMS was sent, and `delivered` late: no second SMS, and the first code stays live", async () => {
    const w = await telegram();
    const id = await w.begin();
    await wait(w, seconds(20));
    for (const name of ["expired", "delivered"]) await w.network(gatewayReport(w.vendor.taken[0]!, name, w.clock.now()));
    await wait(w, seconds(120));
    expect(w.sms.taken).toHaveLength(1);
    expect((await w.check(id, w.vendor.taken[0]!.code)).status).toBe("valid");
  });
});

describe("calls that voice mail answers (docs/contract.md#fallback)", () => {
  const calls = async (fallback: boolean) => {
    const [line, vendor] = [await startTwilio(), await startCloudApi()];
    const voice = twilioVoiceSender({ ...twilioAccount, from: "+15005550006", countries: ["FR"], baseUrl: line.url });
    const { authToken } = twilioAccount;
    const sender = router({
      routes: [
        { name: "wa", sender: cloudSender(vendor.url), priority: 0 },
        { name: "call", sender: voice, priority: 1, fallback },
        { name: "sms", sender: (await textMessages()).sender, countries: ["US"] },
      ],
      fallback: { worker: "elsewhere" },
      random: () => 0.5,
    });
    const one = await mounted(sender, [cloudReceipts(), twilioVoiceReceipts({ authToken }), twilioReceipts({ authToken })], { conversion: "reported" });
    return { ...one, line, vendor };
  };

  it("a call as a fallback: no code is heard, the call is undeliverable, nothing follows, and the first code stays live", async () => {
    const w = await calls(true);
    const id = await w.begin();
    await wait(w, seconds(90));
    expect(w.line.calls).toHaveLength(1);
    const { heard } = await playCall(w.line.calls[0]!, { kind: "mailbox" }, w.network);
    expect(heard.map(({ text }) => text.replace(/\D/g, "")).join()).not.toContain(w.messageOf(id).code);
    expect(await w.delivery(id)).toBe("undeliverable");
    await wait(w, seconds(300));
    expect(w.sent).toHaveLength(2);
    expect((await w.check(id, w.vendor.taken[0]!.code)).status).toBe("valid");
  });

  it("a requested call that a mailbox or no one answers: no message follows", async () => {
    for (const answers of ["mailbox", "nobody"]) {
      const w = await calls(true);
      const id = await w.begin(1, { channel: "voice" });
      if (answers === "nobody") await unanswered(w.line.calls[0]!, "no-answer", w.network);
      else await playCall(w.line.calls[0]!, { kind: "mailbox" }, w.network);
      expect(await w.delivery(id)).toBe("undeliverable");
      await wait(w, seconds(300));
      expect([w.sent.length, w.vendor.taken.length]).toEqual([1, 0]);
    }
  });

  it("no call follows a message if its route does not allow it", async () => {
    const w = await calls(false);
    await w.begin();
    await w.network(metaStatuses(cloudStatus(w.vendor.taken[0]!, "failed", w.clock.now(), { code: 131026 })));
    await wait(w, seconds(300));
    expect([w.line.calls.length, w.sent.length]).toEqual([0, 1]);
  });
});
