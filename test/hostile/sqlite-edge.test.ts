import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { sqliteStore } from "../../adapters/store/sqlite/index.js";
import { nodeOf } from "../package/programs.js";
import { libraries, openSqlite } from "../support/sqlite.js";
import { changes, ending, tallied } from "./kit.js";
import { handle, holds, many, opened, place, processes, serving } from "./sqlite-kit.js";

const start = processes();

describe("an erasure", () => {
  it("while another process reads the file: it rejects, or the data is in no file once the reader is gone and the service continues (docs/contract.md#erase)", async () => {
    const { file } = place();
    const store = opened({ file });
    const one = serving(store, { storeTimeout: 60 });
    const { authentication_uuid: id } = await one.create(7);
    await Promise.all(many(50, (n) => one.create(n + 10)));
    const { data } = (await store.find(one.customer, id)) as { data: string };
    const sealed = data.slice(0, 200);
    const reader = await start({ file });
    await reader.call("exec", "begin");
    await reader.call("all", "select count(*) as n from sqlite_schema");
    const phone_number = one.sender.messages[0]?.to as string;
    const erased = await one.verifier.erase({ customer_uuid: one.customer, phone_number }).then(
      () => true,
      () => false,
    );
    await reader.call("exec", "commit");
    const end = performance.now() + 5_000;
    for (let n = 0; n < 20 || (holds(file, sealed) && performance.now() < end); n++) await one.create(n + 100);
    // A rejected erasure is repeated.
    if (!erased) await one.verifier.erase({ customer_uuid: one.customer, phone_number });
    expect({ erased, held: holds(file, sealed) }).toEqual({ erased, held: false });
  });
});

describe("the path of a file", () => {
  it.each(["file:x.db", "file:x.db?mode=memory", "file::memory:"])(
    "%j is a file path or a TypeError: acknowledged data is there when the file is opened again (docs/stores.md)",
    async (name) => {
      const { folder } = place();
      const before = process.cwd();
      onTestFinished(() => process.chdir(before));
      process.chdir(folder);
      let store: ReturnType<typeof sqliteStore>;
      try {
        store = opened({ file: name });
      } catch (error) {
        expect(error).toBeInstanceOf(TypeError);
        return;
      }
      await store.put("key", "value", changes().ends);
      await store.close?.();
      expect(readdirSync(folder)).toContain(name);
      expect(await opened({ file: name }).get("key")).toBe("value");
    },
  );

  it("with a NUL: the option or the calls are rejected, and the process survives (docs/contract.md#undefined-options)", async () => {
    const { folder } = place();
    const child = await start({ file: join(folder, "a\0b.db") });
    const end = await child.call("wake").catch((error: Error) => error.message);
    expect(end).not.toBe("the process is gone");
    expect(end).toMatch(/sqliteStore/);
  });
});

describe("a handle whose options change the form of rows", () => {
  it("node:sqlite with returnArrays: requests work as with any other handle, or return 503 with a reason (docs/stores.md)", async () => {
    const node = await nodeOf("24");
    if (node === undefined) return;
    const { file } = place();
    const child = await start({ file, library: "node:sqlite", open: { returnArrays: true }, cap: 20 }, node);
    const same = tallied(
      await child.call(
        "create",
        many(10, () => 7),
      ),
    );
    const others = tallied(
      await child.call(
        "create",
        many(30, (n) => n + 10),
      ),
    );
    const log = await child.call("log");
    if (same["unavailable"] === 10) expect(log.join("\n")).toMatch(/returnArrays|option/);
    else
      expect([same, others]).toEqual([
        { pending: 5, rate_limited: 5 },
        { pending: 15, rate_limited: 15 },
      ]);
  });

  it.each(Object.entries(libraries))(
    "%s with full_column_names on: values are read as they were stored, or the call rejects, and a cap is not exceeded (docs/contract.md#dumb-store)",
    async (_, open) => {
      const database = open(place().file);
      onTestFinished(() => database.close());
      database.exec("pragma full_column_names = on");
      const store = sqliteStore({ database });
      const { customer, ends } = changes();
      await store.put(`${customer}:key`, "value", ends);
      const counter = `${customer}:counter`;
      expect(await store.get(`${customer}:key`).catch(() => "rejected")).toMatch(/^(value|rejected)$/);
      const tally = store.tally([{ counter, by: 5, ...ends }], [counter]).catch(() => "rejected");
      expect([[5], "rejected"]).toContainEqual(await tally);
      const one = serving(store, { cap: 20 });
      const answers = tallied(await Promise.all(many(30, (n) => ending(one.create(n)))));
      expect(answers["pending"] ?? 0).toBeLessThanOrEqual(20);
    },
  );

  it("count_changes, which makes writes return a row: requests work, or nothing is sent and the log has no false reason (docs/stores.md)", async () => {
    const { file } = place();
    const database = openSqlite(file);
    onTestFinished(() => database.close());
    database.exec("pragma count_changes = on");
    const one = serving(sqliteStore({ database }));
    const ends = tallied(await Promise.all(many(5, (n) => ending(one.create(n)))));
    if (ends["pending"] === 5) return;
    expect(one.sender.messages).toEqual([]);
    // There is no other process.
    expect(one.log.map(({ fields }) => String(fields["err"])).join("\n")).not.toMatch(/locked by another connection/);
  });
});

describe("close()", () => {
  it.each(["20", "22", "24"])("twice at once, on Node.js %s: both calls resolve (docs/operations.md)", async (version) => {
    const node = await nodeOf(version);
    if (node === undefined) return;
    const child = await start({ file: place().file }, node);
    await child.call("wake");
    expect(await child.call("closeTwice").catch((error: Error) => error.message)).toBeUndefined();
  });
});

describe("a file that is deleted under a running service", () => {
  it("gives 503, or a new file that other processes share: a customer still has one cap (docs/contract.md#caps)", async () => {
    const { folder, file } = place();
    const one = serving(opened({ file }), { cap: 20 });
    await Promise.all(many(5, (n) => one.create(n)));
    for (const name of readdirSync(folder)) rmSync(join(folder, name));
    const two = serving(opened({ file }), { customer: one.customer, cap: 20 });
    const ends = await Promise.all(many(60, (n) => ending((n % 2 ? one : two).create(n + 100))));
    // Earlier counts are lost with the file; later requests are counted once.
    expect(tallied(ends)["pending"] ?? 0).toBeLessThanOrEqual(20);
    // What the running service acknowledges is in the new file.
    const last = await one.create(1_000).catch(() => undefined);
    if (last?.status === "pending") expect(await opened({ file }).find(one.customer, last.authentication_uuid)).toBeDefined();
  });
});

describe("expired rows", () => {
  it('60,000 of them are gone after a worker has run for twenty minutes: "Stores delete expired data within twenty minutes" (docs/privacy.md)', async () => {
    const { file } = place();
    const past = await start({ file, ahead: -2 * 86_400_000, options: { synchronous: "OFF" } });
    await past.call("put", 60_000, 60_000);
    await past.call("close");
    const worker = await start({ file, options: { synchronous: "OFF" } });
    await worker.call("work", 240);
    const left = handle(file).prepare("select count(*) as n from phoneproof_values").all();
    expect(left).toEqual([{ n: 0 }]);
  });
});
