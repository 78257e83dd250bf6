import { createServer, request as httpRequest, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { serve as serveFetch } from "@hono/node-server";
import express from "express";
import fastify from "fastify";
import { onTestFinished } from "vitest";
import { expressHandlers } from "../../adapters/http/express.js";
import { fastifyPlugin } from "../../adapters/http/fastify.js";
import { fetchHandler } from "../../adapters/http/fetch.js";
import { nodeHandler } from "../../adapters/http/node.js";
import type { HttpHandler } from "../../src/http/message.js";

/** A server on the loopback interface. */
export interface Listening {
  /** Without the base path. */
  readonly url: string;
  close(): Promise<void>;
}

/** Mounts a handler under a base path, and reports each request. */
export type Mount = (handler: HttpHandler, basePath: string, seen: (request: IncomingMessage) => void) => Promise<Listening>;

export async function listening(server: Server): Promise<Listening> {
  if (!server.listening) await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** The ways of mounting that a vendor's client is tested against; Next.js, a separate process, has its own suite. */
export const mounts: readonly (readonly [name: string, mount: Mount])[] = [
  ["node:http", (handler, basePath, seen) => listening(createServer(nodeHandler(handler, { basePath })).prependListener("request", seen))],
  [
    "Express",
    (handler, basePath, seen) => {
      const app = express();
      app.use(basePath || "/", expressHandlers(handler));
      return listening(createServer(app).prependListener("request", seen));
    },
  ],
  [
    "Fastify",
    async (handler, basePath, seen) => {
      const app = fastify();
      app.register(fastifyPlugin(handler), { prefix: basePath });
      app.server.prependListener("request", seen);
      await app.listen({ port: 0, host: "127.0.0.1" });
      const { url } = await listening(app.server);
      return {
        url,
        async close() {
          app.server.closeAllConnections();
          await app.close();
        },
      };
    },
  ],
  [
    "fetch",
    async (handler, basePath, seen) => {
      const server = serveFetch({ fetch: fetchHandler(handler, { basePath }), port: 0, hostname: "127.0.0.1" }) as Server;
      server.prependListener("request", seen);
      if (!server.listening) await new Promise<void>((resolve) => server.once("listening", () => resolve()));
      return listening(server);
    },
  ],
];

/**
 * A proxy in front of a server that passes requests on, but breaks the connection instead of returning the next
 * `drop` responses. It ends with the test.
 */
export async function losingProxy(target: string): Promise<Listening & { drop(count: number): void }> {
  let left = 0;
  const bodyOf = async (request: IncomingMessage) => Buffer.concat(await request.toArray());
  const server = await listening(
    createServer(async (request, response) => {
      const { host, hostname, port } = new URL(target);
      const body = await bodyOf(request);
      const passed = httpRequest({ hostname, port, method: request.method, path: request.url, headers: { ...request.headers, host } }, async (answer) => {
        const answered = await bodyOf(answer);
        if (left > 0) {
          left--;
          request.socket.destroy();
        } else response.writeHead(answer.statusCode ?? 500, answer.headers).end(answered);
      });
      passed.on("error", () => request.socket.destroy());
      passed.end(body);
    }),
  );
  onTestFinished(() => server.close());
  return {
    ...server,
    drop(count) {
      left = count;
    },
  };
}
