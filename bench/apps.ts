import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import express from "express";
import express4 from "express4";
import fastify from "fastify";
import type { Verifier } from "phoneproof";
import { expressHandlers } from "phoneproof/express";
import { fastifyPlugin } from "phoneproof/fastify";
import { fetchHandler } from "phoneproof/fetch";
import { nodeHandler } from "phoneproof/node";

/** What bare routes do with a body. */
export interface Backend {
  create(body: unknown): unknown;
  check(body: unknown): unknown;
}

/** An app that runs: behind a port, or called in its own process. */
export type Running = { readonly port: number } | { readonly handler: (request: Request) => Promise<Response> };

/** A framework with two bare JSON routes in it, or with the verifier mounted. */
export interface Framework {
  bare(backend: Backend): Promise<Running>;
  mounted(verifier: Verifier): Promise<Running>;
}

const createPath = "/v1/authentication";
const checkPath = "/v1/check";

async function listen(server: Server): Promise<Running> {
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return { port: (server.address() as AddressInfo).port };
}

/** Both versions are used through the types of 5: what is used here is alike. */
function expressOf(make: typeof express): Framework {
  return {
    bare: (backend) => {
      const app = make();
      app.use(make.json());
      app.post(createPath, async (request, response) => void response.json(await backend.create(request.body)));
      app.post(checkPath, async (request, response) => void response.json(await backend.check(request.body)));
      return listen(createServer(app));
    },
    mounted: (verifier) => {
      const app = make();
      app.use(expressHandlers(verifier));
      return listen(createServer(app));
    },
  };
}

function readJson(request: IncomingMessage): Promise<unknown> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => resolve(JSON.parse(Buffer.concat(chunks).toString())));
  });
}

export const frameworks: Readonly<Record<string, Framework>> = {
  "node:http": {
    bare: (backend) =>
      listen(
        createServer(async (request, response) => {
          const body = await readJson(request);
          const answer = JSON.stringify(await (request.url === createPath ? backend.create(body) : backend.check(body)));
          response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(answer) }).end(answer);
        }),
      ),
    mounted: (verifier) => listen(createServer(nodeHandler(verifier))),
  },
  "Fastify 5": {
    bare: async (backend) => {
      const app = fastify();
      app.post(createPath, async (request) => backend.create(request.body));
      app.post(checkPath, async (request) => backend.check(request.body));
      await app.listen({ host: "127.0.0.1", port: 0 });
      return { port: (app.server.address() as AddressInfo).port };
    },
    mounted: async (verifier) => {
      const app = fastify();
      app.register(fastifyPlugin(verifier));
      await app.listen({ host: "127.0.0.1", port: 0 });
      return { port: (app.server.address() as AddressInfo).port };
    },
  },
  "Express 5": expressOf(express),
  "Express 4": expressOf(express4),
  "fetch, called directly": {
    bare: async (backend) => ({
      handler: async (request) => {
        const body = await request.json();
        return Response.json(await (new URL(request.url).pathname === createPath ? backend.create(body) : backend.check(body)));
      },
    }),
    mounted: async (verifier) => ({ handler: fetchHandler(verifier) }),
  },
};
