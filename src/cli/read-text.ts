import type { IncomingMessage } from "node:http";

/**
 * The body of a request as text; undefined if it exceeds `limit` bytes. Always read to its end, so that the client gets
 * the response.
 */
export async function readText(request: IncomingMessage, limit: number): Promise<string | undefined> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size <= limit) parts.push(part);
  }
  return size <= limit ? Buffer.concat(parts).toString("utf8") : undefined;
}
