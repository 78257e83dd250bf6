import { randomUUID } from "node:crypto";
import { describe, expect, it, onTestFinished } from "vitest";
import { sqliteStore } from "../../adapters/store/sqlite/index.js";
import type { Store } from "../../src/ports/store.js";
import { storeContract } from "../../src/testing/index.js";
import { nodeOf } from "../package/programs.js";
import { libraries, type OpenSqlite, type OwnHandle } from "../support/sqlite.js";
import { usesUpCap } from "./cap.js";
import { changes, ending, eventually, tallied } from "./kit.js";
import { handle, many, opened, place, processes, serving } from "./sqlite-kit.js";

const start = processes();

/** Races, and values that a connection might read differently from how they were written. */
const like = "byte for byte|apart|racers|earliest first|newest first|floor|delete: removes records|revoke: removes the members";
const contract = storeContract({ racers: 4 }).filter(({ name }) => new RegExp(like).test(name));

async function failures(store: Store, peer: Store = store): Promise<string[]> {
  const failed: string[] = [];
  for (const { name, run } of contract) await run({ store, peer }).catch((error: Error) => failed.push(`${name}: ${error.message}`));
  return failed;
}

/** Runs pragmas on a handle, whether or not they return rows. */
function set(database: OwnHandle, pragmas: readonly string[]): void {
  for (const pragma of pragmas) database.exec(`pragma ${pragma}`);
}

const settingOf = (database: OwnHandle, pragma: string): unknown => Object.values(database.prepare(`pragma ${pragma}`).all()[0] as object)[0];

/** Settings of the user's connection or of the file, none of them SQLite's default. */
const settings: readonly (readonly [string, readonly string[]])[] = [
  [
    "strict ones, and no wait",
    [
      ...["foreign_keys", "recursive_triggers", "cell_size_check", "case_sensitive_like", "defer_foreign_keys"].map((name) => `${name} = on`),
      ...["trusted_schema = off", "ignore_check_constraints = on", "automatic_index = off", "read_uncommitted = on", "busy_timeout = 0"],
    ],
  ],
  ["rows in the reverse order, columns under no short names", ["reverse_unordered_selects = on", "short_column_names = off", "empty_result_callbacks = on"]],
  [
    "small pages that are given back, texts in UTF-16, hardly a cache",
    ["page_size = 512", "auto_vacuum = full", "encoding = 'UTF-16le'", "cache_size = 1", "cache_spill = 1", "temp_store = file"],
  ],
  [
    "large pages given back on request, UTF-16 in the other order, a mapped file, a checkpoint after every page",
    ["page_size = 65536", "auto_vacuum = incremental", "encoding = 'UTF-16be'", "mmap_size = 268435456", "wal_autocheckpoint = 1", "journal_size_limit = 0"],
  ],
  ...["delete", "persist", "memory", "off"].map((mode) => [`a journal ${mode}, no checkpoint`, [`journal_mode = ${mode}`, "wal_autocheckpoint = 0"]] as const),
];

