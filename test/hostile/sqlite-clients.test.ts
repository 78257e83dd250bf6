import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { nodeOf, runtimeOf } from "../package/programs.js";
import { changes, ending, eventually, numberAt, tallied } from "./kit.js";
import { type Child, deadline, handle, many, opened, place, processes, serving } from "./sqlite-kit.js";

const start = processes();

/** A program and the library that it opens the file with; `undefined`: the store chooses. */
type Client = readonly [program: string | undefined, library: string | undefined];

async function clients(): Promise<Client[]> {
  const [node22, node24, bun] = await Promise.all([nodeOf("22"), nodeOf("24"), runtimeOf("Bun")]);
  const all: (Client | undefined)[] = [
    [process.execPath, "libsql"],
    [process.execPath, undefined],
    node22 === undefined ? undefined : [node22, "node:sqlite"],
    node24 === undefined ? undefined : [node24, undefined],
    process.env["BETTER_SQLITE3"] ? [process.execPath, "better-sqlite3"] : undefined,
    bun === undefined ? undefined : [bun, "bun:sqlite"],
  ];
  return all.filter((one) => one !== undefined);
}

/** A process for each client, on one file and for one customer. */
async function everyClient(file: string, customer: string, cap?: number): Promise<Child[]> {
  const busyTimeout = 30_000;
  const setups = (await clients()).map(([program, library]) =>
    start(
      {
        file,
        customer,
        options: { busyTimeout, synchronous: "NORMAL" },
        storeTimeout: 120,
        ...(library !== undefined && { library }),
        ...(cap !== undefined && { cap }),
      },
      program,
    ),
  );
  return Promise.all(setups);
}

describe("processes that open one file through different libraries", () => {
  it("create the tables once when all start at the same time, and no request fails (docs/stores.md)", async () => {
    const { file } = place();
    const customer = randomUUID();
    const all = await everyClient(file, customer);
    const ends = await Promise.all(
      all.map((one, at) =>
        one.call(
          "create",
          many(20, (n) => at * 100 + n),
        ),
      ),
    );
    expect(tallied(ends.flat())).toEqual({ pending: 20 * all.length });
    const store = opened({ file });
    for (const one of all) for (const { id } of await one.call("sent")) expect(await store.find(customer, id)).toMatchObject({ id });
  });

  it("race 600 checks on one authentication, and many with the right code on another: five wrong codes are evaluated, and one is valid (docs/contract.md#checks)", async () => {
    const { file } = place();
    const all = await everyClient(file, randomUUID());
    const [first] = all as [Child];
    const [guessed, known] = [await first.call("begin", 1), await first.call("begin", 2)];
    const wrong = guessed.code === "000000" ? "111111" : "000000";
    const each = Math.ceil(600 / all.length);
    const guesses = await Promise.all(
      all.map((one) =>
        one.call(
          "check",
          guessed.id,
          many(each, () => wrong),
        ),
      ),
    );
    expect(tallied(guesses.flat())).toEqual({ invalid: 5, rate_limited: each * all.length - 5 });
    const right = await Promise.all(
      all.map((one) =>
        one.call(
          "check",
          known.id,
          many(30, () => known.code),
        ),
      ),
    );
    expect(tallied(right.flat())).toEqual({ valid: 1, already_validated: 30 * all.length - 1 });
  });

  it("race 1,000 creates under a customer's cap of 100, and on one number: each cap is exact, with one message per acknowledged create (docs/contract.md#caps)", async () => {
    const { file } = place();
    const all = await everyClient(file, randomUUID(), 100);
    const each = Math.ceil(1_000 / all.length);
    const same = await Promise.all(
      all.map((one) =>
        one.call(
          "create",
          many(10, () => 7),
        ),
      ),
    );
    expect(tallied(same.flat())).toEqual({ pending: 5, rate_limited: 10 * all.length - 5 });
    const ends = await Promise.all(
      all.map((one, at) =>
        one.call(
          "create",
          many(each, (n) => 100 + at * each + n),
        ),
      ),
    );
    expect(tallied(ends.flat())).toEqual({ pending: 95, rate_limited: each * all.length - 95 });
    expect((await Promise.all(all.map((one) => one.call("sent")))).flat()).toHaveLength(100);
  });

  it("race on forty idempotency keys: one message for each (docs/contract.md#idempotency)", async () => {
    const { file } = place();
    const all = await everyClient(file, randomUUID());
    const numbers = many(40, (n) => numberAt(n));
    const ends = await Promise.all(all.map((one) => one.call("create", numbers, true)));
    expect(tallied(ends.flat())).toEqual({ pending: 40 * all.length });
    const sent = (await Promise.all(all.map((one) => one.call("sent")))).flat();
    expect(sent.map(({ to }) => to).sort()).toEqual([...numbers].sort());
  });

  it("read what the others wrote, byte for byte: texts with NUL, astral characters and lone surrogates are the same in each or rejected (docs/contract.md#one-commit)", async () => {
    const { file } = place();
    const { ends } = changes();
    const store = opened({ file });
    const texts = ["a\0b", "👩‍👩‍👧", "e\u0301", "\ufeff", "x".repeat(60_000)];
    for (const [at, text] of texts.entries()) await store.put(`text ${at}`, text, ends);
    const all = await everyClient(file, randomUUID());
    for (const one of all) expect((await one.call("contract", "byte for byte|apart", 4)).failed).toEqual([]);
    for (const [at, text] of texts.entries()) expect(await store.get(`text ${at}`)).toBe(text);
    expect(handle(file).prepare("pragma integrity_check").all()).toEqual([{ integrity_check: "ok" }]);
  });
});

