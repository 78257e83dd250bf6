import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { expect, test } from "vitest";
import { manifest, modules, root, run } from "./built.js";
import { passed } from "./smoke.js";

test("the ESM and the CommonJS copy share the memory stores that have a name", async () => {
  const printed = await run(
    "module",
    `
    import { createRequire } from "node:module";
    import { memoryStore as one } from "phoneproof/memory";
    const { memoryStore: other } = createRequire(import.meta.url)("phoneproof/memory");
    const keepUntil = Date.now() + 60_000;
    await one({ name: "shared" }).put("key", "value", keepUntil);
    console.log(one === other, await other({ name: "shared" }).get("key"), await other().get("key"));`,
  );
  expect(printed).toBe("false value undefined\n");
});

test("VerifierError is one class, whichever CommonJS subpath it comes from: chunks are shared in ESM alone", () => {
  const files = modules.map((subpath) => (manifest.exports[subpath] as { readonly require: { readonly default: string } }).require.default);
  expect(files.filter((file) => readFileSync(join(root, file), "utf8").includes("VerifierError = class"))).toEqual(["./dist/index.cjs"]);
});

test("instanceof VerifierError holds for the errors of both copies, and for no others", async () => {
  const printed = await run(
    "module",
    `
    import { createRequire } from "node:module";
    import { VerifierError as One } from "phoneproof";
    const { VerifierError: Other, createVerifier } = createRequire(import.meta.url)("phoneproof");
    class Mine extends One {}
    let thrown;
    try { createVerifier({}); } catch (error) { thrown = error; }
    const others = [new Error("no"), { name: "VerifierError", code: "forbidden" }, null, undefined, "VerifierError"];
    console.log(One === Other, thrown instanceof One, thrown instanceof Other, new One("forbidden", "") instanceof Other);
    console.log(others.some((other) => other instanceof One), thrown instanceof Mine, new Mine("forbidden", "") instanceof Mine, new Mine("forbidden", "") instanceof Other);
    console.log(Object.keys(thrown).join());`,
  );
  expect(printed).toBe("false true true true\nfalse false true true\ncode,name\n");
});

test("a bundle of the host keeps what the package imports for its effect alone", async () => {
  const folder = await mkdtemp(join(root, "node_modules/.bundle-"));
  try {
    const outfile = join(folder, "bundle.mjs");
    await build({
      stdin: {
        contents: `export { createVerifier, generateApiKey, VerifierError } from "phoneproof"; export { memoryStore } from "phoneproof/memory";`,
        resolveDir: root,
      },
      bundle: true,
      format: "esm",
      platform: "node",
      banner: { js: `import { createRequire } from "node:module"; const require = createRequire(import.meta.url);` },
      outfile,
    });
    const printed = await run(
      "module",
      `import smoke from "./test/package/smoke.cjs"; const bundle = await import(${JSON.stringify(pathToFileURL(outfile).href)}); await smoke(() => bundle);`,
    );
    expect(printed).toBe(passed);
  } finally {
    await rm(folder, { recursive: true });
  }
});
