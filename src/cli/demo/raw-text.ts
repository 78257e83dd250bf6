import { readFile } from "node:fs/promises";
import { relative, resolve } from "node:path";
import type { Options } from "tsup";

type Plugin = NonNullable<Options["esbuildPlugins"]>[number];

/** An esbuild plugin, for the build only: `import text from "./file?raw"` bundles the file's text, as Vite does. */
export function rawText(): Plugin {
  return {
    name: "raw-text",
    setup(build) {
      build.onResolve({ filter: /\?raw$/ }, ({ path, resolveDir }) => ({ path: relative(".", resolve(resolveDir, path)), namespace: "raw-text" }));
      // The path becomes a comment of the bundle, so it is relative. It keeps its `?raw` until here, because tsup handles every path that ends in `.css`, in any namespace.
      build.onLoad({ filter: /./, namespace: "raw-text" }, async ({ path }) => {
        const file = path.slice(0, -"?raw".length);
        return { contents: await readFile(file, "utf8"), loader: "text", watchFiles: [resolve(file)] };
      });
    },
  };
}
