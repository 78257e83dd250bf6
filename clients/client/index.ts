import type { CheckRequest, CreateAuthenticationRequest, LookupRequest, RetryRequest } from "../../src/contract/direct.js";
import type { ErrorBody, ErrorCode } from "../../src/contract/error.js";
import type { LookupResponse } from "../../src/contract/lookup.js";
import type { RetryResponse } from "../../src/contract/retry.js";
import { type CheckResult, type CreateResult, factsOf, type LookupResult, type RetryResult } from "./answers.js";
import { FaultError, TransportError } from "./errors.js";

export type { CheckResult, CreateResult, Facts, LookupResult, RetryResult } from "./answers.js";
export { FaultError, type TransportCode, TransportError } from "./errors.js";
export type { CheckRequest, CreateAuthenticationRequest, ErrorCode, LookupRequest, RetryRequest };

/** The part of `fetch` that the client uses. */
export type ClientFetch = (
  url: string,
  init: {
    /** Omitted for GET. */
    readonly method?: string;
    readonly headers: Record<string, string>;
    readonly body?: string;
    readonly redirect: "manual";
    readonly signal: AbortSignal;
  },
) => Promise<{ readonly status: number; readonly headers: { get(name: string): string | null }; text(): Promise<string> }>;

export interface ClientOptions {
  /** Address of the service, including everything before `/v1`: `https://otp.example.com/api`. */
  readonly baseUrl: string;
  /** One of the customer's API keys. */
  readonly apiKey: string;
  /** The customer that owns the key. */
  readonly customerUuid: string;
  /**
   * Seconds for each attempt, including the whole response. Default 10, as the service waits up to 5 for the carrier
   * and 2 for its store. At most 3600.
   */
  readonly timeout?: number | undefined;
  /**
   * How often a create, check or lookup is repeated after no response (`timeout`, `network`, a `bad_answer` of 502 to
   * 504) or a 503. Default 1. Repeats share the idempotency key and follow after 0.25 s or `retry_after`, unless that
   * exceeds 5 s. A retry has no key and is never repeated.
   */
  readonly retries?: number | undefined;
  /** Default: the global `fetch`. */
  readonly fetch?: ClientFetch | undefined;
}

export interface ClientCallOptions {
  /** Aborts the call, which rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

export interface KeyedCallOptions extends ClientCallOptions {
  /**
   * 1 to 255 printable ASCII characters. The same key and body return the same result, without a second message or
   * wrong code. Store it if the whole call may be repeated (by your own caller, after a crash). Default: a random UUID
   * for each call, which its repeats share.
   */
  readonly idempotencyKey?: string | undefined;
}

type Input<R extends { readonly customer_uuid?: string | undefined }> = Omit<R, "customer_uuid">;

/** The fields of all requests. */
type AnyInput = Partial<Input<RetryRequest & LookupRequest>>;

/**
 * The four calls of `/v1`. Each rejects with `FaultError` if the service rejects the call, with `TransportError` if
 * there is no response from it, and with the signal's reason if it was aborted.
 */
export interface Client {
  /** Sends a code. */
  createAuthentication(request: Input<CreateAuthenticationRequest>, options?: KeyedCallOptions): Promise<CreateResult>;
  /**
   * Sends another code. After a `TransportError`, call it again: if a message was sent, the result is `denied` until
   * its cool-down is over.
   */
  retry(request: Input<RetryRequest>, options?: ClientCallOptions): Promise<RetryResult>;
  /** Checks a code. **Only `valid` proves anything.** */
  check(request: Input<CheckRequest>, options?: KeyedCallOptions): Promise<CheckResult>;
  /** Returns what is known about a number. */
  lookup(request: Input<LookupRequest>, options?: ClientCallOptions): Promise<LookupResult>;
}

/**
 * A client of a phoneproof service, for servers: Node 20 and later, Bun, Deno, Workers. **Never use it in a browser or
 * an app: the API key would be public**, and anyone who has it can send messages at your expense. The process that has
 * the verifier calls it directly, with the same requests.
 *
 * @throws TypeError for an invalid option.
 */
