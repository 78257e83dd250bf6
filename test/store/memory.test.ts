import { randomUUID } from "node:crypto";
import { afterEach, describe, expect, test, vi } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import type { Claim, RecordWrite, Store, StoredRecord, SumClaim } from "../../src/ports/store.js";

const start = Date.parse("2020-05-05T05:05:05.000Z");
const minute = 60_000;

/** How long after its end an entry may still be there. */
const lag = 1_000;

afterEach(() => {
  vi.useRealTimers();
});

/** A new store whose clock stands still until it is moved. */
function own(maxRecords = 1_000) {
  const clock = { now: start };
  return { store: memoryStore({ name: randomUUID(), maxRecords, now: () => clock.now }), clock };
}

const record = (fields: Partial<RecordWrite> = {}): RecordWrite => ({
  customer: randomUUID(),
  id: randomUUID(),
  tokens: [randomUUID()],
  data: "data",
  now: start,
  keepUntil: start + minute,
  ...fields,
});

/** The record as `find` returns it. */
const stored = ({ customer, id, tokens, data, keepUntil }: RecordWrite): StoredRecord => ({ customer, id, tokens, data, keepUntil });

const find = (store: Store, { customer, id }: StoredRecord) => store.find(customer, id);

const member = (window: string, name: string, now = start, fields: Partial<Claim> = {}): Claim =>
  ({ window, member: name, now, since: now - minute, keepUntil: now + minute, ...fields }) as Claim;

const parts = { part: 7, parts: 3 };

const sum = (name: string, weight: number, fields: Partial<SumClaim> = {}): Claim => ({
  sum: name,
  ...parts,
  weight,
  now: start,
  keepUntil: start + minute,
  ...fields,
});

/** How many members a window holds: taking out an unknown member returns that. */
async function held(store: Store, window: string, since = 0): Promise<number> {
  const result = await store.commit({ claims: [{ window, member: "none", now: start, since, keepUntil: start, out: true }] });
  return result.done ? (result.counts[0] as number) : Number.NaN;
}

const done = { done: true, counts: [], asked: [] };

describe("every memoryStore() is a separate store; one with a name is shared within the process", () => {
  const expiry = { now: start, keepUntil: start + minute };

  test("stores without a name share nothing, whatever their options", async () => {
    const stores = [memoryStore(), memoryStore(), memoryStore({ maxRecords: 5 }), memoryStore({ name: "default" })];
    await stores[0]?.put("key", "value", expiry);
    expect(await Promise.all(stores.map((store) => store.get("key")))).toEqual(["value", undefined, undefined, undefined]);
    await Promise.all(stores.map((store) => store.close?.()));
    expect(await stores[0]?.get("key")).toBe("value");
  });

  test("the same name gives the same store, another name another store", async () => {
    const name = randomUUID();
    await memoryStore({ name }).put("key", "value", expiry);
    expect(await memoryStore({ name }).get("key")).toBe("value");
    expect(await own().store.get("key")).toBeUndefined();
  });

  test("a store without a name is rejected in a Next.js server, where each bundle would have its own, and the error gives the fix", () => {
    vi.stubEnv("NEXT_RUNTIME", "nodejs");
    try {
      expect(() => memoryStore()).toThrow('Give the store a name, so that they share it: memoryStore({ name: "verifier" }).');
      expect(() => memoryStore({ name: randomUUID() })).not.toThrow();
    } finally {
      vi.unstubAllEnvs();
    }
  });

  test("a second copy of the module shares a store by its name", async () => {
    const name = randomUUID();
    await memoryStore({ name }).put("key", "value", expiry);
    vi.resetModules();
    const copy = await import("../../adapters/store/memory/index.js");
    expect(copy.memoryStore).not.toBe(memoryStore);
    expect(await copy.memoryStore({ name }).get("key")).toBe("value");
  });

  test("close frees the name", async () => {
    const name = randomUUID();
    const first = memoryStore({ name, maxRecords: 5 });
    await first.put("key", "value", expiry);
    await first.close?.();
    const second = memoryStore({ name, maxRecords: 6 });
    expect(await second.get("key")).toBeUndefined();
    expect(await first.get("key")).toBe("value");
    await first.close?.();
    expect(memoryStore({ name, maxRecords: 6 })).toBe(second);
  });

  test("a different maxRecords for the same name is rejected, and the error gives the fix", () => {
    const name = randomUUID();
    memoryStore({ name, maxRecords: 5 });
    expect(() => memoryStore({ name, maxRecords: 6 })).toThrow(
      `memoryStore "${name}" exists in this process with maxRecords 5, and 6 is requested now. Use the same maxRecords`,
    );
    expect(() => memoryStore({ name })).toThrow("and 100000 is requested now");
    expect(() => memoryStore({ name, maxRecords: 5 })).not.toThrow();
  });

  test.each(["", 5, null])("name %j is rejected", (name) => {
    expect(() => memoryStore({ name } as never)).toThrow("memoryStore: name must be a text, and not empty");
  });

  test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "5" as unknown as number])("maxRecords %s is rejected", (maxRecords) => {
    expect(() => own(maxRecords)).toThrow("maxRecords must be an integer of 1 or more");
  });
});

