import { AsyncLocalStorage } from "node:async_hooks";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer, connect as http2Connect } from "node:http2";
import type { AddressInfo } from "node:net";
import { pipeline } from "node:stream";
import { createGunzip, gzipSync } from "node:zlib";
import express5 from "express";
import express4 from "express4";
import { describe, expect, it, onTestFinished } from "vitest";
import { expressHandlers } from "../../adapters/http/express.js";
import { fastifyPlugin } from "../../adapters/http/fastify.js";
import { nodeHandler } from "../../adapters/http/node.js";
import { twilioReceipts } from "../../adapters/sms/twilio.js";
import { VerifierError } from "../../src/index.js";
import { PlainStore } from "../store/plain-store.js";
import { eventually, type Fate, keyOf, numberAt, pass, rigged, type Service, service } from "./kit.js";
import { allows, ask, express, fastify, faultOf, Line, type Mount, mounts, request, shortly } from "./mounts-kit.js";

const create = "/v1/authentication";
const operation = "post /v1/authentication";

interface Running {
  readonly app: Service;
  readonly port: number;
  readonly prefix: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The body of a create with its own number. */
  body(fields?: Record<string, unknown>): string;
  /** Posts a create and returns status and outcome. The response must be as documented. */
  post(headers?: Record<string, string | readonly string[]>, body?: string | Uint8Array): Promise<string>;
  line(): Line;
}

let numbers = 0;

async function running(mount: Mount, options: Parameters<typeof service>[0] = {}): Promise<Running> {
  const app = service(options);
  const { port, prefix, end } = await mount(app.verifier);
  onTestFinished(end);
  const headers = { "x-api-key": keyOf(app.customer), "content-type": "application/json" };
  const body = (fields = {}) => JSON.stringify({ customer_uuid: app.customer, phone_number: numberAt(++numbers), ...fields });
  return {
    app,
    port,
    prefix,
    headers,
    body,
    async post(more = {}, text = body()) {
      const answer = await ask(port, request("POST", prefix + create, { ...headers, ...more }, text));
      expect(faultOf(operation, answer)).toBe("");
      return shortly(answer);
    },
    line() {
      const line = new Line(port);
      onTestFinished(() => void line.socket.destroy());
      return line;
    },
  };
}

/** Lets the time limit of a body run out on the clock, unless a response comes first; sockets take real time. */
async function orTimeIsUp<T>(app: Service, answer: Promise<T>): Promise<T> {
  let isThere = false;
  const there = () => {
    isThere = true;
  };
  answer.then(there, there);
  for (let turn = 0; turn < 40 && !isThere; turn++) await new Promise((done) => setTimeout(done, 5));
  if (!isThere) await pass(app.clock, 11_000);
  return answer;
}

const errorsOf = (app: Service) => app.log.filter(({ level }) => level === "error").map(({ message }) => message);

