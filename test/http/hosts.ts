import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { PassThrough } from "node:stream";
import { serve } from "@hono/node-server";
import express from "express";
import express4 from "express4";
import fastify, { type FastifyInstance, type FastifyServerOptions } from "fastify";
import { Hono } from "hono";
import { expressHandlers } from "../../adapters/http/express.js";
import { fastifyPlugin } from "../../adapters/http/fastify.js";
import { fetchHandler } from "../../adapters/http/fetch.js";
import type { Mountable } from "../../adapters/http/mounted.js";
import { nodeHandler } from "../../adapters/http/node.js";
import { type Answer, type Call, send } from "./client.js";

/** A running app of a framework with the handlers mounted. */
export interface Host {
  /** The path before `/v1`. */
  readonly prefix: string;
  /** Absent if there is no socket. */
  readonly port?: number;
  /** Bytes that its sockets have read; absent if it is another process. */
  read?(): number;
  send(call: Call): Promise<Answer>;
  close(): Promise<void>;
}

/** A way of mounting a handler, or several. */
export interface Mounting {
  readonly name: string;
  /** The host reads bodies before us, so a response may have to wait for them. */
  readonly readsFirst?: true;
  /** The host turns bodies into text or values by its own rules, which decide on charsets and invalid bytes. */
  readonly decodes?: true;
  /** The host keeps only the values of what it parses, not the bytes, so a carrier's signature cannot be checked. */
  readonly keepsNoBytes?: true;
  /** Content encodings that the host's parser decodes. */
  readonly unpacks?: readonly string[];
  /** Connections belong to the platform, which closes them by its own rules. */
  readonly fetch?: true;
  /** There is no socket. */
  readonly direct?: true;
  start(handler: Mountable): Promise<Host>;
}

const rootsOf = (mounted: Mountable) =>
  [mounted].flat().flatMap((one) => {
    const { root, roots = [] } = "http" in one ? one.http : one;
    return [root, ...roots];
  });

/** Starts a server on a free port of loopback. */
export async function listen(server: Server, prefix = ""): Promise<Host> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { prefix, port, read: readBy(server), send: (call) => send(port, call), close: () => close(server) };
}

