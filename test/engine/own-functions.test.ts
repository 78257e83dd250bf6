import { describe, expect, it, vi } from "vitest";
import { httpLookup } from "../../adapters/lookup/http.js";
import { httpSender } from "../../adapters/sms/http.js";
import { messageBirdSender } from "../../adapters/sms/messagebird.js";
import { readOptions as readSmppOptions } from "../../adapters/sms/smpp/settings.js";
import type { SmsSender, VerifierOptions } from "../../src/index.js";
import { readOptions } from "../../src/options/options.js";
import { router } from "../../src/routing/router.js";
import { setUp } from "../support/verifier.js";

/** Vitest fails the run for every rejection that nothing handles. */
const rejects = (async () => Promise.reject(new Error("the server is down"))) as never;
const throws = (() => {
  throw new Error("a mistake");
}) as never;
const sender = (methods: object): SmsSender => ({ send: async () => ({ outcome: "accepted" }), ...methods });

describe("no function of the caller's ends the process, or fails a message that was counted", () => {
  it.each([
    ["a cell that rejects", { spamRules: [{ name: "own", seed: 9, cell: rejects }] }, "a spam rule failed"],
    ["a plan that rejects", { sender: sender({ plan: rejects }) }, "could not plan a route"],
    ["a fallback.confirms that throws", fallback(throws), "confirm deliveries"],
    ["a fallback.confirms that rejects", fallback(rejects), "confirm deliveries"],
    ["a telemetry.metrics that rejects", { telemetry: { step: (_: unknown, work: () => unknown) => work(), metrics: rejects } as never }, "telemetry failed"],
    ["a locale that rejects", { message: { text: { default: "{code}" }, locale: rejects } }, "message.locale failed"],
  ] satisfies [string, Partial<VerifierOptions>, string][])("%s is logged, and the message is sent", async (_what, options, message) => {
    const set = setUp(options);
    expect((await set.create()).status).toBe("pending");
    expect(set.log.lines).toContainEqual(expect.objectContaining({ message: expect.stringContaining(message) }));
  });

  it("callbacks.waitUntil that rejects is logged, and the work continues", async () => {
    const waitUntil = rejects;
    const set = setUp({ callbacks: { worker: false, waitUntil }, lists: { block: async () => ({ numbers: ["+33698765432"] }) } });
    expect((await set.create()).status).toBe("pending");
    expect(set.log.lines).toContainEqual(expect.objectContaining({ message: expect.stringContaining("callbacks.waitUntil failed") }));
  });

  it("a router's network that rejects is an unknown network", async () => {
    const routed = router({
      network: rejects,
      routes: [
        { name: "one", networks: ["208"], sender: sender({}) },
        { name: "two", sender: sender({}) },
      ],
    });
    expect(routed.plan({ to: "+33612345678", authentication_uuid: "a", customer_uuid: "c", attempt: 1 })).toEqual({ route: "two" });
  });

  it("a sender's reaches that rejects is named when the verifier is created", () => {
    expect(() => setUp({ countries: ["FR"], sender: sender({ reaches: rejects }) })).toThrow("sender.reaches returned a promise");
  });

  it("options that are a promise which rejects are named", () => {
    expect(() => readOptions((rejects as () => never)())).toThrow("the options are a promise");
  });

  it("a sender's serves that rejects is a finding of diagnose, which never rejects", async () => {
    const found = await setUp({ countries: ["FR"], sender: sender({ serves: rejects }) }).verifier.diagnose();
    expect(found).toContainEqual(expect.objectContaining({ level: "fault", about: "sender", message: expect.stringContaining("serves") }));
  });

  it.each([
    ["from", { url: "https://carrier.example/?text={text}&from={from}", from: rejects }],
    ["url", { url: rejects }],
    ["body", { url: "https://carrier.example/", body: rejects }],
  ])("httpSender: a function %s that rejects is not sent", async (_option, options) => {
    const set = setUp({ sender: httpSender({ ...options, fetch: async () => ({ status: 200 }) } as never) });
    expect(await set.create()).toMatchObject({ status: "pending", carrier_refused: true });
  });

  it("another sender's function extra that rejects is not sent", async () => {
    const fetch = async () => ({ status: 200 });
    const set = setUp({ sender: messageBirdSender({ accessKey: "k".repeat(25), from: "ACME", extra: rejects, fetch }) });
    expect(await set.create()).toMatchObject({ status: "pending", carrier_refused: true });
  });

  it.each([
    ["throws", throws],
    ["rejects", rejects],
  ])("smppSender: what a logger that %s was to log goes to the console", async (_how, warn) => {
    const told = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    const { logger } = readSmppOptions({ host: "smpp.example", systemId: "id", password: "secret", from: "ACME", logger: { warn } as never });
    logger?.warn({ window: 1 }, "the SMPP peer throttles");
    logger?.info({}, "a logger without info");
    await new Promise((resolve) => setImmediate(resolve));
    expect(told).toHaveBeenCalledWith("the SMPP peer throttles", { window: 1 });
  });

  it("httpLookup: headers that reject are a lookup that failed", async () => {
    const facts = { carrier: rejects };
    const lookup = httpLookup({
      url: "https://lookup.example/{number}",
      headers: rejects,
      facts,
      number: "number",
      price: 0,
      fetch: async () => ({ status: 200 }),
    } as never);
    const set = setUp({ lookup });
    expect(await set.verifier.lookup({ customer_uuid: set.customer, phone_number: "+33612345678" })).not.toHaveProperty("carrier");
  });
});

function fallback(confirms: never): Partial<VerifierOptions> {
  return {
    receipts: { baseUrl: "https://receipts.example", sources: [] },
    callbacks: { worker: true },
    sender: sender({ plan: () => ({ route: "one" }), fallback: { after: 20_000, on: ["silent"], most: 1, elsewhere: true, confirms } }),
  };
}
