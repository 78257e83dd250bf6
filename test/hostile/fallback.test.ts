import { describe, expect, it } from "vitest";
import type { Channel } from "../../src/index.js";
import type { Receipt } from "../../src/ports/receipts.js";
import type { FallbackReason } from "../../src/ports/sms-sender.js";
import { PlainStore } from "../store/plain-store.js";
import { after, carrier, exhaust, hangs, isNotThere, mayHave, ofEvents, refuses, saysWhy, silence, start, takes, type World, world } from "./fallback-kit.js";
import { callbackUrl, drive, numberAt, pass, turns } from "./kit.js";
import { settled } from "./one-commit-kit.js";

const begin = async ({ one }: World, number: string | number = 1, fields: Record<string, unknown> = {}) =>
  (await one.create(number, fields)).authentication_uuid;
const minute = 60_000;

/** What each `on` alone causes: no fallback, one at once, one at 20 s, or another route in the same request. */
type Cell = "-" | "now" | "20 s" | "same request";
type Then = "none" | "in_transit" | "delivered" | "undeliverable" | "undeliverable, unreachable";
const rows: readonly (readonly [
  Channel,
  "accepted" | "unknown" | "rejected" | "rejected, unreachable",
  Then,
  unreachable: Cell,
  undeliverable: Cell,
  silent: Cell,
])[] = [
  ["whatsapp", "accepted", "none", "-", "-", "20 s"],
  ["whatsapp", "accepted", "in_transit", "-", "-", "20 s"],
  ["whatsapp", "accepted", "delivered", "-", "-", "-"],
  ["whatsapp", "accepted", "undeliverable", "-", "now", "20 s"],
  ["whatsapp", "accepted", "undeliverable, unreachable", "now", "now", "20 s"],
  ["whatsapp", "unknown", "none", "-", "-", "20 s"],
  ["whatsapp", "unknown", "delivered", "-", "-", "-"],
  ["whatsapp", "unknown", "undeliverable", "-", "now", "20 s"],
  ["whatsapp", "unknown", "undeliverable, unreachable", "now", "now", "20 s"],
  ["whatsapp", "rejected", "none", "same request", "same request", "same request"],
  ["whatsapp", "rejected, unreachable", "none", "same request", "same request", "same request"],
  ["telegram", "accepted", "none", "-", "-", "20 s"],
  ["telegram", "accepted", "delivered", "-", "-", "-"],
  ["telegram", "accepted", "undeliverable", "-", "now", "20 s"],
  ["telegram", "rejected, unreachable", "none", "same request", "same request", "same request"],
  // Viber and RCS of a carrier whose receipts do not confirm each delivery.
  ["viber", "accepted", "none", "-", "-", "-"],
  ["viber", "accepted", "undeliverable", "-", "now", "-"],
  ["rcs", "accepted", "undeliverable, unreachable", "now", "now", "-"],
  ["rcs", "unknown", "none", "-", "-", "-"],
  ["sms", "accepted", "none", "-", "-", "-"],
  ["sms", "accepted", "delivered", "-", "-", "-"],
  ["sms", "accepted", "undeliverable", "-", "now", "-"],
  ["sms", "accepted", "undeliverable, unreachable", "now", "now", "-"],
  ["sms", "unknown", "none", "-", "-", "-"],
  ["sms", "unknown", "undeliverable", "-", "now", "-"],
  ["sms", "rejected", "none", "same request", "same request", "same request"],
  // A requested call: only another call may follow it.
  ["voice", "accepted", "none", "-", "-", "-"],
  ["voice", "accepted", "delivered", "-", "-", "-"],
  ["voice", "accepted", "undeliverable", "-", "now", "-"],
  ["voice", "unknown", "none", "-", "-", "-"],
];

describe("each channel, outcome, receipt and reason (docs/contract.md#fallback)", () => {
  const answers = { accepted: takes, unknown: mayHave, rejected: refuses, "rejected, unreachable": isNotThere };
  const reasons: readonly FallbackReason[] = ["unreachable", "undeliverable", "silent"];
  const cases = rows.flatMap(([channel, outcome, then, ...cells]) => [
    ...reasons.map((reason, i) => [channel, outcome, then, [reason], cells[i] as Cell] as const),
    // With all three, the earliest one.
    [channel, outcome, then, reasons, (["same request", "now", "20 s"] as const).find((cell) => cells.includes(cell)) ?? "-"] as const,
  ]);
  it.each(cases)("%s %s, then %s, on %j: %s", async (channel, outcome, then, on, cell) => {
    const first = carrier(channel, channel === "viber" || channel === "rcs" ? { confirms: false } : {});
    first.answer = answers[outcome];
    const next = carrier(channel === "voice" ? "voice" : "sms");
    const w = world({
      routes: [
        { name: "first", sender: first, priority: 0 },
        { name: "next", sender: next, priority: 1, fallback: true },
        // Without this route, "silent" alone would be rejected for SMS.
        { name: "abroad", sender: carrier("telegram"), countries: ["US"] },
      ],
      fallback: { on },
    });
    const id = await begin(w, 1, channel === "voice" ? { channel } : {});
    expect(w.story(id)).toEqual(cell === "same request" ? ["1 first", "1 next"] : ["1 first"]);
    w.clock.advance(3_000);
    const [status, unreachable] = then.split(", ");
    if (then !== "none")
      expect(await w.one.receipt(w.messageOf(id), status as Receipt["status"], unreachable === undefined ? {} : { unreachable: true })).toBe(200);
    await w.one.flush();
    expect(w.journal.slice(cell === "same request" ? 2 : 1).map(({ route }) => route)).toEqual(cell === "now" ? ["next"] : []);
    w.clock.advance(after - 3_001);
    await w.one.flush();
    expect(w.story(id)).toHaveLength(cell === "-" || cell === "20 s" ? 1 : 2);
    w.clock.advance(2);
    await w.one.flush();
    expect(w.story(id)).toHaveLength(cell === "-" ? 1 : 2);
    const sent = w.story(id);
    await exhaust(w, 12);
    expect(w.story(id)).toEqual(sent);
  });
});