describe.each(Object.entries(libraries))("a database of %s with non-default settings", (_, open: OpenSqlite) => {
  function own(file: string): OwnHandle {
    const made = open(file);
    onTestFinished(() => made.close());
    return made;
  }

  it.each(settings)("%s: the store passes its contract tests alongside another handle (docs/contract.md#dumb-store)", async (_, pragmas) => {
    const { file } = place();
    const [one, two] = [own(file), own(file)];
    set(one, pragmas);
    one.exec("create table own (text text primary key, other text references own (text))");
    set(
      two,
      pragmas.filter((pragma) => !/^(journal_mode|page_size|auto_vacuum|encoding)/.test(pragma)),
    );
    // Waiting for the disk is not tested here.
    const synchronous = "OFF";
    expect(await failures(sqliteStore({ database: one, synchronous }), sqliteStore({ database: two, synchronous }))).toEqual([]);
    expect(one.prepare("pragma integrity_check").all()).toEqual([{ integrity_check: "ok" }]);
  });

  it("the handle gets the documented settings, whatever was set before: WAL, FULL, secure_delete (docs/stores.md)", async () => {
    const { file } = place();
    const database = own(file);
    set(database, ["journal_mode = delete", "synchronous = off", "secure_delete = off"]);
    const store = sqliteStore({ database });
    await store.commit({ record: changes().record() });
    expect(["journal_mode", "synchronous", "secure_delete"].map((pragma) => settingOf(database, pragma))).toEqual(["wal", 2, 1]);
    expect(await store.inspect?.(0)).toMatchObject({ settings: { journal_mode: "wal", synchronous: "FULL" } });
  });

  it.each([
    ["OFF", 0],
    ["NORMAL", 1],
    ["FULL", 2],
    ["EXTRA", 3],
  ] as const)("the option synchronous %s is set on the connection (docs/stores.md)", async (name, number) => {
    const { file } = place();
    const database = own(file);
    const store = sqliteStore({ database, synchronous: name });
    await store.commit({ record: changes().record() });
    expect(settingOf(database, "synchronous")).toBe(number);
    expect((await store.inspect?.(0))?.settings).toMatchObject({ synchronous: name });
  });

  it("locking_mode EXCLUSIVE: the store passes its contract tests alone (docs/contract.md#dumb-store)", async () => {
    const { file } = place();
    const database = own(file);
    set(database, ["locking_mode = exclusive"]);
    expect(await failures(sqliteStore({ database, synchronous: "OFF" }))).toEqual([]);
  });

  it("query_only: 503, nothing is sent, and the log has the reason; once it is off, requests work (docs/stores.md)", async () => {
    const { file } = place();
    const database = own(file);
    const one = serving(sqliteStore({ database }));
    expect(await ending(one.create(1))).toBe("pending");
    set(database, ["query_only = on"]);
    expect(tallied(await Promise.all(many(5, (n) => ending(one.create(n + 2)))))).toEqual({ unavailable: 5 });
    expect(one.sender.messages).toHaveLength(1);
    expect(String(one.log[0]?.fields["err"])).toMatch(/read-only/);
    set(database, ["query_only = off"]);
    await eventually("it serves", async () => (await ending(one.create(20))) === "pending");
  });

  it("a database in memory: the store passes its contract tests, and diagnose reports it (docs/contract.md#ping)", async () => {
    const store = sqliteStore({ database: own(":memory:") });
    expect(await failures(store)).toEqual([]);
    const found = await serving(store).verifier.diagnose();
    expect(found.filter(({ about, message }) => about === "store" && /memory/.test(message))).toHaveLength(1);
  });

  it("another connection's reader while the journal is DELETE: only acknowledged creates send; later all work, with a WAL (docs/operations.md)", async () => {
    const { file } = place();
    const reader = own(file);
    reader.exec("create table own (n); insert into own values (1); begin");
    expect(reader.prepare("select n from own").all()).toEqual([{ n: 1 }]);
    const database = own(file);
    const one = serving(sqliteStore({ database, busyTimeout: 50 }));
    const ends = await Promise.all(many(5, (n) => ending(one.create(n))));
    reader.exec("commit");
    expect(one.sender.messages).toHaveLength(tallied(ends)["pending"] ?? 0);
    await eventually("it serves", async () => (await ending(one.create(20))) === "pending");
    expect(settingOf(database, "journal_mode")).toBe("wal");
  });

  it("the user's tables, triggers and version stay as they are, and all names of the store begin with phoneproof_ (docs/stores.md)", async () => {
    const { file } = place();
    const mine = own(file);
    mine.exec(`
      create table record (customer text, id text, data text);
      create table "values" (key text primary key, value text);
      create table log (n integer primary key, told text);
      create view members as select * from record;
      create trigger told after insert on record begin insert into log (told) values (new.id); end;
      create temp table sums (sum text);
      pragma user_version = 42;
      pragma application_id = 4711;
    `);
    const before = mine.prepare("select name from sqlite_schema order by name").all() as { name: string }[];
    const synchronous = "OFF";
    expect(await failures(sqliteStore({ database: mine, synchronous }), sqliteStore({ database: own(file), synchronous }))).toEqual([]);
    const after = mine.prepare("select name, tbl_name from sqlite_schema").all() as { name: string; tbl_name: string }[];
    const added = after.filter(({ name }) => !before.some((one) => one.name === name));
    expect(added.length).toBeGreaterThan(0);
    expect(added.filter(({ name, tbl_name }) => !tbl_name.startsWith("phoneproof_") || !/^(phoneproof_|sqlite_autoindex_phoneproof_)/.test(name))).toEqual([]);
    expect([settingOf(mine, "user_version"), settingOf(mine, "application_id")]).toEqual([42, 4711]);
    expect(["record", '"values"', "log", "members", "sums"].map((table) => mine.prepare(`select count(*) as n from ${table}`).all())).toEqual(
      many(5, () => [{ n: 0 }]),
    );
  });

  it("temporary tables of the user's handle do not keep the store's data out of the file (docs/contract.md#stored-first)", async () => {
    const { file } = place();
    const [mine, peer] = [own(file), own(file)];
    const { record, customer } = changes();
    const there = sqliteStore({ database: peer });
    await there.commit({ record: record() });
    const tables = peer.prepare("select name, sql from sqlite_schema where type = 'table' and name like 'phoneproof%'").all() as {
      name: string;
      sql: string;
    }[];
    for (const { name } of tables) mine.exec(`create temp table "shadow_${name}" (n)`);
    const made = record();
    const done = await sqliteStore({ database: mine }).commit({ record: made });
    expect(done).toMatchObject({ done: true });
    expect(await there.find(customer, made.id)).toMatchObject({ id: made.id });
  });
});

