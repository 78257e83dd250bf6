import type { Clock } from "../ports/clock.js";

/**
 * The library's internal HTTP request. Adapters build it from their framework's request and write the response; they
 * contain no logic of their own.
 */
export interface HttpRequest {
  /** Upper case. */
  readonly method: string;
  /** The path after the mount prefix, still percent-encoded, without the query. */
  readonly path: string;
  /**
   * The path received and the handler's mount prefix, for the message of a 404; absent if the framework handles prefixes.
   * `stripped`: what a framework has removed; absent if the adapter has no such option. `isFixed`: it has none for a
   * prefix.
   */
  readonly asked?: { readonly path: string; readonly prefix: string; readonly stripped?: string; readonly isFixed?: boolean };
  /** The raw query with its `?`; absent or empty without one. */
  readonly query?: string;
  /** Returns a header by its lower-case name; several values are joined by `, `. */
  header(name: string): string | undefined;
  /**
   * Reads the body, once route and API key are valid: raw bytes or text, or the value from the host's parser. Returns
   * `refused` with `too_large` past `limit` bytes. Rejects if the host's setup leaves no body to read.
   */
  body(limit: number): Promise<HttpBody>;
}

export type HttpBody =
  | { readonly kind: "bytes"; readonly bytes: Uint8Array }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "parsed"; readonly value: unknown }
  /**
   * The body is unavailable: it is too large, the client disconnected (`cut_off`), or the host's parser rejected it
   * first (`encoded`: the content encoding is unknown, or the body does not match it).
   */
  | { readonly kind: "refused"; readonly reason: "malformed" | "encoded" | "too_large" | "cut_off" };

export interface HttpResponse {
  readonly status: number;
  /** Lower-case names. Always includes `content-type`. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What framework adapters mount: `verifier.http`, `verifier.receipts`, or a wire of your own. */
export interface HttpHandler {
  /** The start of its paths: `/v1` or `/receipts`. One slash in front, none behind. */
  readonly root: string;
  /** Further starts of its paths. Where those of several handlers nest, the longest that matches wins. Default: none. */
  readonly roots?: readonly string[];
  /** Returns the template of a path's route, for logs: `/v2/lookup/{phone_number}`. `undefined`: there is no such route. */
  routeOf?(path: string): string | undefined;
  /** Why it cannot be mounted, and how to fix it; adapters throw it. Absent: it can be mounted. */
  readonly unmountable?: string | undefined;
  /** Handles every request, errors included; never rejects. */
  handle(request: HttpRequest): Promise<HttpResponse>;
  /** The verifier's clock. Adapters use it to close connections whose body never ends. */
  readonly clock: Clock;
  /** Logs a mistake that the operator should fix, such as wrong mounting, to the verifier's logger. */
  warn(message: string): void;
}