describe("bounded, and nothing is dropped before its end (docs/contract.md#early-end)", () => {
  test("a record beyond maxRecords is rejected along with its commit's claims; existing records can still be written", async () => {
    const { store, clock } = own(2);
    const window = `${randomUUID()}:a`;
    const [first, second, third] = [record(), record({ keepUntil: start + 10 * minute }), record()];
    for (const each of [first, second]) expect(await store.commit({ record: each })).toEqual(done);
    clock.now += minute - 1;
    await expect(store.commit({ record: third, claims: [member(window, "a")] })).rejects.toThrow(
      /is full: it holds at most 2 authentications with maxRecords 2.*Raise maxRecords/,
    );
    expect(await find(store, third)).toBeUndefined();
    expect(await held(store, window)).toBe(0);
    expect(await find(store, first)).toEqual(stored(first));
    const next = { ...first, tokens: [randomUUID(), ...first.tokens], data: "next" };
    expect(await store.commit({ record: next, expected: first.tokens[0] as string })).toEqual(done);
    expect(await store.commit({ record: first })).toEqual(done);
    expect(await store.commit({ record: { ...third, id: first.id, customer: first.customer } })).toEqual({ done: false, current: stored(next) });
    expect(await store.commit({ record: third, expected: "another" })).toEqual({ done: false });

    clock.now += minute + lag;
    expect(await store.commit({ record: third })).toEqual(done);
    expect(await find(store, first)).toBeUndefined();
    expect(await find(store, second)).toEqual(stored(second));
  });

  test("16 members, parts of sums and counters fit for each record; beyond that a commit is rejected whole", async () => {
    const { store, clock } = own(1);
    const [window, other] = [`${randomUUID()}:a`, `${randomUUID()}:s`];
    const full = "it holds at most 16 members of windows, parts of sums and counters with maxRecords 1";
    const tally = (counter: string) => store.tally([{ counter, by: 2, now: start, keepUntil: start + minute }], [counter]);
    for (let i = 0; i < 14; i++) expect(await store.commit({ claims: [member(window, `member ${i}`)] })).toMatchObject({ done: true });
    expect(await store.commit({ claims: [sum(other, 5)] })).toMatchObject({ counts: [5] });
    expect(await tally("counter")).toEqual([2]);

    const refused = record();
    await expect(store.commit({ record: refused, claims: [member(window, "one more")] })).rejects.toThrow(full);
    await expect(store.commit({ claims: [sum(`${randomUUID()}:s`, 5)] })).rejects.toThrow("Raise maxRecords");
    await expect(tally("another counter")).rejects.toThrow(full);
    expect(await find(store, refused)).toBeUndefined();
    expect(await held(store, window)).toBe(14);

    expect(await store.commit({ claims: [member(window, "member 3"), sum(other, 5)] })).toMatchObject({ counts: [14, 10] });
    expect(await tally("counter")).toEqual([4]);
    expect(await store.commit({ claims: [member(window, "one more", start, { limit: 14 })] })).toMatchObject({ done: false, refusedBy: 0, count: 14 });
    expect(await store.commit({ claims: [{ ...member(window, "member 3"), out: true } as Claim] })).toMatchObject({ counts: [13] });
    expect(await store.commit({ claims: [member(window, "one more")] })).toMatchObject({ counts: [14] });

    clock.now += minute + lag;
    expect(await store.commit({ record: refused, claims: [member(`${randomUUID()}:b`, "a")] })).toMatchObject({ counts: [1] });
    expect([await held(store, window), ...(await store.tally([], ["counter"]))]).toEqual([0, 0]);
  });

  test("entries that expire to make room for the commit that writes them again are stored, and freed only once", async () => {
    const { store, clock } = own(1);
    const customer = randomUUID();
    const window = (index: number) => `${customer}:w${index}`;
    const fill = (from: number, to: number, now: number) =>
      store.commit({ claims: Array.from({ length: to - from }, (_, index) => member(window(from + index), "a", now)) });
    for (let round = 0; round < 5; round++) {
      const now = clock.now;
      expect(await fill(0, 16, now)).toMatchObject({ done: true });
      clock.now += minute + lag;
      // A write frees four of those that have ended; with twelve windows more than fit, it frees some of the very ones
      // that it writes.
      expect(await fill(4, 20, clock.now)).toMatchObject({ done: true });
      await expect(fill(30, 31, clock.now)).rejects.toThrow("is full");
      for (let index = 4; index < 20; index++) expect(await held(store, window(index), now)).toBe(1);
      clock.now += minute + lag;
    }
  });

  test("values are bounded at maxRecords", async () => {
    const { store, clock } = own(1);
    const put = (key: string, value: string) => store.put(key, value, { now: start, keepUntil: start + minute });
    await put("a", "1");
    await put("a", "2");
    await expect(put("b", "1")).rejects.toThrow("it holds at most 1 values");
    expect(await store.get("a")).toBe("2");
    clock.now += minute + lag;
    await put("b", "1");
    expect([await store.get("a"), await store.get("b")]).toEqual([undefined, "1"]);
  });

  test("expired members make room in a window that stays in use", async () => {
    const { store, clock } = own(1);
    const window = `${randomUUID()}:a`;
    for (let i = 0; i < 200; i++, clock.now += 10_000)
      expect(await store.commit({ claims: [member(window, `${i}`, clock.now)] })).toMatchObject({ done: true });
  });

  test("a window stores its newest members, a few more than its largest limit", async () => {
    const { store } = own();
    const window = `${randomUUID()}:a`;
    for (let i = 1; i <= 60; i++) {
      const now = start + i * 1_000;
      const claims = [10, 3].map((limit) => member(window, `${i}`, now, { limit, since: now - limit * 1_000, keepUntil: now + 60 * minute }));
      expect(await store.commit({ claims })).toMatchObject({ counts: [Math.min(i, 10), Math.min(i, 3)] });
    }
    expect(await store.members(window, 100)).toEqual(Array.from({ length: 18 }, (_, i) => `${60 - i}`));
  });
});

