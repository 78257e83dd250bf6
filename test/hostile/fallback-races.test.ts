import { describe, expect, it } from "vitest";
import { fixedClock } from "../../src/testing/index.js";
import { PlainStore, TwoStepStore } from "../store/plain-store.js";
import { after, carrier, exhaust, hangs, ofEvents, type Process, refuses, saysWhy, secret, silence, start, takes, type World, world } from "./fallback-kit.js";
import { callbackUrl, drive, ending, type Fate, numberAt, pass, tallied, turns, wide } from "./kit.js";

const begin = async ({ one }: World, number: string | number = 1, fields: Record<string, unknown> = {}) =>
  (await one.create(number, fields)).authentication_uuid;
const times = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
const at = (w: World, i: number): Process => w.set[i % w.set.length] as Process;
const minute = 60_000;
const soon = { retryCooldowns: [1, 1, 1, 1] };
/** WhatsApp, and two routes that a fallback may take, so that a second fallback would find one. */
const three = () => [
  { name: "wa", sender: carrier("whatsapp"), priority: 0 },
  { name: "sms", sender: carrier("sms"), priority: 1 },
  { name: "sms2", sender: carrier("sms"), priority: 2 },
];
const stores = [
  ["in one step", () => new PlainStore()],
  ["in two steps", () => new TwoStepStore()],
] as const;

