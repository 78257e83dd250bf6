import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createClient } from "redis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { redisStore } from "../../adapters/store/redis/index.js";
import { readWorkerSettings, runWorker } from "../../src/cli/worker.js";
import { createVerifier, type Verifier } from "../../src/create-verifier.js";
import { type Receiver, receiver } from "../support/receiver.js";
import { type RedisServer, redisIsInstalled, startRedis } from "../support/redis.js";
import { type BuiltCommand, buildCommand, spawnCommand, spawnToEnd } from "./demo.js";

test("a signal while the module is being loaded stops the worker", async () => {
  const folder = await mkdtemp(join(tmpdir(), "phoneproof-worker-"));
  const module = join(folder, "verifier.mjs");
  await writeFile(module, "export const verifier = { flush: async () => ({}), close: async () => {} };");
  const printed: string[] = [];
  const output = { out: () => {}, err: (text: string) => void printed.push(text) };
  expect(await runWorker(readWorkerSettings([module], {}), output, AbortSignal.abort())).toBe(0);
  expect(printed.at(-1)).toBe("phoneproof: stopping; waiting for the deliveries in progress.\n");
  await rm(folder, { recursive: true });
}, 10_000);

let command: BuiltCommand;
beforeAll(async () => {
  command = await buildCommand({ verifier: fileURLToPath(new URL("./worker-verifier.ts", import.meta.url)) });
});
afterAll(() => command?.remove());

describe.skipIf(!redisIsInstalled("the worker command on Redis"))("phoneproof worker", () => {
  let redis: RedisServer;
  let hook: Receiver;
  let client: ReturnType<typeof createClient>;
  let customer: string;
  /** Stores callbacks and delivers none. */
  let verifier: Verifier;
  let module: string;
  beforeAll(async () => {
    redis = await startRedis();
    client = createClient({ url: redis.url, disableOfflineQueue: true });
    client.on("error", () => {});
    await client.connect();
  });
  afterAll(async () => {
    client?.destroy();
    await redis?.stop();
  });
  beforeEach(async () => {
    await redis.cli("FLUSHALL");
    hook = await receiver();
    customer = randomUUID();
    module = join(command.folder, "verifier.js");
    verifier = createVerifier({
      store: redisStore({ client }),
      sender: { send: async () => ({ outcome: "accepted" }) },
      secret: "s".repeat(32),
      countries: "all",
      customers: [{ customer_uuid: customer, keys: ["k".repeat(32)] }],
      callbacks: { allowOrigins: [hook.origin], worker: false },
    });
  });
  afterEach(async () => {
    await verifier.close();
    await hook.close();
  });

  const env = (worker = false) => ({
    REDIS_URL: redis.url,
    ALLOWED_ORIGIN: hook.origin,
    CUSTOMER: customer,
    SECRET: "s".repeat(32),
    WORKER: String(worker),
  });

  let numbers = 0;
  const create = async () => {
    const request = { customer_uuid: customer, phone_number: `+336121300${10 + numbers++}`, callback_url: `${hook.origin}/hook` };
    return (await verifier.createAuthentication(request)).authentication_uuid;
  };
  const told = () => hook.received.map(({ body }) => (JSON.parse(body) as { data: { authentication_uuid: string } }).data.authentication_uuid);

  /** Records with work left to do. */
  const waiting = async () => (await redisStore({ client }).lease(Date.now() + 60_000, 10, Date.now() + 60_000)).length;

  /** Runs the worker until `work` is done, then ends it with the signal. */
  async function withWorker(args: readonly string[], work: (stderr: () => string) => Promise<void>, signal: "SIGTERM" | "SIGINT" = "SIGTERM", own = false) {
    const child = spawnCommand(command.path, ["worker", module, ...args], env(own));
    let stderr = "";
    child.stderr.on("data", (chunk) => (stderr += chunk));
    child.stdout.resume();
    const exited = once(child, "exit");
    try {
      await work(() => stderr);
    } finally {
      child.kill(signal);
    }
    return exited;
  }

  test.each([
    ["worker: false", "SIGTERM", false],
    ["a worker of its own", "SIGINT", true],
  ] as const)("for a verifier with %s: delivers callbacks stored before and after its start, once each, until %s", async (_, signal, own) => {
    const before = await create();
    expect(hook.received).toEqual([]);
    let after = "";
    const work = async () => {
      await expect.poll(told).toEqual([before]);
      after = await create();
      await expect.poll(told).toEqual([before, after]);
    };
    expect(await withWorker(["--interval", "1"], work, signal, own)).toEqual([0, null]);
    expect(await verifier.flush()).toEqual({ delivered: 0, failed: 0, dead: 0 });
    expect(told()).toEqual([before, after]);
  });

  test("without --interval, reports an interval of 5 s and its module", async () => {
    let printed = "";
    const work = async (stderr: () => string) => {
      await expect.poll(stderr).toContain("every 5 s");
      printed = stderr();
    };
    expect(await withWorker([], work)).toEqual([0, null]);
    expect(printed).toContain(module);
  });

  test("on SIGTERM, a delivery in progress is finished and settled first", async () => {
    await create();
    let held: ServerResponse | undefined;
    hook.answer = (_request, response) => {
      held = response;
    };
    const child = spawnCommand(command.path, ["worker", module], env());
    let stderr = "";
    child.stderr.on("data", (chunk) => (stderr += chunk));
    const exited = once(child, "exit");
    await expect.poll(() => held).toBeDefined();
    expect(await waiting()).toBe(1);
    child.kill("SIGTERM");
    await expect.poll(() => stderr).toContain("waiting for the deliveries in progress");
    expect(child.exitCode).toBeNull();
    held?.writeHead(204).end();
    expect(await exited).toEqual([0, null]);
    expect(await waiting()).toBe(0);
  });

  test("continues after the store was down", async () => {
    let id = "";
    const work = async (stderr: () => string) => {
      await expect.poll(stderr).toContain("every 1 s");
      await redis.signal("SIGKILL");
      await expect.poll(stderr).toContain("will be retried");
      await redis.restart();
      await expect.poll(async () => (id ||= await create().catch(() => ""))).not.toBe("");
      await expect.poll(told).toEqual([id]);
    };
    expect(await withWorker(["--interval", "1"], work)).toEqual([0, null]);
  });

  test("--metrics-port: Prometheus can scrape the callbacks that it gives up", async () => {
    hook.answer = (_request, response) => void response.writeHead(410).end();
    await create();
    const work = async (stderr: () => string) => {
      await expect.poll(stderr).toMatch(/; metrics at http:\S+\. /);
      const [url = ""] = /http:\S+\/metrics/.exec(stderr()) ?? [];
      await expect.poll(async () => (await fetch(url)).text()).toContain('phoneproof_callbacks_total{outcome="dead"} 1');
    };
    expect(await withWorker(["--metrics-port", "0"], work)).toEqual([0, null]);
  });

  test("--once: one flush, its report as JSON on stdout, exit code 0", async () => {
    await create();
    expect(await spawnToEnd(command.path, ["worker", module, "--once"], env())).toEqual({
      code: 0,
      stdout: '{"delivered":1,"failed":0,"dead":0}\n',
      stderr: "",
    });
    hook.answer = (_request, response) => void response.writeHead(500).end();
    await create();
    const { code, stdout, stderr } = await spawnToEnd(command.path, ["worker", module, "--once"], env());
    expect({ code, stdout }).toEqual({ code: 0, stdout: '{"delivered":0,"failed":1,"dead":0}\n' });
    expect(stderr).toContain("answered 500");
  });
});

