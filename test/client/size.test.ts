import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { expect, test } from "vitest";
import { root } from "../package/built.js";

/** The built subpath as a bundler ships it. */
async function shipped(contents: string): Promise<Uint8Array> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: root },
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    logLevel: "error",
    write: false,
  });
  return outputFiles[0]?.contents as Uint8Array;
}

test("phoneproof/client is below 3 kB minified, and below 1.7 kB gzipped", async () => {
  const bytes = await shipped(`export * from "phoneproof/client";`);
  expect(bytes.length).toBeGreaterThan(1_000);
  expect(bytes.length).toBeLessThan(3_000);
  expect(gzipSync(bytes).length).toBeLessThan(1_700);
});

test("who imports a name of it only ships what that needs", async () => {
  expect((await shipped(`export { FaultError } from "phoneproof/client";`)).length).toBeLessThan(400);
});
