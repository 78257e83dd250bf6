import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import type { PolicyOverride } from "../../src/index.js";
import type { Change, CommitResult, Store } from "../../src/ports/store.js";
import { fixedClock } from "../../src/testing/index.js";
import { PlainStore, TwoStepStore } from "../store/plain-store.js";
import { secret, start } from "../support/verifier.js";
import { drive, ending, ForgetfulStore, fates, noSpamRules, pass, rigged, type Service, sender, service, tallied, wide } from "./kit.js";
import { abroad, creates, day, fleet, french, hour, minute, only, pending, roomy, seeds, settled, tapped, verify } from "./one-commit-kit.js";

/** The n-th country's numbers. */
const land = (n: number) => abroad[n % 40] as (index: number) => string;
const times = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
const at = (set: readonly Service[], i: number): Service => set[i % set.length] as Service;

/** Every commit takes a few turns, so that concurrent calls overlap. */
class SlowStore extends PlainStore {
  override async commit(change: Change): Promise<CommitResult> {
    await settled(1 + Math.floor(Math.random() * 3));
    const result = await super.commit(change);
    await settled(1 + Math.floor(Math.random() * 3));
    return result;
  }
}

/** When the next part of a policy's sums begins, found by their claims. */
async function boundary(policy: PolicyOverride): Promise<number> {
  let part = -1;
  const partAt = async (ms: number) => {
    const store = tapped(new PlainStore(), ({ claims = [] }) => {
      for (const claim of claims) if ("sum" in claim) part = claim.part;
    });
    await service({ store, clock: fixedClock(ms), clockSkew: 5, policy }).create(french(1), { ip: "198.51.100.7" });
    return part;
  };
  let [low, high] = [start, start + 26 * hour];
  const first = await partAt(low);
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if ((await partAt(middle)) === first) low = middle;
    else high = middle;
  }
  return high;
}

/** What a plain store has counted: the total of each sum, and the number of members of each window. */
function counted(store: PlainStore): Record<string, number> {
  const all: Record<string, number> = {};
  for (const [sum, parts] of store.sums) {
    const total = [...parts.values()].reduce((one, other) => one + other, 0);
    if (total !== 0) all[sum] = total;
  }
  for (const [window, members] of store.windows) if (members.size > 0) all[window] = members.size;
  return all;
}

describe("hundreds of concurrent calls to four verifiers on one store (docs/contract.md#cells-may-lag)", () => {
  it.each(seeds)("%s: creates, keyed or not, send exactly the seed", async (_, rule, seed, number, fields) => {
    for (const make of [() => new SlowStore(), () => memoryStore({ name: randomUUID() }), () => new TwoStepStore()]) {
      const set = fleet(4, { store: make(), policy: { ...roomy, spam: only(rule) }, storeTimeout: 60 });
      const answers = await Promise.all(times(300, (i) => ending(at(set, i).create(number(i), fields(i), i % 3 ? {} : { idempotencyKey: `k${i}` }))));
      expect(tallied(answers)).toEqual({ pending: seed, spam_detected: 300 - seed });
      expect(at(set, 0).sender.messages).toHaveLength(seed);
      await settled();
      expect(
        pending(
          await creates(
            at(set, 1),
            10,
            (i) => number(2_000 + i),
            (i) => fields(2_000 + i),
          ),
        ),
        "and refusals have filled and freed nothing",
      ).toBe(0);
    }
  });

  it.each(seeds)("%s: retries stay within the seed too, and are `rate_limited` beyond it", async (_, rule, seed, number, fields) => {
    const set = fleet(4, { store: new SlowStore(), policy: { ...roomy, lifetime: 7_200, spam: only(rule) }, storeTimeout: 60 });
    const ids = await Promise.all(times(seed - 2, async (i) => (await at(set, i).create(number(i), fields(i))).authentication_uuid));
    at(set, 0).clock.advance(31_000);
    const retries = await Promise.all(ids.flatMap((id) => times(4, (i) => ending(at(set, i).retry(id)))));
    const approved = retries.filter((status) => status === "approved").length;
    expect(approved).toBe(Math.min(2, ids.length));
    expect(retries.filter((status) => !["approved", "rate_limited", "denied"].includes(status))).toEqual([]);
    expect(at(set, 0).sender.messages).toHaveLength(seed);
  });

  it("range: with concurrent verifications, no more is open than the seed and two for each verified", async () => {
    const set = fleet(4, { store: new SlowStore(), policy: { ...roomy, spam: only("range") }, storeTimeout: 60 });
    const out = at(set, 0).sender;
    let verified = 0;
    let most = 0;
    const visit = async (i: number) => {
      const { authentication_uuid: id, status } = await at(set, i).create(french(i));
      if (status !== "pending") return;
      most = Math.max(most, out.messages.length - verified - 2 * verified);
      if (i % 3 > 0) return;
      expect(await ending(at(set, i + 1).check(id, out.codeOf(id)))).toBe("valid");
      verified++;
    };
    for (let round = 0; round < 20; round++) await Promise.all(times(50, (i) => visit(round * 50 + i)));
    const open = out.messages.length - verified;
    expect(open).toBeLessThanOrEqual(5 + 2 * verified);
    expect(pending(await creates(at(set, 0), 1_000, (i) => french(5_000 + i)))).toBe(5 + 2 * verified - open);
  });

  it("the customer's growing cap allows exactly its limit and three more for each verified (docs/contract.md#growing-cap)", async () => {
    const policy = { ...roomy, limits: { ...roomy.limits, perCustomer: [{ limit: 40, window: 86_400, perVerified: 3 }] }, spam: noSpamRules };
    const set = fleet(4, { store: new SlowStore(), policy, storeTimeout: 60 });
    const first = await Promise.all(times(200, (i) => at(set, i).create(i)));
    expect(pending(first.map(({ status }) => status))).toBe(40);
    const ids = first.filter(({ status }) => status === "pending").map(({ authentication_uuid: id }) => id);
    await Promise.all(ids.slice(0, 7).map(async (id, i) => expect(await ending(at(set, i).check(id, at(set, 0).sender.codeOf(id)))).toBe("valid")));
    await settled();
    const more = await Promise.all(times(200, (i) => ending(at(set, i).create(1_000 + i))));
    expect(tallied(more)).toEqual({ pending: 21, rate_limited: 179 });
  });

  it("guesses of one number: sends per day × checks, in twenty authentications and four processes (docs/contract.md#guesses-claimed)", async () => {
    const set = fleet(4, { store: new SlowStore(), policy: { lifetime: 200_000, longLifetime: true, limits: wide, spam: noSpamRules }, storeTimeout: 60 });
    const one = at(set, 0);
    const ids: string[] = [];
    // The sends of two days, whose codes are all live.
    for (const wait of [0, 601_000, day - 600_000, 601_000]) {
      one.clock.advance(wait);
      for (let i = 0; i < 5; i++) ids.push((await one.create(french(1))).authentication_uuid);
    }
    expect(one.sender.messages).toHaveLength(20);
    const answers = await Promise.all(times(400, (i) => ending(at(set, i).check(ids[i % ids.length] as string, one.wrong(ids[i % ids.length] as string)))));
    expect(tallied(answers)).toEqual({ invalid: 50, rate_limited: 350 });
    expect(await ending(one.check(ids[0] as string, one.sender.codeOf(ids[0] as string))), "the right code too").toBe("rate_limited");
    one.clock.advance(36 * hour + minute);
    expect(await ending(one.check(ids.at(-1) as string, one.sender.codeOf(ids.at(-1) as string))), "until the day is over").toBe("valid");
  });

  it.each([
    ["range", 5, 3],
    ["crowd", 25, 2],
  ] as const)(
    "trust: a verified number passes a full %s rule (of %d) with %d messages, also under concurrency (docs/contract.md#trust)",
    async (rule, room, passing) => {
      for (const racing of [false, true]) {
        const limits = { ...roomy.limits, perNumber: [{ limit: 100, window: 86_400 }] };
        const policy = { ...roomy, limits, spam: { ...only(rule), trust: { open: 3 } } };
        const set = fleet(4, { store: new SlowStore(), policy, storeTimeout: 60 });
        const one = at(set, 0);
        await verify(one, french(1));
        one.clock.advance(3 * day);
        expect(pending(await creates(one, 40, (i) => french(100 + i)))).toBe(room);
        const answers = racing ? await Promise.all(times(20, (i) => ending(at(set, i).create(french(1))))) : await creates(one, 20, () => french(1));
        expect(tallied(answers), racing ? "racing" : "one by one").toEqual({ pending: passing, spam_detected: 20 - passing });
      }
    },
  );
});

