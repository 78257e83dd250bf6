import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { build } from "esbuild";
import type { UpstashServer } from "../support/upstash.js";

const root = join(import.meta.dirname, "../..");
const customer = "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f";
const apiKey = randomBytes(32).toString("base64");
const secret = randomBytes(32).toString("base64");

/** A file as a page of the documentation shows it. */
function shown(page: string, file: string): string {
  for (const [, body = ""] of readFileSync(join(root, "docs", page), "utf8").matchAll(/```ts\n([\s\S]*?)```/g))
    if (body.startsWith(`// ${file}\n`)) return body;
  throw new Error(`docs/${page} shows no ${file}`);
}

/** A running Worker. */
export interface Worker {
  /** Posts to a route of `/v1`, or gets it if there is no body. "nothing within 5 s" stands for a request that hangs. */
  call(path: string, body?: Readonly<Record<string, unknown>>): Promise<Readonly<Record<string, unknown>>>;
  /** Calls the verifier in a request of its own, as a route of the app would. */
  direct(method: string, fields: Readonly<Record<string, unknown>>): Promise<Readonly<Record<string, unknown>>>;
  close(): Promise<void>;
}

interface Miniflare {
  readonly ready: Promise<URL>;
  dispose(): Promise<void>;
}

/** The documents' `worker.ts`, with one route more, which calls the verifier. */
export async function startDocumentedWorker(miniflare: string, upstash: UpstashServer): Promise<Worker> {
  const worker = shown("frameworks.md", "worker.ts").replace("export default", "const app =");
  const files: Record<string, string> = {
    "worker.ts": `${worker}
      export default {
        async fetch(request: Request) {
          const { pathname } = new URL(request.url);
          if (!pathname.startsWith("/direct/")) return app.fetch(request);
          try {
            const path = pathname.slice(8).split(".");
            const name = path.pop() as string;
            const of = path.reduce((within, part) => within[part], verifier as any);
            return Response.json({ result: await of[name](await request.json()) });
          } catch (error) {
            return Response.json({ error: (error as Error).message });
          }
        },
        scheduled: app.scheduled,
      };`,
    "required.ts": shown("install.md", "required.ts"),
  };
  const { outputFiles } = await build({
    stdin: { contents: files["worker.ts"] ?? "", resolveDir: root, loader: "ts" },
    bundle: true,
    write: false,
    format: "esm",
    conditions: ["workerd", "worker", "browser"],
    external: ["node:*", "cloudflare:*"],
    logLevel: "error",
    plugins: [
      {
        name: "pages",
        setup(on) {
          on.onResolve({ filter: /^\.\/required\.js$/ }, () => ({ path: "required.ts", namespace: "pages" }));
          on.onLoad({ filter: /.*/, namespace: "pages" }, () => ({ contents: files["required.ts"] ?? "", loader: "ts" }));
        },
      },
    ],
  });
  const { Miniflare: Class, Response: Answer } = createRequire(import.meta.url)(miniflare) as {
    Miniflare: new (options: object) => Miniflare;
    Response: typeof Response;
  };
  const platform = new Class({
    modules: [{ type: "ESModule", path: "worker.mjs", contents: outputFiles[0]?.text ?? "" }],
    compatibilityDate: "2025-04-01",
    compatibilityFlags: ["nodejs_compat"],
    cf: false,
    bindings: {
      UPSTASH_REDIS_REST_URL: "https://upstash.example",
      UPSTASH_REDIS_REST_TOKEN: upstash.token,
      TWILIO_ACCOUNT_SID: `AC${"1".repeat(32)}`,
      TWILIO_AUTH_TOKEN: "2".repeat(32),
      PHONEPROOF_SECRET: secret,
      PHONEPROOF_API_KEY: apiKey,
    },
    async outboundService(request: Request) {
      const { host, pathname } = new URL(request.url);
      if (host !== "upstash.example") return Answer.json({ sid: `SM${"3".repeat(32)}`, status: "queued" }, { status: 201 });
      const { authorization, "upstash-encoding": encoding } = Object.fromEntries(request.headers);
      const headers = { authorization: authorization ?? "", ...(encoding && { "upstash-encoding": encoding }) };
      const reply = await fetch(upstash.url + pathname, { method: "POST", headers, body: await request.text() });
      return new Answer(await reply.text(), { status: reply.status, headers: { "content-type": "application/json" } });
    },
  });
  const base = await platform.ready;
  const send = async (path: string, init: RequestInit) => {
    try {
      const response = await fetch(new URL(path, base), { ...init, signal: AbortSignal.timeout(5000) });
      return { http: response.status, ...((await response.json()) as object) };
    } catch (error) {
      return { http: (error as Error).name === "TimeoutError" ? "nothing within 5 s" : String(error) };
    }
  };
  return {
    call: (path, body) =>
      send(path, {
        method: body ? "POST" : "GET",
        headers: { "x-api-key": apiKey, "content-type": "application/json", "customer-uuid": customer },
        ...(body && { body: JSON.stringify({ customer_uuid: customer, ...body }) }),
      }),
    direct: (method, fields) => send(`/direct/${method}`, { method: "POST", body: JSON.stringify({ customer_uuid: customer, ...fields }) }),
    close: () => platform.dispose(),
  };
}
