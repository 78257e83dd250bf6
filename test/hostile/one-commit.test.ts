import { randomUUID } from "node:crypto";
import { afterEach, describe, expect, it, vi } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import type { Change, Store } from "../../src/ports/store.js";
import { fixedClock } from "../../src/testing/index.js";
import { PlainStore, TwoStepStore } from "../store/plain-store.js";
import { secret, start } from "../support/verifier.js";
import { drive, ending, ForgetfulStore, noSpamRules, pass, rigged, sender, service, tallied, wide } from "./kit.js";
import { abroad, creates, day, fleet, french, hour, minute, only, pending, roomy, sentTo, settled, tapped, verify } from "./one-commit-kit.js";

/** The n-th country's numbers. */
const land = (n: number) => abroad[n] as (index: number) => string;

/** The rule `range`, where only the narrowest level can be reached. */
const narrow = { ...only("range"), range: { mode: "enforce" as const, seeds: [5, 1_000_000, 1_000_000] as const } };

describe("unlimited guesses", () => {
  it("a keyed create that a spam rule rejects never holds a code, whatever checks come between its commits (docs/contract.md#refused-records)", async () => {
    const clock = fixedClock(start);
    const store = new ForgetfulStore(() => clock.now());
    const target = french(77);
    let judged = 0;
    let attacking = false;
    const options = { clock, policy: { limits: wide, spam: only("range") }, customer: randomUUID(), sender: sender() };
    const attacker = service({ ...options, store });
    const attack = async (id: string) => {
      for (let i = 0; i < 6; i++) if (["invalid", "valid"].includes(await ending(attacker.check(id, String(i).repeat(6))))) judged++;
    };
    const one = service({
      ...options,
      // While the create is in progress, others may find its record by its id, or by the same key.
      store: tapped(store, async (change) => {
        if (!attacking || change.record === undefined) return;
        attacking = false;
        await attack(change.record.id);
        attacking = true;
      }),
    });
    await creates(one, 5, (i) => french(i));
    attacking = true;
    // Uses up the twenty that are stored of a number without a key.
    for (let i = 0; i < 20; i++) expect((await one.create(target, {}, { idempotencyKey: `first ${i}` })).status).toBe("spam_detected");
    for (let i = 0; i < 40; i++) {
      const { status, authentication_uuid: id } = await one.create(target, {}, { idempotencyKey: "again" });
      expect(status).toBe("spam_detected");
      await attack(id);
      await settled();
    }
    expect(sentTo(one.sender, target)).toBe(0);
    expect(judged, "wrong codes judged for a number to which no message went").toBe(0);
  });

  it("wrong codes are counted per number: with any number of authentications, sends per day × checks are evaluated in 24 hours (docs/contract.md#guesses-claimed)", async () => {
    const [one, two] = fleet(2, { store: new PlainStore(), policy: { lifetime: 86_400, limits: wide, spam: noSpamRules } });
    const number = french(1);
    const tenSends = async () => {
      const ids: string[] = [];
      for (let i = 0; i < 10; i++) {
        if (i === 5) one!.clock.advance(10 * minute + 1);
        ids.push((await one!.create(number)).authentication_uuid);
      }
      return ids;
    };
    const guess = async (ids: readonly string[]) => {
      const endings: string[] = [];
      for (const [at, id] of ids.entries()) for (let i = 0; i < 5; i++) endings.push(await ending((at % 2 ? one : two)!.check(id, one!.wrong(id))));
      return tallied(endings)["invalid"] ?? 0;
    };
    const first = await tenSends();
    one!.clock.advance(day - 11 * minute);
    expect(await guess(first)).toBe(50);
    one!.clock.advance(12 * minute);
    const second = await tenSends();
    expect(await guess(second), "judged within the same half hour").toBe(0);
    const [id] = second as [string];
    expect(await ending(one!.check(id, one!.sender.codeOf(id))), "the right code too").toBe("rate_limited");
    // "in 24 hours (and for up to 12 hours longer)"
    one!.clock.advance(36 * hour + minute);
    expect(await guess(await tenSends())).toBe(50);
  });
});