describe.each(stores)("a store that commits %s", (_, open) => {
  it("two concurrent workers send exactly one fallback (docs/contract.md#fallback-worker)", async () => {
    for (let round = 0; round < 10; round++) {
      const w = world({ count: 2, store: open(), routes: three() });
      const id = await begin(w);
      w.clock.advance(after);
      await Promise.all(times(6, (i) => at(w, i).flush()));
      await exhaust(w, 3);
      expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
    }
  });

  it("with ten processes on different clocks, and receipts and silence at once, each of sixty messages falls back once", async () => {
    const w = world({ count: 10, store: open(), routes: three(), clockSkew: 5, clock: (i: number) => fixedClock(start + (i - 5) * 400) });
    const ids = await Promise.all(times(60, async (i) => (await at(w, i).create(i)).authentication_uuid));
    for (const one of w.set) one.clock.advance(after);
    const told = (i: number) => at(w, i).receipt(w.messageOf(ids[i % 60] as string, 1), "undeliverable", i % 2 ? { unreachable: true } : {});
    await Promise.all([...w.set.map((one) => one.flush()), ...times(120, told), ...w.set.map((one) => one.flush())]);
    await exhaust(w, 4);
    for (const id of ids) expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
  });

  it("two workers that hold one record, because a lease has ended, send exactly one fallback", async () => {
    for (const slow of ["find", "commit"] as const) {
      const w = world({ count: 2, store: open(), routes: three(), storeTimeout: 300 });
      const id = await begin(w);
      w.clock.advance(after);
      // What the first worker reads is outdated when it arrives, or its write lands too late.
      let calls = 0;
      w.one.store.fate = (method) => (method === slow && ++calls === 1 ? (slow === "find" ? "late" : "held") : "done");
      const first = w.one.flush();
      await turns(30);
      expect([calls, w.story(id)]).toEqual([1, ["1 wa"]]);
      w.clock.advance(70_000);
      await w.two.flush();
      expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
      await w.one.store.release();
      await drive(w.clock, first);
      await exhaust(w, 3);
      expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
    }
  });

  it("receipts that wake the workers of every process at once cause exactly one fallback of each message", async () => {
    const w = world({ count: 6, store: open(), routes: three(), callbacks: { worker: true }, fallback: { worker: "here" } });
    const ids = await Promise.all(times(30, async (i) => (await at(w, i).create(i)).authentication_uuid));
    w.clock.advance(after - 1);
    await Promise.all(ids.flatMap((id, i) => w.set.map((one) => one.receipt(w.messageOf(id, 1), "undeliverable", i % 2 ? { unreachable: true } : {}))));
    w.clock.advance(1);
    await Promise.all(w.set.map((one) => one.flush()));
    await pass(w.clock, 2 * minute, 1_000);
    for (const id of ids) expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
  });

  it("of concurrent retries and a fallback, one sends a message, and it is counted once", async () => {
    for (let round = 0; round < 5; round++) {
      const w = world({ count: 4, store: open(), policy: soon });
      const id = await begin(w);
      w.clock.advance(after);
      const retry = (i: number) => ending(at(w, i).retry(id));
      const found = await Promise.all(
        times(24, (i) =>
          i % 3 === round % 3
            ? at(w, i)
                .flush()
                .then(() => "flush")
            : retry(i),
        ),
      );
      const { approved = 0 } = tallied(found);
      // The later one is in the cool-down of the earlier one.
      expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
      expect(approved).toBeLessThanOrEqual(1);
      expect((await w.one.explain(id)).left.retries).toBe(4 - approved);
      expect((await w.one.explain(id)).sends.filter(({ fallback }) => fallback)).toHaveLength(1 - approved);
      await exhaust(w, 3);
      expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
      expect((await w.one.check(id, w.codeOf(id, 2))).status).toBe("valid");
    }
  });

  it("a right code concurrent with the fallback is valid once; at most one message is sent, and none later", async () => {
    for (let round = 0; round < 6; round++) {
      const w = world({ count: 4, store: open() });
      const id = await begin(w);
      const code = w.codeOf(id);
      w.clock.advance(after);
      const check = (i: number) => ending(at(w, i).check(id, code));
      const calls = times(8, (i) =>
        i < 4 === round < 3
          ? check(i)
          : at(w, i)
              .flush()
              .then(() => "flush"),
      );
      expect(tallied(await Promise.all(calls))).toMatchObject({ valid: 1, already_validated: 3 });
      const sent = w.story(id).length;
      await exhaust(w, 12);
      expect(w.story(id)).toHaveLength(sent);
      expect(sent).toBeLessThanOrEqual(2);
    }
  });

  it("of wrong codes concurrent with the fallback, five are evaluated (docs/contract.md#checks)", async () => {
    const w = world({ count: 4, store: open() });
    const id = await begin(w);
    const wrong = w.wrong(id);
    w.clock.advance(after);
    const found = await Promise.all(
      times(40, (i) =>
        i % 10 === 5
          ? at(w, i)
              .flush()
              .then(() => "flush")
          : ending(at(w, i).check(id, wrong)),
      ),
    );
    expect(tallied(found)).toEqual({ flush: 4, invalid: 5, rate_limited: 31 });
    await exhaust(w, 3);
    expect(w.story(id).length).toBeLessThanOrEqual(2);
    expect(await ending(w.one.check(id, w.codeOf(id)))).toBe("rate_limited");
  });

  it("a receipt of delivery concurrent with the fallback: at most one message, and none later", async () => {
    const w = world({ count: 4, store: open() });
    const ids = await Promise.all(times(20, (i) => at(w, i).create(i)));
    w.clock.advance(after);
    await Promise.all(ids.flatMap(({ authentication_uuid: id }, i) => [at(w, i).receipt(w.messageOf(id, 1), "delivered"), at(w, i + 1).flush()]));
    const sent = w.journal.length;
    expect(sent).toBeLessThanOrEqual(40);
    await exhaust(w, 5);
    expect(w.journal).toHaveLength(sent);
  });

  it("the last place in a cap goes to a create or to the fallback, not to both (docs/contract.md#caps)", async () => {
    for (let round = 0; round < 6; round++) {
      const w = world({ count: 4, store: open(), policy: { limits: { perNumber: [{ limit: 2, window: 86_400 }] } } });
      await begin(w);
      w.clock.advance(after);
      const calls = times(8, (i) =>
        i < 4 === round < 3
          ? at(w, i)
              .flush()
              .then(() => "flush")
          : ending(at(w, i).create(1)),
      );
      await Promise.all(calls);
      await exhaust(w, 3);
      expect(w.journal.length).toBeLessThanOrEqual(2);
      expect(w.journal.filter(({ message }) => message.to === numberAt(1)).length).toBe(w.journal.length);
    }
  });

  it("a ceiling with room for some of the fallbacks allows only those, over all processes (docs/contract.md#spend-ceiling)", async () => {
    const w = world({
      count: 5,
      store: open(),
      routes: [
        { name: "wa", sender: carrier("whatsapp"), priority: 0, price: 1 },
        { name: "sms", sender: carrier("sms"), priority: 1, price: 1 },
      ],
      policy: { limits: { spend: [{ amount: 27, per: "day" }] } },
    });
    for (let i = 0; i < 20; i++) await begin(w, i);
    w.clock.advance(after);
    await Promise.all(w.set.map((one) => one.flush()));
    await exhaust(w, 3);
    expect(w.journal.length).toBeLessThanOrEqual(27);
    // A two-step store may reject too many concurrent ones, but never grants too many.
    if (open() instanceof TwoStepStore) expect(w.journal.length).toBeGreaterThan(20);
    else expect(w.journal).toHaveLength(27);
  });

  it("an erase concurrent with the fallback: a second one deletes what is left, and nothing more is sent (docs/contract.md#erase)", async () => {
    const store = open();
    const w = world({ count: 3, store });
    const id = await begin(w);
    const erase = () => w.two.verifier.erase({ customer_uuid: w.customer, phone_number: numberAt(1) });
    w.clock.advance(after);
    await Promise.all([w.one.flush(), erase(), at(w, 2).flush()]);
    expect(w.story(id).length).toBeLessThanOrEqual(2);
    const sent = w.story(id);
    await erase();
    expect(store.records.size).toBe(0);
    await exhaust(w, 12);
    expect(w.story(id)).toEqual(sent);
    expect(store.records.size).toBe(0);
  });

  it("300 messages due at once each fall back once, within one poll, even with one worker (docs/contract.md#fallback-worker)", async () => {
    for (const count of [1, 4]) {
      const w = world({ count, store: open(), callbacks: { worker: true }, fallback: { worker: "here" } });
      const ids = await Promise.all(times(300, async (i) => (await at(w, i).create(i)).authentication_uuid));
      expect(w.journal).toHaveLength(300);
      await pass(w.clock, after + 5_000, 250);
      for (const id of ids) expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
      await pass(w.clock, minute, 1_000);
      expect(w.journal).toHaveLength(600);
    }
  });
});

