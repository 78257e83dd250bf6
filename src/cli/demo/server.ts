import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { isOwnHost } from "../hosts.js";
import { assets } from "./assets.js";
import type { Feed } from "./feed.js";
import type { DevSession } from "./session.js";

/** Forbids caching, framing, type sniffing and loading from elsewhere. Only scripts among the page's files run. */
const headers = {
  "cache-control": "no-store",
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

const plain = "text/plain; charset=utf-8";

/** Handles a POST to the demo itself. Returns the HTTP status and a short text. */
export type Taker = (request: IncomingMessage) => Promise<readonly [status: number, text: string]>;

/**
 * The demo's listener. It serves the page at `/`, `/dev/session` (the key that the page uses), `/dev/events` (what the
 * page shows) and POSTs to the demo. The service handles every other path.
 *
 * @param parts.takers By path, under `/dev/`.
 * @param parts.host As given by `--host`.
 */
export function devListener(parts: {
  readonly api: RequestListener;
  readonly session: DevSession;
  readonly feed: Feed;
  readonly takers: ReadonlyMap<string, Taker>;
  readonly host: string;
}): RequestListener {
  return (request, response) => {
    if (!isOwnHost(request.headers.host, parts.host)) {
      const fix =
        "The demo answers to localhost, to IP addresses and to the name that --host gave it. To reach it by another name, start it with --host NAME.\n";
      return answer(response, 403, plain, fix);
    }
    const path = (request.url ?? "/").split("?", 1)[0] as string;
    const asset = assets.get(path);
    if (asset === undefined && !path.startsWith("/dev/")) return parts.api(request, response);
    const take = parts.takers.get(path);
    if (take !== undefined) {
      if (request.method !== "POST") return answer(response, 405, plain, "POST only\n", { allow: "POST" });
      // A client that has disconnected gets no response.
      return void take(request).then(
        ([status, text]) => answer(response, status, plain, text),
        () => response.destroy(),
      );
    }
    if (request.method !== "GET" && request.method !== "HEAD") return answer(response, 405, plain, "GET and HEAD only\n", { allow: "GET, HEAD" });
    if (asset !== undefined) return answer(response, 200, asset.type, asset.text);
    if (path === "/dev/session") return answer(response, 200, "application/json", JSON.stringify(parts.session));
    if (path !== "/dev/events") return answer(response, 404, plain, "no such page\n");
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    parts.feed.stream(response);
  };
}

function answer(response: ServerResponse, status: number, type: string, text: string, more: Record<string, string> = {}): void {
  response.writeHead(status, { ...headers, ...more, "content-type": type });
  response.end(text);
}
