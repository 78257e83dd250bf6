import { once } from "node:events";
import { Agent, createServer, get, IncomingMessage, ServerResponse } from "node:http";
import { connect, createServer as createServer2 } from "node:http2";
import { type AddressInfo, Socket } from "node:net";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { createBrotliDecompress } from "node:zlib";
import express from "express";
import express4 from "express4";
import fastify from "fastify";
import { createApp, createRouter, fromNodeMiddleware, toNodeListener } from "h3";
import { Hono } from "hono";
import Koa from "koa";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { expressHandlers } from "../../adapters/http/express.js";
import { fastifyPlugin } from "../../adapters/http/fastify.js";
import { fetchHandler } from "../../adapters/http/fetch.js";
import { nextHandlers } from "../../adapters/http/next.js";
import { nodeHandler } from "../../adapters/http/node.js";
import type { HttpHandler } from "../../src/http/message.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";
import { twilioVerify } from "../../src/wires/twilio-verify/index.js";
import { exchange, send } from "./client.js";
import { type Host, listen } from "./hosts.js";
import { createService, inner, outer, until } from "./service.js";

/** How each adapter works together with its host; wire.test.ts and wire-awkward.test.ts test the wire itself. */

const open: Pick<Host, "close">[] = [];
afterEach(async () => {
  for (const host of open.splice(0)) await host.close();
});

const start = async (listener: Parameters<typeof createServer>[1]) => {
  const host = await listen(createServer(listener));
  open.push(host);
  return host;
};

const json = { "content-type": "application/json" };

function createCall(service: ReturnType<typeof createService>, path = "/v1/authentication") {
  const body = JSON.stringify({ customer_uuid: service.customer.customer_uuid, phone_number: "+33612345678" });
  return { method: "POST", path, headers: { ...json, "x-api-key": service.customer.key }, body };
}

const ownShape = { code: expect.any(String), message: expect.any(String), doc_url: expect.any(String) };

