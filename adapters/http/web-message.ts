import type { HttpBody, HttpHandler, HttpRequest } from "../../src/http/message.js";
import { queryOf } from "./paths.js";

/** Passes a WHATWG request to a handler. */
export async function answerRequest(handler: HttpHandler, request: Request, paths: Pick<HttpRequest, "path" | "asked">): Promise<Response> {
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  let isRead = false;

  /** Reads up to `limit` bytes plus one chunk. Rejects, and logs, if the body was already read. */
  async function body(limit: number): Promise<HttpBody> {
    if (Number(request.headers.get("content-length")) > limit) return { kind: "refused", reason: "too_large" };
    if (isTaken(request)) {
      const message =
        'something read the request\'s body before the verifier. Hand it on in a new request: handler(new Request(request.url, { method: "POST", headers: request.headers, body: bytes })), with bytes rather than text, which would change its content type.';
      handler.warn(message);
      throw new Error(`phoneproof: ${message}`);
    }
    reader = request.body?.getReader();
    if (reader === undefined) return { kind: "bytes", bytes: new Uint8Array(0) };
    const read = await readAll(reader, limit);
    isRead = read.kind !== "refused";
    return read;
  }

  const { method } = request;
  const header = (name: string) => request.headers.get(name) ?? undefined;
  const answered = await handler.handle({ method, ...paths, query: queryOf(request.url), header, body });

  // Some platforms (Next.js) read an untouched body to its end, but not one whose reading was started and cancelled.
  if (method !== "GET" && method !== "HEAD" && !isTaken(request)) reader = request.body?.getReader();
  const hasRest = reader !== undefined && !isRead;
  if (hasRest) void discard(reader as NonNullable<typeof reader>).catch(() => undefined);
  // Not for a body without a length, which may still be coming: the platform would lose the response.
  const closes = hasRest && Number(request.headers.get("content-length")) > restLimit;
  const bytes = new TextEncoder().encode(answered.body);
  const headers = { "content-length": String(bytes.length), ...(closes && { connection: "close" }), ...answered.headers };
  return new Response(method === "HEAD" ? null : bytes, { status: answered.status, headers });
}

/** Whether something else reads the body, or has read it: then srvx 0.11 (Elysia on Node) throws. */
function isTaken(request: Request): boolean {
  try {
    return request.bodyUsed || request.body?.locked === true;
  } catch {
    return true;
  }
}

/** Bytes of a body that are discarded after the response, so that the next request on the connection is not lost. */
const restLimit = 1024 * 1024;

async function discard(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  let size = 0;
  for (let read = await reader.read(); read.value !== undefined && size <= restLimit; read = await reader.read()) size += read.value.length;
  await reader.cancel();
}

async function readAll(reader: ReadableStreamDefaultReader<Uint8Array>, limit: number): Promise<HttpBody> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for (let read = await reader.read(); read.value !== undefined; read = await reader.read()) {
      size += read.value.length;
      if (size > limit) return { kind: "refused", reason: "too_large" };
      chunks.push(read.value);
    }
  } catch {
    // When a client disconnects the stream fails, with an error that differs by platform.
    return { kind: "refused", reason: "cut_off" };
  }
  return { kind: "bytes", bytes: chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks) };
}