describe("the options of a handle", () => {
  const options: readonly (readonly [string, string, Readonly<Record<string, unknown>>])[] = [
    ["node:sqlite", "22", { enableForeignKeyConstraints: false, enableDoubleQuotedStringLiterals: true }],
    ["node:sqlite", "24", { readBigInts: true }],
    ["node:sqlite", "24", { timeout: 60_000, allowBareNamedParameters: false, allowUnknownNamedParameters: true, defensive: true }],
  ];
  it.each(options)("%s on Node.js %s with %o: the store passes its contract tests (docs/contract.md#dumb-store)", async (library, version, open) => {
    const node = await nodeOf(version);
    if (node === undefined) return;
    const { file } = place();
    const child = await start({ file, library, open, options: { synchronous: "OFF" } }, node);
    const { failed, cases } = await child.call("contract", like, 4);
    expect(failed).toEqual([]);
    expect(cases).toBe(contract.length);
  });

  it.each(Object.keys(libraries).filter((name) => name !== "node:sqlite"))(
    "%s with defaultSafeIntegers(): the store passes its contract tests (docs/contract.md#dumb-store)",
    async (name) => {
      const { file } = place();
      const database = (libraries[name] as OpenSqlite)(file) as OwnHandle & { defaultSafeIntegers(on: boolean): void };
      onTestFinished(() => database.close());
      database.defaultSafeIntegers(true);
      expect(await failures(sqliteStore({ database, synchronous: "OFF" }))).toEqual([]);
    },
  );

  // better-sqlite3 is not a dependency here: its binary is built where it is installed.
  const readOnly: [library: string, version: string | undefined, open: Record<string, boolean>][] = [["node:sqlite", "22", { readOnly: true }]];
  if (process.env["BETTER_SQLITE3"]) readOnly.push(["better-sqlite3", undefined, { readonly: true, fileMustExist: true }]);
  it.each(readOnly)("%s on Node.js %s opened with %o: 503, nothing is sent, the log has the reason (docs/stores.md)", async (library, version, open) => {
    const node = version === undefined ? process.execPath : await nodeOf(version);
    if (node === undefined) return;
    const { file } = place();
    await opened({ file }).get("made");
    const child = await start({ file, library, open }, node);
    const five = many(5, (n) => n);
    expect(tallied(await child.call("create", five))).toEqual({ unavailable: 5 });
    expect([await child.call("sent"), (await child.call("log")).join("\n")]).toEqual([[], expect.stringMatching(/read-only/)]);
  });
});

