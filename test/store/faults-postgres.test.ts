import { execFileSync } from "node:child_process";
import { chownSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { PoolConfig } from "pg";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { closeWhenSilent, type PostgresStore, type PostgresStoreOptions, postgresStore, type RunQuery } from "../../adapters/store/postgres/index.js";
import {
  newDatabase,
  newStore,
  type OwnPostgresServer,
  poolOf,
  postgresIsInstalled,
  postgresJsSettings,
  sql,
  startPostgres,
  startStandby,
} from "../support/postgres.js";
import { isInstalled } from "../support/programs.js";
import { until } from "../support/redis.js";
import { startProxy } from "../support/redis-proxy.js";
import { type Answer, newNumber, type Service, serviceOn } from "../support/redis-service.js";
import { back, expectClosed, expectInTime, type Figures, refused, slowest, throughCuts, throughOutage, throughSilence, timeUntilServed } from "./faults.js";

const installed = postgresIsInstalled("faults of PostgreSQL");

/**
 * The options that docs/stores.md recommends: with them, a call to a server that is gone ends by itself and its
 * connection is dropped.
 */
const limits: PoolConfig = { connectionTimeoutMillis: 1_500, query_timeout: 1_500, statement_timeout: 1_500, max: 20 };

const postgresJsLimits = { ...postgresJsSettings, onnotice: () => {} };

interface Connected extends Pick<PostgresStoreOptions, "pool"> {
  close(): Promise<unknown>;
}

const clients: Readonly<Record<string, (url: string) => Connected>> = {
  "pg 8": (url) => {
    const pool = poolOf(url, limits);
    return { pool, close: () => pool.end() };
  },
  "pg 8 with its defaults": (url) => {
    const pool = poolOf(url);
    return { pool, close: () => pool.end() };
  },
  "postgres.js 3": (url) => {
    const pool = postgres(url, postgresJsLimits);
    return { pool, close: () => pool.end({ timeout: 1 }) };
  },
};

const hasOpenssl = isInstalled("openssl", "openssl", "postgres.js over TLS", "version");

const figures: Record<string, Figures> = {};

describe.runIf(installed)("PostgreSQL failures", () => {
  let server: OwnPostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(async () => {
    console.log("PostgreSQL under faults:");
    console.table(figures);
    await server?.stop();
  });

  /** A service with its own database. */
  async function open(connect: (url: string) => Connected, over?: (url: URL) => void): Promise<{ service: Service; url: string; close(): Promise<unknown> }> {
    const { url, close } = await newStore(server);
    await close();
    const address = new URL(url);
    over?.(address);
    const { pool, close: closePool } = connect(address.href);
    return { service: serviceOn(postgresStore({ pool } as PostgresStoreOptions)), url, close: closePool };
  }

  describe.each(Object.entries(clients))("through %s", (name, connect) => {
    it("a server stopped during a burst loses nothing acknowledged", async () => {
      const { service, close } = await open(connect);
      const down = () => server.signal("SIGSTOP");
      figures[`stopped, ${name}`] = await throughOutage(service, down, () => server.signal("SIGCONT"));
      await close();
    });

    it("a server killed and restarted loses nothing acknowledged", async () => {
      const { service, close } = await open(connect);
      figures[`killed, ${name}`] = await throughOutage(service, server.kill, server.restart);
      await close();
    });

    it("connections cut before or after the write: nothing is sent, wrong codes stay limited, and a check repeated with its Idempotency-Key gets its result", async () => {
      for (const cut of ["cutRequests", "cutAnswers"] as const) {
        const proxy = await startProxy(server.port);
        const { service, close } = await open(connect, (address) => {
          address.port = String(proxy.port);
        });
        // While a server accepts connections and drops them, postgres.js keeps opening new ones, and needs a while to
        // recover.
        figures[`${cut}, ${name}`] = await throughCuts(service, proxy[cut], name.startsWith("postgres.js") ? 3 * back : back);
        await close();
        await proxy.close();
      }
    });
  });

  const viaPg = clients["pg 8"] as (url: string) => Connected;

  it("a slow server gives correct results within the deadline, and 503 beyond it", async () => {
    const proxy = await startProxy(server.port);
    const { service, close } = await open(viaPg, (address) => {
      address.port = String(proxy.port);
    });
    await service.create(newNumber());
    proxy.delay(50);
    const created = await service.create(newNumber());
    const { authentication_uuid: id } = created.body;
    expect([created.body.status, (await service.check(id, service.codeOf(id))).body.status]).toEqual(["pending", "valid"]);
    proxy.delay(5_000);
    figures["slow"] = { "slowest answer ms": slowest(await expectClosed(service, (await service.create(newNumber())).body.authentication_uuid ?? id)) };
    proxy.delay(0);
    await close();
    await proxy.close();
  });

  it("with statement_timeout, rows locked by another session give 503, and the check succeeds once they are unlocked", async () => {
    const { service, url, close } = await open((url) => {
      const pool = poolOf(url, { statement_timeout: 300 });
      return { pool, close: () => pool.end() };
    });
    const { authentication_uuid: id } = (await service.create(newNumber())).body;
    const other = poolOf(url, { max: 1 });
    await other.query("begin");
    await other.query("select from phoneproof.total for update");
    await other.query("select from phoneproof.record for update");
    const held = await service.check(id, service.codeOf(id));
    expectInTime([held]);
    expect(held.status).toBe(503);
    await other.query("rollback");
    expect((await service.check(id, service.codeOf(id))).body.status).toBe("valid");
    await other.end();
    await close();
  });

  it("a commit that the server aborts because of a deadlock is repeated under the same token", async () => {
    const { url, store, close } = await newStore(server);
    const pool = poolOf(url, { max: 1 });
    const [now, customer] = [Date.now(), "5e1fe9f6-3a0c-4d27-9a3e-000000000001"];
    const sum = (name: string) => ({ sum: `${customer}:${name}`, part: 1, parts: 3, weight: 1, now, keepUntil: now + 3_600_000 });
    const [first, last] = [sum("first"), sum("last")];
    await store.commit({ claims: [first, last] });
    const other = poolOf(url, { max: 1 });
    await other.query("begin");
    await other.query("set local deadlock_timeout = '60s'");
    expect((await other.query("select from phoneproof.total where name = $1 for update", [last.sum])).rowCount).toBe(1);
    const asked: string[] = [];
    const query: RunQuery = async (text, values) => {
      try {
        return (await pool.query(text, values)).rows;
      } catch (error) {
        asked.push((error as { code: string }).code);
        throw error;
      }
    };
    const record = { customer, id: customer, tokens: ["t"], data: "d", now, keepUntil: now + 3_600_000 };
    // The server looks for a deadlock once, after a second: by then this session must be waiting too.
    const waits = other.query(`do $$ begin
      while not exists (select from pg_locks where not granted) loop perform pg_sleep(0.01); end loop;
      perform from phoneproof.customer for update;
    end $$`);
    const committed = postgresStore({ query }).commit({ claims: [first, last], record });
    await waits;
    await other.query("commit");
    expect(await committed).toMatchObject({ done: true, counts: [2, 2] });
    expect(asked).toEqual(["40P01"]);
    await Promise.all([other.end(), pool.end(), close()]);
  });

  it("serialization failures are retried a few times, then reported; under repeatable read no limit is exceeded", async () => {
    const { url, close } = await newStore(server);
    await sql(url, `alter database ${new URL(url).pathname.slice(1)} set default_transaction_isolation = 'repeatable read'`);
    const pool = poolOf(url, { max: 10 });
    // Commits of one store are batched, so that they do not make each other fail.
    const [store, ...others] = Array.from({ length: 10 }, () => postgresStore({ pool })) as [PostgresStore, ...PostgresStore[]];
    const [now, customer] = [Date.now(), "5e1fe9f6-3a0c-4d27-9a3e-000000000002"];
    const ends = { now, keepUntil: now + 3_600_000 };
    const sum = { sum: `${customer}:s`, part: 1, parts: 3, weight: 1, limit: 10, ...ends };
    const member = (name: number) => ({ window: `${customer}:w`, member: String(name), since: 0, limit: 10, ...ends });
    for (const claim of [() => sum, member]) {
      const racers = await Promise.allSettled(Array.from({ length: 100 }, (_, at) => (others[at % 9] as PostgresStore).commit({ claims: [claim(at)] })));
      let granted = racers.filter((one) => one.status === "fulfilled" && one.value.done).length;
      for (const one of racers) if (one.status === "rejected") expect(one.reason).toMatchObject({ code: "40001" });
      expect(granted).toBeGreaterThan(0);
      for (; granted < 10; granted++) expect((await store.commit({ claims: [claim(100 + granted)] })).done).toBe(true);
      expect(await store.commit({ claims: [claim(200)] })).toMatchObject({ done: false, refusedBy: 0, count: 10 });
    }
    expect((await store.inspect?.(0))?.missing).toEqual([expect.stringMatching(/repeatable read.*alter role/)]);
    await Promise.all([pool.end(), close()]);
  });

  it("a full disk gives 503 and sends nothing; once there is room, requests are served and nothing acknowledged is lost", async () => {
    const { service, url, close } = await open(viaPg);
    const created = await service.create(newNumber());
    // A table larger than any other file; how many creates fit into its free pages depends on autovacuum.
    await sql(
      url,
      "insert into phoneproof.total (name, part, turn, held, changes, ends) select 'x' || repeat('y', 200) || i, 0, 0, 0, 0, 1e9::integer from generate_series(1, 40000) i",
      "checkpoint",
    );
    const [{ size = "" } = {}] = await sql<{ size: string }>(url, "select pg_relation_size('phoneproof.total')::text as size");
    // Applies to every connection of the service, open or future.
    server.limitFiles(Number(size));
    let closed: Answer | undefined;
    for (let tries = 0; tries < 3_000 && closed?.status !== 503; tries++) {
      const sentBefore = service.sent.length;
      closed = await service.create(newNumber());
      if (closed.status === 503) expect(service.sent).toHaveLength(sentBefore);
    }
    expect(closed?.status).toBe(503);
    expectInTime([closed as Answer]);
    server.limitFiles("unlimited");
    await timeUntilServed(service);
    const { authentication_uuid: id } = created.body;
    expect((await service.check(id, service.codeOf(id))).body.status).toBe("valid");
    await close();
  });

  describe("postgres.js with closeWhenSilent", () => {
    beforeAll(async () => {
      if (!hasOpenssl) return;
      const { uid, gid } = statSync(server.directory);
      const [key, cert] = ["server.key", "server.crt"].map((name) => join(server.directory, "data", name)) as [string, string];
      const kind = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost".split(" ");
      execFileSync("openssl", [...kind, "-keyout", key, "-out", cert], { stdio: "ignore" });
      for (const file of [key, cert]) chownSync(file, uid, gid);
      await sql(server.url, "alter system set ssl = on", "select pg_reload_conf()");
    });

    const ways = ["without TLS", ...(hasOpenssl ? ["over TLS"] : [])];

    /** A client, and the proxy in front of the server. */
    async function through(way: string, max: number, patience?: number) {
      const proxy = await startProxy(server.port);
      const ssl = way === "over TLS" ? "require" : false;
      const client = postgres(server.url, { ...postgresJsLimits, ...closeWhenSilent(patience), host: "127.0.0.1", port: proxy.port, max, ssl });
      const close = async () => {
        await client.end({ timeout: 0 });
        await proxy.close();
      };
      return { proxy, client, close };
    }

    it.each(ways)("%s, connections that die without notice are replaced while requests keep coming", async (way) => {
      const { proxy, client, close } = await through(way, 1);
      const store = postgresStore({ pool: client });
      await store.ensureSchema();
      figures[`connection without answers, postgres.js ${way}`] = await throughSilence(serviceOn(store), proxy);
      await close();
    });

    it.each(ways)("%s, a connection stays open while it is idle, listens, or gets its responses in time", async (way) => {
      const { client, close } = await through(way, 2, 500);
      const pid = async () => (await client`select pg_backend_pid() as pid, pg_sleep(0.3)`)[0]?.["pid"];
      const heard: string[] = [];
      await client.listen("news", (text) => heard.push(text));
      const connections = new Set(await Promise.all([pid(), pid()]));
      await sleep(1_200);
      for (let tries = 0; tries < 3; tries++) for (const one of await Promise.all([pid(), pid()])) expect(connections).toContain(one);
      await client.notify("news", "still here");
      await until("it is notified", async () => heard.length > 0);
      await close();
    });
  });

  it("a statement of postgres.js that is silent for longer than closeWhenSilent allows is rejected", async () => {
    const client = postgres(server.url, { ...postgresJsLimits, ...closeWhenSilent(300) });
    await expect(client`select pg_sleep(1)`).rejects.toThrow("CONNECTION_CLOSED");
    expect(await client`select 1 as one`).toEqual([{ one: 1 }]);
    await client.end({ timeout: 1 });
  });

  it("postgres.js with closeWhenSilent tries several hosts in turn, and sockets of a path", async () => {
    const { port, pathname } = new URL(server.url);
    const ways = [
      postgres(`postgres://postgres@127.0.0.1:1,127.0.0.1:${port}${pathname}`, postgresJsLimits),
      postgres({ ...postgresJsLimits, path: join(server.directory, `.s.PGSQL.${port}`), user: "postgres", database: "postgres" }),
    ];
    for (const client of ways) {
      expect(await client`select 1 as one`).toEqual([{ one: 1 }]);
      await client.end({ timeout: 1 });
    }
    const nowhere = postgres("postgres://postgres@127.0.0.1:1/postgres", postgresJsLimits);
    for (let tries = 0; tries < 2; tries++) await expect(nowhere`select 1`).rejects.toThrow("ECONNREFUSED");
    await nowhere.end({ timeout: 1 });
  });

  it.each<[string, (url: string) => Connected]>([
    ["pg 8", clients["pg 8"] as (url: string) => Connected],
    [
      "postgres.js 3 with max_lifetime",
      (url) => {
        const pool = postgres(url, { max_lifetime: 1, backoff: () => 0.2, fetch_types: false });
        return { pool, close: () => pool.end({ timeout: 1 }) };
      },
    ],
  ])("connections that were opened while the server was read-only are replaced through %s", async (_, connect) => {
    const { url, close } = await newStore(server);
    await close();
    const setting = (change: string) => sql(server.url, `alter database ${new URL(url).pathname.slice(1)} ${change}`);
    await setting("set default_transaction_read_only = on");
    const { pool, close: closePool } = connect(url);
    const service = serviceOn(postgresStore({ pool } as PostgresStoreOptions));
    expect((await service.create(newNumber())).status).toBe(503);
    await setting("reset default_transaction_read_only");
    await timeUntilServed(service);
    await closePool();
  });

  it("a standby gives 503, sends nothing, and inspect shows why; promoted to primary it has everything that was acknowledged", async () => {
    const primary = await startPostgres(["synchronous_standby_names=*", "synchronous_commit=local"]);
    const standby = await startStandby(primary, ["synchronous_standby_names="]);
    try {
      const { url, close } = await newStore({ url: primary.url, stop: async () => {} });
      await close();
      const proxy = await startProxy(primary.port);
      const through = new URL(url);
      through.port = String(proxy.port);
      through.searchParams.set("options", "-c synchronous_commit=remote_apply");
      const pool = poolOf(through.href, limits);
      const service = serviceOn(postgresStore({ pool }));

      const aside = new URL(url);
      aside.port = String(standby.port);
      const reading = poolOf(aside.href, limits);
      const { authentication_uuid: id } = (await service.create(newNumber())).body;
      const readOnly = serviceOn(postgresStore({ pool: reading }), {}, service.customer);
      const closed = [await readOnly.create(newNumber()), await readOnly.check(id, service.codeOf(id))];
      expectInTime(closed);
      expect([refused(closed), readOnly.sent.length]).toEqual([2, 0]);
      expect((await postgresStore({ pool: reading }).inspect?.(0))?.missing).toEqual([expect.stringContaining("select pg_promote()")]);
      await expect(postgresStore({ pool: reading }).put("key", "value", { now: 0, keepUntil: 1 })).rejects.toThrow(/\(25006\): the server is read-only/);
      await reading.end();

      figures["failover"] = await throughOutage(service, primary.kill, async () => {
        await sql(aside.href, "select pg_promote()");
        proxy.aim(standby.port);
      });
      await pool.end();
      await proxy.close();
    } finally {
      await Promise.all([primary.stop(), standby.stop()]);
    }
  });

  it("a limit holds under racing commits while the server ends connections at random", async () => {
    const { url, close } = await newStore(server);
    const pool = poolOf(url, { max: 10 });
    const admin = poolOf(await newDatabase(server), { max: 1 });
    let ending = true;
    const chaos = (async () => {
      while (ending) {
        await admin.query("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 order by random() limit 1", [
          new URL(url).pathname.slice(1),
        ]);
        await new Promise((done) => setImmediate(done));
      }
    })();
    const store = postgresStore({ pool });
    const [now, customer] = [Date.now(), "5e1fe9f6-3a0c-4d27-9a3e-000000000003"];
    const claim = () => ({ sum: `${customer}:s`, part: 1, parts: 3, weight: 1, limit: 20, now, keepUntil: now + 3_600_000 });
    const results = await Promise.allSettled(Array.from({ length: 100 }, () => store.commit({ claims: [claim()] })));
    ending = false;
    await chaos;
    const done = results.filter((one) => one.status === "fulfilled" && one.value.done).length;
    const [held = 0] = await postgresStore({ pool: poolOf(url, { max: 1 }) })
      .commit({ asks: [claim()] })
      .then((answer) => (answer.done ? answer.asked : []));
    expect(held).toBeGreaterThanOrEqual(done);
    expect(held).toBeLessThanOrEqual(20);
    await Promise.all([pool.end(), admin.end(), close()]);
  });
});
