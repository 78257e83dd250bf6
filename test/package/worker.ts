import { builtinModules } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build, type Plugin } from "esbuild";
import { root } from "./built.js";

/** A running Worker. */
export interface Worker {
  fetch(path: string, init?: RequestInit): Promise<Response>;
  scheduled(): Promise<string>;
  stop(): Promise<void>;
}

/** The part of miniflare that is used here. */
interface Miniflare {
  readonly ready: Promise<URL>;
  dispatchFetch(url: string, init?: RequestInit): Promise<Response>;
  getWorker(): Promise<{ scheduled(event: { cron: string }): Promise<{ readonly outcome: string }> }>;
  dispose(): Promise<void>;
}

/** Resolves Node's modules to workerd's, also without `node:` and in CommonJS. */
const nodeModules: Plugin = {
  name: "node modules",
  setup({ onResolve, onLoad }) {
    const names = new Set(builtinModules);
    onResolve({ filter: /^[a-z_/]+$|^node:/ }, ({ path, kind }) => {
      const name = path.replace(/^node:/, "");
      if (!names.has(name)) return undefined;
      return kind === "require-call" || !path.startsWith("node:") ? { path: name, namespace: "node-modules" } : { path, external: true };
    });
    onLoad({ filter: /./, namespace: "node-modules" }, ({ path }) => ({
      contents: `import * as all from "node:${path}"; module.exports = all.default ?? all;`,
    }));
  },
};

/**
 * Runs test/package/runtimes/`file` on workerd, bundled as wrangler does.
 *
 * @param miniflare - the folder of that package
 * @param outbound - handles its outgoing calls; without it, they go to the network
 * @param durable - the class of its Durable Object, bound as CONTRACT
 */
export async function startWorker(miniflare: string, file: string, outbound?: (request: Request) => Promise<void>, durable?: string): Promise<Worker> {
  const bundle = await build({
    stdin: { contents: `export { worker as default${durable ? `, ${durable}` : ""} } from "./test/package/runtimes/${file}";`, resolveDir: root },
    bundle: true,
    format: "esm",
    platform: "browser",
    conditions: ["workerd", "worker", "browser"],
    external: ["cloudflare:*"],
    plugins: [nodeModules],
    logLevel: "error",
    write: false,
  });
  const { Miniflare, Response } = (await import(pathToFileURL(join(miniflare, "dist/src/index.js")).href)) as {
    readonly Miniflare: new (options: object) => Miniflare;
    readonly Response: new () => unknown;
  };
  const workerd = new Miniflare({
    modules: [{ type: "ESModule", path: "worker.mjs", contents: bundle.outputFiles[0]?.text }],
    compatibilityDate: "2026-07-01",
    compatibilityFlags: ["nodejs_compat"],
    ...(durable && { durableObjects: { CONTRACT: { className: durable, useSQLite: true } } }),
    ...(outbound && { outboundService: (request: Request) => outbound(request).then(() => new Response()) }),
  });
  await workerd.ready;
  return {
    fetch: (path, init) => workerd.dispatchFetch(`http://127.0.0.1${path}`, init),
    scheduled: async () => (await (await workerd.getWorker()).scheduled({ cron: "* * * * *" })).outcome,
    stop: () => workerd.dispose(),
  };
}
