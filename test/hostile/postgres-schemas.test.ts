import { randomUUID } from "node:crypto";
import postgres from "postgres";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { type PostgresStore, type PostgresStoreOptions, postgresStore } from "../../adapters/store/postgres/index.js";
import { fixedClock } from "../../src/testing/index.js";
import { newDatabase, type PostgresServer, pgbouncerIsInstalled, postgresServer, sql } from "../support/postgres.js";
import { start } from "../support/verifier.js";
import { ending, eventually, type Service, sender, service, tallied, wide } from "./kit.js";
import { hour } from "./one-commit-kit.js";
import { bounced, chaos, database, patient, pool, settings } from "./postgres-kit.js";

const server = await postgresServer("the hostile tests of PostgreSQL's schemas");
const hasPgbouncer = server !== undefined && pgbouncerIsInstalled("the hostile tests through PgBouncer");
afterAll(() => server?.stop());

const many = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));

describe.runIf(server)("a schema on PostgreSQL", () => {
  it("two schemas in one database keep a customer's caps and records apart under a hundred concurrent requests", async () => {
    const url = await newDatabase(server);
    const shared = pool(url, patient);
    const [one, two] = ["phoneproof", "select"].map((schema) => postgresStore({ pool: shared, schema })) as [PostgresStore, PostgresStore];
    await Promise.all([one.ensureSchema(), two.ensureSchema()]);
    const customer = randomUUID();
    const [a, b] = [one, two].map((store) => service({ store, customer, storeTimeout: 60, policy: { limits: wide } })) as [Service, Service];
    const [ends, others] = await Promise.all([a, b].map((each) => Promise.all(many(50, () => ending(each.create(1))))));
    expect([tallied(ends ?? []), tallied(others ?? [])]).toEqual([
      { pending: 5, rate_limited: 45 },
      { pending: 5, rate_limited: 45 },
    ]);
    const { authentication_uuid: id } = await a.create(2);
    expect(await ending(b.check(id, a.sender.codeOf(id)))).toBe("invalid_auth_uuid");
  });

  it("ten ensureSchema() during a hundred requests, half of them by a role without DDL rights, succeed and fail no request", async () => {
    const url = await database(server);
    const role = `role_${randomUUID().replaceAll("-", "")}`;
    await sql(
      url,
      `create role ${role} login`,
      `grant usage on schema phoneproof to ${role}`,
      `grant select, insert, update, delete on all tables in schema phoneproof to ${role}`,
    );
    const asRole = new URL(url);
    asRole.username = role;
    const one = service({ store: postgresStore({ pool: pool(asRole.href, patient) }), storeTimeout: 60, policy: { limits: wide } });
    const work = many(100, (n) => ending(one.create(n)));
    const pools = many(10, (n) => pool(n % 2 ? url : asRole.href, { max: 1 }));
    const made = await Promise.allSettled(pools.map((each) => postgresStore({ pool: each }).ensureSchema()));
    expect(made.map(({ status }) => status)).toEqual(many(10, () => "fulfilled"));
    expect(tallied(await Promise.all(work))).toEqual({ pending: 100 });
    await sql(url, `drop owned by ${role}`, `drop role ${role}`);
  });

  it("dropped while a service runs gives 503 and a log entry that names the fix; created again, it works without a restart", async () => {
    const url = await database(server);
    const store = postgresStore({ pool: pool(url), prepare: true });
    const one = service({ store, clock: undefined as never, policy: { limits: wide } });
    expect(tallied(await Promise.all(many(10, (n) => ending(one.create(n)))))).toEqual({ pending: 10 });
    await sql(url, "drop schema phoneproof cascade");
    expect(tallied(await Promise.all(many(10, (n) => ending(one.create(n + 10)))))).toEqual({ unavailable: 10 });
    expect(one.sender.messages).toHaveLength(10);
    expect(one.log.map(({ fields }) => String(fields["err"])).join("\n")).toMatch(/ensureSchema\(\)/);
    const ping = await one.verifier.ping();
    expect(ping.ok).toBe(false);
    await store.ensureSchema();
    await eventually("it serves", async () => (await ending(one.create(100))) === "pending");
    expect(tallied(await Promise.all(many(10, (n) => ending(one.create(n + 20)))))).toEqual({ pending: 10 });
  });

  it("renamed and renamed back gives 503 in between and loses no acknowledged verification", async () => {
    const url = await database(server);
    const one = service({ store: postgresStore({ pool: pool(url), prepare: true }), clock: undefined as never, policy: { limits: wide } });
    const made = await Promise.all(many(10, (n) => one.create(n)));
    await sql(url, "alter schema phoneproof rename to aside");
    expect(await ending(one.create(50))).toBe("unavailable");
    expect(await ending(one.check(made[0]?.authentication_uuid as string, "000000"))).toBe("unavailable");
    await sql(url, "alter schema aside rename to phoneproof");
    await eventually("it serves", async () => (await ending(one.create(51))) === "pending");
    for (const { authentication_uuid: id } of made) expect(await ending(one.check(id, one.sender.codeOf(id)))).toBe("valid");
  });

  it("with any column of counters or records missing gives 503 and sends nothing; the log names the fix, and it works once restored", async () => {
    const url = await database(server);
    const columns = await sql<{ place: string; name: string }>(
      url,
      "select table_name as place, column_name as name from information_schema.columns where table_schema = 'phoneproof' and table_name in ('record', 'total', 'member', 'customer')",
    );
    for (const [at, { place, name }] of columns.entries()) {
      const one = service({ store: postgresStore({ pool: pool(url, { ...settings, max: 2 }) }), clock: undefined as never, policy: { limits: wide } });
      await sql(url, `alter table phoneproof.${place} rename column ${name} to gone`);
      expect([await ending(one.create(at)), one.sender.messages.length]).toEqual(["unavailable", 0]);
      expect(one.log.map(({ fields }) => String(fields["err"])).join("\n")).toMatch(/42703.*ensureSchema\(\)/);
      await sql(url, `alter table phoneproof.${place} rename column gone to ${name}`);
      await eventually("it serves", async () => (await ending(one.create(at + 100))) === "pending");
    }
  });

  it("expired rows are deleted while four processes send: no live record is lost, and caps stay exact (docs/contract.md#early-end)", async () => {
    const url = await database(server);
    const shared = {
      clock: fixedClock(Date.now()),
      customer: randomUUID(),
      sender: sender(),
      storeTimeout: 60,
      policy: { limits: { ...wide, perCustomer: [{ limit: 150, window: 86_400 }] } },
    };
    const set = many(4, () => service({ ...shared, store: postgresStore({ pool: pool(url, patient) }) }));
    const at = (n: number) => set[n % 4] as Service;
    for (let round = 0; round < 3; round++) {
      await sql(url, "insert into phoneproof.value (key, ends, value) select 'old' || i, 1, '' from generate_series(1, 1500) i");
      const store = postgresStore({ pool: pool(url, patient) });
      const lease = async () => {
        for (let n = 0; n < 6; n++) await store.lease(0, 1, 1);
      };
      const [ends] = await Promise.all([Promise.all(many(60, (n) => ending(at(n).create(round * 1_000 + n)))), lease(), lease()]);
      expect(tallied(ends)).toEqual(round < 2 ? { pending: 60 } : { pending: 30, rate_limited: 30 });
    }
    for (let n = 0; n < 8; n++) await postgresStore({ pool: pool(url, { max: 1 }) }).lease(0, 1, 1);
    expect(await sql(url, "select key from phoneproof.value where ends = 1")).toEqual([]);
    expect(shared.sender.messages).toHaveLength(150);
    const made = shared.sender.messages;
    const checked: string[] = [];
    // All at once would take longer than a store's deadline on two busy cores.
    for (let from = 0; from < made.length; from += 30) {
      const some = made.slice(from, from + 30);
      checked.push(...(await Promise.all(some.map(({ authentication_uuid: id, code }, n) => ending(at(n + 1).check(id, code))))));
    }
    expect(tallied(checked)).toEqual({ valid: 150 });
  });

  it("two erasures and two unlocks during 36 creates of one number in four processes: at most twice its cap is sent, and a later erasure is complete (docs/contract.md#unlock)", async () => {
    const url = await database(server);
    const shared = { clock: fixedClock(start), customer: randomUUID(), sender: sender(), storeTimeout: 60, policy: { limits: wide } };
    const set = many(4, () => service({ ...shared, store: postgresStore({ pool: pool(url, patient) }) }));
    const at = (n: number) => set[n % 4] as Service;
    const of = { customer_uuid: shared.customer, phone_number: "+33612345678" };
    const outcomes = await Promise.all(
      many(40, async (n) => {
        if (n % 20 === 7) return JSON.stringify(await at(n).verifier.unlock(of));
        if (n % 20 === 13) return JSON.stringify(await at(n).verifier.erase(of));
        return ending(at(n).create(of.phone_number));
      }),
    );
    expect(outcomes.filter((one) => one.includes('"unlocked":true')).length).toBeLessThanOrEqual(1);
    expect(shared.sender.messages.length).toBeLessThanOrEqual(10);
    while ((await ending(at(1).create(of.phone_number))) === "pending");
    expect(shared.sender.messages.length).toBeLessThanOrEqual(10);
    await at(0).verifier.erase(of);
    await Promise.all(set.map((one) => one.verifier.flush()));
    await at(1).verifier.erase(of);
    for (const { authentication_uuid: id, code } of shared.sender.messages) expect(await ending(at(2).check(id, code))).toBe("invalid_auth_uuid");
    expect(await at(3).verifier.history(of)).toEqual([]);
    shared.clock.advance(25 * hour);
    expect(await ending(at(3).create(of.phone_number))).toBe("pending");
  });

  describe.runIf(hasPgbouncer)("through PgBouncer in transaction mode", () => {
    const clients: [string, (url: string) => PostgresStoreOptions][] = [
      // PgBouncer rejects a client's `statement_timeout`.
      ["pg", (url) => ({ pool: pool(url, { connectionTimeoutMillis: 1_500, query_timeout: 1_500, max: 16 }) })],
      [
        "postgres.js without prepare",
        (url) => {
          const made = postgres(url, { prepare: false, fetch_types: false, connect_timeout: 2, backoff: () => 0.2, onnotice: () => {} });
          onTestFinished(() => made.end({ timeout: 1 }));
          return { pool: made };
        },
      ],
    ];
    it.each(clients)(
      "%s: server connections reset under load: one message per acknowledged create, and the cap is exact (docs/contract.md#stored-first)",
      async (_, connect) => {
        const url = await database(server);
        const through = await bounced(server as PostgresServer, url);
        const shared = {
          customer: randomUUID(),
          sender: sender(),
          clock: undefined as never,
          policy: { limits: { ...wide, perCustomer: [{ limit: 60, window: 3_600 }] } },
        };
        const set = many(3, () => service({ ...shared, store: postgresStore(connect(through)) }));
        const at = (n: number) => set[n % 3] as Service;
        const calm = chaos(server as PostgresServer, url);
        const ends: string[] = [];
        for (let round = 0; round < 6; round++) ends.push(...(await Promise.all(many(30, (n) => ending(at(n).create(round * 30 + n))))));
        await calm();
        const counts = tallied(ends);
        expect(Object.keys(counts).filter((end) => !["pending", "unavailable", "rate_limited"].includes(end))).toEqual([]);
        expect(shared.sender.messages).toHaveLength(counts["pending"] ?? 0);
        let next = 1_000;
        await eventually("the cap is used up", async () => {
          await ending(at(next).create(next++));
          return shared.sender.messages.length >= 60;
        });
        // Dead connections that PgBouncer has not noticed yet fail first.
        for (const one of set)
          await eventually("all is taken back", () =>
            one.verifier.flush().then(
              () => true,
              () => false,
            ),
          );
        expect(tallied(await Promise.all(many(9, (n) => ending(at(n).create(5_000 + n)))))).toEqual({ rate_limited: 9 });
      },
    );
  });
});
