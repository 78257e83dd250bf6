import { randomUUID } from "node:crypto";
import { afterEach, describe, expect, test, vi } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import type { Store, StoredRecord } from "../../src/ports/store.js";

const now = Date.parse("2020-05-05T05:05:05.000Z");
const minute = 60_000;

afterEach(() => {
  vi.useRealTimers();
});

const own = (maxRecords?: number) => memoryStore({ name: randomUUID(), ...(maxRecords !== undefined && { maxRecords }) });

const record = (fields: Partial<StoredRecord> = {}): StoredRecord => ({
  customer: randomUUID(),
  id: randomUUID(),
  tokens: [randomUUID()],
  data: "data",
  keepUntil: now + minute,
  ...fields,
});

const reserve = (store: Store, window: string, at: number, member: string = randomUUID(), limit = 1_000_000) =>
  store.reserve([{ window, member, limit, since: at - minute, now: at, keepUntil: at + minute }]);

/** Tells the store what time it is, which only a reservation does. */
const tell = (store: Store, at: number) => reserve(store, `${randomUUID()}:told`, at);

describe("one store per name and process", () => {
  test("one name is one store, another name another, and the name is default unless given", async () => {
    const name = randomUUID();
    await memoryStore({ name }).put("key", "value", now);
    expect(await memoryStore({ name }).get("key")).toBe("value");
    expect(await own().get("key")).toBeUndefined();
    const key = randomUUID();
    const store = memoryStore();
    await store.put(key, "value", now);
    expect(await memoryStore({ name: "default" }).get(key)).toBe("value");
    await store.close?.();
  });

  test("a second copy of the module shares it", async () => {
    const name = randomUUID();
    await memoryStore({ name }).put("key", "value", now);
    vi.resetModules();
    const copy = await import("../../adapters/store/memory/index.js");
    expect(copy.memoryStore).not.toBe(memoryStore);
    expect(await copy.memoryStore({ name }).get("key")).toBe("value");
  });

  test("close lets the name go", async () => {
    const name = randomUUID();
    const first = memoryStore({ name, maxRecords: 5 });
    await first.put("key", "value", now);
    await first.close?.();
    const second = memoryStore({ name, maxRecords: 6 });
    expect(await second.get("key")).toBeUndefined();
    await first.close?.();
    expect(memoryStore({ name, maxRecords: 6 })).toBe(second);
  });

  test("another maxRecords for the same name is refused, and the message names the mend", () => {
    const name = randomUUID();
    memoryStore({ name, maxRecords: 5 });
    expect(() => memoryStore({ name, maxRecords: 6 })).toThrow(
      `memoryStore "${name}" exists in this process with maxRecords 5, and 6 is asked for now. Use one maxRecords`,
    );
    expect(() => memoryStore({ name })).toThrow("and 1000000 is asked for now");
    expect(() => memoryStore({ name, maxRecords: 5 })).not.toThrow();
  });

  test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "5" as unknown as number])("maxRecords %s is refused", (maxRecords) => {
    expect(() => own(maxRecords)).toThrow("maxRecords must be an integer of 1 or more");
  });
});

