import { writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from "vitest";
import { consoleSender } from "../../adapters/sms/console.js";
import { inboxSender } from "../../adapters/sms/inbox.js";
import { readDoctorSettings } from "../../src/cli/doctor.js";
import type { Finding } from "../../src/index.js";
import { type RouteOptions, router } from "../../src/routing/router.js";
import { type MongoServer, mongoServer } from "../support/mongo.js";
import { type PostgresServer, postgresServer } from "../support/postgres.js";
import { type RedisServer, redisIsInstalled, startRedis } from "../support/redis.js";
import { setUp } from "../support/verifier.js";
import { type BuiltCommand, buildCommand, spawnToEnd } from "./demo.js";

describe.skipIf(!redisIsInstalled("phoneproof doctor"))("phoneproof doctor on a correct set-up and on broken ones", () => {
  let command: BuiltCommand;
  let redis: RedisServer;
  let mongo: MongoServer | undefined;
  let postgres: PostgresServer | undefined;
  let carrier: Server;
  let asked: string[] = [];
  let status = 200;
  beforeAll(async () => {
    carrier = createServer((request, response) => {
      asked.push(`${request.method} ${request.url}`);
      response.writeHead(status, { "content-type": "application/json" }).end('{"code":20003}');
    });
    await new Promise<void>((done) => carrier.listen(0, "127.0.0.1", done));
    [command, redis, mongo, postgres] = await Promise.all([
      buildCommand({ verifier: fileURLToPath(new URL("./doctor-verifier.ts", import.meta.url)) }),
      startRedis(["--appendonly", "yes"]),
      mongoServer("phoneproof doctor on MongoDB"),
      postgresServer("phoneproof doctor on PostgreSQL"),
    ]);
  });
  afterAll(async () => {
    carrier?.close();
    await Promise.all([command?.remove(), redis?.stop(), mongo?.stop(), postgres?.stop()]);
  });
  beforeEach(async () => {
    asked = [];
    status = 200;
    await redis.cli("CONFIG", "SET", "maxmemory-policy", "noeviction", "appendonly", "yes");
  });

  /** The exit code, the findings, and the level of the finding about a subject. */
  async function examine(setup: string, ...more: readonly string[]) {
    return examineWith(redis.url, setup, ...more);
  }
  async function examineWith(REDIS_URL: string, setup: string, ...more: readonly string[]) {
    const { port } = carrier.address() as AddressInfo;
    const env = { SETUP: setup, REDIS_URL, MONGO_URL: mongo?.url ?? "", POSTGRES_URL: postgres?.url ?? "", CARRIER_URL: `http://127.0.0.1:${port}` };
    const { code, stdout } = await spawnToEnd(command.path, ["doctor", join(command.folder, "verifier.js"), "--json", ...more], env);
    const { ok, findings } = JSON.parse(stdout) as { ok: boolean; findings: readonly Finding[] };
    for (const { message, fix } of findings) expect([message, fix]).not.toContain("");
    expect(ok).toBe(code === 0);
    return { code, findings, levelOf: (about: string) => findings.find((one) => one.about === about)?.level };
  }

  it("a correct set-up has no findings and exits with 0", async () => {
    expect(await examine("sound")).toMatchObject({ code: 0, findings: [] });
    expect(asked).toEqual([`GET /2010-04-01/Accounts/AC${"0".repeat(32)}.json`]);
  });

  it("a first try in production has findings for secret, keys, countries, spend limit, memory store and localhost URLs", async () => {
    const { code, findings, levelOf } = await examine("tried out");
    expect(code).toBe(1);
    for (const about of ["countries", "store", "secret", "customers", "receipts.baseUrl", "callbacks.allowOrigins"])
      expect([about, levelOf(about)]).toEqual([about, "fault"]);
    expect(levelOf("policy.limits.spend")).toBe("warning");
    expect(findings.find(({ about }) => about === "countries")?.fix).toContain('countries: ["FR", "GB"]');
    const trying = await examine("tried out", "--development");
    expect(trying.findings.filter(({ level }) => level === "fault").map(({ about }) => about)).toEqual(["countries"]);
  });

  it.each([
    ["unclosed.mjs", 'export const key = "hunter2;'],
    ["quoted.mjs", "export const key = 'it's_hunter2';"],
    ["quoted.cjs", "exports.key = 'it's_hunter2';"],
    ["one-line.mjs", "const key = 'hunter2'; import { none } from 'node:fs';"],
    ["json.mjs", "export const key = JSON.parse('hunter2');"],
  ])("a syntax error in %s is reported without its source, which may hold a secret", async (name, text) => {
    const file = join(command.folder, name);
    await writeFile(file, text);
    for (const more of [[], ["--json"]]) {
      const { code, stdout, stderr } = await spawnToEnd(command.path, ["doctor", file, ...more], {});
      expect(code).toBe(1);
      expect(stdout).toContain(`importing ${file} failed; correct the error there: SyntaxError: `);
      expect(stdout + stderr).not.toContain("hunter2");
      if (name === "one-line.mjs") expect(stdout).toContain("does not provide an export named 'none'");
      if (name === "json.mjs") expect(stdout).toContain("json.mjs:1:");
    }
  });

  it("Redis: eviction is a `fault`, and missing persistence a `warning`", async () => {
    await redis.cli("CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "appendonly", "no");
    const { code, findings } = await examine("sound");
    expect(code).toBe(1);
    expect(findings).toMatchObject([
      {
        level: "fault",
        about: "store",
        message: expect.stringContaining("allkeys-lru"),
        fix: "set maxmemory-policy noeviction in redis.conf, and in the running server: CONFIG SET maxmemory-policy noeviction",
      },
      { level: "warning", about: "store", fix: "set appendonly yes in redis.conf, and in the running server: CONFIG SET appendonly yes" },
    ]);
  });

  it("Redis: settings hidden from the client are a `note`", async () => {
    await redis.cli("ACL", "SETUSER", "app", "on", "nopass", "~*", "+@all", "-info", "-config");
    const { code, findings } = await examineWith(redis.url.replace("://", "://app:none@"), "sound");
    expect(code).toBe(0);
    expect(findings).toMatchObject([{ level: "note", about: "store", message: "Redis does not show its settings to this client" }]);
  });

  it("MongoDB: missing indexes are a `fault`", async (context) => {
    if (mongo === undefined) return context.skip();
    const { code, findings } = await examine("bare MongoDB");
    expect(code).toBe(1);
    expect(findings.filter(({ level }) => level === "fault")).toMatchObject([
      { level: "fault", about: "store", message: expect.stringContaining("numbers included"), fix: "call await store.ensureIndexes() once" },
    ]);
  });

  it("PostgreSQL: a missing schema is a `fault`", async (context) => {
    if (postgres === undefined) return context.skip();
    const { code, findings } = await examine("bare PostgreSQL");
    expect(code).toBe(1);
    expect(findings.filter(({ level, about }) => level === "fault" && about === "store")).toMatchObject([
      { message: 'the schema "phoneproof" is missing', fix: "call await store.ensureSchema() once, or run schemaSql() as the owner of the database" },
    ]);
  });

  it("credentials that the carrier rejects are a `fault`", async () => {
    status = 401;
    const { code, findings } = await examine("sound");
    expect(code).toBe(1);
    expect(findings).toMatchObject([{ level: "fault", about: "sender", message: "twilio rejects the credentials (HTTP 401, code 20003)" }]);
  });

  it("a store that is down is a `fault`, and so are invalid options", async () => {
    expect(await examine("store down")).toMatchObject({
      code: 1,
      findings: [{ level: "fault", about: "store", message: expect.stringMatching(/^the store does not respond/) }],
    });
    const { code, findings } = await examine("options that cannot work");
    expect(code).toBe(1);
    expect(findings[0]).toMatchObject({ level: "fault", about: "configuration", message: expect.stringMatching(/secret must .*countrys is not an option/s) });
  });

  it("without --json, prints a line for a finding, its fix below, and the number of faults", async () => {
    const { code, stdout } = await spawnToEnd(command.path, ["doctor", join(command.folder, "nothing.js")]);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^fault {3}configuration: there is no file .*\n {8}fix: .*\n.*: 1 fault\n$/);
  });
});

test("doctor reads its options, and rejects a missing module and an extra argument", () => {
  expect(readDoctorSettings(["./verifier.js"], {})).toEqual({
    module: "./verifier.js",
    place: { file: "./phoneproof.db", isAsked: false },
    production: true,
    json: false,
  });
  expect(readDoctorSettings(["v.js", "--json", "--development", "--data", "memory"], {})).toMatchObject({
    production: false,
    json: true,
    place: { file: undefined },
  });
  expect(() => readDoctorSettings([], {})).toThrow(/path of a module/);
  expect(() => readDoctorSettings(["a", "b"], {})).toThrow('unexpected argument "b"');
});

describe("diagnose", () => {
  const found = async (options: Parameters<typeof setUp>[0], about: string) => {
    const findings = await setUp(options).verifier.diagnose();
    return findings.filter((one) => one.about === about);
  };

  it("a due callback is a `fault` if this process delivers none, and one that was given up is a `warning`", async () => {
    const set = setUp({ callbacks: { worker: false, sender: { post: async () => ({ status: 410 }) } } });
    const about = async () =>
      (await set.verifier.diagnose()).filter((one) => one.about === "callbacks").map(({ level, message }) => [level, message.split(" (")[0]]);
    expect(await about()).toEqual([["note", "this process delivers no callbacks"]]);
    await set.create({ callback_url: "https://example.com/hook" });
    expect(await about()).toEqual([["fault", "1 callback is due, and this process delivers none"]]);
    await set.verifier.flush();
    expect(await about()).toEqual([
      ["warning", "1 callback was given up"],
      ["note", "this process delivers no callbacks"],
    ]);
  });

  it("a customer source that fails is a `fault`", async () => {
    const find = async () => Promise.reject(new Error("down"));
    expect(await found({ customers: { find, findByKeyDigest: find } }, "customers")).toMatchObject([{ level: "fault" }]);
  });

  it("a clock that is a minute off is a `fault`", async () => {
    const set = setUp();
    (set.store as { inspect?: unknown }).inspect = async () => ({ time: set.clock.now() + 60_000 });
    expect((await set.verifier.diagnose()).find(({ about }) => about === "clock")).toMatchObject({
      level: "fault",
      message: expect.stringContaining("60000 ms"),
    });
  });

  it.each([
    ["standalone", [["warning", "start mongod with --replSet rs0 and call rs.initiate() once: a replica set of one is enough"]]],
    ["replica set", []],
    ["sharded", []],
  ])("MongoDB, %s: only a standalone server gives a `warning`", async (deployment, expected) => {
    const set = setUp();
    (set.store as { inspect?: unknown }).inspect = async () => ({ kind: "mongodb", settings: { deployment } });
    const findings = await set.verifier.diagnose();
    expect(findings.filter(({ about, level }) => about === "store" && level !== "note").map(({ level, fix }) => [level, fix])).toEqual(expected);
  });

  it.each([
    ["rejects", async () => Promise.reject(new Error("no"))],
    ["answers what is neither", async () => [{ name: "acme", credentials: "unknown", reason: "HTTP 403" }] as const],
  ])("a sender whose verify %s is a `note`", async (_what, verify) => {
    expect(await found({ sender: { send: async () => ({ outcome: "accepted" }), verify } }, "sender")).toMatchObject([{ level: "note" }]);
  });

  const development = { level: "fault", fix: "use a carrier's sender (docs/carriers.md)" };
  const [printed, kept] = ["consoleSender prints the codes and sends nothing", "inboxSender keeps the codes in memory and sends nothing"];

  it("a development sender is a `fault` in production, also on a route", async () => {
    expect(await found({ sender: consoleSender() }, "sender")).toEqual([{ ...development, about: "sender", message: printed }]);
    expect(await found({ sender: inboxSender() }, "sender")).toEqual([{ ...development, about: "sender", message: kept }]);
    const sender = router({
      routes: [
        { name: "a", sender: consoleSender() },
        { name: "b", sender: { send: async () => ({ outcome: "accepted" }), verify: async () => [{ name: "b", credentials: "accepted" }] } },
      ],
    });
    expect(await found({ sender }, "sender")).toEqual([{ ...development, about: "sender", message: `route "a": ${printed}` }]);
    expect((await setUp({ sender }).verifier.diagnose({ production: false })).find(({ about }) => about === "sender")?.level).toBe("note");
  });

  it("a route whose sender cannot check its credentials is a `note`", async () => {
    const sender = router({ routes: [{ name: "a", sender: { send: async () => ({ outcome: "accepted" }) } }] });
    expect(await found({ sender }, "sender")).toMatchObject([
      { level: "note", message: 'route "a": its sender cannot check its credentials without sending', fix: "send yourself one message" },
    ]);
  });

  it("an allowed country that no route serves is a `fault`", async () => {
    const route = (name: string, countries: NonNullable<RouteOptions["countries"]>) => ({ name, countries, sender: inboxSender() });
    const sender = router({ routes: [{ name: "inner", sender: router({ routes: [route("a", ["FR"])] }) }, route("b", ["BE"])] });
    expect(await found({ sender, countries: ["FR", "BE"] }, "router")).toEqual([]);
    expect(await found({ sender, countries: "all" }, "router")).toEqual([]);
    expect(await found({ sender, countries: ["FR", "GB"] }, "router")).toEqual([
      {
        level: "fault",
        about: "router",
        message: "no route serves GB, which countries allows",
        fix: "add a route for it, or remove GB from countries",
      },
    ]);
    expect(await found({ sender, countries: ["GB", "DE"] }, "router")).toMatchObject([
      { message: "no route serves GB, DE, which countries allows", fix: "add a route for them, or remove them from countries" },
    ]);
    const anywhere = router({ routes: [route("a", ["FR"]), { name: "b", sender: inboxSender() }] });
    expect(await found({ sender: anywhere, countries: ["FR", "GB"] }, "router")).toEqual([]);
  });

  it("a carrier whose delivery receipts are not configured is a `warning`", async () => {
    expect(await found({ sender: { send: async () => ({ outcome: "accepted" }), receiptProviders: ["acme"] } }, "receipts")).toMatchObject([
      { level: "warning" },
    ]);
  });
});
