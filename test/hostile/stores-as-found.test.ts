import { rmSync } from "node:fs";
import { Redis } from "ioredis";
import { MongoClient, type MongoClientOptions } from "mongodb";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { mongoStore } from "../../adapters/store/mongo/index.js";
import { redisStore } from "../../adapters/store/redis/index.js";
import { sqliteStore } from "../../adapters/store/sqlite/index.js";
import { type RedisServer, redisIsInstalled, startRedis } from "../support/redis.js";
import { libraries, newFolder } from "../support/sqlite.js";
import { setUp } from "../support/verifier.js";
import { faultOf, findingsOn } from "./store-operators-kit.js";
import { processOn } from "./store-users-kit.js";
import { hellos, mongoThatRejects, rejections } from "./stores-as-found-kit.js";

const startTheServer = /start it, or correct the address/;

describe("MongoDB as it is found", () => {
  /** The documented options with shorter times. */
  const fast = { serverSelectionTimeoutMS: 300, connectTimeoutMS: 300, socketTimeoutMS: 300, waitQueueTimeoutMS: 300 };

  const storeAt = (url: string, options: MongoClientOptions = fast) => {
    const client = new MongoClient(url, options);
    onTestFinished(() => client.close());
    return { client, store: mongoStore({ db: client.db() }) };
  };

  const storeOn = async (hello: Readonly<Record<string, unknown>>, rejection: Readonly<Record<string, unknown>>, query = "?directConnection=true") => {
    const server = await mongoThatRejects(hello, rejection);
    onTestFinished(() => server.close());
    return storeAt(`mongodb://127.0.0.1:${server.port}/app${query}`);
  };

  it("ping and doctor report a secondary, on which every create returns 503 (docs/watching.md#ping-doctor-why-explain)", async () => {
    const { store } = await storeOn(hellos.secondary, rejections.notPrimary);
    expect(await faultOf(store)).toContain("not primary");
    const { verifier } = setUp({ store });
    expect((await verifier.ping()).store.missing.join("\n")).toMatch(/replica|secondary|primary/);
    expect((await findingsOn(store)).join("\n")).toMatch(/primary/);
  });

  it("doctor names rs.initiate() on a server that was started with --replSet and not initiated (docs/stores.md#mongodb)", async () => {
    const { store } = await storeOn(hellos.notInitiated, rejections.notInitiated, "");
    const findings = (await findingsOn(store)).join("\n");
    expect(findings).not.toMatch(startTheServer);
    expect(findings).toContain("rs.initiate()");
  });

  it.each([
    ["of another set", hellos.primary, "?replicaSet=other", "correct replicaSet in the URL"],
    ["that find no primary", hellos.secondary, "?replicaSet=rs0", "start the other members of its replica set"],
  ])("doctor names the fix for members %s", async (_, hello, query, fix) => {
    const { store } = await storeOn(hello, rejections.notPrimary, query);
    expect((await findingsOn(store)).join("\n")).toContain(fix);
  });

  it("the log names the fix if the user may only read (docs/stores.md#mongodb)", async () => {
    const { store } = await storeOn(hellos.primary, rejections.unauthorized);
    expect(await faultOf(store)).toContain("readWrite");
  });

  it("a cluster of Atlas without room is not reported as wrong credentials", async () => {
    const { store } = await storeOn(hellos.primary, rejections.overQuota);
    const fault = await store.ensureIndexes().then(
      () => "",
      (error: Error) => error.message,
    );
    expect(fault).toContain("space quota");
    expect(fault).not.toMatch(/credentials|password/);
  });

  it("the driver gives up within storeTimeout every time, so that the log has its reason (docs/stores.md#mongodb, the options of the client)", async () => {
    const { store } = storeAt("mongodb://127.0.0.1:1/app");
    const { verifier } = processOn(store, { storeTimeout: 0.4 }); // 300 of 400 ms, as 1,500 of 2,000
    const faults = [await verifier.ping(), await verifier.ping()].map(({ store: { fault } }) => fault);
    expect(faults).toEqual([expect.stringContaining("ECONNREFUSED"), expect.stringContaining("ECONNREFUSED")]);
  });

  it("doctor does not say to start the server if the application has closed the client (docs/stores.md#mongodb, Start)", async () => {
    const { client, store } = await storeOn(hellos.primary, rejections.unauthorized);
    await store.find("customer", "id");
    await client.close();
    expect((await findingsOn(store)).join("\n")).not.toMatch(startTheServer);
  });
});

describe.skipIf(!redisIsInstalled("the tests of stores as they are found"))("Redis as it is found", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server?.stop());

  it("the fix for a missing right names the keys of an ioredis client that has its own keyPrefix (docs/stores.md#redis, Rights)", async () => {
    await server.cli("ACL", "SETUSER", "app", "on", ">pw", "~phoneproof*", "+eval", "+evalsha", "+ping", "+@read", "+@write");
    const client = new Redis({ host: "127.0.0.1", port: server.port, username: "app", password: "pw", keyPrefix: "shop:", enableReadyCheck: false });
    onTestFinished(() => client.disconnect());
    const fault = await faultOf(redisStore({ client }));
    expect(fault).toContain("NOPERM");
    expect(fault).toContain("~shop:phoneproof*");
  });

  it("doctor does not say to start the server if the application has closed the client", async () => {
    const client = new Redis({ host: "127.0.0.1", port: server.port });
    onTestFinished(() => client.disconnect());
    await client.quit();
    expect((await findingsOn(redisStore({ client }))).join("\n")).not.toMatch(startTheServer);
  });
});

describe.each(Object.entries(libraries))("SQLite as it is found, %s", (_, open) => {
  it("ping says that the application has closed the handle, not that files were deleted (docs/stores.md#sqlite, Errors)", async () => {
    const { file, remove } = newFolder();
    onTestFinished(remove);
    const database = open(file);
    const { verifier, create } = setUp({ store: sqliteStore({ database }) });
    await create();
    database.close();
    for (const end of ["-wal", "-shm"]) rmSync(file + end, { force: true }); // SQLite itself deletes them with the last handle; libsql leaves them
    const { fault } = (await verifier.ping()).store;
    expect(fault).not.toMatch(/deleted or replaced/);
    expect(fault).toMatch(/closed|not open/);
  });
});