describe("a rejected create writes nothing before its response (docs/contract.md#refusal-consumes-nothing)", () => {
  const refusals = {
    "a cap": {
      policy: { ...roomy, limits: { ...roomy.limits, perNumber: [{ limit: 5, window: 86_400 }] }, spam: noSpamRules },
      calls: 1,
      fill: () => french(77),
    },
    "a spam rule": { policy: { ...roomy, spam: only("range") }, calls: 2, fill: (i: number) => french(i) },
    "a ceiling": {
      policy: { ...roomy, limits: { ...roomy.limits, spend: [{ amount: 5, per: "day" as const }] }, spam: noSpamRules },
      calls: 1,
      fill: (i: number) => french(i),
    },
    "all rules together": {
      policy: { ...roomy, spam: only("range", "crowd", "country", "newCountries", "address", "strangeNetwork") },
      calls: 2,
      fill: (i: number) => french(i),
    },
  };

  it.each(Object.entries(refusals))(
    "by %s: before the response, nothing is written or counted, in few round trips; one record follows",
    async (_, { policy, calls, fill }) => {
      const plain = new SlowStore();
      const store = rigged(plain);
      const one = service({ store, price: 1, policy, storeTimeout: 60 });
      const fields = { ip: "198.51.100.7", device_id: "d" };
      await creates(one, 5, fill, () => fields);
      const sent = one.sender.messages.length;
      await settled(50);
      for (const turn of ["first", "second"]) {
        const before = counted(plain);
        const records = plain.records.size;
        // Later calls hang: a response that waited for them would never come.
        let asked = 0;
        store.fate = (method) => (method === "tally" || ++asked <= calls ? "done" : "held");
        const status = await ending(one.create(french(77), fields));
        expect(counted(plain)).toEqual(before);
        expect(plain.records.size).toBe(records);
        expect(["rate_limited", "spam_detected"]).toContain(status);
        store.fate = () => "done";
        await store.release();
        await settled(50);
        expect(plain.records.size - records, turn).toBe(1);
      }
      expect(one.sender.messages).toHaveLength(sent);
    },
  );

  it("a retry rejected by a cap, a rule or the cool-down never writes anything (docs/contract.md#refusal-consumes-nothing)", async () => {
    for (const policy of [
      { ...roomy, limits: { ...roomy.limits, perNumber: [{ limit: 1, window: 86_400 }] }, spam: noSpamRules },
      { ...roomy, spam: { ...only("range"), range: { mode: "enforce" as const, seeds: [1, 1, 1] as const } } },
      {
        ...roomy,
        spam: { ...only("country", "newCountries"), country: { mode: "enforce" as const, seed: 1 }, newCountries: { mode: "enforce" as const, seed: 1 } },
      },
    ]) {
      const plain = new PlainStore();
      const one = service({ store: plain, policy: { ...policy, lifetime: 3_600 } });
      const { authentication_uuid: id } = await one.create(french(1));
      await settled();
      const before = counted(plain);
      expect(await ending(one.retry(id))).toBe("denied");
      one.clock.advance(31_000);
      for (let i = 0; i < 10; i++) expect(await one.retry(id)).toMatchObject({ status: "rate_limited" });
      await settled();
      expect(counted(plain)).toEqual(before);
      expect(await ending(one.check(id, one.sender.codeOf(id)))).toBe("valid");
    }
  });

  it("one place left, and concurrent creates under one key in four processes: one message, and one result for all (docs/contract.md#idempotency)", async () => {
    for (let round = 0; round < 20; round++) {
      const store = round % 2 ? new SlowStore() : new TwoStepStore();
      const set = fleet(4, { store, policy: { ...roomy, spam: only("range") }, storeTimeout: 60 });
      await creates(at(set, 0), 4, (i) => french(i));
      const twins = await Promise.all(times(8, (i) => at(set, i).create(french(77), {}, { idempotencyKey: "k" })));
      const others = await Promise.all(times(8, (i) => at(set, i).create(french(78), {}, { idempotencyKey: "l" })));
      for (const group of [twins, others])
        expect(new Set(group.map(({ status, authentication_uuid: id }) => `${status} ${id}`)).size, `round ${round}`).toBe(1);
      expect(at(set, 0).sender.messages).toHaveLength(5);
      expect([twins[0]?.status, others[0]?.status]).toEqual(["pending", "spam_detected"]);
    }
  });

  it("a keyed rejection is repeated until its end, even once there is room; another body under the key is bad_request (docs/contract.md#keyed-id)", async () => {
    const one = service({ policy: { ...roomy, spam: only("range") } });
    const opened: string[] = [];
    for (let i = 0; i < 5; i++) opened.push((await one.create(french(i))).authentication_uuid);
    const refused = await one.create(french(77), {}, { idempotencyKey: "k" });
    expect(refused.status).toBe("spam_detected");
    for (const id of opened) expect(await ending(one.check(id, one.sender.codeOf(id)))).toBe("valid");
    await settled();
    expect(await ending(one.create(french(78)))).toBe("pending");
    expect(await one.create(french(77), {}, { idempotencyKey: "k" })).toEqual(refused);
    expect(await ending(one.create(french(76), {}, { idempotencyKey: "k" })), "another body").toBe("bad_request");
    one.clock.advance(599_999);
    expect(await one.create(french(77), {}, { idempotencyKey: "k" })).toEqual(refused);
    one.clock.advance(1);
    expect(await ending(one.create(french(77), {}, { idempotencyKey: "k" }))).toBe("pending");
  });
});

describe("a second check of the store (docs/contract.md#second-look)", () => {
  /** A full range in a million where many verified. All store calls of the next create but the first have this fate. */
  const looked = async (fate: "refused" | "silent" | "lost" | "deaf" | "late") => {
    const store = rigged(new PlainStore());
    const one = service({ store, policy: { ...roomy, spam: { ...only("range", "crowd", "country", "newCountries"), trust: { open: 3 } } } });
    for (let i = 0; i < 8; i++) await verify(one, french(i, 10 * i));
    await creates(one, 40, (i) => french(100 + i, 5));
    await settled();
    let commits = 0;
    store.fate = (method) => {
      if (method !== "commit" && method !== "tally" && method !== "members" && method !== "get" && method !== "find") return "done";
      return ++commits > 1 ? fate : "done";
    };
    return { store, one };
  };

  it.each(["refused", "silent", "lost", "deaf", "late"] as const)(
    "that is %s gives a response in time, and sends nothing (docs/contract.md#fail-closed)",
    async (fate) => {
      const { store, one } = await looked(fate);
      const before = one.sender.messages.length;
      const status = await drive(one.clock, ending(one.create(french(200, 5))), 100, 4_000);
      expect(["spam_detected", "unavailable"], "a cell is a cap: it fails closed").toContain(status);
      expect(one.sender.messages.length).toBe(before);
      store.fate = () => "done";
      await store.release();
      await pass(one.clock, 60_000);
      expect(await ending(one.create(french(201, 5)))).toBe("spam_detected");
      expect(await ending(one.create(french(201, 95)))).toBe("pending");
    },
  );

  it.each([
    ["nothing", undefined],
    ["too few", []],
    ["words", ["many", "more", "x", "y", "z"]],
    ["numbers that are none", [Number.NaN, Number.NaN, Number.NaN, Number.NaN]],
    ["far below zero", [-1e15, -1e15, -1e15, -1e15]],
  ])("that returns invalid counts (%s) neither crashes nor lets a message through to a full range", async (_, lie) => {
    const plain = new PlainStore();
    let lying = false;
    const store: Store = {
      ...tapped(plain, () => {}),
      async commit(change) {
        const result = await plain.commit(change);
        return lying && result.done && change.record === undefined ? ({ ...result, asked: lie } as unknown as CommitResult) : result;
      },
    };
    const one = service({ store, policy: { ...roomy, spam: { ...only("range"), trust: { open: 3 } } } });
    await creates(one, 5, (i) => french(i));
    lying = true;
    expect(["spam_detected", "unavailable"]).toContain(await ending(one.create(french(77))));
    lying = false;
    expect(one.sender.messages).toHaveLength(5);
    expect(await ending(one.create(french(77)))).toBe("spam_detected");
  });

  it("that is late by more than storeTimeout decides nothing, and nothing is sent (docs/contract.md#late-hand-over)", async () => {
    const { store, one } = await looked("late");
    const trusted = french(0, 0);
    await pass(one.clock, 2 * day, hour);
    store.fate = () => "done";
    await creates(one, 6, (i) => french(300 + i, 0));
    let commits = 0;
    store.fate = (method) => (method === "commit" && ++commits === 2 ? "late" : "done");
    expect(await drive(one.clock, ending(one.create(trusted)))).toBe("unavailable");
    const before = one.sender.messages.length;
    await store.release();
    await pass(one.clock, 60_000);
    expect(one.sender.messages.length).toBe(before);
  });
});

