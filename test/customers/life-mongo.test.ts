import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { mongoStore } from "../../adapters/store/mongo/index.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";
import { type Connected, drivers, dropDatabase, mongoServer, newDatabase } from "../support/mongo.js";
import { start } from "../support/verifier.js";
import { lifeOfAKey, storedVerifier } from "./life.js";
import { raceCustomers } from "./races.js";

const server = await mongoServer("the life of a key over MongoDB");
afterAll(() => server?.stop());

describe.runIf(server)("the life of a key on MongoDB", () => {
  const url = server?.url ?? "";
  const name = newDatabase();
  let one: Connected;
  let two: Connected;
  beforeAll(async () => {
    [one, two] = await Promise.all([drivers["mongodb 7"](url, name), drivers["mongodb 6"](url, name)]);
  });
  afterAll(async () => {
    await Promise.all([one?.close(), two?.close()]);
    await dropDatabase(url, name);
  });
  let made = 0;
  const handles = async () => {
    const prefix = `p${made++}_`;
    const store = mongoStore({ db: one.db, prefix });
    await store.ensureIndexes();
    return { prefix, store, peer: mongoStore({ db: two.db, prefix }) };
  };

  it("create customer → issue → use over HTTP → rotate with overlap → old revoked → rejected within two seconds → suspend → rejected → resume", async () =>
    lifeOfAKey(await handles()));

  it("a revocation is never undone, and there are never three keys in use", async () => raceCustomers(await handles()));

  it("nothing expires too early, and query operators are not interpreted", async () => {
    const { prefix, store } = await handles();
    const { verifier } = storedVerifier(store, fixedClock(start));
    const { customer_uuid } = await verifier.customers.create({ name: "$where" });
    const { key_id } = await verifier.customers.keys.issue({ customer_uuid, name: "{ $ne: null }" });
    const far = new Date(Date.now() + 49 * 365 * 86_400_000);
    const kept = await one.client.db(name).collection(`${prefix}state`).find({}).toArray();
    const values = await one.client.db(name).collection(`${prefix}values`).find({}).toArray();
    expect([kept.length, values.length], "the record and its place in the list").toEqual([2, 1]);
    for (const { expireAt } of [...kept, ...values]) expect(expireAt > far).toBe(true);
    for (const uuid of [{ $ne: null }, { $gt: "" }, ["x"]]) {
      await expect(verifier.customers.get({ customer_uuid: uuid as never })).rejects.toMatchObject({ code: "bad_request" });
      await expect(verifier.customers.keys.revoke({ customer_uuid, key_id: uuid as never })).rejects.toMatchObject({ code: "bad_request" });
    }
    expect(await verifier.customers.keys.list({ customer_uuid })).toMatchObject([{ key_id, status: "active", name: "{ $ne: null }" }]);
  });
});
