import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { leaseTime } from "../../src/domain/delivery.js";
import { type Receiver, receiver } from "../support/receiver.js";
import { openSqlite } from "../support/sqlite.js";
import { numberOf } from "../support/verifier.js";
import { type BuiltCommand, buildCommand, post, runInProcess, spawnDemo, spawnToEnd, startDemo } from "./demo.js";
import { type Served, startServe } from "./serve-process.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
let command: BuiltCommand;
let folder: string;
let file: string;
beforeAll(async () => {
  command = await buildCommand({ verifier: fileURLToPath(new URL("./data-verifier.ts", import.meta.url)) });
});
afterAll(() => command?.remove());
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "phoneproof-data-"));
  file = join(folder, "store.db");
});
afterEach(() => rm(folder, { recursive: true }));

describe("phoneproof dev --data", () => {
  test("the customer, its key and a code that was sent survive a restart", async () => {
    const args = ["--port", "0", "--data", file];
    const first = await spawnDemo(command.path, args);
    const { authentication_uuid } = (await post(first, "authentication", { phone_number: "+33612345601" })) as { authentication_uuid: string };
    const { code } = await first.sms();
    await expect.poll(() => first.stderr()).toContain(`with its data in ${file}`);
    expect(first.stderr()).not.toContain("ExperimentalWarning");
    expect(await first.stop()).toBe(0);
    const second = await spawnDemo(command.path, args);
    expect([second.customer_uuid, second.api_key]).toEqual([first.customer_uuid, first.api_key]);
    expect(await post(second, "check", { authentication_uuid, check_code: code })).toMatchObject({ http: 200, status: "valid" });
    expect(await second.stop()).toBe(0);
  });

  test("an API key from the environment is used instead of that in the --data file, and --data memory leaves no file", async () => {
    const api_key = `pp_${"k".repeat(40)}`;
    const env = { PHONEPROOF_DEV_API_KEY: api_key };
    const made = await startDemo(["--port", "0", "--data", file]);
    expect(made.api_key).not.toBe(api_key);
    expect(await made.stop()).toBe(0);
    const first = await startDemo(["--port", "0", "--data", file], env);
    expect(first.api_key).toBe(api_key);
    expect(await first.stop()).toBe(0);
    await rm(file);
    const second = await startDemo(["--port", "0", "--data", "memory"]);
    await expect.poll(() => second.stderr()).toContain("with the memory store");
    expect(await second.stop()).toBe(0);
    expect((await readdir(folder)).filter((name) => !name.includes("store.db-"))).toEqual([]);
  });

  test.each([
    [
      "no database",
      async () => writeFile(file, "some text that is no database, but longer than the header of one would be: a hundred bytes at least"),
      "is corrupt",
    ],
    ["a folder", async () => mkdir(file), "cannot be opened"],
    ["locked", async () => lock(file), "is locked by another connection"],
  ])("a file that is %s: exits with 1 and reports it", async (_, spoil, message) => {
    await spoil();
    const { code, stdout, stderr } = await runInProcess(["dev", "--port", "0", "--data", file]);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(new RegExp(`^phoneproof: --data ${file}: the database ${message}.*\n$`));
  });

  const locks: { close(): void }[] = [];
  afterEach(() => {
    for (const one of locks.splice(0)) one.close();
  });
  function lock(path: string): void {
    const handle = openSqlite(path);
    handle.exec("BEGIN EXCLUSIVE");
    locks.push(handle);
  }
});

describe("without SQLite", () => {
  /** The command is copied to a folder with only its dependencies. Node.js 22 and newer have a built-in SQLite. */
  const isThere = process.getBuiltinModule("node:sqlite" as "node:fs") !== undefined;
  let path: string;
  beforeEach(async () => {
    await cp(command.folder, join(folder, "dist"), { recursive: true });
    const { dependencies } = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as { dependencies: Record<string, string> };
    await mkdir(join(folder, "node_modules"));
    for (const name of Object.keys(dependencies)) await symlink(join(root, "node_modules", name), join(folder, "node_modules", name));
    await cp(join(root, "package.json"), join(folder, "package.json"));
    path = join(folder, "dist/dev.js");
  });

  test.skipIf(isThere)("data is in memory by default, and one line reports this and what to install", async () => {
    // As with `dev`, but without `--data`, which the helper of the other tests adds.
    const { code, stderr } = await spawnToEnd(path, ["worker", join(folder, "dist/verifier.js"), "--once"], {
      PHONEPROOF_SECRET: "s".repeat(32),
      OUTSIDE: "http://127.0.0.1:1",
    });
    expect([code, stderr]).toEqual([
      0,
      "phoneproof: Data lives in memory until this process ends: this Node.js has no SQLite. To keep it, use Node.js 22.13 or newer, or npm install libsql.\n",
    ]);
  });

  test.skipIf(isThere)("--data with a file is an error", async () => {
    const { code, stderr } = await spawnToEnd(path, ["dev", "--port", "0", "--data", file]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^phoneproof: --data .*store\.db: option `file` needs node:sqlite, .*: use Node\.js 22\.13 or newer, or npm install libsql\n$/);
  });
});

