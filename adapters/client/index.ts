import type { CheckRequest, CreateAuthenticationRequest, LookupRequest, RetryRequest } from "../../src/contract/direct.js";
import type { Fault, FaultCode } from "../../src/contract/fault.js";
import { type CheckAnswer, type CreateAnswer, factsOf, type LookupAnswer, type RetryAnswer, wholeNumber } from "./answers.js";
import { FaultError, TransportError } from "./errors.js";

export type { CheckAnswer, CreateAnswer, Facts, LookupAnswer, RetryAnswer } from "./answers.js";
export { FaultError, type TransportCode, TransportError } from "./errors.js";
export type { CheckRequest, CreateAuthenticationRequest, FaultCode, LookupRequest, RetryRequest };

/** The part of `fetch` that the client uses. */
export type ClientFetch = (
  url: string,
  init: {
    readonly method: string;
    readonly headers: Record<string, string>;
    readonly body?: string;
    readonly redirect: "manual";
    readonly signal: AbortSignal;
  },
) => Promise<{ readonly status: number; readonly headers: { get(name: string): string | null }; text(): Promise<string> }>;

export interface ClientOptions {
  /** Where the service is, what stands before `/v1` included: `https://otp.example.com/api`. */
  readonly baseUrl: string;
  /** One of the customer's API keys. */
  readonly apiKey: string;
  /** The customer that the key belongs to. */
  readonly customerUuid: string;
  /** Seconds that each attempt may take, its whole answer included. Default 10: the service waits up to 5 for the carrier and 2 for its store. An hour at most. */
  readonly timeout?: number | undefined;
  /**
   * How often a create, check or lookup is repeated that got no answer (`timeout`, `network`, a `bad_answer` of 502 to 504) or a 503. A repeat bears the same idempotency key and comes after a quarter of a second, or after the
   * answer's `retry_after`; one that asks for more than 5 seconds is not waited for. A retry has no key and is never repeated. Default 1.
   */
  readonly retries?: number | undefined;
  /** Default: the global `fetch`. */
  readonly fetch?: ClientFetch | undefined;
}

export interface ClientCallOptions {
  /** Ends the call: it rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

export interface KeyedCallOptions extends ClientCallOptions {
  /**
   * 1 to 255 printable ASCII characters: the same key and body answer the same, without a second message or a second wrong code. Give one that you keep where the whole call may be made again (by your own caller, after a crash).
   * Default: a random UUID for each call, which its repeats share.
   */
  readonly idempotencyKey?: string | undefined;
}

type Input<R extends { readonly customer_uuid?: string | undefined }> = Omit<R, "customer_uuid">;

/** The four calls of `/v1`. Each rejects with `FaultError` where the service refuses the call itself, with `TransportError` where no answer of its came, with the reason of a signal that was aborted. */
export interface Client {
  /** Sends a code. */
  createAuthentication(request: Input<CreateAuthenticationRequest>, options?: KeyedCallOptions): Promise<CreateAnswer>;
  /** Sends another. After a `TransportError` ask again: if a message went out the answer is `denied` until its cool-down is over. */
  retry(request: Input<RetryRequest>, options?: ClientCallOptions): Promise<RetryAnswer>;
  /** Is this the code? **Only `valid` proves anything.** */
  check(request: Input<CheckRequest>, options?: KeyedCallOptions): Promise<CheckAnswer>;
  /** What is known of a number. */
  lookup(request: Input<LookupRequest>, options?: ClientCallOptions): Promise<LookupAnswer>;
}

/**
 * A client of a phoneproof service, for servers: Node 20 and later, Bun, Deno, Workers. **Never use it in a browser or an app: the API key would be public**, and whoever has it sends messages at your cost.
 * The process that holds the verifier calls the verifier itself, which takes the same requests.
 *
 * @throws TypeError for an option that cannot work.
 */