describe("the time of a fallback (docs/contract.md#fallback-worker)", () => {
  it("a worker sends it up to pollInterval after it is due", async () => {
    const w = world({ callbacks: { worker: true }, fallback: { worker: "here" } });
    const id = await begin(w);
    await pass(w.clock, 60_000, 250);
    expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
    expect((w.journal[1]?.at as number) - start).toBeGreaterThanOrEqual(after);
    expect((w.journal[1]?.at as number) - start).toBeLessThanOrEqual(after + 5_000);
  });

  it("after `undeliverable`, a worker sends it up to pollInterval after the receipt", async () => {
    const w = world({ callbacks: { worker: true }, fallback: { worker: "here" } });
    const id = await begin(w);
    await pass(w.clock, 7_000, 250);
    const told = w.clock.now();
    await w.one.receipt(w.messageOf(id), "undeliverable");
    await pass(w.clock, 10_000, 250);
    expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
    expect((w.journal[1]?.at as number) - told).toBeLessThanOrEqual(5_000);
  });

  it("it needs no separate write: a create that a carrier accepts is one commit", async () => {
    const w = world();
    await begin(w);
    await begin(w, 2);
    const before = w.one.store.calls.length;
    await begin(w, 3);
    await turns();
    const writes = w.one.store.calls.slice(before).filter(({ method }) => method !== "get" && method !== "find");
    expect(writes.map(({ method }) => method)).toEqual(["commit"]);
  });

  it("a message that can be replaced has `replaced_at`, and one that cannot has none", async () => {
    const w = world();
    const id = await begin(w);
    expect(w.messageOf(id).replaced_at).toBe(start + after);
    await silence(w);
    expect(w.messageOf(id, 2).replaced_at).toBeUndefined();
    expect(w.messageOf(id, 2)).toMatchObject({ fallback: true, routes_tried: ["wa"] });
  });

  it("a receipt of delivery ends it, after in_transit too; late ones change nothing", async () => {
    const w = world();
    const [timely, late] = [await begin(w, 1), await begin(w, 2)];
    w.clock.advance(19_999);
    await w.one.receipt(w.messageOf(timely), "in_transit");
    await w.one.receipt(w.messageOf(timely), "delivered");
    await silence(w, 2);
    await w.one.receipt(w.messageOf(late, 1), "delivered");
    await w.one.receipt(w.messageOf(late, 1), "undeliverable", { unreachable: true });
    await exhaust(w, 5);
    expect(w.story(timely)).toEqual(["1 wa"]);
    expect(w.story(late)).toEqual(["1 wa", "2 sms"]);
  });

  it("the code entered at 19 s: no fallback, not even after a late receipt", async () => {
    const w = world();
    const id = await begin(w);
    w.clock.advance(19_000);
    expect((await w.one.check(id, w.codeOf(id))).status).toBe("valid");
    await silence(w);
    await w.one.receipt(w.messageOf(id), "undeliverable", { unreachable: true });
    await exhaust(w, 12);
    expect(w.story(id)).toEqual(["1 wa"]);
  });

  it("a retry ends it, and its own message can fall back", async () => {
    const w = world({ fallback: { after: 40 } });
    const [onSms, onWhatsapp] = [await begin(w, 1), await begin(w, 2)];
    w.clock.advance(30_001);
    expect((await w.one.retry(onSms)).status).toBe("approved");
    expect((await w.one.retry(onWhatsapp, { channel: "whatsapp" })).status).toBe("approved");
    await silence(w, 20_000);
    expect(w.story(onSms)).toEqual(["1 wa", "2 sms"]);
    expect(w.story(onWhatsapp)).toEqual(["1 wa", "2 wa"]);
    // The first message is not the newest.
    await w.one.receipt(w.messageOf(onWhatsapp, 1), "undeliverable");
    await w.one.receipt(w.messageOf(onSms, 1), "undeliverable");
    await w.one.flush();
    expect(w.story(onWhatsapp)).toEqual(["1 wa", "2 wa"]);
    await silence(w, 20_001);
    expect(w.story(onWhatsapp)).toEqual(["1 wa", "2 wa", "3 sms"]);
    await exhaust(w, 5);
    expect(w.story(onSms)).toEqual(["1 wa", "2 sms"]);
  });

  it("a retry that every carrier rejects has no fallback, and ends that of the message before it", async () => {
    const [wa, sms, other] = [carrier("whatsapp"), carrier("sms"), carrier("sms")];
    const routes = [
      { name: "wa", sender: wa, priority: 0 },
      { name: "sms", sender: sms, priority: 1 },
      { name: "sms2", sender: other, priority: 2 },
    ];
    const w = world({ routes, fallback: { after: 40 } });
    for (const channel of ["sms", "whatsapp"] as const) {
      for (const one of [wa, sms, other]) one.answer = takes;
      const id = await begin(w, channel === "sms" ? 1 : 2, { channel });
      w.clock.advance(30_001);
      for (const one of [wa, sms, other]) one.answer = refuses;
      expect((await w.one.retry(id, { channel: "whatsapp" })).status).toBe("denied");
      for (const one of [wa, sms, other]) one.answer = takes;
      const sent = w.story(id);
      await exhaust(w, 12);
      expect(w.story(id)).toEqual(sent);
    }
  });

  it("a message falls back at most `most` times, each on a route that no earlier message used", async () => {
    for (const most of [1, 2, 3]) {
      const [wa, tg, sms] = [carrier("whatsapp"), carrier("telegram"), carrier("sms")];
      const routes = [
        { name: "wa", sender: wa, priority: 0 },
        { name: "tg", sender: tg, priority: 1 },
        { name: "sms", sender: sms, priority: 2 },
      ];
      const w = world({ routes, fallback: { most } });
      const id = await begin(w);
      await exhaust(w, 5);
      expect(w.story(id)).toEqual(["1 wa", "2 tg", "3 sms"].slice(0, most + 1));
      // After the last one's receipt, no route or no fallback is left.
      await w.one.receipt(w.messageOf(id), "undeliverable");
      await exhaust(w, 3);
      expect(w.story(id)).toHaveLength(Math.min(3, most + 1));
    }
  });

  it("`most` counts over retries too", async () => {
    const w = world({
      routes: [
        { name: "wa", sender: carrier("whatsapp"), priority: 0 },
        { name: "tg", sender: carrier("telegram"), priority: 1 },
        { name: "sms", sender: carrier("sms"), priority: 2 },
      ],
      policy: { limits: { perNumber: [{ limit: 10, window: 86_400 }] } },
    });
    const id = await begin(w);
    await silence(w);
    expect(w.story(id)).toEqual(["1 wa", "2 tg"]);
    w.clock.advance(60_000);
    expect((await w.one.retry(id, { channel: "whatsapp" })).status).toBe("approved");
    await exhaust(w, 5);
    expect(w.story(id)).toEqual(["1 wa", "2 tg", "3 wa"]);
  });
});

