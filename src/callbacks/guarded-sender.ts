import type { LookupAddress } from "node:dns";
import type { ClientRequest, IncomingMessage, RequestOptions } from "node:http";
import type { LookupFunction } from "node:net";
import { callbackUrlFault } from "../domain/callback-url.js";
import { isPublicAddress } from "../domain/ip.js";
import type { CallbackAnswer, CallbackRequest, CallbackSender } from "../ports/callback-sender.js";

/** Bytes of an answer that are read; its status is all that matters. */
const answerLimit = 16 * 1024;

/** How names become addresses; a parameter for tests. */
export interface GuardOptions {
  readonly resolve?: (hostname: string) => Promise<readonly LookupAddress[]>;
}

/**
 * "https only, no redirects, no address outside the public internet (decided on the address actually connected to, literals in every spelling included), exact origins can be allowed for development" (contract.md,
 * Delivery-status callbacks).
 *
 * The URL is judged for literals; names are resolved here, every address they have must be public, and those very addresses are connected to. Where the runtime has no sockets, `fetch` posts without following
 * redirects, and the platform's own walls stand in for the look at addresses.
 */
export function guardedSender({ resolve = resolveName }: GuardOptions = {}): CallbackSender {
  return {
    async post(request) {
      const fault = callbackUrlFault(request.url, request.allowOrigins);
      if (fault !== undefined) return { failed: `callback_url ${fault}` };
      const url = new URL(request.url);
      const client = await socketClient(url.protocol);
      if (client === undefined) return postByFetch(request);
      const lookup = request.allowOrigins.includes(url.origin) ? undefined : guardedLookup(resolve);
      return postBySocket(client, url, request, lookup);
    },
  };
}

type Client = (url: URL, options: RequestOptions, answered: (response: IncomingMessage) => void) => ClientRequest;

async function socketClient(protocol: string): Promise<Client | undefined> {
  try {
    const { request } = protocol === "https:" ? await import("node:https") : await import("node:http");
    return request;
  } catch {
    return undefined;
  }
}

/** What is called in place of the system's own look-up, right before the connection is made. */
function guardedLookup(resolve: NonNullable<GuardOptions["resolve"]>): LookupFunction {
  return (hostname, options, done) => {
    resolve(hostname).then(
      (addresses) => {
        const inside = addresses.find(({ address }) => !isPublicAddress(address));
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

async function resolveName(hostname: string): Promise<readonly LookupAddress[]> {
  const { lookup } = await import("node:dns/promises");
  return lookup(hostname, { all: true });
}

function postBySocket(client: Client, url: URL, request: CallbackRequest, lookup: LookupFunction | undefined): Promise<CallbackAnswer> {
  return new Promise((resolve) => {
    const body = Buffer.from(request.body);
    const options: RequestOptions = {
      method: "POST",
      headers: { ...request.headers, "content-length": body.length },
      agent: false,
      ...(lookup !== undefined && { lookup }),
    };
    const sent = client(url, options, (response) => {
      let read = 0;
      const finish = () => {
        clearTimeout(timer);
        resolve({ status: response.statusCode ?? 0, retryAfter: retryAfterOf(response.headers["retry-after"]) });
        sent.destroy();
      };
      response.on("data", (chunk: Buffer) => {
        read += chunk.length;
        if (read > answerLimit) finish();
      });
      response.on("end", finish);
      response.on("error", finish);
    });
    const timer = setTimeout(() => sent.destroy(new Error(`no answer within ${request.timeout} ms`)), request.timeout);
    sent.on("error", (error) => {
      clearTimeout(timer);
      resolve({ failed: error.message });
    });
    sent.end(body);
  });
}

async function postByFetch(request: CallbackRequest): Promise<CallbackAnswer> {
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

/** `Retry-After` in seconds or as a date, in milliseconds from now. */
function retryAfterOf(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d+$/.test(header.trim())) return Number(header) * 1000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}
