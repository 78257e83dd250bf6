import { execFile, execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { sqliteStore } from "../../adapters/store/sqlite/index.js";
import { isInstalled } from "../support/programs.js";
import { changes, ending, eventually, type Service, sender, tallied } from "./kit.js";
import { handle, many, opened, place, processes, serving } from "./sqlite-kit.js";

const start = processes();

/** The files in a folder, without those that SQLite adds to a database. */
const files = (folder: string): string[] => readdirSync(folder).filter((name) => !/-(wal|shm|journal)$/.test(name));

describe("the path of a file", () => {
  it.each([
    "with spaces .db",
    "what?.db",
    "a?mode=memory&cache=shared",
    "#1.db",
    "100%20.db",
    "é 😀.db",
    "'; drop table phoneproof_records; --",
    "two\nlines.db",
    "-dash.db",
    "no-suffix",
    "a-wal",
    ":memory:.db",
    `${"x".repeat(200)}.db`,
  ])("%j is the name of the file, and another store opens it by that name (docs/stores.md)", async (name) => {
    const { folder } = place();
    const { ends } = changes();
    await opened({ file: join(folder, name) }).put("key", "value", ends);
    expect(readdirSync(folder)).toContain(name);
    expect(await opened({ file: join(folder, name) }).get("key")).toBe("value");
  });

  it.each<[string, unknown]>([
    ["an empty text", ""],
    ["null", null],
    ["a number", 7],
    ["a URL object", new URL("file:///tmp/phoneproof.db")],
    ["a buffer", Buffer.from("phoneproof.db")],
    ["an array", ["phoneproof.db"]],
  ])("%s as `file` throws a TypeError that names the option (docs/contract.md#undefined-options)", (_, file) => {
    expect(() => sqliteStore({ file } as never)).toThrow(TypeError);
    expect(() => sqliteStore({ file } as never)).toThrow(/`file`/);
  });

  it.each<[string, object, RegExp]>([
    ["neither file nor database", {}, /`file`/],
    ["both undefined", { file: undefined, database: undefined }, /`file`/],
    ["a busyTimeout of half a millisecond", { file: "x.db", busyTimeout: 0.5 }, /`busyTimeout`/],
    ["a busyTimeout below zero", { file: "x.db", busyTimeout: -1 }, /`busyTimeout`/],
    ["a busyTimeout beyond a minute", { file: "x.db", busyTimeout: 60_001 }, /`busyTimeout`/],
    ["a busyTimeout that is no number", { file: "x.db", busyTimeout: Number.NaN }, /`busyTimeout`/],
    ["synchronous in small letters", { file: "x.db", synchronous: "full" }, /`synchronous`/],
    ["synchronous with more than a name", { file: "x.db", synchronous: "FULL; drop table own" }, /`synchronous`/],
    ["a database that is a promise", { database: Promise.resolve() }, /`database`/],
    ["a database that is a path", { database: "phoneproof.db" }, /`database`/],
  ])("%s throws a TypeError that names the option (docs/contract.md#undefined-options)", (_, options, named) => {
    expect(() => sqliteStore(options as never)).toThrow(TypeError);
    expect(() => sqliteStore(options as never)).toThrow(named);
  });

  it("a relative path keeps its file when the process changes its working directory (docs/stores.md)", async () => {
    const [{ folder }, { folder: other }] = [place(), place()];
    const before = process.cwd();
    onTestFinished(() => process.chdir(before));
    process.chdir(folder);
    const store = opened({ file: "relative.db" });
    const one = serving(store, { storeTimeout: 60 });
    const { authentication_uuid: id } = await one.create(1);
    process.chdir(other);
    expect(tallied(await Promise.all(many(300, (n) => ending(one.create(n + 2)))))).toEqual({ pending: 300 });
    expect([files(folder), readdirSync(other)]).toEqual([["relative.db"], []]);
    expect(await opened({ file: join(folder, "relative.db") }).find(one.customer, id)).toMatchObject({ id });
  });

  it("a symbolic link, a relative path and the path itself are one file, with one cap (docs/contract.md#caps)", async () => {
    const { folder, file } = place();
    await opened({ file }).get("made");
    symlinkSync(file, join(folder, "link.db"));
    mkdirSync(join(folder, "inner"));
    symlinkSync(folder, join(folder, "inner", "back"));
    const paths = [file, join(folder, "link.db"), relative(process.cwd(), file), join(folder, "inner", "back", basename(file))];
    const customer = "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f";
    const all = paths.map((path) => serving(opened({ file: path, busyTimeout: 30_000 }), { customer, cap: 30, storeTimeout: 60 }));
    const ends = await Promise.all(all.flatMap((one, at) => many(20, (n) => ending(one.create(at * 100 + n)))));
    expect(tallied(ends)).toEqual({ pending: 30, rate_limited: 50 });
  });

  it("a dangling link of one process and the path of another are one file too (docs/stores.md)", async () => {
    const { folder, file } = place();
    symlinkSync(file, join(folder, "dangling.db"));
    const setup = { customer: "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f", cap: 20, options: { busyTimeout: 30_000 } };
    const [one, two] = await Promise.all([start({ ...setup, file: join(folder, "dangling.db") }), start({ ...setup, file })]);
    const ends = await Promise.all([
      one.call(
        "create",
        many(30, (n) => n),
      ),
      two.call(
        "create",
        many(30, (n) => n + 100),
      ),
    ]);
    expect(tallied(ends.flat())).toEqual({ pending: 20, rate_limited: 40 });
    expect(existsSync(file)).toBe(true);
  });

  it(":memory: is a separate database that no other store sees, and diagnose reports it (docs/contract.md#ping)", async () => {
    const [one, two] = [opened({ file: ":memory:" }), opened({ file: ":memory:" })];
    await one.put("key", "value", changes().ends);
    expect([await one.get("key"), await two.get("key"), existsSync(":memory:")]).toEqual(["value", undefined, false]);
    const found = await serving(one).verifier.diagnose();
    expect(found.filter(({ about, message }) => about === "store" && /memory/.test(message))).toHaveLength(1);
  });

  it("a file that the store did not create: an empty one is used, and the user's own tables in another one stay (docs/stores.md)", async () => {
    const { file } = place();
    execFileSync("touch", [file]);
    expect(await ending(serving(opened({ file })).create(1))).toBe("pending");
    const { file: used } = place();
    const mine = handle(used);
    mine.exec("pragma journal_mode = delete; create table own (n); insert into own values (7)");
    expect(await ending(serving(opened({ file: used })).create(1))).toBe("pending");
    expect(mine.prepare("select n from own").all()).toEqual([{ n: 7 }]);
  });

  it("tables of a newer phoneproof give 503: nothing is sent or written, and the log says what to update (docs/stores.md)", async () => {
    const { file } = place();
    await opened({ file }).get("made");
    const admin = handle(file);
    admin.exec("update phoneproof_schema set version = 4711");
    const one = serving(opened({ file }));
    expect(tallied(await Promise.all(many(3, (n) => ending(one.create(n)))))).toEqual({ unavailable: 3 });
    expect(one.sender.messages).toEqual([]);
    expect(String(one.log[0]?.fields["err"])).toMatch(/newer phoneproof.*update phoneproof/);
    expect(admin.prepare("select count(*) as n from phoneproof_records").all()).toEqual([{ n: 0 }]);
  });
});

describe("stores that share a handle or a file", () => {
  it("two on one handle keep the cap exact under 200 concurrent requests, and each finds what the other wrote (docs/contract.md#caps)", async () => {
    const database = handle(place().file);
    const customer = "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f";
    const carrier = sender();
    const [one, two] = many(2, () => serving(sqliteStore({ database }), { customer, cap: 60, storeTimeout: 60, sender: carrier })) as [Service, Service];
    const ends = await Promise.all(many(200, (n) => ending((n % 2 ? one : two).create(n))));
    expect(tallied(ends)).toEqual({ pending: 60, rate_limited: 140 });
    const checks = await Promise.all(carrier.messages.map(({ authentication_uuid: id, code }, at) => ending((at % 2 ? one : two).check(id, code))));
    expect(tallied(checks)).toEqual({ valid: 60 });
  });

  it("two on one handle lose no commit while another connection holds the lock (docs/stores.md)", async () => {
    const { file } = place();
    const database = handle(file);
    const stores = [sqliteStore({ database, busyTimeout: 30_000 }), sqliteStore({ database, busyTimeout: 30_000 })];
    const { record, sum } = changes();
    await stores[0]?.commit({ record: record() });
    const other = handle(file);
    other.exec("begin immediate");
    const work = many(60, (n) => stores[n % 2]?.commit({ claims: [sum("s")], record: record() }));
    for (let n = 0; n < 20; n++) await new Promise((done) => setImmediate(done));
    other.exec("rollback");
    expect((await Promise.all(work)).filter((result) => !result?.done)).toEqual([]);
    expect(await stores[1]?.commit({ asks: [sum("s")] })).toMatchObject({ asked: [60] });
  });

  it.each([1, 5, 40])(
    "close() during %i calls: each ends, acknowledged records are in the file, and a second close() resolves (docs/contract.md#stored-first)",
    async (count) => {
      const { file } = place();
      const store = sqliteStore({ file });
      await store.get("made");
      const { customer, record } = changes();
      const made = many(count, () => record());
      const work = made.map((one) => store.commit({ record: one }));
      const closed = store.close?.();
      const late = record();
      const after = store.commit({ record: late });
      const results = await Promise.allSettled([...work, after]);
      await closed;
      await store.close?.();
      const other = opened({ file });
      for (const [at, one] of [...made, late].entries())
        if (results[at]?.status === "fulfilled") expect(await other.find(customer, one.id)).toMatchObject({ id: one.id });
    },
  );

  it("close() while calls wait for another connection's lock: they end, and no rejected one is written later (docs/stores.md)", async () => {
    const { file } = place();
    const store = sqliteStore({ file, busyTimeout: 300 });
    const { customer, record } = changes();
    await store.commit({ record: record() });
    const other = handle(file);
    other.exec("begin immediate");
    const made = many(10, () => record());
    const work = made.map((one) => store.commit({ record: one }));
    await new Promise((done) => setImmediate(done));
    const closed = store.close?.();
    const results = await Promise.allSettled(work);
    other.exec("rollback");
    await closed;
    const peer = opened({ file });
    await peer.commit({ record: record() });
    for (const [at, one] of made.entries())
      expect((await peer.find(customer, one.id)) !== undefined, results[at]?.status).toBe(results[at]?.status === "fulfilled");
  });

  it("a program that closes its verifier ends by itself (docs/operations.md)", async () => {
    const { file } = place();
    const child = await start({ file });
    await child.call(
      "create",
      many(5, (n) => n),
    );
    let gone = false;
    child.process.once("exit", () => {
      gone = true;
    });
    await child.call("end");
    await eventually("the process ends", () => gone, 20_000);
  });
});

describe("a copy for a backup", () => {
  const hasShell = isInstalled("sqlite3", "sqlite3", "the backup of an SQLite file");

  it.runIf(hasShell)(
    "made with the documented command during creates: they succeed, and everything acknowledged before is in the copy (docs/stores.md)",
    async () => {
      const { folder, file } = place();
      const one = serving(opened({ file }), { storeTimeout: 60 });
      const before = await Promise.all(many(50, (n) => one.create(n)));
      let [going, next] = [true, 100];
      const load = (async () => {
        const ends: string[] = [];
        while (going) ends.push(await ending(one.create(next++)));
        return ends;
      })();
      // `.backup` starts again whenever another process writes; the program writes less than it copies.
      await promisify(execFile)("sqlite3", [file, `.timeout 5000`, `.backup '${join(folder, "copy.db")}'`]);
      going = false;
      const ends = await load;
      expect(tallied(ends)).toEqual({ pending: ends.length });
      const copy = opened({ file: join(folder, "copy.db") });
      for (const { authentication_uuid: id } of before) expect(await copy.find(one.customer, id)).toMatchObject({ id });
      const restored = serving(copy, { customer: one.customer });
      const [{ authentication_uuid: id } = { authentication_uuid: "" }] = before;
      expect(await ending(restored.check(id, one.sender.codeOf(id)))).toBe("valid");
    },
  );
});
