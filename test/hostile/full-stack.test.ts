import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { connect as connect2 } from "node:http2";
import { type AddressInfo, connect } from "node:net";
import express5 from "express";
import express4 from "express4";
import Fastify from "fastify";
import { expressHandlers } from "phoneproof/express";
import { fastifyPlugin } from "phoneproof/fastify";
import { nodeHandler } from "phoneproof/node";
import { createTestVerifier } from "phoneproof/testing";
import { describe, expect, it, onTestFinished } from "vitest";

const number = "+33612345678";

/** A verifier, and the create request that its customer posts. */
function service() {
  const logged: unknown[] = [];
  const note = (...line: unknown[]) => void logged.push(line);
  const test = createTestVerifier({ limits: false, logger: { info() {}, warn: note, error: note } });
  onTestFinished(() => test.close());
  const headers = { "x-api-key": test.apiKey, "content-type": "application/json" };
  const body = JSON.stringify({ customer_uuid: test.customer_uuid, phone_number: number });
  return { ...test, logged, headers, body, create: { method: "POST", headers, body } };
}

async function listening(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** HTTP status, and error code or outcome: `200 pending`, `400 bad_request`. */
async function shortly(response: Response): Promise<string> {
  const text = await response.text();
  try {
    const { status, code } = JSON.parse(text) as { status?: string; code?: string };
    return `${response.status} ${code ?? status}`;
  } catch {
    return `${response.status} ${text.slice(0, 80)}`;
  }
}

describe("a host that parses the body", () => {
  it("and lets through what is no object, rejects it (docs/contract.md#sound-bodies)", async () => {
    const { verifier, headers } = service();
    for (const make of [express5, express4]) {
      const app = make();
      app.use(make.json({ strict: false, type: () => true }), expressHandlers(verifier));
      const base = await listening(app);
      for (const body of ["null", "0", "false", '""', '"x"', "[]"])
        expect(await shortly(await fetch(`${base}/v1/authentication`, { method: "POST", headers, body })), body).toBe("400 bad_request");
    }
  });
});

describe("mounts", () => {
  it("serves requests whose target is a whole URL, which HTTP/1.1 requires of servers (docs/frameworks.md)", async () => {
    const { verifier, headers, body } = service();
    const fastify = Fastify();
    fastify.register(fastifyPlugin(verifier));
    await fastify.ready();
    const handlers: RequestListener[] = [
      nodeHandler(verifier),
      express5().use(expressHandlers(verifier)),
      express4().use(expressHandlers(verifier)),
      fastify.routing,
    ];
    for (const handler of handlers) {
      const socket = connect(Number(new URL(await listening(handler)).port), "127.0.0.1");
      const lines = Object.entries({ host: "app.example", connection: "close", "content-length": String(body.length), ...headers });
      socket.write(`POST http://app.example/v1/authentication HTTP/1.1\r\n${lines.map((line) => line.join(": ")).join("\r\n")}\r\n\r\n${body}`);
      let text = "";
      for await (const part of socket) text += String(part);
      expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*"status":"pending"/);
    }
  });

  it("serves Fastify over HTTP/2, and its `inject`, on which @fastify/aws-lambda is built (docs/frameworks.md#fastify)", async () => {
    const { verifier, headers, body } = service();
    const app = Fastify({ http2: true });
    onTestFinished(() => app.close());
    app.register(fastifyPlugin(verifier));
    const injected = await app.inject({ method: "POST", url: "/v1/authentication", headers, payload: body });
    expect([injected.statusCode, injected.json().status]).toEqual([200, "pending"]);
    const session = connect2(await app.listen({ port: 0, host: "127.0.0.1" }));
    const stream = session.request({ ":method": "POST", ":path": "/v1/authentication", ...headers });
    stream.end(body);
    let text = "";
    for await (const part of stream) text += String(part);
    session.close();
    expect(JSON.parse(text)).toMatchObject({ status: "pending" });
  });
});