describe.each([
  ["Express 5", express],
  ["Express 4", express4],
])("%s", (_version, make) => {
  test("paths not under /v1 go on to the host, with their bodies unread", async () => {
    const app = make();
    app.use(expressHandlers(createService().verifier));
    app.use(make.json());
    app.all(/.*/, (request, response) => void response.json({ host: request.path, body: request.body }));
    const host = await start(app);
    for (const path of ["/", "/v10/check", "/v2/check", "/V1/check", "/api/v1/check", "/v1%2Fcheck"]) {
      expect(JSON.parse((await host.send({ method: "POST", path, headers: json, body: '{"a":1}' })).text)).toEqual({ host: path, body: { a: 1 } });
    }
  });

  test("unknown routes under /v1 get 404, or go on to the host with unknownRoutes: next", async () => {
    const { verifier } = createService();
    const hosts = [];
    for (const unknownRoutes of [undefined, "answer", "next"] as const) {
      const app = make();
      app.use(expressHandlers(verifier, { unknownRoutes }));
      app.use(make.json());
      app.post("/v1/own", (request, response) => void response.json({ own: request.body }));
      hosts.push(await start(app));
    }
    const answers = await Promise.all(hosts.map((host) => host.send({ method: "POST", path: "/v1/own", headers: json, body: '{"a":1}' })));
    expect(answers.map(({ status }) => status)).toEqual([404, 404, 200]);
    expect(JSON.parse(answers[0]?.text ?? "")).toMatchObject({ code: "not_found" });
    expect(JSON.parse(answers[2]?.text ?? "")).toEqual({ own: { a: 1 } });
    expect((await hosts[2]?.send({ method: "GET", path: "/v1/check" }))?.status).toBe(405);
  });

  test("a wildcard mount serves /v1, and passes on other paths, and /v1 under a prefix", async () => {
    const wildcards = make === express ? ["/{*splat}", "/v1/*splat", "/v1/authentication"] : ["*", "/v1/*", "/v1/authentication"];
    for (const wildcard of wildcards) {
      const service = createService();
      const app = make();
      app.use(wildcard, expressHandlers(service.verifier));
      app.all(/.*/, (request, response) => void response.json({ host: request.path }));
      const host = await start(app);
      expect(JSON.parse((await host.send(createCall(service))).text)).toMatchObject({ status: "pending" });
      for (const path of ["/", "/v10/check", "/V1/check", "/api/v1/authentication"])
        expect(JSON.parse((await host.send(createCall(service, path))).text)).toEqual({ host: path });
    }
  });

  test("an error of the host's parser gets our response on our paths, after 404, 405 and 403; the host handles it elsewhere, and unknown routes with unknownRoutes: next", async () => {
    const service = createService();
    const app = make();
    app.use(make.json({ limit: 100 }));
    app.use(expressHandlers(service.verifier, { unknownRoutes: "next" }));
    app.use(
      (_error: unknown, _request: express.Request, response: express.Response, _next: express.NextFunction) => void response.status(400).json({ host: true }),
    );
    const host = await start(app);
    const keyed = { ...json, "x-api-key": service.customer.key };
    const bad = async (path: string, headers: Record<string, string>, body = "{", method = "POST") => {
      const answer = await host.send({ method, path, headers, body });
      return { status: answer.status, body: JSON.parse(answer.text) as object };
    };
    expect(await bad("/v1/check", keyed)).toMatchObject({ status: 400, body: { code: "bad_request" } });
    expect(await bad("/v1/check", keyed, `{"a":"${"x".repeat(200)}"}`)).toMatchObject({ status: 413, body: { code: "payload_too_large" } });
    expect(await bad("/v1/check", { ...keyed, "content-type": "application/json; charset=latin1" })).toMatchObject({ status: 400, body: ownShape });
    expect(await bad("/v1/check", { ...keyed, "content-encoding": "gzip" })).toMatchObject({ status: 400, body: ownShape });
    expect(await bad("/v1/check", { ...keyed, "content-encoding": "other" })).toMatchObject({ status: 400, body: ownShape });
    expect(await bad("/v1/check", json)).toMatchObject({ status: 403, body: { code: "forbidden" } });
    expect(await bad("/v1/check", keyed, "{", "PUT")).toMatchObject({ status: 405, body: { code: "method_not_allowed" } });
    expect(await bad("/v1/own", keyed)).toEqual({ status: 400, body: { host: true } });
    expect(await bad("/own", keyed)).toEqual({ status: 400, body: { host: true } });
  });

  test("values that are not objects, which express.json({ strict: false }) lets through, are bad_request", async () => {
    const service = createService();
    const app = make();
    app.use(make.json({ strict: false }), expressHandlers(service.verifier));
    const host = await start(app);
    for (const body of ["null", "0", "false", '""', '"x"', "[]"]) {
      const answer = await host.send({ ...createCall(service), body });
      expect([answer.status, JSON.parse(answer.text)], body).toEqual([400, { ...ownShape, code: "bad_request" }]);
    }
    expect(await service.logged()).toEqual([]);
  });

  test("errors not from a body parser go on to the host, on our paths too", async () => {
    const app = make();
    app.use((_request, _response, next) => next(Object.assign(new Error("no"), { status: 401 })));
    app.use(expressHandlers(createService().verifier));
    app.use(
      (error: Error, _request: express.Request, response: express.Response, _next: express.NextFunction) =>
        void response.status(401).json({ host: error.message }),
    );
    const host = await start(app);
    expect(await host.send({ method: "POST", path: "/v1/check" })).toMatchObject({ status: 401, text: '{"host":"no"}' });
  });

  test("middleware that consumed the stream without setting a body gives 500, and a warning with the fix", async () => {
    const service = createService();
    const app = make();
    app.use((request, _response, next) => void request.resume().on("end", next));
    app.use(expressHandlers(service.verifier));
    const host = await start(app);
    const answer = await host.send(createCall(service));
    expect(answer.status).toBe(500);
    expect(JSON.parse(answer.text)).toEqual({ ...ownShape, code: "internal_server_error" });
    expect((await service.logged()).join()).toMatch(/Mount the verifier before/);
    expect(await service.sent()).toEqual([]);
    expect((await host.send({ ...createCall(service), headers: json })).status).toBe(403);
    expect((await host.send({ ...createCall(service), path: "/v1/none" })).status).toBe(404);
    const lookup = { "x-api-key": service.customer.key, "customer-uuid": service.customer.customer_uuid };
    expect((await host.send({ method: "GET", path: "/v1/lookup/+33612345678", headers: lookup })).status).toBe(200);
  });

  test("a parser that finds the stream already read gives 500 and the warning", async () => {
    const service = createService();
    const app = make();
    app.use((request, _response, next) => void request.resume().on("end", next));
    app.use(make.json());
    app.use(expressHandlers(service.verifier));
    const host = await start(app);
    expect((await host.send(createCall(service))).status).toBe(500);
    expect((await service.logged()).join()).toMatch(/Mount the verifier before/);
  });

  test("req.body set without reading the stream is ignored", async () => {
    const service = createService();
    const app = make();
    app.use((request, _response, next) => {
      request.body = {};
      next();
    });
    app.use(expressHandlers(service.verifier));
    const host = await start(app);
    expect(JSON.parse((await host.send(createCall(service))).text)).toMatchObject({ status: "pending" });
  });

  test("the host's headers are preserved, and a response that the host has sent is left unchanged", async () => {
    const service = createService();
    const errors: unknown[] = [];
    const app = make();
    app.use((request, response, next) => {
      response.setHeader("access-control-allow-origin", "https://app.example");
      if (request.query.late !== undefined) response.status(503).end("too late");
      next();
    });
    app.use(expressHandlers(service.verifier));
    app.use((error: unknown, _request: express.Request, _response: express.Response, _next: express.NextFunction) => void errors.push(error));
    const host = await start(app);
    expect(await host.send(createCall(service, "/v1/authentication?late"))).toMatchObject({ status: 503, text: "too late" });
    expect(await host.send(createCall(service))).toMatchObject({ status: 200, headers: { "access-control-allow-origin": "https://app.example" } });
    expect(errors).toEqual([]);
  });
});

