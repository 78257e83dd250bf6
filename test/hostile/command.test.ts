import { copyFileSync, existsSync, mkdirSync, openSync, renameSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { startRedis } from "../support/redis.js";
import {
  apiKey,
  call,
  codesOf,
  create,
  customer,
  expectQuiet,
  healthOf,
  numberOf,
  ordinary,
  place,
  run,
  secret,
  serve,
  start,
  unruled,
  until,
  wire,
} from "./command-kit.js";

const number = "+33612345678";
const memory = ["./verifier.js", "--data", "memory"];

/** A server on a free port of the loopback address, until the test ends. */
async function listening(answer: (path: string, headers: NodeJS.Dict<string | string[]>) => number): Promise<string> {
  const server = createServer((request, response) => {
    request.resume().on("end", () => response.writeHead(answer(request.url ?? "", request.headers), { "content-type": "application/json" }).end("{}"));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe("the command line", () => {
  test("a mistake exits with 2 and names the wrong word: docs/serve.md#when-it-does-not-start", async () => {
    const cwd = place({ "verifier.js": ordinary, "plain.js": "export const verifier = createVerifier({ ...options, store: memoryStore() });" });
    const mistakes: [readonly string[], string, Record<string, string>?][] = [
      [["serv", "./verifier.js"], "unknown command serv"],
      [["serve", "./verifier.js", "--prot", "1"], "did you mean --port"],
      [["serve", "./verifier.js", "--port="], "--port"],
      [["serve", "./verifier.js"], "the environment variable PORT", { PORT: "http" }],
      [["serve", "./verifier.js", "--grace", "Infinity"], "--grace"],
      [["serve", "./plain.js", "--data", "other.db"], "--data has no effect"],
      [["serve", "./verifier.js"], "PHONEPROOF_STORE and PHONEPROOF_DATA are both set", { PHONEPROOF_STORE: "redis://127.0.0.1:1", PHONEPROOF_DATA: "x.db" }],
      [["keys", "rotate", customer, "--overlap", "-1"], "--overlap", { PHONEPROOF_DATA: "x.db" }],
    ];
    for (const [args, words, env] of mistakes) {
      const { ended, out, err } = await run(args, { cwd, ...(env && { env }) });
      expect([ended, out], args.join(" ")).toEqual([2, ""]);
      expect(err).toContain(words);
      expect(err).not.toMatch(/\n\s+at /);
    }
  });

  test("--data is rejected for a module that exports a verifier, even with the value memory: docs/serve.md#options", async () => {
    const cwd = place({ "plain.js": "export const verifier = createVerifier({ ...options, store: memoryStore() });" });
    const command = start(["serve", "./plain.js", "--data", "memory", "--port", "0"], { cwd });
    await until(() => command.out || command.ended !== undefined);
    expect([command.ended, command.out]).toEqual([2, ""]);
  });

  test("the error of a module names the module, whatever it throws: docs/serve.md#when-it-does-not-start", async () => {
    const cwd = place({ "throws.js": "throw undefined;", "nothing.js": "", "refused.js": "export const verifier = Promise.reject(null);" });
    for (const file of ["nothing.js", "refused.js", "throws.js"]) {
      const { ended, err } = await run(["serve", `./${file}`, "--data", "memory"], { cwd });
      expect(ended).toBe(2);
      expect(err).toContain(file);
    }
  });

  test("a module that awaits a promise that never settles is reported, even if something else keeps the process alive: docs/serve.md#when-it-does-not-start", async () => {
    const cwd = place({ "hangs.js": "setInterval(() => {}, 1_000); await new Promise(() => {});" });
    const command = start(["serve", "./hangs.js", "--data", "memory", "--port", "0"], { cwd });
    await until(() => /hangs\.js/.test(command.out + command.err), 30_000);
  });

  test("closing the output early causes no stack trace: docs/customers.md, docs/no-code.md#settings", async () => {
    const cwd = place({});
    const env = { PHONEPROOF_DATA: "data.db" };
    const { customer_uuid } = JSON.parse((await run(["customers", "create", "--json"], { cwd, env })).out);
    for (const args of [["--help"], ["customers", "list"], ["keys", "issue", customer_uuid]]) {
      const command = start(args, { cwd, env });
      command.process.stdout?.destroy();
      await command.end;
      expect(command.err, args.join(" ")).not.toMatch(/\n\s+at |Unhandled/);
    }
  });
});

describe("serve", () => {
  test("it serves only what the table lists, and logs nothing about the caller: docs/serve.md#what-it-serves, docs/serve.md#what-it-logs", async () => {
    const server = await serve([...memory, "--metrics-port", "0"], { cwd: place({ "verifier.js": ordinary }) });
    const created = await call(server, "authentication", { phone_number: number });
    expect([created.status, created.json["status"]]).toEqual([200, "pending"]);
    for (const path of ["/", "/metrics", "/inbox", "/admin", "/index.html", "/v2/verification", "/hooks/supabase", "/receipts/twilio", `/${number}`])
      expect((await fetch(server.url + path)).status, path).toBe(404);
    const metrics = String(server.lines()[0]?.["metrics"]);
    expect((await fetch(metrics)).status).toBe(200);
    for (const path of ["/v1/authentication", "/healthz", "/"]) expect((await fetch(new URL(path, metrics), { method: "POST" })).status, path).toBe(404);

    const statusOf = async (path: string, init: RequestInit) => (await fetch(server.url + path, init)).status;
    const headers = { "x-api-key": apiKey, "content-type": "application/json" };
    expect(await statusOf("/healthz", { method: "HEAD" })).toBe(200);
    expect(await statusOf("/healthz", { method: "POST" })).toBe(405);
    expect(await statusOf("/v1/authentication", { method: "OPTIONS" })).toBe(405);
    expect(await statusOf("/v1/authentication", { method: "POST", headers, body: JSON.stringify({ x: "x".repeat(16_384) }) })).toBe(413);
    expect(await statusOf("/v1/authentication", { method: "POST", headers: { ...headers, "content-type": "text/plain" }, body: "{}" })).toBe(400);
    expect(await statusOf("/v1/authentication", { method: "POST", headers: { ...headers, "x-api-key": `${apiKey}x` }, body: "{}" })).toBe(403);
    const own = "ef437b58-5150-41c4-881e-8f01a1643aa7";
    const idOf = async (id: string) => (await fetch(`${server.url}/healthz`, { headers: { "x-request-id": id } })).headers.get("x-request-id");
    expect(await idOf(own)).toBe(own);
    expect(await idOf(number)).not.toBe(number);

    const garbage = wire(server, `${number} ${apiKey}\r\n\r\n`);
    await until(() => garbage.closed);
    const leaver = wire(server, create(numberOf(1)).slice(0, -1));
    await until(() => leaver.socket.bytesWritten > 0);
    leaver.socket.resetAndDestroy();
    await until(() => server.lines().some(({ status }) => status === 499));

    const many = Array.from({ length: 300 }, () => wire(server, "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"));
    await until(() => many.every(({ got }) => got.endsWith("ok\n")));
    server.kill();
    expect(await server.end).toBe(0);
    await until(() => many.every(({ closed }) => closed));
    expect(server.lines().at(-1)).toMatchObject({ type: "stopped", cut_off: 0 });
    expectQuiet(server);
  });

  test("on SIGTERM it completes requests in progress, accepts no others, and exits with 0: docs/serve.md#how-it-stops", async () => {
    const server = await serve(memory, { cwd: place({ "verifier.js": ordinary }), env: { SLOW: "700" } });
    const whole = create(number);
    const [waits, half, idle, head] = [whole, create(numberOf(2)).slice(0, -5), "", "GET /healthz HTTP/1.1\r\nho"].map((text) => wire(server, text));
    const inProgress = async () => waits!.socket.bytesWritten === whole.length && half!.socket.bytesWritten > 0 && (await healthOf(server)) === 200;
    await until(inProgress);
    server.kill();
    await until(() => server.out.includes('"stopping"'));
    await expect(fetch(`${server.url}/healthz`)).rejects.toThrow();
    half!.socket.write(create(numberOf(2)).slice(-5));
    await until(() => [waits, half, idle, head].every((one) => one!.closed));
    for (const one of [waits, half]) {
      expect(one!.got).toMatch(/^HTTP\/1.1 200 /);
      expect(one!.got).toMatch(/connection: close/i);
    }
    expect([idle!.got, head!.got]).toEqual(["", ""]);
    expect(await server.end).toBe(0);
    expect(server.lines().at(-1)).toMatchObject({ type: "stopped", cut_off: 0 });
  });

  test("while it drains it responds but is not ready; requests that --grace cuts off are counted, and it exits with 1: docs/serve.md#how-it-stops", async () => {
    const server = await serve([...memory, "--drain", "1", "--grace", "1"], { cwd: place({ "verifier.js": ordinary }), env: { SLOW: "4000" } });
    server.kill();
    await until(() => server.out.includes('"stopping"'));
    const health = await fetch(`${server.url}/healthz`);
    expect([health.status, health.headers.get("connection")]).toEqual([503, "close"]);
    await expect(call(server, "authentication", { phone_number: number })).rejects.toThrow();
    expect(await server.end).toBe(1);
    expect(server.lines().at(-1)).toMatchObject({ type: "stopped", cut_off: 1 });
  });

  test("a second signal ends it at once: docs/serve.md#how-it-stops", async () => {
    const server = await serve([...memory, "--drain", "300"], { cwd: place({ "verifier.js": ordinary }) });
    server.kill();
    await until(() => server.out.includes('"stopping"'));
    server.kill("SIGINT");
    expect(await server.end).not.toBe(0);
    expect(server.out).not.toContain('"stopped"');
  });

  test("killed during creates, it loses none that it acknowledged, and sends none of them again: docs/serve.md#two-files, docs/stores.md", async () => {
    const cwd = place({ "verifier.js": unruled });
    const how = { cwd, env: { CODES: join(cwd, "codes") } };
    const killed = await serve(["./verifier.js"], how);
    const acknowledged = new Set<string>();
    let next = 0;
    const creating = Array.from({ length: 12 }, async () => {
      while (next < 1_000) {
        const { json } = await call(killed, "authentication", { phone_number: numberOf(next++ % 800) });
        if (json["status"] === "pending") acknowledged.add(String(json["authentication_uuid"]));
      }
    });
    await until(() => acknowledged.size >= 120);
    killed.kill("SIGKILL");
    await Promise.allSettled(creating);
    await killed.end;

    const server = await serve(["./verifier.js"], how);
    const codes = codesOf(how.env.CODES);
    for (const authentication_uuid of acknowledged) {
      const fields = { authentication_uuid, check_code: codes.get(authentication_uuid) };
      expect((await call(server, "check", fields)).json["status"]).toBe("valid");
    }
    expect(codesOf(how.env.CODES).size).toBe(codes.size);
    expectQuiet(server);
    expectQuiet(killed);
  });

  test("with two servers and a worker on one file, each code is valid once and each callback is posted once: docs/stores.md#sqlite, docs/callbacks.md#who-delivers", async () => {
    const cwd = place({ "verifier.js": unruled });
    const ids: string[] = [];
    const ORIGIN = await listening((_path, headers) => {
      ids.push(String(headers["webhook-id"]));
      return 204;
    });
    const how = { cwd, env: { CODES: join(cwd, "codes"), ORIGIN } };
    const servers = [await serve(["./verifier.js"], how), await serve(["./verifier.js"], how)] as const;
    const worker = start(["worker", "./verifier.js", "--interval", "1"], how);
    await until(() => worker.err.includes("delivering"));
    const statuses: string[] = [];
    const requests = Array.from({ length: 40 }, async (_, index) => {
      const { json } = await call(servers[index % 2]!, "authentication", { phone_number: numberOf(index), callback_url: `${ORIGIN}/hook` });
      const authentication_uuid = String(json["authentication_uuid"]);
      const fields = { authentication_uuid, check_code: codesOf(how.env.CODES).get(authentication_uuid) };
      const answers = await Promise.all(servers.map((one) => call(one, "check", fields)));
      statuses.push(...answers.map((one) => String(one.json["status"])));
    });
    await Promise.all(requests);
    expect(statuses.filter((one) => one === "valid")).toHaveLength(40);
    expect(statuses.filter((one) => one === "already_validated")).toHaveLength(40);
    await until(() => ids.length >= 40);
    for (const one of [worker, ...servers]) one.kill();
    expect(await Promise.all([worker, ...servers].map(({ end }) => end))).toEqual([0, 0, 0]);
    const once = await run(["worker", "./verifier.js", "--once"], how);
    expect([once.ended, JSON.parse(once.out)]).toEqual([0, { delivered: 0, failed: 0, dead: 0 }]);
    expect([ids.length, new Set(ids).size]).toEqual([40, 40]);
    for (const one of [worker, ...servers]) expectQuiet(one);
  });

  test("paths may contain spaces, special characters and letters of any language, and the disk of the log may be full: docs/serve.md#options", async () => {
    const cwd = place({ "ver ifier é.js": ordinary }, "a#b?c%20 日");
    const first = await serve(["./ver ifier é.js", "--data", "da ta?mode=memory#é.db"], { cwd, env: { TZ: "Pacific/Kiritimati", LC_ALL: "tr_TR.UTF-8" } });
    const { json } = await call(first, "authentication", { phone_number: number });
    expect(String(json["expires_at"])).toMatch(/Z$/);
    first.kill();
    await first.end;
    expect(existsSync(join(cwd, "da ta?mode=memory#é.db"))).toBe(true);

    const port = await freePort();
    const full = start(["serve", join(cwd, "ver ifier é.js"), "--data", join(cwd, "da ta?mode=memory#é.db"), "--port", port], {
      cwd: "/",
      stdout: openSync("/dev/full", "w"),
    });
    const server = { url: `http://127.0.0.1:${port}` };
    await until(() => healthOf(server).catch(() => 0));
    const checked = await call(server, "check", { authentication_uuid: json["authentication_uuid"], check_code: "x" });
    expect([checked.status, checked.json["status"]]).toEqual([200, "invalid"]);
    full.kill();
    expect(await full.end).toBe(0);
  });

  test("if the store is down at start, the process keeps running, and /healthz returns 503 until it responds: docs/serve.md#when-it-does-not-start", async () => {
    const cwd = place({ "verifier.js": ordinary });
    const redis = await startRedis(["--user", "user", "on", ">hidden-password", "~*", "&*", "+@all"]);
    onTestFinished(redis.stop);
    await redis.signal("SIGKILL");
    const PHONEPROOF_STORE = redis.url.replace("//", "//user:hidden-password@");
    const command = start(["serve", "./verifier.js", "--port", "0"], { cwd, env: { PHONEPROOF_STORE } });
    const listening = () => command.lines().find(({ type }) => type === "listening");
    await until(() => listening() || command.ended !== undefined);
    expectQuiet(command, "hidden-password");
    expect(command.ended, command.err).toBeUndefined();
    const server = { url: String(listening()?.url) };
    expect(await healthOf(server)).toBe(503);
    await redis.restart();
    await until(async () => (await healthOf(server)) === 200, 15_000);
    expect((await call(server, "authentication", { phone_number: number })).json["status"]).toBe("pending");
  });

  test("/healthz returns 503, as every request does, if the file is deleted or replaced: docs/serve.md#what-it-serves, docs/stores.md#sqlite", async () => {
    const cwd = place({ "verifier.js": ordinary });
    const server = await serve(["./verifier.js"], { cwd });
    expect([(await call(server, "authentication", { phone_number: number })).status, await healthOf(server)]).toEqual([200, 200]);
    copyFileSync(join(cwd, "phoneproof.db"), join(cwd, "restored.db"));
    renameSync(join(cwd, "restored.db"), join(cwd, "phoneproof.db"));
    expect((await call(server, "authentication", { phone_number: number })).status).toBe(503);
    rmSync(join(cwd, "phoneproof.db"));
    expect((await call(server, "authentication", { phone_number: number })).status).toBe(503);
    await until(async () => (await healthOf(server)) === 503, 6_000);
  });

  test("a verifier that no caller can use is rejected at start, even a lazy one: docs/serve.md#two-files, docs/serve.md#when-it-does-not-start", async () => {
    const withoutCustomers = "const { customers, ...rest } = options;\n";
    const cwd = place({
      "eager.js": `${withoutCustomers}export const verifier = ({ store }) => createVerifier({ ...rest, store });`,
      "lazy.js": `${withoutCustomers}import { lazyVerifier } from "phoneproof"; export const verifier = lazyVerifier(() => ({ ...rest, store: memoryStore() }));`,
    });
    for (const file of ["eager.js", "lazy.js"]) {
      const command = start(["serve", `./${file}`, "--port", "0"], { cwd });
      await until(() => command.out.includes("\n") || command.ended !== undefined);
      expect([file, command.ended, command.err]).toEqual([file, 2, expect.stringContaining("customers")]);
    }
  });

  test("logs never contain a whole number or a code, even if the error of a sender, a lookup or a rule does: docs/privacy.md, docs/operations.md#what-is-secure-and-how", async () => {
    const failing = `
      const sent = { async send({ to, code, text }) { throw new Error(\`no route to \${to} for \${code}: \${text}\`); } };
      const lookup = { name: "hlr", async lookup(of) { throw new Error("no answer about " + JSON.stringify(of)); } };
      const rules = [{ name: "mine", judge({ phone_number }) { if (env.RULE) throw new Error("no score of " + phone_number); } }];
      export const verifier = ({ store }) => createVerifier({ ...options, sender: sent, lookup, spamRules: rules, store });`;
    const cwd = place({ "verifier.js": failing });
    const quiet = await serve(memory, { cwd });
    const loud = await serve(memory, { cwd, env: { RULE: "fails" } });
    for (const server of [quiet, loud]) {
      await call(server, "authentication", { phone_number: number });
      const url = `${server.url}/v1/lookup/${encodeURIComponent(number)}`;
      expect((await fetch(url, { headers: { "x-api-key": apiKey, "customer-uuid": customer } })).status).toBe(200);
      server.kill();
      await server.end;
      expect(server.err).toContain("the sender failed");
    }
    expectQuiet(quiet);
    expect(quiet.err).not.toMatch(/(for|is) \d{6}/);
    expectQuiet(loud);
  });
});

describe("customers and keys", () => {
  test("a revoked or replaced key and a suspended customer are rejected within two seconds by a running server: docs/customers.md", async () => {
    const cwd = place({ "verifier.js": 'export const verifier = ({ store }) => createVerifier({ ...options, customers: "store", store });' });
    const env = { PHONEPROOF_DATA: "phoneproof.db" };
    const server = await serve(["./verifier.js"], { cwd });
    const outputs: string[] = [];
    const manage = async (...args: string[]) => {
      const { ended, out, err } = await run([...args, "--json"], { cwd, env });
      outputs.push(out + err);
      expect(ended, err).toBe(0);
      return out
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as Record<string, string>);
    };
    const [{ customer_uuid: uuid } = {}] = await manage("customers", "create", "--name", "ACME é");
    const [first] = await manage("keys", "issue", String(uuid));
    const statusWith = async (key?: string) =>
      (await call(server, "check", { customer_uuid: uuid, authentication_uuid: customer, check_code: "1" }, key)).status;
    const rejected = (key?: string) => until(async () => (await statusWith(key)) === 403, 2_500);
    expect(await statusWith(first?.["key"])).toBe(400);
    await manage("customers", "suspend", String(uuid));
    await rejected(first?.["key"]);
    await manage("customers", "resume", String(uuid));
    await until(async () => (await statusWith(first?.["key"])) === 400, 2_500);
    const [second] = await manage("keys", "rotate", String(uuid), "--overlap", "0");
    await rejected(first?.["key"]);
    expect(await statusWith(second?.["key"])).toBe(400);
    await manage("keys", "revoke", String(uuid), String(second?.["key_id"]));
    await rejected(second?.["key"]);
    await manage("keys", "list", String(uuid));
    for (const { key } of [first!, second!]) {
      expect(key).toMatch(/^pp_[0-9A-Za-z]{49}$/);
      expect(outputs.filter((text) => text.includes(String(key)))).toHaveLength(1);
      expectQuiet(server, String(key));
    }
  });
});

describe("why, unlock, erase, stats", () => {
  test("they report what happened while the server runs, with the documented exit codes: docs/no-code.md", async () => {
    const cwd = place({ "verifier.js": ordinary });
    const server = await serve(["./verifier.js"], { cwd });
    const told = async (...args: string[]) => {
      const { ended, out, err } = await run([...args, "--json"], { cwd, env: { PHONEPROOF_CUSTOMER: customer } });
      return { ended, json: out && JSON.parse(out), err };
    };
    const statuses: unknown[] = [];
    const answers = [];
    for (let index = 0; index < 6; index++) answers.push((await call(server, "authentication", { phone_number: number })).json);
    statuses.push(...answers.map(({ status }) => status));
    expect(statuses).toEqual([...Array<string>(5).fill("pending"), "rate_limited"]);
    await call(server, "check", { authentication_uuid: answers[0]?.["authentication_uuid"], check_code: "x" });
    expect((await call(server, "authentication", { phone_number: "+4915112345678" })).json["code"]).toBe("unsupported_region");

    const why = await told("why", number);
    expect(why.ended).toBe(0);
    expect(why.json.authentications.map((one: { status: string }) => one.status).reverse()).toEqual(statuses);
    expect(why.json.authentications[0].decisions).toMatchObject([{ rule: "perNumber 5/600s", value: 5, threshold: 5 }]);
    expect(why.json.authentications.at(-1)).toMatchObject({ wrong_codes: 1, left: { checks: 4 } });
    expect((await told("why", "+4915112345678")).json.refusals).toMatchObject([{ code: "unsupported_region", count: 1 }]);

    expect(await told("unlock", number)).toMatchObject({ ended: 0, json: { unlocked: true } });
    expect(await told("unlock", number)).toMatchObject({ ended: 1, json: { unlocked: false } });
    expect((await call(server, "authentication", { phone_number: number })).json["status"]).toBe("pending");
    expect(await told("erase", number)).toMatchObject({ ended: 1, err: expect.stringContaining("--yes") });
    expect(await told("erase", number, "--yes")).toMatchObject({ ended: 0, json: { erased: 7 } });
    expect((await told("why", number)).json.authentications).toEqual([]);
    server.kill();
    await server.end;
    expect(await told("stats")).toMatchObject({ ended: 0, json: { sends: 6, verified: 0, refused: 1 } });
  });

  test("a missing customer or secret exits with 2 and names the setting: docs/no-code.md#settings", async () => {
    const cwd = place({ "verifier.js": ordinary });
    const from = { cwd, env: { PHONEPROOF_DATA: "phoneproof.db" } };
    await run(["customers", "create"], from);
    const bare = await run(["why", number], { cwd, env: { PHONEPROOF_SECRET: "" } });
    expect([bare.ended, bare.err]).toEqual([2, expect.stringContaining("PHONEPROOF_SECRET")]);
    const nobody = await run(["why", number, "./verifier.js"], from);
    expect([nobody.ended, nobody.err]).toEqual([2, expect.stringContaining("--customer")]);
  });

  test("without a data file they report that there is none, even with a module, and create none: docs/no-code.md#the-request-did-not-reach-us", async () => {
    const cwd = place({ "verifier.js": ordinary });
    const elsewhere = join(cwd, "elsewhere");
    mkdirSync(elsewhere);
    for (const module of [[], ["../verifier.js"]]) {
      const { ended, out, err } = await run(["why", number, ...module, "--customer", customer], { cwd: elsewhere });
      expect(err + out, module.join()).toContain("there is no file");
      expect(ended).toBe(1);
      expect(existsSync(join(elsewhere, "phoneproof.db"))).toBe(false);
    }
  });
});

describe("doctor", () => {
  test("it finds the documented problems and no others, and shows no credential: docs/watching.md#ping-doctor-why-explain", async () => {
    const twilio = await listening(() => 401);
    const credential = "1234567890abcdef1234567890abcdef";
    const module = `
      const { customers, ...rest } = options;
      const authToken = "${credential}";
      const twilio = { sender: twilioSender({ accountSid: "AC" + "0".repeat(32), authToken, from: "+15005550006", baseUrl: "${twilio}" }) };
      const cases = {
        sound: {},
        development: { sender: consoleSender(), secret: "a".repeat(40) },
        carrier: { ...twilio, receipts: { baseUrl: "http://localhost:3000", sources: [twilioReceipts({ authToken })] } },
      };
      export const verifier = ({ store }) => createVerifier({ ...options, ...cases[env.CASE], store });`;
    const cwd = place({ "verifier.js": module });
    const faultsOf = async (CASE: string, ...args: string[]) => {
      const { ended, out, err } = await run(["doctor", "./verifier.js", "--data", "data.db", "--json", ...args], { cwd, env: { CASE } });
      for (const word of [credential, secret, apiKey]) expect(out + err).not.toContain(word);
      const { ok, findings } = JSON.parse(out) as { ok: boolean; findings: { level: string; about: string; fix: string }[] };
      expect([ended, findings.every(({ fix }) => fix)]).toEqual([ok ? 0 : 1, true]);
      return findings.filter(({ level }) => level === "fault").map(({ about }) => about);
    };
    expect(await faultsOf("sound")).toEqual([]);
    expect((await faultsOf("development")).sort()).toEqual(["secret", "sender"]);
    expect(await faultsOf("development", "--development")).toEqual([]);
    expect((await faultsOf("carrier")).sort()).toEqual(["receipts.baseUrl", "sender"]);
    const broken = await run(["doctor", "./missing.js"], { cwd });
    expect([broken.ended, broken.out]).toEqual([1, expect.stringContaining("missing.js")]);
  });
});

/** A port that was free a moment ago. */
async function freePort(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return String(port);
}
