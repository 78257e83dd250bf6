import { postgresStore } from "phoneproof/postgres";
import { redisStore } from "phoneproof/redis";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { newStore, type OwnPostgresServer, postgresIsInstalled, postgresJsSettings, startPostgres, startStandby } from "../support/postgres.js";
import { redisIsInstalled, startRedis, until } from "../support/redis.js";
import { startProxy } from "../support/redis-proxy.js";
import { newNumber, serviceOn } from "../support/redis-service.js";
import { at, poolClients, redisClients } from "./infrastructure-kit.js";

describe.skipIf(!postgresIsInstalled("test/hostile/infrastructure"))("PostgreSQL that fails over", () => {
  let primary: OwnPostgresServer;
  let standby: OwnPostgresServer;
  let url: string;

  beforeAll(async () => {
    primary = await startPostgres();
    const created = await newStore(primary);
    await created.close();
    url = created.url;
    standby = await startStandby(primary);
  });
  afterAll(async () => {
    await standby?.stop();
    await primary?.stop();
  });

  it.each(["standby first", "primary first"])("postgres.js with both hosts and the documented setting uses the primary: %s (docs/stores.md)", async (order) => {
    const ports = [standby.port, primary.port];
    if (order === "primary first") ports.reverse();
    const { username, pathname } = new URL(url);
    const sql = postgres(`postgres://${username}@${ports.map((port) => `127.0.0.1:${port}`).join(",")}${pathname}`, {
      ...postgresJsSettings,
      target_session_attrs: "primary",
    });
    onTestFinished(() => sql.end({ timeout: 1 }));
    const service = serviceOn(postgresStore({ pool: sql }));
    expect((await service.create(newNumber())).body.status).toBe("pending");
  });

  it.each(Object.keys(poolClients))(
    "%s leaves a connection to a standby after the error, once its address leads to the primary (docs/stores.md#postgresql, Failover)",
    async (name) => {
      const address = await startProxy(standby.port);
      onTestFinished(() => address.close());
      const client = await poolClients[name]?.(at(url, address.port));
      if (client === undefined) throw new Error(`no client ${name}`);
      onTestFinished(() => client.close());
      const service = serviceOn(postgresStore(client.options));
      expect((await service.create(newNumber())).status).toBe(503); // the connection leads to the standby
      address.redirect(primary.port);
      await until("a create is accepted", async () => (await service.create(newNumber())).status === 200, 1_500);
    },
  );

  it.each(Object.keys(poolClients))("%s replaces a connection that died without notice (docs/stores.md#the-client-is-yours)", async (name) => {
    const address = await startProxy(primary.port);
    onTestFinished(() => address.close());
    const client = await poolClients[name]?.(at(url, address.port));
    if (client === undefined) throw new Error(`no client ${name}`);
    onTestFinished(() => client.close());
    const service = serviceOn(postgresStore(client.options));
    expect((await service.create(newNumber())).status).toBe(200);
    address.mute();
    await until("a create is accepted", async () => (await service.create(newNumber())).status === 200, 2_000);
  });
});

describe.skipIf(!redisIsInstalled("test/hostile/infrastructure"))("Redis that fails over behind one address", () => {
  it.each(Object.keys(redisClients))("%s leaves a replica that serves no stale data, once its address leads to the primary (docs/stores.md)", async (name) => {
    const [former, primary] = await Promise.all([startRedis(["--replica-serve-stale-data", "no"]), startRedis()]);
    const address = await startProxy(former.port);
    onTestFinished(async () => {
      await address.close();
      await Promise.all([former.stop(), primary.stop()]);
    });
    const connected = await redisClients[name]?.(address.url);
    if (connected === undefined) throw new Error(`no client ${name}`);
    onTestFinished(() => connected.close());
    const service = serviceOn(redisStore({ client: connected.client }));
    expect((await service.create(newNumber())).status).toBe(200);
    // The former primary does not reach the new one, as with a wrong `masterauth`. Open connections stay with it.
    await former.cli("REPLICAOF", "127.0.0.1", "1");
    address.redirect(primary.port);
    await until("a create is accepted", async () => (await service.create(newNumber())).status === 200, 2_000);
  });
});