describe("phoneproof serve --data", () => {
  const secret = "s".repeat(32);
  let outside: Receiver;
  const served: Served[] = [];
  beforeEach(async () => {
    outside = await receiver();
  });
  afterEach(async () => {
    for (const one of served.splice(0)) one.signal("SIGKILL");
    await outside.close();
  });

  const module = () => join(command.folder, "verifier.js");
  const start = async (ahead = 0) => {
    const env = { OUTSIDE: outside.origin, PHONEPROOF_SECRET: secret, AHEAD: String(ahead) };
    const one = await startServe(command.path, [module(), "--data", file], env);
    served.push(one);
    return one;
  };
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await spawnToEnd(command.path, [...args, "--data", file, "--json"], { PHONEPROOF_SECRET: secret });
    expect([code, stderr.replace(/^This key .*\n/, "")]).toEqual([0, ""]);
    return JSON.parse(stdout) as Record<string, string>;
  };
  const received = (path: string) => outside.received.filter((one) => one.path === path);

  test("after kill -9 during 400 creates, each acknowledged one survives the restart: its code is valid and its callback is delivered", async () => {
    const customer_uuid = (await run("customers", "create"))["customer_uuid"] as string;
    const api_key = (await run("keys", "issue", customer_uuid))["key"] as string;
    const call = async (one: Served, path: string, fields: object) => {
      const headers = { "content-type": "application/json", "x-api-key": api_key };
      const response = await fetch(`${one.url}/v1/${path}`, { method: "POST", headers, body: JSON.stringify({ customer_uuid, ...fields }) });
      return (await response.json()) as { readonly status: string; readonly authentication_uuid: string };
    };
    const first = await start();
    const acknowledged = new Map<string, string>();
    let next = 0;
    const creating = async () => {
      while (next < 400) {
        const phone_number = numberOf(next++);
        const made = await call(first, "authentication", { phone_number, callback_url: `${outside.origin}/hook` }).catch(() => undefined);
        if (made === undefined) return;
        expect(made.status).toBe("pending");
        acknowledged.set(made.authentication_uuid, phone_number);
        if (acknowledged.size === 200) first.signal("SIGKILL");
      }
    };
    const parallel = 32;
    await Promise.all(Array.from({ length: parallel }, creating));
    expect(await first.exited).toEqual([null, "SIGKILL"]);
    expect(acknowledged.size).toBeGreaterThanOrEqual(200);

    // Deliveries that the first process had in progress become due again when their lease ends.
    const second = await start(leaseTime + 1_000);
    const codes = new Map(received("/messages").map(({ body }) => Object.values(JSON.parse(body) as { to: string; code: string }) as [string, string]));
    for (const [authentication_uuid, number] of acknowledged)
      expect((await call(second, "check", { authentication_uuid, check_code: codes.get(number) })).status).toBe("valid");

    const hooks = () => received("/hook").map(({ headers, body }) => ({ id: headers["webhook-id"] as string, body }));
    const told = () => new Set(hooks().map(({ body }) => (JSON.parse(body) as { data: { authentication_uuid: string } }).data.authentication_uuid));
    const untold = () => {
      const ids = told();
      return [...acknowledged.keys()].filter((id) => !ids.has(id));
    };
    await expect.poll(untold, { timeout: 120_000 }).toEqual([]);
    const bodies = new Map<string, string>();
    let again = 0;
    for (const { id, body } of hooks()) {
      if (bodies.has(id)) again += 1;
      expect(bodies.get(id) ?? body).toBe(body);
      bodies.set(id, body);
    }
    console.log(`killed after ${acknowledged.size} acknowledged creates; callbacks ${bodies.size}, sent again ${again}`);
    // Only those in progress when the process ended.
    expect(again).toBeLessThanOrEqual(parallel);
    second.signal("SIGTERM");
    expect(await second.exited).toEqual([0, null]);
  });

  test("a module with its own store and a function that throws exit with 2, and the error names the fix", async () => {
    const own = join(folder, "own.mjs");
    await writeFile(own, "export const verifier = { async flush() {}, async close() {} };");
    const wrong = await spawnToEnd(command.path, ["serve", own, "--data", file]);
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("--data has no effect: the verifier of")]);
    const broken = join(folder, "broken.mjs");
    await writeFile(broken, "export default ({ store }) => { throw new Error('no sender for a ' + typeof store.commit); };");
    const failed = await spawnToEnd(command.path, ["serve", broken, "--data", file]);
    expect([failed.code, failed.stderr]).toEqual([
      2,
      expect.stringMatching(/the function that .*broken\.mjs exports failed; correct the error there: Error: no sender for a function/),
    ]);
  });

  test("doctor has no findings about the file, and worker runs on it", async () => {
    const env = { OUTSIDE: outside.origin, PHONEPROOF_SECRET: secret };
    const examined = await spawnToEnd(command.path, ["doctor", module(), "--data", file, "--json"], env);
    const { findings } = JSON.parse(examined.stdout) as { findings: { about: string }[] };
    expect(findings.filter(({ about }) => about === "store" || about === "configuration")).toEqual([]);
    const flushed = await spawnToEnd(command.path, ["worker", module(), "--once", "--data", file], env);
    expect(flushed).toMatchObject({ code: 0, stdout: '{"delivered":0,"failed":0,"dead":0}\n' });
  });
});