describe("Fastify 5", () => {
  test("the plugin and the host's own parsers, coercion, limits and error handler do not affect each other", async () => {
    const service = createService();
    const app = fastify({ ajv: { customOptions: { coerceTypes: true } }, bodyLimit: 50 });
    open.push(app);
    app.setErrorHandler(async (error: Error & { code?: string }, _request, reply) => reply.code(418).send({ host: error.code }));
    app.post("/own", { schema: { body: { type: "object", properties: { a: { type: "string" } } } } }, async (request) => ({ body: request.body }));
    app.register(fastifyPlugin(service.verifier));
    app.get("/v1/own", async () => ({ own: true }));
    await app.listen({ port: 0, host: "127.0.0.1" });
    const port = (app.server.address() as AddressInfo).port;
    expect((await send(port, { method: "POST", path: "/own", headers: json, body: '{"a":1}' })).text).toBe('{"body":{"a":"1"}}');
    expect(await send(port, { method: "POST", path: "/own", headers: json, body: "{" })).toMatchObject({ status: 418 });
    expect(await send(port, { method: "POST", path: "/own", headers: { "content-type": "text/csv" }, body: "a" })).toMatchObject({ status: 418 });
    expect((await send(port, { method: "GET", path: "/v1/own" })).text).toBe('{"own":true}');
    expect((await send(port, { method: "GET", path: "/own/%zz" })).text).toContain("FST_ERR_BAD_URL");
    expect((await send(port, createCall(service))).status).toBe(200);
  });

  test("a route that is there already rejects the registration", async () => {
    const { verifier } = createService();
    const own = fastify();
    own.get("/v1", async () => "mine");
    const twice = fastify();
    await twice.register(fastifyPlugin(verifier));
    open.push(own, twice);
    await expect(own.register(fastifyPlugin(verifier))).rejects.toMatchObject({ code: "FST_ERR_DUPLICATED_ROUTE" });
    await expect(twice.register(fastifyPlugin(verifier))).rejects.toMatchObject({ code: "FST_ERR_DUPLICATED_ROUTE" });
  });

  test("an error in the host's hook on our paths goes to the host's error handler, and hooks can respond", async () => {
    const app = fastify();
    open.push(app);
    app.setErrorHandler(async (error: Error, _request, reply) => reply.code(401).send({ host: error.message }));
    app.addHook("onRequest", async (request, reply) => {
      if (request.method === "OPTIONS") return reply.code(204).header("access-control-allow-methods", "POST").send();
      if (request.headers["x-throw"] !== undefined) throw new Error("no");
    });
    app.register(fastifyPlugin(createService().verifier), { prefix: "/api" });
    await app.listen({ port: 0, host: "127.0.0.1" });
    const port = (app.server.address() as AddressInfo).port;
    expect(await send(port, { method: "POST", path: "/api/v1/check", headers: { ...json, "x-throw": "1" }, body: "{" })).toMatchObject({
      status: 401,
      text: '{"host":"no"}',
    });
    expect(await send(port, { method: "OPTIONS", path: "/api/v1/check" })).toMatchObject({ status: 204, headers: { "access-control-allow-methods": "POST" } });
  });

  test("hooks see the reply and may change its headers and payload", async () => {
    const service = createService();
    const app = fastify();
    open.push(app);
    const seen: unknown[] = [];
    app.addHook("onSend", async (_request, reply, payload) => {
      seen.push(payload);
      reply.header("x-seen", "yes");
      return `${String(payload)} `;
    });
    app.register(fastifyPlugin(service.verifier));
    await app.listen({ port: 0, host: "127.0.0.1" });
    const answer = await send((app.server.address() as AddressInfo).port, createCall(service));
    expect(seen).toEqual([answer.text.trimEnd()]);
    expect(answer.headers).toMatchObject({ "x-seen": "yes", "content-type": "application/json", "content-length": String(answer.text.length) });
  });

  test("a hook that consumed the stream without setting a body gives 500, and a warning with the fix", async () => {
    const service = createService();
    const app = fastify();
    open.push(app);
    app.addHook("preValidation", (request, _reply, done) => void request.raw.resume().on("end", () => done()));
    app.register(fastifyPlugin(service.verifier));
    await app.listen({ port: 0, host: "127.0.0.1" });
    const port = (app.server.address() as AddressInfo).port;
    expect((await send(port, createCall(service))).status).toBe(500);
    expect((await service.logged()).join()).toMatch(/Mount the verifier before/);
    expect((await send(port, { ...createCall(service), headers: json })).status).toBe(403);
  });

  test("a stream that a preParsing hook returns is read instead of the body", async () => {
    const service = createService();
    const app = fastify();
    open.push(app);
    const call = createCall(service);
    app.addHook("preParsing", async () => Readable.from([Buffer.from(call.body.slice(0, 20)), Buffer.from(call.body.slice(20))]));
    app.register(fastifyPlugin(service.verifier));
    await app.listen({ port: 0, host: "127.0.0.1" });
    const answer = await send((app.server.address() as AddressInfo).port, { ...call, body: "nothing of use" });
    expect(JSON.parse(answer.text)).toMatchObject({ status: "pending" });
  });

  test("a stream from a hook that cannot be decompressed is bad_request; one that fails otherwise is 500 and logged", async () => {
    const service = createService();
    const app = fastify();
    open.push(app);
    app.addHook("preParsing", async (request, _reply, payload) => {
      if (request.headers["content-encoding"] === "br") return payload.pipe(createBrotliDecompress());
      return new Readable({
        read: (): never => {
          throw new Error("a hook's own fault");
        },
      });
    });
    app.register(fastifyPlugin(service.verifier));
    const { method, path, headers, body } = createCall(service);
    const call = { method: method as "POST", url: path, headers, payload: body };
    const broken = await app.inject({ ...call, headers: { ...headers, "content-encoding": "br" } });
    expect([broken.statusCode, broken.json()]).toEqual([400, { ...ownShape, code: "bad_request" }]);
    expect(await service.logged()).toEqual([]);
    expect((await app.inject(call)).statusCode).toBe(500);
    expect(await service.logged()).toEqual(["a request failed unexpectedly"]);
  });

  test("exactly /v1 and /receipts are our paths, however the router treats slashes and case", async () => {
    for (const routerOptions of [{}, { ignoreTrailingSlash: true }, { ignoreDuplicateSlashes: true }, { caseSensitive: false }]) {
      const service = createService();
      const app = fastify({ routerOptions });
      open.push(app);
      app.register(fastifyPlugin(service.verifier), { prefix: "/api" });
      app.register(fastifyPlugin(service.verifier.receipts));
      for (const url of ["/api/v1", "/api/v1/", "/receipts", "/receipts/", "/receipts?a=b"]) {
        const answer = await app.inject({ method: "POST", url });
        expect([answer.statusCode, answer.json()]).toEqual([404, { ...ownShape, code: "not_found" }]);
      }
    }
  });

  test("works over HTTP/2 too", async () => {
    const service = createService();
    const app = fastify({ http2: true });
    app.register(fastifyPlugin(service.verifier));
    const session = connect(await app.listen({ port: 0, host: "127.0.0.1" }));
    open.push({ close: async () => session.close() }, app);
    const { method, path, headers, body } = createCall(service);
    const stream = session.request({ ":method": method, ":path": path, ...headers });
    stream.end(body);
    expect(JSON.parse(await text(stream))).toMatchObject({ status: "pending" });
  });

  test("works with inject() too", async () => {
    const service = createService();
    const app = fastify();
    open.push(app);
    app.register(fastifyPlugin(service.verifier));
    const { method, path, headers, body } = createCall(service);
    const answer = await app.inject({ method: method as "POST", url: path, headers, payload: body });
    expect(answer.json()).toMatchObject({ status: "pending" });
  });
});

