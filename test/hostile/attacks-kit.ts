import { createServer, request as httpRequest, type IncomingHttpHeaders, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import express from "express";
import fastify from "fastify";
import { expressHandlers } from "../../adapters/http/express.js";
import { fastifyPlugin } from "../../adapters/http/fastify.js";
import { nodeHandler } from "../../adapters/http/node.js";
import { createVerifier, type HttpHandler, type Verifier, type VerifierEvent, type VerifierOptions } from "../../src/index.js";
import { type FixedClock, fixedClock } from "../../src/testing/index.js";
import { PlainStore } from "../store/plain-store.js";
import { type LogLine, logger, secret, start } from "../support/verifier.js";
import { type Hook, hook, noSpamRules, type RiggedStore, rigged, type Sender, sender } from "./kit.js";

/** Two customers of one service. */
export const mine = "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f";
export const theirs = "0b7c9a3e-52d1-4f86-a3c4-91e2d7f60812";
/** Each customer's key, as a team might write its own: at least 32 characters. */
export const keyOf = (customer: string): string => `test-key-${customer}`;

export interface Target {
  readonly verifier: Verifier;
  readonly clock: FixedClock;
  readonly store: RiggedStore;
  readonly sender: Sender;
  readonly hook: Hook;
  readonly log: readonly LogLine[];
  readonly events: readonly VerifierEvent[];
}

/** A verifier for two customers that share store and clock. */
export function target(options: Partial<VerifierOptions> = {}): Target {
  const clock = fixedClock(start);
  const store = rigged(new PlainStore());
  const out = sender();
  const hooked = hook();
  const log = logger();
  const events: VerifierEvent[] = [];
  const verifier = createVerifier({
    store,
    secret,
    countries: "all",
    customers: [mine, theirs].map((customer_uuid) => ({ customer_uuid, keys: [keyOf(customer_uuid)] })),
    clockSkew: 0,
    logger: log,
    statistics: false,
    clock,
    onEvent: (event) => void events.push(event),
    ...options,
    policy: { spam: noSpamRules, ...options.policy },
    sender: (options.sender as Sender | undefined) ?? out,
    callbacks: { worker: false, sender: hooked, ...options.callbacks },
  });
  return { verifier, clock, store, sender: (options.sender as Sender | undefined) ?? out, hook: hooked, log: log.lines, events };
}

export const mounts = ["node", "express", "express behind a parser", "fastify"] as const;
export type Mount = (typeof mounts)[number];

export interface Host {
  readonly port: number;
  close(): Promise<void>;
}

type Handlers = Parameters<typeof expressHandlers>[0];

/** A real server with the handlers mounted, as the docs mount them. */
export async function host(mount: Mount, handlers: Handlers | readonly (Verifier | HttpHandler)[]): Promise<Host> {
  const all = handlers as Handlers;
  if (mount === "fastify") {
    const app = fastify({ requestTimeout: 30_000 });
    app.register(fastifyPlugin(all));
    await app.listen({ host: "127.0.0.1", port: 0 });
    return { port: (app.server.address() as AddressInfo).port, close: () => ended(app.server, () => app.close()) };
  }
  const app = express();
  if (mount === "express behind a parser") app.use(express.json());
  app.use(expressHandlers(all));
  const server = createServer(mount === "node" ? nodeHandler(all) : app);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { port: (server.address() as AddressInfo).port, close: () => ended(server, () => new Promise<void>((resolve) => server.close(() => resolve()))) };
}

async function ended(server: Server, close: () => PromiseLike<unknown>): Promise<void> {
  server.closeAllConnections();
  await close();
}

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The body, if it is JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: a response can be any JSON.
  readonly json: any;
}

/** Sends one request with the path exactly as given. */
export function ask(
  port: number,
  path: string,
  body?: unknown,
  { method = body === undefined ? "GET" : "POST", headers = {} }: { method?: string; headers?: Record<string, string | string[]> } = {},
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const bytes = body === undefined ? undefined : Buffer.isBuffer(body) ? body : Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
    const sent = httpRequest({ host: "127.0.0.1", port, path, method, headers: { ...(bytes && { "content-length": String(bytes.length) }), ...headers } });
    sent.on("error", reject);
    sent.on("response", (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        const text = Buffer.concat(chunks).toString();
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json: parsed(text) });
      });
    });
    sent.end(bytes);
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Writes bytes to a socket, and returns everything received until the server closes or is silent for `quiet` ms. */
export function raw(port: number, bytes: string | Buffer, quiet = 700): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
    let text = "";
    socket.setTimeout(quiet, () => socket.destroy());
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve(text));
  });
}

/** Calls of `/v1` with a customer's key. */
export function v1(port: number, customer: string = mine) {
  const headers = { "x-api-key": keyOf(customer), "content-type": "application/json" };
  const post = (path: string, fields: Record<string, unknown>, more: Record<string, string | string[]> = {}) =>
    ask(port, `/v1/${path}`, { customer_uuid: customer, ...fields }, { headers: { ...headers, ...more } });
  return {
    headers,
    create: (phone_number: string, fields: Record<string, unknown> = {}, more?: Record<string, string | string[]>) =>
      post("authentication", { phone_number, ...fields }, more),
    retry: (authentication_uuid: string) => post("retry", { authentication_uuid }),
    check: (authentication_uuid: string, check_code: string, more?: Record<string, string | string[]>) =>
      post("check", { authentication_uuid, check_code }, more),
    lookup: (number: string) => ask(port, `/v1/lookup/${number}`, undefined, { headers: { ...headers, "customer-uuid": customer } }),
  };
}

/** Calls of the Prelude v2 wire. */
export function prelude(port: number, customer: string = mine) {
  const headers = { authorization: `Bearer ${keyOf(customer)}`, "content-type": "application/json" };
  const of = (value: string) => ({ target: { type: "phone_number", value } });
  return {
    headers,
    create: (number: string, fields: Record<string, unknown> = {}, more: Record<string, string> = {}) =>
      ask(port, "/v2/verification", { ...of(number), ...fields }, { headers: { ...headers, ...more } }),
    check: (number: string, code: string, more: Record<string, string> = {}) =>
      ask(port, "/v2/verification/check", { ...of(number), code }, { headers: { ...headers, ...more } }),
  };
}

/** Calls of the Twilio Verify wire. */
export function twilio(port: number, customer: string = mine, key = keyOf(customer)) {
  const digits = customer.replaceAll("-", "");
  const headers = {
    authorization: `Basic ${Buffer.from(`AC${digits}:${key}`).toString("base64")}`,
    "content-type": "application/x-www-form-urlencoded",
  };
  const root = `/v2/Services/VA${digits}`;
  const post = (path: string, fields: Record<string, string>, more: Record<string, string> = {}) =>
    ask(port, `${root}/${path}`, new URLSearchParams(fields).toString(), { headers: { ...headers, ...more } });
  return {
    root,
    headers,
    create: (To: string, fields: Record<string, string> = {}, more?: Record<string, string>) => post("Verifications", { To, Channel: "sms", ...fields }, more),
    check: (fields: Record<string, string>, more?: Record<string, string>) => post("VerificationCheck", fields, more),
    update: (sid: string, Status: string) => post(`Verifications/${encodeURIComponent(sid)}`, { Status }),
    fetch: (sid: string) => ask(port, `${root}/Verifications/${sid}`, undefined, { headers }),
  };
}
