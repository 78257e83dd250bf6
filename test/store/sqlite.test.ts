import { type ChildProcess, fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { type SqliteDatabase, type SqliteStoreOptions, sqliteStore } from "../../adapters/store/sqlite/index.js";
import type { Change, RecordWrite, Store } from "../../src/ports/store.js";
import { newNumber, serviceOn } from "../support/redis-service.js";
import { newFolder, type OwnHandle, openSqlite } from "../support/sqlite.js";
import { bundle } from "./processes.js";

const minute = 60_000;

/** A commit that adds to a sum and to a window, with a record. */
function change(fields: Partial<RecordWrite> = {}): Change & { readonly record: RecordWrite } {
  const now = fields.now ?? Date.now();
  const record = { customer: randomUUID(), id: randomUUID(), tokens: [randomUUID()], data: "data", now, keepUntil: now + minute, ...fields };
  const { customer, keepUntil } = record;
  return {
    claims: [
      { window: `${customer}:w`, member: randomUUID(), limit: 9, now, since: now - minute, keepUntil },
      { sum: `${customer}:s`, part: 1, parts: 1, weight: 7, now, keepUntil },
    ],
    record,
  };
}

const opened: OwnHandle[] = [];
const folders: ReturnType<typeof newFolder>[] = [];
afterEach(() => {
  for (const handle of opened.splice(0)) handle.close();
  for (const { remove } of folders.splice(0)) remove();
});

function folder() {
  const made = newFolder();
  folders.push(made);
  return made;
}

function open(file: string): OwnHandle {
  const handle = openSqlite(file);
  opened.push(handle);
  return handle;
}

const rows = (handle: OwnHandle, table: string) => (handle.prepare(`SELECT count(*) AS rows FROM phoneproof_${table}`).get() as { rows: number }).rows;
const allRows = (handle: OwnHandle) => ["records", "members", "sums", "values"].map((table) => rows(handle, table));

describe("the options of sqliteStore", () => {
  const database = openSqlite(":memory:");
  const wrong: readonly (readonly [string, unknown, RegExp])[] = [
    ["nothing", undefined, /the options are missing/],
    ["neither", {}, /option `database` is missing: pass an open database, or option `file`/],
    ["a path as `database`", { database: "store.db" }, /option `database` must be an open database; for a path use option `file`/],
    ["a promise", { database: Promise.resolve(database) }, /option `database` is a promise: await it first/],
    ["a D1 database", { database: { prepare() {}, exec() {}, batch() {} } }, /option `database` is a D1 database/],
    ["the package sqlite3", { database: { prepare() {}, exec() {}, parallelize() {} } }, /option `database` is of the package sqlite3, which is asynchronous/],
    ["an object", { database: {} }, /option `database` must be an open database of node:sqlite, better-sqlite3, libsql or bun:sqlite/],
    ["both", { database, file: "store.db" }, /option `file` must be left out where `database` is given/],
    ["an empty path", { file: "" }, /option `file` must be the path of a file/],
    ["a wrong `synchronous`", { database, synchronous: "full" }, /option `synchronous` must be one of OFF, NORMAL, FULL, EXTRA/],
    ["a wrong `busyTimeout`", { database, busyTimeout: 1.5 }, /option `busyTimeout` must be an integer from 0 to 60,000/],
    ["an unknown option", { database, path: "x" }, /option path is not an option/],
  ];

  it.each(wrong)("%s is a TypeError that names the option and the fix", (_, options, message) => {
    const build = () => sqliteStore(options as SqliteStoreOptions);
    expect(build).toThrow(TypeError);
    expect(build).toThrow(message);
  });

  it("a file is neither opened nor created before the store is used", async () => {
    const { file } = folder();
    const store = sqliteStore({ file });
    expect(existsSync(file)).toBe(false);
    await store.put("key", "value", { now: 0, keepUntil: minute });
    expect(existsSync(file)).toBe(true);
    await store.close?.();
  });

  it.each([
    [undefined, "FULL"],
    ["NORMAL", "NORMAL"],
    ["EXTRA", "EXTRA"],
  ] as const)("synchronous %s: the database reports %s, and uses write-ahead logging", async (synchronous, expected) => {
    const store = sqliteStore({ database: open(folder().file), ...(synchronous && { synchronous }) });
    expect(await store.inspect?.(0)).toEqual({ kind: "sqlite", time: expect.any(Number), due: 0, settings: { journal_mode: "wal", synchronous: expected } });
  });

  it("close closes a file that the store opened, but not a handle that was passed in; a later call reopens the file", async () => {
    const { file } = folder();
    const [own, other] = [open(file), sqliteStore({ file })];
    const store = sqliteStore({ database: own });
    await other.put("key", "value", { now: 0, keepUntil: minute });
    await Promise.all([other.close?.(), store.close?.()]);
    expect(await other.get("key")).toBe("value");
    await other.close?.();
    expect(rows(own, "values")).toBe(1);
  });
});

describe("the tables", () => {
  it("share the file with the application's tables, and are created once if ten handles open it at the same time", async () => {
    const { file } = folder();
    open(file).exec("PRAGMA user_version = 7; CREATE TABLE users (id INTEGER PRIMARY KEY)");
    const stores = Array.from({ length: 10 }, () => sqliteStore({ database: open(file) }));
    const changes = stores.map(() => change());
    expect(await Promise.all(stores.map((store, at) => store.commit(changes[at] as Change)))).toEqual(
      stores.map(() => ({ done: true, counts: [1, 7], asked: [] })),
    );
    const names = (open(file).prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").all() as { name: string }[]).map(({ name }) => name);
    expect(names).toEqual(["phoneproof_members", "phoneproof_records", "phoneproof_schema", "phoneproof_sums", "phoneproof_values", "users"]);
    expect(open(file).prepare("PRAGMA user_version").get()).toMatchObject({ user_version: 7 });
  });

  it("whose index was dropped are reported with the statement that makes it", async () => {
    const own = open(folder().file);
    const store = sqliteStore({ database: own });
    expect((await store.inspect?.(0))?.missing).toBeUndefined();
    own.exec("DROP INDEX phoneproof_wake");
    const [missing = ""] = (await store.inspect?.(0))?.missing ?? [];
    own.exec(/: run (.*)$/.exec(missing)?.[1] as string);
    expect((await store.inspect?.(0))?.missing).toBeUndefined();
  });

  it("that were dropped, or whose names others have: the error names the fix", async () => {
    const dropped = open(folder().file);
    await sqliteStore({ database: dropped }).get("key");
    dropped.exec("DROP TABLE phoneproof_values");
    await expect(sqliteStore({ database: dropped }).get("key")).rejects.toThrow(/no such table.*: restore it from a backup, or name another file/);
    const taken = open(folder().file);
    taken.exec("CREATE TABLE phoneproof_records (own TEXT)");
    await expect(sqliteStore({ database: taken }).get("key")).rejects.toThrow(/already exists.*: restore it from a backup, or name another file/);
  });

  it("of a newer phoneproof are left unchanged, and the error asks to update", async () => {
    const { file } = folder();
    const own = open(file);
    await sqliteStore({ database: own }).get("key");
    own.exec("UPDATE phoneproof_schema SET version = 99");
    await expect(sqliteStore({ database: open(file) }).get("key")).rejects.toThrow(
      "the database is of a newer phoneproof (its tables are at step 99, this one knows 1): update phoneproof",
    );
  });
});

describe("what has expired", () => {
  it("is deleted a little with each write, and nothing else is", async () => {
    const own = open(folder().file);
    const store = sqliteStore({ database: own, synchronous: "OFF" });
    const ended = { now: Date.now() + 3_600_000, keepUntil: Date.now() };
    for (let i = 0; i < 200; i++) {
      await store.commit(change(ended));
      await store.put(`ended ${i}`, "value", ended);
      await store.tally([{ counter: `ended ${i}`, by: 1, ...ended }], []);
    }
    const kept = change();
    await store.commit(kept);
    await store.put("kept", "value", kept.record);
    // Deletion waits ten minutes after the end: these ended longer ago.
    for (const table of ["records", "members", "sums", "values"])
      own.exec(`UPDATE phoneproof_${table} SET ends = ends - 1200000 WHERE ends < ${Date.now() + 1_000}`);
    expect(allRows(own)).toEqual([201, 201, 401, 201]);
    for (let i = 0; i < 60; i++) await store.lease(0, 1, 1);
    expect(allRows(own)).toEqual([1, 1, 1, 1]);
    expect(await store.get("kept")).toBe("value");
  });

  it("is determined by the machine's clock if a caller's is two days behind or ahead", async () => {
    const own = open(folder().file);
    const store = sqliteStore({ database: own });
    for (const skew of [-2, 0, 2]) await store.commit(change({ now: Date.now() + skew * 86_400_000 }));
    for (const { ends } of own.prepare("SELECT ends FROM phoneproof_records").all() as { ends: number }[])
      expect(Math.abs(ends - Date.now() - minute)).toBeLessThan(30_000);
  });
});

describe("writes in one turn of the event loop", () => {
  it("share one transaction, and none is acknowledged before it is stored", async () => {
    const own = open(folder().file);
    const log: string[] = [];
    const database: SqliteDatabase = {
      exec(sql) {
        log.push(sql);
        return own.exec(sql);
      },
      prepare: (sql) => own.prepare(sql),
    };
    const store = sqliteStore({ database });
    await store.get("key");
    log.length = 0;
    const writes = Array.from({ length: 40 }, () => store.commit(change()).then(() => log.push("done")));
    await Promise.all(writes);
    expect(log).toEqual(["BEGIN IMMEDIATE", "COMMIT", ...writes.map(() => "done")]);
  });

  it("are done one by one if one fails: the others are stored, that one is not", async () => {
    const own = open(folder().file);
    const store = sqliteStore({ database: own });
    await store.get("key");
    const changes = Array.from({ length: 10 }, () => change());
    const broken = changes[4] as Change & { record: RecordWrite };
    own.exec(`CREATE TRIGGER broken BEFORE INSERT ON phoneproof_records WHEN NEW.id = '${broken.record.id}' BEGIN SELECT RAISE(ABORT, 'no'); END`);
    const outcomes = await Promise.allSettled(changes.map((one) => store.commit(one)));
    expect(outcomes.map(({ status }) => status)).toEqual(changes.map((one) => (one === broken ? "rejected" : "fulfilled")));
    expect(allRows(own)).toEqual([9, 9, 9, 0]);
  });
});

/** Checks that a create returns 503 and sends nothing; returns the errors in the log. */
async function refusal(store: Store): Promise<string> {
  const faults: string[] = [];
  const logged = (fields: { err?: string }) => void faults.push(String(fields.err));
  const service = serviceOn(store, { logger: { info() {}, warn: logged, error: logged } as never });
  const { status, body, retryAfter } = await service.create(newNumber());
  expect([status, body.code, retryAfter, service.sent.length]).toEqual([503, "unavailable", "2", 0]);
  return faults.join("\n");
}

describe("failures: a clear error, 503, and nothing is sent", () => {
  /** A file with the tables. */
  async function made(): Promise<string> {
    const { file } = folder();
    const own = open(file);
    await sqliteStore({ database: own }).get("key");
    own.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    return file;
  }

  it("a read-only database", async () => {
    const own = open(await made());
    own.exec("PRAGMA query_only = ON");
    expect(await refusal(sqliteStore({ database: own }))).toMatch(/the database is read-only \(.*\): open it for writing/);
  });

  it("a full disk: no write is stored in part, and requests are served again once there is room", async () => {
    const own = open(await made());
    const store = sqliteStore({ database: own });
    await store.get("key");
    const { page_count: pages } = own.prepare("PRAGMA page_count").get() as { page_count: number };
    own.exec(`PRAGMA max_page_count = ${pages}`);
    const large = () => change({ data: "x".repeat(60_000) });
    await expect(store.commit(large())).rejects.toThrow(/the database is full \(.*\): make room on the disk/);
    const outcomes = await Promise.allSettled(Array.from({ length: 5 }, () => store.commit(large())));
    expect(outcomes.map(({ status }) => status)).toEqual(outcomes.map(() => "rejected"));
    expect(allRows(own)).toEqual([0, 0, 0, 0]);
    const service = serviceOn(store);
    const answers = [];
    for (let i = 0; i < 300; i++) answers.push(await service.create(newNumber()));
    expect(answers.at(-1)?.status).toBe(503);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(service.sent.length);
    own.exec("PRAGMA max_page_count = 1000000");
    expect((await service.create(newNumber())).status).toBe(200);
  });

  it("a file locked by another process: the event loop is not blocked, and requests are served once it is unlocked", async () => {
    const file = await made();
    const [store, other] = [sqliteStore({ database: open(file), busyTimeout: 1_000 }), open(file)];
    other.exec("BEGIN IMMEDIATE");
    let [longest, last] = [0, performance.now()];
    const ticking = setInterval(() => {
      longest = Math.max(longest, performance.now() - last);
      last = performance.now();
    }, 1);
    expect(await refusal(store)).toMatch(
      /the database is locked by another connection, in this process or another \(.*\): end the transaction that is kept open/,
    );
    clearInterval(ticking);
    expect(longest).toBeLessThan(500);
    expect(await store.get("key")).toBe(undefined);
    other.exec("ROLLBACK");
    expect((await serviceOn(store).create(newNumber())).status).toBe(200);
  });

  it("a lock that is released in time is waited for", async () => {
    const file = await made();
    const [store, other] = [sqliteStore({ database: open(file), busyTimeout: 60_000 }), open(file)];
    other.exec("BEGIN IMMEDIATE");
    const committing = store.commit(change());
    await store.get("key");
    setTimeout(() => other.exec("ROLLBACK"), 20);
    expect((await committing).done).toBe(true);
  });

  it("a handle with an open transaction", async () => {
    const own = open(await made());
    const store = sqliteStore({ database: own, busyTimeout: 20 });
    await store.get("key");
    own.exec("BEGIN");
    expect(await refusal(store)).toMatch(/the database has a transaction or a query open \(.*\): give the store its own handle/);
    own.exec("ROLLBACK");
  });

  it("a file that is not a database, and a damaged one", async () => {
    const { file } = folder();
    writeFileSync(file, "not a database at all, but some text that is longer than a header of a hundred bytes would be, which is enough");
    expect(await refusal(sqliteStore({ file }))).toMatch(/the database is corrupt, or is not an SQLite database \(.*\): restore it from a backup/);
    const damaged = await made();
    const bytes = readFileSync(damaged);
    bytes.fill(0x55, 100);
    writeFileSync(damaged, bytes);
    expect(await refusal(sqliteStore({ file: damaged }))).toMatch(/the database is corrupt, or is not an SQLite database/);
  });

  it.each(["", "-wal", "-shm"])("a file whose path%s was deleted or replaced while it was open", async (end) => {
    const { file } = folder();
    const store = sqliteStore({ file });
    await store.commit(change());
    rmSync(file + end);
    expect(await refusal(store)).toMatch(/its -wal or its -shm was deleted or replaced while it was open: restart every process/);
    writeFileSync(file + end, "");
    await expect(store.get("key")).rejects.toThrow("was deleted or replaced");
    await store.close?.();
  });

  it("a folder that does not exist", async () => {
    const { folder: parent } = folder();
    const file = join(parent, "none", "store.db");
    const store = sqliteStore({ file });
    expect(await refusal(store)).toMatch(/the database cannot be opened \(.*\): name a file, create its folder/);
  });

  it("a corrupt record is named in the error, left unchanged, and does not hold up others", async () => {
    const own = open(await made());
    const store = sqliteStore({ database: own });
    const [broken, whole] = [change({ wakeAt: 1 }), change({ wakeAt: 2 })];
    for (const one of [broken, whole]) await store.commit(one);
    const { customer, id } = broken.record;
    own.exec(`UPDATE phoneproof_records SET tokens = 'broken' WHERE id = '${id}'`);
    await expect(store.find(customer, id)).rejects.toThrow(`the record of authentication ${id} of customer ${customer} is corrupt; it was left as it is`);
    await expect(store.lease(1, 10, 3)).rejects.toThrow("is corrupt");
    expect((await store.lease(5, 10, 10)).map((record) => record.id)).toEqual([whole.record.id]);
  });
});

describe("a process killed during its writes", () => {
  it("leaves each commit complete or absent, and each acknowledged one complete", async () => {
    const { file } = folder();
    const { script, outDir } = await bundle(new URL("../support/sqlite-writer.ts", import.meta.url));
    try {
      for (let round = 0; round < 5; round++) {
        const child: ChildProcess = fork(script, [file], { execArgv: [] });
        const acknowledged: string[] = [];
        child.on("message", (id: string) => acknowledged.push(id));
        while (acknowledged.length < 100 + round * 37) await once(child, "message");
        child.kill("SIGKILL");
        await once(child, "exit");
        const own = open(file);
        const ids = (own.prepare("SELECT id FROM phoneproof_records").all() as { id: string }[]).map(({ id }) => id);
        expect(acknowledged.filter((id) => !ids.includes(id))).toEqual([]);
        const { held } = own.prepare("SELECT sum(held) AS held FROM phoneproof_sums").get() as { held: number };
        expect([rows(own, "members"), held]).toEqual([ids.length, 7 * ids.length]);
        expect(own.prepare("PRAGMA integrity_check").get()).toMatchObject({ integrity_check: "ok" });
      }
    } finally {
      rmSync(outDir, { recursive: true });
    }
  });
});