describe("bounded", () => {
  test("a record more than maxRecords is refused, and nothing is forgotten before its end", async () => {
    const store = own(2);
    const [first, second, third] = [record(), record({ keepUntil: now + 10 * minute }), record()];
    for (const each of [first, second]) expect(await store.compareAndSwap(each, null)).toEqual({ swapped: true });
    await tell(store, now + minute - 1);
    await expect(store.compareAndSwap(third, null)).rejects.toThrow(/is full: it keeps at most 2 authentications with maxRecords 2.*Raise maxRecords/);
    expect(await store.find(third.customer, third.id)).toBeUndefined();
    expect(await store.find(first.customer, first.id)).toEqual(first);
    const next = { ...first, tokens: [randomUUID(), ...first.tokens], data: "next" };
    expect(await store.compareAndSwap(next, first.tokens[0] as string)).toEqual({ swapped: true });
    expect(await store.compareAndSwap(first, null)).toEqual({ swapped: true });
    expect(await store.compareAndSwap({ ...third, id: first.id, customer: first.customer }, null)).toEqual({ swapped: false, current: next });

    await tell(store, now + minute + 10_000);
    expect(await store.compareAndSwap(third, null)).toEqual({ swapped: true });
    expect(await store.find(first.customer, first.id)).toBeUndefined();
    expect(await store.find(second.customer, second.id)).toEqual(second);
  });

  test("a record's end is the one it was given last, later or earlier", async () => {
    const store = own(2);
    const lengthened = record();
    const shortened = record({ keepUntil: now + 60 * minute });
    for (const each of [lengthened, shortened]) await store.compareAndSwap(each, null);
    const kept = { ...lengthened, tokens: ["a"], keepUntil: now + 60 * minute };
    await store.compareAndSwap(kept, lengthened.tokens[0] as string);
    await store.compareAndSwap({ ...shortened, tokens: ["b"], keepUntil: now + minute }, shortened.tokens[0] as string);
    await tell(store, now + 2 * minute);
    await store.compareAndSwap(record({ keepUntil: now + 60 * minute }), null);
    expect(await store.find(lengthened.customer, lengthened.id)).toEqual(kept);
    expect(await store.find(shortened.customer, shortened.id)).toBeUndefined();
  });

  test("a forgotten record is due no more, and its namesakes stay", async () => {
    const store = own(3);
    const id = randomUUID();
    const [ended, ...staying] = [
      record({ id, wakeAt: now }),
      record({ id, keepUntil: now + 9 * minute, wakeAt: now }),
      record({ id, keepUntil: now + 9 * minute }),
    ] as const;
    for (const each of [staying[0], ended, staying[1]]) await store.compareAndSwap(each, null);
    expect(await store.due(now, 10)).toHaveLength(2);
    await tell(store, now + 2 * minute);
    await store.compareAndSwap(record({ id, keepUntil: now + 9 * minute }), null);
    expect(await store.due(now + 2 * minute, 10)).toEqual([staying[0]]);
    for (const each of staying) expect(await store.find(each.customer, id)).toEqual(each);
    expect(await store.find(ended.customer, id)).toBeUndefined();
  });

  test("members of windows are bounded at sixteen for each record", async () => {
    const store = own(1);
    const window = `${randomUUID()}:a`;
    for (let i = 0; i < 16; i++) expect(await reserve(store, window, now, `member ${i}`)).toEqual({ granted: true });
    await expect(reserve(store, window, now)).rejects.toThrow("it keeps at most 16 members of windows with maxRecords 1");
    await expect(reserve(store, `${randomUUID()}:b`, now)).rejects.toThrow("Raise maxRecords");
    expect(await store.count([{ window, since: 0 }])).toEqual([16]);
    expect(await reserve(store, window, now, "member 3")).toEqual({ granted: true });
    expect(await reserve(store, window, now, "refused", 16)).toEqual({ granted: false, refusedBy: 0 });
    expect(await reserve(store, `${randomUUID()}:b`, now + 2 * minute)).toEqual({ granted: true });
    expect(await store.count([{ window, since: 0 }])).toEqual([0]);
  });

  test("members that have ended make room in a window that lives on", async () => {
    const store = own(8);
    const window = `${randomUUID()}:a`;
    for (let i = 0; i < 2_000; i++) expect(await reserve(store, window, now + i * 10_000)).toEqual({ granted: true });
  });

  test("values are bounded at maxRecords", async () => {
    const store = own(1);
    await store.put("a", "1", now + minute);
    await store.put("a", "2", now + minute);
    await expect(store.put("b", "1", now + minute)).rejects.toThrow("it keeps at most 1 values");
    await tell(store, now + 2 * minute);
    await store.put("b", "1", now + 9 * minute);
    expect([await store.get("a"), await store.get("b")]).toEqual([undefined, "1"]);
  });
});

