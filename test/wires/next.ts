import { createServer, type RequestListener, type Server } from "node:http";
import { createRequire } from "node:module";
import { nextHandlers } from "../../adapters/http/next.js";
import { fixture } from "../http/next-app.js";
import { listening, type Mount } from "./listen.js";

interface NextServer {
  prepare(): Promise<void>;
  getRequestHandler(): RequestListener;
  close(): Promise<void>;
}

const handlers = new Map<string, ReturnType<typeof nextHandlers>["POST"]>();
(globalThis as { phoneproofMounted?: typeof handlers }).phoneproofMounted = handlers;

/** Serves the built app of fixtures/next-mounted in this process; each mount is a separate server in front of it. */
export async function nextMounts(): Promise<{ readonly mount: Mount; close(): Promise<void> }> {
  const next = createRequire(import.meta.url)("next") as (options: { dir: string; dev: false; hostname: string; port: number }) => NextServer;
  const app = next({ dir: fixture("next-mounted"), dev: false, hostname: "127.0.0.1", port: 0 });
  await app.prepare();
  const listener = app.getRequestHandler();
  const mount: Mount = async (handler, basePath, seen) => {
    const server: Server = createServer((request, response) => void listener(request, response)).prependListener("request", seen);
    const { url, close } = await listening(server);
    const { POST } = nextHandlers(handler, basePath === "" ? {} : { basePath });
    handlers.set(new URL(url).port, POST);
    return { url, close };
  };
  return { mount, close: () => app.close() };
}
