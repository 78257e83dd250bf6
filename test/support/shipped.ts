import { build } from "esbuild";
import { root } from "../package/built.js";

/** What a bundler ships of a built subpath. */
export async function shipped(contents: string): Promise<Uint8Array> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: root },
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    charset: "utf8",
    logLevel: "error",
    write: false,
  });
  return outputFiles[0]?.contents as Uint8Array;
}
