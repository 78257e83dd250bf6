import type { Agent, ClientRequest, IncomingMessage, RequestOptions } from "node:http";
import type { LookupFunction } from "node:net";
import { getOrPut } from "../core/collections.js";
import { callbackUrlError } from "../domain/callback-url.js";
import { isPublicAddress } from "../domain/ip.js";
import type { CallbackRequest, CallbackResponse, CallbackSender } from "../ports/callback-sender.js";
import { nameResolver, type Resolve } from "./names.js";

/**
 * Whether this is a Cloudflare Worker. There, requests cannot share I/O, since it ends with the request that started
 * it, and sockets expose nothing below them.
 */
const inWorker = (globalThis as { readonly navigator?: { readonly userAgent?: string } }).navigator?.userAgent === "Cloudflare-Workers";

/** Bytes read of a response; only its status matters. */
const answerLimit = 16 * 1024;

/** How much earlier than `timeout` a body is cut off, in milliseconds: the caller, who waits as long, gets the status. */
const ahead = 1_000;

/** Idle connections kept in total, and for how long in milliseconds. */
const keptConnections = 128;
const keptFor = 10_000;

/** Overrides for tests. */
export interface GuardOptions {
  /** Resolves host names to addresses. */
  readonly resolve?: Resolve;
  /** Whether connections to an address are allowed. */
  readonly isPublic?: (address: string) => boolean;
}

/**
 * "https only, no redirects, no address outside the public internet (decided on the address actually connected to, …),
 * exact origins can be allowed for development" (docs/contract.md#callback-url).
 *
 * Every address of a name must be public, and only those addresses are connected to. Allowed origins keep separate
 * connections. Runtimes without sockets use `fetch` without redirects; there the platform must block private addresses.
 */
export function guardedSender({ resolve = nameResolver(), isPublic = isPublicAddress }: GuardOptions = {}): Required<CallbackSender> {
  const agents = new Map<string, Agent>();
  let closed = false;

  const agentOf = (client: Client, pool: string): Agent | false => {
    if (closed) return false;
    const hasRoom = () => [...agents.values()].reduce((sum, one) => sum + idle(one), 0) < keptConnections;
    return getOrPut(agents, pool, () => keepingAgent(client, hasRoom));
  };

  return {
    async post(request) {
      const problem = callbackUrlError(request.url, request.allowOrigins);
      if (problem !== undefined) return { failed: `callback_url ${problem}` };
      const url = new URL(request.url);
      const client = await socketClient(url.protocol);
      if (client === undefined) return postByFetch(request);
      const allowed = request.allowOrigins.includes(url.origin);
      const lookup = allowed ? undefined : guardedLookup((hostname) => resolve(hostname, request.customer), isPublic);
      return postBySocket(client, url, request, lookup, agentOf(client, `${url.protocol}${allowed ? "allowed" : "guarded"}`), () => closed);
    },
    close() {
      closed = true;
      for (const agent of agents.values()) agent.destroy();
      agents.clear();
    },
  };
}

/** `node:https`, or `node:http` for allowed origins. */
type Client = Pick<typeof import("node:http"), "Agent" | "request">;

async function socketClient(protocol: string): Promise<Client | undefined> {
  // Workers do have node:https, but it uses fetch and rejects `lookup`.
  if (inWorker) return undefined;
  try {
    return protocol === "https:" ? await import("node:https") : await import("node:http");
  } catch {
    return undefined;
  }
}

/**
 * An agent that keeps a connection after its request while `hasRoom` returns true. It does not limit new connections.
 */
function keepingAgent({ Agent }: Client, hasRoom: () => boolean): Agent {
  const agent = new Agent({ keepAlive: true, timeout: keptFor, maxFreeSockets: keptConnections });
  // Documented as overridable, but declared on the class only.
  const keeping = agent as Agent & { keepSocketAlive(socket: unknown): boolean };
  const keep = keeping.keepSocketAlive;
  keeping.keepSocketAlive = (socket) => hasRoom() && keep.call(agent, socket);
  return agent;
}

