import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { Plugin } from "esbuild";

/** An esbuild plugin, used by the build only: `import text from "./file?raw"` puts the file's text into the bundle, as Vite does. */
export function rawText(): Plugin {
  return {
    name: "raw-text",
    setup(build) {
      build.onResolve({ filter: /\?raw$/ }, ({ path, resolveDir }) => ({ path: resolve(resolveDir, path.slice(0, -"?raw".length)), namespace: "raw-text" }));
      build.onLoad({ filter: /./, namespace: "raw-text" }, async ({ path }) => ({ contents: await readFile(path, "utf8"), loader: "text", watchFiles: [path] }));
    },
  };
}