describe("a worker that hangs or stops (docs/contract.md#fallback-worker)", () => {
  it("whose carrier hangs for some numbers: every fallback is sent once, at most 20 s late", async () => {
    const w = world({ callbacks: { worker: true }, fallback: { worker: "here" } });
    const stuck = new Set(times(30, (i) => numberAt(i * 10)));
    w.sms.answer = (message) => (stuck.has(message.to) ? hangs() : takes());
    const ids = await Promise.all(times(300, async (i) => (await w.one.create(i)).authentication_uuid));
    await pass(w.clock, 60_000, 250);
    for (const id of ids) expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
    const late = w.journal.slice(300).map(({ at: sent }) => sent - start - after);
    expect(Math.max(...late)).toBeLessThanOrEqual(20_000);
    await pass(w.clock, 10 * minute, 5_000);
    expect(w.journal).toHaveLength(600);
  });

  it("whose carrier hangs: another process does not send the message again", async () => {
    const w = world({ count: 2 });
    w.sms.answer = hangs;
    const id = await begin(w);
    w.clock.advance(after);
    const hung = w.one.flush();
    await turns();
    for (let i = 0; i < 100; i++) {
      w.clock.advance(2_500);
      await w.two.flush();
      await turns(2);
    }
    await hung;
    expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
    expect((await w.two.check(id, w.codeOf(id, 2))).status).toBe("valid");
  });

  it("that hangs after its lease: another one sends the fallback, while the code lives", async () => {
    const w = world({ count: 2, storeTimeout: 2 });
    const id = await begin(w);
    w.clock.advance(after);
    // What it leased is never read.
    w.one.store.fate = (method) => (method === "lease" ? "deaf" : "silent");
    const hung = w.one.flush().catch(() => {});
    for (let i = 0; i < 60; i++) {
      w.clock.advance(5_000);
      await turns();
      await w.two.flush();
    }
    expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
    await hung;
  });

  it("whose store hangs: another process sends the fallback once, and both codes are valid", async () => {
    for (const attempt of [1, 2]) {
      const w = world({ count: 2, storeTimeout: 2 });
      const id = await begin(w);
      w.clock.advance(10_000);
      w.one.store.fate = () => "silent";
      w.clock.advance(10_000);
      const hung = w.one.flush().catch(() => {});
      await w.two.flush();
      expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
      expect((await w.two.check(id, w.codeOf(id, attempt))).status).toBe("valid");
      await drive(w.clock, hung);
    }
  });

  /** When the fallback is sent, if the process dies (or not) at 10 s while it delivers the message's second callback. */
  const whileDelivering = async (dies: boolean) => {
    const w = world({ count: 2, storeTimeout: 2, callbacks: { worker: true }, fallback: { worker: "here" } });
    w.hook.answer = async () => (w.hook.posted.length > 1 ? hangs() : { status: 500 });
    const id = await begin(w, 1, { callback_url: callbackUrl });
    await pass(w.clock, 10_000, 250);
    expect(w.hook.posted).toHaveLength(2);
    if (dies) w.one.store.fate = () => "silent";
    await pass(w.clock, 120_000, 250);
    expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
    return (w.journal[1]?.at as number) - start;
  };

  it("that delivers a callback that hangs: its fallback is on time", async () => {
    expect(await whileDelivering(false)).toBeLessThanOrEqual(after + 5_000);
  });

  it("that dies while it delivers a callback: another sends the fallback once, after the lease has ended (docs/contract.md#leases)", async () => {
    expect(await whileDelivering(true)).toBeLessThanOrEqual(after + 60_000);
  });

  it("that pauses: the fallback may be late, but is sent once", async () => {
    for (const gap of [0, 5_000, 90_000, 300_000, 560_000]) {
      const w = world();
      const id = await begin(w);
      w.clock.advance(after + gap);
      await w.one.flush();
      await exhaust(w, 12);
      expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
    }
  });

  it("whose clock is set back by an hour and forward again: the fallback is sent once", async () => {
    const w = world();
    const id = await begin(w);
    await silence(w);
    w.clock.set(start - 60 * minute);
    await w.one.flush();
    w.clock.set(start + after);
    for (let i = 0; i < 5; i++) await silence(w, 1_000);
    expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
  });

  it("that is suspended for longer than storeTimeout between its write and the message: it decides again (docs/contract.md#late-hand-over)", async () => {
    for (const [gap, sent] of [
      [4_000, 2],
      [700_000, 1],
    ] as const) {
      const w = world({ count: 2, storeTimeout: 2 });
      const id = await begin(w);
      w.clock.advance(after);
      let commits = 0;
      w.one.store.fate = (method) => (method === "commit" && ++commits === 1 ? "late" : "done");
      const stopped = w.one.flush().catch(() => {});
      await turns();
      expect(w.story(id)).toHaveLength(1);
      w.clock.advance(gap);
      await w.one.store.release();
      await drive(w.clock, stopped);
      await exhaust(w, 12);
      expect(w.story(id).length).toBe(sent);
    }
  });

  it("that is suspended between its write and the message: nothing is sent if the right code is entered in the meantime", async () => {
    const w = world({ count: 2, storeTimeout: 2 });
    const id = await begin(w);
    w.clock.advance(after);
    let commits = 0;
    w.one.store.fate = (method) => (method === "commit" && ++commits === 1 ? "late" : "done");
    const stopped = w.one.flush().catch(() => {});
    await turns();
    expect((await w.two.check(id, w.codeOf(id))).status).toBe("valid");
    w.clock.advance(4_000);
    await w.one.store.release();
    await drive(w.clock, stopped);
    await exhaust(w, 3);
    expect(w.story(id)).toEqual(["1 wa"]);
  });
});

