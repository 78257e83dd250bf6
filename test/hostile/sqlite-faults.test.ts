import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { isInstalled } from "../support/programs.js";
import { usesUpCap } from "./cap.js";
import { changes, ending, eventually, tallied } from "./kit.js";
import { deadline, handle, holds, many, opened, place, processes, serving } from "./sqlite-kit.js";

const start = processes();

const turn = () => new Promise((done) => setTimeout(done, 5));

describe("a file that others write to or lock", () => {
  it.each([1, 20, 100])(
    "creates wait for another transaction that ends after %i turns of this event loop, and none is rejected (docs/stores.md)",
    async (turns) => {
      const { file } = place();
      const one = serving(opened({ file, busyTimeout: 30_000 }), { storeTimeout: 60 });
      expect(await ending(one.create(0))).toBe("pending");
      const other = handle(file);
      other.exec("create table own (n); begin immediate; insert into own values (1)");
      const ends = many(30, (n) => ending(one.create(n + 1)));
      let over = false;
      void Promise.race(ends).then(() => {
        over = true;
      });
      for (let n = 0; n < turns; n++) await turn();
      // Only this process can end the other transaction: a wait that blocked its event loop would time out here.
      expect([over, one.sender.messages.length]).toEqual([false, 1]);
      other.exec("commit");
      expect(tallied(await Promise.all(ends))).toEqual({ pending: 30 });
      expect(one.sender.messages).toHaveLength(31);
    },
  );

  it("a transaction that stays open gives 503 in time: nothing is sent or used up, and the log has the reason and the fix (docs/contract.md#fail-closed)", async () => {
    const { file } = place();
    const one = serving(opened({ file }), { cap: 20 });
    const { authentication_uuid: id } = await one.create(0);
    const other = handle(file);
    other.exec("begin immediate");
    const began = performance.now();
    const ends = await Promise.all([
      ...many(60, (n) => ending(one.create(n + 1))),
      ...many(9, () => ending(one.check(id, one.wrong(id)))),
      ending(one.retry(id)),
    ]);
    expect(performance.now() - began).toBeLessThan(deadline);
    expect(ends.filter((end) => end !== "unavailable" && end !== "denied")).toEqual([]);
    expect(one.sender.messages).toHaveLength(1);
    const said = one.log.map(({ message, fields }) => `${message} ${String(fields["err"])}`).join("\n");
    expect(said).toMatch(/locked by another connection/);
    expect(said).toMatch(/busyTimeout/);
    other.exec("rollback");
    await usesUpCap(one, 20);
    // None of the nine was counted for good: all five guesses are left.
    const five: string[] = [];
    for (let n = 0; n < 5; n++) five.push(await ending(one.check(id, one.wrong(id))));
    expect([...five, await ending(one.check(id, one.sender.codeOf(id)))]).toEqual([...many(5, () => "invalid"), "rate_limited"]);
  });

  it("busyTimeout 0: a call rejects as soon as it finds the lock taken (docs/stores.md)", async () => {
    const { file } = place();
    const store = opened({ file, busyTimeout: 0 });
    const { record } = changes();
    await store.commit({ record: record() });
    const other = handle(file);
    other.exec("begin immediate");
    const began = performance.now();
    const ends = await Promise.allSettled(many(20, () => store.commit({ record: record() })));
    expect(ends.map(({ status }) => status)).toEqual(many(20, () => "rejected"));
    expect(performance.now() - began).toBeLessThan(1_000);
    other.exec("rollback");
    expect(await store.commit({ record: record() })).toMatchObject({ done: true });
  });

  it("busyTimeout longer than the deadline: requests end in time with 503, and late commits cost nothing (docs/contract.md#store-deadline)", async () => {
    const { file } = place();
    const one = serving(opened({ file, busyTimeout: 60_000 }), { cap: 15, storeTimeout: 0.3 });
    expect(await ending(one.create(0))).toBe("pending");
    const other = handle(file);
    other.exec("begin immediate");
    const began = performance.now();
    expect(tallied(await Promise.all(many(40, (n) => ending(one.create(n + 1)))))).toEqual({ unavailable: 40 });
    expect(performance.now() - began).toBeLessThan(deadline);
    other.exec("rollback");
    await usesUpCap(one, 15);
  });

  it("ping, diagnose and reads work while another connection holds the lock, because the journal is a WAL (docs/contract.md#ping)", async () => {
    const { file } = place();
    const store = opened({ file });
    const one = serving(store);
    const { authentication_uuid: id } = await one.create(0);
    const other = handle(file);
    other.exec("begin immediate");
    expect(await store.find(one.customer, id)).toMatchObject({ id });
    expect(await one.verifier.ping()).toMatchObject({ ok: true, store: { missing: [] } });
    expect(await one.verifier.diagnose()).toEqual(expect.any(Array));
    expect(await one.verifier.explain({ customer_uuid: one.customer, authentication_uuid: id })).toMatchObject({ authentication_uuid: id });
  });

  it("a process stopped while it holds the lock: 503 in time and nothing is sent; once it continues, requests work (docs/stores.md)", async () => {
    const { file } = place();
    const one = serving(opened({ file }));
    expect(await ending(one.create(0))).toBe("pending");
    const other = await start({ file });
    await other.call("exec", "begin immediate; create table own (n)");
    other.process.kill("SIGSTOP");
    const began = performance.now();
    expect(tallied(await Promise.all(many(40, (n) => ending(one.create(n + 1)))))).toEqual({ unavailable: 40 });
    expect(performance.now() - began).toBeLessThan(deadline);
    expect(one.sender.messages).toHaveLength(1);
    other.process.kill("SIGCONT");
    await other.call("exec", "commit");
    let next = 100;
    await eventually("it serves", async () => (await ending(one.create(next++))) === "pending");
    await one.verifier.flush();
  });

  it("a process killed while it holds the lock releases it, and the waiting requests succeed (docs/stores.md)", async () => {
    const { file } = place();
    const one = serving(opened({ file, busyTimeout: 30_000 }), { storeTimeout: 60 });
    expect(await ending(one.create(0))).toBe("pending");
    const other = await start({ file });
    await other.call("exec", "begin immediate; create table own (n)");
    const ends = many(40, (n) => ending(one.create(n + 1)));
    await turn();
    await other.kill();
    expect(tallied(await Promise.all(ends))).toEqual({ pending: 40 });
    expect(handle(file).prepare("select name from sqlite_schema where name = 'own'").all()).toEqual([]);
  });

  it("400 creates succeed while another process checkpoints and truncates the log without pause (docs/stores.md)", async () => {
    const { file } = place();
    const one = serving(opened({ file }), { storeTimeout: 60 });
    expect(await ending(one.create(0))).toBe("pending");
    const other = await start({ file });
    let going = true;
    const work = (async () => {
      while (going) await other.call("all", "pragma wal_checkpoint(truncate)");
    })();
    const ends: string[] = [];
    for (let round = 0; round < 20; round++) ends.push(...(await Promise.all(many(20, (n) => ending(one.create(1 + round * 20 + n))))));
    going = false;
    await work;
    expect(tallied(ends)).toEqual({ pending: 400 });
    expect(handle(file).prepare("pragma integrity_check").all()).toEqual([{ integrity_check: "ok" }]);
  });

  it("300 creates succeed while another process changes its own tables, vacuums and analyzes (docs/stores.md)", async () => {
    const { file } = place();
    const one = serving(opened({ file, busyTimeout: 30_000 }), { storeTimeout: 60 });
    expect(await ending(one.create(0))).toBe("pending");
    const other = await start({ file });
    await other.call("exec", "pragma busy_timeout = 30000");
    const statements = [
      "create table own (n)",
      "create index of_own on own (n)",
      "alter table own add column m",
      "analyze",
      "vacuum",
      "drop table own",
      "reindex",
    ];
    let going = true;
    const work = (async () => {
      for (let n = 0; going; n++) await other.call("exec", statements[n % statements.length] as string);
    })();
    const ends: string[] = [];
    for (let round = 0; round < 15; round++) ends.push(...(await Promise.all(many(20, (n) => ending(one.create(1 + round * 20 + n))))));
    going = false;
    await work;
    expect(tallied(ends)).toEqual({ pending: 300 });
  });

  it("tables dropped under a running service give 503, and nothing is sent (docs/contract.md#fail-closed)", async () => {
    const { file } = place();
    const one = serving(opened({ file }));
    expect(await ending(one.create(0))).toBe("pending");
    handle(file).exec("drop table phoneproof_records; drop table phoneproof_members");
    expect(tallied(await Promise.all(many(10, (n) => ending(one.create(n + 1)))))).toEqual({ unavailable: 10 });
    expect(one.sender.messages).toHaveLength(1);
  });

  it("500 creates and their checks succeed while a reader keeps its snapshot (docs/stores.md)", async () => {
    const { file } = place();
    const one = serving(opened({ file }), { storeTimeout: 60 });
    expect(await ending(one.create(0))).toBe("pending");
    const reader = await start({ file });
    await reader.call("exec", "begin");
    const [before] = (await reader.call("all", "select count(*) as n from sqlite_schema")) as [{ n: number }];
    const ends: string[] = [];
    for (let round = 0; round < 10; round++) ends.push(...(await Promise.all(many(50, (n) => ending(one.create(1 + round * 50 + n))))));
    expect(tallied(ends)).toEqual({ pending: 500 });
    expect(await reader.call("all", "select count(*) as n from sqlite_schema")).toEqual([before]);
    const checks = await Promise.all(one.sender.messages.map(({ authentication_uuid: id, code }) => ending(one.check(id, code))));
    expect(tallied(checks)).toEqual({ valid: 501 });
  });

  it("an erased number is in none of the files, although another connection had read it (docs/contract.md#erase)", async () => {
    const { file } = place();
    const one = serving(opened({ file }), { storeTimeout: 60 });
    const { authentication_uuid: id } = await one.create(7);
    await Promise.all(many(50, (n) => one.create(n + 10)));
    const { data } = (await opened({ file }).find(one.customer, id)) as { data: string };
    const sealed = data.slice(0, 200);
    expect(holds(file, sealed)).toBe(true);
    const phone_number = one.sender.messages[0]?.to as string;
    expect(await one.verifier.erase({ customer_uuid: one.customer, phone_number })).toMatchObject({ erased: 1 });
    expect(holds(file, sealed)).toBe(false);
  });
});

