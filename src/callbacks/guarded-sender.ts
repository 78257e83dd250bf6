import type { LookupAddress } from "node:dns";
import type { ClientRequest, IncomingMessage, RequestOptions } from "node:http";
import type { LookupFunction } from "node:net";
import { callbackUrlFault } from "../domain/callback-url.js";
import { isPublicAddress } from "../domain/ip.js";
import type { CallbackAnswer, CallbackRequest, CallbackSender } from "../ports/callback-sender.js";

/** Bytes of an answer that are read; its status is all that matters. */
const answerLimit = 16 * 1024;

/** Parameters for tests. */
export interface GuardOptions {
  /** How names become addresses. */
  readonly resolve?: (hostname: string) => Promise<readonly LookupAddress[]>;
  /** Which addresses may be connected to. */
  readonly isPublic?: (address: string) => boolean;
}

/**
 * "https only, no redirects, no address outside the public internet (decided on the address actually connected to, literals in every spelling included), exact origins can be allowed for development" (contract.md,
 * Delivery-status callbacks).
 *
 * The URL is judged for literals; names are resolved here, every address they have must be public, and those very addresses are connected to. Where the runtime has no sockets, `fetch` posts without following
 * redirects, and the platform's own walls stand in for the look at addresses.
 */
export function guardedSender({ resolve = resolveName, isPublic = isPublicAddress }: GuardOptions = {}): CallbackSender {
  return {
    async post(request) {
      const fault = callbackUrlFault(request.url, request.allowOrigins);
      if (fault !== undefined) return { failed: `callback_url ${fault}` };
      const url = new URL(request.url);
      const client = await socketClient(url.protocol);
      if (client === undefined) return postByFetch(request);
      const lookup = request.allowOrigins.includes(url.origin) ? undefined : guardedLookup(resolve, isPublic);
      return postBySocket(client, url, request, lookup);
    },
  };
}

type Client = (url: URL, options: RequestOptions, answered: (response: IncomingMessage) => void) => ClientRequest;

async function socketClient(protocol: string): Promise<Client | undefined> {
  // Workers have node:https, but no sockets below it: it fetches, and refuses `lookup`.
  if ((globalThis as { readonly navigator?: { readonly userAgent?: string } }).navigator?.userAgent === "Cloudflare-Workers") return undefined;
  try {
    const { request } = protocol === "https:" ? await import("node:https") : await import("node:http");
    return request;
  } catch {
    return undefined;
  }
}

/** What is called in place of the system's own look-up, right before the connection is made. */
function guardedLookup(resolve: NonNullable<GuardOptions["resolve"]>, isPublic: (address: string) => boolean): LookupFunction {
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
    const finish = (answer: CallbackAnswer) => {
      clearTimeout(timer);
      resolve(answer);
      sent.destroy();
    };
    const sent = client(url, options, (response) => {
      // The status is the answer; the body is read, up to a limit, so that the receiver can finish.
      const answer = { status: response.statusCode ?? 0, retryAfter: retryAfterOf(response.headers["retry-after"]) };
      let read = 0;
      ended = () => finish(answer);
      response.on("data", (chunk: Buffer) => {
        read += chunk.length;
        if (read > answerLimit) ended();
      });
      response.on("end", () => ended());
      response.on("error", () => ended());
    });
    let ended = () => finish({ failed: `no answer within ${request.timeout} ms` });
    const timer = setTimeout(() => ended(), request.timeout);
    sent.on("error", (error) => finish({ failed: error.message }));
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
  const date = /[a-z]/i.test(header) ? Date.parse(header) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}