describe("a handle that the user also uses", () => {
  it.each(Object.entries(libraries))(
    "%s: a call during the user's transaction gets 503 or is stored for good: a rollback undoes nothing acknowledged (docs/contract.md#stored-first)",
    async (_, open) => {
      const { file } = place();
      const mine = open(file);
      onTestFinished(() => mine.close());
      mine.exec("create table own (n)");
      const store = sqliteStore({ database: mine });
      const one = serving(store, { cap: 12 });
      expect(await ending(one.create(0))).toBe("pending");
      const rollbacks: string[] = [];
      for (let round = 0; round < 5; round++) {
        mine.exec("begin; insert into own values (1)");
        const ends = many(5, (n) => ending(one.create(1 + round * 5 + n)));
        // In the same turn at first, and later while the calls are in progress or have their response.
        for (let n = 0; n < round; n++) await new Promise((done) => setImmediate(done));
        if (round === 4) await Promise.all(ends);
        mine.exec("rollback");
        rollbacks.push(...(await Promise.all(ends)));
      }
      expect(Object.keys(tallied(rollbacks)).filter((end) => !["pending", "unavailable", "rate_limited"].includes(end))).toEqual([]);
      expect(mine.prepare("select count(*) as n from own").all()).toEqual([{ n: 0 }]);
      const there = await Promise.all(one.sender.messages.map(({ authentication_uuid: id }) => store.find(one.customer, id)));
      expect(there.filter((record) => record === undefined)).toEqual([]);
      await usesUpCap(one, 12, 100);
    },
  );

  it.each(Object.entries(libraries))(
    "%s: an open transaction of the user is neither committed nor rolled back, and the log names the fix (docs/stores.md)",
    async (_, open) => {
      const { file } = place();
      const mine = open(file);
      onTestFinished(() => mine.close());
      mine.exec("create table own (n)");
      const one = serving(sqliteStore({ database: mine }));
      const { authentication_uuid: id } = await one.create(0);
      mine.exec("begin; insert into own values (1)");
      const ends = [...(await Promise.all(many(3, (n) => ending(one.create(n + 1))))), await ending(one.check(id, one.wrong(id)))];
      expect(tallied(ends)).toEqual({ unavailable: 4 });
      expect(String(one.log[0]?.fields["err"])).toMatch(/has a transaction or a query open.*give the store its own handle/);
      mine.exec("insert into own values (2)");
      const other = handle(file);
      const seen = () => other.prepare("select count(*) as n from own").all();
      if (_ === "libsql" || _ === "node:sqlite") expect(seen()).toEqual([{ n: 0 }]);
      mine.exec("commit");
      expect(mine.prepare("select count(*) as n from own").all()).toEqual([{ n: 2 }]);
      expect(await ending(one.check(id, one.sender.codeOf(id)))).toBe("valid");
      await eventually("it serves", async () => (await ending(one.create(50))) === "pending");
    },
  );

  it.each(Object.entries(libraries))(
    "%s: a handle closed by the user gives 503, only acknowledged creates are sent, and the store's close() resolves (docs/contract.md#fail-closed)",
    async (_, open) => {
      const { file } = place();
      const mine = open(file);
      const store = sqliteStore({ database: mine });
      const one = serving(store);
      const { authentication_uuid: id } = await one.create(0);
      const under = many(5, (n) => ending(one.create(n + 1)));
      mine.close();
      const ends = await Promise.all([...under, ...many(5, (n) => ending(one.create(n + 10))), ending(one.check(id, one.sender.codeOf(id)))]);
      const counts = tallied(ends);
      expect(Object.keys(counts).filter((end) => end !== "unavailable" && end !== "pending")).toEqual([]);
      expect(one.sender.messages).toHaveLength(1 + (counts["pending"] ?? 0));
      expect(counts["unavailable"]).toBeGreaterThan(0);
      await expect(store.close?.() ?? Promise.resolve()).resolves.toBeUndefined();
      await expect(store.find(one.customer, randomUUID())).rejects.toThrow();
    },
  );

  it.each(Object.entries(libraries))("%s: the store's close() leaves the user's handle open (docs/stores.md)", async (_, open) => {
    const mine = open(place().file);
    onTestFinished(() => mine.close());
    const store = sqliteStore({ database: mine });
    await store.commit({ record: changes().record() });
    await store.close?.();
    await store.close?.();
    expect(mine.prepare("select 1 as n").all()).toEqual([{ n: 1 }]);
  });
});