describe("fetch", () => {
  const request = (service: ReturnType<typeof createService>, path?: string) => {
    const { method, headers, body, path: plain } = createCall(service);
    return new Request(`http://localhost${path ?? plain}`, { method, headers, body });
  };

  test("a body that was already read gives 500, and a warning with a fix that works", async () => {
    const service = createService();
    const handler = fetchHandler(service.verifier);
    const used = request(service);
    const body = await used.arrayBuffer();
    expect((await handler(used)).status).toBe(500);
    expect((await service.logged()).join()).toContain('new Request(request.url, { method: "POST", headers: request.headers, body: bytes })');
    expect(await (await handler(new Request(used.url, { method: "POST", headers: used.headers, body }))).json()).toMatchObject({ status: "pending" });
  });

  test("a body that is being read elsewhere gives 500 as well", async () => {
    const service = createService();
    const locked = request(service);
    locked.body?.getReader();
    expect((await fetchHandler(service.verifier)(locked)).status).toBe(500);
  });

  test("Hono: middleware that read the body as JSON gives 500, and works with the fix", async () => {
    const service = createService();
    const handler = fetchHandler(service.verifier);
    const app = new Hono();
    app.use(async (c, next) => {
      await c.req.json();
      await next();
    });
    app.post("/plain/v1/*", (c) => fetchHandler(service.verifier, { basePath: "/plain" })(c.req.raw));
    app.post("/v1/*", async (c) => handler(new Request(c.req.url, { method: "POST", headers: c.req.raw.headers, body: await c.req.arrayBuffer() })));
    expect((await app.request(request(service, "/plain/v1/authentication"))).status).toBe(500);
    expect(await (await app.request(request(service))).json()).toMatchObject({ status: "pending" });
  });

  test("of an endless body, at most the limit and one chunk are read, and 1 MiB more is discarded", async () => {
    const service = createService();
    let taken = 0;
    let canceled = false;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        taken++;
        controller.enqueue(new Uint8Array(8 * 1024));
      },
      cancel() {
        canceled = true;
      },
    });
    const endless = new Request("http://localhost/v1/check", {
      method: "POST",
      headers: { "x-api-key": service.customer.key },
      body,
      duplex: "half",
    } as RequestInit);
    expect((await fetchHandler(service.verifier)(endless)).status).toBe(413);
    await expect.poll(() => canceled).toBe(true);
    expect(taken).toBeLessThanOrEqual(4 + 1024 / 8 + 2);
  });

  test("a body whose stream breaks is bad_request, not an error of ours", async () => {
    const service = createService();
    const body = new ReadableStream({ pull: (controller) => controller.error(new Error("reset")) });
    const broken = new Request("http://localhost/v1/check", {
      method: "POST",
      headers: { "x-api-key": service.customer.key },
      body,
      duplex: "half",
    } as RequestInit);
    const answer = await fetchHandler(service.verifier)(broken);
    expect([answer.status, await answer.json()]).toEqual([400, { ...ownShape, code: "bad_request", message: "The request body was cut off." }]);
    expect(await service.logged()).toEqual([]);
  });

  test("a 404 shows where one of our routes was requested, and where to mount the handler", async () => {
    const { verifier } = createService();
    const both = [verifier, verifier.receipts];
    const messageOf = async (handler: (request: Request) => Promise<Response>, path: string) => {
      const response = await handler(new Request(`http://localhost${path}`, { method: "POST" }));
      expect(response.status).toBe(404);
      return ((await response.json()) as { message: string }).message;
    };
    const plain = fetchHandler(both);
    const under = fetchHandler(both, { basePath: "/api" });
    expect(await messageOf(plain, "/api/v1/check")).toMatch(
      / The path asked for is \/api\/v1\/check, and the handler is mounted under "": give it \{ basePath: "\/api" \}\.$/,
    );
    expect(await messageOf(plain, "/a/b/v1/lookup/+33612345678?x=y")).toMatch(/ is \/a\/b\/v1\/lookup\/\{phone_number\}, .* basePath: "\/a\/b" \}\.$/);
    expect(await messageOf(plain, "/api/receipts/twilio")).toMatch(/ is \/api\/receipts\/twilio, .* basePath: "\/api" \}\.$/);
    expect(await messageOf(under, "/v1/check")).toMatch(/ is \/v1\/check, and the handler is mounted under "\/api": leave its basePath out\.$/);
    expect(await messageOf(under, "/api/api/v1/retry/")).toMatch(/ basePath: "\/api\/api" \}\.$/);
    expect(await messageOf(plain, "/check")).toMatch(/ is \/v1\/check without its \/v1: .* pass \{ stripped: "\/v1" \}\.$/);
    const inNode = await start(nodeHandler(both));
    expect((await inNode.send({ method: "POST", path: "/check" })).text).toMatch(/ is \/v1\/check without its \/v1: ask for \/v1\/check\."/);
    expect(await messageOf(fetchHandler(both, { basePath: "/api" }), "/receipts/twilio")).toMatch(/ is \/receipts\/twilio, .* leave its basePath out\.$/);
    const words = "There is no such route; the routes are /v1/authentication, /v1/retry, /v1/check and /v1/lookup/{phone_number}.";
    const based = fetchHandler(both, { basePath: "/api" });
    expect(await messageOf(based, "/check")).toMatch(/ is \/v1\/check without its \/v1: .* pass \{ stripped: "\/api\/v1" \}\.$/);
    expect(await messageOf(based, "/api/check")).toMatch(/ without its \/v1: ask for \/api\/v1\/check\.$/);
    const stripped = (value: string) => fetchHandler(both, { stripped: value });
    expect(await messageOf(stripped("/v1"), "/v1/check")).toMatch(
      / is \/v1\/check, .* with \{ stripped: "\/v1" \}, which makes it \/v1\/v1\/check: leave its options out\.$/,
    );
    expect(await messageOf(stripped("/api"), "/api/v1/check")).toMatch(/ makes it \/api\/api\/v1\/check: give it only \{ basePath: "\/api" \}\.$/);
    expect(await messageOf(stripped("/api"), "/check")).toMatch(/ pass \{ stripped: "\/api\/v1" \}\.$/);
    expect(await messageOf(fetchHandler(verifier.receipts), "/twilio")).toMatch(/ pass \{ stripped: "\/receipts" \}\.$/);
    expect(await messageOf(fetchHandler(verifier.receipts), "/favicon.ico")).toBe("There is no such receipts route.");
    for (const path of ["/", "/v1/none", "/api/v1/none", "/v1check", `/${"x".repeat(200)}/v1/check`]) expect(await messageOf(plain, path)).toBe(words);
    for (const path of ["/receipts/none", "/api/receipts/none"]) expect(await messageOf(plain, path)).toBe("There is no such receipts route.");
  });

  test("basePath and stripped: paths outside are 404", async () => {
    const service = createService();
    const based = fetchHandler(service.verifier, { basePath: "/api" });
    const stripped = fetchHandler(service.verifier, { stripped: "/v1" });
    expect((await based(request(service, "/api/v1/authentication"))).status).toBe(200);
    for (const path of ["/v1/authentication", "/apiv1/authentication", "/api/api/v1/authentication", "/api"])
      expect((await based(request(service, path))).status).toBe(404);
    expect((await stripped(request(service, "/authentication?x=/v1"))).status).toBe(200);
    expect((await stripped(request(service))).status).toBe(404);
  });

  test.each<[options: { stripped: string; basePath?: string }, removed: string]>([
    [{ stripped: "/v1" }, "/v1"],
    [{ stripped: "/api/v1" }, "/api/v1"],
    [{ stripped: "/api/v1", basePath: "/api" }, "/api/v1"],
    [{ stripped: "/api" }, "/api"],
    [{ stripped: "/api", basePath: "/api" }, "/api"],
    [{ stripped: "/api", basePath: "/api/otp" }, "/api"],
    [{ stripped: "/v1/lookup" }, "/v1/lookup"],
  ])("%o: the framework removes %s", async (options, removed) => {
    const { verifier } = createService();
    const handler = fetchHandler([verifier, verifier.receipts], options);
    const path = `${options.basePath ?? removed.replace(/\/v1.*/, "")}/v1/lookup/x`.slice(removed.length);
    expect((await handler(new Request(`http://localhost${path}`))).status).toBe(403);
  });

  test("under a prefix, what a framework removes may end with /receipts, or with the start of a root", async () => {
    const { verifier } = createService();
    const receipts = fetchHandler(verifier.receipts, { stripped: "/api/receipts" });
    expect((await receipts(new Request("http://localhost/twilio", { method: "POST", body: "" }))).status).toBe(403);
    const wire = fetchHandler(twilioVerify(verifier), { stripped: "/api/v2" });
    expect((await wire(new Request("http://localhost/Services"))).status).toBe(401);
  });

  test("stripped and basePath that contradict each other are a TypeError with the fix", () => {
    const { verifier } = createService();
    expect(() => fetchHandler(verifier, { stripped: "/v1", basePath: "/api" })).toThrow(
      'phoneproof: stripped is "/v1", but with basePath "/api" the paths start with /api/v1: stripped must be all that the framework removes, such as "/api/v1", or leave basePath out',
    );
  });
});