describe("a host that touches the body", () => {
  const gunzip = (change: (stream: ReturnType<typeof createGunzip>) => void): Mount =>
    fastify((app, verifier) => {
      app.addHook("preParsing", (raw, _reply, payload, done) => {
        if (raw.headers["content-encoding"] !== "gzip") return done(null, payload);
        const stream = createGunzip();
        change(stream);
        pipeline(payload, stream, () => {});
        done(null, stream);
      });
      app.register(fastifyPlugin(verifier));
    });

  it("lets /v1 read a body that a Fastify hook decompresses, even if the hook passes on a paused stream, as @fastify/compress does", async () => {
    const { app, post, body } = await running(gunzip((stream) => void stream.pause()));
    expect(await orTimeIsUp(app, post({ "content-encoding": "gzip" }, gzipSync(body())))).toBe("200 pending");
  });

  it("gets a 400 from /v1 when a Fastify hook cannot decompress the body, as @fastify/compress reports it", async () => {
    const failed = { name: "FastifyError", code: "FST_CP_ERR_INVALID_CONTENT", statusCode: 400, message: "Could not decompress the request payload" };
    const { app, port, headers, body } = await running(gunzip((stream) => void stream.on("error", (error) => Object.assign(error, failed))));
    const answer = await orTimeIsUp(app, ask(port, request("POST", create, { ...headers, "content-encoding": "gzip" }, body())));
    expect(answer?.status).toBe(400);
    expect(errorsOf(app)).toEqual([]);
    expect(app.sender.messages).toEqual([]);
  });

  it("leaves the body to /v1 when a Fastify hook reads it too, as fastify-raw-body does", async () => {
    const read: string[] = [];
    const alongside = fastify((app, verifier) => {
      app.addHook("preParsing", (_request, _reply, payload, done) => {
        payload.on("data", (chunk) => read.push(String(chunk)));
        done(null, payload);
      });
      app.post("/own", async ({ body }) => body);
      app.register(fastifyPlugin(verifier));
    });
    const { port, post, headers } = await running(alongside);
    expect((await ask(port, request("POST", "/own", headers, '{"a":1}')))?.text, "Fastify's own parser").toBe('{"a":1}');
    expect(await post()).toBe("200 pending");
    expect(read).toHaveLength(2);
  });

  it.each([
    ["Express 5", express5],
    ["Express 4", express4],
  ])("leaves the body to /v1 when a middleware of %s reads it too", async (_name, make) => {
    const alongside = express(make, (app, verifier) => {
      app.use((incoming, _response, next) => {
        incoming.on("data", () => {});
        next();
      });
      app.use(expressHandlers(verifier));
    });
    const { post } = await running(alongside);
    expect(await post()).toBe("200 pending");
  });

  it("gets a 403 for a receipt which explains that a parser has consumed its bytes (docs/errors.md#forbidden)", async () => {
    const authToken = "0123456789abcdef0123456789abcdef";
    const receipts = { baseUrl: "https://otp.example", sources: [twilioReceipts({ authToken })] };
    const parsed = express(express5, (app, { receipts: handler }) => void app.use(express5.urlencoded({ extended: false }), expressHandlers(handler)));
    const { app, port } = await running(parsed, { receipts });
    await app.create(++numbers);
    const url = new URL((app.sender.messages[0]?.receipt_url ?? "").replace("{provider}", "twilio"));
    const signature = createHmac("sha1", authToken).update(`${url.href}MessageSidSM1MessageStatusdelivered`).digest("base64");
    const headers = { "content-type": "application/x-www-form-urlencoded", "x-twilio-signature": signature };
    const answer = await ask(port, request("POST", url.pathname + url.search, headers, "MessageSid=SM1&MessageStatus=delivered"));
    expect(shortly(answer)).toBe("403 forbidden");
    expect(answer?.text).toMatch(/parser/);
  });
});

describe("the documentation", () => {
  it("openapi.json allows every address that a create accepts (docs/contract.md#routes)", async () => {
    const { app, post, body } = await running(mounts["Express 5"] as Mount);
    const refused: string[] = [];
    // The first is `request.ip` in Express on a server that listens on `::`.
    for (const ip of ["::ffff:192.0.2.1", "64:ff9b::192.0.2.1", "192.0.2.1", "::1", "2001:db8::1", "::ffff:c000:201"]) {
      const text = body({ ip });
      expect(await post({}, text), ip).toBe("200 pending");
      if (!allows("CreateAuthenticationRequest", JSON.parse(text))) refused.push(ip);
    }
    expect(app.sender.messages).toHaveLength(6);
    expect(refused).toEqual([]);
  });

  it("calls with invalid arguments reject with a VerifierError, and never throw synchronously (docs/api.md)", async () => {
    const { verifier, customer, sender } = service();
    const of = { customer_uuid: customer, phone_number: numberAt(++numbers) };
    const none = null as never;
    const calls = {
      createAuthentication: () => verifier.createAuthentication(of, none),
      check: () => verifier.check({ customer_uuid: customer, authentication_uuid: customer, check_code: "1" }, none),
      "verifications.start": () => verifier.verifications.start(of, none),
      "verifications.check": () => verifier.verifications.check({ ...of, check_code: "1" }, none),
      "verifications.cancel": () => verifier.verifications.cancel(of, none),
      "verifications.get": () => verifier.verifications.get(of, none),
      customerOf: () => verifier.customerOf(none),
      webhookSecrets: () => verifier.webhookSecrets(none),
      deadLetters: () => verifier.deadLetters(none),
      redeliver: () => verifier.redeliver(none),
    };
    const others: string[] = [];
    for (const [name, call] of Object.entries(calls)) {
      try {
        const error = await (call() as Promise<unknown>).then(
          () => undefined,
          (reason: unknown) => reason,
        );
        if (!(error instanceof VerifierError)) others.push(`${name} rejects with ${error}`);
      } catch (error) {
        others.push(`${name} throws ${error}`);
      }
    }
    expect(sender.messages).toEqual([]);
    expect(others).toEqual([]);
  });
});