describe("rules in shadow mode (docs/contract.md#modes)", () => {
  const shadow = { mode: "shadow" as const };
  const all = { range: shadow, crowd: shadow, country: shadow, newCountries: shadow, address: shadow, strangeNetwork: shadow, signals: shadow };

  it("allow everything, however full, and explain what they would have blocked, with value and threshold", async () => {
    const one = service({ policy: { ...roomy, spam: { ...all, trust: { open: 0 } } } });
    const statuses = await creates(
      one,
      60,
      (i) => french(i),
      () => ({ ip: "198.51.100.7" }),
    );
    expect(pending(statuses)).toBe(60);
    const { authentication_uuid } = await one.create(french(99), { ip: "198.51.100.7" });
    const { decisions } = await one.verifier.explain({ customer_uuid: one.customer, authentication_uuid });
    const told = Object.fromEntries(decisions.map(({ rule, mode, value, threshold }) => [rule, [mode, value, threshold]]));
    expect(told).toMatchObject({
      "range 4": ["shadow", 60, 5],
      "range 5": ["shadow", 60, 12],
      "range 6": ["shadow", 60, 30],
      crowd: ["shadow", 60, 25],
      country: ["shadow", 60, 30],
      newCountries: ["shadow", 60, 30],
      address: ["shadow", 60, 8],
    });
  });

  it("count as enforced rules do: once enforced, they know what is open and who verified", async () => {
    const options = { store: new PlainStore(), clock: fixedClock(start), sender: sender(), customer: randomUUID() };
    const watching = service({ ...options, policy: { ...roomy, spam: { ...only(), range: shadow } } });
    for (let i = 0; i < 3; i++) await verify(watching, french(9_000 + i));
    await creates(watching, 4, (i) => french(i));
    const strict = service({ ...options, policy: { ...roomy, spam: only("range") } });
    expect(pending(await creates(strict, 30, (i) => french(100 + i)))).toBe(5 + 3 * 2 - 4);
  });

  it("do not hide the rule that rejects a create", async () => {
    const one = service({ policy: { ...roomy, spam: { ...only("country"), range: shadow, crowd: shadow, newCountries: shadow } } });
    expect(pending(await creates(one, 50, (i) => french(i)))).toBe(30);
    const { authentication_uuid } = await one.create(french(77));
    const { decisions } = await one.verifier.explain({ customer_uuid: one.customer, authentication_uuid });
    expect(decisions).toEqual(expect.arrayContaining([expect.objectContaining({ rule: "country", mode: "enforce", value: 30, threshold: 30 })]));
  });

  it("apply to one customer without affecting another", async () => {
    const store = new PlainStore();
    const [watched, strict] = [randomUUID(), randomUUID()];
    const customers = [
      { customer_uuid: watched, keys: [`pp_${watched}`], policy: { spam: { range: shadow } } },
      { customer_uuid: strict, keys: [`pp_${strict}`] },
    ];
    const one = service({ store, customer: watched, customers, policy: { ...roomy, spam: only("range") } });
    const two = service({ store, customer: strict, customers, policy: { ...roomy, spam: only("range") } });
    expect([pending(await creates(one, 20, (i) => french(i))), pending(await creates(two, 20, (i) => french(i)))]).toEqual([20, 5]);
  });
});

describe("the pot of new countries (docs/contract.md#spam-new-countries)", () => {
  it("its credit never exceeds its seed: after eighty verifications in forty countries, sixty messages are sent", async () => {
    const set = fleet(4, { store: new PlainStore(), policy: { ...roomy, spam: only("newCountries") } });
    for (let i = 0; i < 80; i++) {
      await verify(at(set, i), land(i)(Math.floor(i / 40) * 10));
      at(set, 0).clock.advance(minute);
    }
    const out = await Promise.all(times(400, (i) => ending(at(set, i).create(land(i)(50_00 + Math.floor(i / 40))))));
    expect(tallied(out)).toEqual({ pending: 60, spam_detected: 340 });
  });

  it("does not grow if credit is earned, used up and earned again", async () => {
    const one = service({ store: new PlainStore(), policy: { ...roomy, spam: only("newCountries") } });
    let verified = 0;
    for (let round = 0; round < 3; round++) {
      // The first visitors of 13 other countries each round: no country gets a third.
      for (let i = 0; i < 13; i++) {
        await verify(one, land(round * 13 + i)(1));
        verified++;
      }
      await creates(one, 30, (i) => land(i)(100 + round * 10 + Math.floor(i / 40)));
    }
    const open = one.sender.messages.length - verified;
    expect(open).toBeLessThanOrEqual(30 + 2 * verified);
    expect(pending(await creates(one, 200, (i) => land(i)(500 + Math.floor(i / 40))))).toBeLessThanOrEqual(60);
  });

  it("stays limited under concurrent verifications of one number per country, in processes that do not know these countries", async () => {
    const store = new SlowStore();
    const shared = {
      store,
      clock: fixedClock(start),
      sender: sender(),
      customer: randomUUID(),
      policy: { ...roomy, spam: only("newCountries") },
      storeTimeout: 60,
    };
    await Promise.all(
      times(20, async (i) => {
        const one = service(shared);
        const made = await Promise.all([one.create(land(i)(1)), one.create(land(i)(1))]);
        for (const { authentication_uuid: id, status } of made) if (status === "pending") await service(shared).check(id, shared.sender.codeOf(id));
      }),
    );
    await settled();
    const sent = shared.sender.messages.length;
    const strangers = await Promise.all(times(300, (i) => ending(service(shared).create(land(20 + (i % 20))(100 + Math.floor(i / 20))))));
    expect(sent).toBeLessThanOrEqual(40);
    expect(pending(strangers)).toBeLessThanOrEqual(60);
  });
});

describe("a message that a carrier rejected (docs/contract.md#send-outcome)", () => {
  it.each(fates)("gives its place back exactly once, even if the commit that settles it is %s", async (fate) => {
    for (const kind of ["create", "retry"] as const) {
      const store = rigged(new PlainStore());
      const spam = only("range", "address", "country", "newCountries");
      const one = service({ store, policy: { ...roomy, lifetime: 3_600, spam } });
      const fields = { ip: "198.51.100.7" };
      const first = kind === "retry" ? (await one.create(french(0), fields)).authentication_uuid : "";
      await pass(one.clock, 31_000);
      one.sender.answer = async () => {
        store.fate = (method) => (method === "commit" ? fate : "done");
        return { outcome: "rejected" };
      };
      await drive(one.clock, ending(kind === "retry" ? one.retry(first) : one.create(french(0), fields)));
      await pass(one.clock, 5_000);
      store.fate = () => "done";
      await store.release();
      await pass(one.clock, 60_000);
      one.sender.answer = async () => ({ outcome: "accepted" });
      expect(
        pending(
          await creates(
            one,
            20,
            (i) => french(10 + i),
            () => fields,
          ),
        ),
        kind,
      ).toBe(kind === "retry" ? 4 : 5);
    }
  });

  it("is not given back again when an earlier code is verified", async () => {
    const one = service({ store: new PlainStore(), policy: { ...roomy, lifetime: 3_600, spam: only("range") } });
    const { authentication_uuid: id } = await one.create(french(1));
    await pass(one.clock, 31_000);
    one.sender.answer = async () => ({ outcome: "rejected" });
    for (let i = 0; i < 3; i++) {
      expect(await ending(one.retry(id))).toBe("denied");
      await pass(one.clock, 130_000);
    }
    one.sender.answer = async () => ({ outcome: "accepted" });
    expect(await ending(one.check(id, one.sender.codeOf(id, 1)))).toBe("valid");
    await settled();
    expect(pending(await creates(one, 30, (i) => french(10 + i)))).toBe(7);
  });

  it("stays open, as unknown, if it is rejected after sendTimeout or its sender throws", async () => {
    const one = service({ store: new PlainStore(), policy: { ...roomy, spam: only("range") } });
    one.sender.answer = async () => {
      throw new Error("what?");
    };
    expect(await ending(one.create(french(1)))).toBe("pending");
    one.sender.answer = () => new Promise((resolve) => one.clock.after(6_000, () => resolve({ outcome: "rejected" })));
    expect(await drive(one.clock, ending(one.create(french(2))))).toBe("pending");
    await pass(one.clock, 60_000);
    one.sender.answer = async () => ({ outcome: "accepted" });
    expect(pending(await creates(one, 30, (i) => french(10 + i)))).toBe(3);
  });
});

