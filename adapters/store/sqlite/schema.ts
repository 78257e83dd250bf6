import { type Connection, isDurableObject, type SqliteDatabase, type SqliteValue } from "./connection.js";
import { isReadOnly, SqliteError } from "./errors.js";

/** The index that `lease` uses. */
const wakeIndex = "CREATE INDEX phoneproof_wake ON phoneproof_records (wake_at) WHERE wake_at IS NOT NULL";

/**
 * The steps that create the tables: a database at step `n` runs those after it. Steps are added, never changed. `ends`
 * is when a row may be deleted, in milliseconds on this machine's clock. A counter is part -1 of a sum.
 */
const steps: readonly string[] = [
  `CREATE TABLE phoneproof_records (customer TEXT, id TEXT, tokens TEXT NOT NULL, data TEXT NOT NULL, keep_until INTEGER NOT NULL, wake_at INTEGER, ends INTEGER NOT NULL,
     PRIMARY KEY (customer, id)) STRICT, WITHOUT ROWID;
   ${wakeIndex};
   CREATE TABLE phoneproof_members (window TEXT, member TEXT, at INTEGER NOT NULL, added_by TEXT, ends INTEGER NOT NULL, PRIMARY KEY (window, member)) STRICT, WITHOUT ROWID;
   CREATE TABLE phoneproof_sums (sum TEXT, part INTEGER, held INTEGER NOT NULL, ends INTEGER NOT NULL, PRIMARY KEY (sum, part)) STRICT, WITHOUT ROWID;
   CREATE TABLE phoneproof_values (name TEXT PRIMARY KEY, value TEXT NOT NULL, ends INTEGER NOT NULL) STRICT, WITHOUT ROWID;`,
];

/** The durability of acknowledged writes, by SQLite's names. */
export const synchronousNames = ["OFF", "NORMAL", "FULL", "EXTRA"] as const;
export type Synchronous = (typeof synchronousNames)[number];

const has = ({ get }: Connection, name: string): boolean => get("SELECT 1 FROM sqlite_master WHERE name = ?", name) !== undefined;

/** Whether the database has the store's tables. */
export const isMade = (connection: Connection): boolean => has(connection, "phoneproof_schema");

/** What the tables lack, and whether they can be written, with the fix. */
export const missingIn = (connection: Connection): string[] => [
  ...(has(connection, "phoneproof_wake") ? [] : [`the index phoneproof_wake is missing, so finding due callbacks reads all records: run ${wakeIndex}`]),
  ...(canWrite(connection)
    ? []
    : ["the database is read-only: let the process write to the file, its -wal, its -shm and their folder (owner and mode), and open it for writing"]),
];

/** Runs a write of nothing. If it fails because another process writes, this one could later. */
function canWrite({ run }: Connection): boolean {
  try {
    run("DELETE FROM phoneproof_schema WHERE 0");
    return true;
  } catch (error) {
    return !isReadOnly(error);
  }
}

/** Configures the handle and upgrades the tables. Any number of processes may do so at the same time. */
export function prepare(connection: Connection, database: SqliteDatabase, synchronous: Synchronous): void {
  const { all, get, exec, atomically } = connection;
  if (!isDurableObject(database)) {
    // Columns have their own names, and writes return no rows.
    exec("PRAGMA full_column_names = OFF; PRAGMA count_changes = OFF");
    // SQLite's own wait would block the event loop; the store waits by itself.
    exec("PRAGMA busy_timeout = 0");
    exec(`PRAGMA synchronous = ${synchronous}`);
    // Deleted data is overwritten, because it includes phone numbers.
    exec("PRAGMA secure_delete = ON");
    if (get("PRAGMA journal_mode")?.["journal_mode"] === "delete") all("PRAGMA journal_mode = WAL");
  }
  const version = () => Number(get("SELECT version FROM phoneproof_schema")?.["version"] ?? 0);
  if (isMade(connection) && version() === steps.length) return;
  atomically(() => {
    if (!isMade(connection)) exec("CREATE TABLE phoneproof_schema (version INTEGER NOT NULL) STRICT");
    const done = version();
    if (done > steps.length)
      throw new SqliteError(
        `sqliteStore: the database is of a newer phoneproof (its tables are at step ${done}, this one knows ${steps.length}): update phoneproof`,
      );
    for (const step of steps.slice(done)) exec(step);
    exec(`DELETE FROM phoneproof_schema; INSERT INTO phoneproof_schema VALUES (${steps.length})`);
  });
}

const keysOf = { records: ["customer", "id"], members: ["window", "member"], sums: ["sum", "part"], values: ["name"] } as const;

/** How much longer than requested ended data is kept, in milliseconds, because a clock may be corrected. */
const grace = 10 * 60_000;

/** For each table, what deletes its ended rows: each call checks the next `rows` of them. */
export function sweepersOf({ get, run }: Connection): readonly ((rows: number) => void)[] {
  return Object.entries(keysOf).map(([table, keys]) => {
    const [names, marks] = [keys.join(", "), keys.map(() => "?").join(", ")];
    const start: readonly SqliteValue[] = keys.map(() => "");
    const after = `FROM phoneproof_${table} WHERE (${names}) > (${marks})`;
    let from = start;
    return (rows: number) => {
      const last = get(`SELECT ${names} ${after} ORDER BY ${names} LIMIT 1 OFFSET ?`, ...from, rows);
      const to = last && keys.map((key) => last[key] as SqliteValue);
      const ended = `DELETE ${after} AND ends < ?`;
      if (to === undefined) run(ended, ...from, Date.now() - grace);
      else run(`${ended} AND (${names}) <= (${marks})`, ...from, Date.now() - grace, ...to);
      from = to ?? start;
    };
  });
}
