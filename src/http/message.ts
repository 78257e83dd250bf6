import type { Clock } from "../ports/clock.js";

/**
 * The HTTP shape inside the library. Adapters build it from their framework's request and write the response out; none of them decides anything.
 */
export interface HttpRequest {
  /** Upper case. */
  readonly method: string;
  /** The path after the mount prefix, as it came (still percent-encoded), without the query. */
  readonly path: string;
  /** What the host was asked for, and the prefix that the handler was mounted under, for the words of a 404; absent where the framework sees to prefixes. `canStrip`: where it has an option for what a framework takes off. */
  readonly asked?: { readonly path: string; readonly prefix: string; readonly canStrip?: boolean };
  /** The query as it came, with its `?`; absent or empty when there is none. */
  readonly query?: string;
  /** A header's value by its lower-case name; several values are joined by `, `. */
  header(name: string): string | undefined;
  /**
   * The body, asked for only after route and API key are known to be good: bytes or text as they came, or the value a body parser of the host has made of them.
   * Answers `refused` with `too_large` past `limit` bytes. Rejects where the host is mounted or made in a way that leaves no body to read.
   */
  body(limit: number): Promise<HttpBody>;
}

export type HttpBody =
  | { readonly kind: "bytes"; readonly bytes: Uint8Array }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "parsed"; readonly value: unknown }
  /**
   * There is no body to judge: it is too large, the client went away in the middle of it (`cut_off`), or the host's parser refused it before it came to us
   * (`encoded`: its content-encoding is unknown there, or it is not in it).
   */
  | { readonly kind: "refused"; readonly reason: "malformed" | "encoded" | "too_large" | "cut_off" };

export interface HttpResponse {
  readonly status: number;
  /** Lower-case names. `content-type` is always there. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What every framework adapter needs of a verifier. A `Verifier` is one. */
export interface HttpHandler {
  /** What its paths start with: `/v1` or `/receipts`. */
  readonly root: string;
  /** Why it cannot be mounted, and the mend: adapters throw it. Absent: it can. */
  readonly unmountable?: string;
  /** Answers every request, faults included; never rejects. */
  handle(request: HttpRequest): Promise<HttpResponse>;
  /** The verifier's own, by which an adapter closes a connection whose body has no end. */
  readonly clock: Clock;
  /** Logs what an operator should mend (a mounting mistake) through the verifier's logger. */
  warn(message: string): void;
}