describe("unlock (docs/contract.md#unlock)", () => {
  const named = (one: Service, phone_number: string) => ({ customer_uuid: one.customer, phone_number });

  it("gives back the number's open messages in range, country, pot and crowd, and no one else's", async () => {
    const one = service({ store: new PlainStore(), policy: { ...roomy, spam: { ...only("range"), range: { mode: "enforce", seeds: [8, 8, 8] } } } });
    await creates(one, 5, () => french(1));
    await creates(one, 3, (i) => french(10 + i));
    expect(await ending(one.create(french(1)))).toBe("spam_detected");
    expect(await one.verifier.unlock(named(one, french(1)))).toMatchObject({ unlocked: true });
    await settled();
    expect(pending(await creates(one, 20, (i) => french(100 + i))), "three of eight are others'").toBe(5);
    const two = service({
      store: new PlainStore(),
      policy: { ...roomy, spam: { ...only("country", "newCountries", "crowd"), crowd: { mode: "enforce", messages: 30 } } },
    });
    await creates(two, 30, () => french(1));
    expect(await ending(two.create(french(2)))).toBe("spam_detected");
    expect(await two.verifier.unlock(named(two, french(1)))).toMatchObject({ unlocked: true });
    await settled();
    expect(pending(await creates(two, 60, (i) => french(100 + i)))).toBe(30);
  });

  it("gives back nothing twice that is verified before or after it", async () => {
    const one = service({ store: new PlainStore(), policy: { ...roomy, lifetime: 7_200, spam: only("range") } });
    const made: string[] = [];
    for (let i = 0; i < 4; i++) made.push((await one.create(french(1))).authentication_uuid);
    expect(await ending(one.check(made[0] as string, one.sender.codeOf(made[0] as string)))).toBe("valid");
    await settled();
    expect(await one.verifier.unlock(named(one, french(1)))).toMatchObject({ unlocked: true });
    await settled();
    for (const id of made.slice(1)) expect(await ending(one.check(id, one.sender.codeOf(id)))).toBe("valid");
    await settled();
    expect(pending(await creates(one, 50, (i) => french(100 + i))), "the seed, and two for one number").toBe(7);
  });

  it("gives back nothing for messages that the safe list exempted or a carrier rejected before", async () => {
    const lists = { safe: { devices: ["safe"] } };
    const one = service({ store: new PlainStore(), lists, policy: { ...roomy, lifetime: 7_200, spam: only("range") } });
    await creates(
      one,
      4,
      () => french(1),
      () => ({ device_id: "safe" }),
    );
    await creates(one, 2, () => french(1));
    one.sender.answer = async () => ({ outcome: "rejected" });
    await creates(one, 2, () => french(1));
    await settled();
    expect(await one.verifier.unlock(named(one, french(1)))).toMatchObject({ unlocked: true });
    await settled();
    one.sender.answer = async () => ({ outcome: "accepted" });
    expect(pending(await creates(one, 50, (i) => french(100 + i)))).toBe(5);
  });

  it.each(["create", "retry"])("gives back nothing twice that a carrier rejects after it, of a %s in progress", async (operation) => {
    const one = service({ store: new PlainStore(), policy: { ...roomy, lifetime: 7_200, spam: only("range") } });
    const { authentication_uuid: id } = await one.create(french(1));
    await pass(one.clock, 31_000);
    let answer: (outcome: { outcome: "rejected" }) => void = () => {};
    one.sender.answer = () => new Promise((resolve) => (answer = resolve));
    const underWay = operation === "retry" ? one.retry(id) : one.create(french(1));
    await settled();
    expect(await one.verifier.unlock(named(one, french(1)))).toMatchObject({ unlocked: true });
    await settled();
    answer({ outcome: "rejected" });
    await underWay;
    await settled();
    one.sender.answer = async () => ({ outcome: "accepted" });
    expect(pending(await creates(one, 50, (i) => french(100 + i)))).toBe(5);
  });

  it("happens once in 24 hours for fifty concurrent calls in four processes, and concurrent checks earn as they do alone", async () => {
    for (let round = 0; round < 10; round++) {
      const set = fleet(4, { store: new SlowStore(), policy: { ...roomy, spam: only("range") }, storeTimeout: 60 });
      const one = at(set, 0);
      const made = await Promise.all(times(5, (i) => at(set, i).create(french(1))));
      const codes = made.map(({ authentication_uuid: id }) => [id, one.sender.codeOf(id)] as const);
      const unlocks = times(50, (i) => at(set, i).verifier.unlock(named(one, french(1))));
      const checks = codes.slice(0, 2).map(([id, code], i) => ending(at(set, i).check(id, code)));
      const answers = await Promise.all(unlocks);
      expect(answers.filter(({ unlocked }) => unlocked)).toHaveLength(1);
      expect(await Promise.all(checks)).toEqual(["valid", "valid"]);
      await settled();
      expect(pending(await creates(one, 50, (i) => french(100 + i))), `round ${round}`).toBe(7);
      one.clock.advance(23 * hour);
      expect(await one.verifier.unlock(named(one, french(1)))).toMatchObject({ unlocked: false });
      one.clock.advance(2 * hour);
      expect(await one.verifier.unlock(named(one, french(1)))).toMatchObject({ unlocked: true });
    }
  });

  it("gives the number its guesses again once: at most twice sends per day × checks are evaluated in a day", async () => {
    const one = service({ store: new PlainStore(), policy: { lifetime: 86_400, limits: wide, spam: noSpamRules } });
    let judged = 0;
    const exhaust = async () => {
      const ids: string[] = [];
      for (let i = 0; i < 12; i++) {
        const { authentication_uuid: id, status } = await one.create(french(1));
        if (status === "pending") ids.push(id);
        else one.clock.advance(601_000);
      }
      for (const id of ids) for (let i = 0; i < 6; i++) if ((await ending(one.check(id, one.wrong(id)))) === "invalid") judged++;
    };
    for (let i = 0; i < 6; i++) {
      await exhaust();
      await one.verifier.unlock(named(one, french(1)));
      await settled();
    }
    expect(judged).toBe(100);
  });

  it("gives no credit for a number without messages or a test number", async () => {
    const test = french(500);
    const one = service({ store: new PlainStore(), testNumbers: [{ number: test, code: "424242" }], policy: { ...roomy, spam: only("range", "country") } });
    for (let i = 0; i < 5; i++) await one.create(test);
    for (const number of [test, french(501), french(502)]) await one.verifier.unlock(named(one, number)).catch(() => undefined);
    await settled();
    expect(pending(await creates(one, 50, (i) => french(i)))).toBe(5);
  });

  it("takes nothing from the current parts once the parts of its messages are over", async () => {
    const one = service({ store: new PlainStore(), policy: { ...roomy, lifetime: 86_400, spam: only("range") } });
    await creates(one, 5, () => french(1));
    one.clock.advance(40 * hour);
    expect(await one.verifier.unlock(named(one, french(1)))).toMatchObject({ unlocked: true });
    await settled();
    expect(pending(await creates(one, 50, (i) => french(100 + i)))).toBe(5);
  });
});