function readBy(server: Pick<Server, "on">): () => number {
  const sockets: Socket[] = [];
  server.on("connection", (socket) => void sockets.push(socket));
  return () => sockets.reduce((sum, { bytesRead }) => sum + bytesRead, 0);
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

/** Both versions are used with the types of 5, which fit for what is used here. */
type Express = typeof express;

function expressMountings(version: string, make: Express, unpacks: readonly string[]): Mounting[] {
  const all = { type: "*/*" };
  const mounting = (
    name: string,
    build: (app: ReturnType<Express>, handlers: ReturnType<typeof expressHandlers>, roots: string[]) => string,
    traits: Partial<Mounting> = {},
  ): Mounting => ({
    name: `${version} ${name}`,
    ...traits,
    start: async (handler) => {
      const app = make();
      const prefix = build(app, expressHandlers(handler), rootsOf(handler));
      return listen(createServer(app), prefix);
    },
  });
  const after = (name: string, parsers: () => express.RequestHandler[], traits: Partial<Mounting> = {}) =>
    mounting(
      `after ${name}`,
      (app, handlers) => {
        for (const parser of parsers()) app.use(parser);
        app.use(handlers);
        return "";
      },
      { readsFirst: true, ...traits },
    );
  const decodes = { decodes: true, unpacks } as const;
  const verify = (request: IncomingMessage & { rawBody?: Buffer }, _response: unknown, bytes: Buffer) => {
    request.rawBody = bytes;
  };
  return [
    mounting("bare", (app, handlers) => {
      app.use(handlers);
      return "";
    }),
    mounting("under a prefix", (app, handlers) => {
      app.use("/api", handlers);
      return "/api";
    }),
    mounting("in nested routers", (app, handlers) => {
      const outer = make.Router();
      const inner = make.Router();
      inner.use(handlers);
      outer.use("/inner", inner);
      app.use("/outer", outer);
      return "/outer/inner";
    }),
    mounting("mounted at /v1", (app, handlers, roots) => {
      for (const root of roots) app.use(root, handlers);
      return "";
    }),
    mounting("mounted at /v1 of a nested router", (app, handlers, roots) => {
      const router = make.Router();
      for (const root of roots) router.use(root, handlers);
      app.use("/api", router);
      return "/api";
    }),
    mounting("before express.json()", (app, handlers) => {
      app.use(handlers);
      app.use(make.json());
      return "";
    }),
    after("express.json()", () => [make.json()], decodes),
    after("express.raw()", () => [make.raw(all)], { unpacks }),
    after("express.text()", () => [make.text(all)], decodes),
    after("express.urlencoded()", () => [make.urlencoded({ extended: true })], { keepsNoBytes: true }),
    after("all four parsers", () => [make.json(), make.urlencoded({ extended: false }), make.raw(), make.text()], { ...decodes, keepsNoBytes: true }),
    after(
      "parsers that keep the bytes in rawBody, as NestJS and functions of Google's do",
      () => [make.json({ verify }), make.urlencoded({ extended: false, verify })],
      {
        unpacks,
      },
    ),
    mounting(
      "after express.json() of its own router, under a prefix",
      (app, handlers) => {
        const router = make.Router();
        router.use(make.json(), handlers);
        app.use("/api", router);
        return "/api";
      },
      { readsFirst: true, ...decodes },
    ),
  ];
}

function fastifyMounting(
  name: string,
  build: (app: FastifyInstance, plugin: ReturnType<typeof fastifyPlugin>) => string,
  options: FastifyServerOptions = {},
): Mounting {
  return {
    name: `Fastify 5 ${name}`,
    start: async (handler) => {
      const app = fastify({ forceCloseConnections: true, ...options }) as FastifyInstance;
      const prefix = build(app, fastifyPlugin(handler));
      await app.listen({ port: 0, host: "127.0.0.1" });
      const { port } = app.server.address() as AddressInfo;
      return { prefix, port, read: readBy(app.server), send: (call) => send(port, call), close: () => app.close() };
    },
  };
}

const fastifyMountings: Mounting[] = [
  fastifyMounting("bare", (app, plugin) => {
    app.register(plugin);
    return "";
  }),
  fastifyMounting("under a prefix", (app, plugin) => {
    app.register(plugin, { prefix: "/api" });
    return "/api";
  }),
  fastifyMounting("in nested plugins", (app, plugin) => {
    app.register(
      async (outer) => {
        outer.register(plugin, { prefix: "/inner" });
      },
      { prefix: "/:tenant/" },
    );
    return "/acme/inner";
  }),
  fastifyMounting("with the host's own parsers and hooks", (app, plugin) => {
    app.addContentTypeParser("application/json", { parseAs: "string" }, (_request, body, done) => done(null, { mangled: body }));
    app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
    app.addHook("onRequest", async (_request, reply) => void reply.header("x-host", "onRequest"));
    app.addHook("preParsing", async (_request, _reply, payload) => payload.pipe(new PassThrough()));
    app.addHook("preValidation", async () => undefined);
    app.addHook("onSend", async (_request, reply, payload) => {
      reply.header("access-control-allow-origin", "*");
      return payload;
    });
    app.register(plugin);
    return "";
  }),
  fastifyMounting(
    "with AJV's coercion on and routes of the host's own",
    (app, plugin) => {
      app.post("/own", { schema: { body: { type: "object", properties: { text: { type: "string" } } } } }, async (request) => request.body);
      app.get("/v1/own", async () => ({ own: true }));
      app.register(plugin);
      return "";
    },
    { ajv: { customOptions: { coerceTypes: "array", removeAdditional: "all" } }, bodyLimit: 100 },
  ),
];

const behindFunction: Mounting = {
  name: "Fastify 5 in a function of Firebase's, which has read the body into rawBody",
  readsFirst: true,
  start: async (handler) => {
    const app = fastify();
    app.register(fastifyPlugin(handler));
    await app.ready();
    const pass = async (request: IncomingMessage & { body?: unknown; rawBody?: Buffer }, response: ServerResponse) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      request.rawBody = Buffer.concat(chunks);
      request.body = { parsed: "by rules of its own" };
      app.server.emit("request", request, response);
    };
    return listen(createServer((request, response) => void pass(request, response).catch(() => response.destroy())));
  },
};

function serveFetch(fetch: (request: Request) => Response | Promise<Response>, prefix = ""): Promise<Host> {
  return new Promise((resolve) => {
    const server = serve({ fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) =>
      resolve({ prefix, port, send: (call) => send(port, call), close: () => close(server as Server) }),
    );
  });
}