test("a method has done its work by the time it returns its promise", async () => {
  const { store } = own();
  const one = record({ wakeAt: start });
  const window = `${one.customer}:a`;
  const calls = [
    store.commit({ record: one, claims: [member(window, "a", start, { limit: 1 })] }),
    store.commit({ record: record({ customer: one.customer }), claims: [member(window, "b", start, { limit: 1 })] }),
    store.lease(start, 1, start + 1),
    store.delete({ records: [one], windows: [window] }),
    store.commit({ claims: [member(window, "c", start, { limit: 1 })] }),
  ];
  expect(await Promise.all(calls)).toMatchObject([{ done: true }, { refusedBy: 0, count: 1, roomSince: start }, [{ id: one.id }], undefined, { counts: [1] }]);
});

describe("freeing what has expired", () => {
  test("a record's end is the one written last, later or earlier", async () => {
    const { store, clock } = own(2);
    const lengthened = record();
    const shortened = record({ keepUntil: start + 20 * minute });
    for (const each of [lengthened, shortened]) await store.commit({ record: each });
    const later = { ...lengthened, tokens: ["a"], keepUntil: start + 20 * minute };
    const earlier = { ...shortened, tokens: ["b"], keepUntil: start + minute };
    await store.commit({ record: later, expected: lengthened.tokens[0] as string });
    await store.commit({ record: earlier, expected: shortened.tokens[0] as string });
    clock.now += 2 * minute;
    expect(await store.commit({ record: record() })).toEqual(done);
    await expect(store.commit({ record: record() })).rejects.toThrow("is full");
    expect(await find(store, later)).toEqual(stored(later));
    clock.now = start + 20 * minute - 1;
    await store.get("key");
    expect(await find(store, later)).toEqual(stored(later));
    clock.now += lag;
    for (const each of [record(), record()]) expect(await store.commit({ record: each })).toEqual(done);
  });

  test("members, sums and counters live until the latest of their ends", async () => {
    const { store, clock } = own();
    const name = `${randomUUID()}:a`;
    const [day, since] = [{ keepUntil: start + 24 * 60 * minute }, { since: start - minute }];
    const brief = { keepUntil: start + minute };
    const tally = (keepUntil: number) => store.tally([{ counter: name, by: 1, now: start, keepUntil }], []);
    for (const expiry of [brief, day, brief]) {
      await store.commit({ claims: [member(name, "a", start, expiry), sum(name, 1, expiry)] });
      await tally(expiry.keepUntil);
    }
    await store.commit({ claims: [member(name, "b", start + 1, brief)] });
    clock.now += minute + lag;
    for (let i = 0; i < 5; i++) await store.put("key", "value", { now: start, keepUntil: start });
    const out = { ...member(name, "b", start + 1), ...since, out: true } as Claim;
    expect(await store.commit({ claims: [out], asks: [{ sum: name, ...parts }] })).toEqual({ done: true, counts: [1], asked: [3] });
    expect(await store.tally([], [name])).toEqual([3]);
  });

  test("lifetimes follow the store's own clock, however wrong the caller's is", async () => {
    const { store, clock } = own(1);
    const behind = record({ now: 0, keepUntil: minute });
    await store.commit({ record: behind });
    const ahead = start + 50 * 365 * 24 * 60 * minute;
    await store.commit({ claims: [member(`${randomUUID()}:a`, "a", ahead)] });
    await expect(store.commit({ record: record({ now: ahead, keepUntil: ahead + minute }) })).rejects.toThrow("is full");
    clock.now += minute - 1;
    await store.put("key", "value", { now: start, keepUntil: start });
    expect(await find(store, behind)).toEqual(stored(behind));
    clock.now += lag + 1;
    expect(await store.commit({ record: record({ now: ahead, keepUntil: ahead + minute }) })).toEqual(done);
  });

  test("a freed record is no longer leased, and records with the same id under other customers stay", async () => {
    const { store, clock } = own(3);
    const id = randomUUID();
    const [ended, waiting, resting] = [
      record({ id, wakeAt: start }),
      record({ id, keepUntil: start + 9 * minute, wakeAt: start + 1 }),
      record({ id, keepUntil: start + 9 * minute }),
    ] as const;
    for (const each of [waiting, ended, resting]) await store.commit({ record: each });
    expect(await store.lease(start + 1, 10, start + minute)).toEqual([stored(ended), stored(waiting)]);
    clock.now += 2 * minute;
    await store.commit({ record: record({ id, keepUntil: start + 9 * minute }) });
    expect(await store.lease(start + 2 * minute, 10, start + 5 * minute)).toEqual([stored(waiting)]);
    for (const each of [waiting, resting]) expect(await find(store, each)).toEqual(stored(each));
    expect(await find(store, ended)).toBeUndefined();
  });

  test("each write frees a few expired entries, without waiting for the timer", async () => {
    vi.useFakeTimers({ toFake: ["setInterval"] });
    const { store, clock } = own();
    const ended = Array.from({ length: 12 }, () => record());
    for (const each of ended) await store.commit({ record: each });
    clock.now += minute + lag;
    const left = async () => (await Promise.all(ended.map((each) => find(store, each)))).filter((found) => found !== undefined).length;
    await store.commit({ record: record() });
    expect(await left()).toBe(8);
    for (let i = 0; i < 3; i++) await store.commit({ record: record() });
    expect(await left()).toBe(0);
  });

  test("one timer frees the rest by a monotonic clock, and stops when nothing is left", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
    const store = memoryStore({ name: randomUUID() });
    expect(vi.getTimerCount()).toBe(0);
    const short = record();
    const long = record({ keepUntil: start + 10 * minute });
    const window = `${short.customer}:a`;
    await store.commit({ record: short, claims: [member(window, "a"), sum(window, 1)] });
    await store.commit({ record: long });
    await store.put("key", "value", short);
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(minute - 1);
    expect([await find(store, short), await held(store, window), await store.get("key")]).toEqual([stored(short), 1, "value"]);
    vi.advanceTimersByTime(2 * lag);
    expect([await find(store, short), await store.get("key")]).toEqual([undefined, undefined]);
    expect(await find(store, long)).toEqual(stored(long));
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(10 * minute);
    expect(await find(store, long)).toBeUndefined();
    expect(vi.getTimerCount()).toBe(0);
    await store.commit({ record: record() });
    expect(vi.getTimerCount()).toBe(1);
    await store.close?.();
    expect(vi.getTimerCount()).toBe(0);
    await store.commit({ record: record() });
    expect(vi.getTimerCount()).toBe(0);
  });

  test("the timer does not keep the process alive", async () => {
    const timers = vi.spyOn(globalThis, "setInterval");
    const { store } = own();
    await store.commit({ record: record() });
    const [timer] = timers.mock.results.map(({ value }) => value as NodeJS.Timeout);
    expect(timer?.hasRef()).toBe(false);
    timers.mockRestore();
    await store.close?.();
  });

  test("does not depend on the system's date", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: new Date("2099-01-01") });
    const { store } = own(1);
    const kept = record();
    await store.commit({ record: kept });
    await store.lease(Number.MAX_SAFE_INTEGER, 10, Number.MAX_SAFE_INTEGER);
    await expect(store.commit({ record: record() })).rejects.toThrow("is full");
    expect(await find(store, kept)).toEqual(stored(kept));
  });
});

