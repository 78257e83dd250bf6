import { describe, expect, it } from "vitest";
import { telegramSender } from "../../adapters/sms/telegram.js";
import { twilioWhatsappSender } from "../../adapters/sms/twilio.js";
import { twilioVoiceSender } from "../../adapters/sms/twilio-voice.js";
import { vonageWhatsappSender } from "../../adapters/sms/vonage.js";
import { vonageVoiceSender } from "../../adapters/sms/vonage-voice.js";
import { whatsappSender } from "../../adapters/sms/whatsapp.js";
import type { CodeMessage, SendOutcome, SmsSender } from "../../src/index.js";
import { meta, startCloudApi } from "./channel-vendors/meta.js";
import {
  cuts,
  cutsBody,
  floods,
  garbles,
  hangs,
  redirects,
  says,
  saysHtml,
  saysNothing,
  send,
  startVendor,
  trickles,
  type Vendor,
} from "./channel-vendors/server.js";
import { gatewayToken, startGateway } from "./channel-vendors/telegram.js";
import { contentSids, startTwilio, twilioAccount } from "./channel-vendors/twilio.js";
import { startVonage, vonageAccount } from "./channel-vendors/vonage.js";
import { aCode, leaks, within } from "./channels-kit.js";

/** A sender of docs/carriers/channels.md, its vendor, and the messages that the vendor accepted. */
interface OneChannel {
  readonly start: (host?: string) => Promise<Vendor>;
  readonly make: (options: object) => SmsSender;
  readonly tookBy: (vendor: Vendor) => readonly (readonly [to: string, code: string | undefined])[];
  /** Errors of the vendor that mean that nothing was sent. */
  readonly refusals: readonly (readonly [status: number, body: object])[];
}

const graph = (status: number, code: number): readonly [number, object] => [status, { error: { message: `(#${code})`, type: "OAuthException", code } }];
const twilioSays = (status: number, code: number): readonly [number, object] => [status, { code, message: "no", more_info: "", status }];
const vonageSays = (status: number, title: string): readonly [number, object] => [
  status,
  { type: `https://developer.vonage.com/api-errors#${title}`, title, detail: "no" },
];
const vonageFrom = { from: "447700900000" };
const twilioRefusals = [twilioSays(400, 21211), twilioSays(401, 20003), twilioSays(403, 20403), twilioSays(404, 20404), twilioSays(429, 20429)];
const vonageRefusals = [
  vonageSays(400, "invalid-params"),
  vonageSays(401, "unauthorized"),
  vonageSays(402, "low-balance"),
  vonageSays(403, "forbidden"),
  vonageSays(422, "invalid-params"),
  vonageSays(429, "throttled"),
];

const channels: Readonly<Record<string, OneChannel>> = {
  telegram: {
    start: startGateway,
    make: (options) => telegramSender({ token: gatewayToken, ...options }),
    tookBy: (vendor) => (vendor as Awaited<ReturnType<typeof startGateway>>).taken.map(({ phone_number, code }) => [phone_number, code]),
    refusals: [
      [200, { ok: false, error: "BALANCE_NOT_ENOUGH" }],
      [400, { ok: false, error: "PHONE_NUMBER_INVALID" }],
      [401, { ok: false, error: "ACCESS_TOKEN_INVALID" }],
      [429, { ok: false, error: "FLOOD_WAIT_30" }],
    ],
  },
  whatsapp: {
    start: startCloudApi,
    make: (options) => whatsappSender({ token: meta.token, phoneNumberId: meta.phoneNumberId, template: "verification_code", languages: "en_US", ...options }),
    tookBy: (vendor) => (vendor as Awaited<ReturnType<typeof startCloudApi>>).taken.map(({ to, code }) => [`+${to}`, code]),
    refusals: [
      graph(400, 131030),
      graph(400, 131056),
      graph(400, 132000),
      graph(404, 132001),
      graph(400, 132012),
      graph(400, 132015),
      graph(401, 190),
      graph(403, 10),
      graph(403, 200),
      graph(401, 0),
      graph(400, 3),
      graph(429, 130429),
      graph(429, 80007),
      graph(400, 131048),
    ],
  },
  "WhatsApp by Twilio": {
    start: startTwilio,
    make: (options) => twilioWhatsappSender({ ...twilioAccount, from: "+15005550006", contentSid: contentSids.en, ...options }),
    tookBy: (vendor) =>
      (vendor as Awaited<ReturnType<typeof startTwilio>>).messages.map(({ form }) => [
        (form.get("To") ?? "").replace("whatsapp:", ""),
        (JSON.parse(form.get("ContentVariables") ?? "") as Record<string, string>)["1"],
      ]),
    refusals: twilioRefusals,
  },
  "WhatsApp by Vonage": {
    start: startVonage,
    make: (options) =>
      vonageWhatsappSender({
        apiKey: vonageAccount.apiKey,
        apiSecret: vonageAccount.apiSecret,
        ...vonageFrom,
        template: "verification_code",
        languages: "en_US",
        ...options,
      }),
    tookBy: (vendor) => (vendor as Awaited<ReturnType<typeof startVonage>>).messages.map(({ to, code }) => [`+${to}`, code]),
    refusals: vonageRefusals,
  },
  "calls by Twilio": {
    start: startTwilio,
    make: (options) => twilioVoiceSender({ ...twilioAccount, from: "+15005550006", countries: ["FR"], ...options }),
    tookBy: (vendor) => (vendor as Awaited<ReturnType<typeof startTwilio>>).calls.map(({ form }) => [form.get("To") ?? "", undefined]),
    refusals: twilioRefusals,
  },
  "calls by Vonage": {
    start: startVonage,
    make: (options) => {
      const { applicationId, privateKey, signatureSecret } = vonageAccount;
      return vonageVoiceSender({ applicationId, privateKey, signatureSecret, ...vonageFrom, countries: ["FR"], ...options });
    },
    tookBy: (vendor) => (vendor as Awaited<ReturnType<typeof startVonage>>).calls.map(({ to }) => [`+${to}`, undefined]),
    refusals: vonageRefusals,
  },
};
const names = Object.keys(channels);