describe("a store and rejected creates", () => {
  it.each([
    ["keyed", true],
    ["unkeyed", false],
  ])("1,200 rejected creates of one number leave room in a memory store of 1,000, %s (docs/contract.md#refused-records)", async (_, keyed) => {
    const one = service({ store: memoryStore({ name: randomUUID(), maxRecords: 1_000 }), policy: { limits: wide, spam: narrow } });
    await creates(one, 5, (i) => french(i));
    for (let i = 0; i < 1_200; i++) expect(await ending(one.create(french(77), {}, keyed ? { idempotencyKey: `k${i}` } : {}))).toBe("spam_detected");
    await settled();
    for (let i = 0; i < 100; i++) expect(await ending(one.create(french(0, i, 50)))).toBe("pending");
  });

  it.each([
    ["a spam rule", "unkeyed", "spam_detected"],
    ["a spam rule", "keyed", "spam_detected"],
    ["a cap", "unkeyed", "rate_limited"],
    ["a cap", "keyed", "rate_limited"],
  ])(
    "creates rejected by %s, %s, are stored until `expires_at`, without a key only twenty an hour of a number (docs/contract.md#refused-records)",
    async (by, how, status) => {
      const clock = fixedClock(start);
      const store = new ForgetfulStore(() => clock.now());
      const one = service({ clock, store, policy: { limits: wide, spam: by === "a cap" ? noSpamRules : only("range") } });
      await creates(one, 5, (i) => (by === "a cap" ? french(77) : french(i)));
      const sent = new Set(store.records.keys());
      for (let i = 0; i < 60; i++) {
        const { status: answered, expires_at } = await one.create(french(77), {}, how === "keyed" ? { idempotencyKey: `k${i}` } : {});
        expect(answered).toBe(status);
        expect(Date.parse(expires_at)).toBe(clock.now() + 600_000);
      }
      await settled();
      const kept = () => [...store.records].filter(([key]) => !sent.has(key));
      expect(kept().length).toBeLessThanOrEqual(how === "keyed" ? 60 : 20);
      for (const [, { keepUntil }] of kept()) expect(keepUntil - clock.now(), "kept for so long").toBeLessThanOrEqual(600_000);
      clock.advance(600_001);
      await store.find(one.customer, randomUUID());
      expect(kept()).toEqual([]);
    },
  );
});

describe("undoing many creates at once", () => {
  it.each(["held", "lost", "deaf"] as const)(
    "2,500 creates whose commits are %s at the same time are all undone: no cap and no range counts one (docs/contract.md#lost-write)",
    async (fate) => {
      const store = rigged(new PlainStore());
      const limits = { ...wide, perCustomer: [{ limit: 2_500, window: 86_400 }] };
      const one = service({ store, policy: { limits, spam: narrow } });
      store.fate = (method) => (method === "commit" ? fate : "done");
      const calls = Array.from({ length: 2_500 }, (_, i) => ending(one.create(french(i % 5, Math.floor(i / 5) % 100, 20 + Math.floor(i / 500)))));
      expect(tallied(await drive(one.clock, Promise.all(calls)))).toEqual({ unavailable: 2_500 });
      await pass(one.clock, 4_000);
      store.fate = () => "done";
      await store.release();
      await pass(one.clock, 120_000);
      expect(one.sender.messages).toEqual([]);
      const honest: string[] = [];
      for (let range = 0; range < 500; range++) {
        for (let i = 0; i < 5; i++) honest.push(await ending(one.create(french(1_000 + i, range % 100, 20 + Math.floor(range / 100)))));
      }
      expect(tallied(honest)).toEqual({ pending: 2_500 });
      expect(await ending(one.create(french(0, 0, 60)))).toBe("rate_limited");
    },
  );
});

describe("a lost retry and the next retry", () => {
  it.each(["held", "lost", "deaf", "late"] as const)(
    "undoing a lost retry (%s) never undoes the user's next one: its code stays live, and sums are given back once (docs/contract.md#take-back)",
    async (first) => {
      const limits = { ...wide, perNumber: [{ limit: 3, window: 86_400 }], perCustomer: [{ limit: 3, window: 86_400 }] };
      const outcomes: Record<string, number> = {};
      // What happens to the first two commits that undo it, how long the user waits, and when held calls are released.
      for (const second of ["done", "refused", "lost", "silent", "deaf", "held"] as const)
        for (const third of ["done", "lost"] as const)
          for (const wait of [0, 300, 1_500, 3_000])
            for (const release of ["before", "after"]) {
              const store = rigged(new PlainStore());
              const one = service({ store, policy: { limits } });
              const { authentication_uuid: id } = await one.create(1);
              await settled();
              one.clock.advance(31_000);
              const ahead: ("done" | "refused" | "lost" | "silent" | "deaf" | "held" | "late")[] = [first, second, third];
              let users = false;
              store.fate = (method) => (method === "commit" && !users ? (ahead.shift() ?? "done") : "done");
              expect(await drive(one.clock, ending(one.retry(id)))).toBe("unavailable");
              await pass(one.clock, wait, 100);
              if (release === "before") await store.release();
              const again = async () => {
                users = true;
                const call = ending(one.retry(id));
                await settled(12);
                users = false;
                return drive(one.clock, call);
              };
              for (let i = 0; (await again()) !== "approved" && i < 60; i++) await pass(one.clock, 500, 100);
              await store.release();
              store.fate = () => "done";
              await pass(one.clock, 60_000);
              const code = await ending(one.check(id, one.sender.codeOf(id, 2)));
              const rest = tallied([await ending(one.create(1)), await ending(one.create(1))]);
              const outcome = `messages ${one.sender.messages.length}, code ${code}, then ${JSON.stringify(rest)}`;
              outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
            }
      expect(outcomes).toEqual({ 'messages 3, code valid, then {"pending":1,"rate_limited":1}': 96 });
    },
  );
});

