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

// The tests' bundlers do not support `node:sqlite`, and Node.js 20 has none.
const builtIn = process.getBuiltinModule as (name: string) => { readonly DatabaseSync: Library } | undefined;

/** BETTER_SQLITE3 is the folder of that package, which is no dependency because it has to be compiled. */
const found: Readonly<Record<string, Library | undefined>> = {
  libsql: installed("libsql"),
  "node:sqlite": builtIn("node:sqlite")?.DatabaseSync,
  "better-sqlite3": installed(process.env["BETTER_SQLITE3"] ?? "better-sqlite3"),
};

/** The installed libraries. */
export const libraries: Readonly<Record<string, OpenSqlite>> = Object.fromEntries(
  Object.entries(found).flatMap(([name, Database]): [string, OpenSqlite][] => (Database === undefined ? [] : [[name, (file) => new Database(file)]])),
);

/** The library that the store uses to open a file: two libraries in one process would release each other's locks. */
export const openSqlite = (libraries["node:sqlite"] ?? libraries["libsql"]) as OpenSqlite;

/** A folder for databases, which `remove` deletes. */
export function newFolder(): { readonly file: string; readonly folder: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), "phoneproof-sqlite-"));
  return { folder, file: join(folder, "store.db"), remove: () => rmSync(folder, { recursive: true, force: true }) };
}
