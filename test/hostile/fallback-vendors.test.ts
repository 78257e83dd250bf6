import { expect, it } from "vitest";
import { telegramReceipts, telegramSender } from "../../adapters/sms/telegram.js";
import { twilioReceipts, twilioSender } from "../../adapters/sms/twilio.js";
import { whatsappReceipts, whatsappSender } from "../../adapters/sms/whatsapp.js";
import { type RouteOptions, router } from "../../src/routing/router.js";
import { cloudStatus, meta, metaStatuses, startCloudApi } from "./channel-vendors/meta.js";
import { startVendor } from "./channel-vendors/server.js";
import { gatewayToken, startGateway } from "./channel-vendors/telegram.js";
import { twilioAccount } from "./channel-vendors/twilio.js";
import { mounted } from "./channels-kit.js";

/** A router with the vendor's route first, then SMS, and a fallback after 20 s. */
async function before(first: Pick<RouteOptions, "name" | "sender">) {
  const texts: string[] = [];
  const carrier = await startVendor(({ body }) => {
    texts.push(new URLSearchParams(body).get("Body") ?? "");
    return { status: 201, body: { sid: `SM${texts.length}`, status: "queued" } };
  });
  const sms = twilioSender({ ...twilioAccount, from: "+15005550006", baseUrl: carrier.url });
  const sender = router({
    routes: [
      { ...first, priority: 0 },
      { name: "sms", sender: sms },
    ],
    fallback: { after: 20, worker: "elsewhere" },
  });
  const sources = [
    whatsappReceipts({ appSecret: meta.appSecret, verifyToken: meta.verifyToken }),
    telegramReceipts({ token: gatewayToken }),
    twilioReceipts({ authToken: twilioAccount.authToken }),
  ];
  return { texts, one: await mounted(sender, sources) };
}

async function whatsappFirst(options: object = {}) {
  const vendor = await startCloudApi();
  const sender = whatsappSender({
    token: meta.token,
    phoneNumberId: meta.phoneNumberId,
    template: "verification_code",
    languages: { default: "en_US" },
    baseUrl: vendor.url,
    ...options,
  } as never);
  const { texts, one } = await before({ name: "wa", sender });
  const id = await one.begin();
  const status = (name: string, how?: Parameters<typeof cloudStatus>[3]) => cloudStatus(vendor.taken[0]!, name, one.clock.now(), how);
  const later = async (ms: number) => {
    one.clock.advance(ms);
    await one.verifier.flush();
  };
  return { vendor, texts, one, id, status, later };
}

const codeIn = (text: string | undefined) => /\d{6}/.exec(text ?? "")?.[0] ?? "";

it("131026 three seconds after the 200: one SMS within `after`, with its own code", async () => {
  const { texts, one, id, status, later } = await whatsappFirst();
  const first = one.messageOf(id).code;
  one.clock.advance(3_000);
  expect((await one.network(metaStatuses(status("failed", { code: 131026 })))).status).toBe(200);
  await later(1_000);
  expect(texts).toHaveLength(1);
  expect(codeIn(texts[0])).not.toBe(first);
  await later(20_000);
  await later(60_000);
  expect(texts).toHaveLength(1);
  expect(await one.check(id, codeIn(texts[0]))).toMatchObject({ status: "valid" });
});

it("`read` without `delivered`: no SMS", async () => {
  const { texts, one, status, later } = await whatsappFirst();
  one.clock.advance(5_000);
  await one.network(metaStatuses(status("read")));
  await later(20_000);
  expect(texts).toEqual([]);
});

it("`failed`, then `delivered`: one SMS, and the first code stays live", async () => {
  const { texts, one, id, status, later } = await whatsappFirst();
  const first = one.messageOf(id).code;
  await one.network(metaStatuses(status("failed", { code: 131049 })));
  await later(1_000);
  await one.network(metaStatuses(status("delivered")));
  await later(60_000);
  expect(texts).toHaveLength(1);
  expect(await one.check(id, first)).toMatchObject({ status: "valid" });
});

it("the same webhook twice, then eight times concurrently: one SMS", async () => {
  const { texts, one, status, later } = await whatsappFirst();
  const failed = metaStatuses(status("failed", { code: 131026 }));
  await one.network(failed);
  await one.network(failed);
  await Promise.all(Array.from({ length: 8 }, () => one.network(failed)));
  await later(1_000);
  await later(60_000);
  expect(texts).toHaveLength(1);
});

it("two statuses in one body, `sent` and `failed`: one SMS", async () => {
  const { texts, one, status, later } = await whatsappFirst();
  await one.network(metaStatuses(status("sent"), status("failed", { code: 131026 })));
  await later(1_000);
  expect(texts).toHaveLength(1);
});

it("a re-serialized body with the old signature: 403, and no SMS before 20 s", async () => {
  const { texts, one, status, later } = await whatsappFirst();
  const failed = metaStatuses(status("failed", { code: 131026 }));
  expect((await one.network({ ...failed, body: JSON.stringify(JSON.parse(failed.body), undefined, 1) })).status).toBe(403);
  await later(19_000);
  expect(texts).toEqual([]);
});

it("silence: one SMS at 20 s", async () => {
  const { texts, later } = await whatsappFirst();
  await later(19_999);
  expect(texts).toEqual([]);
  await later(1);
  await later(60_000);
  expect(texts).toHaveLength(1);
});

it("the code entered at 19 s: no fallback", async () => {
  const { texts, one, id, later } = await whatsappFirst();
  one.clock.advance(19_000);
  expect(await one.check(id, one.messageOf(id).code)).toMatchObject({ status: "valid" });
  await later(60_000);
  expect(texts).toEqual([]);
});

it("an expired WhatsApp token (190): SMS in the same request, and no other later", async () => {
  const { texts, later } = await whatsappFirst({ token: "expired" });
  expect(texts).toHaveLength(1);
  await later(60_000);
  expect(texts).toHaveLength(1);
});

it("Telegram's `PHONE_NUMBER_NOT_FOUND`: SMS in the same request, and the second create skips Telegram", async () => {
  const gateway = await startGateway();
  const { texts, one } = await before({ name: "telegram", sender: telegramSender({ token: gatewayToken, baseUrl: gateway.url }) });
  gateway.errors.set("+33612345678", "PHONE_NUMBER_NOT_FOUND");
  const id = await one.begin("+33612345678");
  expect(texts).toHaveLength(1);
  expect(await one.check(id, codeIn(texts[0]))).toMatchObject({ status: "valid" });
  gateway.errors.clear();
  await one.verifier.flush();
  const again = await one.begin("+33612345678");
  expect(texts).toHaveLength(2);
  expect(gateway.taken).toEqual([]);
  expect((await one.explain(again)).sends[0]).toMatchObject({ route: "sms" });
});
