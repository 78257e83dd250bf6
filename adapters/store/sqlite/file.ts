import type { SqliteHandle } from "./connection.js";
import { errorOf, SqliteError } from "./errors.js";

type Open = (file: string) => SqliteHandle & { close(): void };

/** Opens a file with the runtime's own SQLite, or with the package `libsql`. */
export async function openFile(file: string): Promise<ReturnType<Open>> {
  const open = builtIn() ?? (await installed());
  try {
    return open(file);
  } catch (error) {
    throw errorOf(error);
  }
}

/** `bun:sqlite` or `node:sqlite`, if available. */
function builtIn(): Open | undefined {
  const find = globalThis.process?.getBuiltinModule as ((name: string) => Record<string, new (file: string) => ReturnType<Open>> | undefined) | undefined;
  const Database = find?.("bun:sqlite")?.["Database"] ?? quietly(() => find?.("node:sqlite")?.["DatabaseSync"]);
  return Database && ((file) => new Database(file));
}

async function installed(): Promise<Open> {
  // A variable, so that bundlers do not resolve it.
  const name = "libsql";
  try {
    const { default: Database } = (await import(name)) as { readonly default: new (file: string) => ReturnType<Open> };
    return (file) => new Database(file);
  } catch (cause) {
    const fix = "use Node.js 22.13 or newer, or npm install libsql";
    throw new SqliteError(`sqliteStore: option \`file\` needs node:sqlite, which this runtime does not have, or the package libsql: ${fix}`, { cause });
  }
}

/** Suppresses Node.js's warning that the module is experimental, which users can do nothing about. */
function quietly<T>(load: () => T): T {
  const { emitWarning } = process;
  process.emitWarning = () => undefined;
  try {
    return load();
  } finally {
    process.emitWarning = emitWarning;
  }
}