async function through(name: string, { host, ...options }: { host?: string; fetch?: unknown; timeout?: number } = {}) {
  const channel = channels[name]!;
  const vendor = await channel.start(host);
  return { vendor, sender: channel.make({ baseUrl: vendor.url, ...options }), took: () => channel.tookBy(vendor) };
}

const kinds: Readonly<Record<string, string>> = {
  telegram: "telegram",
  whatsapp: "whatsapp",
  "WhatsApp by Twilio": "whatsapp",
  "WhatsApp by Vonage": "whatsapp",
  "calls by Twilio": "voice",
  "calls by Vonage": "voice",
};

describe.each(names)("%s: one message", (name) => {
  it("is sent once, as the vendor documents it", async () => {
    const { sender, vendor, took } = await through(name);
    const message = aCode();
    expect(await sender.send(message, within())).toMatchObject({ outcome: "accepted" });
    expect(sender.channel).toBe(kinds[name]);
    const [[to, code] = []] = took();
    expect(to).toBe(message.to);
    expect(code ?? message.code).toBe(message.code);
    expect(vendor.seen).toHaveLength(1);
  });

  it("is sent over IPv6", async () => {
    const { sender, took } = await through(name, { host: "::1" });
    expect(await sender.send(aCode(), within())).toMatchObject({ outcome: "accepted" });
    expect(took()).toHaveLength(1);
  });

  it("a hundred concurrent ones each go to their own number, none twice", async () => {
    const { sender, vendor, took } = await through(name);
    const messages = Array.from({ length: 100 }, (_, i) => aCode({ code: String(100_000 + i * 7) }));
    const outcomes = await Promise.all(messages.map((message) => sender.send(message, within())));
    expect(outcomes.every(({ outcome }) => outcome === "accepted")).toBe(true);
    expect(vendor.seen).toHaveLength(100);
    const codes = new Map(took());
    for (const { to, code } of messages) expect([codes.has(to), codes.get(to) ?? code]).toEqual([true, code]);
    const ids = outcomes.map((one) => (one.outcome === "accepted" ? one.messageId : undefined)).filter((id) => id !== undefined);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("a text without a code, as deliver may send one, is rejected", async () => {
    const { sender, took } = await through(name);
    expect(await sender.send(aCode({ code: "", text: "Your parcel has arrived." }), within())).toMatchObject({ outcome: "rejected" });
    expect(took()).toEqual([]);
  });

  it("a message id has at most 256 characters", async () => {
    const { sender } = await through(name);
    const outcome = await sender.send(aCode(), within());
    expect(outcome).toMatchObject({ messageId: expect.stringMatching(/^.{5,256}$/) });
  });
});

describe.each(names)("%s: inconclusive responses", (name) => {
  it.each<[string, Vendor["trick"], number]>([
    ["hangs", hangs, 300],
    ["cuts the connection", cuts, 60_000],
    ["trickles", trickles, 300],
  ])("%s: unknown, after one request", async (_, trick, ms) => {
    const { sender, vendor } = await through(name);
    vendor.trick = trick;
    const started = performance.now();
    expect(await sender.send(aCode(), within(ms))).toMatchObject({ outcome: "unknown" });
    expect(performance.now() - started).toBeLessThan(20_000);
    expect(vendor.seen).toHaveLength(1);
  });

  it("a vendor that hangs past the sender's own timeout gives `unknown`", async () => {
    const { sender, vendor } = await through(name, { timeout: 1 });
    vendor.trick = hangs;
    expect(await sender.send(aCode(), within())).toMatchObject({ outcome: "unknown" });
    expect(vendor.seen).toHaveLength(1);
  });

  it.each<[string, Vendor["trick"]]>([
    ["is cut in the middle", cutsBody],
    ["is garbled", garbles],
    ["is empty", saysNothing],
    ["comes behind 32 MB of blanks", floods],
  ])("a success that %s is never read as a rejection, and never sent again", async (_, trick) => {
    const { sender, vendor } = await through(name);
    vendor.trick = trick;
    const { outcome } = await sender.send(aCode(), within());
    expect(["accepted", "unknown"]).toContain(outcome);
    expect(vendor.seen).toHaveLength(1);
  });

  it("the login page of a network is not the vendor's acceptance", async () => {
    const { sender, vendor } = await through(name);
    vendor.trick = saysHtml;
    expect((await sender.send(aCode(), within())).outcome).not.toBe("accepted");
  });

  it("a correct response with another content type is not a rejection", async () => {
    const { sender, vendor } = await through(name);
    vendor.trick = (response, reply) => send(response, { ...reply, type: "text/plain; charset=iso-8859-1" });
    expect((await sender.send(aCode(), within())).outcome).not.toBe("rejected");
  });

  it.each([500, 502, 503, 504, 520])("HTTP %i, in JSON or HTML: unknown", async (status) => {
    const { sender, vendor } = await through(name);
    for (const trick of [says(status, channels[name]!.refusals[0]![1]), says(status, "<html>Bad gateway</html>", "text/html"), says(status, "")]) {
      vendor.trick = trick;
      expect(await sender.send(aCode(), within())).toMatchObject({ outcome: "unknown", reason: expect.stringContaining(String(status)) });
    }
    expect(vendor.seen).toHaveLength(3);
  });

  it.each([301, 302, 303, 307, 308])("a redirect (%i) is not followed, so no one else gets the code and the key", async (status) => {
    const { sender, vendor } = await through(name);
    const stranger = await startVendor(() => ({ status: 200, body: { ok: true } }));
    vendor.trick = redirects(`${stranger.url}/v1/messages`, status);
    expect((await sender.send(aCode(), within())).outcome).not.toBe("accepted");
    expect(stranger.seen).toEqual([]);
    expect(vendor.seen).toHaveLength(1);
  });

  it("a response after the time is over changes nothing", async () => {
    const { sender, vendor } = await through(name);
    let release: () => void = () => {};
    vendor.trick = (response, reply) => {
      release = () => send(response, reply);
    };
    const outcome = await sender.send(aCode(), within(200));
    expect(outcome).toMatchObject({ outcome: "unknown" });
    const copy = structuredClone(outcome);
    release();
    vendor.trick = undefined;
    expect(await sender.send(aCode(), within())).toMatchObject({ outcome: "accepted" });
    expect(outcome).toEqual(copy);
    expect(vendor.seen).toHaveLength(2);
  });
});

describe.each(names)("%s: known not to be sent", (name) => {
  it("a closed port gives `rejected`", async () => {
    const { sender } = await through(name, {});
    const dead = channels[name]!.make({ baseUrl: "http://127.0.0.1:1" });
    expect(await dead.send(aCode(), within())).toMatchObject({ outcome: "rejected", reason: expect.stringMatching(/ECONNREFUSED|bad port|not sent/) });
    expect(await sender.send(aCode(), within())).toMatchObject({ outcome: "accepted" });
  });

  it("nothing is sent if the time is already over", async () => {
    const { sender, vendor } = await through(name);
    const signal = AbortSignal.abort();
    expect(await sender.send(aCode(), { signal, deadline: Date.now(), timeLeft: 0 })).toMatchObject({ outcome: "rejected" });
    expect(vendor.seen).toEqual([]);
  });

  it("each documented error of the vendor is rejected, with its code in the reason", async () => {
    const { sender, vendor } = await through(name);
    for (const [status, body] of channels[name]!.refusals) {
      vendor.trick = says(status, body);
      const outcome = await sender.send(aCode(), within());
      const { error, code } = body as { error?: string | { code: number }; code?: number };
      const word = typeof error === "string" ? error : String(error?.code ?? code ?? status);
      expect(outcome, `${status} ${word}`).toMatchObject({ outcome: "rejected", reason: expect.stringContaining(word) });
    }
  });

  it.each([400, 401, 403, 404, 429])("HTTP %i without a body that explains it: rejected", async (status) => {
    const { sender, vendor } = await through(name);
    for (const trick of [
      says(status, "<html>No</html>", "text/html"),
      says(status, ""),
      says(status, "null"),
      says(status, "[]"),
      says(status, { error: null, errors: [] }),
    ]) {
      vendor.trick = trick;
      expect(await sender.send(aCode(), within())).toMatchObject({ outcome: "rejected", reason: expect.stringContaining(String(status)) });
    }
  });

  it("an error with HTTP 200 is not an acceptance", async () => {
    const { sender, vendor } = await through(name);
    for (const [status, body] of channels[name]!.refusals) {
      vendor.trick = says(200, body);
      expect((await sender.send(aCode(), within())).outcome, `${status}`).not.toBe("accepted");
    }
  });

  it("wrong credentials are rejected, and never shown", async () => {
    const vendor = await channels[name]!.start();
    const bad = { token: "dead-secret-1", authToken: "dead-secret-1", apiSecret: "dead-secret-1" };
    const own = names.indexOf(name);
    const options = [
      { token: bad.token },
      { token: bad.token },
      { authToken: bad.authToken },
      { apiSecret: bad.apiSecret },
      { authToken: bad.authToken },
      { applicationId: "00000000-dead-secret-1-000000000000" },
    ][own];
    const outcome = await channels[name]!.make({ baseUrl: vendor.url, ...options }).send(aCode(), within());
    expect(outcome).toMatchObject({ outcome: "rejected" });
    expect(JSON.stringify(outcome)).not.toContain("dead-secret-1");
  });
});

describe.each(names)("%s: nothing reveals a code or a number", (name) => {
  const spills = ({ to, code }: CodeMessage): readonly (readonly [string, Vendor["trick"]])[] => {
    const words = `${to} ${to.slice(1)} ${code} ${[...code].join(" ")}, Код ${code} 📞`;
    const body = {
      ok: false,
      error: { message: words, code: Number(code), error_data: { details: words } },
      code: Number(code),
      title: words,
      detail: words,
      message: words,
    };
    return [
      ["400", says(400, body)],
      ["400 with a text", says(400, { ...body, error: words })],
      ["400 with the number for a code", says(400, { error: { code: Number(to.slice(1)) }, code: to, title: to, type: to })],
      ["200", says(200, { ...body, error: `PHONE_${to}_${code}` })],
      ["500", says(500, body)],
      ["plain", says(422, words, "text/plain")],
      ["a redirect", redirects(`http://127.0.0.1:1/${encodeURIComponent(words)}`)],
      ["a success", says(200, { ok: true, result: { request_id: words }, messages: [{ id: words }], sid: words, uuid: words, message_uuid: words })],
    ];
  };

  it("whatever the vendor returns", async () => {
    const { sender, vendor } = await through(name);
    for (let i = 0; i < 8; i++) {
      const message = aCode();
      const [what, trick] = spills(message)[i]!;
      vendor.trick = trick;
      const outcome: SendOutcome = await sender.send(message, within());
      const { reason } = outcome as { reason?: string };
      expect(leaks(reason ?? "", message), `${what}: ${reason}`).toBe(false);
    }
  });

  it("whatever the client throws", async () => {
    for (const throws of [
      (words: string) => new TypeError(words),
      (words: string) => new TypeError("fetch failed", { cause: Object.assign(new Error(words), { code: words }) }),
      (words: string) => words,
    ]) {
      const message = aCode();
      const words = `${message.to} ${message.code} ${vonageAccount.apiSecret}`;
      const sender = channels[name]!.make({
        fetch: async () => {
          throw throws(words);
        },
      });
      const outcome = await sender.send(message, within());
      expect(["unknown", "rejected"]).toContain(outcome.outcome);
      expect(leaks(outcome, message)).toBe(false);
      expect(JSON.stringify(outcome)).not.toContain(vonageAccount.apiSecret);
    }
  });
});