describe("what a fallback costs (docs/contract.md#fallback-costs)", () => {
  it("it uses up no retry, but next_retry_at counts from it", async () => {
    const w = world();
    const id = await begin(w);
    await silence(w, after);
    const { left } = await w.one.explain(id);
    expect(left).toMatchObject({ retries: 4, checks: 5 });
    w.clock.advance(29_999);
    const denied = await w.one.retry(id);
    expect(denied).toMatchObject({ status: "denied", remaining_retry: 4, next_retry_at: new Date(start + after + 30_000).toISOString() });
    w.clock.advance(1);
    expect(await w.one.retry(id)).toMatchObject({ status: "approved", remaining_retry: 3 });
    expect(w.story(id).map((one) => one[0])).toEqual(["1", "2", "3"]);
  });

  it("all four retries are left, and the caps count the fallback", async () => {
    const w = world({
      policy: {
        retryCooldowns: [1, 1, 1, 1],
        limits: {
          perNumber: [
            { limit: 5, window: 600 },
            { limit: 10, window: 86_400 },
          ],
        },
      },
    });
    const id = await begin(w);
    await silence(w);
    const found: string[] = [];
    for (let i = 0; i < 4; i++) {
      w.clock.advance(2_000);
      found.push((await w.one.retry(id)).status);
    }
    expect(found).toEqual(["approved", "approved", "approved", "rate_limited"]);
  });

  const blocked: readonly (readonly [string, Parameters<typeof world>[0], status: "rate_limited" | "spam_detected", rule: RegExp])[] = [
    ["the cap of the number", { policy: { limits: { perNumber: [{ limit: 1, window: 86_400 }] } } }, "rate_limited", /perNumber/],
    ["the cap of the customer", { policy: { limits: { perCustomer: [{ limit: 1, window: 3_600 }] } } }, "rate_limited", /perCustomer/],
  ];
  it.each(blocked)("blocked by %s: not tried again, explained, and costs nothing", async (_, setup, status, rule) => {
    const w = world(setup);
    const id = await begin(w);
    await silence(w);
    expect(w.story(id)).toEqual(["1 wa"]);
    const commits = w.one.store.count("commit");
    await exhaust(w, 8);
    expect(w.one.store.count("commit")).toBe(commits);
    expect(w.story(id)).toEqual(["1 wa"]);
    expect(saysWhy(await w.one.explain(id))).toMatch(rule);
    expect(ofEvents(w.one, "refused")).toMatchObject([{ operation: "fallback", status, authentication_uuid: id }]);
    expect((await w.one.explain(id)).left).toMatchObject({ checks: 5 });
  });

  it("blocked by a spam rule: as a retry would be, and not tried again", async () => {
    const w = world({ policy: { spam: { address: { mode: "enforce", seed: 2 } } } });
    const ids = [await begin(w, 1, { ip: "192.0.2.1" }), await begin(w, 2, { ip: "192.0.2.1" })];
    await silence(w);
    await exhaust(w, 5);
    expect(ids.flatMap(w.story)).toEqual(["1 wa", "1 wa"]);
    for (const id of ids) expect(saysWhy(await w.one.explain(id))).toContain("address");
    expect(ofEvents(w.one, "refused").map(({ operation, status }) => [operation, status])).toEqual([
      ["fallback", "rate_limited"],
      ["fallback", "rate_limited"],
    ]);
  });

  it("blocked by a ceiling: not tried again, explained; the code stays live and no retry is used", async () => {
    const w = world({
      routes: [
        { name: "wa", sender: carrier("whatsapp"), priority: 0, price: 1 },
        { name: "sms", sender: carrier("sms"), priority: 1, price: 1 },
      ],
      policy: { limits: { spend: [{ amount: 3, per: "hour" }] } },
    });
    const id = await begin(w);
    await begin(w, 2, { channel: "sms" });
    await begin(w, 3, { channel: "sms" });
    await silence(w);
    expect(w.story(id)).toEqual(["1 wa"]);
    expect(saysWhy(await w.one.explain(id))).toMatch(/spend/);
    expect((await w.one.explain(id)).left.retries).toBe(4);
    await exhaust(w, 5);
    expect(w.story(id)).toEqual(["1 wa"]);
    expect((await w.one.check(id, w.codeOf(id))).status).toBe("valid");
  });

  it("only accepted messages count toward the ceiling", async () => {
    const [wa, sms] = [carrier("whatsapp"), carrier("sms")];
    const w = world({
      routes: [
        { name: "wa", sender: wa, priority: 0, price: 1 },
        { name: "sms", sender: sms, priority: 1, price: 2 },
      ],
      policy: { limits: { spend: [{ amount: 20, per: "day" }] } },
    });
    await begin(w, 1);
    await silence(w);
    sms.answer = refuses;
    await begin(w, 2);
    await silence(w);
    // 1 + 2 and 1 + 0 are spent: of 20, 16 are left, and each message first claims the most it may cost (2).
    sms.answer = takes;
    let room = 0;
    while ((await w.one.create(100 + room, { channel: "sms" })).status === "pending") room++;
    expect(room).toBe(8);
  });

  it("rejected by every carrier: not tried again, the first code stays live, and no retry is used", async () => {
    const w = world();
    w.sms.answer = refuses;
    const id = await begin(w);
    await silence(w);
    expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
    await exhaust(w, 4);
    expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
    expect((await w.one.explain(id)).left.retries).toBe(4);
    expect((await w.one.check(id, w.codeOf(id, 2))).status).toBe("invalid");
    expect((await w.one.check(id, w.codeOf(id, 1))).status).toBe("valid");
  });

  const alone = () =>
    world({
      routes: [
        { name: "wa", sender: carrier("whatsapp"), priority: 0 },
        { name: "sms", sender: carrier("sms"), countries: ["US"] },
      ],
    });

  it("without another route, nothing is tried, at no cost", async () => {
    const w = alone();
    const id = await begin(w);
    await silence(w);
    const commits = w.one.store.count("commit");
    await w.one.receipt(w.messageOf(id), "undeliverable");
    await exhaust(w, 5);
    expect(w.one.store.count("commit") - commits).toBeLessThanOrEqual(1);
    expect(w.story(id)).toEqual(["1 wa"]);
    expect((await w.one.explain(id)).left.retries).toBe(4);
    expect((await w.one.check(id, w.codeOf(id))).status).toBe("valid");
  });

  it.each(["silent", "undeliverable"])("without another route from the start, explain shows no fallback (%s)", async (how) => {
    const w = alone();
    const id = await begin(w);
    if (how === "undeliverable") await w.one.receipt(w.messageOf(id), "undeliverable");
    await silence(w);
    expect(saysWhy(await w.one.explain(id))).not.toMatch(/fallback/);
  });

  it("without another route after a change of options, explain has the reason", async () => {
    const w = world();
    const id = await begin(w);
    const later = world({
      store: w.one.store,
      clock: w.clock,
      routes: [
        { name: "wa", sender: carrier("whatsapp") },
        { name: "sms", sender: carrier("sms"), countries: ["US"] },
      ],
    });
    await silence(later);
    await exhaust(later, 5);
    expect(later.story(id)).toEqual([]);
    expect(saysWhy(await w.one.explain(id))).toMatch(/fallback/);
  });

  it("a route that is removed from the options after create breaks nothing", async () => {
    const store = new PlainStore();
    const w = world({ store });
    const id = await begin(w);
    const [tg, rcs] = [carrier("telegram"), carrier("sms")];
    const later = world({
      store,
      clock: w.clock,
      routes: [
        { name: "tg", sender: tg },
        { name: "rcs", sender: rcs },
      ],
    });
    await silence(later);
    await exhaust(later, 3);
    expect(later.story(id).length).toBeLessThanOrEqual(1);
    expect((await later.one.check(id, w.codeOf(id))).status).toBe("valid");
  });

  it("a number blocked after create gets no fallback; a list that throws or hangs does not stop one", async () => {
    let block: () => Promise<{ readonly numbers: readonly string[] }> = async () => ({ numbers: [] });
    const w = world({ lists: { block: () => block(), refresh: 1 } });
    const id = await begin(w);
    block = async () => ({ numbers: [numberAt(1)] });
    w.clock.advance(10_000);
    await begin(w, 50);
    await turns();
    await silence(w, after - 9_999);
    expect(w.story(id)).toEqual(["1 wa"]);
    expect(saysWhy(await w.one.explain(id))).toMatch(/block/);
    for (const broken of [
      async (): Promise<never> => {
        throw new Error("list down");
      },
      () => hangs(),
    ]) {
      block = broken;
      const other = world({ lists: { block: () => block(), refresh: 1 } });
      const next = await drive(other.clock, other.one.create(2));
      other.clock.advance(after);
      await drive(other.clock, other.one.flush());
      expect(other.story(next.authentication_uuid)).toEqual(["1 wa", "2 sms"]);
    }
  });

  it("the caller's own rules can block it; a rule that throws or hangs does not", async () => {
    const seen: number[] = [];
    let judge: (attempt: number) => { readonly reason: string } | undefined | Promise<never> = () => undefined;
    const w = world({
      spamRules: [
        {
          name: "mine",
          judge: ({ attempt }) => {
            seen.push(attempt);
            return judge(attempt);
          },
        },
      ],
    });
    const id = await begin(w);
    judge = () => ({ reason: "no" });
    await silence(w);
    expect(seen).toEqual([1, 2]);
    expect(w.story(id)).toEqual(["1 wa"]);
    expect(saysWhy(await w.one.explain(id))).toMatch(/mine/);
    expect(ofEvents(w.one, "refused")).toMatchObject([{ operation: "fallback", authentication_uuid: id }]);
    await exhaust(w, 8);
    expect(seen).toEqual([1, 2]);
    judge = (attempt) => {
      if (attempt > 1) throw new Error("broken");
      return undefined;
    };
    const second = await begin(w, 2);
    await silence(w);
    expect(w.story(second)).toEqual(["1 wa", "2 sms"]);
    judge = (attempt) => (attempt > 1 ? hangs() : undefined);
    const third = await begin(w, 3);
    w.clock.advance(after);
    await drive(w.clock, w.one.flush());
    expect(w.story(third)).toEqual(["1 wa", "2 sms"]);
  });

  it("a lookup that throws or hangs stops no fallback (docs/contract.md#lookup-never-fails)", async () => {
    for (const lookup of [
      () => {
        throw new Error("down");
      },
      hangs,
    ]) {
      const w = world({ lookupBeforeSend: true, lookup: { lookup: lookup as never, price: 0 } });
      const { authentication_uuid: id } = await drive(w.clock, w.one.create(1));
      w.clock.advance(after);
      await drive(w.clock, w.one.flush());
      expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
    }
  });
});