function idle(agent: Agent): number {
  return Object.values(agent.freeSockets).reduce((sum, sockets) => sum + (sockets?.length ?? 0), 0);
}

/** Replaces the system's lookup, right before the connection is made. */
function guardedLookup(resolve: (hostname: string) => ReturnType<Resolve>, isPublic: (address: string) => boolean): LookupFunction {
  return (hostname, options, done) => {
    resolve(hostname).then(
      (addresses) => {
        const inside = addresses.find(({ address }) => !isPublic(address));
        const [first] = addresses;
        if (inside !== undefined || first === undefined) {
          const why = inside === undefined ? "has no address" : `resolves to ${inside.address}, which is not on the public internet`;
          done(new Error(`the host of callback_url ${why}`), []);
        } else if (options.all === true) {
          done(null, [...addresses]);
        } else {
          done(null, first.address, first.family);
        }
      },
      (error: Error) => done(error, []),
    );
  };
}

function postBySocket(
  client: Client,
  url: URL,
  request: CallbackRequest,
  lookup: LookupFunction | undefined,
  agent: Agent | false,
  isClosed: () => boolean,
): Promise<CallbackResponse> {
  return new Promise((resolve) => {
    const body = Buffer.from(request.body);
    let sent: ClientRequest | undefined;
    let answered: CallbackResponse | undefined;
    const began = performance.now();
    let timer = setTimeout(() => end(`no response within ${request.timeout} ms`), request.timeout);

    const finish = (answer: CallbackResponse) => {
      clearTimeout(timer);
      resolve(answer);
      sent = undefined;
    };
    /** Ends with the response, if its head has arrived, else with a failure. */
    const end = (failed = "") => {
      const one = sent;
      finish(answered ?? { failed });
      one?.destroy();
    };
    const read = (response: IncomingMessage) => {
      // Only the status matters; the body is read up to a limit so that the receiver can finish.
      answered = { status: response.statusCode ?? 0, retryAfter: retryAfterOf(response.headers["retry-after"]) };
      clearTimeout(timer);
      timer = setTimeout(end, request.timeout - ahead - (performance.now() - began));
      let length = 0;
      response.on("data", (chunk: Buffer) => {
        length += chunk.length;
        if (length > answerLimit) end();
      });
      // The connection can be reused.
      response.on("end", () => finish(answered as CallbackResponse));
      response.on("error", () => end());
    };
    const post = (by: Agent | false) => {
      const headers = { ...request.headers, "content-length": body.length };
      const options: RequestOptions = { method: "POST", headers, agent: by, ...(lookup !== undefined && { lookup }) };
      const one = client.request(url, options, read);
      sent = one;
      // Node reports a 101 only through this event.
      one.on("upgrade", ({ statusCode = 0 }, socket) => {
        socket.destroy();
        finish({ status: statusCode });
      });
      one.on("error", (error) => {
        if (sent !== one) return;
        // The receiver may have closed the kept connection: try a new one, unless `close` did.
        if (answered === undefined && one.reusedSocket && !isClosed()) post(false);
        else end(error.message);
      });
      one.end(body);
    };
    post(agent);
  });
}

async function postByFetch(request: CallbackRequest): Promise<CallbackResponse> {
  try {
    const response = await fetch(request.url, {
      method: "POST",
      headers: request.headers,
      body: request.body,
      redirect: "manual",
      signal: AbortSignal.timeout(request.timeout),
    });
    await response.body?.cancel();
    return { status: response.status, retryAfter: retryAfterOf(response.headers.get("retry-after") ?? undefined) };
  } catch (error) {
    return { failed: error instanceof Error ? error.message : String(error) };
  }
}

/** Parses `Retry-After`, in seconds or as a date, into milliseconds from now. Dates are in GMT, also without a zone. */
function retryAfterOf(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d+$/.test(header.trim())) return Number(header) * 1000;
  const date = /[a-z]/i.test(header) ? Date.parse(/\d{4}$/.test(header.trim()) ? `${header} GMT` : header) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}