describe("what counts for a day ends after it, and not before (docs/contract.md#open)", () => {
  const named = (one: Service, phone_number: string) => ({ customer_uuid: one.customer, phone_number });

  it("messages that unlock no longer finds, as their records have ended, stop counting 36 hours after they were sent (docs/contract.md#unlock)", async () => {
    const clock = fixedClock(start);
    const one = service({ clock, store: new ForgetfulStore(() => clock.now()), policy: { ...roomy, spam: only("range") } });
    await creates(one, 5, () => french(1));
    clock.advance(25 * hour);
    await one.verifier.unlock(named(one, french(1)));
    clock.advance(11 * hour + minute);
    expect(await ending(one.create(french(1)))).toBe("pending");
  });

  // Messages that are given back so many hours later; then, at many hours, how much room the range has.
  const later = async (how: "verified" | "unlocked", hours: number) => {
    for (let begin = 0; begin < 12; begin += 2) {
      for (let look = 2; look < 48; look += 3) {
        const one = service({ store: new PlainStore(), clock: fixedClock(start + begin * hour), policy: { ...roomy, lifetime: 86_400, spam: only("range") } });
        const made: string[] = [];
        for (let i = 0; i < 5; i++) made.push((await one.create(french(how === "unlocked" ? 1 : i))).authentication_uuid);
        one.clock.advance(hours * hour);
        if (how === "verified") for (const id of made) expect(await ending(one.check(id, one.sender.codeOf(id)))).toBe("valid");
        else expect(await one.verifier.unlock(named(one, french(1)))).toMatchObject({ unlocked: true });
        await settled(4);
        one.clock.advance(look * hour);
        const room = pending(await creates(one, 20, (i) => french(100 + i)));
        expect(room, `begun at ${begin} h, ${look} h after`).toBeLessThanOrEqual(how === "verified" ? 15 : 5);
      }
    }
  };
  it.each([
    ["verified", 1],
    ["verified", 13],
    ["verified", 20],
    ["unlocked", 20],
    ["unlocked", 13],
    ["unlocked", 1],
  ] as const)("%s %i hours later: at no hour of the next days is more open than the seed and two for each verified", later);
});

describe("a message just before the boundary of a part, verified just after (docs/contract.md#open)", () => {
  it("earns no more than two for each verified, at every hour of the next days", async () => {
    const policy = { ...roomy, spam: only("range") };
    const edge = await boundary(policy);
    const rooms: Record<string, number> = {};
    for (let look = 1; look < 48; look += 2) {
      const one = service({ store: new PlainStore(), clock: fixedClock(edge - 5 * minute), clockSkew: 5, policy });
      const made: string[] = [];
      for (let i = 0; i < 5; i++) made.push((await one.create(french(i))).authentication_uuid);
      one.clock.advance(8 * minute);
      for (const id of made) expect(await ending(one.check(id, one.sender.codeOf(id)))).toBe("valid");
      await settled(4);
      one.clock.advance(look * hour);
      const room = pending(await creates(one, 20, (i) => french(100 + i)));
      if (room > 15) rooms[`${look} h later`] = room;
    }
    expect(rooms, "where more than 5 + 5 × 2 are let out").toEqual({});
  });
});

describe("guesses of a number (docs/contract.md#guesses-claimed)", () => {
  it("are counted across authentications, retries, keys, erasures, processes and secrets in different order", async () => {
    const other = "b7Wq3ZrX9cTn5LvK2hJd8MfS4gYp6AeU";
    const shared = { store: new PlainStore(), clock: fixedClock(start), sender: sender(), customer: randomUUID() };
    const policy = { lifetime: 86_400, limits: wide, spam: noSpamRules };
    const set = [service({ ...shared, policy, secret: [secret, other] }), service({ ...shared, policy, secret: [other, secret] })];
    const named = { customer_uuid: shared.customer, phone_number: french(1) };
    let judged = 0;
    const ids: string[] = [];
    for (let step = 0; step < 80; step++) {
      const one = at(set, step);
      shared.clock.advance(10 * minute);
      const { authentication_uuid: id, status } = await one.create(french(1), {}, step % 3 ? {} : { idempotencyKey: `k${step}` });
      if (status === "pending") ids.push(id);
      const newest = ids.at(-1) as string;
      if (step % 4 === 1) await ending(one.retry(newest));
      for (let i = 0; i < 3; i++)
        if ((await ending(at(set, step + i).check(newest, one.wrong(newest), i === 2 ? { idempotencyKey: `c${step}` } : {}))) === "invalid") judged++;
      if (step % 10 === 9) {
        await one.verifier.erase(named);
        ids.splice(0);
        ids.push(randomUUID());
      }
    }
    // 80 steps of ten minutes are 13 hours.
    expect(judged).toBeLessThanOrEqual(50);
  });

  it("are counted at most once for a check whose response is lost, and never given back once evaluated", async () => {
    for (const fate of fates) {
      const store = rigged(new PlainStore());
      const one = service({
        store,
        policy: { checks: 5, lifetime: 86_400, limits: { ...wide, perNumber: [{ limit: 2, window: 86_400 }] }, spam: noSpamRules },
      });
      const ids = [(await one.create(french(1))).authentication_uuid, (await one.create(french(1))).authentication_uuid] as const;
      let answered = 0;
      for (let i = 0; i < 3; i++) {
        store.fate = (method) => (method === "commit" ? fate : "done");
        expect(await drive(one.clock, ending(one.check(ids[0], one.wrong(ids[0]))))).toBe("unavailable");
        store.fate = () => "done";
        await store.release();
        await pass(one.clock, 60_000);
      }
      for (const id of ids) for (let i = 0; i < 6; i++) if ((await ending(one.check(id, one.wrong(id)))) === "invalid") answered++;
      expect(answered, fate).toBeLessThanOrEqual(10);
      expect(answered, `${fate}: at most those that were lost are gone`).toBeGreaterThanOrEqual(7);
    }
  });

  it("do not count for another number or customer", async () => {
    const store = new PlainStore();
    const policy = { lifetime: 86_400, limits: { ...wide, perNumber: [{ limit: 1, window: 86_400 }] }, spam: noSpamRules };
    const [one, two] = [service({ store, policy }), service({ store, policy })];
    for (const [which, number] of [
      [one, 1],
      [one, 2],
      [two, 1],
    ] as const) {
      const { authentication_uuid: id } = await which.create(french(number));
      for (let i = 0; i < 5; i++) expect(await ending(which.check(id, which.wrong(id)))).toBe("invalid");
    }
  });
});

describe("two processes whose clocks are 5 s apart, at the boundary of a part (docs/contract.md#every-window)", () => {
  it.each([
    ["range", only("range"), 5, (i: number) => french(i)],
    ["country", only("country"), 30, (i: number) => french(i, i % 100)],
    ["crowd", only("crowd"), 25, (i: number) => french(i)],
    ["pot", only("newCountries"), 30, (i: number) => land(i)(i)],
  ] as const)("%s: the seed holds across both, in any order, and for the whole next day", async (_, spam, seed, number) => {
    const policy = { ...roomy, spam };
    const edge = await boundary(policy);
    for (const offset of [-9_999, -5_001, -5_000, -4_999, -2_500, -1, 0, 1, 2_500, 4_999, 5_000, 5_001]) {
      for (const order of ["ahead first", "behind first", "in turn"]) {
        const shared = { store: new PlainStore(), sender: sender(), customer: randomUUID(), policy, clockSkew: 5 };
        const behind = service({ ...shared, clock: fixedClock(edge + offset) });
        const ahead = service({ ...shared, clock: fixedClock(edge + offset + 5_000) });
        const first = order === "behind first" ? behind : ahead;
        const second = first === ahead ? behind : ahead;
        for (let i = 0; i < seed; i++) await (order === "in turn" && i % 2 ? second : first).create(number(i));
        for (const one of [second, first]) {
          await creates(one, 3, (i) => number(100 + i));
          expect(shared.sender.messages.length, `${order}, ${offset} ms from the boundary`).toBe(seed);
        }
        // A day later, minus the difference: the messages are within 24 hours for one process or the other.
        for (const one of [behind, ahead]) one.clock.advance(day - 5_001);
        await creates(behind, 3, (i) => number(200 + i));
        await creates(ahead, 3, (i) => number(300 + i));
        expect(shared.sender.messages.length, "within 24 hours").toBe(seed);
      }
    }
  });

  it("a verification by either process gives back to the other", async () => {
    const policy = { ...roomy, spam: only("range") };
    const edge = await boundary(policy);
    for (const offset of [-5_000, -2_500, -1, 0, 2_500]) {
      const shared = { store: new PlainStore(), sender: sender(), customer: randomUUID(), policy, clockSkew: 5 };
      const behind = service({ ...shared, clock: fixedClock(edge + offset) });
      const ahead = service({ ...shared, clock: fixedClock(edge + offset + 5_000) });
      const made = [await behind.create(french(1)), await ahead.create(french(2))];
      expect(await ending(ahead.check(made[0]?.authentication_uuid as string, behind.sender.codeOf(made[0]?.authentication_uuid as string)))).toBe("valid");
      expect(await ending(behind.check(made[1]?.authentication_uuid as string, behind.sender.codeOf(made[1]?.authentication_uuid as string)))).toBe("valid");
      await settled();
      const half = pending(await creates(behind, 4, (i) => french(100 + i))) + pending(await creates(ahead, 30, (i) => french(200 + i)));
      expect(half, `${offset} ms from the boundary`).toBe(9);
    }
  });

  it("the limit of guesses holds across both, for 24 hours", async () => {
    const policy = { checks: 5, lifetime: 86_400, limits: { ...wide, perNumber: [{ limit: 2, window: 86_400 }] }, spam: noSpamRules };
    for (const offset of [0, 2 * hour, 2 * hour + 1_000, 5 * hour - 2_000]) {
      const shared = { store: new PlainStore(), sender: sender(), customer: randomUUID(), policy, clockSkew: 5 };
      const behind = service({ ...shared, clock: fixedClock(start + offset) });
      const ahead = service({ ...shared, clock: fixedClock(start + offset + 5_000) });
      let judged = 0;
      const guess = async (one: Service, id: string) => {
        for (let i = 0; i < 5; i++) if ((await ending(one.check(id, one.wrong(id)))) === "invalid") judged++;
      };
      const first = [(await behind.create(french(1))).authentication_uuid, (await ahead.create(french(1))).authentication_uuid];
      for (const one of [behind, ahead]) one.clock.advance(day - 20_000);
      await guess(ahead, first[0] as string);
      await guess(behind, first[1] as string);
      for (const one of [behind, ahead]) one.clock.advance(60_000);
      const second = [(await behind.create(french(1))).authentication_uuid, (await ahead.create(french(1))).authentication_uuid];
      await guess(ahead, second[0] as string);
      await guess(behind, second[1] as string);
      expect(judged, `${offset}`).toBe(10);
    }
  });
});

