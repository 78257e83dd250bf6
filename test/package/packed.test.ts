import { mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { manifest, modules, nameOf, root } from "./built.js";
import { missing, runFile, runtimeOf, runtimes } from "./programs.js";
import { command, linkFromHere, makeClone, makeProject, packOverLeavings, registryAnswers, startCommand } from "./projects.js";
import { passed } from "./smoke.js";

const minutes = 60_000;
const folder = await mkdtemp(join(await realpath(tmpdir()), "phoneproof-packed-"));
const seconds: Record<string, number> = {};

/** Runs the work and records how long it took. */
async function timed<T>(project: string, work: () => Promise<T>): Promise<T> {
  const started = performance.now();
  const result = await work();
  seconds[project] = Math.round((performance.now() - started) / 100) / 10;
  return result;
}

/** The files of a project that does what smoke.cjs does. */
const plain = { "smoke.cjs": "smoke.cjs", "run/main.js": "projects/main.js" };

let reachable = false;
let tarball: string;
let files: readonly string[];
beforeAll(async () => {
  reachable = await registryAnswers();
  if (!reachable) return;
  const clone = await makeClone(join(folder, "clone"));
  ({ tarball, files } = await timed("npm pack in the clone", () => packOverLeavings(clone)));
}, 10 * minutes);
beforeEach(({ skip }) => {
  if (!reachable) skip(missing("phoneproof's dependencies"));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
  console.log(
    Object.entries(seconds)
      .map(([project, took]) => `${took.toFixed(1).padStart(6)} s  ${project}`)
      .join("\n"),
  );
});

describe("the files of npm pack, in a clone with files of an older build", () => {
  test("include every file that package.json names, the documents, licences, alerts and examples/serve", () => {
    const { bin, main, module, types } = manifest;
    const targets = Object.values(manifest.exports).flatMap((target) => (typeof target === "string" ? target : Object.values(target).flatMap(Object.values)));
    const named = [...targets, ...Object.values(bin), main, module, types].map((file) => file.replace("./", ""));
    expect(named.length).toBeGreaterThan(4 * modules.length);
    const others = ["README.md", "CHANGELOG.md", "LICENSE", "package.json", "dist/LICENSES.txt", "docs/runtimes.md", "observability/alerts.yml"];
    const example = ["Dockerfile", "compose.yaml", ".dockerignore", ".env.example", "package.json", "verifier.js"].map((name) => `examples/serve/${name}`);
    expect([...named, ...others, ...example].filter((file) => !files.includes(file))).toEqual([]);
  });

  test("include nothing else, and no file of the older build", () => {
    expect(files.filter((file) => file === "dist/gone.js" || file.startsWith("docs/.vitepress/"))).toEqual([]);
    expect(
      files.filter(
        (file) =>
          !/^(dist|docs|observability|examples\/serve)\/|^(README\.md|CHANGELOG\.md|LICENSE|llms\.txt|package\.json|openapi(-[a-z0-9-]+)?\.json)$/.test(file),
      ),
    ).toEqual([]);
  });
});

/** Every subpath, loaded by its name. */
const names = modules.map(nameOf);
const declarations = { "consumer.ts": "declarations/consumer.ts", "consumer.cts": "declarations/consumer.cts", "program.ts": "projects/program.ts" };

/** Compiles all three files with a TypeScript of this project, and returns what the emitted program prints. */
async function compileAndRun(project: string, compiler: "typescript" | "typescript-7", options: readonly string[]): Promise<string> {
  const strict = ["--strict", "--skipLibCheck", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--target", "ES2022", "--types", "node"];
  const tsc = join(root, "node_modules", compiler, "bin/tsc");
  await command(project, process.execPath, [tsc, ...strict, ...options, "--outDir", "out", ...Object.keys(declarations)]);
  return command(project, process.execPath, ["out/program.js"]);
}

/** Creates and checks by requests to a started project. `code` returns the code of the message. */
async function verifies(origin: string, key: string, code: () => Promise<string>): Promise<void> {
  const post = async (path: string, fields: object): Promise<Readonly<Record<string, string>>> => {
    const response = await fetch(origin + path, {
      method: "POST",
      headers: { "content-type": "application/json", "x-api-key": key },
      body: JSON.stringify({ customer_uuid: "5f0c7f3e-1d2b-4c3a-9e8f-7a6b5c4d3e2f", ...fields }),
    });
    return (await response.json()) as Record<string, string>;
  };
  const created = await post("/v1/authentication", { phone_number: "+33612345678" });
  expect(created).toMatchObject({ status: "pending" });
  const { authentication_uuid } = created;
  expect(await post("/v1/check", { authentication_uuid, check_code: await code() })).toEqual({ authentication_uuid, status: "valid" });
}

describe("installed into a fresh project", { timeout: 5 * minutes }, () => {
  test("of ES modules: JavaScript and TypeScript run, every subpath loads, and the command is from this build", () =>
    timed("ES modules, TypeScript and JavaScript", async () => {
      const project = await makeProject(join(folder, "esm"), "module", { ...plain, ...declarations }, [tarball]);
      await linkFromHere(project, "@types/node", "@opentelemetry/api");
      expect(await command(project, "npx", ["--no-install", "phoneproof", "--help"])).toContain("phoneproof dev");
      expect(await command(project, process.execPath, ["run/main.js", ...names])).toBe(passed);
      expect(await compileAndRun(project, "typescript-7", ["--module", "Node16"])).toBe("pending valid\n");
    }));

  test("of CommonJS: JavaScript and TypeScript run, and every subpath loads, with its types under node10 resolution", () =>
    timed("CommonJS, TypeScript (node10) and JavaScript", async () => {
      const project = await makeProject(join(folder, "cjs"), undefined, { "smoke.cjs": "smoke.cjs", "run/main.cjs": "projects/main.cjs", ...declarations }, [
        tarball,
      ]);
      await linkFromHere(project, "@types/node", "@opentelemetry/api");
      expect(await command(project, process.execPath, ["run/main.cjs", ...names])).toBe(passed);
      expect(await compileAndRun(project, "typescript", ["--module", "CommonJS", "--moduleResolution", "node10", "--esModuleInterop"])).toBe("pending valid\n");
    }));

  // docs/next.test.ts does this for Next.js.

  /** Bun installs the package itself. `deno install` links a tarball without unpacking it, so npm installs there. */
  test.for(["Bun", "Deno"] as const)("of %s: the package serves requests and verifies a number", (runtime, { skip }) =>
    timed(runtime, async () => {
      const program = await runtimeOf(runtime);
      if (program === undefined) return skip(missing(runtimes[runtime]));
      const entry = `${runtime.toLowerCase()}.js`;
      const served = { "service.js": "runtimes/service.js", [entry]: `runtimes/${entry}` };
      const project = await makeProject(join(folder, runtime), "module", served, runtime === "Deno" ? [tarball] : []);
      if (runtime === "Bun") await command(project, program, ["add", tarball]);
      const app = startCommand(project, program, [...runFile[runtime], entry]);
      try {
        const origin = await app.seen(/(http:\S+)/);
        const about = async () => (await (await fetch(`${origin}/about`)).json()) as { api_key: string; messages: { code: string }[] };
        await verifies(origin, (await about()).api_key, async () => (await about()).messages[0]?.code ?? "");
      } finally {
        await app.stop();
      }
    }),
  );
});

describe("from the clone itself", { timeout: 10 * minutes }, () => {
  test("no script of the package is one that npm asks to approve when it installs the file", async () => {
    const { scripts } = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as { scripts: Record<string, string> };
    expect(["preinstall", "install", "postinstall", "prepare"].filter((name) => name in scripts)).toEqual([]);
  });

  test("npm install of the built clone's folder runs", () =>
    timed("from /clone", async () => {
      const project = await makeProject(join(folder, "from-folder"), "module", plain, [join(folder, "clone")]);
      expect(await command(project, process.execPath, ["run/main.js"])).toBe(passed);
    }));
});