describe("what is stored is what was written", () => {
  test("tokens of any length, text in any script, times on both sides of the epoch", async () => {
    const { store } = own();
    const odd = ["", "a\nb", "\u0000\u0001", "日本語 \u{1f600}", "\ud800", "x".repeat(300), "UPPER"];
    for (const [i, text] of odd.entries()) {
      const keepUntil = [start + minute, 0, -1, 8.64e15, Number.MAX_SAFE_INTEGER][i % 5] as number;
      const written = record({ id: `id ${text}`, tokens: [`${i}`, ...odd], data: text, now: keepUntil - minute, keepUntil });
      await store.commit({ record: { ...written, wakeAt: 5 - i } });
      expect(await find(store, written)).toEqual(stored(written));
      const window = `${written.customer}:${text}`;
      await store.commit({ claims: odd.map((name, at) => member(window, name, start + at)) });
      expect(await store.members(window, 10)).toEqual(odd.toReversed());
    }
    const leased = await store.lease(0, 10, 9);
    expect(leased.map(({ id }) => id)).toEqual([`id ${odd[6]}`, `id ${odd[5]}`]);
  });

  test("changing an object after it was written, or one that was returned, does not change what is stored", async () => {
    const { store } = own();
    const written = record();
    const before = structuredClone(stored(written));
    await store.commit({ record: written });
    (written.tokens as string[]).push("changed");
    for (let i = 0; i < 2; i++) {
      const found = await find(store, written);
      expect(found).toEqual(before);
      (found as unknown as { tokens: string[] }).tokens.push("changed");
    }
  });

  test("a record without a token is rejected", async () => {
    await expect(own().store.commit({ record: record({ tokens: [] }) })).rejects.toThrow("a record needs a token");
  });
});

