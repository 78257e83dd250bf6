import { afterAll, describe, expect, it } from "vitest";
import { postgresStore } from "../../adapters/store/postgres/index.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";
import { newStore, poolOf, postgresServer } from "../support/postgres.js";
import { start } from "../support/verifier.js";
import { lifeOfAKey, storedVerifier } from "./life.js";
import { raceCustomers } from "./races.js";

const server = await postgresServer("the life of a key over PostgreSQL");
afterAll(() => server?.stop());

describe.runIf(server)("the life of a key on PostgreSQL", () => {
  const closes: (() => Promise<unknown>)[] = [];
  afterAll(() => Promise.all(closes.map((close) => close())));
  const handles = async () => {
    const { url, pool, store, close } = await newStore(server);
    const other = poolOf(url);
    closes.push(close, () => other.end());
    return { pool, store, peer: postgresStore({ pool: other }) };
  };

  it("create customer → issue → use over HTTP → rotate with overlap → old revoked → rejected within two seconds → suspend → rejected → resume", async () =>
    lifeOfAKey(await handles()));

  it("a revocation is never undone, and there are never three keys in use", async () => raceCustomers(await handles()));

  it("nothing expires too early, and SQL in names is only text", async () => {
    const { pool, store } = await handles();
    const { verifier } = storedVerifier(store, fixedClock(start));
    const { customer_uuid } = await verifier.customers.create({ name: "'; drop schema phoneproof cascade; --" });
    const { key_id } = await verifier.customers.keys.issue({ customer_uuid, name: '{"a","b"}' });
    const far = (Date.now() + 49 * 365 * 86_400_000) / 60_000;
    const { rows } = await pool.query(
      "select ends from phoneproof.record union all select ends from phoneproof.member union all select ends from phoneproof.value",
    );
    expect(rows.length, "the record, its place in the list and the key").toBeGreaterThanOrEqual(2);
    for (const { ends } of rows) expect(ends).toBeGreaterThan(far);
    expect(await verifier.customers.keys.list({ customer_uuid })).toMatchObject([{ key_id, status: "active", name: '{"a","b"}' }]);
  });
});