export function createClient(options: ClientOptions): Client {
  // Looked up at each call, so that tools which replace the global one later are heard.
  const { baseUrl, apiKey, customerUuid: customer_uuid, timeout = 10, retries = 1, fetch = (url, init) => globalThis.fetch(url, init) } = options;
  need("baseUrl", baseUrl, /^https?:\/\/[^\s?#@]+$/, "a URL such as https://otp.example.com");
  need("apiKey", apiKey, /^[!-~]+$/, "a key of the customer");
  need("customerUuid", customer_uuid, /^[\da-f-]{36}$/i, "the UUID of the key's customer");
  need("timeout", `${timeout > 0 && timeout <= 3600}`, /true/, "seconds, at most 3600");
  need("retries", `${retries}`, /^\d$/, "0 to 9");
  const v1 = `${baseUrl.replace(/\/*(\/v1)?\/*$/, "")}/v1/`;

  /** Without a `request` it is a GET. */
  async function attempt(path: string, request: object | undefined, { signal, idempotencyKey: key }: KeyedCallOptions) {
    signal?.throwIfAborted();
    const headers = {
      "x-api-key": apiKey,
      "customer-uuid": customer_uuid,
      "content-type": "application/json",
      ...(key !== undefined && { "idempotency-key": key }),
    };
    const asked = request ? { method: "POST", body: JSON.stringify({ ...request, customer_uuid }) } : { method: "GET" };
    const ending = new AbortController();
    const end = () => ending.abort();
    const timer = setTimeout(end, timeout * 1000);
    signal?.addEventListener("abort", end);
    try {
      const answer = await fetch(v1 + path, { ...asked, headers, redirect: "manual", signal: ending.signal });
      return [answer, await answer.text()] as const;
    } catch (cause) {
      signal?.throwIfAborted();
      throw ending.signal.aborted
        ? new TransportError("timeout", `no whole answer in ${timeout} s`, { cause })
        : new TransportError("network", "no connection, or it broke", { cause });
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
    }
  }

  async function call<A>(path: string, request: object | undefined, left: number, options: KeyedCallOptions = {}): Promise<A> {
    try {
      return read<A>(...(await attempt(path, request, options)));
    } catch (error) {
      const { signal } = options;
      signal?.throwIfAborted();
      const { status, retry_after = 0.25 } = error as Partial<FaultError>;
      if (left === 0 || ![undefined, 502, 503, 504].includes(status) || retry_after > 5) throw error;
      await new Promise((resolve) => {
        setTimeout(resolve, retry_after * 1000);
        signal?.addEventListener("abort", resolve);
      });
      return call(path, request, left - 1, options);
    }
  }

  const keyed = (options?: KeyedCallOptions) => ({ ...options, idempotencyKey: options?.idempotencyKey ?? crypto.randomUUID() });
  return {
    createAuthentication: (request, options) => call("authentication", request, retries, keyed(options)),
    retry: (request, options) => call("retry", request, 0, options),
    check: (request, options) => call("check", request, retries, keyed(options)),
    lookup: async ({ phone_number }, options) => call(`lookup/${encodeURIComponent(phone_number)}`, undefined, retries, options),
  };
}

/** @throws TypeError unless the value is text of this form. It is not told: it may be a key. */
function need(option: string, value: unknown, form: RegExp, what: string): void {
  if (typeof value !== "string" || !form.test(value)) throw new TypeError(`createClient: ${option} must be ${what}`);
}

/** What the service answered, with its facts. */
function read<A>({ status, headers }: Awaited<ReturnType<ClientFetch>>, text: string): A {
  let body: Partial<Fault> & { status?: string; line_type?: string } = {};
  try {
    body = Object(JSON.parse(text));
  } catch {}
  if (status === 200 && typeof (body.status ?? body.line_type) === "string") return { ...factsOf(headers), ...body } as A;
  if (status >= 400 && typeof body.code === "string" && body.doc_url) throw new FaultError(body as Fault, status, wholeNumber(headers.get("retry-after")));
  const what = headers.get("location") ?? headers.get("content-type");
  throw new TransportError("bad_answer", `HTTP ${status} (${what}) is no answer of the service: is baseUrl right?`, { status });
}
