import { describe, expect, it } from "vitest";
import { type SmppOptions, smppSender } from "../../adapters/sms/smpp/index.js";
import { aMessage, stoppedClock } from "../support/smpp.js";

const good = { host: "127.0.0.1", systemId: "me", password: "secret" };

describe("invalid options throw at construction, with the fix", () => {
  it("no options at all", () => {
    expect(() => smppSender(undefined as unknown as SmppOptions)).toThrow("smppSender({ host, systemId, password })");
  });

  it.each([
    ["host", undefined, "as your carrier gave it to you"],
    ["host", "", "1 to 253"],
    ["host", "smpp://smpp.example", "without scheme, port and brackets"],
    ["host", "smpp.example:2775", "without scheme, port and brackets"],
    ["host", "[::1]", "without scheme, port and brackets"],
    ["systemId", undefined, "as your carrier gave it to you"],
    ["systemId", "x".repeat(16), "1 to 15 ASCII"],
    ["password", undefined, "as your carrier gave it to you"],
    ["password", "pass\0word", "ASCII"],
    ["password", 7, "a text"],
    ["systemType", "x".repeat(13), "1 to 12"],
    ["serviceType", "é", "ASCII"],
    ["port", 0, "1 to 65535"],
    ["port", "2775", "a whole number"],
    ["tls", "yes", "true, or options for tls.connect"],
    ["tls", null, "true, or options for tls.connect"],
    ["tls", { cert: "not a PEM text" }, "PEM"],
    ["from", "A name too long", "11 ASCII characters"],
    ["from", "Añejo", "11 ASCII characters"],
    ["from", "123456789", "8 digits"],
    ["from", "+44", "15 digits"],
    ["from.FR", { default: "Acme", FR: "+44" }, "short code"],
    ["fromTon", 256, "0 to 255"],
    ["fromNpi", -1, "0 to 255"],
    ["destinationTon", 1.5, "0 to 255"],
    ["destinationNpi", "1", "0 to 255"],
    ["bindType", "transmitter", '"transceiver" or "transmitter+receiver"'],
    ["alphabet", "utf-8", '"gsm" or "ascii" or "latin1"'],
    ["dataCoding", 256, "0 to 255"],
    ["longMessages", "split", '"payload" or "udh" or "sar"'],
    ["validityPeriod", true, '"relative" or "absolute" or "none"'],
    ["parameters", "1402=x", "a list of { tag, value }"],
    ["parameters", [{ tag: 0x10000, value: "x" }], "0 to 0xFFFF"],
    ["parameters", [{ tag: 0x1402, value: 7 }], "a text of Latin-1 characters or a Uint8Array"],
    ["parameters", [{ tag: 0x1402, value: "ж" }], "Latin-1"],
    ["parameters", [{ tag: 0x0424, value: "x" }], "the sender does not write itself"],
    ["parameters", [null], "a list of { tag, value }"],
    ["parameters.IN", { IN: "x" }, "a list of { tag, value }"],
    ["parameters.in", { in: [] }, "alpha-2 code in capitals"],
    ["window", 0, "1 to 1000"],
    ["window", 1001, "1 to 1000"],
    ["messagesPerSecond", 0, "messages above 0"],
    ["messagesPerSecond", 10_001, "at most 10000"],
    ["messagesPerSecond", "10", "a number of messages"],
    ["bindTimeout", 0, "seconds above 0"],
    ["responseTimeout", Number.NaN, "seconds above 0"],
    ["enquireLinkAfter", -1, "seconds above 0"],
    ["throttlePause", 100_000, "at most 86400"],
    ["drainTimeout", "5", "seconds above 0"],
    ["rebind", 5, "{ min, max }"],
    ["rebind.min", { min: 0 }, "seconds above 0"],
    ["rebind.max", { min: 5, max: 1 }, "at least rebind.min"],
    ["onReceipt", "log", "a function"],
    ["receiptIds", "hex", '"same"'],
    ["idSpace", "", "1 to 256 ASCII"],
    ["receiptOffset", 120, '"+05:30"'],
    ["receiptOffset", "CET", '"+05:30"'],
    ["logger", {}, "info, warn and error"],
    ["clock", {}, "now and after"],
  ])("%s: %j", (name, value, fix) => {
    const build = () => smppSender({ ...good, [name.split(".")[0] as string]: value } as SmppOptions);
    expect(build).toThrow(`option \`${name}\` must be`);
    expect(build).toThrow(fix);
    if (name === "password" && typeof value === "string") expect(build).not.toThrow(value);
  });
});

it.each(["smpp.example", "smsc_1", "192.0.2.1", "::1", "2001:db8::1"])("host may be %s", (host) => {
  expect(smppSender({ ...good, host }).status().state).toBe("idle");
});

it.each([
  ["from", "", "non-empty string"],
  ["from", 60777, "neither text, a map nor a function"],
  ["from", {}, "is an empty map"],
  ["from.fr", { fr: "Acme" }, "alpha-2 code in capitals"],
])("%s is checked as in the HTTP senders: %j", (name, from, problem) => {
  const build = () => smppSender({ ...good, from } as SmppOptions);
  expect(build).toThrow(`smppSender: option ${name} `);
  expect(build).toThrow(problem);
});

describe("messages that cannot be sent are rejected without connecting", () => {
  const clock = stoppedClock();

  it.each([
    ["a function `from` that answers nonsense", { from: () => "A name too long" }, {}, "`from` returned"],
    [
      "a function `from` that throws",
      {
        from: () => {
          throw new Error("+14155552671");
        },
      },
      {},
      "option `from` failed",
    ],
    ["a map `from` without the country", { from: { GB: "Acme" } }, {}, "names no sender for US"],
    ["a function `from` that names nobody", { from: () => undefined }, {}, "names no sender for US"],
    ["a function `parameters` that answers nonsense", { parameters: () => "x" as never }, {}, "`parameters` must be"],
    [
      "a function `parameters` that throws",
      {
        parameters: () => {
          throw new Error("+14155552671");
        },
      },
      {},
      "option `parameters` failed",
    ],
    ["a destination that is not E.164", {}, { to: "4155552671" }, "E.164"],
    ["a deadline that has passed", {}, {}, "deadline"],
  ])("%s", async (name, options, change, reason) => {
    const sender = smppSender({ ...good, ...options, clock });
    const outcome = await sender.send(aMessage(change), clock.context(name.includes("deadline") ? 0 : 5_000));
    expect(outcome).toEqual({ outcome: "rejected", reason: expect.stringContaining(reason) });
    expect(JSON.stringify(outcome)).not.toContain("4155552671");
    expect(sender.status().state).toBe("idle");
    await sender.close();
    expect(sender.status().state).toBe("closed");
  });
});
