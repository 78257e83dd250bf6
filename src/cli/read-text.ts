import type { IncomingMessage } from "node:http";

/** The body of a request as text; undefined where it is longer than `limit` bytes. It is read to its end in any case, so that the answer is heard. */
export async function readText(request: IncomingMessage, limit: number): Promise<string | undefined> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size <= limit) parts.push(part);
  }
  return size <= limit ? Buffer.concat(parts).toString("utf8") : undefined;
}