describe("calls (docs/contract.md#calls)", () => {
  const withCalls = (fallback?: boolean, setup: Parameters<typeof world>[0] = {}) => {
    const [wa, call] = [carrier("whatsapp"), carrier("voice")];
    return world({
      ...setup,
      routes: [
        { name: "wa", sender: wa, priority: 0 },
        { name: "sms", sender: carrier("sms"), countries: ["US"] },
        { name: "call", sender: call, priority: 2, ...(fallback !== undefined && { fallback }) },
      ],
    });
  };

  it("no call follows a message, unless its route says so", async () => {
    for (const [fallback, story] of [
      [undefined, ["1 wa"]],
      [false, ["1 wa"]],
      [true, ["1 wa", "2 call"]],
    ] as const) {
      const w = withCalls(fallback);
      const id = await begin(w);
      await silence(w, 61_000);
      await exhaust(w, 5);
      expect(w.story(id)).toEqual(story);
    }
  });

  it("a call as a fallback counts among the calls of its number", async () => {
    const w = withCalls(true, { policy: { limits: { callsPerNumber: [{ limit: 1, window: 86_400 }] } } });
    const id = await begin(w);
    await exhaust(w, 5);
    expect(w.story(id)).toEqual(["1 wa", "2 call"]);
    expect((await w.one.create(1, { channel: "voice" })).status).toBe("rate_limited");
    const again = await begin(w, 1);
    await exhaust(w, 5);
    expect(w.story(again)).toEqual(["1 wa"]);
    expect(saysWhy(await w.one.explain(again))).toMatch(/callsPerNumber/);
  });

  it("no message follows a requested call that voice mail answers", async () => {
    const w = withCalls(true);
    const id = await begin(w, 1, { channel: "voice" });
    expect(w.story(id)).toEqual(["1 call"]);
    await w.one.receipt(w.messageOf(id), "undeliverable", { error: "no-key" });
    await exhaust(w, 12);
    expect(w.story(id)).toEqual(["1 call"]);
  });

  it("nothing follows a fallback call that voice mail answers", async () => {
    const w = withCalls(true);
    const id = await begin(w);
    await exhaust(w, 2);
    expect(w.story(id)).toEqual(["1 wa", "2 call"]);
    await w.one.receipt(w.messageOf(id), "undeliverable", { error: "no-key" });
    await exhaust(w, 8);
    expect(w.story(id)).toEqual(["1 wa", "2 call"]);
  });

  it("a fixed line gets nothing but calls", async () => {
    const w = withCalls(true);
    const id = await begin(w, "+33140000001");
    expect(w.story(id)).toEqual(["1 call"]);
    await w.one.receipt(w.messageOf(id), "undeliverable");
    await exhaust(w, 5);
    expect(w.story(id)).toEqual(["1 call"]);
  });
});

