import { describe, expect, it } from "vitest";
import { lineTypes } from "../../src/contract/lookup.js";
import type { LookupProvider, LookupResult, VerifierOptions } from "../../src/index.js";
import { router } from "../../src/routing/router.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";
import { errorCode, inbox, numberOf, setUp, start } from "../support/verifier.js";

const american = { phone_number: "+14155552671" };
const soon = () => new Promise((resolve) => setImmediate(resolve));

/** A verifier that looks numbers up before it sends, and the numbers it asked for. */
function setUpBefore(answer: LookupProvider["lookup"] | LookupResult, options: Partial<VerifierOptions> = {}) {
  const asked: string[] = [];
  const lookup: LookupProvider = {
    async lookup(request, context) {
      asked.push(request.phone_number);
      return typeof answer === "function" ? answer(request, context) : answer;
    },
  };
  return { ...setUp({ lookup, lookupBeforeSend: true, ...options }), asked };
}

describe("lookupBeforeSend: a line type that cannot receive codes gives `invalid_line`, even if the numbering plan does not show it", () => {
  const refused = ["PremiumRate", "SharedCost", "TollFree", "Pager", "VoiceMail", "UniversalAccess", "FixedLine"];
  it.each(lineTypes)("%s", async (line_type) => {
    const { create, box } = setUpBefore({ line_type });
    if (refused.includes(line_type)) expect(await errorCode(create(american))).toBe("invalid_line");
    else expect((await create(american)).status).toBe("pending");
    expect(box.messages).toHaveLength(refused.includes(line_type) ? 0 : 1);
  });

  it("off by default: no provider is called before a send", async () => {
    const { create, asked } = setUpBefore({ line_type: "FixedLine" }, { lookupBeforeSend: undefined });
    expect((await create(american)).status).toBe("pending");
    expect(asked).toEqual([]);
  });

  it("a rejection does not count towards a cap, and the provider is called only once", async () => {
    const { create, asked, verifier, customer } = setUpBefore(
      { line_type: "FixedLine" },
      { policy: { limits: { perCustomer: [{ limit: 1, window: 3600 }] } } },
    );
    for (let times = 0; times < 5; times++) expect(await errorCode(create(american))).toBe("invalid_line");
    expect(asked).toHaveLength(1);
    expect(await verifier.lookup({ customer_uuid: customer, ...american })).toMatchObject({ line_type: "FixedLine" });
    expect(asked, "the lookup finds what create learned").toHaveLength(1);
  });

  it("creates with the same idempotency key return the same result, and the provider is called once", async () => {
    const { create, asked, box } = setUpBefore({ line_type: "Mobile" });
    const answers = await Promise.all(Array.from({ length: 20 }, () => create(american, { idempotencyKey: "key" })));
    expect(new Set(answers.map(({ authentication_uuid }) => authentication_uuid)).size).toBe(1);
    expect([asked.length, box.messages.length]).toEqual([1, 1]);
  });

  it("a repeat with its key returns what is stored, whatever a lookup returns by then", async () => {
    let answer: LookupResult = { line_type: "Mobile", incomplete: true };
    const { create, clock } = setUpBefore(async () => answer);
    const { authentication_uuid, created_at, expires_at, status } = await create(american, { idempotencyKey: "key" });
    answer = { line_type: "FixedLine" };
    clock.advance(600_000);
    expect(await create(american, { idempotencyKey: "key" })).toMatchObject({ authentication_uuid, created_at, expires_at, status });
    expect(await errorCode(create(american))).toBe("invalid_line");
  });

  it.each<[string, LookupProvider["lookup"]]>([
    ["throws", () => Promise.reject(new Error("down"))],
    ["knows nothing", async () => undefined],
    ["answers nonsense", async () => ({ line_type: "Toaster", mcc: 5 }) as never],
    ["answers a string", async () => "FixedLine" as never],
  ])("fails open: a provider that %s blocks no message", async (_, lookup) => {
    const { create, box } = setUpBefore(lookup);
    expect((await create(american)).status).toBe("pending");
    expect(box.messages).toHaveLength(1);
  });

  it("fails open within its deadline, with a log: a provider that hangs delays a create by up to `lookupTimeout`", async () => {
    const { create, clock, box, log } = setUpBefore(() => new Promise(() => {}), { lookupTimeout: 0.5 });
    const creating = create(american);
    await soon();
    await soon();
    expect(box.messages).toHaveLength(0);
    clock.advance(500);
    expect((await creating).status).toBe("pending");
    expect(log.lines).toContainEqual(expect.objectContaining({ level: "error", message: "the lookup provider failed; only the numbering plan is used" }));
  });

  it("above the limit of lookups messages are still sent, and the numbering plan decides", async () => {
    const policy = { limits: { lookups: [{ limit: 2, window: 3600 }] } };
    const { create, asked } = setUpBefore({ line_type: "FixedLine" }, { policy });
    const faults = [];
    for (let index = 0; index < 4; index++) faults.push(await errorCode(create({ phone_number: numberOf(index) })));
    expect(faults).toEqual(["invalid_line", "invalid_line", "no error", "no error"]);
    expect(asked).toHaveLength(2);
  });

  it("numbers that are rejected anyway (invalid, line type, country, block list, blocked address) and test numbers are not looked up", async () => {
    const { create, asked } = setUpBefore(
      { line_type: "Mobile" },
      { countries: ["FR", "US"], blockedNumbers: ["+33699*"], lists: { block: { cidrs: ["192.0.2.7/32"] } }, testNumbers: ["+447700900123"] },
    );
    expect(await errorCode(create({ phone_number: "+1" }))).toBe("invalid_phone_number");
    expect(await errorCode(create({ phone_number: "+33142345678" }))).toBe("invalid_line");
    expect(await errorCode(create({ phone_number: "+4915123456789" }))).toBe("unsupported_region");
    expect(await errorCode(create({ phone_number: "+33699123456" }))).toBe("blocked_number");
    expect((await create({ ...american, ip: "192.0.2.7" })).status).toBe("spam_detected");
    expect((await create({ phone_number: "+447700900123" })).status).toBe("pending");
    expect(asked).toEqual([]);
  });

  it("without the option lookup it throws at construction", () => {
    expect(() => setUp({ lookupBeforeSend: true })).toThrow("lookupBeforeSend needs the option lookup");
  });
});

