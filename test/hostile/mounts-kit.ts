import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { join } from "node:path";
import { getRequestListener } from "@hono/node-server";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import express5 from "express";
import express4 from "express4";
import Fastify, { type FastifyInstance, type FastifyServerOptions } from "fastify";
import { Hono } from "hono";
import Koa from "koa";
import { expressHandlers } from "../../adapters/http/express.js";
import { fastifyPlugin } from "../../adapters/http/fastify.js";
import { fetchHandler } from "../../adapters/http/fetch.js";
import { nextHandlers } from "../../adapters/http/next.js";
import { nodeHandler } from "../../adapters/http/node.js";
import type { Verifier } from "../../src/index.js";

/** A response as it came over the socket. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

export interface Listening {
  readonly port: number;
  readonly base: string;
  end(): Promise<void>;
}

/** Lets a server listen on the loopback interface. */
export async function listening(server: Server): Promise<Listening> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    port,
    base: `http://127.0.0.1:${port}`,
    async end() {
      server.closeAllConnections();
      if (server.listening) await new Promise((done) => server.close(done));
    },
  };
}

export const serving = (listener: RequestListener): Promise<Listening> => listening(createServer(listener));

/** A connection on which a test writes arbitrary bytes and reads whole responses. */
export class Line {
  private bytes = Buffer.alloc(0);
  private ended = false;
  private wake: () => void = () => {};
  readonly socket: Socket;

  constructor(port: number) {
    this.socket = connect({ port, host: "127.0.0.1", noDelay: true });
    this.socket.on("data", (chunk: Buffer) => {
      this.bytes = Buffer.concat([this.bytes, chunk]);
      this.wake();
    });
    this.socket.on("error", () => {});
    this.socket.on("close", () => {
      this.ended = true;
      this.wake();
    });
  }

  write(...parts: readonly (string | Uint8Array)[]): this {
    for (const part of parts) this.socket.write(part);
    return this;
  }

  /** Waits until the server has closed the connection. */
  async closed(): Promise<void> {
    while (!this.ended) await this.more();
  }

  /** The next response; `undefined` if the connection ended before it. */
  async next(method = "POST"): Promise<Answer | undefined> {
    for (;;) {
      const answer = this.take(method);
      if (answer !== undefined) return answer;
      if (this.ended) return undefined;
      await this.more();
    }
  }

  private more(): Promise<void> {
    return new Promise((resolve) => {
      this.wake = resolve;
    });
  }

  private take(method: string): Answer | undefined {
    const end = this.bytes.indexOf("\r\n\r\n");
    if (end < 0) return undefined;
    const [first = "", ...lines] = this.bytes.subarray(0, end).toString("latin1").split("\r\n");
    const headers: Record<string, string> = {};
    for (const line of lines) {
      const name = line.slice(0, line.indexOf(":")).toLowerCase();
      const value = line.slice(line.indexOf(":") + 1).trim();
      headers[name] = name in headers ? `${headers[name]}, ${value}` : value;
    }
    const status = Number(first.split(" ")[1]);
    const hasBody = method !== "HEAD" && status >= 200 && status !== 204 && status !== 304;
    const taken = hasBody ? bodyAt(this.bytes, end + 4, headers) : { text: "", to: end + 4 };
    if (taken === undefined) return undefined;
    this.bytes = this.bytes.subarray(taken.to);
    return { status, headers, text: taken.text };
  }
}

function bodyAt(bytes: Buffer, from: number, headers: Record<string, string>): { text: string; to: number } | undefined {
  if (headers["transfer-encoding"] !== "chunked") {
    const to = from + Number(headers["content-length"] ?? 0);
    return bytes.length < to ? undefined : { text: bytes.subarray(from, to).toString(), to };
  }
  const parts: Buffer[] = [];
  for (let at = from; ; ) {
    const line = bytes.indexOf("\r\n", at);
    if (line < 0) return undefined;
    const size = Number.parseInt(bytes.subarray(at, line).toString(), 16);
    const to = line + 2 + size + 2;
    if (bytes.length < to) return undefined;
    if (size === 0) return { text: Buffer.concat(parts).toString(), to };
    parts.push(bytes.subarray(line + 2, line + 2 + size));
    at = to;
  }
}

