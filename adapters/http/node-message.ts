import type { Readable } from "node:stream";
import type { HttpBody, HttpHandler, HttpRequest, HttpResponse } from "../../src/http/message.js";
import { queryOf } from "./paths.js";

/** What is needed of a request of node:http or node:http2. */
export interface NodeRequest extends Readable {
  readonly method?: string | undefined;
  url?: string | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** What a body parser of the host may have left. */
  body?: unknown;
  /** The bytes or text that the parser read, where the host keeps them: NestJS' `rawBody: true`, functions of Firebase and Google Cloud, `verify` of body-parser. */
  rawBody?: unknown;
  /** Whether all of it has come; absent where it comes over no connection. */
  readonly complete?: boolean;
  /** Only http2 has it. */
  readonly stream?: { close(): void };
}

/** What is needed of a response of node:http or node:http2. */
export interface NodeResponse {
  readonly headersSent: boolean;
  readonly destroyed: boolean;
  /** Only http2 has it: there the stream tells when an answer is written. */
  readonly stream?: { once(event: "finish", listener: () => void): unknown };
  statusCode: number;
  setHeader(name: string, value: string | number): unknown;
  end(body: string): unknown;
  once(event: "finish", listener: () => void): unknown;
}

/** The internal shape of a request. Nothing is read until the body is asked for. */
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

/** Writes the answer. Headers that the host set before (CORS) are kept; an answer that the host has begun, and a connection that is gone, are left alone. */
export function writeResponse(handler: HttpHandler, request: NodeRequest, response: NodeResponse, { status, headers, body }: HttpResponse): void {
  if (response.headersSent || response.destroyed) return;
  response.statusCode = status;
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  response.setHeader("content-length", Buffer.byteLength(body));
  letRestPast(handler, request, response);
  response.end(body);
}

/** What is let past of a body after its answer: bytes, and milliseconds. */
const restLimit = 1024 * 1024;
const restTime = 5_000;

/**
 * Sees to what is still to come of a body when the answer is written: it was not needed, or is too large or too slow. A client that sends all before it reads would never get its answer if the connection were closed at once, so a
 * megabyte more is let past unkept; then nothing is read any more. The connection of a body that has not ended 5 s after the answer is closed.
 */
export function letRestPast({ clock }: HttpHandler, request: NodeRequest, response: NodeResponse): void {
  if (request.complete !== false && !request.isPaused()) return;
  let size = 0;
  request.on("data", (chunk: Uint8Array | string) => {
    size += chunk.length;
    if (size > restLimit) request.pause();
  });
  request.resume();
  (response.stream ?? response).once("finish", () => {
    if (request.destroyed) return;
    const { stream } = request;
    const stop = clock.after(restTime, () => (stream === undefined ? request.destroy() : stream.close()));
    request.once("close", stop);
  });
}

/**
 * The body of a request: read here up to `limit` bytes, or what the host's parser kept or made of it. Parsers may set `request.body` without reading (Express 4 does), so only the stream
 * tells who has it. `stream`: what a hook of the host may have put in the place of the request. Rejects for a stream that was read by someone who kept nothing, which is also logged,
 * and for one that fails by itself.
 */
export function readBody(handler: HttpHandler, request: NodeRequest, stream: Readable, limit: number): Promise<HttpBody> {
  if (Number(request.headers["content-length"]) > limit) return Promise.resolve({ kind: "refused", reason: "too_large" });
  if (!stream.readableDidRead && !stream.readableEnded) return readStream(request, stream, limit);
  const { body, rawBody } = request;
  if (typeof rawBody === "string" || rawBody instanceof Uint8Array) return Promise.resolve(fromParser(rawBody, limit));
  if (body !== undefined) return Promise.resolve(fromParser(body, limit));
  if (!stream.readableDidRead) return Promise.resolve({ kind: "bytes", bytes: new Uint8Array(0) });
  return bodyIsGone(handler);
}

/** The stream was read and nothing kept: logs the mend and rejects, which is answered with 500. */
export async function bodyIsGone(handler: HttpHandler): Promise<never> {
  const message =
    "phoneproof: something read the request's body before the verifier and left nothing in req.body. Mount the verifier before that middleware, or let it leave the body there, as express.json() does.";
  handler.warn(message);
  throw new Error(message);
}

/** A compressed body that does not unpack: Node's zlib names that by a number of its own and a code, `Z_…` for gzip and deflate, `ERR_…` for Brotli, `ZSTD_…`. */
export function isUnpackFault(error: Error): boolean {
  const { errno, code, syscall } = error as NodeJS.ErrnoException;
  return typeof errno === "number" && typeof code === "string" && /^(?:Z|ERR|ZSTD)_/.test(code) && syscall === undefined;
}

/** What a body parser left: text as it came, bytes as they came, or a value. */
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
    stream.on("end", () => resolve({ kind: "bytes", bytes: chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks) }));
    stream.on("error", (error) => {
      if (isCutOff(request)) refuse("cut_off");
      else if (isUnpackFault(error)) refuse("encoded");
      else reject(error);
    });
    const watch = (one: Readable) => {
      one.on("close", () => {
        if (!one.readableEnded) refuse("cut_off");
      });
      if (isCutOff(one)) refuse("cut_off");
    };
    watch(stream);
    // A stream in its place may never hear of a client that goes away.
    if (stream !== request) watch(request);
  });
}

/** Whether it was closed before its end: the client has gone away, which is nobody's fault. */
function isCutOff(stream: Readable): boolean {
  return stream.destroyed && !stream.readableEnded;
}
