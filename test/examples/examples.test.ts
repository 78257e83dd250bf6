import { randomBytes } from "node:crypto";
import { afterAll, describe, expect, it } from "vitest";
import { mapStore } from "../../examples/map-store.js";
import { storeContract } from "../../src/testing/index.js";
import { mongoServer } from "../support/mongo.js";
import { newDatabase, postgresServer } from "../support/postgres.js";
import { redisIsInstalled, startRedis } from "../support/redis.js";
import { newFolder } from "../support/sqlite.js";
import { type Example, nextDev, tsx } from "./process.js";

const apiKey = randomBytes(32).toString("base64");
const customer_uuid = "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f";

const running: Example[] = [];
afterAll(async () => {
  for (const example of running) await example.stop();
});

async function verifies(example: Example): Promise<void> {
  running.push(example);
  const post = async (path: string, body: object) => {
    const response = await fetch(`${example.url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-api-key": apiKey },
      body: JSON.stringify({ customer_uuid, ...body }),
    });
    return (await response.json()) as { status: string; authentication_uuid: string };
  };
  const { status, authentication_uuid } = await post("/v1/authentication", { phone_number: "+33612345678" });
  expect(status).toBe("pending");
  expect(await post("/v1/check", { authentication_uuid, check_code: await example.code("+33612345678") })).toEqual({ authentication_uuid, status: "valid" });
  expect((await fetch(example.url)).status).not.toBe(500);
  await example.stop();
}

const program = (file: string, env: Readonly<Record<string, string>> = {}) => tsx(file, { PHONEPROOF_API_KEY: apiKey, ...env });

it("an example without a secret exits and prints how to generate one", async () => {
  await expect(program("express.ts", { PHONEPROOF_SECRET: "" })).rejects.toThrow(
    /PHONEPROOF_SECRET is not set; make one: export PHONEPROOF_SECRET="\$\(openssl rand -base64 32\)"/,
  );
});

describe("each example verifies a number", () => {
  it.each(["express.ts", "fastify.ts", "custom-store.ts"])("examples/%s", async (file) => {
    await verifies(await program(file));
  });

  it("examples/sqlite.ts", async () => {
    const { file, remove } = newFolder();
    await verifies(await program("sqlite.ts", { SQLITE_FILE: file }));
    remove();
  });

  it.runIf(redisIsInstalled("examples/redis.ts"))("examples/redis.ts", async () => {
    const redis = await startRedis();
    try {
      await verifies(await program("redis.ts", { REDIS_URL: `redis://127.0.0.1:${redis.port}` }));
    } finally {
      await redis.stop();
    }
  });

  it("examples/postgres.ts", async ({ skip }) => {
    const postgres = await postgresServer("examples/postgres.ts");
    if (postgres === undefined) return skip();
    try {
      await verifies(await program("postgres.ts", { POSTGRES_URL: await newDatabase(postgres) }));
    } finally {
      await postgres.stop();
    }
  });

  it("examples/mongo.ts", async ({ skip }) => {
    const mongo = await mongoServer("examples/mongo.ts");
    if (mongo === undefined) return skip();
    try {
      await verifies(await program("mongo.ts", { MONGODB_URL: mongo.url }));
    } finally {
      await mongo.stop();
    }
  });

  it("examples/next", async () => {
    await verifies(await nextDev("next", { PHONEPROOF_API_KEY: apiKey }));
  });
});

describe("examples/own-wire.ts", () => {
  it("verifies a number with its own paths, alongside /v1, and rejects a wrong key", async () => {
    const example = await program("own-wire.ts");
    running.push(example);
    const call = async (method: string, path: string, body?: string, key = apiKey) => {
      const headers = { authorization: `Bearer ${key}`, "content-type": "text/plain" };
      const response = await fetch(`${example.url}${path}`, { method, headers, ...(body !== undefined && { body }) });
      return [response.status, (await response.text()).trim()];
    };
    const path = "/otp/+33612345678";
    expect(await call("PUT", path, undefined, "another key")).toEqual([403, expect.any(String)]);
    expect(await call("PUT", path)).toEqual([202, "pending"]);
    expect(await call("PUT", path)).toEqual([429, "denied"]);
    const code = await example.code("+33612345678");
    expect(await call("POST", path, code === "000000" ? "000001" : "000000")).toEqual([422, "invalid"]);
    expect(await call("POST", path, code)).toEqual([200, "valid"]);
    expect(await call("POST", path, code)).toEqual([422, "not_found"]);
    expect(await call("PUT", "/otp/+1")).toEqual([400, expect.any(String)]);
    expect(await call("POST", path, "1".repeat(101))).toEqual([400, expect.any(String)]);
    expect(await call("DELETE", path)).toEqual([405, expect.any(String)]);
    expect(await call("GET", "/otp/none")).toEqual([404, expect.any(String)]);
    expect(await call("POST", "/v1/authentication")).toEqual([403, expect.stringContaining("forbidden")]);
    await example.stop();
  });
});

describe("the custom store passes the store contract", () => {
  for (const { name, run } of storeContract()) it(name, () => run({ store: mapStore() }));
});
