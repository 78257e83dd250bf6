import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createClient } from "redis";

/** Upstash's REST protocol in front of a real redis-server. */
export interface UpstashServer {
  readonly url: string;
  readonly token: string;
  /** Cuts the connection of the next response after the command has run, so that the client sends it again. */
  cutNextAnswer(): void;
  close(): Promise<void>;
}

/**
 * `POST /` runs one command, a JSON array, `POST /pipeline` several and `POST /multi-exec` several in a transaction.
 * The bearer token is required. Each result is `{ result }` or `{ error }`, with strings in base64 on request.
 */
export async function startUpstash(redisUrl: string): Promise<UpstashServer> {
  const token = "test-token";
  const redis = await createClient({ url: redisUrl, disableOfflineQueue: true, socket: { reconnectStrategy: 50 } })
    .on("error", () => {})
    .connect();
  let cut = false;

  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const encode = request.headers["upstash-encoding"] === "base64" ? inBase64 : (value: unknown) => value;
    const answer = (status: number, body: unknown) => {
      if (cut) {
        cut = false;
        request.socket.destroy();
        return;
      }
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    };
    if (request.headers.authorization !== `Bearer ${token}`) return answer(401, { error: "Unauthorized" });
    const one = async (command: unknown[]) => {
      try {
        return { result: encode(await redis.sendCommand(command.map(String))) };
      } catch (error) {
        return { error: (error as Error).message };
      }
    };
    const body = JSON.parse(Buffer.concat(chunks).toString()) as unknown[];
    if (request.url === "/pipeline") return answer(200, await Promise.all((body as unknown[][]).map(one)));
    if (request.url === "/multi-exec") {
      const replies = await Promise.all([["MULTI"], ...(body as unknown[][]), ["EXEC"]].map(one));
      const last = replies.at(-1) as { result?: unknown[]; error?: string };
      return last.result
        ? answer(
            200,
            last.result.map((result) => ({ result })),
          )
        : answer(400, last);
    }
    const reply = await one(body);
    return answer("error" in reply ? 400 : 200, reply);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token,
    cutNextAnswer() {
      cut = true;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
      redis.destroy();
    },
  };
}

function inBase64(value: unknown): unknown {
  if (typeof value === "string") return Buffer.from(value).toString("base64");
  return Array.isArray(value) ? value.map(inBase64) : value;
}