export function createClient({ baseUrl, apiKey, customerUuid: customer_uuid, timeout = 10, retries = 1, fetch: given }: ClientOptions): Client {
  need("baseUrl", URL.canParse(baseUrl) && baseUrl, /^https?:\/\/[^\s?#@]+$/, "like https://example.com");
  need("apiKey", apiKey, /^[!-~]+$/, "a customer's key");
  need("customerUuid", customer_uuid, /^[\da-f-]{36}$/i, "a customer's UUID");
  need("timeout", `${timeout > 0 && timeout <= 3600}`, /true/, "seconds, at most 3600");
  need("retries", `${retries}`, /^\d$/, "0 to 9");
  need("fetch", typeof (given ?? need), /^f/, "a function");
  const v1 = `${baseUrl.replace(/\/*(\/v1)?\/*$/, "")}/v1/`;

  /** A lookup is a GET. Of the paths, those of calls with a key are below "l". */
  async function call<A>(
    path: string,
    left: number,
    request?: AnyInput,
    { signal, idempotencyKey: key = path < "l" ? crypto.randomUUID() : undefined }: KeyedCallOptions = {},
  ): Promise<A> {
    if (key !== undefined) need("idempotencyKey", key, /^[ -~]{1,255}$/, "1 to 255 printable ASCII characters");
    const sent = path[0] !== "l" && { method: "POST", body: JSON.stringify({ ...request, customer_uuid }) };
    for (;;) {
      signal?.throwIfAborted();
      const ending = new AbortController();
      let end = () => {};
      let failed: FaultError | TransportError;
      try {
        const asking = async () => {
          // The global `fetch` is read on each call, so that tools can replace it later.
          const answer = await (given ?? fetch)(v1 + path, {
            ...sent,
            headers: {
              "x-api-key": apiKey,
              "customer-uuid": customer_uuid,
              "content-type": "application/json",
              ...(key !== undefined && { "idempotency-key": key }),
            },
            redirect: "manual",
            signal: ending.signal,
          });
          return [answer, await answer.text()] as const;
        };
        // Your own `fetch` may ignore its signal.
        const ended = new Promise<never>((_, reject) => {
          end = wake(timeout, signal, () => reject(ending.abort()));
        });
        const [{ status, headers }, text] = await Promise.race([asking(), ended]);
        const body = objectOf(text);
        const { authentication_uuid: id = body.phone_number } = body;
        if (
          status === 200 &&
          known.test(JSON.stringify([path[0], body.status ?? body.line_type, id])) &&
          id === (request?.authentication_uuid?.toLowerCase() ?? id)
        )
          return { ...factsOf(headers), ...body } as A;
        const seconds = headers.get("retry-after") as string;
        const retry_after = /^\d{1,9}$/.test(seconds) ? +seconds : undefined;
        failed =
          status >= 400 && body.doc_url && typeof body.code === "string"
            ? new FaultError(body as ErrorBody, status, retry_after)
            : new TransportError(
                "bad_answer",
                `HTTP ${status} (${headers.get("location")?.replace(/\d{7,}/, "…") ?? headers.get("content-type")}) is not ours: check baseUrl`,
                { status, retry_after },
              );
      } catch (cause) {
        signal?.throwIfAborted();
        failed = ending.signal.aborted
          ? new TransportError("timeout", `no full response in ${timeout} s`, { cause })
          : new TransportError("network", "connection failed", { cause });
      } finally {
        end();
      }
      const { status = 502, retry_after = 0.25 } = failed;
      if (!left-- || status < 502 || status > 504 || retry_after > 5) throw failed;
      await new Promise<void>((resolve) => wake(retry_after, signal, resolve));
    }
  }

  return {
    createAuthentication: (request, options) => call("authentication", retries, request, options),
    retry: (request, options) => call("retry", 0, request, options),
    check: (request, options) => call("check", retries, request, options),
    lookup: async ({ phone_number }, options) => call(`lookup/${encodeURIComponent(phone_number)}`, retries, undefined, options),
  };
}

/** Calls `go` after these seconds, when the signal aborts, or when the function returned is called: whichever is first. */
function wake(seconds: number, signal: AbortSignal | undefined, go: () => void): () => void {
  const end = () => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", end);
    go();
  };
  const timer = setTimeout(end, seconds * 1000);
  signal?.addEventListener("abort", end);
  return end;
}

/** @throws TypeError unless the value is text of this form. The error omits the value, which may be a key. */
function need(option: string, value: unknown, form: RegExp, what: string): void {
  if (typeof value !== "string" || !form.test(value)) throw new TypeError(`createClient: ${option} must be ${what}`);
}

/** The object in a text; an empty one if it is not JSON. */
function objectOf(text: string): Partial<ErrorBody & RetryResponse & LookupResponse> {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
}

/**
 * What a response must contain, by the first letter of its call: one of the call's statuses and an id; for a lookup, a
 * line type and a number.
 */
const known =
  /^\["(a","(pending|spam_detected)|r","(approved|denied|no_attempt)|c","((in)?valid|without_attempt)|[rc]","(expired_auth|already_validated)|[arc]","rate_limited|l","[A-Z]\w+)","/;
