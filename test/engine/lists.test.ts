import { describe, expect, it } from "vitest";
import { createLists } from "../../src/access/lists.js";
import { throttledLogger } from "../../src/core/throttled-logger.js";
import type { List, ListSource } from "../../src/domain/lists.js";
import { readOptions } from "../../src/options/options.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";
import { neededOptions } from "../support/options.js";
import { logger } from "../support/verifier.js";

const number = "+33612345678";
const on = { numbers: [number] };
const blocked = { block: { kind: "number" }, safe: false };
const free = { safe: false };

/** A source that returns when the test decides. */
function slowSource() {
  const waiting: { answer(list: unknown): void; fail(error: Error): void }[] = [];
  const source = () => new Promise<List>((answer, fail) => waiting.push({ answer: answer as (list: unknown) => void, fail }));
  return { source, waiting };
}

function setUp(lists: { block?: ListSource; safe?: ListSource; refresh?: number }) {
  const clock = fixedClock();
  const log = logger();
  const background: Promise<unknown>[] = [];
  const settings = readOptions({ ...neededOptions, lists });
  const { judge } = createLists({
    settings,
    clock,
    logger: log,
    monitor: { throttledLog: throttledLogger(clock, log) },
    inBackground: (work) => void background.push(work),
  });
  /** Waits until background work has ended, except for what the test holds back. */
  const settle = () => new Promise((resolve) => setTimeout(resolve));
  return { clock, log, background, settle, judge: (more: object = {}) => judge({ number, ...more }) };
}

describe("static lists", () => {
  it("apply at once", async () => {
    expect(await setUp({ block: on }).judge()).toEqual(blocked);
    expect(await setUp({ safe: { devices: ["d-1"] } }).judge({ deviceId: "d-1" })).toEqual({ safe: true });
    expect(await setUp({}).judge()).toEqual(free);
  });
});

describe("lists from a function", () => {
  it("the function is not called before the first query", async () => {
    let asked = 0;
    const { judge } = setUp({ block: () => ({ ...on, devices: [`${asked++}`] }) });
    expect(asked).toBe(0);
    await judge();
    expect(asked).toBe(1);
  });

  it("the first queries wait for the list, which is loaded once", async () => {
    const { source, waiting } = slowSource();
    const { judge, background } = setUp({ block: source, safe: { numbers: ["+33*"] } });
    const words = [judge(), judge()];
    expect(waiting).toHaveLength(1);
    waiting[0]?.answer(on);
    expect(await Promise.all(words)).toEqual([blocked, blocked]);
    expect(await judge()).toEqual(blocked);
    expect(background).toHaveLength(1);
  });

  it("the list is loaded again after 30 s in the background; requests use the last one until then", async () => {
    const { source, waiting } = slowSource();
    const { judge, clock, settle, background } = setUp({ block: source });
    const first = judge();
    waiting[0]?.answer(on);
    await first;
    clock.advance(29_999);
    expect(await judge()).toEqual(blocked);
    expect(waiting).toHaveLength(1);
    clock.advance(1);
    expect(await judge()).toEqual(blocked);
    expect(await judge()).toEqual(blocked);
    expect([waiting.length, background.length]).toEqual([2, 2]);
    waiting[1]?.answer({});
    await settle();
    expect(await judge()).toEqual(free);
    clock.advance(29_999);
    judge();
    expect(waiting).toHaveLength(2);
  });

  it("refresh sets how often, and a clock that goes back does not stop it", async () => {
    let asked = 0;
    const { judge, clock, settle } = setUp({ safe: () => void asked++ as never, refresh: 5 });
    for (const step of [0, 5000, 4999, 1, -20_000, 4999, 1]) {
      clock.set(clock.now() + step);
      await judge();
      await settle();
    }
    expect(asked).toBe(5);
  });

  it("a list is not read again if the function returns the same object", async () => {
    let read = 0;
    const list = {
      get numbers() {
        read += 1;
        return [number];
      },
    };
    const { judge, clock, settle } = setUp({ block: () => list });
    await judge();
    expect(read).toBe(1);
    clock.advance(30_000);
    expect(await judge()).toEqual(blocked);
    await settle();
    expect(read).toBe(1);
  });

  it("a long list is read in slices, so that the process can do other work", async () => {
    const numbers = Array.from({ length: 5000 }, (_, at) => `+33${600_000_000 + at}`);
    const { judge } = setUp({ block: () => ({ numbers: [...numbers, number] }) });
    let others = 0;
    const other = setInterval(() => others++);
    const word = await judge();
    clearInterval(other);
    expect(word).toEqual(blocked);
    expect(others).toBeGreaterThan(0);
  });
});

