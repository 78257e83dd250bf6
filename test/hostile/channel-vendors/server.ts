import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

/** A request that reached a vendor. */
export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

export interface Reply {
  readonly status: number;
  /** An object is sent as JSON. */
  readonly body: object | string;
  readonly type?: string;
}

/** What a vendor's connection does instead of sending a response. */
export type Trick = (response: ServerResponse, reply: Reply, asked: Asked) => void;

export interface Vendor {
  readonly url: string;
  readonly seen: Asked[];
  /** Replaces the response; if absent, the response is sent. */
  trick: Trick | undefined;
}

const textOf = ({ body }: Reply): string => (typeof body === "string" ? body : JSON.stringify(body));
export const send = (response: ServerResponse, reply: Reply): void => {
  response.writeHead(reply.status, { "content-type": reply.type ?? "application/json" }).end(textOf(reply));
};

/** A vendor on loopback that runs until the test ends. `answer` decides as the vendor does; `trick` breaks the response. */
export async function startVendor(answer: (asked: Asked) => Reply, host = "127.0.0.1"): Promise<Vendor> {
  const seen: Asked[] = [];
  const server = createServer(async (request, response) => {
    const chunks = await request.toArray().catch(() => []);
    const asked = { method: request.method ?? "", path: request.url ?? "", headers: request.headers, body: Buffer.concat(chunks).toString() };
    seen.push(asked);
    const reply = answer(asked);
    if (vendor.trick === undefined) send(response, reply);
    else vendor.trick(response, reply, asked);
  });
  const vendor: Vendor = { url: await listen(server, host), seen, trick: undefined };
  return vendor;
}

export async function listen(server: Server, host = "127.0.0.1"): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );
  return `http://${host.includes(":") ? `[${host}]` : host}:${(server.address() as AddressInfo).port}`;
}

/** Sends this response to any request. */
export const says =
  (status: number, body: object | string, type?: string): Trick =>
  (response) =>
    send(response, { status, body, ...(type !== undefined && { type }) });

export const hangs: Trick = () => {};
export const cuts: Trick = (response) => void response.socket?.destroy();
/** The vendor has accepted the message, but its response is cut off in the middle. */
export const cutsBody: Trick = (response, reply) => {
  const text = textOf(reply);
  response.writeHead(reply.status, { "content-type": "application/json", "content-length": text.length + 10 });
  response.write(text.slice(0, Math.floor(text.length / 2)), () => response.socket?.destroy());
};
export const garbles: Trick = (response, reply) => send(response, { status: reply.status, body: '{"sid": "SM1", "uuid"\u0000: \ufffd' });
export const saysNothing: Trick = (response, reply) => send(response, { status: reply.status, body: "" });
export const saysHtml: Trick = (response) => send(response, { status: 200, type: "text/html", body: "<html><body>Please log in to the Wi-Fi</body></html>" });
/** The correct response after 32 MB of blanks. */
export const floods: Trick = (response, reply) => {
  response.writeHead(reply.status, { "content-type": "application/json" });
  const blanks = " ".repeat(1 << 20);
  for (let i = 0; i < 32; i++) response.write(blanks);
  response.end(textOf(reply));
};
/** The correct response, one byte every 50 ms. */
export const trickles: Trick = (response, reply) => {
  response.writeHead(reply.status, { "content-type": "application/json" });
  let left = textOf(reply);
  const timer = setInterval(() => {
    response.write(left.slice(0, 1));
    left = left.slice(1);
    if (left === "") response.end();
  }, 50);
  response.on("close", () => clearInterval(timer));
};
export const redirects =
  (to: string, status = 307): Trick =>
  (response) =>
    void response.writeHead(status, { location: to }).end();

/** The body as a JSON object, or `undefined`. */
export function jsonOf(asked: Asked): Record<string, unknown> | undefined {
  if (!/^application\/json\b/.test(asked.headers["content-type"] ?? "")) return undefined;
  try {
    const value: unknown = JSON.parse(asked.body);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** The body as a form, or `undefined`. */
export function formOf(asked: Asked): URLSearchParams | undefined {
  return /^application\/x-www-form-urlencoded\b/.test(asked.headers["content-type"] ?? "") ? new URLSearchParams(asked.body) : undefined;
}

/** A request from a vendor to the receipts route at the public address. */
export interface Hook {
  readonly method?: string;
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface Heard {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

/** Carries a vendor's requests to the public address of the receipts route. */
export type Network = (hook: Hook) => Promise<Heard>;
