import { createRequire } from "node:module";
import type { PrismaPg } from "@prisma/adapter-pg";
import { getPrismaClient } from "@prisma/client/runtime/client";

const require = createRequire(import.meta.url);
const compiler = "@prisma/client/runtime/query_compiler_fast_bg.postgresql";

/** The types of `prisma generate` that are used here. */
type GeneratedClient = new (options: {
  adapter: PrismaPg;
}) => {
  $queryRawUnsafe<T = unknown>(query: string, ...values: unknown[]): Promise<T>;
  $transaction<T>(work: () => Promise<T>): Promise<T>;
  $disconnect(): Promise<void>;
};

/** The output of `prisma generate` for a schema without models, copied here because the generator takes 300 MB. */
export const PrismaClient = getPrismaClient({
  previewFeatures: [],
  clientVersion: "7",
  engineVersion: "7",
  activeProvider: "postgresql",
  inlineSchema: 'datasource db {\n  provider = "postgresql"\n}\n',
  runtimeDataModel: { models: {}, enums: {}, types: {} },
  parameterizationSchema: { strings: [], graph: "AAAA" },
  compilerWasm: {
    getRuntime: async () => require(`${compiler}.js`),
    // The types of Node 20 lack WebAssembly.
    getQueryCompilerWasmModule: async () =>
      new (Reflect.get(globalThis, "WebAssembly").Module)(Buffer.from(require(`${compiler}.wasm-base64.js`).wasm, "base64")),
    importName: "./query_compiler_fast_bg.js",
  },
}) as unknown as GeneratedClient;