/** Pseudorandom numbers, the same in each run. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return (state >>> 8) % below;
  };
}

describe("compared with a simple model", () => {
  test("windows: every limit is exact, however members are added, moved and removed", async () => {
    const { store } = own();
    const window = `${randomUUID()}:a`;
    const limit = 300;
    const next = numbers(1);
    let model: { readonly name: string; readonly at: number }[] = [];
    for (let i = 0; i < 4_000; i++) {
      const now = start + i * 10 + next(5_000) - 2_500;
      const name = next(4) === 0 ? (model[next(model.length || 1)]?.name ?? "first") : `member ${i}`;
      const others = model.filter((each) => each.name !== name);
      const claim = { window, member: name, now, limit, since: now - 500 - next(5_000), keepUntil: now + 60 * minute };
      const newer = (members: typeof model) => members.filter(({ at }) => at > claim.since).length;
      if (next(10) === 0) {
        const at = model.find((each) => each.name === name)?.at;
        if (at !== undefined && next(2) === 0) model = others;
        const result = await store.commit({ claims: [{ ...claim, now: model === others ? (at as number) : now - 10_000, out: true }] });
        expect(result).toEqual({ done: true, counts: [newer(model)], asked: [] });
        continue;
      }
      const result = await store.commit({ claims: [claim] });
      const count = newer(others);
      expect(result).toEqual(
        count < limit ? { done: true, counts: [count + 1], asked: [] } : { done: false, refusedBy: 0, count, roomSince: others.at(-limit)?.at },
      );
      if (count >= limit) continue;
      // The sort keeps the order of members with equal times.
      const at = Math.max(now, model.find((each) => each.name === name)?.at ?? now);
      model = [...others, { name, at }].sort((a, b) => a.at - b.at).slice(-limit - 8);
    }
    expect(await store.members(window, 500)).toEqual(model.map(({ name }) => name).reverse());
  });

  test("sums: totals are exact, however parts are claimed, given back and read", async () => {
    const { store } = own();
    const name = `${randomUUID()}:s`;
    const next = numbers(5);
    const model = new Map<number, number>();
    const held = (part: number, ahead: boolean) => [...model].reduce((all, [at, by]) => (at > part - 4 && at <= (ahead ? part + 1 : part) ? all + by : all), 0);
    for (let i = 0; i < 3_000; i++) {
      const part = Math.floor(i / 200) + next(2);
      const ahead = next(2) === 0;
      const [weight, floor, limit] = [next(50) - 20, -next(60), next(200)];
      const claim = {
        sum: name,
        part,
        parts: 4,
        weight,
        now: start,
        keepUntil: start + minute,
        limit,
        ...(ahead && { ahead }),
        ...(next(3) === 0 && { floor }),
      } as SumClaim;
      const low = claim.floor ?? Number.NEGATIVE_INFINITY;
      const before = held(part, ahead);
      const after = Math.max(low, Math.max(low, before) + weight);
      const result = await store.commit({ claims: [claim] });
      if (weight >= 0 && after > limit) {
        expect(result).toMatchObject({ done: false, refusedBy: 0, count: before });
        continue;
      }
      expect(result).toEqual({ done: true, counts: [after], asked: [] });
      model.set(part, (model.get(part) ?? 0) + after - before);
    }
  });

  test("leases: the earliest first, each once, whatever is written in between", async () => {
    const { store } = own();
    const next = numbers(7);
    const customer = randomUUID();
    const model = new Map<string, { readonly token: string; readonly wakeAt: number | undefined }>();
    for (let i = 0; i < 8_000; i++) {
      const id = `${next(300)}`;
      if (next(5) > 0) {
        const before = model.get(id);
        const asked = [undefined, "unchanged" as const, next(1_000), next(1_000)][next(4)];
        const written = record({ customer, id, tokens: [`${i}`], ...(asked !== undefined && { wakeAt: asked }) });
        expect(await store.commit({ record: written, expected: before?.token ?? null })).toEqual(done);
        model.set(id, { token: `${i}`, wakeAt: asked === "unchanged" ? before?.wakeAt : asked });
        continue;
      }
      const [until, limit, leaseUntil] = [next(1_000), next(8), next(1_500)];
      const due = [...model.values()].flatMap(({ wakeAt }) => (wakeAt !== undefined && wakeAt <= until ? [wakeAt] : [])).sort((a, b) => a - b);
      const leased = (await store.lease(until, limit, leaseUntil)).map((each) => each.id);
      expect(leased.map((each) => model.get(each)?.wakeAt)).toEqual(due.slice(0, limit));
      expect(new Set(leased).size).toBe(leased.length);
      for (const each of leased) model.set(each, { token: model.get(each)?.token as string, wakeAt: leaseUntil });
    }
  });
});
