import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import ts from "typescript";
import { expect, it } from "vitest";
import { newApp } from "../hostile/bundles-kit.js";
import { manifest, modules, nameOf, root } from "./built.js";

type Exports = Exclude<(typeof manifest.exports)[string], string>;

/** What a library can export with an inferred type: each property, argument and result of what a module exports. */
function inferredFrom(module: string, exported: readonly ts.Symbol[], checker: ts.TypeChecker): string {
  const lines = exported.flatMap((one) => {
    const { name } = one;
    const symbol = one.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(one) : one;
    const { flags } = symbol;
    const declared = checker.getDeclaredTypeOfSymbol(symbol);
    const isGeneric = symbol.declarations?.some((one) => (one as ts.InterfaceDeclaration).typeParameters !== undefined);
    if (flags & ts.SymbolFlags.Function) {
      const signatures = checker.getSignaturesOfType(checker.getTypeOfSymbol(symbol), ts.SignatureKind.Call);
      if (signatures.some(({ typeParameters }) => typeParameters)) return [];
      const result = `export const result_${name} = (...all: Parameters<typeof of.${name}>) => of.${name}(...all);`;
      const first = `export const first_${name} = (...[first]: Parameters<typeof of.${name}>) => first;`;
      return signatures.some(({ parameters }) => parameters.length > 0) ? [result, first] : [result];
    }
    if (!(flags & (ts.SymbolFlags.Interface | ts.SymbolFlags.TypeAlias)) || isGeneric || !(declared.flags & ts.TypeFlags.Object)) return [];
    if (checker.getSignaturesOfType(declared, ts.SignatureKind.Call).length > 0) return [];
    return declared.getProperties().flatMap((property) => {
      if (!/^[A-Za-z_]\w*$/.test(property.name)) return [];
      return `export const ${name}_${property.name} = (from: of.${name}) => from.${property.name};`;
    });
  });
  return [`import * as of from "${module}";`, ...lines].join("\n");
}

it("a library with `declaration: true` can export any property, argument and result with its type inferred", async () => {
  const app = newApp(["@opentelemetry/api", "@types/node"]);
  try {
    const entries = modules.map((subpath) => [nameOf(subpath), join(root, (manifest.exports[subpath] as Exports).import.types)] as const);
    const program = ts.createProgram(
      entries.map(([, file]) => file),
      { module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext, skipLibCheck: true, types: ["node"] },
    );
    const checker = program.getTypeChecker();
    const files = entries.map(([name, file], at) => {
      const module = checker.getSymbolAtLocation(program.getSourceFile(file) as ts.SourceFile) as ts.Symbol;
      return app.write(`file${at}.ts`, inferredFrom(name, checker.getExportsOfModule(module), checker));
    });
    const options = ["--declaration", "--emitDeclarationOnly", "--outDir", join(app.folder, "out"), "--strict", "--skipLibCheck", "--types", "node"];
    const tsc = [join(root, "node_modules/typescript-7/bin/tsc"), "--module", "nodenext", "--target", "es2022", ...options, ...files];
    const { stdout } = await promisify(execFile)(process.execPath, tsc, { cwd: app.folder }).catch((error) => error as { stdout: string });
    expect(stdout).toBe("");
  } finally {
    app.remove();
  }
});
