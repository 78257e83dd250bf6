import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { expect, test } from "vitest";
import { manifest, modules, root, run } from "./built.js";
import { passed } from "./smoke.js";

test("the ESM and the CommonJS copy share memory stores with a name", async () => {
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

/** They export no VerifierError, and recognise those of other copies by a mark. */
const wires = ["./dist/better-auth.cjs", "./dist/hooks.cjs", "./dist/prelude-v2.cjs", "./dist/twilio-verify.cjs"];

test("only one CommonJS file, besides the wires, defines VerifierError: chunks are shared only in ESM", () => {
  const files = modules.map((subpath) => (manifest.exports[subpath] as { readonly require: { readonly default: string } }).require.default);
  const having = files.filter((file) => readFileSync(join(root, file), "utf8").includes("VerifierError = class"));
  expect(having.filter((file) => !wires.includes(file))).toEqual(["./dist/index.cjs"]);
});

test("instanceof VerifierError is true for the errors of both copies, and only for those", async () => {
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

test.each(["module", "commonjs"] as const)("a wire recognises the errors of a verifier, as %s", async (format) => {
  const program = `
    const customer_uuid = "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f";
    const { key } = generateApiKey();
    const verifier = createVerifier({ store: memoryStore(), sender: { send: async () => ({ outcome: "accepted" }) }, secret: key, countries: ["FR"],
      customers: [{ customer_uuid, keys: [key] }], callbacks: { worker: false } });
    const ask = async (handler, path, authorization, init) =>
      (await handler(new Request("http://localhost" + path, { method: "POST", headers: { authorization, ...init.headers }, body: init.body }))).status;
    const prelude = { headers: { "content-type": "application/json" }, body: JSON.stringify({ target: { type: "phone_number", value: "+447400123456" } }) };
    (async () => {
      const handler = fetchHandler([preludeV2(verifier), twilioVerify(verifier)]);
      const twilio = { headers: { "content-type": "application/x-www-form-urlencoded" }, body: "To=%2B447400123456&Channel=sms" };
      const path = "/v2/Services/VA6f1e7d2c8a4b4c3d9e5f0a1b2c3d4e5f/Verifications";
      const basic = (key) => "Basic " + btoa("AC6f1e7d2c8a4b4c3d9e5f0a1b2c3d4e5f:" + key);
      console.log(await ask(handler, "/v2/verification", "Bearer " + key, prelude), await ask(handler, "/v2/verification", "Bearer no", prelude),
        await ask(handler, path, basic(key), twilio), await ask(handler, path, basic("no"), twilio));
    })();`;
  const names = {
    phoneproof: "createVerifier, generateApiKey",
    "phoneproof/memory": "memoryStore",
    "phoneproof/fetch": "fetchHandler",
    "phoneproof/prelude-v2": "preludeV2",
    "phoneproof/twilio-verify": "twilioVerify",
  };
  const load = (from: string) => (format === "module" ? `await import("${from}")` : `require("${from}")`);
  const imports = Object.entries(names).map(([from, what]) => `const { ${what} } = ${load(from)};`);
  expect(await run(format, imports.join("\n") + program)).toBe("400 401 403 401\n");
});

test("only the subpaths of the wires load the code of wires", () => {
  const dist = join(root, "dist");
  const loadedBy = (file: string, seen = new Set<string>()): Set<string> => {
    if (seen.has(file)) return seen;
    seen.add(file);
    const text = readFileSync(file, "utf8");
    for (const [, from = ""] of text.matchAll(/(?:\bfrom ?|\bimport ?|\bimport\(|\brequire\()"(\.[^"]+)"/g)) loadedBy(join(dirname(file), from), seen);
    return seen;
  };
  const hasWires = (subpath: string) =>
    (["import", "require"] as const).map((format) => {
      const file = join(root, (manifest.exports[subpath] as Record<typeof format, { default: string }>)[format].default);
      return [...loadedBy(file)].some((one) => /\bWireError\b/.test(readFileSync(one, "utf8")));
    });
  const having = modules.filter((subpath) => hasWires(subpath).includes(true));
  expect(having).toEqual(["./prelude-v2", "./twilio-verify"]);
  expect(having.map(hasWires)).toEqual([
    [true, true],
    [true, true],
  ]);
  expect(loadedBy(join(dist, "index.js")).size).toBeGreaterThan(1);
});

test("a bundle of the host keeps the package's side-effect imports", async () => {
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