describe("a store whose responses are late or lost (docs/contract.md#lost-write)", () => {
  const spam = { ...only("range", "crowd", "country", "newCountries", "address", "strangeNetwork"), trust: { open: 3 } };
  const limits = {
    ...wide,
    perDevice: [{ limit: 50, window: 3_600 }],
    numbersPerDevice: [{ limit: 50, window: 86_400 }],
    perCustomer: [{ limit: 500, window: 86_400, perVerified: 3 }],
    spend: [{ amount: 500, per: "day" as const }],
  };
  const fields = { device_id: "device", ip: "198.51.100.7" };

  it.each(fates.flatMap((fate) => (["create", "keyed create", "retry", "refused create"] as const).map((operation) => [operation, fate] as const)))(
    "each commit of a %s, %s: nothing is sent on a 503, and every count returns to what it was",
    async (operation, fate) => {
      for (let nth = 1; nth <= 3; nth++) {
        const plain = new PlainStore();
        const store = rigged(plain);
        const one = service({ store, price: 1, policy: { ...roomy, lifetime: 3_600, limits, spam } });
        await verify(one, french(1, 50), fields);
        const { authentication_uuid: id } = await one.create(french(2, 40), fields);
        if (operation === "refused create")
          await creates(
            one,
            5,
            (i) => french(i),
            () => ({ device_id: "d" }),
          );
        await pass(one.clock, 31_000);
        const before = counted(plain);
        const sent = one.sender.messages.length;
        let commits = 0;
        store.fate = (method) => (method === "commit" && ++commits === nth ? fate : "done");
        const call = () => {
          if (operation === "retry") return one.retry(id);
          const number = operation === "refused create" ? french(77) : french(3, 30);
          return one.create(number, fields, operation === "keyed create" ? { idempotencyKey: "k" } : {});
        };
        const how = await drive(one.clock, ending(call()));
        const reached = commits >= nth;
        await pass(one.clock, 3_000);
        store.fate = () => "done";
        await store.release();
        await pass(one.clock, 60_000);
        if (how !== "unavailable") continue;
        expect(reached).toBe(true);
        expect(one.sender.messages.length, `commit ${nth}: nothing is sent on a 503`).toBe(sent);
        const now = counted(plain);
        const differing = Object.fromEntries(
          Object.keys({ ...now, ...before })
            // A create that was undone is listed, so that an erasure finds it.
            .filter((name) => !name.includes(":h:") && (now[name] ?? 0) !== (before[name] ?? 0))
            .map((name) => [name.slice(37), [before[name], now[name]]]),
        );
        if (operation !== "refused create") expect(differing, `commit ${nth}`).toEqual({});
      }
    },
  );

  it.each(fates)("each commit of a right check, %s: credit is given once, and the repeat returns `valid`", async (fate) => {
    for (let nth = 1; nth <= 2; nth++) {
      const plain = new PlainStore();
      const store = rigged(plain);
      const one = service({ store, policy: { ...roomy, lifetime: 3_600, spam: only("range") } });
      const { authentication_uuid: id } = await one.create(french(1));
      let commits = 0;
      store.fate = (method) => (method === "commit" && ++commits === nth ? fate : "done");
      const keyed = () => one.check(id, one.sender.codeOf(id), { idempotencyKey: "c" });
      const first = await drive(one.clock, ending(keyed()));
      store.fate = () => "done";
      await store.release();
      await pass(one.clock, 60_000);
      expect(["valid", "unavailable"]).toContain(first);
      expect(await ending(keyed())).toBe("valid");
      expect(await ending(one.check(id, one.sender.codeOf(id)))).toBe("already_validated");
      await settled();
      expect(pending(await creates(one, 30, (i) => french(10 + i))), `commit ${nth}`).toBe(7);
    }
  });

  it("many late or held commits of 200 concurrent creates: what returns 503 sends nothing and is not counted", async () => {
    const plain = new PlainStore();
    const store = rigged(plain);
    const one = service({ store, policy: { ...roomy, spam: only("range") } });
    let calls = 0;
    store.fate = (method) => (method === "commit" && ++calls % 3 === 0 ? "late" : method === "commit" && calls % 7 === 0 ? "held" : "done");
    const answers = await drive(one.clock, Promise.all(times(200, (i) => ending(one.create(french(i % 20, Math.floor(i / 20)))))));
    store.fate = () => "done";
    for (let i = 0; i < 5; i++) {
      await store.release();
      await pass(one.clock, 30_000);
    }
    expect(one.sender.messages.length).toBe(pending(answers));
    const open = one.sender.messages.length;
    const rest = await creates(one, 200, (i) => french(1_000 + (i % 20), Math.floor(i / 20)));
    // Ten ranges of 10,000 within one of 100,000, whose seed is twelve.
    expect(pending(rest) + open).toBe(12);
  });
});