/** A store of two steps whose connection breaks in the middle of a commit: before its record is written, or after. */
class TornStore extends TwoStepStore {
  /** What happens to each commit, in order; all later ones are whole. */
  tears: ("before" | "after" | "whole")[] = [];
  private tear: "before" | "after" | "whole" = "whole";

  override async commit(...args: Parameters<TwoStepStore["commit"]>) {
    this.tear = this.tears.shift() ?? "whole";
    return super.commit(...args);
  }

  override write(...args: Parameters<TwoStepStore["write"]>) {
    const { tear } = this;
    this.tear = "whole";
    if (tear === "before") throw new Error("connection reset");
    super.write(...args);
    if (tear === "after") throw new Error("connection reset");
  }
}

describe("a store of two steps", () => {
  const limits = {
    ...wide,
    perNumber: [{ limit: 2, window: 86_400 }],
    perDevice: [{ limit: 2, window: 86_400 }],
    numbersPerDevice: [{ limit: 2, window: 86_400 }],
    perCustomer: [{ limit: 2, window: 86_400 }],
    spend: [{ amount: 2, per: "day" as const }],
  };
  const tears = ["before", "after", "whole"] as const;
  const cases = tears
    .flatMap((first) => tears.flatMap((second) => tears.map((third) => [first, second, third] as const)))
    .filter(([first]) => first !== "whole");

  it.each(cases)("a create torn %s its record, then undone by two commits (%s, %s), leaves nothing counted (docs/contract.md#two-steps)", async (...torn) => {
    const store = new TornStore();
    const one = service({ store, price: 1, policy: { limits, spam: { ...only("range"), range: { mode: "enforce", seeds: [2, 2, 2] } } } });
    const fields = { device_id: "device" };
    store.tears = [...torn];
    const first = await drive(one.clock, ending(one.create(french(1), fields)));
    await pass(one.clock, 60_000);
    store.tears = [];
    expect(first).toBe("unavailable");
    expect(one.sender.messages).toEqual([]);
    const then = [await ending(one.create(french(1), fields)), await ending(one.create(french(2), fields))];
    expect(then, "there is room for two").toEqual(["pending", "pending"]);
    expect(await ending(one.create(french(3), { device_id: "another" })), "and for no more").not.toBe("pending");
  });

  it.each(cases)("a retry torn %s its record, then undone by two commits (%s, %s), leaves nothing counted (docs/contract.md#two-steps)", async (...torn) => {
    const store = new TornStore();
    const one = service({ store, price: 1, policy: { limits, spam: noSpamRules } });
    const { authentication_uuid: id } = await one.create(french(1));
    await settled();
    one.clock.advance(31_000);
    store.tears = [...torn];
    expect(await drive(one.clock, ending(one.retry(id)))).toBe("unavailable");
    await pass(one.clock, 60_000);
    store.tears = [];
    expect(await one.retry(id)).toMatchObject({ status: "approved", remaining_retry: 3 });
    expect(await ending(one.create(french(2)))).toBe("rate_limited");
    expect(await ending(one.check(id, one.sender.codeOf(id, 1)))).toBe("valid");
  });
});

describe("messages that a carrier rejected", () => {
  it("messages that a carrier rejected are not open: they block no range, country, pot or address (docs/contract.md#send-outcome)", async () => {
    const one = service({ store: new PlainStore(), policy: { ...roomy, spam: only("range", "country", "newCountries", "address", "crowd") } });
    one.sender.answer = async () => ({ outcome: "rejected" });
    for (let i = 0; i < 200; i++) {
      expect(await ending(one.create(french(i), { ip: "198.51.100.7" })), `message ${i}`).toBe("pending");
      await settled(4);
    }
    one.sender.answer = async () => ({ outcome: "accepted" });
    await settled();
    expect(await ending(one.create(french(500), { ip: "198.51.100.7" }))).toBe("pending");
  });

  it("rejected retries are not open, messages with an unknown outcome are, and caps count all of them (docs/contract.md#send-outcome)", async () => {
    const limits = { ...wide, perNumber: [{ limit: 4, window: 86_400 }] };
    const one = service({ store: new PlainStore(), policy: { maxGuessOdds: 1, lifetime: 3_600, limits, spam: only("range") } });
    const { authentication_uuid: id } = await one.create(french(1));
    await settled();
    one.sender.answer = async () => ({ outcome: "rejected" });
    for (let i = 0; i < 3; i++) {
      await pass(one.clock, 130_000);
      expect(await ending(one.retry(id))).toBe("denied");
    }
    await settled();
    one.sender.answer = async () => ({ outcome: "unknown" });
    expect(pending(await creates(one, 10, (i) => french(10 + i))), "of five one was open").toBe(4);
    await pass(one.clock, 130_000);
    one.sender.answer = async () => ({ outcome: "accepted" });
    expect(await ending(one.create(french(1))), "four sends of four").toBe("rate_limited");
  });
});