describe("a file that cannot be written or read", () => {
  it.each(["", "-wal", "-shm"])(
    "a folder in place of the file%s: 503, nothing is sent, the log has a fix; once it is gone, requests work (docs/operations.md)",
    async (end) => {
      const { file } = place();
      mkdirSync(file + end);
      const one = serving(opened({ file }));
      expect(tallied(await Promise.all(many(5, (n) => ending(one.create(n)))))).toEqual({ unavailable: 5 });
      expect(one.sender.messages).toEqual([]);
      expect(String(one.log[0]?.fields["err"])).toMatch(/sqliteStore: the database .+ \(.+\): .+/);
      rmdirSync(file + end);
      await eventually("it serves", async () => (await ending(one.create(100))) === "pending");
    },
  );

  it("a missing folder: 503 and the log names the fix; once it exists, requests work without a restart (docs/operations.md)", async () => {
    const { folder } = place();
    const one = serving(opened({ file: `${folder}/missing/store.db` }));
    expect(await ending(one.create(1))).toBe("unavailable");
    expect(String(one.log[0]?.fields["err"])).toMatch(/cannot be opened.*name a file, create its folder/);
    mkdirSync(`${folder}/missing`);
    await eventually("it serves", async () => (await ending(one.create(2))) === "pending");
  });

  it.each<[string, (file: string) => void]>([
    ["that holds a text", (file) => writeFileSync(file, "This is not a database, but a letter to one. ".repeat(200))],
    ["whose first page is zeroes", (file) => writeFileSync(file, Buffer.alloc(8_192, 0))],
    [
      "with SQLite's header and nothing that follows from it",
      (file) => writeFileSync(file, Buffer.concat([Buffer.from("SQLite format 3\0"), Buffer.alloc(9_000, 255)])),
    ],
  ])("a file %s: 503, nothing is sent, and the log calls it corrupt or not a database, and its bytes stay (docs/stores.md)", async (_, write) => {
    const { file } = place();
    write(file);
    const bytes = readFileSync(file);
    const one = serving(opened({ file }));
    expect(tallied(await Promise.all(many(5, (n) => ending(one.create(n)))))).toEqual({ unavailable: 5 });
    expect(one.sender.messages).toEqual([]);
    expect(readFileSync(file).equals(bytes)).toBe(true);
    expect(String(one.log[0]?.fields["err"])).toMatch(/corrupt, or is not an SQLite database/);
    rmSync(file);
    await eventually("it serves on a new file", async () => (await ending(one.create(100))) === "pending");
  });

  it("pages overwritten under a running service: another process returns 503, sends nothing, and its log says corrupt (docs/contract.md#stored-first)", async () => {
    const { file } = place();
    const first = serving(opened({ file }));
    await Promise.all(many(100, (n) => first.create(n)));
    const admin = handle(file);
    admin.exec("pragma wal_checkpoint(truncate)");
    const [{ page_count: pages }] = admin.prepare("pragma page_count").all() as [{ page_count: number }];
    const [{ page_size: size }] = admin.prepare("pragma page_size").all() as [{ page_size: number }];
    const { openSync, writeSync, closeSync } = await import("node:fs");
    const fd = openSync(file, "r+");
    for (let page = 1; page < pages; page++) writeSync(fd, Buffer.alloc(size, 0xa5), 0, size, page * size);
    closeSync(fd);
    // A process with none of the pages in memory.
    const other = await start({ file, customer: first.customer });
    const ends = [
      ...(await other.call(
        "create",
        many(20, (n) => n + 200),
      )),
      ...(await other.call(
        "create",
        many(20, (n) => n + 300),
      )),
    ];
    expect(tallied(ends)).toEqual({ unavailable: 40 });
    expect(await other.call("sent")).toEqual([]);
    expect((await other.call("log")).join("\n")).toMatch(/corrupt/);
  });

  it("a file truncated under a running service: no process dies, and only acknowledged creates are sent (docs/contract.md#stored-first)", async () => {
    const { file } = place();
    const first = serving(opened({ file }));
    await Promise.all(many(200, (n) => first.create(n)));
    const other = await start({ file, customer: first.customer });
    await other.call("wake");
    const admin = handle(file);
    admin.exec("pragma wal_checkpoint(truncate)");
    truncateSync(file, 8_192);
    const ends = await other.call(
      "create",
      many(40, (n) => n + 300),
    );
    const counts = tallied(ends);
    expect(Object.keys(counts).filter((end) => end !== "unavailable" && end !== "pending")).toEqual([]);
    expect(await other.call("sent")).toHaveLength(counts["pending"] ?? 0);
    expect(await other.call("wake").catch(() => "rejected")).toBeDefined();
  });

  it("a full database: 503, and every message is of a stored create; with room again, requests work and nothing was used up (docs/contract.md#fail-closed)", async () => {
    const { file } = place();
    const database = handle(file);
    const one = serving(opened({ database }), { cap: 400 });
    const { authentication_uuid: id } = await one.create(0);
    const [{ page_count: pages }] = database.prepare("pragma page_count").all() as [{ page_count: number }];
    database.prepare(`pragma max_page_count = ${pages + 4}`).all();
    const ends: string[] = [];
    for (let n = 1; n < 100 && ends.at(-1) !== "unavailable"; n++) ends.push(await ending(one.create(n)));
    expect(ends.at(-1)).toBe("unavailable");
    expect(tallied(await Promise.all(many(100, (n) => ending(one.create(n + 100)))))["pending"] ?? 0).toBeLessThan(100);
    const stored = await Promise.all(one.sender.messages.map(({ authentication_uuid }) => opened({ database }).find(one.customer, authentication_uuid)));
    expect(stored.filter((record) => record === undefined)).toEqual([]);
    expect(one.log.map(({ fields }) => String(fields["err"])).join("\n")).toMatch(/is full/);
    database.prepare("pragma max_page_count = 1073741823").all();
    await eventually("it serves", async () => (await ending(one.create(1_000))) === "pending");
    expect(await ending(one.check(id, one.sender.codeOf(id)))).toBe("valid");
    await usesUpCap(one, 400, 2_000);
  });

  const hasPrlimit = isInstalled("prlimit", "util-linux", "an SQLite file at the limit of its size");

  it.runIf(hasPrlimit)(
    "writes rejected by the system (RLIMIT_FSIZE): 503 and nothing is sent; without the limit, requests and earlier codes work (docs/stores.md)",
    async () => {
      const { file } = place();
      const child = await start({ file, customer: "7f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f" });
      const before = await child.call(
        "create",
        many(20, (n) => n),
      );
      expect(tallied(before)).toEqual({ pending: 20 });
      const limit = (bytes: string) => execFileSync("prlimit", ["--pid", String(child.process.pid), `--fsize=${bytes}:`]);
      limit("4096");
      expect(
        tallied(
          await child.call(
            "create",
            many(40, (n) => n + 100),
          ),
        ),
      ).toEqual({ unavailable: 40 });
      expect(await child.call("sent")).toHaveLength(20);
      expect((await child.call("log")).join("\n")).toMatch(/cannot be read or written|is full/);
      limit("unlimited");
      const sent = await eventuallyServes();
      for (const { id, code } of sent) expect(await child.call("check", id, [code])).toEqual(["valid"]);
      expect(handle(file).prepare("pragma integrity_check").all()).toEqual([{ integrity_check: "ok" }]);

      async function eventuallyServes() {
        let next = 500;
        await eventually("it serves", async () => (await child.call("create", [next++]))[0] === "pending");
        return child.call("sent");
      }
    },
  );

  it("a file without write permission: 503, nothing is sent, and the log has the reason (docs/stores.md)", async () => {
    const { folder, file } = place();
    const maker = opened({ file });
    await maker.get("made");
    await maker.close?.();
    execFileSync("chmod", ["-R", "a-w,a+rX", folder]);
    // Root may still write to it, but another user may not.
    const child = await start({ file, ...(process.getuid?.() === 0 && { user: 65_534 }) });
    const ends = await child.call(
      "create",
      many(5, (n) => n),
    );
    const [log, sent] = [await child.call("log"), await child.call("sent")];
    execFileSync("chmod", ["-R", "u+w", folder]);
    expect(tallied(ends)).toEqual({ unavailable: 5 });
    expect(sent).toEqual([]);
    expect(log.join("\n")).toMatch(/read-only|cannot be opened/);
  });
});
