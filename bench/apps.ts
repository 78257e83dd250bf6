import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import express from "express";
import fastify from "fastify";
import type { Verifier } from "phoneproof";
import { expressHandlers } from "phoneproof/express";
import { fastifyPlugin } from "phoneproof/fastify";

/** The hand-written handlers of the two routes. */
export interface Backend {
  create(body: unknown): unknown;
  check(body: unknown): unknown;
}

/** A framework with two JSON routes of a backend, or with the verifier mounted. Both methods return the port. */
export interface Framework {
  routes(backend: Backend): Promise<number>;
  mounted(verifier: Verifier): Promise<number>;
}

export const createPath = "/v1/authentication";
export const checkPath = "/v1/check";

export const frameworks = {
  Fastify: {
    routes(backend) {
      const app = fastify();
      app.post(createPath, async (request) => backend.create(request.body));
      app.post(checkPath, async (request) => backend.check(request.body));
      return listenFastify(app);
    },
    mounted: (verifier) => listenFastify(fastify().register(fastifyPlugin(verifier))),
  },
  Express: {
    routes(backend) {
      const app = express();
      app.use(express.json());
      app.post(createPath, async (request, response) => void response.json(await backend.create(request.body)));
      app.post(checkPath, async (request, response) => void response.json(await backend.check(request.body)));
      return listenExpress(app);
    },
    mounted: (verifier) => listenExpress(express().use(expressHandlers(verifier))),
  },
} satisfies Record<string, Framework>;

export type FrameworkName = keyof typeof frameworks;

async function listenFastify(app: { listen(options: { host: string; port: number }): PromiseLike<string>; server: { address(): unknown } }): Promise<number> {
  await app.listen({ host: "127.0.0.1", port: 0 });
  return (app.server.address() as AddressInfo).port;
}

async function listenExpress(app: ReturnType<typeof express>): Promise<number> {
  const server = createServer(app);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return (server.address() as AddressInfo).port;
}