describe("every mount", () => {
  const long = "[".repeat(5000) + "]".repeat(5000);
  const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
  const add = (body: string, more: string) => `${body.slice(0, -1)},${more}}`;
  const chunked = (body: string) => `${Buffer.byteLength(body).toString(16)};ext=1\r\n${body}\r\n0\r\nx-api-key: other\r\n\r\n`;

  it.each(Object.entries(mounts))("responds as documented, and sends nothing with a 4xx: %s", async (name, mount) => {
    const { app, port, prefix, headers, body } = await running(mount);
    const exact = (bytes: number) => body({ x: "" }).replace('"x":""', (empty) => empty.replace('""', `"${"a".repeat(bytes - body({ x: "" }).length)}"`));
    const { "x-api-key": key } = headers;
    const bad = Buffer.concat([Buffer.from(add(body(), '"x":"').slice(0, -1)), Buffer.from([0xc3, 0x28]), Buffer.from('"}')]);
    const post = (outcome: string, more: Record<string, string | readonly string[]>, text?: string | Uint8Array, path = create) =>
      [outcome, request("POST", prefix + path, { ...headers, ...more }, text), "POST"] as const;
    const other = (outcome: string, method: string, path = create, more: Record<string, string> = {}, text?: string) =>
      [outcome, request(method, prefix + path, { ...headers, "customer-uuid": app.customer, ...more }, text), method] as const;
    const parsed = / json| after/.test(name);
    const cases = [
      post("200 pending", {}, body(), `${create}/`),
      post("200 pending", {}, body(), `${create}?x-api-key=none&a[]=1`),
      post("404 not_found", {}, body(), `${create}//`),
      post("404 not_found", {}, body(), "/v1/%61uthentication"),
      post("404 not_found", {}, "{", "/v1/%zz"),
      post("200 pending", { "content-type": "" }, body()),
      post("200 pending", { "content-type": 'APPLICATION/vnd.api+JSON; a="b;c"; Charset=UTF-8' }, body()),
      post("400 bad_request", { "content-type": "application/x-www-form-urlencoded" }, "phone_number=%2B33612345678"),
      post("400 bad_request", { "content-type": "multipart/form-data; boundary=x" }, "--x--\r\n"),
      post("200 pending", { "transfer-encoding": "chunked" }, chunked(body())),
      post("413 payload_too_large", { "transfer-encoding": "chunked" }, chunked(exact(16_385))),
      post("413 payload_too_large", {}, exact(16_385)),
      post("200 pending", {}, exact(16_384)),
      post("200 pending", {}, `\ufeff ${body()}\r\n`),
      post("200 pending", {}, add(body(), `"x":${nested(31)}`)),
      post("400 bad_request", {}, add(body(), `"x":${nested(32)}`)),
      post("400 bad_request", {}, add(body(), `"x":${long}`)),
      post("200 pending", {}, add(body(), '"x":-1e999999,"constructor":{"prototype":{"a":1}}')),
      post("400 bad_request", {}, add(body(), '"x":[{"\\u005f_proto__":1}]')),
      post("400 bad_request", {}, add(body(), '"phone_number":33612345678')),
      post("400 invalid_device_id", {}, add(body(), '"device_id":"\\ud800"')),
      post("400 bad_request", {}, add(body(), '"device_id":null')),
      ...["", "  ", "null", "[]", '"{}"', "{", `${body()}x`, body().slice(0, -2), "NaN"].map((text) => post("400 bad_request", {}, text)),
      post("400 bad_request", {}),
      ...(parsed ? [] : [post("400 bad_request", {}, bad), post("400 bad_request", { "content-encoding": "gzip" }, gzipSync(body()))]),
      post("403 forbidden", { "x-api-key": "" }, "{"),
      post("403 forbidden", { "x-api-key": [key as string, key as string] }, body()),
      post("403 forbidden", { "x-api-key": "none", authorization: `Bearer ${key}` }, "a".repeat(20_000)),
      ...["", "k".repeat(256), "k\xe9", "k\tk"].map((repeat) => post("400 bad_request", { "idempotency-key": repeat }, body())),
      post("200 pending", { "idempotency-key": "k".repeat(255) }, body()),
      post("200 pending", { connection: "Upgrade, HTTP2-Settings", upgrade: "h2c", "http2-settings": "AAMAAABkAAQAAP__", cookie: "" }, body()),
      post("405 method_not_allowed", { "x-http-method-override": "GET" }, "{", "/v1/lookup/+33612345678"),
      ...["GET", "DELETE"].map((method) => other("405 method_not_allowed", method)),
      ...["PUT", "PATCH"].map((method) => other("405 method_not_allowed", method, create, {}, "{")),
      other("200 ", "GET", "/v1/lookup/%2b33612345678/?a=b", {}, ""),
      other("400 invalid_phone_number", "GET", "/v1/lookup/%2033612345678"),
      other("400 account_invalid", "GET", "/v1/lookup/+33612345678", { "customer-uuid": "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f" }),
      other("404 not_found", "GET", "/v1/lookup/", { "x-api-key": "none" }),
    ];
    for (const [outcome, bytes, method] of cases) {
      const before = app.sender.messages.length;
      const answer = await ask(port, bytes, method);
      const what = bytes.toString("latin1").slice(0, 400);
      expect(shortly(answer), what).toBe(outcome);
      expect(faultOf(method === "GET" && outcome !== "405 method_not_allowed" ? "get /v1/lookup/{phone_number}" : operation, answer), what).toBe("");
      expect(answer?.headers["content-type"], what).toBe("application/json");
      expect(app.sender.messages.length - before, what).toBe(outcome === "200 pending" ? 1 : 0);
    }
    expect(app.log.filter(({ level }) => level !== "info")).toEqual([]);
  });

  it.each(Object.entries(mounts))("responds to pipelined requests in order, and keeps working after clients abort in a body: %s", async (_name, mount) => {
    const { app, line, prefix, headers, body, post } = await running(mount);
    const bytes = (more: Record<string, string>, text: string) => request("POST", prefix + create, { ...headers, ...more }, text);
    const pipelined = line().write(
      Buffer.concat([
        bytes({}, body()),
        bytes({ "x-api-key": "none" }, "x".repeat(100_000)),
        bytes({}, "{".repeat(17_000)),
        request("PUT", prefix + create, headers, "{}"),
        bytes({}, body()),
      ]),
    );
    const answers: string[] = [];
    for (let count = 0; count < 5; count++) answers.push(shortly(await pipelined.next()));
    const tooLarge = answers[2] === "400 bad_request" ? "400 bad_request" : "413 payload_too_large"; // 400 if a parser ran first
    expect(answers).toEqual(["200 pending", "403 forbidden", tooLarge, "405 method_not_allowed", "200 pending"]);
    expect(app.sender.messages).toHaveLength(2);

    const text = body();
    const breakOff = async (how: "end" | "resetAndDestroy" | "garbage") => {
      const connection = line();
      await once(connection.socket, "connect");
      if (how === "garbage") return connection.write(bytes({ "transfer-encoding": "chunked" }, `${text.length.toString(16)}\r\n${text}\r\nZZ\r\n`)).closed();
      connection.write(bytes({ "content-length": `${text.length + 5}`, expect: "100-continue" }, text));
      await once(connection.socket, "data"); // the server has begun to read
      connection.socket[how]();
      return connection.closed();
    };
    await Promise.all((["end", "resetAndDestroy", "garbage"] as const).flatMap((how) => [how, how, how].map(breakOff)));
    expect(app.sender.messages).toHaveLength(2);
    expect(await post()).toBe("200 pending");
    expect(errorsOf(app)).toEqual([]);
  });
});