describe("the pot of new countries after a rejection", () => {
  it("a rejection gives nothing back to the pot of new countries that it had not taken (docs/contract.md#spam-new-countries)", async () => {
    // Results come a turn later, so that concurrent creates overlap in a process that does not know the country yet.
    const store = tapped(new PlainStore(), () => settled(1));
    const options = { store, policy: { ...roomy, spam: only("range", "newCountries") } };
    const one = service(options);
    for (let i = 0; i < 3; i++) await verify(one, french(i, 50));
    await creates(one, 5, (i) => french(i));
    const strangers = (from: number) => creates(one, 100, (i) => land((from + i) % 40)(((from + i) % 3) * 10_000 + Math.floor((from + i) / 40)));
    expect(pending(await strangers(0)), "the seed, and at most what three earned").toBeLessThanOrEqual(36);
    for (let round = 0; round < 3; round++) {
      const fresh = service({ ...options, clock: one.clock, sender: one.sender, customer: one.customer });
      const refused = await Promise.all(Array.from({ length: 40 }, (_, i) => ending(fresh.create(french(100 * (1 + round) + i)))));
      expect(tallied(refused)).toEqual({ spam_detected: 40 });
      await settled();
    }
    expect(pending(await strangers(100)), "the pot is as full as it was").toBe(0);
  });
});

describe("a number that is verified many times", () => {
  const ten = Array.from({ length: 10 }, (_, i) => i);

  it.each([
    ["a range", only("range"), 7],
    ["a country", only("country"), 32],
  ] as const)("one number earns the credit of %s once a day, however often it is verified (docs/contract.md#balance)", async (_, spam, out) => {
    const [one, two] = fleet(2, { store: new PlainStore(), policy: { ...roomy, spam } });
    const number = french(9_000);
    const range = (i: number) => (out === 7 ? 0 : Math.floor(i / 5));
    for (const i of ten) {
      await verify(i % 2 ? one! : two!, number);
      one!.clock.advance(minute);
    }
    expect(pending(await creates(one!, 100, (i) => french(i, range(i))))).toBe(out);
    // The messages of that day no longer count, and the number earns again.
    one!.clock.advance(38 * hour);
    await verify(two!, number);
    expect(pending(await creates(two!, 100, (i) => french(100 + i, range(i))))).toBe(out);
  });

  it("one number earns the credit of the pot of new countries once, even if it is verified twice (docs/contract.md#balance)", async () => {
    const [one, two] = fleet(2, { store: new PlainStore(), policy: { ...roomy, spam: only("newCountries") } });
    // Twice in each country: with three verifications, it is no longer new.
    for (const i of ten) {
      await verify(one!, land(i)(0));
      await verify(two!, land(i)(0));
    }
    expect(pending(await creates(one!, 200, (i) => land(10 + (i % 30))(Math.floor(i / 30) * 10_000)))).toBe(30 + 10 * 2);
  });

  it("concurrent verifications of one number in four processes earn once (docs/contract.md#balance)", async () => {
    const set = fleet(4, { store: new PlainStore(), policy: { ...roomy, spam: only("range") } });
    const number = french(9_000);
    const made = await Promise.all(Array.from({ length: 5 }, (_, i) => set[i % 4]!.create(number)));
    const codes = made.map(({ authentication_uuid: id }) => [id, set[0]!.sender.codeOf(id)] as const);
    expect(tallied(await Promise.all(codes.map(([id, code], i) => ending(set[(i + 1) % 4]!.check(id, code)))))).toEqual({ valid: 5 });
    await settled();
    expect(pending(await creates(set[0]!, 50, (i) => french(i)))).toBe(7);
  });
});

describe("unlock", () => {
  it("with default rules, unlocks a number whose five messages blocked its range, and its neighbors with it (docs/contract.md#unlock)", async () => {
    const one = service({ store: new PlainStore(), policy: { spam: {} } });
    const number = french(1);
    const named = { customer_uuid: one.customer, phone_number: number };
    await creates(one, 5, () => number);
    one.clock.advance(11 * minute);
    expect(await ending(one.create(number)), "the range is closed").toBe("spam_detected");
    expect(await ending(one.create(french(2))), "for its neighbours too").toBe("spam_detected");
    expect(await one.verifier.unlock(named)).toMatchObject({ unlocked: true });
    await settled();
    expect(await ending(one.create(number))).toBe("pending");
    expect(await ending(one.create(french(2)))).toBe("pending");
  });
});

