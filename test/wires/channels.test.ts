import { describe, expect, it } from "vitest";
import { routerOf } from "../support/channels.js";
import { numberOf } from "../support/verifier.js";
import { serve as servePrelude } from "./prelude-v2/service.js";
import { serve as serveTwilio } from "./twilio-verify/service.js";

const to = numberOf(1);

describe("the Twilio Verify wire", () => {
  it("sends by the requested channel, and shows it: sms, whatsapp and call", async () => {
    const { sent, sender } = routerOf("sms", "whatsapp", "voice");
    const { client, sids, clock } = await serveTwilio({ verifier: { sender } });
    const service = client().verify.v2.services(sids.service);
    const first = await service.verifications.create({ to, channel: "whatsapp" });
    expect(first).toMatchObject({ channel: "whatsapp", sendCodeAttempts: [{ channel: "whatsapp" }] });
    clock.advance(60_000);
    const second = await service.verifications.create({ to, channel: "call" });
    expect(second).toMatchObject({ sid: first.sid, channel: "call", sendCodeAttempts: [{ channel: "whatsapp" }, { channel: "call" }] });
    clock.advance(60_000);
    expect(await service.verifications.create({ to, channel: "sms" })).toMatchObject({ channel: "sms" });
    expect(sent.map(({ by }) => by)).toEqual(["whatsapp", "voice", "sms"]);
    const code = sent[1]?.code as string;
    expect(await service.verificationChecks.create({ to, code })).toMatchObject({ channel: "sms", status: "approved" });
  });

  it("returns 400 60200 for a channel that no sender has and for an unknown channel, and sends nothing", async () => {
    const { sent, sender } = routerOf("whatsapp");
    const { raw } = await serveTwilio({ verifier: { sender } });
    for (const Channel of ["sms", "call", "email", "voice", "constructor", "__proto__"])
      expect(await raw("POST", "/Verifications", { To: to, Channel }), Channel).toMatchObject({
        status: 400,
        json: { code: 60200, message: "Invalid parameter: Channel" },
      });
    expect(sent).toEqual([]);
  });

  it("auto, with the option autoChannel, is sms", async () => {
    const { sent, sender } = routerOf("whatsapp", "sms");
    const { raw } = await serveTwilio({ verifier: { sender }, wire: { autoChannel: "sms" } });
    expect((await raw("POST", "/Verifications", { To: to, Channel: "auto" })).json).toMatchObject({ channel: "sms" });
    expect(sent.map(({ by }) => by)).toEqual(["sms"]);
  });

  it("calls a fixed line, whatever the channel", async () => {
    const { sent, sender } = routerOf("sms", "voice");
    const { raw } = await serveTwilio({ verifier: { sender } });
    expect((await raw("POST", "/Verifications", { To: "+33145678901", Channel: "sms" })).json).toMatchObject({ channel: "call" });
    expect(sent.map(({ by }) => by)).toEqual(["voice"]);
  });
});

describe("the Prelude Verify v2 wire", () => {
  const create = (options: object) => ({ target: { type: "phone_number", value: to }, options });

  it("treats preferred_channel as a preference, and shows the channel of the message", async () => {
    for (const [preferred_channel, taken] of [
      ["whatsapp", "whatsapp"],
      ["sms", "sms"],
      ["telegram", "sms"],
      ["zalo", "sms"],
    ] as const) {
      const { sent, sender } = routerOf("sms", "whatsapp");
      const { client, target } = await servePrelude({ verifier: { sender } });
      const created = await client().verification.create({ target: target(), options: { preferred_channel } });
      expect(created, preferred_channel).toMatchObject({ status: "success", method: "message", channels: [taken] });
      expect(sent.map(({ by }) => by)).toEqual([taken]);
    }
  });

  it("uses the first of channels that the service has; without one it returns channel_not_enabled_in_region and sends nothing", async () => {
    const { sent, sender } = routerOf("sms", "whatsapp");
    const { raw } = await servePrelude({ verifier: { sender } });
    expect((await raw("POST", "/v2/verification", create({ channels: ["telegram", "whatsapp", "sms"] }))).json).toMatchObject({ channels: ["whatsapp"] });
    const refused = await raw("POST", "/v2/verification", create({ channels: ["telegram", "zalo"] }));
    expect(refused).toMatchObject({ status: 400, json: { code: "channel_not_enabled_in_region", param: "options.channels" } });
    expect(sent).toHaveLength(1);
  });

  it("makes no call if the method is message, whatever channel is preferred", async () => {
    const { sent, sender } = routerOf("whatsapp", "sms", "voice");
    const { raw } = await servePrelude({ verifier: { sender } });
    const options = { method: "message", preferred_channel: "voice" };
    expect((await raw("POST", "/v2/verification", create(options))).json).toMatchObject({ method: "message", channels: ["whatsapp"] });
    const refused = await raw("POST", "/v2/verification", create({ method: "message", channels: ["voice"] }));
    expect(refused).toMatchObject({ status: 400, json: { param: "options.channels" } });
    expect(sent).toHaveLength(1);
  });

  it("calls if the method is voice; without a sender for calls it returns invalid_method", async () => {
    const { sent, sender } = routerOf("sms", "voice");
    const { raw } = await servePrelude({ verifier: { sender } });
    expect((await raw("POST", "/v2/verification", create({ method: "voice" }))).json).toMatchObject({ method: "voice", channels: ["voice"] });
    expect(sent.map(({ by }) => by)).toEqual(["voice"]);
    const { raw: without } = await servePrelude();
    expect(await without("POST", "/v2/verification", create({ method: "voice" }))).toMatchObject({ status: 400, json: { code: "invalid_method" } });
  });
});