describe("late and lost responses of the store (docs/contract.md#lost-write)", () => {
  const fates: readonly Fate[] = ["refused", "lost", "silent", "deaf", "held", "late"];
  const cases = fates.flatMap((fate) => ([1, 2] as const).map((nth) => [fate, nth] as const));

  it.each(cases)("the worker's commit is %s (number %i): one fallback is sent, and the first code stays valid", async (fate, nth) => {
    const w = world({ count: 2, storeTimeout: 2, store: new PlainStore() });
    // A message with callbacks is settled by a separate commit.
    const id = await begin(w, 1, { callback_url: callbackUrl });
    w.clock.advance(after);
    let commits = 0;
    w.one.store.fate = (method) => (method === "commit" && ++commits === nth ? fate : "done");
    await drive(
      w.clock,
      w.one.flush().catch(() => {}),
    );
    expect(commits).toBeGreaterThanOrEqual(nth);
    await pass(w.clock, 5_000);
    await w.one.store.release();
    await pass(w.clock, 60_000);
    await w.one.flush();
    await w.two.flush();
    await exhaust(w, 3);
    expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
    expect((await w.two.explain(id)).left.retries).toBe(4);
    expect((await w.two.check(id, w.codeOf(id, 1))).status).toBe("valid");
  });

  it.each(fates)("the worker's lease is %s: the fallback is still sent once", async (fate) => {
    const w = world({ count: 2, storeTimeout: 2 });
    const id = await begin(w);
    w.clock.advance(after);
    let leases = 0;
    w.one.store.fate = (method) => (method === "lease" && ++leases === 1 ? fate : "done");
    await drive(
      w.clock,
      w.one.flush().catch(() => {}),
    );
    await w.one.store.release();
    await pass(w.clock, 120_000, 2_000);
    for (let i = 0; i < 3; i++) {
      await Promise.all(w.set.map((one) => one.flush()));
      await pass(w.clock, 10_000);
    }
    expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
  });

  it("the store is down from 19 s to 40 s: the fallback is sent once, when it is back", async () => {
    const w = world({ count: 2, storeTimeout: 2, callbacks: { worker: true }, fallback: { worker: "here" } });
    const id = await begin(w);
    await pass(w.clock, 19_000);
    for (const one of w.set) one.store.fate = () => "refused";
    await pass(w.clock, 21_000);
    expect(w.story(id)).toEqual(["1 wa"]);
    for (const one of w.set) one.store.fate = () => "done";
    await pass(w.clock, 60_000);
    expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
  });

  it("the response to the fallback's write is lost: it costs no cap and no money beyond the messages that were sent", async () => {
    const routes = [
      { name: "wa", sender: carrier("whatsapp"), priority: 0, price: 1 },
      { name: "sms", sender: carrier("sms"), priority: 1, price: 1 },
    ];
    const limits = { perNumber: [{ limit: 3, window: 86_400 }], spend: [{ amount: 3, per: "day" as const }] };
    const w = world({ storeTimeout: 2, routes, policy: { limits, ...soon } });
    const id = await begin(w);
    w.clock.advance(after);
    let commits = 0;
    w.one.store.fate = (method) => (method === "commit" && ++commits === 1 ? "lost" : "done");
    await drive(
      w.clock,
      w.one.flush().catch(() => {}),
    );
    await pass(w.clock, 120_000);
    await w.one.flush();
    await exhaust(w, 1);
    const fallbacks = w.story(id).length - 1;
    const retries: string[] = [];
    for (let i = 0; i < 4; i++) {
      retries.push((await w.one.retry(id)).status);
      w.clock.advance(5_000);
    }
    expect(tallied(retries).approved).toBe(2 - fallbacks);
    expect(w.journal).toHaveLength(3);
  });

  /** WhatsApp responds after eight seconds, later than `after`, which is five, but within the send's fifteen. */
  const slow = async (outcome: typeof takes) => {
    const w = world({ fallback: { after: 5 }, sendTimeout: 15, count: 2 });
    let answer = (): void => {};
    w.wa.answer = () =>
      new Promise((resolve) => {
        answer = () => void outcome().then(resolve);
      });
    const created = w.one.create(1);
    await pass(w.clock, 8_000);
    await w.two.flush();
    answer();
    const { authentication_uuid: id } = await drive(w.clock, created);
    await exhaust(w, 3);
    return { w, id };
  };

  it("a carrier accepts the first message later than `after`: it falls back after the hand-over, and both codes are valid", async () => {
    for (const attempt of [1, 2]) {
      const { w, id } = await slow(takes);
      expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
      expect((await w.two.check(id, w.codeOf(id, attempt))).status).toBe("valid");
    }
  });

  it("a carrier rejects the first message later than `after`: one SMS follows, with a valid code (docs/contract.md#fallback)", async () => {
    const { w, id } = await slow(refuses);
    expect(w.story(id)).toEqual(["1 wa", "1 sms"]);
    expect((await w.two.check(id, w.codeOf(id, 1))).status).toBe("valid");
  });

  const forgetful = async (fate: Fate) => {
    const w = world({ storeTimeout: 2 });
    w.one.store.fate = (method) => (method === "get" || method === "put" ? fate : "done");
    const { authentication_uuid: id } = await drive(w.clock, w.one.create(1));
    await w.one.receipt(w.messageOf(id), "undeliverable", { unreachable: true });
    await drive(w.clock, w.one.flush());
    expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
  };

  it("if numbers that are not on a channel cannot be stored or read, the channel is tried and falls back (docs/contract.md#unreachable)", () =>
    forgetful("refused"));

  it("if the store hangs when it reads them, the create is `unavailable` and sends nothing (docs/contract.md#store-deadline)", async () => {
    const w = world({ storeTimeout: 2 });
    w.one.store.fate = (method) => (method === "get" ? "silent" : "done");
    await expect(drive(w.clock, w.one.create(1))).rejects.toMatchObject({ code: "unavailable" });
    expect(w.journal).toEqual([]);
  });
});

