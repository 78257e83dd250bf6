import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { mongoServer } from "../support/mongo.js";
import { newStore, postgresServer } from "../support/postgres.js";
import { redisIsInstalled, startRedis } from "../support/redis.js";
import { password, startPeer, systemId } from "../support/smpp.js";
import { startUpstash } from "../support/upstash.js";
import { root } from "./built.js";
import { missing, type Runtime, runtimeOf, runtimes } from "./programs.js";
import { startWorker } from "./worker.js";

/** The table of parts in docs/runtimes.md: a row for each part, a column for each runtime. */
const table = readFileSync(join(root, "docs/runtimes.md"), "utf8")
  .split("<!-- parts: ")[1]!
  .split("\n\n")[0]!
  .split("\n")
  .slice(1)
  .map((row) =>
    row
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
const [head = [], , ...rows] = table;

const hasRedis = redisIsInstalled("test/package/runtime-parts.test.ts");
const stops: (() => unknown)[] = [];
/** The addresses of the servers, as JSON. */
let servers: string | undefined;
beforeAll(async () => {
  const mongo = await mongoServer("test/package/runtime-parts.test.ts");
  const postgres = await postgresServer("test/package/runtime-parts.test.ts");
  if (!hasRedis || mongo === undefined || postgres === undefined) return;
  const { url, close } = await newStore(postgres);
  await close();
  const redis = await startRedis();
  const upstash = await startUpstash(redis.url);
  const smpp = await startPeer();
  const carrier = createServer((request, response) => {
    request.resume();
    response.writeHead(201, { "content-type": "application/json" }).end(JSON.stringify({ sid: "SM0123456789abcdef0123456789abcdef", status: "queued" }));
  }).listen(0, "127.0.0.1");
  await once(carrier, "listening");
  stops.push(() => carrier.close(), smpp.stop, upstash.close, redis.stop, mongo.stop, postgres.stop);
  servers = JSON.stringify({
    redis: redis.url,
    upstash: { url: upstash.url, token: upstash.token },
    mongo: mongo.url,
    postgres: url,
    smpp: { port: smpp.port, systemId, password },
    carrier: `http://127.0.0.1:${(carrier.address() as AddressInfo).port}`,
  });
});
afterAll(async () => {
  for (const stop of stops) await stop();
});

/** The results of parts.js on a runtime: `"works"` for each part, or the reason why not. */
async function found(runtime: "Node" | Runtime, program: string, given: string): Promise<Readonly<Record<string, string>>> {
  if (runtime === "Workers") {
    const worker = await startWorker(program, "worker-parts.js");
    try {
      return (await (await worker.fetch("/", { method: "POST", body: given })).json()) as Record<string, string>;
    } finally {
      await worker.stop();
    }
  }
  const args = { Node: [], Bun: ["--no-install"], Deno: ["run", "--no-prompt", "--no-lock", "--allow-all"] }[runtime];
  const { stdout } = await promisify(execFile)(program, [...args, "test/package/runtimes/parts-program.js", given], { cwd: root });
  return JSON.parse(stdout) as Record<string, string>;
}

describe("docs/runtimes.md", () => {
  test.for(["Node", "Bun", "Deno", "Workers"] as const)("states which parts of the package work on %s", async (runtime, { skip }) => {
    const program = runtime === "Node" ? process.execPath : await runtimeOf(runtime);
    if (program === undefined) return skip(missing(runtimes[runtime as Runtime]));
    if (servers === undefined) return skip("it needs redis-server, MongoDB and PostgreSQL");
    const parts = await found(runtime, program, servers);
    const column = head.indexOf(runtime);
    const told = Object.fromEntries(rows.map((cells) => [cells[0], /^yes\b/.test(cells[column] ?? "") ? "works" : expect.not.stringMatching(/^works$/)]));
    expect(parts).toEqual(told);
  });
});

describe("on Workers", () => {
  test("a connection cannot be used in a later request than the one that opened it", async ({ skip }) => {
    const folder = await runtimeOf("Workers");
    if (folder === undefined) return skip(missing(runtimes.Workers));
    if (servers === undefined) return skip("it needs redis-server, MongoDB and PostgreSQL");
    const worker = await startWorker(folder, "worker-kept.js");
    try {
      const ask = async () => (await worker.fetch("/", { method: "POST", body: servers as string })).json();
      expect(await ask()).toBe("PONG");
      expect(await ask()).toBe("Error: Command timed out");
    } finally {
      await worker.stop();
    }
  });

  test("one verifier on Upstash serves many concurrent requests, also if some of them are aborted", async ({ skip }) => {
    const folder = await runtimeOf("Workers");
    if (folder === undefined) return skip(missing(runtimes.Workers));
    if (servers === undefined) return skip("it needs redis-server, MongoDB and PostgreSQL");
    const { upstash } = JSON.parse(servers) as { upstash: object };
    const worker = await startWorker(folder, "worker-crowd.js");
    const customer_uuid = randomUUID();
    const headers = {
      "content-type": "application/json",
      "x-api-key": "pp_the-key-of-the-runtimes-test-43-characters-long",
      "x-customer": customer_uuid,
      "x-upstash": JSON.stringify(upstash),
    };
    let number = 0;
    const create = async (signal?: AbortSignal): Promise<string> => {
      const body = JSON.stringify({ customer_uuid, phone_number: `+336${10_000_000 + number++}` });
      const answer = await worker.fetch("/v1/authentication", { method: "POST", headers, body, ...(signal && { signal }) });
      return ((await answer.json()) as { status: string }).status;
    };
    try {
      for (let wave = 0; wave < 4; wave++) {
        const gone = new AbortController();
        const going = Array.from({ length: 5 }, () => create(gone.signal).catch(() => "gone"));
        const staying = Array.from({ length: 20 }, () => create());
        await new Promise(setImmediate);
        gone.abort();
        expect(await Promise.all(staying)).toEqual(staying.map(() => "pending"));
        await Promise.all(going);
      }
    } finally {
      await worker.stop();
    }
  });

  test("httpServerHandler hands requests to a server of node:http", async ({ skip }) => {
    const folder = await runtimeOf("Workers");
    if (folder === undefined) return skip(missing(runtimes.Workers));
    const worker = await startWorker(folder, "worker-server.js");
    try {
      const answer = await worker.fetch("/v1/check", { method: "POST", body: "{}" });
      expect({ status: answer.status, fault: await answer.json() }).toMatchObject({ status: 403, fault: { code: "forbidden" } });
    } finally {
      await worker.stop();
    }
  });
});