describe("concurrent repeats of a rejected create", () => {
  it("concurrent repeats of a keyed create that is then rejected get the same rejection (docs/contract.md#idempotency)", async () => {
    const inner = new PlainStore();
    for (let round = 0; round < 20; round++) {
      const twins: { status: string; authentication_uuid: string }[] = [];
      const options = { clock: fixedClock(start), sender: sender(), customer: randomUUID(), policy: { limits: wide, spam: only("range") } };
      const other = service({ ...options, store: inner });
      let busy = false;
      const one = service({
        ...options,
        store: tapped(inner, async () => {
          if (!busy || twins.length >= 5) return;
          twins.push(await other.create(french(77), {}, { idempotencyKey: "k" }));
        }),
      });
      await creates(other, 5, (i) => french(i));
      busy = true;
      const first = await one.create(french(77), {}, { idempotencyKey: "k" });
      expect(first.status).toBe("spam_detected");
      expect(twins.length).toBeGreaterThan(0);
      for (const twin of twins) expect([twin.status, twin.authentication_uuid]).toEqual(["spam_detected", first.authentication_uuid]);
      expect(sentTo(one.sender, french(77))).toBe(0);
    }
  });
});

describe("rejected retries", () => {
  it("rejected retries raise no alarm: after five messages and fifty retries, a new network is not blocked (docs/contract.md#refusal-consumes-nothing)", async () => {
    const alarms: string[] = [];
    const one = service({
      store: new PlainStore(),
      policy: { ...roomy, lifetime: 3_600, spam: only("range", "strangeNetwork") },
      onEvent: (event) => void (event.type === "alarm" && alarms.push(event.alarm)),
    });
    const home = { ip: "198.51.100.7" };
    for (let i = 0; i < 5; i++) await verify(one, french(i, 50 + i), home);
    await pass(one.clock, 3 * hour, 10 * minute);
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.push((await one.create(french(i), home)).authentication_uuid);
    await pass(one.clock, 31_000);
    for (let i = 0; i < 50; i++) expect(await ending(one.retry(ids[i % 5] as string))).toBe("rate_limited");
    await pass(one.clock, 10_000);
    expect(await ending(one.create(french(1, 90), { ip: "203.0.113.9" })), "an honest user from a network that nobody verified from").toBe("pending");
    expect(alarms).toEqual([]);
  });
});

describe("a lost create, and the numbers of its device and address", () => {
  it.each(["lost", "deaf", "held", "late", "refused", "silent"] as const)(
    "undoing a create (%s) drops no number that the device or address had before (docs/contract.md#lost-write)",
    async (fate) => {
      for (const cap of ["numbersPerDevice", "numbersPerIp"])
        for (const step of [0, 1_000]) {
          const store = rigged(new PlainStore());
          const one = service({ store, policy: { ...roomy, limits: { ...roomy.limits, [cap]: [{ limit: 3, window: 3_600 }] } } });
          const fields = { device_id: "device", ip: "203.0.113.7" };
          for (let i = 0; i < 3; i++) {
            expect(await ending(one.create(i, fields))).toBe("pending");
            one.clock.advance(step);
          }
          for (let i = 0; i < 3; i++) {
            store.fate = (method) => (method === "commit" ? fate : "done");
            expect(await drive(one.clock, ending(one.create(i, fields)))).toBe("unavailable");
            store.fate = () => "done";
            await store.release();
            await pass(one.clock, 60_000);
          }
          expect(
            await creates(
              one,
              3,
              (i) => french(i, 90),
              () => fields,
            ),
            `${cap}, ${step} ms apart`,
          ).toEqual(["rate_limited", "rate_limited", "rate_limited"]);
          expect(await ending(one.create(1, fields))).toBe("pending");
        }
    },
  );
});