describe("a requested channel (docs/contract.md#channel)", () => {
  it("WhatsApp falls back to SMS, SMS is never silent", async () => {
    const w = world();
    const [wished, plain] = [await begin(w, 1, { channel: "whatsapp" }), await begin(w, 2, { channel: "sms" })];
    await exhaust(w, 5);
    expect(w.story(wished)).toEqual(["1 wa", "2 sms"]);
    expect(w.story(plain)).toEqual(["1 sms"]);
  });

  it("WhatsApp follows an undeliverable SMS, and then does not fall back", async () => {
    const w = world();
    const id = await begin(w, 1, { channel: "sms" });
    await w.one.receipt(w.messageOf(id), "undeliverable");
    await w.one.flush();
    expect(w.story(id)).toEqual(["1 sms", "2 wa"]);
    await exhaust(w, 5);
    expect(w.story(id)).toEqual(["1 sms", "2 wa"]);
  });

  it("a number that a receipt reports as unreachable gets SMS first at creates, for seven days (docs/contract.md#unreachable)", async () => {
    const w = world();
    const id = await begin(w);
    await w.one.receipt(w.messageOf(id), "undeliverable", { unreachable: true });
    await w.one.flush();
    await settled();
    w.clock.advance(11 * minute);
    expect(w.story(await begin(w))).toEqual(["1 sms"]);
    expect(w.story(await begin(w, 1, { channel: "whatsapp" }))).toEqual(["1 wa"]);
    w.clock.advance(7 * 24 * 60 * minute);
    expect(w.story(await begin(w))).toEqual(["1 wa"]);
  });
});

describe("the codes (docs/contract.md#live-codes)", () => {
  it("both are live, and the first one entered is valid, once", async () => {
    for (const attempt of [1, 2]) {
      const w = world();
      const id = await begin(w);
      await silence(w);
      expect((await w.one.check(id, w.codeOf(id, attempt))).status).toBe("valid");
      expect((await w.one.check(id, w.codeOf(id, 3 - attempt))).status).toBe("already_validated");
      await exhaust(w, 3);
      expect(w.story(id)).toHaveLength(2);
    }
  });

  it("acceptPreviousCode: false accepts the newest one; both during the hand-over; the first if no carrier takes the second", async () => {
    const policy = { acceptPreviousCode: false };
    const w = world({ policy });
    const id = await begin(w);
    await silence(w);
    expect((await w.one.check(id, w.codeOf(id, 1))).status).toBe("invalid");
    expect((await w.one.check(id, w.codeOf(id, 2))).status).toBe("valid");

    for (const attempt of [1, 2]) {
      const open = world({ policy });
      open.sms.answer = hangs;
      const held = await begin(open);
      open.clock.advance(after + 1);
      const flushing = open.one.flush();
      await turns();
      expect(open.story(held)).toEqual(["1 wa", "2 sms"]);
      expect((await open.one.check(held, open.codeOf(held, attempt))).status).toBe("valid");
      await drive(open.clock, flushing);
    }

    const refused = world({ policy });
    refused.sms.answer = refuses;
    const last = await begin(refused);
    await silence(refused);
    expect((await refused.one.check(last, refused.codeOf(last, 2))).status).toBe("invalid");
    expect((await refused.one.check(last, refused.codeOf(last, 1))).status).toBe("valid");
  });

  it("both share five wrong codes, before and after the fallback", async () => {
    for (const before of [0, 1, 3, 4]) {
      const w = world();
      const id = await begin(w);
      const found: string[] = [];
      for (let i = 0; i < before; i++) found.push((await w.one.check(id, w.wrong(id))).status);
      await silence(w);
      expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
      for (let i = before; i < 9; i++) found.push((await w.one.check(id, w.wrong(id))).status);
      expect(found).toEqual([...Array(5).fill("invalid"), ...Array(4).fill("rate_limited")]);
      expect((await w.one.check(id, w.codeOf(id, 2))).status).toBe("rate_limited");
    }
  });

  it("no checks left: no fallback, whatever the reason", async () => {
    const w = world();
    const id = await begin(w);
    for (let i = 0; i < 5; i++) await w.one.check(id, w.wrong(id));
    await silence(w);
    await w.one.receipt(w.messageOf(id), "undeliverable");
    await exhaust(w, 5);
    expect(w.story(id)).toEqual(["1 wa"]);
  });

  it("with fallbacks, guesses of the number stay within sends a day × checks (docs/contract.md#guesses-claimed)", async () => {
    const w = world({ policy: { limits: { perNumber: [{ limit: 4, window: 86_400 }] }, checks: 2 } });
    let judged = 0;
    for (let i = 0; i < 6; i++) {
      const { authentication_uuid: id, status } = await w.one.create(1);
      if (status === "pending") await silence(w);
      for (let guess = 0; guess < 4; guess++) if ((await w.one.check(id, w.wrong(id))).status === "invalid") judged++;
      w.clock.advance(11 * minute);
    }
    expect(judged).toBeLessThanOrEqual(8);
    expect(w.journal).toHaveLength(4);
  });

  it("no fallback is sent after the last send of the day", async () => {
    const w = world({ policy: { limits: { perNumber: [{ limit: 1, window: 86_400 }] } } });
    const id = await begin(w);
    await exhaust(w, 9);
    expect(w.story(id)).toEqual(["1 wa"]);
  });
});