describe('the router\'s `network: "lookup"`: MCC and MNC of the lookup choose the route', () => {
  /** Routes for a network, and for the rest. */
  function routes(clock = fixedClock(start)) {
    const [special, rest] = [inbox(), inbox()];
    const sender = router({
      clock,
      network: "lookup",
      routes: [
        { name: "sfr", sender: special, networks: ["208-10"] },
        { name: "rest", sender: rest, priority: 2 },
      ],
    });
    return { sender, special, rest, clock };
  }

  it.each<[string, LookupResult, "sfr" | "rest"]>([
    ["the network of the route", { mcc: "208", mnc: "10" }, "sfr"],
    ["another network", { mcc: "208", mnc: "01" }, "rest"],
    ["MCC alone", { mcc: "208" }, "rest"],
    ["nothing", {}, "rest"],
    ["a network of a wrong form", { mcc: "2081", mnc: "0" }, "rest"],
  ])("%s", async (_, facts, taken) => {
    const { sender, special, rest, clock } = routes();
    const { create } = setUpBefore(facts, { sender, clock });
    await create();
    expect([special.messages.length, rest.messages.length]).toEqual(taken === "sfr" ? [1, 0] : [0, 1]);
    const [message] = [...special.messages, ...rest.messages];
    expect(message?.network).toEqual(facts.mcc?.length === 3 ? facts : undefined);
  });

  it("a retry gets the network from the cache, without a second lookup", async () => {
    const { sender, special, rest, clock } = routes();
    const { create, retry, asked } = setUpBefore({ mcc: "208", mnc: "10" }, { sender, clock });
    const { authentication_uuid } = await create();
    clock.advance(30_000);
    expect((await retry(authentication_uuid)).status).toBe("approved");
    expect(special.messages.length + rest.messages.length).toBe(2);
    expect([...special.messages, ...rest.messages].map(({ network }) => network)).toEqual([
      { mcc: "208", mnc: "10" },
      { mcc: "208", mnc: "10" },
    ]);
    expect(asked).toHaveLength(1);
  });

  it("a verifier without lookupBeforeSend throws at construction", () => {
    expect(() => setUp({ sender: routes().sender })).toThrow('sender chooses routes by what a lookup knows (network: "lookup"): set lookupBeforeSend to true');
  });

  it("a router with its own source of networks needs no lookup", () => {
    const sender = router({ network: () => ({ mcc: "208" }), routes: [{ name: "a", sender: inbox(), networks: ["208"] }] });
    expect(sender.readsNetwork).toBe(false);
    expect(() => setUp({ sender })).not.toThrow();
  });

  it("an invalid `network` throws at construction", () => {
    expect(() => router({ network: "hlr" as never, routes: [{ name: "a", sender: inbox() }] })).toThrow('network must be "lookup", or a function');
  });
});
