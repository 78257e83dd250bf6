import type { Readable } from "node:stream";
import type { HttpBody, HttpHandler, HttpRequest, HttpResponse } from "../../src/http/message.js";
import { queryOf } from "./paths.js";

/** The part of a node:http or node:http2 request that is used. */
export interface NodeRequest extends Readable {
  method?: string | undefined;
  url?: string | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The result of the host's body parser, if any. */
  body?: unknown;
  /**
   * The bytes or text that the parser read, if the host keeps them: NestJS' `rawBody: true`, Firebase and Google Cloud
   * functions, `verify` of body-parser.
   */
  rawBody?: unknown;
  /** Whether all of it has arrived; absent without a connection. */
  readonly complete?: boolean;
  /** Only in http2. */
  readonly stream?: { close(): void };
}

/** The part of a node:http or node:http2 response that is used. */
export interface NodeResponse {
  readonly headersSent: boolean;
  readonly destroyed: boolean;
  /** Only in http2: emits `finish` when the response is written. */
  readonly stream?: { once(event: "finish", listener: () => void): unknown };
  /** Not in http2, and not without a connection. */
  readonly socket?: { destroySoon?(): void; end(): unknown; destroy(): unknown; readonly writableEnded: boolean } | null;
  statusCode: number;
  setHeader(name: string, value: string | number): unknown;
  end(body: string): unknown;
  once(event: "finish", listener: () => void): unknown;
}

/** Converts a request to the internal form. The body is not read until it is requested. */
export function toHttpRequest(request: NodeRequest, path: string, body: HttpRequest["body"]): HttpRequest {
  return {
    method: request.method ?? "GET",
    path,
    query: queryOf(request.url ?? ""),
    header: (name) => {
      const value = request.headers[name];
      return Array.isArray(value) ? value.join(", ") : value;
    },
    body,
  };
}

/**
 * Writes the response. Headers that the host set before (CORS) are kept. Nothing is written if the host has started a
 * response or the connection is closed.
 */
export function writeResponse(handler: HttpHandler, request: NodeRequest, response: NodeResponse, { status, headers, body }: HttpResponse): void {
  if (response.headersSent || response.destroyed) return;
  response.statusCode = status;
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  response.setHeader("content-length", Buffer.byteLength(body));
  letRestPast(handler, request, response);
  response.end(body);
}

/** How much of a body is discarded after the response: bytes, and milliseconds. */
const restLimit = 1024 * 1024;
const restTime = 5_000;

/**
 * Handles the rest of a body that was unneeded, too large or too slow, after the response is written. A client that
 * sends everything before it reads would miss the response if the connection closed at once. So up to 1 MiB more is
 * read and discarded, and the connection is closed if the body has not ended 5 s after the response. If it is known to
 * be longer, or its length is unknown, the response says so. Call it before the response is written.
 */
export function letRestPast({ clock }: HttpHandler, request: NodeRequest, response: NodeResponse): void {
  if (response.headersSent || (request.complete !== false && !request.isPaused())) return;
  const { stream, socket } = response;
  if (stream === undefined && !(Number(request.headers["content-length"]) <= restLimit)) response.setHeader("connection", "close");
  let size = 0;
  request.on("data", (chunk: Uint8Array | string) => {
    size += chunk.length;
    if (size > restLimit) request.pause();
  });
  request.resume();
  // Node closes the whole connection after the response: only our side, for now.
  if (stream === undefined && socket) socket.destroySoon = () => socket.end();
  (stream ?? response).once("finish", () => {
    if (request.destroyed) return;
    const { stream } = request;
    const stop = clock.after(restTime, () => (stream === undefined ? request.destroy() : stream.close()));
    request.once("close", stop);
  });
  request.once("close", () => {
    if (stream !== undefined || !socket) return;
    delete socket.destroySoon;
    if (socket.writableEnded) socket.destroy();
  });
}

/**
 * Returns what reads the body: up to `limit` bytes here, or from what the host's parser kept. Parsers may set
 * `request.body` without reading (Express 4 does), so only the stream shows whether it was read. `stream`: what a hook
 * of the host may have put in place of the request. Rejects, and logs, if the stream was read and nothing kept; rejects
 * if the stream fails.
 */