describe("processes, one of them slow", () => {
  it("four processes under load, one stopped and continued again and again: the cap is exact (docs/contract.md#caps)", async () => {
    const { file } = place();
    const customer = randomUUID();
    const setup = { file, customer, cap: 150, options: { busyTimeout: 20_000 }, storeTimeout: 60 };
    const all = await Promise.all(many(4, () => start(setup)));
    await Promise.all(all.map((one) => one.call("wake")));
    const slow = all[3] as Child;
    let going = true;
    const nap = (async () => {
      while (going) {
        slow.process.kill("SIGSTOP");
        await new Promise((done) => setTimeout(done, 40));
        slow.process.kill("SIGCONT");
        await new Promise((done) => setTimeout(done, 40));
      }
    })();
    const ends = await Promise.all(
      all.map((one, at) =>
        one.call(
          "create",
          many(80, (n) => at * 100 + n),
        ),
      ),
    );
    going = false;
    await nap;
    expect(tallied(ends.flat())).toEqual({ pending: 150, rate_limited: 170 });
  });
});

describe("rows that expired long ago", () => {
  it("60,000 of them: no create of another process fails or waits beyond its deadline while they are cleaned up (docs/stores.md)", async () => {
    const { file } = place();
    const past = await start({ file, ahead: -2 * 86_400_000, options: { synchronous: "OFF" } });
    await past.call("put", 60_000, 60_000);
    await past.call("close");
    const admin = handle(file);
    const left = () => (admin.prepare("select count(*) as n from phoneproof_values").all() as [{ n: number }])[0].n;
    expect(left()).toBe(60_000);
    // With the default wait and the default deadline.
    const worker = await start({ file, storeTimeout: 2 });
    const one = serving(opened({ file }));
    let [next, longest] = [0, 0];
    const ends: string[] = [];
    await eventually("rows are deleted", async () => {
      const began = performance.now();
      const worked = worker.call("work", 10);
      ends.push(...(await Promise.all(many(50, () => ending(one.create(next++))))));
      longest = Math.max(longest, performance.now() - began);
      await worked;
      return left() < 58_000;
    });
    expect(tallied(ends)).toEqual({ pending: next });
    expect(longest).toBeLessThan(deadline);
  });
});
