import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SqliteHandle } from "../../adapters/store/sqlite/index.js";

/** An open handle that a test closes. */
export type OwnHandle = SqliteHandle & { close(): void };

export type OpenSqlite = (file: string) => OwnHandle;

type Library = new (file: string) => OwnHandle;

const require = createRequire(import.meta.url);

function installed(name: string): Library | undefined {
  try {
    return require(name) as Library;
  } catch {
    return undefined;
  }
}

// The bundlers of the tests know no `node:sqlite`, and Node.js 20 has none.
const builtIn = process.getBuiltinModule as (name: string) => { readonly DatabaseSync: Library } | undefined;

/** BETTER_SQLITE3 names the folder of that package, which has to be compiled and is no dependency for that. */
const found: Readonly<Record<string, Library | undefined>> = {
  libsql: installed("libsql"),
  "node:sqlite": builtIn("node:sqlite")?.DatabaseSync,
  "better-sqlite3": installed(process.env["BETTER_SQLITE3"] ?? "better-sqlite3"),
};

/** The libraries that are there. */
export const libraries: Readonly<Record<string, OpenSqlite>> = Object.fromEntries(
  Object.entries(found).flatMap(([name, Database]): [string, OpenSqlite][] => (Database === undefined ? [] : [[name, (file) => new Database(file)]])),
);

/** The library by which the store opens a file: two of them in one process would take each other's locks away. */
export const openSqlite = (libraries["node:sqlite"] ?? libraries["libsql"]) as OpenSqlite;

/** A folder for databases, which `remove` takes away. */
export function newFolder(): { readonly file: string; readonly folder: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), "phoneproof-sqlite-"));
  return { folder, file: join(folder, "store.db"), remove: () => rmSync(folder, { recursive: true, force: true }) };
}