describe("messages exempt from the rules, and what they earn (docs/contract.md#credits)", () => {
  it("a trusted number passes when the cells of every rule but the crowd's are full, in a bounded number of round trips (docs/contract.md#trust)", async () => {
    const store = rigged(new PlainStore());
    const all = only("range", "country", "newCountries", "address", "strangeNetwork", "crowd");
    const one = service({ store, policy: { ...roomy, spam: { ...all, trust: { open: 3 } } } });
    const fields = { ip: "198.51.100.7", device_id: "d" };
    await verify(one, french(1), fields);
    await pass(one.clock, 8 * day, 6 * hour);
    await creates(
      one,
      200,
      (i) => french(i % 10, i % 100, 12 + Math.floor(i / 100)),
      () => fields,
    );
    await creates(one, 200, (i) => french(100 + i, i % 100));
    store.calls.splice(0);
    expect(await ending(one.create(french(1), fields))).toBe("pending");
    expect(store.calls.filter(({ method }) => method !== "tally").length).toBeLessThanOrEqual(5);
  });

  it("a create exempted by a safe device, and a retry that is not: no more is given back than was counted", async () => {
    const one = service({ store: new PlainStore(), lists: { safe: { devices: ["safe"] } }, policy: { ...roomy, lifetime: 3_600, spam: only("range") } });
    for (let i = 0; i < 3; i++) {
      const { authentication_uuid: id } = await one.create(french(i), { device_id: "safe" });
      await pass(one.clock, 31_000);
      expect(await ending(one.retry(id))).toBe("approved");
      expect(await ending(one.check(id, one.sender.codeOf(id)))).toBe("valid");
      await settled();
    }
    expect(pending(await creates(one, 50, (i) => french(100 + i)))).toBeLessThanOrEqual(5 + 3 * 2);
  });

  it("an address earns with each verification, even of one number (docs/contract.md#balance)", async () => {
    const one = service({ store: new PlainStore(), policy: { ...roomy, spam: only("address") } });
    const fields = { ip: "198.51.100.7" };
    for (let i = 0; i < 4; i++) await verify(one, french(1), fields);
    expect(
      pending(
        await creates(
          one,
          50,
          (i) => french(100 + i),
          () => fields,
        ),
      ),
    ).toBe(8 + 4 * 2);
  });

  it("a solved challenge passes every rule but the crowd's (docs/contract.md#challenge)", async () => {
    const challenge = { verify: async (proof: string) => proof === "solved" };
    const one = service({ store: new PlainStore(), challenge, policy: { ...roomy, spam: only("range", "crowd", "country") } });
    await creates(one, 5, (i) => french(i));
    expect(await ending(one.create(french(10), { proof: "wrong" }))).toBe("spam_detected");
    expect(
      pending(
        await creates(
          one,
          40,
          (i) => french(100 + i),
          () => ({ proof: "solved" }),
        ),
      ),
    ).toBe(20);
    expect(await ending(one.create(french(11)))).toBe("spam_detected");
  });

  it("a cell of the caller's own rule is exact under 1,000 concurrent creates, and earns its own `perVerified` (docs/contract.md#own-rules)", async () => {
    const spamRules = [{ name: "model", cell: ({ device_model }: { device_model?: string | undefined }) => device_model, seed: 7, perVerified: 1 }];
    const set = fleet(4, { store: new SlowStore(), spamRules: spamRules as never, policy: { ...roomy, spam: only() }, storeTimeout: 60 });
    const fields = { device_model: "emulator" };
    const answers = await Promise.all(times(1_000, (i) => at(set, i).create(french(i % 10_000, i % 100), fields)));
    expect(tallied(answers.map(({ status }) => status))).toEqual({ pending: 7, spam_detected: 993 });
    const ids = answers.filter(({ status }) => status === "pending").map(({ authentication_uuid: id }) => id);
    for (const id of ids.slice(0, 3)) expect(await ending(at(set, 0).check(id, at(set, 0).sender.codeOf(id)))).toBe("valid");
    await settled();
    const more = await Promise.all(times(200, (i) => ending(at(set, i).create(french(2_000 + i), fields))));
    expect(pending(more)).toBe(3 + 3);
  });
});

describe("trust, credit and numbers (docs/contract.md#balance)", () => {
  it("each verification gives back its own messages, retries included, and two more once in 24 hours", async () => {
    const one = service({ store: new PlainStore(), policy: { ...roomy, lifetime: 7_200, spam: only("range") } });
    for (let round = 0; round < 4; round++) {
      const { authentication_uuid: id } = await one.create(french(1));
      for (let retry = 0; retry < 2; retry++) {
        await pass(one.clock, 61_000);
        expect(await ending(one.retry(id))).toBe("approved");
      }
      expect(await ending(one.check(id, one.sender.codeOf(id)))).toBe("valid");
      await settled();
    }
    expect(pending(await creates(one, 30, (i) => french(10 + i)))).toBe(7);
  });

  it("a check of yesterday's code earns credit, and takes nothing out of parts that no longer count", async () => {
    const one = service({ store: new PlainStore(), policy: { ...roomy, lifetime: 200_000, longLifetime: true, spam: only("range") } });
    const made: string[] = [];
    for (let i = 0; i < 5; i++) made.push((await one.create(french(i))).authentication_uuid);
    one.clock.advance(40 * hour);
    expect(pending(await creates(one, 20, (i) => french(100 + i))), "yesterday's messages are over").toBe(5);
    for (const id of made) expect(await ending(one.check(id, one.sender.codeOf(id)))).toBe("valid");
    await settled();
    const more = pending(await creates(one, 50, (i) => french(200 + i)));
    expect(more, "five earned two each; their own messages had gone by themselves").toBeLessThanOrEqual(10 + 5);
    expect(more).toBeGreaterThanOrEqual(10);
  });

  it("explain shows what is open, and the seed with two for each verified (docs/contract.md#explain)", async () => {
    const one = service({ store: new PlainStore(), policy: { ...roomy, spam: only("range", "address") } });
    for (let i = 0; i < 3; i++) await verify(one, french(9_000 + i));
    await creates(one, 11, (i) => french(i));
    const { authentication_uuid, status } = await one.create(french(77));
    expect(status).toBe("spam_detected");
    await settled();
    const { decisions } = await one.verifier.explain({ customer_uuid: one.customer, authentication_uuid });
    expect(decisions).toMatchObject([{ rule: "range 4", mode: "enforce", value: 11, threshold: 11 }]);
  });

  it("after the `retry_after` of a cap there is room, and not a second earlier (docs/contract.md#facts)", async () => {
    const one = service({
      store: new PlainStore(),
      policy: { ...roomy, limits: { ...roomy.limits, perCustomer: [{ limit: 200, window: 3_600 }] }, spam: noSpamRules },
    });
    for (let i = 0; i < 200; i++) {
      await one.create(i);
      one.clock.advance(1_000);
    }
    const refused = (await one.create(900)) as { status: string; retry_after?: number };
    expect(refused.status).toBe("rate_limited");
    expect(refused.retry_after).toBeGreaterThan(0);
    one.clock.advance((refused.retry_after as number) * 1_000 - 1_000);
    expect(await ending(one.create(901))).toBe("rate_limited");
    one.clock.advance(1_000);
    expect(await ending(one.create(902))).toBe("pending");
  });
});

describe("an erasure, and a create that is undone (docs/contract.md#erase)", () => {
  const number = french(1_234);
  /** The records that still contain the number or the address of its callbacks. */
  const traces = (store: PlainStore) =>
    [...store.records.values()].filter(({ data }) => data.includes("+33612") || data.includes("receiver.example")).map(({ data }) => data);

  const erased = async (when: "before" | "after", fate: (typeof fates)[number]) => {
    const plain = new PlainStore();
    const store = rigged(plain);
    const one = service({ store, policy: { ...roomy, spam: only("range", "country") } });
    store.fate = (method) => (method === "commit" ? fate : "done");
    expect(await drive(one.clock, ending(one.create(number, { callback_url: "https://receiver.example/hook" })))).toBe("unavailable");
    store.fate = () => "done";
    const named = { customer_uuid: one.customer, phone_number: number };
    if (when === "before") {
      await one.verifier.erase(named);
      expect(traces(plain)).toEqual([]);
    }
    for (let i = 0; i < 2; i++) {
      await store.release();
      await pass(one.clock, 60_000);
    }
    await one.verifier.erase(named);
    expect(traces(plain)).toEqual([]);
    expect(await one.verifier.history(named)).toEqual([]);
    expect(one.sender.messages).toEqual([]);
    // A message whose record was erased before it could be undone counts for as long as a sent one.
    expect([when === "before" ? 4 : 5, 5]).toContain(pending(await creates(one, 20, (i) => french(i))));
  };
  it.each(fates.map((fate) => ["after", fate] as const))(
    "%s the undoing of a create whose commit was %s, it leaves nothing of the number, whatever lands later",
    erased,
  );
  it.each(fates.map((fate) => ["before", fate] as const))(
    "%s the undoing of a create whose commit was %s, it leaves what was in progress to the next erasure (docs/contract.md#erase)",
    erased,
  );

  it("undoing a commit that never landed, after its repeat was sent and erased, leaves nothing, and the id stays unknown (docs/contract.md#take-back)", async () => {
    const plain = new PlainStore();
    const store = rigged(plain);
    const one = service({ store, policy: roomy });
    const keyed = () => one.create(number, {}, { idempotencyKey: "k" });
    let commits = 0;
    store.fate = (method) => (method === "commit" && ++commits <= 2 ? "refused" : "done");
    expect(await ending(keyed())).toBe("unavailable");
    await settled();
    expect(commits, "the first try to take it back was refused too").toBe(2);
    const { authentication_uuid: id } = await keyed();
    expect(one.sender.messages).toHaveLength(1);
    const named = { customer_uuid: one.customer, phone_number: number };
    await one.verifier.erase(named);
    await pass(one.clock, 60_000);
    expect(traces(plain)).toEqual([]);
    expect(await one.verifier.history(named)).toEqual([]);
    expect([await ending(one.check(id, one.sender.codeOf(id))), await ending(one.retry(id))]).toEqual(["invalid_auth_uuid", "invalid_auth_uuid"]);
  });
});

