import { join } from "node:path";
import ts from "typescript";
import { beforeAll, describe, expect, it } from "vitest";
import openapi from "../../openapi.json" with { type: "json" };
import { root } from "./built.js";

// What an editor shows on hover: the doc comments of the built declarations.

interface Field {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Field>>;
}

/** The types of the wire, and their names in the OpenAPI document. */
const wire = {
  AuthenticationResponse: "Authentication",
  RetryResponse: "RetryResult",
  CheckResponse: "CheckResult",
  LookupResponse: "PhoneLookupResult",
  ErrorBody: "Error",
  DeliveryStatusEvent: "DeliveryStatusEvent",
} as const;
const schemas = openapi.components.schemas as Readonly<Record<string, Field>>;

let checker: ts.TypeChecker;
let exported: ReadonlyMap<string, ts.Symbol>;
let exportedByClient: ReadonlyMap<string, ts.Symbol>;

beforeAll(() => {
  const [index, client] = [join(root, "dist/index.d.ts"), join(root, "dist/client.d.ts")];
  const program = ts.createProgram([index, client], {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    strict: true,
  });
  checker = program.getTypeChecker();
  const exportsOf = (entry: string) => {
    const module = checker.getSymbolAtLocation(program.getSourceFile(entry) as ts.SourceFile) as ts.Symbol;
    return new Map(
      checker.getExportsOfModule(module).map((symbol) => [symbol.name, symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol]),
    );
  };
  exported = exportsOf(index);
  exportedByClient = exportsOf(client);
});

const typeOf = (name: string, among = exported) => checker.getDeclaredTypeOfSymbol(among.get(name) as ts.Symbol);
const words = (symbol: ts.Symbol) => ts.displayPartsToString(symbol.getDocumentationComment(checker));
const worded = (type: ts.Type) => Object.fromEntries(checker.getPropertiesOfType(type).map((field) => [field.name, words(field)]));
const described = ({ properties = {} }: Field) => Object.fromEntries(Object.entries(properties).map(([name, { description }]) => [name, description]));

describe("request and response fields have doc comments", () => {
  it.each(Object.entries(wire))("%s: the comments equal the descriptions of the OpenAPI document", (name, schema) => {
    expect(worded(typeOf(name))).toEqual(described(schemas[schema] as Field));
  });

  it("the data of a callback: the comments equal the descriptions of the OpenAPI document", () => {
    const data = schemas.DeliveryStatusEvent?.properties?.data as Field;
    expect(worded(checker.getTypeOfSymbol(checker.getPropertyOfType(typeOf("DeliveryStatusEvent"), "data") as ts.Symbol))).toEqual(described(data));
  });

  it("every field of every schema of the OpenAPI document has a description", () => {
    const without = (path: string, { properties = {} }: Field): string[] =>
      Object.entries(properties).flatMap(([name, field]) => [...(field.description ? [] : [`${path}.${name}`]), ...without(`${path}.${name}`, field)]);
    expect(Object.entries(schemas).flatMap(([name, schema]) => without(name, schema))).toEqual([]);
  });

  /** The fields without a doc comment in what a method accepts and returns. */
  function wordless(owner: ts.Type, method: string): string[] {
    const [signature] = checker.getTypeOfSymbol(checker.getPropertyOfType(owner, method) as ts.Symbol).getCallSignatures() as [ts.Signature];
    const [request] = signature.getParameters() as [ts.Symbol];
    const answered = checker.getAwaitedType(signature.getReturnType()) as ts.Type;
    const [element = answered] = checker.isArrayType(answered) ? checker.getTypeArguments(answered as ts.TypeReference) : [];
    const fields = [checker.getTypeOfSymbol(request), element].flatMap((type) => Object.entries(worded(type)));
    expect(fields.length).toBeGreaterThan(2);
    return fields.filter(([, text]) => text === "").map(([name]) => name);
  }

  it.each(["createAuthentication", "retry", "check", "lookup", "history", "erase", "unlock"])(
    "verifier.%s: every field that it accepts or returns has one",
    (method) => expect(wordless(typeOf("Verifier"), method)).toEqual([]),
  );

  it.each(["createAuthentication", "retry", "check", "lookup"])("client.%s: every field that it accepts or returns has one", (method) =>
    expect(wordless(typeOf("Client", exportedByClient), method)).toEqual([]),
  );
});
