import { afterAll, describe, expect, it } from "vitest";
import { sqliteStore } from "../../adapters/store/sqlite/index.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";
import { newFolder, openSqlite } from "../support/sqlite.js";
import { start } from "../support/verifier.js";
import { lifeOfAKey, storedVerifier } from "./life.js";
import { raceCustomers } from "./races.js";

describe("the life of a key on SQLite", () => {
  const folders: ReturnType<typeof newFolder>[] = [];
  afterAll(() => {
    for (const { remove } of folders) remove();
  });

  function handles() {
    const folder = newFolder();
    folders.push(folder);
    const { file } = folder;
    return { file, store: sqliteStore({ file }), peer: sqliteStore({ file }) };
  }

  it("create customer → issue → use over HTTP → rotate with overlap → old revoked → rejected within two seconds → suspend → rejected → resume", () =>
    lifeOfAKey(handles()));

  it("a revocation is never undone, and there are never three keys in use", () => raceCustomers(handles()));

  it("nothing expires too early: a key, its customer and the list are stored for fifty years", async () => {
    const { file, store } = handles();
    const { verifier } = storedVerifier(store, fixedClock(start));
    const { customer_uuid } = await verifier.customers.create({ name: "'; DROP TABLE phoneproof_records; --" });
    const { key_id } = await verifier.customers.keys.issue({ customer_uuid });
    const database = openSqlite(file);
    const ends = ["records", "members", "values"].flatMap((table) => database.prepare(`SELECT ends FROM phoneproof_${table}`).all() as { ends: number }[]);
    database.close();
    expect(ends).toHaveLength(3);
    for (const { ends: end } of ends) expect(end).toBeGreaterThan(Date.now() + 49 * 365 * 86_400_000);
    expect(await verifier.customers.keys.list({ customer_uuid })).toMatchObject([{ key_id, status: "active" }]);
  });
});
