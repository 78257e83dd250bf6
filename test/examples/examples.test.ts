import { type ChildProcessByStdio, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { mapStore } from "../../examples/map-store.js";
import { storeContract } from "../../src/testing/index.js";
import { mongoServer } from "../support/mongo.js";
import { redisIsInstalled, startRedis } from "../support/redis.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const apiKey = randomBytes(32).toString("base64");
const customer_uuid = "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f";

interface Example {
  readonly url: string;
  /** The code of the last message shown, once there is one. */
  code(): Promise<string>;
  stop(): Promise<void>;
}

/** Runs a program until it says where it listens. */
async function start(args: readonly string[], env: Readonly<Record<string, string>>, listening: RegExp): Promise<Example> {
  const child: ChildProcessByStdio<null, Readable, Readable> = spawn(process.execPath, args, {
    cwd: root,
    env: {
      NODE_ENV: "development",
      PATH: process.env.PATH,
      NEXT_TELEMETRY_DISABLED: "1",
      PHONEPROOF_SECRET: randomBytes(32).toString("base64"),
      PHONEPROOF_API_KEY: apiKey,
      PORT: "0",
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let printed = "";
  const seen = (pattern: RegExp) =>
    new Promise<string>((resolve, reject) => {
      const look = () => {
        const match = pattern.exec(printed)?.[1];
        if (match !== undefined) resolve(match);
      };
      child.stdout.on("data", look);
      child.stderr.on("data", look);
      child.on("exit", () => reject(new Error(`it ended:\n${printed}`)));
      look();
    });
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (printed += chunk));
  return {
    url: await seen(listening),
    code: () => seen(/Your verification code is (\d{6})/),
    async stop() {
      if (child.exitCode !== null) return;
      const ended = once(child, "exit");
      child.kill();
      await ended;
    },
  };
}

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
  expect(await post("/v1/check", { authentication_uuid, check_code: await example.code() })).toEqual({ authentication_uuid, status: "valid" });
  expect((await fetch(example.url)).status).not.toBe(500);
  await example.stop();
}

const program = (file: string, env: Readonly<Record<string, string>> = {}) =>
  start(["node_modules/tsx/dist/cli.mjs", `examples/${file}`], env, /listening on (http:\S+)/);

it("an example without a secret ends with the words that make one", async () => {
  await expect(program("express.ts", { PHONEPROOF_SECRET: "" })).rejects.toThrow(
    /PHONEPROOF_SECRET is not set; make one: export PHONEPROOF_SECRET="\$\(openssl rand -base64 32\)"/,
  );
});

describe("each example verifies a number", () => {
  it.each(["express.ts", "fastify.ts", "custom-store.ts"])("examples/%s", async (file) => {
    await verifies(await program(file));
  });

  it.runIf(redisIsInstalled("examples/redis.ts"))("examples/redis.ts", async () => {
    const redis = await startRedis();
    try {
      await verifies(await program("redis.ts", { REDIS_URL: `redis://127.0.0.1:${redis.port}` }));
    } finally {
      await redis.stop();
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
    await verifies(
      await start(["node_modules/next/dist/bin/next", "dev", "examples/next", "--hostname", "127.0.0.1", "--port", "0"], {}, /Local:\s+(http:\S+)/),
    );
  });
});

describe("the custom store keeps the contract", () => {
  for (const { name, run } of storeContract()) it(name, () => run({ store: mapStore() }));
});
