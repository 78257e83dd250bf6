import type { SqliteHandle } from "./connection.js";
import { errorOf, SqliteError } from "./errors.js";

type Database = new (file: string) => SqliteHandle & { close(): void };

/** Opens a file with the runtime's own SQLite, or with the package `libsql`. */
export async function openFile(file: string): Promise<InstanceType<Database>> {
  const Database = builtIn() ?? (await installed());
  try {
    return new Database(file);
  } catch (error) {
    throw errorOf(error);
  }
}

/** `bun:sqlite` or `node:sqlite`, if available. */
function builtIn(): Database | undefined {
  const find = globalThis.process?.getBuiltinModule as ((name: string) => Readonly<Record<string, Database>> | undefined) | undefined;
  return find?.("bun:sqlite")?.["Database"] ?? quietly(() => find?.("node:sqlite")?.["DatabaseSync"]);
}

async function installed(): Promise<Database> {
  // A variable, so that bundlers do not resolve it.
  const name = "libsql";
  try {
    return (await import(name)).default;
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