describe("node", () => {
  test("a 404 shows where one of our routes was requested", async () => {
    const host = await start(nodeHandler(createService().verifier));
    expect((await host.send({ method: "POST", path: "/api/v1/check" })).text).toContain('give it { basePath: \\"/api\\" }');
  });

  test("paths outside basePath get our 404", async () => {
    const service = createService();
    const host = await start(nodeHandler(service.verifier, { basePath: "/api" }));
    expect((await host.send(createCall(service, "/api/v1/authentication"))).status).toBe(200);
    for (const path of ["/", "/v1/authentication", "/api", "/apiv1/authentication", "/API/v1/authentication"]) {
      const answer = await host.send(createCall(service, path));
      expect(answer.status).toBe(404);
      expect(JSON.parse(answer.text)).toEqual({ ...ownShape, code: "not_found" });
    }
    expect((await host.send({ method: "OPTIONS", path: "*" })).status).toBe(404);
  });

  test("the handler's promise resolves once the response has ended, or the client has disconnected", async () => {
    const service = createService();
    const v1 = nodeHandler(service.verifier);
    const ended: boolean[] = [];
    const host = await start(async (request, response) => {
      await v1(request, response);
      ended.push(response.writableEnded);
    });
    expect((await host.send(createCall(service))).status).toBe(200);
    expect(ended).toEqual([true]);
    const cutOff = `POST /v1/check HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: ${service.customer.key}\r\nExpect: 100-continue\r\nContent-Length: 500\r\n\r\n`;
    await exchange(host.port as number, cutOff, () => true);
    await expect.poll(() => ended.length).toBe(2);
  });

  test("h3 1, of Nuxt 4, sends the handler's response", async () => {
    const service = createService();
    const router = createRouter().use("/v1/**", fromNodeMiddleware(nodeHandler(service.verifier)));
    const host = await start(toNodeListener(createApp().use(router)));
    expect(JSON.parse((await host.send(createCall(service))).text)).toMatchObject({ status: "pending" });
  });

  test("Koa middleware above the handler sees the status of its response", async () => {
    const service = createService();
    const v1 = nodeHandler(service.verifier);
    const seen: number[] = [];
    const app = new Koa();
    app.use(async (context, next) => {
      await next();
      seen.push(context.status);
    });
    app.use((context) => {
      context.respond = false;
      return v1(context.req, context.res);
    });
    const host = await start(app.callback());
    expect((await host.send(createCall(service))).status).toBe(200);
    expect(seen).toEqual([200]);
  });

  test("a `req.body` that throws, as on Vercel, is bad_request if it blames the client, else 500 and logged", async () => {
    const service = createService();
    const v1 = nodeHandler(service.verifier);
    let statusCode: number | undefined = 400;
    const host = await start(async (request, response) => {
      await once(request.resume(), "end");
      const get = () => {
        throw Object.assign(new Error("Invalid JSON"), { statusCode });
      };
      await v1(Object.defineProperty(request, "body", { get }), response);
    });
    const answer = await host.send(createCall(service));
    expect([answer.status, JSON.parse(answer.text)]).toEqual([400, { ...ownShape, code: "bad_request" }]);
    expect(await service.logged()).toEqual([]);
    statusCode = undefined;
    expect((await host.send(createCall(service))).status).toBe(500);
    expect(await service.logged()).toEqual(["a request failed unexpectedly"]);
  });

  test("`Upgrade: h2c` never reaches us on a server with an `upgrade` listener", async () => {
    const service = createService();
    const server = createServer(nodeHandler(service.verifier));
    server.on("upgrade", (_request, socket: Socket) => socket.destroy());
    const host = await listen(server);
    open.push(host);
    const { headers, body, path } = createCall(service);
    const upgrade = { connection: "Upgrade, HTTP2-Settings", upgrade: "h2c", "http2-settings": "AAMAAABkAAQAAP__" };
    await expect(host.send({ method: "POST", path, headers: { ...headers, ...upgrade }, body })).rejects.toThrow(/socket hang up|ECONNRESET/);
    expect(await service.answers()).toEqual([]);
  });

  test("many requests over one connection are rejected and accepted in turn", async () => {
    const service = createService();
    const host = await start(nodeHandler(service.verifier));
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const ports = new Set<number | undefined>();
    for (let count = 0; count < 20; count++) {
      const status = await new Promise((resolve, reject) => {
        const headers = count % 2 === 0 ? {} : { "x-api-key": service.customer.key, "customer-uuid": service.customer.customer_uuid };
        const outgoing = get({ port: host.port, host: "127.0.0.1", path: "/v1/lookup/+33612345678", agent, headers }, (response) => {
          ports.add(response.socket.localPort);
          response.resume().on("end", () => resolve(response.statusCode));
        });
        outgoing.on("error", reject);
      });
      expect(status).toBe(count % 2 === 0 ? 403 : 200);
    }
    agent.destroy();
    expect(ports.size).toBe(1);
  });

  /** A handler that reads a body, and the outcome. */
  const bodyReader = () => {
    let settle: (outcome: string) => void;
    const outcome = new Promise<string>((resolve) => {
      settle = resolve;
    });
    const handler: HttpHandler = {
      root: "/v1",
      warn: () => undefined,
      clock: fixedClock(),
      async handle(request) {
        await request.body(1000).then(
          (body) => settle(body.kind === "refused" ? body.reason : body.kind),
          () => settle("a rejection"),
        );
        return { status: 500, headers: { "content-type": "application/json" }, body: "{}" };
      },
    };
    return { handler, outcome };
  };

  test("waiting for a body ends when the client disconnects", async () => {
    const { handler, outcome } = bodyReader();
    const host = await start(nodeHandler(handler));
    await exchange(host.port as number, "POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 500\r\n\r\n{", () => true);
    expect(await outcome).toBe("cut_off");
  });

  test("a body stream that is closed before its end, or before it is read, is cut off", async () => {
    for (const when of ["before", "while"]) {
      const { handler, outcome } = bodyReader();
      const stream = Object.assign(new Readable({ read: () => undefined }), { method: "POST", url: "/v1/check", headers: {} });
      if (when === "before") stream.destroy();
      nodeHandler(handler)(stream, new ServerResponse(new IncomingMessage(new Socket())));
      if (when === "while") stream.destroy();
      expect(await outcome).toBe("cut_off");
    }
  });

  const http2 = async (handler: HttpHandler) => {
    const server = createServer2(nodeHandler(handler));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    open.push({
      close: async () => {
        session.destroy();
        await new Promise((resolve) => server.close(resolve));
      },
    });
    return session;
  };

  test("node:http2: after a 413 an endless body is no longer read, and its stream is closed", async () => {
    const service = createService();
    const stream = (await http2(service.verifier.http)).request({ ":method": "POST", ":path": "/v1/check", "x-api-key": service.customer.key });
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => void chunks.push(chunk));
    const closed = new Promise((resolve) => stream.on("close", () => resolve(stream.rstCode)));
    let left = 1024;
    const more = () => {
      while (left > 0 && stream.write(Buffer.alloc(16 * 1024))) left--;
    };
    stream.on("drain", more);
    more();
    await once(stream, "end");
    expect(JSON.parse(Buffer.concat(chunks).toString())).toEqual({ ...ownShape, code: "payload_too_large" });
    await until(async () => (await service.waits()).includes(5_000));
    expect(left).toBeGreaterThan(900);
    await service.pass(5_000);
    expect(await closed).toBe(0);
  });

  test("node:http2: a create works", async () => {
    const service = createService();
    const { headers, body, path } = createCall(service);
    const stream = (await http2(service.verifier.http)).request({ ":method": "POST", ":path": path, ...headers });
    stream.end(body);
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(chunk as Buffer);
    expect(JSON.parse(Buffer.concat(chunks).toString())).toMatchObject({ status: "pending" });
  });
});