describe("a process that was suspended", () => {
  /**
   * A service whose process is suspended for `still()` milliseconds just after the store has responded:
   * when it wakes, time has passed, and no timer has run yet.
   */
  const pausing = (options: Parameters<typeof service>[0], still: () => number) => {
    const steady = fixedClock(start);
    let ahead = 0;
    const clock = { now: () => steady.now() + ahead, elapsed: () => steady.now() + ahead, after: steady.after };
    const store = tapped(options?.store ?? new PlainStore(), (change) => {
      if (change.record !== undefined) ahead += still();
    });
    return { steady, ...service({ ...options, store, clock: clock as never }) };
  };

  it("a process suspended between commit and hand-over undoes the write and decides again: nothing decided 2 s ago is sent (docs/contract.md#late-hand-over)", async () => {
    let still = 0;
    const one = pausing({ policy: { lifetime: 60, limits: { ...wide, perNumber: [{ limit: 2, window: 86_400 }] } } }, () => {
      const ms = still;
      still = 0;
      return ms;
    });
    still = 2_300;
    const before = one.clock.now();
    const { authentication_uuid: id, created_at } = await one.create(1);
    expect(one.sender.messages).toHaveLength(1);
    expect(Date.parse(created_at) - before, "it was decided when the process woke").toBe(2_300);
    await pass(one.steady, 31_000);
    still = 2_300;
    expect(await one.retry(id), "neither a place, nor a retry is lost").toMatchObject({ status: "approved", remaining_retry: 3 });
    expect(one.sender.messages).toHaveLength(2);
    expect(await ending(one.create(1)), "two of two").toBe("rate_limited");
    expect(await ending(one.check(id, one.sender.codeOf(id)))).toBe("valid");
    still = 1_900;
    expect(await ending(one.create(2)), "within storeTimeout").toBe("pending");
    expect(one.sender.messages).toHaveLength(3);
  });

  it("a process that wakes after the authentication's end sends nothing (docs/contract.md#late-hand-over)", async () => {
    let still = 0;
    const one = pausing({ policy: { lifetime: 60, limits: wide } }, () => still);
    const { authentication_uuid: id } = await one.create(1);
    await pass(one.steady, 31_000);
    still = 40_000;
    expect(await ending(one.retry(id))).toBe("expired_auth");
    expect(one.sender.messages).toHaveLength(1);
  });

  it("two creates that were suspended take no room in a cap of two in five seconds (docs/contract.md#late-hand-over)", async () => {
    const store = new PlainStore();
    const policy = { ...roomy, limits: { ...roomy.limits, perCustomer: [{ limit: 2, window: 5 }] } };
    const out = sender();
    const customer = randomUUID();
    const still = pausing({ store, policy, sender: out, customer }, () => 6_000);
    expect([await ending(still.create(1)), await ending(still.create(2))]).toEqual(["unavailable", "unavailable"]);
    const awake = service({ store, policy, sender: out, customer, clock: fixedClock(still.clock.now()) });
    expect([await ending(awake.create(3)), await ending(awake.create(4)), await ending(awake.create(5))]).toEqual(["pending", "pending", "rate_limited"]);
    expect(out.messages).toHaveLength(2);
  });
});

describe("two secrets in different order", () => {
  const other = "b7Wq3ZrX9cTn5LvK2hJd8MfS4gYp6AeU";

  it("concurrent creates under one key in two processes send once, and return one authentication (docs/contract.md#keyed-id)", async () => {
    const store = tapped(new PlainStore(), () => settled(1));
    const shared = { store, clock: fixedClock(start), sender: sender(), customer: randomUUID() };
    const one = service({ ...shared, secret: [secret, other] });
    const two = service({ ...shared, secret: [other, secret] });
    for (let i = 0; i < 20; i++) {
      const twins = await Promise.all([one, two, one, two].map((at) => at.create(i, {}, { idempotencyKey: `k${i}` })));
      expect(new Set(twins.map(({ authentication_uuid: id, status }) => `${id} ${status}`)).size, `twins ${i}`).toBe(1);
      expect(one.sender.messages).toHaveLength(i + 1);
      const { authentication_uuid: id } = twins[0] as { authentication_uuid: string };
      expect(await ending((i % 2 ? one : two).check(id, one.sender.codeOf(id)))).toBe("valid");
    }
  });

  it("two processes share their caps and cells (docs/contract.md#hashed-names)", async () => {
    const shared = { store: new PlainStore(), clock: fixedClock(start), sender: sender(), customer: randomUUID() };
    const policy = { limits: { ...wide, perDevice: [{ limit: 7, window: 3_600 }] }, spam: only("range") };
    const set = [service({ ...shared, policy, secret: [secret, other] }), service({ ...shared, policy, secret: [other, secret] })] as const;
    const statuses: string[] = [];
    for (let i = 0; i < 12; i++) statuses.push(await ending((set[i % 2] as (typeof set)[0]).create(french(1, 3))));
    expect(tallied(statuses)).toEqual({ pending: 5, rate_limited: 7 });
    const range: string[] = [];
    for (let i = 0; i < 12; i++) range.push(await ending((set[i % 2] as (typeof set)[0]).create(french(i, 40))));
    expect(tallied(range)).toEqual({ pending: 5, spam_detected: 7 });
    const device: string[] = [];
    for (let i = 0; i < 12; i++) device.push(await ending((set[i % 2] as (typeof set)[0]).create(french(1, 60 + i), { device_id: "device" })));
    expect(tallied(device)).toMatchObject({ pending: 7 });
  });
});