describe("in every framework", () => {
  it.each(["Express 5", "Fastify", "Koa"])(
    "rejects a body after 10 s, and ends the connection 5 s later: %s (docs/frameworks.md#in-every-framework)",
    async (name) => {
      const { app, line, headers } = await running(mounts[name] as Mount);
      const connection = line().write(request("POST", create, { ...headers, "content-length": "1000", expect: "100-continue" }, "{"));
      expect((await connection.next())?.status).toBe(100); // its time has begun
      const drip = async (times: number) => {
        for (let count = 0; count < times; count++) {
          connection.write(" ");
          await pass(app.clock, 1000);
        }
      };
      await drip(11);
      const answer = await connection.next();
      expect(shortly(answer)).toBe("408 request_timeout");
      expect(faultOf(operation, answer)).toBe("");
      await drip(6);
      await connection.closed();
      expect(app.sender.messages).toEqual([]);
    },
  );

  it("keeps the host's async context in calls of its sender, even if a body arrives in pieces", async () => {
    const context = new AsyncLocalStorage<string>();
    const kept: Record<string, Mount> = {
      express: express(
        express5,
        (app, verifier) => void app.use((incoming, _response, next) => context.run(String(incoming.headers["x-id"]), next), expressHandlers(verifier)[0]),
      ),
      fastify: fastify((app, verifier) => {
        app.addHook("onRequest", (incoming, _reply, done) => context.run(String(incoming.headers["x-id"]), done));
        app.register(fastifyPlugin(verifier));
      }),
    };
    for (const [name, mount] of Object.entries(kept)) {
      const { app, line, headers, body } = await running(mount);
      const seen: Record<string, string | undefined> = {};
      app.sender.answer = async ({ to }) => {
        seen[to] = context.getStore();
        return { outcome: "accepted" };
      };
      const connection = line();
      const wanted: Record<string, string> = {};
      for (const id of ["1", "2", "3"]) {
        const text = body();
        wanted[(JSON.parse(text) as { phone_number: string }).phone_number] = id;
        const bytes = request("POST", create, { ...headers, expect: "100-continue", "x-id": id }, text);
        connection.write(bytes.subarray(0, -20));
        expect((await connection.next())?.status).toBe(100); // the request has begun
        expect(shortly(await connection.write(bytes.subarray(-20)).next())).toBe("200 pending");
      }
      expect(seen, name).toEqual(wanted);
    }
  });

  it("counts only the address in the request's body, and no proxy headers (docs/contract.md#missing-fields)", async () => {
    const limits = { perIp: [{ limit: 1, window: 3600 }], numbersPerIp: [{ limit: 1, window: 3600 }] };
    const trusting = express(express5, (app, verifier) => void app.set("trust proxy", true).use(expressHandlers(verifier)));
    const { post, body } = await running(trusting, { policy: { limits } });
    const proxied = { "x-forwarded-for": "192.0.2.9", forwarded: "for=192.0.2.9", "x-real-ip": "192.0.2.9" };
    for (let count = 0; count < 3; count++) expect(await post(proxied)).toBe("200 pending");
    expect(await post(proxied, body({ ip: "192.0.2.9" }))).toBe("200 pending");
    expect(await post({}, body({ ip: "::ffff:192.0.2.9" }))).toBe("200 rate_limited");
    expect(await post({}, body({ ip: "192.0.2.10" }))).toBe("200 pending");
  });

  it("keeps two verifiers of one app apart, and throws for two in one handler (docs/frameworks.md)", async () => {
    const other = service();
    const both = express(express5, (app, verifier) => void app.use("/a", expressHandlers(verifier)).use("/b", expressHandlers(other.verifier)), "/a");
    const { app, port, headers, body, post } = await running(both);
    expect(await post()).toBe("200 pending");
    const there = await ask(port, request("POST", `/b${create}`, headers, body()));
    expect(shortly(there)).toBe("403 forbidden");
    const theirs = { ...headers, "x-api-key": keyOf(other.customer) };
    expect(shortly(await ask(port, request("POST", `/b${create}`, theirs, body())))).toBe("400 account_invalid");
    expect(shortly(await ask(port, request("POST", `/b${create}`, theirs, body({ customer_uuid: other.customer }))))).toBe("200 pending");
    expect([app.sender.messages.length, other.sender.messages.length]).toEqual([1, 1]);
    expect(() => nodeHandler([app.verifier, other.verifier])).toThrow(TypeError);
  });

  it("leaves other paths and errors of other middleware to an app with routes below /v1 (docs/frameworks.md#express)", async () => {
    for (const make of [express5, express4]) {
      const own = express(make, (app, verifier) => {
        app.use((incoming, _response, next) =>
          next(incoming.headers["x-denied"] ? Object.assign(new Error("denied"), { status: 400, expose: true }) : undefined),
        );
        app.use(make.json(), expressHandlers(verifier, { unknownRoutes: "next" }));
        app.post("/v1/orders", ({ body }, response) => void response.json({ own: body }));
        app.use(
          ((error, _request, response, _next) => void response.status(422).json({ own: error.type ?? error.message })) satisfies express5.ErrorRequestHandler,
        );
      });
      const { port, headers, post } = await running(own);
      const orders = async (text: string, more = {}) => (await ask(port, request("POST", "/v1/orders", { ...headers, ...more }, text)))?.text;
      expect(await orders('{"a":1}')).toBe('{"own":{"a":1}}');
      expect(await orders("{")).toBe('{"own":"entity.parse.failed"}');
      expect((await ask(port, request("POST", create, { ...headers, "x-denied": "1" }, "{}")))?.text).toBe('{"own":"denied"}');
      expect(await post({}, "{")).toBe("400 bad_request");
    }
  });

  it("responds 503 with retry-after, and sends nothing, however the store fails (docs/contract.md#fail-closed)", async () => {
    for (const fate of ["refused", "lost", "silent", "deaf"] as Fate[]) {
      const store = rigged(new PlainStore());
      const { app, post } = await running(mounts["Express 5"] as Mount, { store });
      store.fate = () => fate;
      const answer = post(); // also checks the form of the response
      await eventually("the store is asked", () => store.count() > 0);
      await pass(app.clock, 3000, 100);
      expect(await answer, fate).toBe("503 unavailable");
      expect(app.sender.messages).toEqual([]);
    }
  });

  it("sends one message for concurrent requests under one key, through two mounts (docs/contract.md#idempotency)", async () => {
    const two = express(express5, (app, verifier) => void app.use("/a", expressHandlers(verifier)).use(express5.json()).use("/b", expressHandlers(verifier)));
    const { app, port, headers, body } = await running(two);
    const text = body();
    const once = (at: string) => ask(port, request("POST", at + create, { ...headers, "idempotency-key": '"a, b" c' }, text));
    const answers = await Promise.all(["/a", "/b", "/a", "/b", "/a", "/b"].map(once));
    expect(new Set(answers.map((answer) => answer?.text)).size).toBe(1);
    expect(answers.map((answer) => faultOf(operation, answer)).join("")).toBe("");
    expect(app.sender.messages).toHaveLength(1);
  });

  it("responds over HTTP/2 as over HTTP/1.1, and survives streams that are reset (docs/frameworks.md#nodehttp)", async () => {
    const app = service();
    const server = createServer(nodeHandler(app.verifier)).listen(0, "127.0.0.1");
    await once(server, "listening");
    const session = http2Connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    onTestFinished(() => {
      session.destroy();
      server.close();
    });
    const open = (more = {}) =>
      session.request({ ":method": "POST", ":path": create, "x-api-key": keyOf(app.customer), "content-type": "application/json", ...more });
    const post = async (text: string, more = {}) => {
      const stream = open(more);
      let status = 0;
      stream.on("response", (headers) => {
        status = Number(headers[":status"]);
      });
      stream.end(text);
      let answer = "";
      for await (const chunk of stream) answer += chunk;
      return shortly({ status, headers: {}, text: answer });
    };
    const body = () => JSON.stringify({ customer_uuid: app.customer, phone_number: numberAt(++numbers) });
    expect(await post(body())).toBe("200 pending");
    expect(await post("x".repeat(2_000_000))).toBe("413 payload_too_large");
    expect(await post("x".repeat(2_000_000), { "x-api-key": "none" })).toBe("403 forbidden");
    const reset = open();
    reset.on("error", () => {});
    reset.write(body().slice(0, 30), () => reset.close(8));
    await once(reset, "close");
    expect(await post(body(), { cookie: "" })).toBe("200 pending");
    expect(app.sender.messages).toHaveLength(2);
    expect(errorsOf(app)).toEqual([]);
  });
});
