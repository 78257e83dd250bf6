import { dirname, posix } from "node:path";
import ts from "typescript";

/** One import, re-export, `import()` or `import("…")` type of a file. */
export interface Import {
  readonly specifier: string;
  readonly typeOnly: boolean;
}

/** Every import of another module in the text. */
export function importsOf(path: string, text: string): Import[] {
  const found: Import[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) {
      if (node.moduleSpecifier !== undefined) found.push({ specifier: (node.moduleSpecifier as ts.StringLiteral).text, typeOnly: isTypeOnly(node) });
    } else if (ts.isCallExpression(node) && (node.expression.kind === ts.SyntaxKind.ImportKeyword || node.expression.getText() === "require")) {
      const [target] = node.arguments;
      if (target !== undefined && ts.isStringLiteralLike(target)) found.push({ specifier: target.text, typeOnly: false });
    } else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
      found.push({ specifier: (node.argument.literal as ts.StringLiteral).text, typeOnly: true });
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true));
  return found;
}

function isTypeOnly(node: ts.ImportDeclaration | ts.ExportDeclaration): boolean {
  if (ts.isExportDeclaration(node))
    return node.isTypeOnly || (node.exportClause !== undefined && ts.isNamedExports(node.exportClause) && allTypes(node.exportClause.elements));
  const clause = node.importClause;
  if (clause === undefined) return false;
  if (clause.isTypeOnly) return true;
  return clause.name === undefined && clause.namedBindings !== undefined && ts.isNamedImports(clause.namedBindings) && allTypes(clause.namedBindings.elements);
}

function allTypes(elements: ts.NodeArray<ts.ImportSpecifier | ts.ExportSpecifier>): boolean {
  return elements.length > 0 && elements.every((element) => element.isTypeOnly);
}

/** The tower of `src/README.md`. A storey is a folder or a single file; a higher number is higher up. */
const floors: readonly (readonly [path: string, floor: number])[] = [
  ["package.json", 0],
  ["src/contract/", 1],
  ["src/domain/", 2],
  ["src/errors.ts", 2],
  ["src/ports/", 3],
  ["src/options/", 4],
  ["src/core/", 5],
  ["src/observability/", 6],
  ["src/routing/", 6],
  ["src/callbacks/", 7],
  ["src/access/", 8],
  ["src/messages/", 9],
  ["src/operations/", 10],
  ["src/http/", 11],
  ["src/composition.ts", 12],
  ["src/create-verifier.ts", 13],
  ["src/lazy-verifier.ts", 14],
  ["src/index.ts", 15],
  ["src/wires/kit/", 16],
  ["src/wires/prelude-v2/", 17],
  ["src/wires/twilio-verify/", 17],
  ["src/hooks/kit/", 16],
  ["src/hooks/", 17],
  ["adapters/", 18],
  ["clients/", 18],
  ["src/testing/index.ts", 21],
  ["src/testing/", 19],
  ["tools/simulate/", 20],
  ["src/cli/", 21],
];

/** Adapters and clients, which import only types of the library. */
const outside = 18;

/** Modules that a wire or a hook uses only through the `Verifier` that is passed to it. */
const engine = /^src\/(core|observability|routing|callbacks|access|messages|operations)\/|^src\/[a-z-]+(?<!errors)\.ts$/;

/**
 * Pure data that adapters may also import at run time, so that senders and verifier agree: the table of GSM 03.38, by
 * which segments are counted, the countries, and the choice of a language; how results of the caller's functions are
 * taken, how environment variables are read, and how repeated lines of the log are limited.
 */
const pureData: readonly string[] = [
  "src/core/throttled-logger.ts",
  "src/domain/gsm.ts",
  "src/domain/countries.ts",
  "src/domain/environment.ts",
  "src/domain/languages.ts",
  "src/domain/promises.ts",
];

/** What adapters may import from another folder: the code shared by HTTP clients, and that shared by carriers. */
const kits: readonly (readonly [kit: string, of: string])[] = [
  ["adapters/kit", "adapters/"],
  ["adapters/sms/kit", "adapters/sms/"],
];

/** The errors in the imports of one file, one sentence each. Paths are relative to the project, with `/`. */
export function faultsOf(path: string, text: string): string[] {
  const storey = storeyOf(path);
  if (storey === undefined) return [`${path} stands on no floor`];
  const [home, floor] = storey;
  return importsOf(path, text).flatMap(({ specifier, typeOnly }) => {
    const fault = (why: string) => [`${path} (floor ${floor}) imports "${specifier}": ${why}`];
    if (!specifier.startsWith(".")) return packageError(path, specifier, typeOnly, fault);
    const target = posix.join(dirname(path), specifier).replace(/\.js$/, ".ts");
    const below = storeyOf(target);
    if (below === undefined) return fault("that stands on no floor");
    if (pureData.includes(path)) return fault("pure data imports nothing");
    if (floor === outside) {
      if (dirname(target) === dirname(path)) return [];
      if (kits.some(([kit, of]) => dirname(target) === kit && path.startsWith(of))) return [];
      if (!target.startsWith("src/")) return fault("an adapter has no business with another folder's");
      if (below[1] > floor) return fault("that is above");
      return typeOnly || pureData.includes(target) ? [] : fault("adapters import types only from src");
    }
    if (/^src\/(wires|hooks)\//.test(path) && !typeOnly && engine.test(target)) return fault("a wire knows the engine by its types only");
    if (below[0] === home && home.endsWith("/")) return [];
    return below[1] < floor ? [] : fault(below[1] === floor ? "that is on the same floor" : "that is above");
  });
}

function storeyOf(path: string): readonly [path: string, floor: number] | undefined {
  return floors.find(([start]) => (start.endsWith("/") ? path.startsWith(start) : path === start));
}

/** Packages that only one file may import. */
const homes: readonly (readonly [name: string, place: string])[] = [
  ["tsyringe", "src/composition.ts"],
  ["reflect-metadata", "src/composition.ts"],
];

function packageError(path: string, specifier: string, typeOnly: boolean, fault: (why: string) => string[]): string[] {
  if (path.startsWith("src/contract/") && specifier !== "zod") return fault("the contract imports zod alone");
  if (path.startsWith("src/ports/") && !typeOnly) return fault("ports are interfaces, erased at build");
  const home = homes.find(([name]) => specifier === name || specifier.startsWith(`${name}/`));
  return home !== undefined && path !== home[1] ? fault(`only ${home[1]} may`) : [];
}

/** Groups of files that import each other in a circle, types included. */
export function circlesIn(texts: ReadonlyMap<string, string>): string[][] {
  const targets = new Map(
    [...texts].map(([path, text]) => [path, importsOf(path, text).map(({ specifier }) => posix.join(dirname(path), specifier).replace(/\.js$/, ".ts"))]),
  );
  const reached = new Map<string, ReadonlySet<string>>();
  for (const start of texts.keys()) {
    const seen = new Set<string>();
    const waiting = [...(targets.get(start) ?? [])];
    for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
      if (seen.has(path)) continue;
      seen.add(path);
      waiting.push(...(targets.get(path) ?? []));
    }
    reached.set(start, seen);
  }
  const inCircles = [...texts.keys()].filter((path) => reached.get(path)?.has(path));
  const groups = new Map(
    inCircles.map((path) => [inCircles.filter((other) => path === other || (reached.get(path)?.has(other) && reached.get(other)?.has(path))).join(), path]),
  );
  return [...groups.keys()].map((group) => group.split(","));
}