describe("lists that cannot be loaded", () => {
  it("the first load is awaited until storeTimeout; then the block list counts as empty, which is logged", async () => {
    const { source, waiting } = slowSource();
    const { judge, clock, log, settle } = setUp({ block: source });
    const word = judge();
    clock.advance(1999);
    const later = judge();
    clock.advance(1);
    expect(await Promise.all([word, later])).toEqual([free, free]);
    expect(log.lines).toMatchObject([
      {
        level: "error",
        fields: { list: "block", err: { message: "no response within 2000 ms" } },
        message: "the list could not be loaded; it counts as empty until it can",
      },
    ]);
    // No query waits any longer, and a late result counts.
    expect(await judge()).toEqual(free);
    waiting[0]?.answer(on);
    await settle();
    expect(await judge()).toEqual(blocked);
    expect(log.lines.map(({ level, message }) => [level, message])).toEqual([
      ["error", "the list could not be loaded; it counts as empty until it can"],
      ["info", "a list is available again"],
    ]);
  });

  it.each([
    [
      "throws",
      () => {
        throw new Error("no list");
      },
    ],
    ["rejects", () => Promise.reject(new Error("no list"))],
    ["returns nonsense", () => "no list" as never],
    ["returns an unknown key", () => ({ Numbers: [number] }) as never],
    ["returns a part that is not a list", () => ({ numbers: "no list" }) as never],
  ])("a safe list whose source %s counts as empty: it is logged once, and loaded again", async (_, source) => {
    let asked = 0;
    const { judge, clock, log, settle } = setUp({
      safe: () => {
        asked += 1;
        return source();
      },
    });
    expect(await judge()).toEqual(free);
    expect(await judge()).toEqual(free);
    clock.advance(30_000);
    expect(await judge()).toEqual(free);
    await settle();
    expect(asked).toBe(2);
    expect(log.lines).toHaveLength(1);
    expect(log.lines[0]?.fields).toMatchObject({ list: "safe", err: { message: expect.stringContaining("list") } });
  });

  it("the last good list stays in use if a refresh fails, which is logged", async () => {
    const { source, waiting } = slowSource();
    const { judge, clock, log, settle } = setUp({ block: source });
    const refresh = async (end: (one: (typeof waiting)[number]) => void) => {
      clock.advance(30_000);
      const word = await judge();
      end(waiting.at(-1) as (typeof waiting)[number]);
      await settle();
      return word;
    };
    await Promise.all([judge(), waiting[0]?.answer(on)]);
    expect(await refresh(({ fail }) => fail(new Error("down")))).toEqual(blocked);
    expect(await refresh(({ answer }) => answer(new Response("{}") as object))).toEqual(blocked);
    expect(await refresh(({ answer }) => answer(on))).toEqual(blocked);
    expect(await refresh(({ fail }) => fail(new Error("down again")))).toEqual(blocked);
    expect(await judge()).toEqual(blocked);
    expect(log.lines.map(({ message }) => message)).toEqual([
      "a list could not be refreshed; the last one stays in use",
      "a list is available again",
      "a list could not be refreshed; the last one stays in use",
    ]);
  });

  it("a failure that lasts is logged once a minute for each list, with how many were left out", async () => {
    const fails = () => Promise.reject(new Error("no list"));
    const { judge, clock, log, settle } = setUp({ block: fails, safe: fails });
    for (let turn = 0; turn < 5; turn++) {
      await judge();
      await settle();
      clock.advance(30_000);
    }
    const lists = log.lines.map(({ fields }) => [fields.list, fields.left_out]);
    expect(lists).toEqual(
      [undefined, 1, 1].flatMap((leftOut) => [
        ["block", leftOut],
        ["safe", leftOut],
      ]),
    );
  });

  it("a load that hangs is given up when the next is due, and its late result is ignored", async () => {
    const { source, waiting } = slowSource();
    const { judge, clock, log, settle } = setUp({ block: source });
    await Promise.all([judge(), waiting[0]?.answer({})]);
    clock.advance(30_000);
    judge();
    clock.advance(29_999);
    judge();
    expect(waiting).toHaveLength(2);
    clock.advance(1);
    judge();
    expect(waiting).toHaveLength(3);
    expect(log.lines).toMatchObject([{ fields: { err: { message: "no response within 30000 ms" } } }]);
    waiting[2]?.answer(on);
    await settle();
    waiting[1]?.answer({});
    await settle();
    expect(await judge()).toEqual(blocked);
  });

  it("a load that was given up neither logs its failure nor ends the one in progress", async () => {
    const { source, waiting } = slowSource();
    const { judge, clock, log, settle } = setUp({ block: source, refresh: 0.1 });
    const first = judge();
    clock.advance(2000);
    await first;
    void judge();
    waiting[0]?.fail(new Error("too late to matter"));
    await settle();
    clock.advance(1999);
    void judge();
    expect(waiting).toHaveLength(2);
    clock.advance(1);
    void judge();
    waiting[2]?.answer(on);
    await settle();
    expect(await judge()).toEqual(blocked);
    waiting[1]?.fail(new Error("too late to matter"));
    await settle();
    expect(log.lines.map(({ level }) => level)).toEqual(["error", "info"]);
  });

  it("with a refresh shorter than storeTimeout, a slow load still has until storeTimeout", async () => {
    const { source, waiting } = slowSource();
    const { judge, clock } = setUp({ block: source, refresh: 0.1 });
    const first = judge();
    clock.advance(1900);
    void judge();
    expect(waiting).toHaveLength(1);
    waiting[0]?.answer(on);
    expect(await first).toEqual(blocked);
  });
});

describe("invalid entries", () => {
  it("are left out and logged, once while they stay the same, without the entry itself", async () => {
    const answers: List[] = [{ numbers: ["0612345678", number] }, { numbers: ["0612345678", number] }, on, { numbers: [number], cidrs: ["10/8"] }];
    const { judge, clock, log, settle } = setUp({ block: () => answers.shift() as List });
    for (let at = 0; at < 4; at++) {
      expect(await judge()).toEqual(blocked);
      clock.advance(30_000);
      await settle();
    }
    const entries = (of: string) => ({ level: "warn", fields: { list: "block", entries: [of], faulty: 1 }, message: "invalid list entries are ignored" });
    expect(log.lines).toEqual([
      entries("block.numbers.0 must be in E.164 form, or a prefix that ends in *"),
      entries("block.cidrs.0 must be an address or a CIDR, for example 203.0.113.0/24 or 2001:db8::/32"),
    ]);
  });
});
