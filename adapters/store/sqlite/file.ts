import { type Connection, connectionOf, retried, type SqliteHandle } from "./connection.js";
import { errorOf, SqliteError } from "./errors.js";
import { isMade } from "./schema.js";

type Database = new (file: string) => SqliteHandle & { close(): void };

/** Opens a file with the runtime's own SQLite, or with the package `libsql`. */
export async function openFile(file: string): Promise<InstanceType<Database>> {
  const Database = builtIn() ?? (await installed());
  try {
    // SQLite would take it for a URI.
    return new Database(file.startsWith("file:") ? `./${file}` : file);
  } catch (error) {
    throw errorOf(error);
  }
}

/**
 * Returns a function that throws once the file, its `-wal` or its `-shm` was deleted or replaced: what is written to
 * them would be lost.
 */
export function guardOf({ get, exec }: Connection): () => void {
  const fs = globalThis.process?.getBuiltinModule?.("node:fs");
  const path = get("PRAGMA database_list")?.["file"];
  if (fs === undefined || typeof path !== "string" || path === "") return () => {};
  const inodeOf = (file: string) => fs.statSync(file, { bigint: true, throwIfNoEntry: false })?.ino;
  // SQLite keeps the other two as long as a connection is open, in WAL mode only.
  const opened = [path, `${path}-wal`, `${path}-shm`].map((file) => [file, inodeOf(file)] as const).filter(([, inode]) => inode !== undefined);
  return () => {
    for (const [file, inode] of opened) {
      if (inodeOf(file) === inode) continue;
      // SQLite itself deletes the other two with the last handle: on a closed one, this throws.
      exec("SELECT 1");
      throw new SqliteError("sqliteStore: the file, its -wal or its -shm was deleted or replaced while it was open: restart every process that uses it");
    }
  };
}

/** Whether a file has the store's tables. Changes nothing in it. */
export async function isStoreFile(file: string): Promise<boolean> {
  const own = await openFile(file);
  try {
    return await retried(1_500, () => isMade(connectionOf(own)));
  } finally {
    own.close();
  }
}

/** `bun:sqlite` or `node:sqlite`, if available. */
function builtIn(): Database | undefined {
  const find = globalThis.process?.getBuiltinModule as ((name: string) => Readonly<Record<string, Database>> | undefined) | undefined;
  return find?.("bun:sqlite")?.["Database"] ?? quietly(() => find?.("node:sqlite")?.["DatabaseSync"]);
}

async function installed(): Promise<Database> {
  // A variable, and for webpack a comment, so that bundlers leave it to the runtime.
  const name = "libsql";
  try {
    return (await import(/* webpackIgnore: true */ name)).default;
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
