import { randomUUID } from "node:crypto";
import { Pool } from "pg";
import postgres from "postgres";
import { afterAll, expect, it, onTestFinished } from "vitest";
import { postgresStore } from "../../adapters/store/postgres/index.js";
import { redisStore } from "../../adapters/store/redis/index.js";
import { postgresServer } from "../support/postgres.js";
import { newNumber, serviceOn } from "../support/redis-service.js";
import { heapUsed, poorNetwork } from "./poor-networks-kit.js";

const server = await postgresServer("poor networks");
afterAll(() => server?.stop());

it.skipIf(!server)("replaces connections of postgres.js that died without notice once they are older than max_lifetime", async () => {
  const { port } = new URL(server?.url ?? "");
  const network = await poorNetwork(Number(port));
  onTestFinished(() => network.close());
  // As in docs/stores.md, with a lifetime of a second instead of a minute, and one connection, so that all are dead.
  const sql = postgres(`postgres://postgres@127.0.0.1:${network.port}/postgres`, {
    max: 1,
    connect_timeout: 2,
    backoff: () => 0.2,
    fetch_types: false,
    max_lifetime: 1,
    connection: { statement_timeout: 1500 },
    onnotice: () => {},
  });
  onTestFinished(() => sql.end({ timeout: 0 }));
  const store = postgresStore({ pool: sql, schema: `poor_${randomUUID().slice(0, 8)}` });
  await store.ensureSchema();
  const service = serviceOn(store, { storeTimeout: 0.3, statistics: false, callbacks: { worker: false } });
  expect((await service.create(newNumber())).status).toBe(200);

  network.mute();
  // New connections work.
  const direct = new Pool({ connectionString: `postgres://postgres@127.0.0.1:${network.port}/postgres`, max: 1 });
  onTestFinished(() => direct.end());
  expect((await direct.query("select 1 as one")).rows).toEqual([{ one: 1 }]);

  await expect.poll(async () => (await service.create(newNumber())).status, { timeout: 2_000 }).toBe(200);
});

it("keeps the heap within 96 MB while the responses of the store are lost for 45 seconds at 200 creates a second", async () => {
  const lost = () => Promise.reject(new Error("Command timed out"));
  const service = serviceOn(redisStore({ client: lost }), { storeTimeout: 0.2, statistics: false, callbacks: { worker: false }, policy: { spam: {} } });
  expect((await service.create(newNumber())).status).toBe(503);

  const before = heapUsed();
  for (let batch = 0; batch < 6; batch++) {
    const answers = await Promise.all(Array.from({ length: 500 }, () => service.create(newNumber(), { ip: "203.0.113.7" })));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]));
  }
  const each = (heapUsed() - before) / 3_000;
  // docs/operations.md: records take 40 to 53 MB of a heap of 96 MB, so 43 MB are left for 45 s of creates that are being undone.
  expect((each * 45 * 200) / 1e6).toBeLessThan(43);
});