describe("many customers (docs/contract.md#keyed-by-customer)", () => {
  const tenants = (count: number) => times(count, (i) => ({ customer_uuid: `6f1e7d2c-8a4b-4c3d-9e5f-${String(i).padStart(12, "0")}` }));

  it("a number at many customers has its own fallback, caps, receipts and codes at each", async () => {
    const customers = tenants(6);
    const w = world({ count: 3, customers, policy: { limits: { perNumber: [{ limit: 2, window: 86_400 }] } } });
    const ids = await Promise.all(customers.map(async ({ customer_uuid }, i) => (await at(w, i).create(1, { customer_uuid })).authentication_uuid));
    await w.one.receipt(w.messageOf(ids[0] as string), "delivered");
    await w.one.receipt(w.messageOf(ids[1] as string), "undeliverable", { unreachable: true });
    await w.two.check(ids[2] as string, w.codeOf(ids[2] as string)).catch(() => {});
    expect((await w.two.verifier.check({ ...customers[2]!, authentication_uuid: ids[2]!, check_code: w.codeOf(ids[2]!) })).status).toBe("valid");
    await w.one.flush();
    expect(ids.map((id) => w.story(id).length)).toEqual([1, 2, 1, 1, 1, 1]);
    w.clock.advance(after);
    await Promise.all(w.set.map((one) => one.flush()));
    expect(ids.map((id) => w.story(id).length)).toEqual([1, 2, 1, 2, 2, 2]);
    // Only the customer whose carrier reported it knows that the number is not on WhatsApp.
    for (const [i, route] of [
      [1, "sms"],
      [3, "wa"],
    ] as const) {
      w.clock.advance(24 * 60 * minute);
      const { authentication_uuid } = await w.one.create(1, customers[i]);
      expect(w.story(authentication_uuid)).toEqual([`1 ${route}`]);
    }
    for (const [i, id] of ids.entries()) {
      const other = customers[(i + 1) % 6]!;
      await expect(w.one.verifier.check({ ...other, authentication_uuid: id, check_code: w.codeOf(id) })).rejects.toMatchObject({ code: "invalid_auth_uuid" });
    }
  });

  it("a customer's backlog on a carrier that hangs does not delay another customer's fallback", async () => {
    const customers = tenants(2);
    const w = world({ customers, callbacks: { worker: true }, fallback: { worker: "here" } });
    w.sms.answer = (message) => (message.customer_uuid === customers[0]!.customer_uuid ? hangs() : takes());
    await Promise.all(times(200, (i) => w.one.create(i, customers[0])));
    const { authentication_uuid: id } = await w.one.create(1, customers[1]);
    await pass(w.clock, 3 * minute, 250);
    expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
    expect(w.journal.find(({ message }) => message.authentication_uuid === id && message.attempt === 2)!.at - start).toBeLessThanOrEqual(after + 10_000);
  });

  it("nothing is sent for a customer that is suspended or removed in between, and everything for the others (docs/contract.md#fallback-worker)", async () => {
    const customers = tenants(2);
    for (const [left, waiting] of [
      [[{ ...customers[0]!, suspended: true }, customers[1]!], 0],
      [[customers[1]!], 1],
    ] as const) {
      const store = new PlainStore();
      const w = world({ store, customers });
      const [gone, stays] = [await w.one.create(1, customers[0]), await w.one.create(1, customers[1])].map((one) => one.authentication_uuid) as [
        string,
        string,
      ];
      const later = world({ store, customers: left, clock: w.clock });
      await silence(later);
      expect(store.due(later.clock.now() + minute, 10)).toHaveLength(waiting);
      await exhaust(later, 12);
      expect([later.story(gone), later.story(stays)]).toEqual([[], ["2 sms"]]);
      expect(store.due(later.clock.now() + minute, 10)).toEqual([]);
      const said = later.one.log.filter(({ message }) => message.startsWith("processing a record's callbacks failed"));
      expect(said.length > 0).toBe(waiting > 0);
      for (const { fields } of said) expect(fields).toMatchObject({ customer_uuid: customers[0]!.customer_uuid, authentication_uuid: gone });
    }
  });
});

