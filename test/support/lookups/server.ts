import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { LookupProvider } from "../../../src/ports/lookup-provider.js";
import type { Reply, SeenRequest } from "../carriers/server.js";

/** One lookup API, according to its documentation. */
export interface LookupScript {
  readonly name: string;
  /** The documented response for the requested number, or the documented error for a request that would be rejected. */
  answer(request: SeenRequest, about: LookupLine): Reply;
  /** Documented responses: too many requests, an error of the provider, wrong credentials. */
  readonly throttled: Reply;
  readonly failure: Reply;
  readonly forbidden: Reply;
  /** Responses if it has no data on the number, or may not return it. */
  readonly unknown: Readonly<Record<string, Reply>>;
  provider(baseUrl: string, more?: object): LookupProvider;
}

/** The provider's data on a number, in its own terms. `number`: the number in the response. */
export interface LookupLine {
  readonly number?: string;
  readonly type?: string | null;
  readonly carrier?: string | null;
  readonly mcc?: string | null;
  readonly mnc?: string | null;
  /** Whether it was ported to this network, if the provider knows. */
  readonly ported?: boolean | undefined;
}

/** What a running provider does instead of responding normally. */
export type LookupMood = "hangs" | "stalls" | "cut" | "breaks off" | "endless" | Reply;

export interface RunningLookup {
  readonly url: string;
  readonly requests: readonly SeenRequest[];
  mood: LookupMood | undefined;
  line: LookupLine;
  close(): Promise<void>;
}

/** Starts a provider on a free port of the loopback. */
export async function startLookup(script: Pick<LookupScript, "answer">, line: LookupLine = {}): Promise<RunningLookup> {
  const requests: SeenRequest[] = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
      const seen = {
        method: request.method ?? "",
        url: new URL(request.url ?? "/", `http://${request.headers.host}`),
        headers,
        body: Buffer.concat(parts).toString("utf8"),
      };
      requests.push(seen);
      const { mood } = running;
      const { status, body, contentType = "application/json" } = typeof mood === "object" ? mood : script.answer(seen, running.line);
      if (mood === "hangs") return;
      if (mood === "cut") return void request.socket.destroy();
      response.writeHead(status, { "content-type": contentType, ...(mood === "breaks off" && { "content-length": body.length + 10 }) });
      if (mood === "stalls") return void response.write(body.slice(0, 5));
      if (mood === "breaks off") return void response.write(body, () => request.socket.destroy());
      if (mood === "endless") {
        const pour = () => {
          while (!response.destroyed && response.write("x".repeat(65_536)));
        };
        response.on("drain", pour);
        return pour();
      }
      response.end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const running: RunningLookup = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    mood: undefined,
    line,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return running;
}
