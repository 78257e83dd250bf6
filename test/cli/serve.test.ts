import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import Prelude from "@prelude.so/sdk";
import twilio from "twilio";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Receiver, receiver } from "../support/receiver.js";
import { type RedisServer, redisIsInstalled, startRedis } from "../support/redis.js";
import { type BuiltCommand, buildCommand, spawnToEnd } from "./demo.js";
import { rawConnection, type Served, startServe } from "./serve-process.js";

let command: BuiltCommand;
beforeAll(async () => {
  command = await buildCommand({
    verifier: fileURLToPath(new URL("./serve-verifier.ts", import.meta.url)),
    index: fileURLToPath(new URL("../../src/index.ts", import.meta.url)),
  });
});
afterAll(() => command?.remove());

const number = "+33612345678";

describe.skipIf(!redisIsInstalled("the serve command on Redis"))("phoneproof serve", () => {
  const customer_uuid = randomUUID();
  const api_key = `pp_${"k".repeat(40)}`;
  let redis: RedisServer;
  /** The carrier, and the receiver of callbacks. */
  let outside: Receiver;
  let served: Served[] = [];
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis?.stop());
  beforeEach(async () => {
    await redis.cli("FLUSHALL");
    outside = await receiver();
  });
  afterEach(async () => {
    for (const one of served) one.signal("SIGKILL");
    served = [];
    await outside.close();
  });

  const start = async (...args: string[]) => {
    const env = { REDIS_URL: redis.url, CARRIER: outside.origin, CUSTOMER: customer_uuid, API_KEY: api_key, SECRET: "s".repeat(32) };
    const one = await startServe(command.path, [join(command.folder, "verifier.js"), ...args], env);
    served.push(one);
    return one;
  };
  const post = (one: Served, path: string, fields: object, headers: Record<string, string> = {}) =>
    fetch(`${one.url}/v1/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-api-key": api_key, ...headers },
      body: JSON.stringify({ customer_uuid, ...fields }),
    });
  const messages = () => outside.received.filter(({ path }) => path === "/messages").map(({ body }) => JSON.parse(body) as { to: string; code: string });
  const requests = (one: Served) => one.lines.filter(({ type }) => type === "request");
  const health = async (one: Served) => {
    const response = await fetch(`${one.url}/healthz`);
    return [response.status, await response.text()];
  };
  /** Holds back the carrier's responses until `release`. */
  const holdCarrier = () => {
    const held: ServerResponse[] = [];
    outside.answer = ({ path }, response) => void (path === "/messages" ? held.push(response) : response.writeHead(204).end());
    return { held, release: () => held.forEach((response) => void response.writeHead(200).end()) };
  };

  test("serves /v1, receipts and /healthz, and logs each request on a line without numbers, codes, keys or user ids", async () => {
    const one = await start();
    expect(await health(one)).toEqual([200, "ok\n"]);
    const trace = randomUUID().replaceAll("-", "");
    const created = await post(one, "authentication", { phone_number: number, device_id: "device-of-a-user" }, { "x-request-id": trace });
    expect(created.headers.get("x-request-id")).toBe(trace);
    const { authentication_uuid } = (await created.json()) as { authentication_uuid: string };
    const code = messages()[0]?.code as string;
    await post(one, "check", { authentication_uuid, check_code: code }, { "x-request-id": `user-${number}` });
    await fetch(`${one.url}/v1/lookup/${number}`, { headers: { "x-api-key": api_key, "customer-uuid": customer_uuid } });
    await fetch(`${one.url}/v1/lookup/${number}`, { headers: { "x-api-key": "pp_wrong", "customer-uuid": customer_uuid } });
    await fetch(`${one.url}/receipts/twilio/?To=${number}`, { method: "POST" });
    await fetch(`${one.url}/${number}`);
    await fetch(`${one.url}/healthz/`, { method: "POST" });
    expect((await fetch(`${one.url}/metrics`)).status).toBe(404);
    await expect.poll(() => requests(one).length).toBe(9);
    expect(requests(one).map(({ method, route, status }) => [method, route, status])).toEqual([
      ["GET", "/healthz", 200],
      ["POST", "/v1/authentication", 200],
      ["POST", "/v1/check", 200],
      ["GET", "/v1/lookup/{phone_number}", 200],
      ["GET", "/v1/lookup/{phone_number}", 403],
      ["POST", "/receipts/{provider}", 404],
      ["GET", "none", 404],
      ["POST", "/healthz", 405],
      ["GET", "none", 404],
    ]);
    expect(requests(one)[1]).toEqual({
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      type: "request",
      method: "POST",
      route: "/v1/authentication",
      status: 200,
      ms: expect.any(Number),
      request_id: trace,
      bytes: Number(created.headers.get("content-length")),
    });
    expect(requests(one)[2]?.["request_id"]).toMatch(/^[0-9a-f-]{36}$/);
    for (const secret of [number.slice(1), code, api_key, customer_uuid, authentication_uuid, "device-of-a-user"]) expect(one.written()).not.toContain(secret);
  });

  test("on SIGTERM it accepts no new connections, completes requests in progress, delivers callbacks and exits with 0", async () => {
    const one = await start();
    const carrier = holdCarrier();
    const creating = post(one, "authentication", { phone_number: number, callback_url: `${outside.origin}/hook` });
    await expect.poll(() => carrier.held.length).toBe(1);
    const uploading = await rawConnection(one.port);
    uploading.socket.write(`POST /v1/check HTTP/1.1\r\nhost: x\r\nx-api-key: ${api_key}\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n`);
    await expect.poll(uploading.received).toContain("100 Continue");
    one.signal("SIGTERM");
    await expect.poll(() => one.lines.at(-1)?.["type"]).toBe("stopping");
    await expect(fetch(`${one.url}/healthz`)).rejects.toThrow();
    uploading.socket.write("{}");
    await expect.poll(uploading.received).toMatch(/HTTP\/1\.1 400 .*connection: close.*"bad_request"/is);
    carrier.release();
    const created = await creating;
    expect([created.status, created.headers.get("connection")]).toEqual([200, "close"]);
    expect(await created.json()).toMatchObject({ status: "pending" });
    expect(await one.exited).toEqual([0, null]);
    expect(one.lines.at(-1)).toMatchObject({ type: "stopped", cut_off: 0 });
    expect(outside.received.filter(({ path }) => path === "/hook")).toHaveLength(1);
  });

  test("--drain: keeps serving while /healthz returns 503, closes the connection after each response, and then stops", async () => {
    const one = await start("--drain", "2");
    one.signal("SIGINT");
    await expect.poll(() => one.lines.at(-1)?.["type"]).toBe("stopping");
    expect(await health(one)).toEqual([503, "stopping\n"]);
    const answered = await post(one, "authentication", { phone_number: number });
    expect([answered.status, answered.headers.get("connection")]).toEqual([200, "close"]);
    expect(await one.exited).toEqual([0, null]);
  });

  test("500 idle connections and 50 silent ones do not delay a stop, and a request in progress gets its response", async () => {
    const one = await start();
    const carrier = holdCarrier();
    const kept = await Promise.all(Array.from({ length: 500 }, () => rawConnection(one.port)));
    for (const { socket } of kept) socket.write("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n");
    await expect.poll(() => kept.filter(({ received }) => received().endsWith("ok\n")).length).toBe(500);
    const silent = await Promise.all(Array.from({ length: 50 }, () => rawConnection(one.port)));
    const creating = post(one, "authentication", { phone_number: number });
    await expect.poll(() => carrier.held.length).toBe(1);
    one.signal("SIGTERM");
    await expect.poll(() => [...kept, ...silent].filter(({ closed }) => closed()).length).toBe(550);
    expect(one.lines.at(-1)).toMatchObject({ type: "stopping" });
    carrier.release();
    expect((await creating).status).toBe(200);
    expect(await one.exited).toEqual([0, null]);
  });

  test("--grace: requests that are unfinished by then are cut off and counted in the log, and the exit code is 1", async () => {
    const one = await start("--grace", "1");
    const carrier = holdCarrier();
    const creating = post(one, "authentication", { phone_number: number });
    const failed = expect(creating).rejects.toThrow();
    await expect.poll(() => carrier.held.length).toBe(1);
    one.signal("SIGTERM");
    await failed;
    expect(await one.exited).toEqual([1, null]);
    expect(one.lines.find(({ type }) => type === "stopped")).toMatchObject({ cut_off: 1 });
  });

  test.each([
    ["SIGTERM", 143],
    ["SIGINT", 130],
  ] as const)("a second signal, %s, ends it at once with exit code %i", async (signal, code) => {
    const one = await start();
    const carrier = holdCarrier();
    const creating = post(one, "authentication", { phone_number: number }).catch(() => undefined);
    await expect.poll(() => carrier.held.length).toBe(1);
    one.signal("SIGTERM");
    await expect.poll(() => one.lines.at(-1)?.["type"]).toBe("stopping");
    one.signal(signal);
    expect(await one.exited).toEqual([code, null]);
    await creating;
  });

  test("slow headers, incomplete bodies and non-HTTP data are rejected in time, each with a log line", async () => {
    const one = await start();
    const [trickle, half, broken, large, garbage, silent] = await Promise.all(Array.from({ length: 6 }, () => rawConnection(one.port)));
    if (!trickle || !half || !broken || !large || !garbage || !silent) throw new Error("no connections");
    trickle.socket.write("POST /v1/check HTTP/1.1\r\n");
    const drip = setInterval(() => trickle.socket.write("x"), 500);
    const head = `POST /v1/check HTTP/1.1\r\nhost: x\r\nx-api-key: ${api_key}\r\n`;
    half.socket.write(`${head}content-length: 100\r\n\r\n{`);
    broken.socket.write(`${head}transfer-encoding: chunked\r\n\r\nno chunk`);
    large.socket.write(`GET /healthz HTTP/1.1\r\nx: ${"x".repeat(20_000)}\r\n`);
    garbage.socket.write(`${number} is not HTTP\r\n\r\n`);
    await expect.poll(broken.received).toMatch(/^HTTP\/1\.1 400 /);
    await expect.poll(large.received).toMatch(/^HTTP\/1\.1 431 /);
    await expect.poll(garbage.received).toMatch(/^HTTP\/1\.1 400 /);
    await expect.poll(half.received).toMatch(/^HTTP\/1\.1 408 .*"code":"request_timeout"/s);
    await expect.poll(trickle.received).toMatch(/^HTTP\/1\.1 408 /);
    for (const { closed } of [trickle, half, broken, large, garbage, silent]) await expect.poll(closed).toBe(true);
    clearInterval(drip);
    expect(
      requests(one)
        .map(({ route, status }) => `${status} ${route}`)
        .sort(),
    ).toEqual(["400 /v1/check", "400 none", "408 /v1/check", "408 none", "431 none"]);
    expect(one.written()).not.toContain(number.slice(1));
  });

  test("a body that becomes invalid after the response is not logged as another request", async () => {
    const one = await start();
    const { socket, received, closed } = await rawConnection(one.port);
    socket.write("GET /healthz HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
    await expect.poll(received).toMatch(/ok\n$/);
    socket.write("no chunk\r\n");
    await expect.poll(closed).toBe(true);
    expect(received()).toMatch(/ok\n$/);
    expect(requests(one)).toMatchObject([{ route: "/healthz", status: 200 }]);
  });

  test("a client that disconnects before the response is logged as 499", async () => {
    const one = await start();
    const carrier = holdCarrier();
    const leaving = new AbortController();
    const creating = fetch(`${one.url}/v1/authentication`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-api-key": api_key },
      body: JSON.stringify({ customer_uuid, phone_number: number }),
      signal: leaving.signal,
    }).catch(() => undefined);
    await expect.poll(() => carrier.held.length).toBe(1);
    leaving.abort();
    await expect.poll(() => requests(one)).toMatchObject([{ route: "/v1/authentication", status: 499, bytes: 0 }]);
    await creating;
    carrier.release();
  });

  test("while the store hangs or is down, /healthz returns 503; each change is logged once", async () => {
    const one = await start();
    expect(await health(one)).toEqual([200, "ok\n"]);
    await redis.signal("SIGSTOP");
    await expect.poll(() => health(one)).toEqual([503, "the store does not respond\n"]);
    await redis.signal("SIGCONT");
    await expect.poll(() => health(one)).toEqual([200, "ok\n"]);
    await redis.signal("SIGKILL");
    await expect.poll(() => health(one)).toEqual([503, "the store does not respond\n"]);
    const refused = await post(one, "authentication", { phone_number: number });
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "2"]);
    await redis.restart();
    await expect.poll(() => health(one)).toEqual([200, "ok\n"]);
    expect(one.lines.filter(({ type }) => type === "store").map(({ ok }) => ok)).toEqual([false, true, false, true]);
  });

  test("concurrent and repeated probes within two seconds cause only one read of the store", async () => {
    const one = await start();
    const reads = async () => Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.cli("INFO", "commandstats"))?.[1] ?? 0);
    await redis.cli("CONFIG", "RESETSTAT");
    let waves = 0;
    for (; (await reads()) === 0; waves++) await Promise.all(Array.from({ length: 50 }, () => health(one)));
    expect(await reads()).toBe(1);
    expect(waves).toBeGreaterThan(1);
  });

  test("--wires: the named wires are served alongside /v1 and their routes logged; without the option they are not served", async () => {
    const one = await start("--wires", "prelude-v2,twilio-verify");
    const client = new Prelude({ apiToken: api_key, baseURL: one.url, maxRetries: 0 });
    const target = { type: "phone_number", value: number } as const;
    expect((await client.verification.create({ target })).status).toBe("success");
    expect((await client.verification.check({ target, code: messages()[0]?.code as string })).status).toBe("success");
    expect((await client.lookup.lookup(number)).country_code).toBe("FR");
    await expect(new Prelude({ apiToken: "pp_none", baseURL: one.url, maxRetries: 0 }).verification.create({ target })).rejects.toMatchObject({ status: 401 });
    const digits = customer_uuid.replaceAll("-", "");
    const verifyClient = twilio(`AC${digits}`, api_key);
    verifyClient.verify.baseUrl = one.url;
    expect((await verifyClient.verify.v2.services(`VA${digits}`).verifications.create({ to: number, channel: "sms" })).status).toBe("pending");
    expect((await verifyClient.verify.v2.services(`VA${digits}`).verifications(number).fetch()).status).toBe("pending");
    expect((await post(one, "authentication", { phone_number: "+33612345679" })).status).toBe(200);
    const ofPrelude = ["/v2/verification", "/v2/verification/check", "/v2/lookup/{phone_number}", "/v2/verification"];
    const ofTwilio = ["/v2/Services/{Service}/Verifications", "/v2/Services/{Service}/Verifications/{Sid}"];
    const routes = [...ofPrelude, ...ofTwilio, "/v1/authentication"];
    await expect.poll(() => requests(one).map(({ route }) => route)).toEqual(routes);
    expect(one.written()).not.toContain(number.slice(1));
    const without = await start();
    await expect(new Prelude({ apiToken: api_key, baseURL: without.url, maxRetries: 0 }).verification.create({ target })).rejects.toMatchObject({
      status: 404,
    });
  });

  test("--metrics-port: serves Prometheus metrics of the service's requests on a separate port", async () => {
    const one = await start("--metrics-port", "0");
    await post(one, "authentication", { phone_number: number });
    expect(new URL(one.metrics as string).port).not.toBe(String(one.port));
    expect(await (await fetch(one.metrics as string)).text()).toMatch(/^phoneproof_http_answers_total\{route="createAuthentication",status="200"\} 1$/m);
    one.signal("SIGTERM");
    expect(await one.exited).toEqual([0, null]);
  });

  test("keeps running when its log is no longer read", async () => {
    const one = await start();
    expect(one.lines).toHaveLength(1);
    one.closeOutput();
    expect(await health(one)).toEqual([200, "ok\n"]);
    expect(await health(one)).toEqual([200, "ok\n"]);
    one.signal("SIGTERM");
    expect(await one.exited).toEqual([0, null]);
  });
});

describe("phoneproof serve: start-up errors and their fixes", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "phoneproof-serve-"));
  });
  afterAll(() => rm(folder, { recursive: true }));

  const handler = (root: string) => `{ root: "${root}", handle: async () => ({}), warn() {}, clock: {} }`;
  const stub = `{ http: ${handler("/v1")}, receipts: ${handler("/receipts")}, metricsHandler: ${handler("/metrics")}, verifications: {}, ping: async () => ({ ok: true, store: {} }), flush() {}, close: async () => console.error('closed') }`;
  const run = async (name: string, text: string, args: readonly string[] = [], env = {}) => {
    const path = join(folder, name);
    await writeFile(path, text);
    return spawnToEnd(command.path, ["serve", path, ...args], env);
  };

  test.each([
    ["none.mjs", "export const service = 1;", "exports no verifier: add `export const verifier = createVerifier("],
    ["env.mjs", "throw new Error('set PHONEPROOF_SECRET: openssl rand -base64 32');", "set PHONEPROOF_SECRET: openssl rand -base64 32"],
    ["promise.mjs", "export const verifier = Promise.reject(new Error('no REDIS_URL'));", "no REDIS_URL"],
    ["pending.mjs", "export const verifier = new Promise(() => {});", "pending.mjs exports never settles"],
    ["awaits.mjs", "await new Promise(() => {});", "awaits.mjs awaits never settles"],
    ["lazy.mjs", `export const verifier = { ...${stub}, ping() { throw new Error('countries: name some') } };`, "countries: name some"],
    [
      "direct.mjs",
      `const stub = ${stub}; export const verifier = { ...stub, http: { ...stub.http, unmountable: "it has no customers" } };`,
      "it has no customers",
    ],
    ["older.mjs", "export const verifier = { flush() {}, close() {} };", "install the same version in both places"],
  ])("%s: exit code 2, the fix on stderr, nothing on stdout", async (name, text, fix) => {
    const { code, stdout, stderr } = await run(name, text, ["--port", "0"]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(fix);
  });

  test("docs/serve.md lists the start-up errors as they are printed", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const served = `export const verifier = ${stub};`;
    const printed = await Promise.all([
      run("not-set.mjs", "throw new Error('REDIS_URL is not set: see .env.example');"),
      run("exports-none.mjs", "export const service = 1;"),
      run("typescript.tsx", served),
      run("no-options.mjs", `import { createVerifier } from ${JSON.stringify(pathToFileURL(join(command.folder, "index.js")))}; createVerifier({});`),
      run("waits.mjs", "export const verifier = new Promise(() => {});"),
      run("port.mjs", served, ["--port", String((other.address() as { port: number }).port)]),
      run("host.mjs", served, ["--port", "0", "--host", "203.0.113.1"]),
    ]);
    other.close();
    const page = await readFile(new URL("../../docs/serve.md", import.meta.url), "utf8");
    const words = [...(page.split("## When it does not start")[1] ?? "").matchAll(/^\| `([^`]+)` \|/gm)].map(([, one = ""]) => one);
    expect(words).toHaveLength(printed.length);
    for (const [index, one] of words.entries())
      expect(printed[index]?.stderr).toMatch(
        new RegExp(
          one
            .split("…")
            .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))
            .join("[^]*"),
        ),
      );
  });

  test.each([
    ["serve needs the path of a module", []],
    ['unexpected argument "b.js"', ["a.js", "b.js"]],
    ['--port takes a whole number from 0 to 65535, not "http"', ["a.js", "--port", "http"]],
    ["--host must not be empty", ["a.js", "--host", ""]],
    ["--metrics-port must differ from the port of the service, 4000", ["a.js", "--port", "4000", "--metrics-port", "4000"]],
    ['--wires takes prelude-v2 and twilio-verify, separated by a comma, not "prelude-v1"', ["a.js", "--wires", "prelude-v1"]],
    ['--grace takes a whole number from 1 to 300, not "0"', ["a.js", "--grace", "0"]],
  ])("%s: exit code 2, with the usage", async (fix, args) => {
    const { code, stdout, stderr } = await spawnToEnd(command.path, ["serve", ...args]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(fix);
    expect(stderr).toContain("phoneproof serve MODULE");
  });

  test("the error for an invalid PORT names the environment variable", async () => {
    expect((await spawnToEnd(command.path, ["serve", "a.js"], { PORT: "tcp://10.0.0.1:80" })).stderr).toContain(
      "the environment variable PORT takes a whole number",
    );
  });

  test("a service or metrics port in use: exits with 1, names the option to change, and closes the verifier", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as { port: number };
    const taken = `port ${port} of 127.0.0.1 is taken: stop what listens there, or choose another with`;
    const text = `export const verifier = ${stub};`;
    expect(await run("taken.mjs", text, [], { PORT: String(port) })).toEqual({ code: 1, stdout: "", stderr: `phoneproof: ${taken} --port\nclosed\n` });
    const metrics = await run("taken.mjs", text, ["--port", "0", "--metrics-port", String(port)]);
    expect(metrics).toEqual({ code: 1, stdout: "", stderr: `phoneproof: ${taken} --metrics-port\nclosed\n` });
    other.close();
  });

  test("an address that is not one of this machine is reported", async () => {
    const { code, stderr } = await run("address.mjs", `export const verifier = ${stub};`, ["--host", "203.0.113.1"]);
    expect(code).toBe(1);
    expect(stderr).toContain("cannot listen on 203.0.113.1:3000 (EADDRNOTAVAIL): choose another address with --host");
  });
});
