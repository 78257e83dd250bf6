import { randomUUID } from "node:crypto";
import type { PoolConfig } from "pg";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { postgresStore } from "../../adapters/store/postgres/index.js";
import { type OwnPostgresServer, postgresIsInstalled, sql, startPostgres } from "../support/postgres.js";
import { startProxy } from "../support/redis-proxy.js";
import { usesUpCap } from "./cap.js";
import { ending, eventually, type Service, sender, service, tallied, wide } from "./kit.js";
import { chaos, database, hold, nameOf, pool, settings } from "./postgres-kit.js";

const installed = postgresIsInstalled("the hostile tests of PostgreSQL's faults");

/** "Every request ends within its one deadline" of 2 s; the rest is slack for a slow test machine. */
const deadline = 12_000;

describe.runIf(installed)("PostgreSQL when connections and sessions fail", () => {
  let server: OwnPostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server?.stop());

  const on = (url: string, options: Parameters<typeof service>[0] = {}, more: PoolConfig = {}): Service =>
    service({ store: postgresStore({ pool: pool(url, { ...settings, ...more }) }), clock: undefined as never, ...options });
  const terminate = (url: string) => sql(server.url, `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${nameOf(url)}'`);

  /** How many sessions wait for a lock. */
  async function waiting(url: string): Promise<number> {
    const rows = await sql<{ n: number }>(
      server.url,
      `select count(*)::integer as n from pg_stat_activity where datname = '${nameOf(url)}' and wait_event_type = 'Lock'`,
    );
    return rows[0]?.n ?? 0;
  }

  it("responses cut while creates share calls: an acknowledged create sends one message, a failed one sends none and costs nothing (docs/contract.md#lost-write)", async () => {
    const url = await database(server);
    const proxy = await startProxy(server.port);
    onTestFinished(() => proxy.close());
    const through = new URL(url);
    through.port = String(proxy.port);
    const one = on(through.href, { policy: { limits: { ...wide, perCustomer: [{ limit: 100, window: 3_600 }] } } });
    expect(await ending(one.create(0))).toBe("pending");
    const first = Array.from({ length: 100 }, (_, n) => ending(one.create(n + 1, {}, { idempotencyKey: `k${n}` })));
    await first[0];
    proxy.cutAnswers(true);
    first.push(...Array.from({ length: 100 }, (_, n) => ending(one.create(n + 101, {}, { idempotencyKey: `k${n + 100}` }))));
    const before = tallied(await Promise.all(first));
    proxy.cutAnswers(false);
    expect(Object.keys(before).filter((end) => !["pending", "unavailable", "rate_limited"].includes(end))).toEqual([]);
    expect(one.sender.messages).toHaveLength((before["pending"] ?? 0) + 1);
    // Counts of failed creates are taken back in the background: in the end the cap admits exactly 100.
    let sent = one.sender.messages.length;
    let next = 1_000;
    await eventually("the cap is used up", async () => {
      await ending(one.create(next++));
      const more = one.sender.messages.length > sent;
      sent = one.sender.messages.length;
      return !more && sent >= 100;
    });
    await one.verifier.flush();
    expect(one.sender.messages).toHaveLength(100);
  });

  it("backends ended at random during 300 creates of three processes: one message per acknowledged create, and the cap is exact (docs/contract.md#stored-first)", async () => {
    const url = await database(server);
    const policy = { limits: { ...wide, perCustomer: [{ limit: 100, window: 3_600 }] } };
    const customer = randomUUID();
    const carrier = sender();
    const set = [0, 1, 2].map(() => on(url, { customer, policy, sender: carrier }, { max: 5 }));
    const calm = chaos(server, url);
    const ends: string[] = [];
    for (let round = 0; round < 6; round++)
      ends.push(...(await Promise.all(Array.from({ length: 50 }, (_, n) => ending((set[n % 3] as Service).create(round * 50 + n))))));
    await calm();
    const counts = tallied(ends);
    expect(Object.keys(counts).filter((end) => !["pending", "unavailable", "rate_limited"].includes(end))).toEqual([]);
    expect(carrier.messages).toHaveLength(counts["pending"] ?? 0);
    let next = 1_000;
    await eventually("the cap is used up", async () => {
      await ending((set[next % 3] as Service).create(next++));
      return carrier.messages.length >= 100;
    });
    await Promise.all(set.map((each) => each.verifier.flush()));
    expect(tallied(await Promise.all(Array.from({ length: 9 }, (_, n) => ending((set[n % 3] as Service).create(5_000 + n)))))).toEqual({ rate_limited: 9 });
    expect(carrier.messages).toHaveLength(100);
  });

  it("a customer whose rows another session locks gets 503 in time and does not block another customer (docs/contract.md#store-deadline)", async () => {
    const url = await database(server);
    const carrier = sender();
    const store = postgresStore({ pool: pool(url) });
    const [hot, quiet] = [carrier, sender()].map((each) => service({ store, clock: undefined as never, sender: each, policy: { limits: wide } })) as [
      Service,
      Service,
    ];
    expect([await ending(hot.create(0)), await ending(quiet.create(0))]).toEqual(["pending", "pending"]);
    const release = await hold(url, hot.customer);
    const slowest = performance.now();
    const asked = Array.from({ length: 200 }, (_, n) => ending(hot.create(n + 1)).then((end) => [end, performance.now() - slowest] as const));
    await eventually("calls wait", async () => (await waiting(url)) > 1);
    const beside: string[] = [];
    for (let n = 0; n < 20; n++) beside.push(await ending(quiet.create(n + 1)));
    expect(await waiting(url)).toBeGreaterThan(0);
    expect(tallied(beside)).toEqual({ pending: 20 });
    const ends = await Promise.all(asked);
    expect(tallied(ends.map(([end]) => end))).toEqual({ unavailable: 200 });
    expect(Math.max(...ends.map(([, ms]) => ms))).toBeLessThan(deadline);
    expect(carrier.messages).toHaveLength(1);
    await release();
    let next = 1_000;
    await eventually("the hot customer is served", async () => (await ending(hot.create(next++))) === "pending");
  });

  it("in a pool of four, a customer whose rows another session locks leaves a connection for another customer", async () => {
    const url = await database(server);
    const own = pool(url, { ...settings, max: 4 });
    const store = postgresStore({ pool: own });
    const [held, quiet] = [0, 1].map(() => service({ store, clock: undefined as never, policy: { limits: wide } })) as [Service, Service];
    expect([await ending(held.create(0)), await ending(quiet.create(0))]).toEqual(["pending", "pending"]);
    await hold(url, held.customer);
    let [going, number] = [true, 1];
    const flood = Array.from({ length: 60 }, async () => {
      while (going) await ending(held.create(number++));
    });
    const began = performance.now();
    await eventually("no connection is left", () => own.waitingCount > 0 || performance.now() - began > 6_000);
    const ends: string[] = [];
    for (let n = 1; n <= 5; n++) ends.push(await ending(quiet.create(n)));
    going = false;
    await Promise.all(flood);
    expect(tallied(ends)).toEqual({ pending: 5 });
  });

  it("a pool that the application uses up gives 503 in time; nothing is sent, and connections handed over late cost nothing (docs/contract.md#fail-closed)", async () => {
    const url = await database(server);
    // With the defaults of `pg`, nothing ends the wait for a connection.
    const shared = pool(url, { max: 3 });
    const one = service({
      store: postgresStore({ pool: shared }),
      clock: undefined as never,
      policy: { limits: { ...wide, perCustomer: [{ limit: 20, window: 3_600 }] } },
    });
    expect(await ending(one.create(0))).toBe("pending");
    const held = await Promise.all([shared.connect(), shared.connect(), shared.connect()]);
    const began = performance.now();
    const ends = tallied(await Promise.all(Array.from({ length: 40 }, (_, n) => ending(one.create(n + 1)))));
    expect(performance.now() - began).toBeLessThan(deadline);
    expect(ends).toEqual({ unavailable: 40 });
    for (const client of held) client.release();
    expect(one.sender.messages).toHaveLength(1);
    await usesUpCap(one, 20);
  });

  it("a pool of one connection keeps caps and wrong codes exact for 300 concurrent requests of three customers (docs/contract.md#caps)", async () => {
    const url = await database(server);
    const store = postgresStore({ pool: pool(url, { max: 1 }) });
    const set = [0, 1, 2].map(() => service({ store, storeTimeout: 120, policy: { limits: wide } }));
    const made = await Promise.all(set.map((one) => one.create(7)));
    const ends = await Promise.all(
      Array.from({ length: 300 }, (_, n) => {
        const at = n % 3;
        const one = set[at] as Service;
        const id = made[at]?.authentication_uuid as string;
        return ending(n % 2 ? one.create(7) : one.check(id, one.wrong(id)));
      }),
    );
    expect(tallied(ends)).toEqual({ pending: 12, invalid: 15, rate_limited: 273 });
  });

  it.each([
    ["lock_timeout", "300ms"],
    ["statement_timeout", "300ms"],
  ])("%s gives 503 during another session's lock and sends nothing; afterwards it works (docs/contract.md#fail-closed)", async (setting, value) => {
    const url = await database(server);
    await sql(url, `alter database ${nameOf(url)} set ${setting} = '${value}'`);
    const one = on(url, { policy: { limits: wide } });
    const { authentication_uuid: id } = await one.create(1);
    const release = await hold(url, one.customer);
    const ends = await Promise.all([
      ...Array.from({ length: 20 }, (_, n) => ending(one.create(n + 2))),
      ...Array.from({ length: 5 }, () => ending(one.check(id, one.wrong(id)))),
    ]);
    expect(tallied(ends)).toEqual({ unavailable: 25 });
    expect(one.sender.messages).toHaveLength(1);
    await release();
    await eventually("it serves", async () => (await ending(one.create(100))) === "pending");
    expect(await ending(one.check(id, one.sender.codeOf(id)))).toBe("valid");
  });

  it("a database turned read-only gives 503 and sends nothing until it is writable again (docs/contract.md#fail-closed)", async () => {
    const url = await database(server);
    const one = on(url, { policy: { limits: wide } });
    const { authentication_uuid: id } = await one.create(1);
    await sql(url, `alter database ${nameOf(url)} set default_transaction_read_only = on`);
    await terminate(url);
    await eventually("new sessions", async () => (await ending(one.create(2))) === "unavailable");
    const sent = one.sender.messages.length;
    expect(tallied(await Promise.all(Array.from({ length: 10 }, (_, n) => ending(one.create(n + 10)))))).toEqual({ unavailable: 10 });
    expect(await ending(one.check(id, one.sender.codeOf(id)))).toBe("unavailable");
    expect(one.sender.messages).toHaveLength(sent);
    // An outage is logged once a minute, and this one began with ended connections: another service logs the cause.
    const other = on(url);
    expect(await ending(other.create(1))).toBe("unavailable");
    expect(String(other.log[0]?.fields["err"])).toMatch(/25006.*read-only/);
    await sql(server.url, `alter database ${nameOf(url)} reset default_transaction_read_only`);
    await terminate(url);
    await eventually("it serves", async () => (await ending(one.create(3))) === "pending");
    expect(await ending(one.check(id, one.sender.codeOf(id)))).toBe("valid");
  });

  it("serializable isolation: four processes that race on one number and one authentication exceed no limit (docs/contract.md#caps)", async () => {
    const url = await database(server);
    await sql(url, `alter database ${nameOf(url)} set default_transaction_isolation = 'serializable'`);
    const shared = { customer: randomUUID(), sender: sender(), policy: { limits: wide }, storeTimeout: 20 };
    const set = [0, 1, 2, 3].map(() => on(url, shared, { max: 4 }));
    const at = (n: number) => set[n % 4] as Service;
    const { authentication_uuid: id } = await at(0).create(1);
    const code = shared.sender.codeOf(id);
    const racers = await Promise.all(
      Array.from({ length: 200 }, (_, n) => ending(n % 2 ? at(n >> 1).create(2) : at(n >> 1).check(id, n % 40 === 0 ? code : at(0).wrong(id)))),
    );
    const counts = tallied(racers);
    expect(counts["pending"] ?? 0).toBeLessThanOrEqual(5);
    expect(shared.sender.messages).toHaveLength(1 + (counts["pending"] ?? 0));
    expect(counts["invalid"] ?? 0).toBeLessThanOrEqual(5);
    expect(counts["valid"] ?? 0).toBeLessThanOrEqual(1);
    await eventually("the number's cap is used up", async () => (await ending(at(0).create(2))) === "rate_limited");
    await Promise.all(set.map((one) => one.verifier.flush()));
    while ((await ending(at(1).create(2))) === "pending");
    expect(shared.sender.messages).toHaveLength(6);
  });
});