test.each(["api", "/api/", "/", "http://host/api"])("an invalid prefix option of %o is a TypeError that names the option and the fix", (basePath) => {
  const { verifier } = createService();
  expect(() => nodeHandler(verifier, { basePath })).toThrow(/basePath must be empty or start with "\/"/);
  expect(() => fetchHandler(verifier, { basePath })).toThrow(TypeError);
  expect(() => fetchHandler(verifier, { stripped: basePath })).toThrow(/stripped must be/);
  expect(() => nextHandlers(verifier, { basePath })).toThrow(TypeError);
});

test.each(["/v1", "/api/v1", "/receipts"])("a prefix of %o, which the paths already contain, is an error with the fix", async (basePath) => {
  const { verifier } = createService();
  const both = [verifier, verifier.receipts];
  const fault = new RegExp(`^phoneproof: (basePath|prefix) is "${basePath}", but the paths start with .* (leave it out|say "/api")$`);
  expect(() => nodeHandler(both, { basePath })).toThrow(fault);
  expect(() => fetchHandler(both, { basePath })).toThrow(fault);
  expect(() => nextHandlers(both, { basePath })).toThrow(fault);
  const app = fastify();
  open.push(app);
  app.register(fastifyPlugin(both), { prefix: basePath });
  await expect(app.ready()).rejects.toThrow(fault);
});

