import type { RequestListener, ServerResponse } from "node:http";
import { assets } from "./assets.js";
import type { Messages } from "./messages.js";
import { type SettleReceipt, takeReceipt } from "./receipts.js";
import type { DevSession } from "./session.js";

/** Nothing is kept, framed, guessed or loaded from elsewhere, and no script runs that is not one of the page's files. */
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

/** Whether this address or name is this machine's own: a name that an attacker's DNS may answer for is none. */
export function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/i.test(host);
}

/**
 * The demo's listener: the page at `/`, `/dev/session` (the key the page calls with), `/dev/messages` (its phone), `/dev/receipts` (the buttons there), and the service for every other path.
 *
 * @param parts.checkHost Refuse requests whose Host header is not a loopback name: a page elsewhere could else read the codes through a name that its DNS points here.
 */
export function devListener(parts: {
  readonly api: RequestListener;
  readonly session: DevSession;
  readonly messages: Messages;
  readonly settle: SettleReceipt;
  readonly checkHost: boolean;
}): RequestListener {
  return (request, response) => {
    if (parts.checkHost && !isLoopback((request.headers.host ?? "").replace(/:\d*$/, ""))) {
      return answer(response, 403, plain, "The demo answers to localhost and 127.0.0.1 alone. To reach it by another name, start it with --host.\n");
    }
    const path = (request.url ?? "/").split("?", 1)[0] as string;
    const asset = assets.get(path);
    if (asset === undefined && !path.startsWith("/dev/")) return parts.api(request, response);
    if (path === "/dev/receipts") {
      if (request.method !== "POST") return answer(response, 405, plain, "POST only\n", { allow: "POST" });
      // A client that breaks off hears no answer.
      return void takeReceipt(request, parts.messages, parts.settle).then(
        ([status, text]) => answer(response, status, plain, text),
        () => response.destroy(),
      );
    }
    if (request.method !== "GET" && request.method !== "HEAD") return answer(response, 405, plain, "GET only\n", { allow: "GET, HEAD" });
    if (asset !== undefined) return answer(response, 200, asset.type, asset.text);
    if (path === "/dev/session") return answer(response, 200, "application/json", JSON.stringify(parts.session));
    if (path !== "/dev/messages") return answer(response, 404, plain, "no such page\n");
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    parts.messages.stream(response);
  };
}

function answer(response: ServerResponse, status: number, type: string, text: string, more: Record<string, string> = {}): void {
  response.writeHead(status, { ...headers, ...more, "content-type": type });
  response.end(text);
}