describe("ends (docs/contract.md#lifetime)", () => {
  it("a worker that was down for longer than the code's life sends nothing, and leaves nothing due", async () => {
    const store = new PlainStore();
    const w = world({ store });
    const ids = [];
    for (let i = 0; i < 20; i++) ids.push(await begin(w, i));
    w.clock.advance(600_001);
    for (let i = 0; i < 5; i++) {
      await w.one.flush();
      w.clock.advance(90_000);
    }
    expect(w.journal).toHaveLength(20);
    expect(store.due(w.clock.now() + 60 * minute, 100)).toEqual([]);
    expect((await w.one.check(ids[0] as string, w.codeOf(ids[0] as string))).status).toBe("expired_auth");
  });

  it("a fallback one second before the end expires with the first code", async () => {
    const w = world();
    const id = await begin(w);
    w.clock.advance(599_000);
    await w.one.flush();
    expect(w.story(id).length).toBeLessThanOrEqual(2);
    if (w.story(id).length === 2) expect(w.messageOf(id, 2).expires_at).toBe(start + 600_000);
    w.clock.advance(1_000);
    expect((await w.one.check(id, w.codeOf(id))).status).toBe("expired_auth");
  });

  it("there is no fallback if `after` is as long as the lifetime or longer", async () => {
    for (const seconds of [60, 600]) {
      const w = world({ fallback: { after: seconds }, policy: { lifetime: 60, retryCooldowns: [10] } });
      const id = await begin(w);
      await exhaust(w, 15);
      expect(w.story(id)).toEqual(["1 wa"]);
    }
  });

  it("erase while a fallback is due leaves nothing, and nothing is sent (docs/contract.md#erase)", async () => {
    const store = new PlainStore();
    const w = world({ store });
    const id = await begin(w);
    w.clock.advance(after + 1);
    await w.one.verifier.erase({ customer_uuid: w.customer, phone_number: numberAt(1) });
    await exhaust(w, 12);
    expect(w.story(id)).toEqual(["1 wa"]);
    expect(store.records.size).toBe(0);
    expect(JSON.stringify([...store.values, ...store.windows])).not.toContain(id);
  });

  it("erase while a fallback is being handed over deletes the record, and it does not come back", async () => {
    const store = new PlainStore();
    const w = world({ store });
    w.sms.answer = hangs;
    const id = await begin(w);
    w.clock.advance(after + 1);
    const flushing = w.one.flush();
    await turns();
    expect(w.story(id)).toHaveLength(2);
    await w.one.verifier.erase({ customer_uuid: w.customer, phone_number: numberAt(1) });
    await drive(w.clock, flushing);
    await exhaust(w, 12);
    expect(store.records.size).toBe(0);
    expect(w.story(id)).toHaveLength(2);
  });

  it("the number is masked once the code was entered, also with a fallback (docs/contract.md#sealed-number)", async () => {
    const store = new PlainStore();
    const w = world({ store });
    const id = await begin(w);
    await silence(w);
    const before = [...store.records.values()].map(({ data }) => data).join();
    expect(before).not.toContain(numberAt(1).slice(1));
    await w.one.check(id, w.codeOf(id, 1));
    await turns();
    const sealed = [...store.records.values()].map(({ data }) => data).join();
    expect(sealed).toContain("****");
    await w.one.receipt(w.messageOf(id, 2), "undeliverable", { unreachable: true });
    await exhaust(w, 3);
    expect(w.story(id)).toHaveLength(2);
  });

  it("a delivered message, which cannot fall back any more, can still be retried", async () => {
    const w = world();
    const id = await begin(w);
    await w.one.receipt(w.messageOf(id), "delivered");
    await silence(w, 31_000);
    expect((await w.one.retry(id)).status).toBe("approved");
    expect(w.story(id)).toHaveLength(2);
  });
});

describe("repeats (docs/contract.md#idempotency)", () => {
  it("a create repeated under its key after the fallback returns the same result, sends nothing, and shows the current state", async () => {
    const w = world();
    const first = await w.one.create(1, {}, { idempotencyKey: "k" });
    expect(first).toMatchObject({ status: "pending", channel: "whatsapp" });
    const id = first.authentication_uuid;
    await silence(w, after);
    const again = await w.one.create(1, {}, { idempotencyKey: "k" });
    const { authentication_uuid, created_at, expires_at, status } = first;
    expect(again).toMatchObject({ authentication_uuid, created_at, expires_at, status, remaining_retry: 4 });
    expect(again.channel).toBeUndefined();
    expect(again.next_retry_at).toBe(new Date(start + after + 30_000).toISOString());
    expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
    await exhaust(w, 5);
    await w.one.create(1, {}, { idempotencyKey: "k" });
    expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
  });

  it("a repeat while the fallback is handed over returns the same verification, and sends nothing", async () => {
    const w = world({ count: 2 });
    w.sms.answer = hangs;
    const { authentication_uuid: id } = await w.one.create(1, {}, { idempotencyKey: "k" });
    w.clock.advance(after + 1);
    const flushing = w.one.flush();
    await turns();
    const repeats = [w.one, w.two].map((one) => one.create(1, {}, { idempotencyKey: "k" }));
    await drive(w.clock, Promise.all([flushing, ...repeats]));
    for (const one of await Promise.all(repeats)) expect(one).toMatchObject({ authentication_uuid: id, status: "pending" });
    expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
  });

  it("a check under a key, repeated after the fallback, counts once", async () => {
    const w = world();
    const id = await begin(w);
    const wrong = w.wrong(id);
    expect((await w.one.check(id, wrong, { idempotencyKey: "c" })).status).toBe("invalid");
    await silence(w);
    expect((await w.one.check(id, wrong, { idempotencyKey: "c" })).status).toBe("invalid");
    expect((await w.one.explain(id)).wrong_codes).toBe(1);
  });
});