async function sendDirectly(handler: (request: Request) => Promise<Response>, call: Call): Promise<Answer> {
  const headers = new Headers();
  for (const [name, values] of Object.entries(call.headers ?? {})) for (const value of [values].flat()) headers.append(name, value);
  const body = Array.isArray(call.body) ? streamOf(call.body) : (call.body as string | undefined);
  if (body !== undefined && !(body instanceof ReadableStream)) headers.set("content-length", String(Buffer.byteLength(body)));
  // A string as the body would set a content type; bytes do not.
  const init = body === undefined ? {} : { body: typeof body === "string" ? Buffer.from(body) : body, duplex: "half" };
  const response = await handler(new Request(`http://localhost${call.path}`, { method: call.method, headers, ...init } as RequestInit));
  return { status: response.status, headers: Object.fromEntries(response.headers), text: await response.text() };
}

function streamOf(pieces: readonly (string | Uint8Array)[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const piece of pieces) controller.enqueue(typeof piece === "string" ? Buffer.from(piece) : piece);
      controller.close();
    },
  });
}

const fetchMountings: Mounting[] = [
  {
    name: "fetch, called directly",
    direct: true,
    start: async (handler) => {
      const answer = fetchHandler(handler);
      return { prefix: "", send: (call) => sendDirectly(answer, call), close: async () => undefined };
    },
  },
  {
    name: "Hono app.all",
    fetch: true,
    start: (handler) => {
      const answer = fetchHandler(handler);
      const app = new Hono();
      for (const root of rootsOf(handler)) app.all(`${root}/*`, (c) => answer(c.req.raw));
      return serveFetch(app.fetch);
    },
  },
  {
    name: "Hono app.mount at /v1, which strips it",
    fetch: true,
    start: (handler) => {
      const app = new Hono();
      for (const root of rootsOf(handler)) app.mount(root, fetchHandler(handler, { stripped: root }));
      return serveFetch(app.fetch);
    },
  },
  {
    name: "Hono under a base path",
    fetch: true,
    start: (handler) => {
      const answer = fetchHandler(handler, { basePath: "/api" });
      const app = new Hono().basePath("/api");
      for (const root of rootsOf(handler)) app.all(`${root}/*`, (c) => answer(c.req.raw));
      return serveFetch(app.fetch, "/api");
    },
  },
  {
    name: "Hono with the body read before and handed on in a new request",
    readsFirst: true,
    start: (handler) => {
      const answer = fetchHandler(handler);
      const app = new Hono();
      for (const root of rootsOf(handler))
        app.all(`${root}/*`, async (c) => {
          if (c.req.method === "GET" || c.req.method === "HEAD") return answer(c.req.raw);
          return answer(new Request(c.req.raw, { body: await c.req.arrayBuffer() }));
        });
      return serveFetch(app.fetch);
    },
  },
];

const nodeMountings: Mounting[] = [
  { name: "node:http", start: (handler) => listen(createServer(nodeHandler(handler))) },
  { name: "node:http under a base path", start: (handler) => listen(createServer(nodeHandler(handler, { basePath: "/some/api" })), "/some/api") },
  {
    name: "node:http, where the host has read the body into req.body",
    readsFirst: true,
    decodes: true,
    start: (handler) => {
      const answer = nodeHandler(handler);
      const read = async (request: IncomingMessage & { body?: unknown }, response: ServerResponse) => {
        const chunks: Buffer[] = [];
        for await (const chunk of request) chunks.push(chunk as Buffer);
        request.body = Buffer.concat(chunks).toString();
        answer(request, response);
      };
      return listen(createServer((request, response) => void read(request, response).catch(() => response.destroy())));
    },
  },
];

/** Every framework in every awkward variant (docs/contract.md#http-shape); Next.js runs in a separate process. */
export const mountings: readonly Mounting[] = [
  ...nodeMountings,
  ...expressMountings("Express 5", express, ["gzip", "deflate", "br", "zstd"]),
  ...expressMountings("Express 4", express4, ["gzip", "deflate"]),
  ...fastifyMountings,
  behindFunction,
  ...fetchMountings,
];

const plain = ["node:http", "Express 5 bare", "Express 4 bare", "Fastify 5 bare", "fetch, called directly", "Hono app.all"];

/** Each framework in its simplest form. */
export const plainMountings = plain.map((plainName) => mountings.find(({ name }) => name === plainName) as Mounting);

/** Only the awkward variants. */
export const awkwardMountings = mountings.filter((mounting) => !plainMountings.includes(mounting));
