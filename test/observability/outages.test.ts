import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import type { OutageEvent, Store, VerifierEvent, VerifierOptions } from "../../src/index.js";
import { errorCode, numberOf, setUp } from "../support/verifier.js";

const turn = () => new Promise(setImmediate);

/** A verifier whose store can be made to fail. */
function breakable(options: Partial<VerifierOptions> = {}) {
  const store = memoryStore({ name: randomUUID() });
  const whole = store.commit.bind(store);
  const outages: OutageEvent[] = [];
  const set = setUp({ store, onEvent: (event: VerifierEvent) => void (event.type === "outage" && outages.push(event)), ...options });
  const down = (is: boolean) => {
    (store as { commit: Store["commit"] }).commit = is ? async () => Promise.reject(new Error("ECONNREFUSED")) : whole;
  };
  const lines = () => set.log.lines.filter(({ message }) => message.includes("the store"));
  return { ...set, outages, down, lines };
}

describe("an outage is logged once at its beginning, once a minute while it lasts, and once at its end, with counts", () => {
  it("the store: 43 failed requests log a single line, further failures and the recovery one each", async () => {
    const set = breakable();
    set.down(true);
    for (let index = 0; index < 43; index++) expect(await errorCode(set.create({ phone_number: numberOf(index) }))).toBe("unavailable");
    await turn();
    expect(set.log.lines.map(({ level, message }) => [level, message])).toEqual([["error", "the store failed"]]);
    // Writes whose responses were lost are taken back in the background, in several tries, which log no line each either.
    for (const wait of [1, 4, 5, 5, 5, 5, 5, 5, 5, 5]) {
      set.clock.advance(wait * 1_000);
      await turn();
      await turn();
    }
    expect(set.log.lines.length).toBeLessThanOrEqual(3);
    const failures = Number(/phoneproof_faults_total\{part="store"\} (\d+)/.exec(set.verifier.metrics())?.[1]);
    expect(failures).toBeGreaterThan(43);
    set.clock.advance(60_000);
    expect(await errorCode(set.create())).toBe("unavailable");
    expect(set.lines().at(-1)).toMatchObject({
      level: "error",
      message: "the store still fails",
      fields: { failures: failures + 1, since: "2026-03-01T12:00:00.000Z", reason: "ECONNREFUSED" },
    });
    expect(set.verifier.metrics()).toContain('phoneproof_outage{part="store"} 1');

    set.down(false);
    expect((await set.create()).status).toBe("pending");
    expect(set.lines().at(-1)?.message, "ten seconds of calm first").toBe("the store still fails");
    set.clock.advance(10_000);
    expect((await set.create({ phone_number: numberOf(99) })).status).toBe("pending");
    await turn();
    expect(set.lines().at(-1)).toMatchObject({ level: "warn", message: "the store works again", fields: { failures: failures + 2 } });
    expect(set.verifier.metrics()).toContain('phoneproof_outage{part="store"} 0');
    expect(set.outages.map(({ phase, failures: count }) => [phase, count])).toEqual([
      ["began", 1],
      ["lasts", failures + 1],
      ["ended", failures + 2],
    ]);
    const before = set.log.lines.length;
    await set.create({ phone_number: numberOf(100) });
    expect(set.log.lines.length).toBe(before);
  });

  it("a quarter of an hour in which every other call fails is one outage, with one line a minute", async () => {
    const set = breakable({ policy: { limits: { perCustomer: [] } } });
    for (let index = 0; index < 225; index++) {
      set.down(index % 2 === 0);
      await set.create({ phone_number: numberOf(index) }).catch(() => undefined);
      set.clock.advance(4_000);
    }
    expect(set.lines().filter(({ message }) => message === "the store failed")).toHaveLength(1);
    expect(set.lines().filter(({ message }) => message === "the store still fails").length).toBeLessThanOrEqual(15);
  });

  it.each([
    ["throws", async () => Promise.reject(new Error("socket hang up"))],
    ["answers nonsense", async () => "sent" as never],
    ["leaves it open", async () => ({ outcome: "unknown", reason: "HTTP 502" }) as const],
  ])("the sender, which %s", async (_what, answer) => {
    const set = setUp();
    set.box.answer = answer;
    for (let index = 0; index < 20; index++) await set.create({ phone_number: numberOf(index) });
    expect(set.log.lines.map(({ message }) => message)).toEqual(["the sender failed"]);
    set.box.answer = async () => ({ outcome: "accepted" });
    set.clock.advance(11_000);
    await set.create({ phone_number: numberOf(30) });
    expect(set.log.lines.at(-1)).toMatchObject({ message: "the sender works again", fields: { failures: 20 } });
  });

  it.each([undefined, null, "sent", { ok: true }, { outcome: "sent", reason: "queued" }])(
    "a sender that returns %j is logged with what its result lacks",
    async (answer) => {
      const set = setUp();
      set.box.answer = async () => answer as never;
      await set.create();
      expect(set.log.lines).toMatchObject([
        { message: "the sender failed", fields: { reason: "the sender's result has no outcome of accepted, rejected or unknown" } },
      ]);
    },
  );

  it("if reading a sender's result throws, the message may have been sent: create returns `pending`, and the code works", async () => {
    const set = setUp();
    set.box.answer = async () => ({
      get outcome(): "accepted" {
        throw new Error("gone");
      },
    });
    const { authentication_uuid, status } = await set.create();
    expect(status).toBe("pending");
    expect(set.log.lines).toMatchObject([{ message: "the sender failed", fields: { reason: "gone" } }]);
    expect(await set.check(authentication_uuid, set.box.code())).toMatchObject({ status: "valid" });
  });

  it("rejected messages are not an outage; their reason is logged once a minute, with the number left out", async () => {
    const set = setUp();
    set.box.answer = async () => ({ outcome: "rejected", reason: "HTTP 401" });
    for (let index = 0; index < 20; index++) await set.create({ phone_number: numberOf(index) });
    set.clock.advance(60_000);
    await set.create({ phone_number: numberOf(30) });
    expect(set.log.lines).toMatchObject([
      { message: "the sender rejected a message", fields: { reason: "HTTP 401" } },
      { message: "the sender rejected a message", fields: { left_out: 19 } },
    ]);
    expect(set.verifier.metrics()).toContain('phoneproof_outage{part="sender"} 0');
  });

  it("the customer source", async () => {
    let broken = true;
    const customer_uuid = randomUUID();
    const find = async () => {
      if (broken) throw new Error("database down");
      return { customer_uuid };
    };
    const set = setUp({ customers: { find, findByKeyDigest: find } });
    for (let tries = 0; tries < 20; tries++)
      expect(await errorCode(set.verifier.createAuthentication({ customer_uuid, phone_number: numberOf(1) }))).toBe("unavailable");
    expect(set.log.lines.map(({ message }) => message)).toEqual(["the customer source failed"]);
    broken = false;
    set.clock.advance(11_000);
    await set.verifier.createAuthentication({ customer_uuid, phone_number: numberOf(1) });
    expect(set.log.lines.at(-1)).toMatchObject({ message: "the customer source works again", fields: { failures: 20 } });
    expect(set.verifier.metrics()).toContain('phoneproof_operations_total{operation="create",result="unavailable"} 20');
  });

  it("the lookup provider", async () => {
    let broken = true;
    const set = setUp({
      lookup: {
        lookup: async () => {
          if (broken) throw new Error("down");
          return { carrier: "Orange" };
        },
      },
    });
    // A new number each time, since lookup results are cached, even empty ones.
    let number = 0;
    const lookup = () => set.verifier.lookup({ customer_uuid: set.customer, phone_number: numberOf(++number) });
    for (let tries = 0; tries < 20; tries++) await lookup();
    expect(set.log.lines.map(({ message }) => message)).toEqual(["the lookup provider failed; only the numbering plan is used"]);
    broken = false;
    set.clock.advance(11_000);
    expect(await lookup()).toMatchObject({ carrier: "Orange" });
    expect(set.log.lines.at(-1)?.message).toBe("the lookup provider works again");
  });
});