describe("by number (docs/contract.md#start)", () => {
  const target = (w: World, number = 1) => ({ customer_uuid: w.customer, phone_number: numberAt(number) });
  it("a start after a fallback has its cool-down, then sends the next message; check accepts the newest two codes", async () => {
    for (const attempt of [1, 2]) {
      const w = world();
      const { verifications } = w.one.verifier;
      const first = await verifications.start(target(w));
      const id = first.authentication_uuid as string;
      await silence(w, after);
      expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
      w.clock.advance(29_000);
      expect((await verifications.start(target(w))).status).toBe("denied");
      w.clock.advance(1_000);
      const third = (await verifications.start(target(w))) as unknown as Record<string, unknown>;
      expect(third).toMatchObject({ status: "pending", authentication_uuid: id, remaining_retry: 3 });
      expect(w.story(id)).toHaveLength(3);
      expect(JSON.stringify(third)).toMatch(/"(sends?|attempt|number)":3/);
      expect((await verifications.check({ ...target(w), check_code: w.codeOf(id, attempt + 1) })).status).toBe("valid");
    }
  });

  it("get after a fallback counts two messages", async () => {
    const w = world();
    const { verifications } = w.one.verifier;
    await verifications.start(target(w));
    await silence(w);
    expect(JSON.stringify(await verifications.get(target(w)))).toMatch(/"(sends?|attempt|number)":2/);
  });

  it("cancel ends the fallback, and the number's next verification has its own", async () => {
    const w = world();
    const { verifications } = w.one.verifier;
    const first = (await verifications.start(target(w))).authentication_uuid as string;
    w.clock.advance(10_000);
    await verifications.cancel(target(w));
    const second = (await verifications.start(target(w))).authentication_uuid as string;
    expect(second).not.toBe(first);
    await silence(w, 10_001);
    expect([w.story(first), w.story(second)]).toEqual([["1 wa"], ["1 wa"]]);
    await w.one.receipt(w.messageOf(first), "undeliverable");
    await w.one.flush();
    expect([w.story(first), w.story(second)]).toEqual([["1 wa"], ["1 wa"]]);
    await silence(w, 10_001);
    expect([w.story(first), w.story(second)]).toEqual([["1 wa"], ["1 wa", "2 sms"]]);
    await exhaust(w, 12);
    expect([w.story(first), w.story(second)]).toEqual([["1 wa"], ["1 wa", "2 sms"]]);
  });

  it("starts concurrent with the fallback use each attempt once", async () => {
    const w = world({ count: 3, policy: { retryCooldowns: [1, 1, 1, 1] } });
    const { verifications } = w.one.verifier;
    const id = (await verifications.start(target(w))).authentication_uuid as string;
    w.clock.advance(after + 1);
    await Promise.all(w.set.flatMap((one) => [one.flush(), ...Array.from({ length: 20 }, () => one.verifier.verifications.start(target(w)).catch(() => {}))]));
    const attempts = w.story(id).map((one) => Number(one.split(" ")[0]));
    expect(new Set(attempts).size).toBe(attempts.length);
    expect(attempts.length).toBeLessThanOrEqual(3);
  });
});

describe("deliveries (docs/contract.md#fallback-deliveries)", () => {
  it("fall back at once if their carrier rejects them, and never later", async () => {
    const w = world();
    const deliver = (number: number) => w.one.verifier.deliver({ customer_uuid: w.customer, phone_number: numberAt(number), code: "837465" });
    const first = (await deliver(1)).delivery_uuid as string;
    const second = (await deliver(2)).delivery_uuid as string;
    await w.one.receipt(w.messageOf(second), "undeliverable", { unreachable: true });
    await exhaust(w, 12);
    expect([w.story(first), w.story(second)]).toEqual([["1 wa"], ["1 wa"]]);
    w.wa.answer = isNotThere;
    const third = await deliver(3);
    expect(third.status).toBe("sent");
    expect(w.story(third.delivery_uuid as string)).toEqual(["1 wa", "1 sms"]);
  });

  describe("with keepCode", () => {
    const code = "837465";
    const kept = (store: PlainStore) => [...store.records.values()].some(({ data }) => data.includes("sealed"));
    const deliver = async (setup: Parameters<typeof world>[0] = {}) => {
      const store = new PlainStore();
      const w = world({ store, keepCode: true, ...setup });
      const { delivery_uuid = "none" } = await w.one.verifier.deliver({ customer_uuid: w.customer, phone_number: numberAt(1), code });
      expect(kept(store)).toBe(true);
      expect(JSON.stringify([...store.records.values(), ...store.values])).not.toContain(code);
      return { w, store, id: delivery_uuid };
    };

    it("a fallback that is blocked deletes the code", async () => {
      const { w, store, id } = await deliver({ policy: { limits: { perNumber: [{ limit: 1, window: 86_400 }] } } });
      await silence(w);
      await exhaust(w, 1);
      expect([w.story(id), kept(store)]).toEqual([["1 wa"], false]);
      expect(saysWhy(await w.one.explain(id))).toMatch(/perNumber/);
    });

    it("a fallback that no carrier takes, or whose outcome is unknown, deletes the code and is not tried again", async () => {
      for (const answer of [refuses, mayHave]) {
        const { w, store, id } = await deliver();
        w.sms.answer = answer;
        await silence(w);
        await exhaust(w, 2);
        expect([w.story(id), kept(store)]).toEqual([["1 wa", "2 sms"], false]);
      }
    });

    it.each([
      [79_000, ["1 wa", "2 sms"]],
      [80_001, ["1 wa"]],
      [250_000, ["1 wa"]],
    ])("a worker that comes back %i ms after the message sends only within 80 s, and deletes the code", async (ms, story) => {
      const { w, store, id } = await deliver();
      w.clock.advance(ms);
      for (let i = 0; i < 3; i++) await w.one.flush();
      await turns();
      expect(w.story(id)).toEqual(story);
      for (const { code: sent } of w.sms.messages) expect(sent).toBe(code);
      expect(kept(store)).toBe(false);
    });

    it("another code in between replaces the code, and the old one is never sent again", async () => {
      const { w, store, id } = await deliver();
      w.clock.advance(10_000);
      await w.one.verifier.deliver({ customer_uuid: w.customer, phone_number: numberAt(1), code: "111222" });
      await exhaust(w, 3);
      expect(w.journal.filter(({ message }) => message.code === code)).toHaveLength(1);
      expect(w.story(id).length).toBeLessThanOrEqual(3);
      expect(kept(store)).toBe(false);
    });

    it("a process with another secret sends no wrong code and to no wrong number", async () => {
      const { w, store, id } = await deliver();
      const other = world({ store, clock: w.clock, keepCode: true, own: () => ({ secret: "b7Wq3ZrX9cTn5LvK2hJd8MfS4gYp6AeU" }) });
      await silence(other);
      await exhaust(other, 3);
      for (const { message } of other.journal) expect([message.code, message.to]).toEqual([code, numberAt(1)]);
      expect(w.story(id)).toEqual(["1 wa"]);
    });
  });

  it("have no `replaced_at`", async () => {
    const w = world();
    const { delivery_uuid: id } = await w.one.verifier.deliver({ customer_uuid: w.customer, phone_number: numberAt(1), code: "837465" });
    expect(w.messageOf(id as string).replaced_at).toBeUndefined();
  });
});