describe("the crowd rule and trusted users", () => {
  it("the crowd rule applies to users who verified today too; it ends by itself, and the safe list and `unlock` are ways out (docs/contract.md#spam-crowd)", async () => {
    const trusted = french(9_999);
    const spam = { ...only("crowd"), trust: { open: 3 } };
    const options = { store: new PlainStore(), clock: fixedClock(start), sender: sender(), customer: randomUUID(), policy: { ...roomy, spam } };
    const one = service(options);
    await verify(one, trusted);
    one.clock.advance(hour);
    expect(pending(await creates(one, 40, (i) => french(i)))).toBe(24);
    expect(await ending(one.create(trusted)), "whoever types the codes trusts himself").toBe("spam_detected");
    const safe = service({ ...options, lists: { safe: { numbers: [trusted] } } });
    expect(await ending(safe.create(trusted))).toBe("pending");
    expect(await one.verifier.unlock({ customer_uuid: one.customer, phone_number: french(3) })).toMatchObject({ unlocked: true });
    await settled();
    expect(await ending(one.create(trusted)), "an operator took one open message out").toBe("pending");
    expect(await ending(one.create(trusted)), "one").toBe("spam_detected");
    one.clock.advance(36 * hour + minute);
    expect(await ending(one.create(french(50)))).toBe("pending");
  });
});

describe("a launch in a new country", () => {
  it("verified users leave the pot, and others find room in it (docs/contract.md#credits)", async () => {
    const one = service({ store: new PlainStore(), policy: { ...roomy, spam: only("newCountries") } });
    const made: string[] = [];
    for (let i = 0; i < 29; i++) made.push((await one.create(land(0)(i * 10))).authentication_uuid);
    for (const id of made) {
      one.clock.advance(1_000);
      expect(await ending(one.check(id, one.sender.codeOf(id)))).toBe("valid");
      await settled(4);
    }
    expect(pending(await creates(one, 35, (i) => land(1 + (i % 30))(i)))).toBe(35);
  });

  it("verified users leave the pot even if their codes are checked by processes that do not know the country (docs/contract.md#credits)", async () => {
    const shared = {
      store: new PlainStore(),
      clock: fixedClock(start),
      sender: sender(),
      customer: randomUUID(),
      policy: { ...roomy, spam: only("newCountries") },
    };
    const one = service(shared);
    const made: string[] = [];
    for (let i = 0; i < 29; i++) made.push((await one.create(land(0)(i * 10))).authentication_uuid);
    for (const id of made) expect(await ending(service(shared).check(id, one.sender.codeOf(id)))).toBe("valid");
    await settled();
    expect(pending(await creates(service(shared), 35, (i) => land(1 + (i % 30))(i)))).toBe(35);
  });
});

describe("two caps of one window", () => {
  it.each(["perNumber", "perDevice", "numbersPerDevice", "perIp", "numbersPerIp", "perCustomer", "lookups"])(
    "two caps of one window in policy.limits.%s throw an error that names the option (docs/contract.md#every-window)",
    (list) => {
      const caps = [
        { limit: 5, window: 86_400 },
        { limit: 3, window: 86_400 },
      ];
      const fault = new RegExp(`limits\\.${list}`);
      expect(() => service({ policy: { limits: { [list]: caps } } })).toThrow(fault);
      expect(() => service({ policy: { limits: { [list]: [caps[0], caps[0]] } } }), "the same one twice").toThrow(fault);
      const customer = randomUUID();
      const customers = [{ customer_uuid: customer, keys: [`pp_${customer}`], policy: { limits: { [list]: caps } } }];
      expect(() => service({ customer, customers }), "a customer's own").toThrow(fault);
      expect(() => service({ policy: { limits: { [list]: [caps[1], { limit: 8, window: 86_401 }] } } })).not.toThrow();
    },
  );
});

describe("the system clock set back", () => {
  afterEach(() => void vi.restoreAllMocks());

  /** Sets the system clock back an hour once `call` is in progress; returns how long the call took. */
  const setBack = async (call: () => Promise<unknown>): Promise<number> => {
    const real = Date.now.bind(Date);
    let back = 0;
    vi.spyOn(Date, "now").mockImplementation(() => real() - back);
    const began = performance.now();
    const running = call();
    await settled(2);
    back = hour;
    await running;
    return performance.now() - began;
  };

  it("moves no deadline of the store: a store that hangs gives 503 in time (docs/contract.md#store-deadline)", async () => {
    const store = rigged(new PlainStore());
    const one = service({ store, clock: undefined, storeTimeout: 0.5, sendTimeout: 0.5 });
    const { authentication_uuid: id } = await one.create(1);
    const code = one.sender.codeOf(id);
    const other = service({ store, clock: undefined, storeTimeout: 0.5, customer: one.customer });
    for (const call of [() => ending(one.create(2)), () => ending(other.check(id, code)), () => ending(one.check(id, code))]) {
      store.fate = () => "silent";
      const answers: string[] = [];
      const took = await setBack(async () => void answers.push(await call()));
      store.fate = () => "done";
      vi.restoreAllMocks();
      expect(answers).toEqual(["unavailable"]);
      expect(took).toBeLessThan(3_000);
    }
  });

  it("moves no deadline of a carrier (docs/contract.md#answer-time)", async () => {
    const store = rigged(new PlainStore());
    const one = service({ store, clock: undefined, storeTimeout: 0.5, sendTimeout: 0.5 });
    one.sender.answer = () => new Promise(() => {});
    const answers: string[] = [];
    const took = await setBack(async () => void answers.push(await ending(one.create(1))));
    vi.restoreAllMocks();
    expect(answers).toEqual(["pending"]);
    expect(took).toBeLessThan(3_000);
  });

  it.each(["create", "check"])(
    "does not extend the total time of one %s's store calls, each of which responds in time but loses its race (docs/contract.md#store-deadline)",
    async (operation) => {
      const real = Date.now.bind(Date);
      let back = 0;
      vi.spyOn(Date, "now").mockImplementation(() => real() - back);
      const store = new PlainStore();
      const one = service({ store, clock: undefined });
      const { authentication_uuid: id } = await one.create(1);
      let lost = 0;
      const racing: Store = {
        ...tapped(store, () => {}),
        async commit({ record }: Change) {
          back = hour;
          await new Promise((done) => setTimeout(done, 150));
          const current = record && (await store.find(one.customer, id));
          return { done: false, ...(operation === "check" && current && { current: { ...current, tokens: [`another's ${lost++}`] } }) };
        },
      };
      const other = service({ store: racing, clock: undefined, storeTimeout: 0.5, customer: one.customer });
      const began = performance.now();
      expect(await ending(operation === "check" ? other.check(id, "000000") : other.create(2))).toBe("unavailable");
      expect(performance.now() - began).toBeLessThan(2_500);
    },
  );
});

