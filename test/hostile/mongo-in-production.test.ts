import { randomUUID } from "node:crypto";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { numberOf } from "../support/verifier.js";
import { database, hasServer, stopServer } from "./mongo-in-production-kit.js";

const minutes = 60_000;
const hours = 60 * minutes;
const days = 24 * hours;

const service = async (options?: Parameters<typeof database>[0]) => {
  const db = await database(options);
  onTestFinished(() => db.close());
  return db;
};

/** Several processes with one customer. */
const shared = () => {
  const customer_uuid = randomUUID();
  return { customer_uuid, customers: [{ customer_uuid, keys: [`pp_${randomUUID()}${randomUUID()}`] }] };
};

afterAll(stopServer);

describe.skipIf(!hasServer)("MongoDB in production", () => {
  // docs/privacy.md: a record lives for "`lifetime` + `tombstone` (24 h 10 min) …; with undelivered callbacks 7 days after
  // the last attempt", and "stores delete expired data within twenty minutes".
  test("a record whose callback was delivered is deleted a day after its end", async () => {
    const db = await service({ callbacks: { worker: false, sender: { post: async () => ({ status: 204 }) } } });
    const one = await db.process();
    await one.create({ callback_url: "https://shop.example/sms" });
    expect(await one.verifier.flush()).toEqual({ delivered: 1, failed: 0, dead: 0 });
    const [{ in: left } = { in: 0 }] = (await db.ends()).filter(({ name }) => name.includes('"id"'));
    expect(left / hours).toBeGreaterThan(24);
    expect(left / hours).toBeLessThan(25);
  });

  // docs/contract.md#erase: "Only what caps have counted, and that the number has counted as verified within the day, stays
  // until `counts_until`, under keyed hashes".
  test.each([
    { verified: "just now", ago: 0 },
    { verified: "two days ago", ago: 2 * days },
  ])("what remains of an erased number that was verified $verified ends at counts_until", async ({ ago }) => {
    const db = await service();
    const one = await db.process();
    const { authentication_uuid } = await one.create();
    expect(await one.check(authentication_uuid, one.box.code())).toMatchObject({ status: "valid" });
    one.clock.advance(ago);
    await db.deleteEnded(ago);
    const { counts_until } = await one.verifier.erase({ customer_uuid: one.customer, phone_number: numberOf(1) });
    // The store measures by the server's clock, which this test cannot move.
    const allowed = Date.parse(counts_until) - one.clock.now() + ago + 20 * minutes;
    expect((await db.ends()).filter((kept) => kept.in > allowed).map(({ name, in: left }) => `${name}: ${Math.round(left / days)} days`)).toEqual([]);
  });

  // "On MongoDB, a commit that is rejected or loses a race takes 2 more" (docs/contract.md#round-trips). Behind a load
  // balancer, a user's requests reach several processes.
  test("a check in a process that remembers an older record takes two round trips more", async () => {
    const { customers } = shared();
    const db = await service({ customers });
    const [one, other] = [await db.process(), await db.process()];
    const customer_uuid = customers[0]?.customer_uuid as string;
    const { authentication_uuid } = await one.create({ customer_uuid });
    const check = { customer_uuid, authentication_uuid };
    await one.verifier.check({ ...check, check_code: one.wrong() });
    await other.verifier.check({ ...check, check_code: one.wrong() });
    one.commands.length = 0;
    expect(await one.verifier.check({ ...check, check_code: one.wrong() })).toMatchObject({ status: "invalid" });
    expect(one.commands).toEqual(["update", "find", "update", "update"]);
  });

  test("a create that a cap blocks takes two round trips more (docs/contract.md#round-trips)", async () => {
    const db = await service();
    const one = await db.process();
    for (let sent = 0; sent < 5; sent++) await one.create();
    one.commands.length = 0;
    expect(await one.create()).toMatchObject({ status: "rate_limited" });
    expect(one.commands).toEqual(["update", "find", "update"]);
  });
});