describe("test numbers (docs/contract.md#test-numbers)", () => {
  it("never fall back, unless given as a string", async () => {
    const w = world({
      testNumbers: [
        { number: numberAt(1), code: "123456" },
        { number: numberAt(2), outcome: "undeliverable" },
        { number: numberAt(3), outcome: "slow" },
        { number: numberAt(4), outcome: "rejected" },
        numberAt(5),
      ],
    });
    const made = [];
    for (const number of [1, 2, 3, 4, 5]) made.push(await drive(w.clock, w.one.create(number)));
    await exhaust(w, 12);
    expect(made.map(({ authentication_uuid: id }) => w.story(id))).toEqual([[], [], [], [], ["1 wa", "2 sms"]]);
    for (const { authentication_uuid: id } of made.slice(0, 4)) expect((await w.one.explain(id)).sends.length).toBeLessThanOrEqual(1);
  });
});

describe("callbacks (docs/contract.md#callback-order)", () => {
  it("report both messages in order, each with its channel, and the number masked", async () => {
    const w = world();
    const id = await begin(w, 1, { callback_url: callbackUrl });
    await silence(w);
    await w.one.flush();
    await w.one.receipt(w.messageOf(id, 2), "delivered");
    await w.one.receipt(w.messageOf(id, 1), "delivered");
    await w.one.flush();
    const told = w.hook.posted.map(({ event: { data } }) => data);
    expect(told.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4]);
    expect(told.map(({ attempt, status, channel, route }) => [attempt, status, channel, route])).toEqual([
      [1, "submitted", "whatsapp", "wa"],
      [2, "submitted", undefined, "sms"],
      [2, "delivered", undefined, "sms"],
      [1, "delivered", "whatsapp", "wa"],
    ]);
    for (const { phone_number } of told) expect(phone_number).toContain("****");
    const bodies = w.hook.posted.map(({ body }) => body).join();
    for (const attempt of [1, 2]) expect(bodies).not.toContain(w.codeOf(id, attempt));
  });

  it("undeliverable comes before the fallback's events", async () => {
    const w = world();
    const id = await begin(w, 1, { callback_url: callbackUrl });
    await w.one.receipt(w.messageOf(id), "undeliverable");
    for (let i = 0; i < 5; i++) await w.one.flush();
    expect(w.hook.story(id)).toEqual(["1:submitted", "1:undeliverable", "2:submitted"]);
    await exhaust(w, 5);
    expect(w.hook.story(id)).toEqual(["1:submitted", "1:undeliverable", "2:submitted"]);
  });

  it("a receiver that hangs or fails delays no fallback", async () => {
    const w = world();
    w.hook.answer = () => hangs();
    const id = await begin(w, 1, { callback_url: callbackUrl });
    w.clock.advance(after + 1);
    const flushing = w.one.flush();
    await pass(w.clock, 4_000, 250);
    expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
    await drive(w.clock, flushing);
    const failing = world();
    failing.hook.answer = async () => ({ status: 500 });
    const other = await begin(failing, 1, { callback_url: callbackUrl });
    await failing.one.flush();
    await silence(failing);
    expect(failing.story(other)).toEqual(["1 wa", "2 sms"]);
  });

  it("a fallback that no carrier takes is `undeliverable`, and one that hangs is `unknown`", async () => {
    const w = world();
    w.sms.answer = refuses;
    const refused = await begin(w, 1, { callback_url: callbackUrl });
    await silence(w);
    await exhaust(w, 2);
    expect(w.hook.story(refused)).toEqual(["1:submitted", "2:undeliverable"]);
    w.sms.answer = hangs;
    const open = await begin(w, 2, { callback_url: callbackUrl });
    w.clock.advance(after + 1);
    await drive(w.clock, w.one.flush());
    await exhaust(w, 2);
    expect(w.hook.story(open)).toEqual(["1:submitted", "2:unknown"]);
  });
});

describe("events and results (docs/contract.md#channel-shown)", () => {
  it("name the channel and the fallback", async () => {
    const w = world();
    const id = await begin(w);
    await silence(w);
    expect(ofEvents(w.one, "sent").map(({ attempt, channel, fallback, route }) => [attempt, channel, fallback, route])).toEqual([
      [1, "whatsapp", undefined, "wa"],
      [2, undefined, true, "sms"],
    ]);
    const { sends } = await w.one.explain(id);
    expect(sends).toMatchObject([
      { attempt: 1, channel: "whatsapp", route: "wa" },
      { attempt: 2, route: "sms", fallback: true },
    ]);
    const text = JSON.stringify([w.one.events, w.one.log]);
    for (const attempt of [1, 2]) expect(text).not.toContain(w.codeOf(id, attempt));
    expect(text).not.toContain(numberAt(1));
  });
});