describe("verifications exempt from the rules", () => {
  it("verifications of numbers on the safe list are in no cell and earn nothing (docs/contract.md#credits)", async () => {
    const safe = Array.from({ length: 7 }, (_, i) => french(9_000 + i));
    const one = service({ store: new PlainStore(), lists: { safe: { numbers: safe } }, policy: { ...roomy, spam: only("range") } });
    for (const number of safe) await verify(one, number);
    expect(pending(await creates(one, 50, (i) => french(i)))).toBe(5);
  });

  it("verifications from an address or device on the safe list are in no cell and earn nothing (docs/contract.md#credits)", async () => {
    const lists = { safe: { cidrs: ["203.0.113.0/24"], devices: ["the demo tablet"] } };
    const one = service({ store: new PlainStore(), lists, policy: { ...roomy, spam: only("range", "country", "newCountries") } });
    for (let i = 0; i < 4; i++) await verify(one, french(9_000 + i), { ip: "203.0.113.9" });
    for (let i = 0; i < 4; i++) await verify(one, french(9_100 + i), { device_id: "the demo tablet" });
    expect(pending(await creates(one, 50, (i) => french(i)))).toBe(5);
  });
});

describe("test numbers, and a retry after a 503", () => {
  it("test numbers that are never sent to do not count in statistics, neither as sent nor as verified (docs/contract.md#test-numbers)", async () => {
    const number = "+447700900123";
    const one = service({ store: new PlainStore(), testNumbers: [{ number, code: "424242" }], statistics: {} });
    for (let i = 0; i < 3; i++) expect(await ending(one.check((await one.create(number)).authentication_uuid, "424242"))).toBe("valid");
    await verify(one, french(1));
    await pass(one.clock, 10_000);
    const at = one.clock.now();
    const stats = await one.verifier.stats({ customer_uuid: one.customer, from: new Date(at - hour), to: new Date(at + hour) });
    expect({ sends: stats.sends, verified: stats.verified }).toEqual({ sends: 1, verified: 1 });
    expect(stats.messages.map(({ country, sends, verified }) => [country, sends, verified])).toEqual([["FR", 1, 1]]);
  });

  it.each(["lost", "deaf", "late", "held"] as const)(
    "a keyed create whose commit was %s and undone can be retried at once, as if the retry were its first message (docs/contract.md#retry-after-503)",
    async (fate) => {
      let waited = 0;
      for (const wait of [0, 100, 500, 1_000, 3_000, 10_000]) {
        const store = rigged(new PlainStore());
        const one = service({ store });
        const keyed = () => one.create(1, {}, { idempotencyKey: "k" });
        store.fate = (method) => (method === "commit" ? fate : "done");
        expect(await drive(one.clock, ending(keyed()))).toBe("unavailable");
        store.fate = () => "done";
        if (fate === "held") await store.release();
        // The repeat comes at once, and may find the record before it is undone.
        const again = await drive(one.clock, keyed());
        expect(again.status).toBe("pending");
        if (one.sender.messages.length > 0) continue;
        waited++;
        await pass(one.clock, wait, 100);
        await store.release();
        await pass(one.clock, 10_000, 100);
        const retried = await one.retry(again.authentication_uuid);
        expect(retried.status).toBe("approved");
        expect(one.sender.messages).toHaveLength(1);
        expect(await ending(one.check(again.authentication_uuid, one.sender.codeOf(again.authentication_uuid)))).toBe("valid");
      }
      if (fate === "deaf") expect(waited).toBeGreaterThan(0);
    },
  );
});