/** The bytes of a request. A header with a list of values is written once for each. */
export function request(method: string, path: string, headers: Record<string, string | readonly string[]> = {}, body?: string | Uint8Array): Buffer {
  const given = Object.keys(headers).map((name) => name.toLowerCase());
  const all: Record<string, string | readonly string[]> = {
    host: "app.example",
    ...(body !== undefined &&
      !given.includes("content-length") &&
      !given.includes("transfer-encoding") && { "content-length": String(Buffer.byteLength(body)) }),
    ...headers,
  };
  const lines = Object.entries(all).flatMap(([name, value]) => [value].flat().map((one) => `${name}: ${one}\r\n`));
  return Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`, "latin1"), Buffer.from(body ?? "")]);
}

/** One request on its own connection. */
export async function ask(port: number, bytes: Uint8Array, method = "POST"): Promise<Answer | undefined> {
  const line = new Line(port);
  try {
    return await line.write(bytes).next(method);
  } finally {
    line.socket.destroy();
  }
}

interface Operation {
  readonly responses: Record<string, { readonly content?: Record<string, { readonly schema: { readonly $ref: string } }> }>;
}
const openapi = JSON.parse(readFileSync(join(import.meta.dirname, "../../docs/public/openapi.json"), "utf8")) as {
  readonly paths: Record<string, Record<string, Operation>>;
};
const ajv = new Ajv2020({ strict: false, validateFormats: false });
ajv.addSchema(openapi, "openapi");
const compiled = new Map<string, ValidateFunction>();

/** Whether openapi.json allows `value` as a `schema`. */
export const allows = (schema: string, value: unknown): boolean => ajv.validate({ $ref: `openapi#/components/schemas/${schema}` }, value);

/** What openapi.json does not allow in a response; empty if nothing. `operation`: for example `post /v1/check`. */
export function faultOf(operation: string, answer: Answer | undefined): string {
  if (answer === undefined) return "no answer";
  const [method = "", path = ""] = operation.split(" ");
  const status = String(answer.status);
  const known = openapi.paths[path]?.[method]?.responses[status]?.content?.["application/json"]?.schema.$ref;
  if (known === undefined && !["403", "404", "405", "408", "413", "500", "503"].includes(status)) return `status ${status}: ${answer.text.slice(0, 200)}`;
  const type = answer.headers["content-type"] ?? "";
  if (!/^application\/json(;|$)/.test(type)) return `${status}, content type ${type}: ${answer.text.slice(0, 200)}`;
  const ref = `openapi${known ?? "#/components/schemas/Error"}`;
  const validate = compiled.get(ref) ?? ajv.compile({ $ref: ref });
  compiled.set(ref, validate);
  let value: unknown;
  try {
    value = JSON.parse(answer.text);
  } catch {
    return `${status}, not JSON: ${answer.text.slice(0, 200)}`;
  }
  if (!validate(value)) return `${status}, ${ajv.errorsText(validate.errors)}: ${answer.text.slice(0, 200)}`;
  if (answer.status === 405 && !answer.headers["allow"]) return "405 without allow";
  if (answer.status === 503 && answer.headers["retry-after"] !== "2") return "503 without retry-after";
  return "";
}

/** HTTP status, and error code or outcome: `200 pending`, `400 bad_request`. */
export function shortly(answer: Answer | undefined): string {
  if (answer === undefined) return "no answer";
  try {
    const { status, code } = JSON.parse(answer.text) as { status?: string; code?: string };
    return `${answer.status} ${code ?? status ?? ""}`;
  } catch {
    return `${answer.status} ${answer.text.slice(0, 80)}`;
  }
}

/** An app that serves `/v1`. */
export interface Mounted extends Listening {
  /** The part of the path before `/v1`. */
  readonly prefix: string;
}

/** A way to mount a verifier. */
export type Mount = (verifier: Verifier) => Promise<Mounted>;

const at = async (prefix: string, server: Promise<Listening>): Promise<Mounted> => ({ prefix, ...(await server) });

/** An app of Express 4 or 5, set up by `build`. */
export const express =
  (make: typeof express5, build: (app: express5.Express, verifier: Verifier) => void, prefix = ""): Mount =>
  (verifier) => {
    const app = make();
    app.set("env", "test"); // where Express prints no errors
    build(app, verifier);
    return at(prefix, serving(app));
  };

/** An app of Fastify, set up by `build`. */
export const fastify =
  (build: (app: FastifyInstance, verifier: Verifier) => void, prefix = "", options: FastifyServerOptions = {}): Mount =>
  async (verifier) => {
    const app = Fastify(options);
    build(app, verifier);
    await app.ready();
    return at(prefix, listening(app.server));
  };

const parsers = {
  json: express5.json(),
  form: express5.urlencoded({ extended: true }),
  text: express5.text({ type: "*/*" }),
  raw: express5.raw({ type: "*/*" }),
};

/** Apps as developers write them. */
export const mounts: Readonly<Record<string, Mount>> = {
  "Express 5": express(express5, (app, verifier) => void app.use(expressHandlers(verifier))),
  "Express 5 after json and urlencoded": express(express5, (app, verifier) => void app.use(parsers.json, parsers.form, expressHandlers(verifier))),
  "Express 5 at /v1, before a parser": express(express5, (app, verifier) => void app.use("/v1", expressHandlers(verifier)).use(parsers.json)),
  "Express 4": express(express4, (app, verifier) => void app.use(expressHandlers(verifier))),
  "Express 4 after json": express(express4, (app, verifier) => void app.use(express4.json(), expressHandlers(verifier))),
  "Express 4 in nested routers": express(
    express4,
    (app, verifier) => void app.use("/x", express4.Router().use("/:tenant", express4.Router().use(expressHandlers(verifier)))),
    "/x/acme",
  ),
  Fastify: fastify((app, verifier) => void app.register(fastifyPlugin(verifier))),
  "Fastify with its own handlers, nested": fastify(
    (app, verifier) => {
      app.setErrorHandler((_error, _request, reply) => reply.code(418).send("own"));
      app.addContentTypeParser("*", { parseAs: "string" }, (_request, body, done) => done(null, body));
      app.register(async (scope) => void scope.register(fastifyPlugin(verifier), { prefix: "/y" }), { prefix: "/x" });
    },
    "/x/y",
    { bodyLimit: 20 },
  ),
  "node:http below a prefix": (verifier) => at("/api", serving(nodeHandler(verifier, { basePath: "/api" }))),
  Koa: (verifier) => {
    const v1 = nodeHandler(verifier);
    const app = new Koa();
    app.silent = true; // prints no errors
    app.use((context, next) => {
      if (!/^\/v1(\/|$)/.test(context.path)) return next();
      context.respond = false;
      return v1(context.req, context.res);
    });
    return at("", serving(app.callback()));
  },
  Hono: (verifier) => {
    const v1 = fetchHandler(verifier);
    return at("", serving(getRequestListener(new Hono().all("/v1/*", (c) => v1(c.req.raw)).fetch)));
  },
  "Next.js, its handlers as functions": (verifier) => {
    const handlers = nextHandlers(verifier);
    const asked = (request: Request) =>
      handlers[request.method as "POST"](request, { params: Promise.resolve({ route: new URL(request.url).pathname.split("/").slice(3) }) });
    return at("/api", serving(getRequestListener(asked)));
  },
};