describe("processes with different options", () => {
  it("during a rollout, a process without `fallback` loses no fallback, and one that has it sends it", async () => {
    const store = new PlainStore();
    const w = world({ store });
    const old = world({ store, clock: w.clock, fallback: false });
    const id = await begin(w);
    w.clock.advance(after);
    await old.one.flush();
    for (let i = 0; i < 12; i++) {
      w.clock.advance(10_000);
      await w.one.flush();
      await old.one.flush();
    }
    expect([...w.story(id), ...old.story(id)]).toEqual(["1 wa", "2 sms"]);
  });

  it("during a rotation, processes with secrets in another order send the fallback once, and both codes are valid (docs/contract.md#secret-rotation)", async () => {
    const other = "b7Wq3ZrX9cTn5LvK2hJd8MfS4gYp6AeU";
    for (const attempt of [1, 2]) {
      const w = world({ count: 2, own: (i) => ({ secret: i === 0 ? [secret, other] : [other, secret] }) });
      const id = await begin(w);
      w.clock.advance(after);
      await w.two.flush();
      await exhaust(w, 3);
      expect(w.story(id)).toEqual(["1 wa", "2 sms"]);
      expect(w.messageOf(id, 2).to).toBe(numberAt(1));
      expect((await at(w, attempt).check(id, w.codeOf(id, attempt))).status).toBe("valid");
    }
  });

  it("with another `after`, the record's time counts", async () => {
    const store = new PlainStore();
    const w = world({ store });
    const hasty = world({ store, clock: w.clock, fallback: { after: 5 } });
    const id = await begin(w);
    w.clock.advance(10_000);
    await hasty.one.flush();
    expect(hasty.story(id)).toEqual([]);
    w.clock.advance(10_000);
    await hasty.one.flush();
    expect(hasty.story(id)).toEqual(["2 sms"]);
  });

  it("with another cool-down, check budget and lifetime, nothing is sent twice", async () => {
    const store = new PlainStore();
    const w = world({ store });
    const other = world({ store, clock: w.clock, policy: { lifetime: 120, checks: 3, retryCooldowns: [5], limits: wide } });
    const id = await begin(w);
    w.clock.advance(after);
    await Promise.all([w.one.flush(), other.one.flush()]);
    await exhaust(w, 3);
    await exhaust(other, 3);
    expect([...w.story(id), ...other.story(id)]).toEqual(["1 wa", "2 sms"]);
    expect(ofEvents(w.one, "refused")).toEqual([]);
    expect(saysWhy(await w.one.explain(id))).toMatch(/fallback/);
  });
});