describe("large windows", () => {
  test("every limit is exact, however many members come, move and leave", async () => {
    const store = own();
    const window = `${randomUUID()}:a`;
    const model = new Map<string, number>();
    let random = 1;
    const next = (below: number) => {
      random = (Math.imul(random, 1_103_515_245) + 12_345) & 0x7fff_ffff;
      return random % below;
    };
    for (let i = 0; i < 20_000; i++) {
      const at = now + i * 10 + next(5_000) - 2_500;
      const since = at - minute;
      const member = `member ${next(4) === 0 ? next(8_000) : 10_000 + i}`;
      const limit = 3_000 + next(1_000);
      let others = 0;
      if (i % 20 === 0 || model.size < 50) for (const [name, time] of model) if (name !== member && time > since) others++;
      const checked = i % 20 === 0 || model.size < 50;
      const result = await store.reserve([{ window, member, limit: checked ? limit : 1_000_000, since, now: at, keepUntil: at + 2 * minute }]);
      if (checked) expect(result.granted).toBe(others < limit);
      if (result.granted) model.set(member, at);
      if (i % 500 === 0) expect(await store.count([{ window, since }])).toEqual([[...model.values()].filter((time) => time > since).length]);
    }
  });
});

describe("housekeeping", () => {
  test("never asks what time it is", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: new Date("2099-01-01") });
    const store = own(1);
    const kept = record();
    await store.compareAndSwap(kept, null);
    await tell(store, now);
    await store.put("key", "value", now + minute);
    await expect(store.compareAndSwap(record(), null)).rejects.toThrow("is full");
    expect(await store.find(kept.customer, kept.id)).toEqual(kept);
    expect(await store.get("key")).toBe("value");
  });

  test("is not told the time by due, which may be asked for all there is", async () => {
    const store = own(1);
    const kept = record();
    await tell(store, now);
    await store.compareAndSwap(kept, null);
    await store.due(Number.MAX_SAFE_INTEGER, 10);
    await expect(store.compareAndSwap(record(), null)).rejects.toThrow("is full");
    expect(await store.find(kept.customer, kept.id)).toEqual(kept);
  });

  test("frees nothing before it was told a time", async () => {
    const store = own(1);
    await store.compareAndSwap(record({ keepUntil: 0 }), null);
    await expect(store.compareAndSwap(record(), null)).rejects.toThrow("is full");
  });

  test("carries the time told forward, frees by one timer, and stops it when nothing is left", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
    const store = own();
    expect(vi.getTimerCount()).toBe(0);
    await tell(store, now);
    const short = record();
    const long = record({ keepUntil: now + 10 * minute });
    for (const each of [short, long]) await store.compareAndSwap(each, null);
    await store.put("key", "value", now + minute);
    await reserve(store, `${short.customer}:a`, now);
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(minute);
    expect(await store.find(short.customer, short.id)).toEqual(short);
    vi.advanceTimersByTime(10_000);
    expect(await store.find(short.customer, short.id)).toBeUndefined();
    expect(await store.get("key")).toBeUndefined();
    expect(await store.count([{ window: `${short.customer}:a`, since: 0 }])).toEqual([0]);
    expect(await store.find(long.customer, long.id)).toEqual(long);
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(10 * minute);
    expect(await store.find(long.customer, long.id)).toBeUndefined();
    expect(vi.getTimerCount()).toBe(0);
    await store.compareAndSwap(record({ keepUntil: now + 60 * minute }), null);
    expect(vi.getTimerCount()).toBe(1);
    await store.close?.();
    expect(vi.getTimerCount()).toBe(0);
    await store.put("key", "value", now + 60 * minute);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("each write frees a few that have ended, without waiting for the timer", async () => {
    vi.useFakeTimers({ toFake: ["setInterval"] });
    const store = own();
    const ended = Array.from({ length: 12 }, () => record());
    for (const each of ended) await store.compareAndSwap(each, null);
    await tell(store, now + 2 * minute);
    const left = async () => (await Promise.all(ended.map(({ customer, id }) => store.find(customer, id)))).filter((found) => found !== undefined).length;
    const counts: number[] = [];
    for (let i = 0; i < 3; i++) {
      await store.compareAndSwap(record({ keepUntil: now + 9 * minute }), null);
      counts.push(await left());
    }
    expect(counts).toEqual([8, 4, 0]);
  });
});

test("a record without a token is refused", async () => {
  await expect(own().compareAndSwap(record({ tokens: [] }), null)).rejects.toThrow("a record needs a token");
});
