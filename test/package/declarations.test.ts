import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { promisify } from "node:util";
import ts from "typescript";
import { describe, expect, test } from "vitest";
import { declarationFiles, modules, nameOf, root } from "./built.js";
import { importsOf } from "./layers.js";

const folder = join(root, "test/package/declarations");

/** What a declaration may import from outside: our schema library and Node. No framework, driver or container. */
const mentionable = /^(zod$|node:)/;

describe("the emitted declarations", () => {
  test.each([
    ["typescript", "node16"],
    ["typescript-7", "node16"],
    ["typescript-7", "bundler"],
  ])("compile with %s under moduleResolution %s, with skipLibCheck off", async (compiler, resolution) => {
    const tsc = join(root, "node_modules", compiler, "bin/tsc");
    const { stdout } = await promisify(execFile)(process.execPath, [tsc, "-p", join(folder, `tsconfig.${resolution}.json`)]).catch(
      (error) => error as { stdout: string },
    );
    expect(stdout).toBe("");
  });

  test.each(["consumer.ts", "consumer.cts"])("%s, which is compiled, imports every subpath", (file) => {
    const imported = readFileSync(join(folder, file), "utf8").match(/"phoneproof[^"]*"/g);
    expect(imported?.map((name) => JSON.parse(name) as string).sort()).toEqual(modules.map(nameOf).sort());
  });

  test("have no `any`", () => {
    expect(declarationFiles().length).toBeGreaterThanOrEqual(2 * modules.length);
    expect(declarationFiles().flatMap((file) => anysIn(relative(root, file), readFileSync(file, "utf8")))).toEqual([]);
  });

  test("import no types of other packages", () => {
    // It accepts and returns OpenTelemetry's types; its users have that package installed.
    const own = (file: string, specifier: string) => /\botel\.d\.c?ts$/.test(file) && specifier === "@opentelemetry/api";
    const mentioned = declarationFiles().flatMap((file) =>
      importsOf(file, readFileSync(file, "utf8")).flatMap(({ specifier }) => (own(file, specifier) ? [] : [specifier])),
    );
    expect(mentioned).toContain("zod");
    expect(mentioned.filter((specifier) => !specifier.startsWith(".") && !mentionable.test(specifier))).toEqual([]);
  });

  test("anysIn finds a nested `any`, and none in comments", () => {
    expect(anysIn("x.d.ts", "/** any */ export declare function f(x: Map<string, any[]>): unknown;")).toEqual(["x.d.ts:1"]);
  });
});

/** Places where the keyword `any` is a type. */
function anysIn(file: string, text: string): string[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (node.kind === ts.SyntaxKind.AnyKeyword) found.push(`${file}:${source.getLineAndCharacterOfPosition(node.getStart()).line + 1}`);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}