export function bodyReader(request: NodeRequest, stream: Readable = request): (handler: HttpHandler, limit: number) => Promise<HttpBody> {
  // Something of the host listens to it: what it gets before the API key is checked would be lost.
  const isUnread = () => !stream.readableDidRead && !stream.readableEnded;
  const flowing = stream.readableFlowing === true && isUnread() ? readStream(request, stream, restLimit) : undefined;
  flowing?.catch(() => undefined);
  return async (handler, limit) => {
    if (Number(request.headers["content-length"]) > limit) return { kind: "refused", reason: "too_large" };
    const read = flowing === undefined ? undefined : await flowing;
    if (read !== undefined) return read.kind === "bytes" ? fromParser(read.bytes, limit) : read;
    if (isUnread()) return readStream(request, stream, limit);
    const { rawBody } = request;
    if (typeof rawBody === "string" || rawBody instanceof Uint8Array) return fromParser(rawBody, limit);
    try {
      // A getter on Vercel, which parses, and throws for malformed JSON.
      const { body } = request;
      if (body !== undefined) return fromParser(body, limit);
    } catch (error) {
      if (isOfClient(error)) return { kind: "refused", reason: "malformed" };
      throw error;
    }
    if (!stream.readableDidRead) return { kind: "bytes", bytes: new Uint8Array(0) };
    return bodyIsGone(handler);
  };
}

/** The stream was read and nothing kept: logs the fix and rejects; the response is 500. */
export async function bodyIsGone(handler: HttpHandler): Promise<never> {
  const message =
    "something read the request's body before the verifier and left nothing in req.body. Mount the verifier before that middleware, or let it leave the body there, as express.json() does.";
  handler.warn(message);
  throw new Error(`phoneproof: ${message}`);
}

/**
 * Whether a body failed to decompress: Node's zlib sets a number and a code, `Z_…` for gzip and deflate, `ERR_…` for
 * Brotli, `ZSTD_…`.
 */
export function isUnpackError(error: Error): boolean {
  const { errno, code, syscall } = error as NodeJS.ErrnoException;
  return typeof errno === "number" && typeof code === "string" && /^(?:Z|ERR|ZSTD)_/.test(code) && syscall === undefined;
}

/** Whether the host blames the client. */
function isOfClient(error: unknown): boolean {
  const { statusCode } = (error ?? {}) as { statusCode?: unknown };
  return typeof statusCode === "number" && statusCode >= 400 && statusCode < 500;
}

/** The result of a body parser: text or bytes as received, or a value. */
function fromParser(body: unknown, limit: number): HttpBody {
  if (typeof body === "string") return { kind: "text", text: body };
  if (body instanceof Uint8Array) return body.length > limit ? { kind: "refused", reason: "too_large" } : { kind: "bytes", bytes: body };
  return { kind: "parsed", value: body };
}

function readStream(request: NodeRequest, stream: Readable, limit: number): Promise<HttpBody> {
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    let size = 0;
    const refuse = (reason: "too_large" | "encoded" | "cut_off") => resolve({ kind: "refused", reason });
    const onData = (chunk: Uint8Array | string) => {
      const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
      size += bytes.length;
      if (size <= limit) {
        chunks.push(bytes);
        return;
      }
      chunks.length = 0;
      stream.off("data", onData);
      stream.pause();
      refuse("too_large");
    };
    stream.on("data", onData);
    // A hook of the host may have paused it.
    stream.resume();
    stream.on("end", () => resolve({ kind: "bytes", bytes: chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks) }));
    stream.on("error", (error) => {
      if (isCutOff(request)) refuse("cut_off");
      else if (isUnpackError(error) || (stream !== request && isOfClient(error))) refuse("encoded");
      else reject(error);
    });
    const watch = (one: Readable) => {
      one.on("close", () => {
        if (!one.readableEnded) refuse("cut_off");
      });
      if (isCutOff(one)) refuse("cut_off");
    };
    watch(stream);
    // A stream in place of the request may not notice that a client disconnects.
    if (stream !== request) watch(request);
  });
}

/** Whether the stream was closed before its end: the client disconnected. */
function isCutOff(stream: Readable): boolean {
  return stream.destroyed && !stream.readableEnded;
}