describe("a process that is suspended again and again (docs/contract.md#late-hand-over)", () => {
  it.each(["create", "keyed", "retry"])("responds to a %s in the end, sends at most one message, and counts what was sent", async (operation) => {
    for (const times of [1, 2, 3, 100]) {
      const plain = new PlainStore();
      const steady = fixedClock(start);
      let ahead = 0;
      let left = 0;
      const clock = { now: () => steady.now() + ahead, elapsed: () => steady.now() + ahead, after: steady.after };
      const store = tapped(plain, ({ record }) => {
        if (record !== undefined && left-- > 0) ahead += 2_300;
      });
      const one = service({
        store,
        clock: clock as never,
        policy: { ...roomy, lifetime: 3_600, spam: only("range"), limits: { ...roomy.limits, perCustomer: [{ limit: 3, window: 86_400 }] } },
      });
      const first = operation === "retry" ? (await one.create(french(1))).authentication_uuid : "";
      await pass(steady, 31_000);
      const sent = one.sender.messages.length;
      left = times;
      const how = await drive(
        steady,
        ending(operation === "retry" ? one.retry(first) : one.create(french(2), {}, operation === "keyed" ? { idempotencyKey: "k" } : {})),
      );
      left = 0;
      await pass(steady, 60_000);
      const more = one.sender.messages.length - sent;
      expect([how, more], `${times} times`).toEqual(["pending", "approved"].includes(how) ? [how, 1] : ["unavailable", 0]);
      const open = one.sender.messages.length;
      expect(pending(await creates(one, 10, (i) => french(100 + i)))).toBe(3 - open);
    }
  });
});

describe("what happens before a lost commit is undone (docs/contract.md#take-back)", () => {
  /** A service with one message sent, whose retry returned 503; undoing it fails until `back` is called. */
  const lostRetry = async (fate: (typeof fates)[number], seed = 5) => {
    const store = rigged(new PlainStore());
    const spam = { ...only("range"), range: { mode: "enforce" as const, seeds: [seed, 1_000, 1_000] as const } };
    const one = service({ store, policy: { ...roomy, retryCooldowns: [30, 10, 10, 10], lifetime: 3_600, spam } });
    const { authentication_uuid: id } = await one.create(french(1));
    await pass(one.clock, 31_000);
    let commits = 0;
    let users = false;
    store.fate = (method) => (method !== "commit" || users ? "done" : ++commits === 1 ? fate : "refused");
    expect(await drive(one.clock, ending(one.retry(id)))).toBe("unavailable");
    // The held commit is released: it has landed.
    if (fate === "held") await store.release();
    const asUser = async <T>(call: () => Promise<T>): Promise<T> => {
      users = true;
      const answer = await call();
      await settled();
      users = false;
      return answer;
    };
    const back = async () => {
      store.fate = () => "done";
      await store.release();
      await pass(one.clock, 90_000);
    };
    return { one, id, asUser, back };
  };
  const landed = ["lost", "deaf", "late", "held"] as const;

  it.each(landed)("the user enters the first code: its range gets back what was counted, and no more (%s)", async (fate) => {
    const { one, id, asUser, back } = await lostRetry(fate);
    expect(await asUser(() => ending(one.check(id, one.sender.codeOf(id, 1))))).toBe("valid");
    await back();
    expect(one.sender.messages).toHaveLength(1);
    expect(pending(await creates(one, 50, (i) => french(100 + i)))).toBe(7);
  });

  it.each(landed)("an operator unlocks the number: its range is empty again, without credit (%s)", async (fate) => {
    const { one, asUser, back } = await lostRetry(fate);
    expect(await asUser(() => one.verifier.unlock({ customer_uuid: one.customer, phone_number: french(1) }))).toMatchObject({ unlocked: true });
    await back();
    expect(pending(await creates(one, 50, (i) => french(100 + i)))).toBe(5);
  });

  it.each(landed)("an operator erases the number: its message stays counted, and the lost retry may (%s)", async (fate) => {
    const { one, asUser, back } = await lostRetry(fate);
    expect(await asUser(() => one.verifier.erase({ customer_uuid: one.customer, phone_number: french(1) }))).toMatchObject({ erased: 1 });
    await back();
    const room = pending(await creates(one, 50, (i) => french(100 + i)));
    // Nothing ties the open messages to the number any longer: the retry may stay counted, the message is not given back.
    expect(room).toBeLessThanOrEqual(4);
    expect(room).toBeGreaterThanOrEqual(3);
  });

  it.each(landed)("the user enters wrong codes: each is counted, none is given back (%s)", async (fate) => {
    const { one, id, asUser, back } = await lostRetry(fate);
    for (let i = 0; i < 3; i++) expect(await asUser(() => ending(one.check(id, one.wrong(id))))).toBe("invalid");
    await back();
    const rest: string[] = [];
    for (let i = 0; i < 3; i++) rest.push(await ending(one.check(id, one.wrong(id))));
    expect(rest).toEqual(["invalid", "invalid", "rate_limited"]);
  });

  it.each(landed)("the user retries after the cool-down: that message's code is live, and its place is taken (%s)", async (fate) => {
    const { one, id, asUser, back } = await lostRetry(fate);
    let how = "";
    for (let i = 0; i < 6 && how !== "approved"; i++) {
      await pass(one.clock, 3_000);
      how = await asUser(() => ending(one.retry(id)));
    }
    await back();
    if (how !== "approved") expect(await ending(one.retry(id))).toBe("approved");
    expect(one.sender.messages).toHaveLength(2);
    expect(pending(await creates(one, 50, (i) => french(100 + i)))).toBe(3);
    expect(await ending(one.check(id, one.sender.codeOf(id)))).toBe("valid");
  });

  it.each(landed)("a keyed create is repeated and retried before it is undone: one message is sent, whose code is live (%s)", async (fate) => {
    const store = rigged(new PlainStore());
    const one = service({ store, policy: { ...roomy, lifetime: 3_600, spam: only("range") } });
    const keyed = () => one.create(french(1), {}, { idempotencyKey: "k" });
    let commits = 0;
    let users = false;
    store.fate = (method) => (method !== "commit" || users ? "done" : ++commits === 1 ? fate : "refused");
    expect(await drive(one.clock, ending(keyed()))).toBe("unavailable");
    if (fate === "held") await store.release();
    users = true;
    const { authentication_uuid: id, status } = await drive(one.clock, keyed());
    users = false;
    expect(status).toBe("pending");
    for (let i = 0; i < 11 && one.sender.messages.length === 0; i++) {
      await pass(one.clock, 3_000);
      users = true;
      await ending(one.retry(id));
      await settled();
      users = false;
    }
    store.fate = () => "done";
    await store.release();
    await pass(one.clock, 90_000);
    if (one.sender.messages.length === 0) expect(await ending(one.retry(id))).toBe("approved");
    expect(one.sender.messages).toHaveLength(1);
    expect(await ending(one.check(id, one.sender.messages[0]?.code as string))).toBe("valid");
    await settled();
    expect(pending(await creates(one, 50, (i) => french(100 + i)))).toBe(7);
  });
});

describe("different clocks at the end of an authentication (docs/contract.md#check-order)", () => {
  it("once one process has found an authentication expired, another does too, and its check uses up no guess", async () => {
    const shared = { store: new PlainStore(), sender: sender(), customer: randomUUID(), policy: { limits: wide, spam: noSpamRules } };
    const [late, early] = [fixedClock(start), fixedClock(start + 5_000)];
    const [behind, ahead] = [service({ ...shared, clock: late }), service({ ...shared, clock: early })];
    const { authentication_uuid: id } = await behind.create(french(1));
    for (const clock of [late, early]) clock.advance(10 * minute - 2_000);
    const right = shared.sender.codeOf(id);
    expect(await ending(ahead.check(id, right))).toBe("expired_auth");
    expect(await ending(behind.check(id, right))).toBe("expired_auth");
    expect((await behind.verifier.explain({ customer_uuid: shared.customer, authentication_uuid: id })).wrong_codes).toBe(0);
  });
});
