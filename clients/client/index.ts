import type { CheckRequest, CreateAuthenticationRequest, LookupRequest, RetryRequest } from "../../src/contract/direct.js";
import type { ErrorBody, ErrorCode } from "../../src/contract/error.js";
import type { LookupResponse } from "../../src/contract/lookup.js";
import type { RetryResponse } from "../../src/contract/retry.js";
import { type CheckResult, type CreateResult, factsOf, type LookupResult, number, type RetryResult } from "./answers.js";
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
   * Seconds for each attempt, including the whole response. Default 10, as the service waits up to 5 for the carrier,
   * 2 for its store and 2 for its source of customers. Set more if it asks others too, such as a challenge
   * (`docs/operations.md#timeouts`). At most 3600.
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

type PostInput = Partial<Input<RetryRequest>>;

/** The fields of all responses. */
type Body = Partial<ErrorBody & RetryResponse & LookupResponse>;

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
export function createClient(options: ClientOptions): Client {
  const { baseUrl, apiKey, customerUuid: customer_uuid, timeout = 10, retries = 1, fetch: given } = options ?? {};
  requireOption("baseUrl", hasForm(baseUrl, /^https?:\/\/[^\s?#@]+$/) && URL.canParse(baseUrl), "like https://example.com");
  requireOption("apiKey", hasForm(apiKey, /^[!-~]+$/), "a customer's key");
  requireOption("customerUuid", hasForm(customer_uuid, /^[\da-f-]{36}$/i), "a customer's UUID");
  requireOption("timeout", timeout > 0 && timeout <= 3600, "seconds, at most 3600");
  requireOption("retries", /^\d$/.test(`${retries}`), "0 to 9");
  requireOption("fetch", typeof (given ?? fetch) === "function", "a function");
  const v1 = `${baseUrl.replace(/\/*(\/v1)?\/*$/, "")}/v1/`;

  async function post<A>(call: keyof typeof statuses, request: PostInput, { signal, idempotencyKey }: KeyedCallOptions = {}): Promise<A> {
    const key = call === "retry" ? undefined : (idempotencyKey ?? crypto.randomUUID());
    requireOption("idempotencyKey", key === undefined || hasForm(key, /^[ -~]{1,255}$/), "1 to 255 printable ASCII characters");
    const init = { method: "POST", body: JSON.stringify({ ...request, customer_uuid }) };
    const isOurs = ({ status, authentication_uuid: id }: Body) =>
      hasForm(status, statuses[call]) && typeof id === "string" && id === (request?.authentication_uuid?.toLowerCase() ?? id);
    return send(call, init, isOurs, key === undefined ? 0 : retries, signal, key);
  }

  /** Sends a request until there is a response to it, or no repeat is left. */
  async function send<A>(
    path: string,
    init: { readonly method?: string; readonly body?: string },
    isOurs: (body: Body) => boolean,
    left: number,
    signal: AbortSignal | undefined,
    key?: string,
  ): Promise<A> {
    for (;;) {
      signal?.throwIfAborted();
      const ending = new AbortController();
      let end = () => {};
      let failed: FaultError | TransportError;
      try {
        const asking = async () => {
          // The global `fetch` is read on each call, so that tools can replace it later.
          const response = await (given ?? fetch)(v1 + path, {
            ...init,
            headers: {
              "x-api-key": apiKey,
              "customer-uuid": customer_uuid,
              "content-type": "application/json",
              ...(key !== undefined && { "idempotency-key": key }),
            },
            redirect: "manual",
            signal: ending.signal,
          });
          return [response, await response.text()] as const;
        };
        // Your own `fetch` may ignore its signal.
        const ended = new Promise<never>((_, reject) => {
          end = wake(timeout, signal, () => reject(ending.abort()));
        });
        const [{ status, headers }, text] = await Promise.race([asking(), ended]);
        const body = objectOf(text);
        if (status === 200 && isOurs(body)) return { ...factsOf(headers), ...body } as A;
        failed = errorOf(path, status, headers, body);
      } catch (cause) {
        signal?.throwIfAborted();
        failed = ending.signal.aborted
          ? new TransportError("timeout", `no full response in ${timeout} s`, { cause })
          : new TransportError("network", "connection failed", { cause });
      } finally {
        end();
      }
      const { status = 502, retry_after = 0.25 } = failed;
      if (left-- === 0 || status < 502 || status > 504 || retry_after > 5) throw failed;
      await new Promise<void>((resolve) => wake(retry_after, signal, resolve));
    }
  }

  return {
    createAuthentication: (request, options) => post("authentication", request, options),
    retry: (request, options) => post("retry", request, options),
    check: (request, options) => post("check", request, options),
    lookup: async ({ phone_number }, options) => {
      const isOurs = ({ line_type, phone_number: id }: Body) => hasForm(line_type, /^[A-Z]\w+$/) && typeof id === "string";
      return send(`lookup/${encodeURIComponent(phone_number)}`, {}, isOurs, retries, options?.signal);
    },
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

/** The error omits the value, which may be a key. */
function requireOption(option: string, isValid: boolean, what: string): void {
  if (!isValid) throw new TypeError(`createClient: ${option} must be ${what}`);
}

function hasForm(value: unknown, form: RegExp): boolean {
  return typeof value === "string" && form.test(value);
}

/** The object in a text; an empty one if it is not JSON. */
function objectOf(text: string): Body {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
}

/** The error for a response that is not a result of its call. */
function errorOf(path: string, status: number, headers: { get(name: string): string | null }, body: Body): FaultError | TransportError {
  const after = headers.get("retry-after") ?? "";
  // A date ends in GMT (RFC 9110, section 5.6.7). One that has passed is ignored.
  const seconds = number.test(after) ? Number(after) : /GMT$/.test(after) ? Math.ceil((Date.parse(after) - Date.now()) / 1000) : -1;
  const retry_after = seconds >= 0 ? seconds : undefined;
  if (status >= 400 && body.doc_url && typeof body.code === "string") return new FaultError(body as ErrorBody, status, retry_after);
  const location = headers.get("location");
  const what = location?.replace(/\d{7,}/, "…") ?? headers.get("content-type") ?? "no content-type";
  const fix = location?.endsWith(`${path}/`)
    ? "the app redirects to a trailing slash; turn that off (Next.js: skipTrailingSlashRedirect)"
    : status > 501
      ? "is the service up?"
      : "check baseUrl";
  return new TransportError("bad_answer", `HTTP ${status} (${what}) is not ours: ${fix}`, { status, retry_after });
}

/** The statuses of each call. */
const statuses = {
  authentication: /^(pending|spam_detected|rate_limited)$/,
  retry: /^(approved|denied|no_attempt|expired_auth|already_validated|rate_limited)$/,
  check: /^(valid|invalid|without_attempt|expired_auth|already_validated|rate_limited)$/,
};