describe("phoneproof worker: the module", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "phoneproof-worker-"));
  });
  afterAll(() => rm(folder, { recursive: true }));

  const run = async (name: string, text: string, args: readonly string[] = ["--once"]) => {
    const path = join(folder, name);
    await writeFile(path, text);
    return spawnToEnd(command.path, ["worker", path, ...args]);
  };
  const stub = "{ flush: async () => ({ delivered: 0, failed: 0, dead: 0 }), close: async () => console.log('closed') }";

  test.each([
    ["named.mjs", `export const verifier = ${stub};`],
    ["default.mjs", `export default ${stub};`],
    ["named.cjs", `exports.verifier = ${stub};`],
    ["whole.cjs", `module.exports = ${stub};`],
    ["compiled.cjs", `Object.defineProperty(exports, "__esModule", { value: true }); exports.default = ${stub};`],
    ["held-open.mjs", `setInterval(() => {}, 1000); export const verifier = ${stub};`],
  ])("%s exports a verifier, which is closed at the end", async (name, text) => {
    expect(await run(name, text)).toEqual({ code: 0, stdout: '{"delivered":0,"failed":0,"dead":0}\nclosed\n', stderr: "" });
  });

  test.each([
    ["none.mjs", "export const service = 1;", "exports no verifier: add `export const verifier = createVerifier("],
    ["other.mjs", "export const verifier = { flush: 1 }; export default null;", "exports no verifier"],
    ["throws.mjs", "throw new Error('no REDIS_URL');", "no REDIS_URL"],
    ["imports.mjs", "import './missing.mjs';", "missing.mjs"],
    ["broken.mjs", "export const verifier = ;", "SyntaxError"],
    ["verifier.tsx", "export const verifier = 1;", "build it first"],
  ])("%s: exit code 2, the fix on stderr, nothing on stdout", async (name, text, fix) => {
    const { code, stdout, stderr } = await run(name, text);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(join(folder, name));
    expect(stderr).toContain(fix);
  });

  test.each(["nowhere.mjs", "."])("%s is not a file: exit code 2", async (name) => {
    const { code, stdout, stderr } = await spawnToEnd(command.path, ["worker", join(folder, name)]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain("name the module that exports your verifier");
  });

  test("a metrics port in use: exits with 1, names the option to change, and closes the verifier", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as { port: number };
    const text = `export const verifier = { ...${stub}, metricsHandler: { root: '/metrics', handle() {} } };`;
    const error = `phoneproof: port ${port} of 127.0.0.1 is taken: stop what listens there, or choose another with --metrics-port\n`;
    expect(await run("taken.mjs", text, ["--metrics-port", String(port)])).toEqual({ code: 1, stdout: "closed\n", stderr: error });
    other.close();
  });

  test("--once with a flush that fails: exit code 1, the reason on stderr", async () => {
    const failing = "export const verifier = { flush: async () => { throw new Error('the store is away'); }, close: async () => {} };";
    expect(await run("failing.mjs", failing)).toEqual({ code: 1, stdout: "", stderr: "phoneproof: the flush failed: the store is away\n" });
  });
});