describe("next", () => {
  const ask = (path: string, params?: unknown, options?: { basePath: string }) => {
    const { verifier } = createService();
    return nextHandlers([verifier, verifier.receipts], options).GET(new Request(`http://localhost${path}`), { params });
  };

  test.each([
    ["/v1/retry", ["retry"]],
    ["/api/v1/retry", ["retry"]],
    ["/api/v1/retry/", ["retry"]],
    ["/otp/v1/retry", ["v1", "retry"]],
    ["/otp/v1/retry", Promise.resolve({ tenant: "a", route: ["v1", "retry"] })],
    ["/v1/otp/v1/retry", Promise.resolve({ tenant: "v1", route: ["v1", "retry"] })],
    ["/v1/otp/v1/retry", Promise.resolve({ tenant: "v1", route: ["retry"] })],
    ["/api/v1/lookup/x", ["x"]],
    ["/v1/retry", undefined],
  ])("%s is found from the position of the file, %j", async (path, taken) => {
    expect((await ask(path, Array.isArray(taken) ? { route: taken } : taken)).status).toBe(path.includes("lookup") ? 403 : 405);
  });

  test("a path that repeats the root, or has a prefix without route parameters, is 404; a given basePath takes precedence", async () => {
    expect((await ask("/v1/v1/retry", { route: ["v1", "retry"] })).status).toBe(404);
    expect((await ask("/api/v1/retry")).status).toBe(404);
    expect((await ask("/api/v1/retry", undefined, { basePath: "/api" })).status).toBe(405);
    expect((await ask("/api/v1/retry", { route: ["retry"] }, { basePath: "/other" })).status).toBe(404);
  });

  test.each([
    ["/v2/Services/a", ["Services", "a"]],
    ["/v2/Services/a", ["a"]],
    ["/v2/Services/a", ["v2", "Services", "a"]],
    ["/otp/v2/Services/a", ["v2", "Services", "a"]],
    ["/otp/v2/Attempts/", ["Attempts"]],
  ])("a root of several parts: %s is found from the position of the file, %j", async (path, route) => {
    for (const mounted of [inner, [outer, inner], [inner, outer]]) {
      const answer = await nextHandlers(mounted).POST(new Request(`http://localhost${path}`, { method: "POST" }), { params: { route } });
      expect(await answer.json()).toEqual({ by: "inner", path: path.replace("/otp", "") });
    }
  });

  test("mounting in the edge runtime, which lacks node:crypto, throws an error that explains this", () => {
    vi.stubGlobal("EdgeRuntime", "edge-runtime");
    onTestFinished(() => void vi.unstubAllGlobals());
    expect(() => nextHandlers(createService().verifier)).toThrow(/lacks node:crypto.*export const runtime = "edge"/);
  });
});
