import { type ChildProcess, execFile, execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Pool, type PoolConfig } from "pg";
import { closeWhenSilent, type PostgresStore, type PostgresStoreOptions, postgresStore } from "../../adapters/store/postgres/index.js";
import { freePort } from "./ports.js";
import { childrenOf, isInstalled, spawnServer } from "./programs.js";
import { until } from "./redis.js";

/** The settings for postgres.js in docs/stores.md. */
export const postgresJsSettings = {
  ...closeWhenSilent(),
  connect_timeout: 2,
  backoff: () => 0.2,
  fetch_types: false,
  max_lifetime: 60,
  connection: { statement_timeout: 1_500 },
};

/** A PostgreSQL server for a test file. */
export interface PostgresServer {
  /** The URL of the database `postgres`, as a superuser. */
  readonly url: string;
  stop(): Promise<void>;
}

/** A separate server for one test, which may stop and restart it. */
export interface OwnPostgresServer extends PostgresServer {
  readonly port: number;
  readonly directory: string;
  /** `SIGSTOP` pauses the server with all its processes, and `SIGCONT` resumes them. */
  signal(name: "SIGSTOP" | "SIGCONT"): void;
  /** Microseconds of CPU time that its processes have used. */
  cpu(): number;
  /** Limits the size of its files to this many bytes, as on a full disk; `unlimited` removes the limit. */
  limitFiles(bytes: number | "unlimited"): void;
  /** Kills it at once: nothing more is written to disk. */
  kill(): Promise<void>;
  /** Starts it again on its port, with the data of its directory. */
  restart(): Promise<void>;
}

/** The paths of the programs on Debian, the newest release first. */
const programs = (existsSync("/usr/lib/postgresql") ? readdirSync("/usr/lib/postgresql") : [])
  .sort((a, b) => Number(b) - Number(a))
  .map((release) => `/usr/lib/postgresql/${release}/bin`)
  .find((folder) => existsSync(join(folder, "initdb")));

const program = (name: string) => (programs === undefined ? name : join(programs, name));

/** PostgreSQL does not run as root. */
const user = process.getuid?.() === 0 ? { uid: idOf("-u"), gid: idOf("-g") } : {};

function idOf(flag: "-u" | "-g"): number {
  try {
    return Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }));
  } catch {
    return 65_534;
  }
}

/** Whether PostgreSQL is installed. If not, prints what is skipped and how to get it; with `CI=true` it throws. */
export function postgresIsInstalled(suite: string): boolean {
  return isInstalled(program("initdb"), "postgresql", suite);
}

/** Whether PgBouncer is installed. */
export function pgbouncerIsInstalled(suite: string): boolean {
  return isInstalled("pgbouncer", "pgbouncer", suite);
}

/** The server for tests of PostgreSQL: the one in POSTGRES_URL, else a separate one. */
export async function postgresServer(suite: string): Promise<PostgresServer | undefined> {
  const url = process.env["POSTGRES_URL"];
  if (url) return { url, stop: async () => {} };
  return postgresIsInstalled(suite) ? startPostgres() : undefined;
}

/** Creates a directory that the server's user owns. */
function ownDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "phoneproof-postgres-"));
  own(directory);
  return directory;
}

function own(path: string): void {
  if (user.uid !== undefined) chownSync(path, user.uid, user.gid);
}

const run = (name: string, args: readonly string[]) => promisify(execFile)(program(name), args, { ...user, cwd: "/" });

/**
 * Starts a server with its own cluster. Unless changed by `settings`, nothing waits for the disk: data is lost in a
 * power cut, but not when a process is killed.
 */
export async function startPostgres(settings: readonly string[] = [], directory = ownDirectory()): Promise<OwnPostgresServer> {
  await run("initdb", [
    "--pgdata",
    join(directory, "data"),
    "--username",
    "postgres",
    "--auth",
    "trust",
    "--encoding",
    "UTF8",
    "--locale",
    "C.UTF-8",
    "--no-sync",
  ]);
  return startOn(directory, ["fsync=off", "full_page_writes=off", ...settings]);
}

/** A standby of `primary`, which streams from it and serves reads. */
export async function startStandby(primary: OwnPostgresServer, settings: readonly string[] = []): Promise<OwnPostgresServer> {
  const directory = ownDirectory();
  await run("pg_basebackup", ["--pgdata", join(directory, "data"), "--dbname", primary.url, "--write-recovery-conf", "--checkpoint", "fast", "--no-sync"]);
  return startOn(directory, ["fsync=off", ...settings]);
}

async function startOn(directory: string, settings: readonly string[]): Promise<OwnPostgresServer> {
  let child: ChildProcess;
  let port = await freePort();
  const address = () => `postgres://postgres@127.0.0.1:${port}/postgres`;

  async function start(): Promise<void> {
    const options = [
      `port=${port}`,
      "listen_addresses=127.0.0.1",
      `unix_socket_directories=${directory}`,
      "max_connections=300",
      "log_min_messages=fatal",
      ...settings,
    ];
    child = spawnServer(program("postgres"), ["-D", join(directory, "data"), ...options.flatMap((one) => ["-c", one])], "QUIT", { ...user, cwd: "/" });
    let said = "";
    child.stderr?.on("data", (text) => {
      said = `${said}${text}`.slice(-2_000);
    });
    await until(
      `postgres on ${port} answers`,
      async () => child.exitCode !== null || (await run("pg_isready", ["--dbname", address()])).stdout.includes("accepting"),
    );
    if (child.exitCode !== null) throw new Error(`postgres ended with ${child.exitCode}: ${said}`);
  }

  const processes = () => [child.pid as number, ...childrenOf(child.pid as number)];

  async function kill(): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((done) => child.once("exit", done));
    for (const pid of processes()) signalTo(pid, "SIGKILL");
    await gone;
  }

  await start().catch(async () => {
    // A port that was free may be taken by the time the server starts.
    port = await freePort();
    await start();
  });
  return {
    directory,
    get port() {
      return port;
    },
    get url() {
      return address();
    },
    signal(name) {
      for (const pid of processes()) signalTo(pid, name);
    },
    cpu() {
      // For the postmaster, also the time of its ended processes: fields 16 and 17 of proc(5).
      const ticks = processes().map((pid) => {
        const [, user, system, ended, endedSystem] =
          /\) (?:\S+ ){11}(\d+) (\d+) (\d+) (\d+)/.exec(existsSync(`/proc/${pid}/stat`) ? readFileSync(`/proc/${pid}/stat`, "utf8") : "") ?? [];
        return [user, system, ...(pid === child.pid ? [ended, endedSystem] : [])].reduce((sum, one = "0") => sum + Number(one), 0);
      });
      return ticks.reduce((sum, tick) => sum + tick, 0) * 10_000;
    },
    limitFiles(bytes) {
      // Some of its processes may have ended after they were listed.
      for (const pid of processes())
        try {
          execFileSync("prlimit", ["--pid", String(pid), `--fsize=${bytes}:unlimited`], { ...user, stdio: "pipe" });
        } catch (error) {
          if (!String(error).includes("No such process")) throw error;
        }
    },
    kill,
    restart: start,
    async stop() {
      await kill();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Ignores a process that has ended since it was listed. */
function signalTo(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as { code?: string }).code !== "ESRCH") throw error;
  }
}

/** PgBouncer in transaction mode in front of a server. */
export async function startPgbouncer(server: PostgresServer, poolSize = 10): Promise<PostgresServer> {
  const { hostname, port, username, password } = new URL(server.url);
  const directory = ownDirectory();
  const own_ = await freePort();
  const login = password === "" ? "" : ` password=${decodeURIComponent(password)}`;
  const settings = [
    "[databases]",
    `* = host=${hostname} port=${port || 5432}${login}`,
    "[pgbouncer]",
    "listen_addr = 127.0.0.1",
    `listen_port = ${own_}`,
    "unix_socket_dir =",
    "auth_type = any",
    "pool_mode = transaction",
    `default_pool_size = ${poolSize}`,
    "max_client_conn = 2000",
    "log_connections = 0",
    "log_disconnections = 0",
    "ignore_startup_parameters = extra_float_digits",
  ];
  // With `auth_type = any`, the database entry must name the user.
  settings[1] = `* = host=${hostname} port=${port || 5432} user=${username}${login}`;
  const file = join(directory, "pgbouncer.ini");
  writeFileSync(file, settings.join("\n"));
  own(file);
  const child = spawnServer("pgbouncer", [file], "QUIT", { ...user, cwd: "/" });
  const url = `postgres://${username}@127.0.0.1:${own_}/postgres`;
  await until(`pgbouncer on ${own_} answers`, async () => (await run("pg_isready", ["--dbname", url])).stdout.includes("accepting"));
  return {
    url,
    async stop() {
      child.kill("SIGKILL");
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Runs statements on a server, one after another. */
export async function sql<Row = Record<string, unknown>>(url: string, ...statements: readonly string[]): Promise<Row[]> {
  const pool = poolOf(url, { max: 1 });
  let rows: Row[] = [];
  try {
    for (const statement of statements) rows = (await pool.query(statement)).rows;
  } finally {
    await pool.end();
  }
  return rows;
}

/** A pool that tolerates connections ended by the server. */
export function poolOf(url: string, options: PoolConfig = {}): Pool {
  const pool = new Pool({ connectionString: url, ...options });
  pool.on("error", () => {});
  return pool;
}

/** Creates a database on a server; returns its URL, which a store in any process can use. */
export async function newDatabase(server: PostgresServer | undefined): Promise<string> {
  const name = `phoneproof_${randomUUID().replaceAll("-", "")}`;
  if (server === undefined) throw new Error("there is no server");
  await sql(server.url, `create database ${name} encoding 'UTF8' template template0`);
  const url = new URL(server.url);
  url.pathname = name;
  return url.href;
}

/** A store in a new database, with its schema. */
export interface NewStore {
  readonly url: string;
  readonly pool: Pool;
  readonly store: PostgresStore;
  close(): Promise<void>;
}

/** Creates one on a server. */
export async function newStore(server: PostgresServer | undefined, options: Omit<PostgresStoreOptions, "pool" | "query"> = {}): Promise<NewStore> {
  const url = await newDatabase(server);
  const pool = poolOf(url);
  const store = postgresStore({ pool, ...options });
  await store.ensureSchema();
  return { url, pool, store, close: () => pool.end() };
}

/**
 * Makes the insert of a value `fail CODE` fail with that error; for rollbacks (40001, 40P01), in two of three tries.
 * A value `bad …` violates a constraint.
 */
export async function failing(url: string): Promise<void> {
  await sql(
    url,
    "create sequence tries",
    `create function fail() returns trigger language plpgsql as $$ begin
      if new.value !~ ' 40(001|P01)$' or nextval('tries') % 3 <> 0 then raise exception 'no %', new.value using errcode = substr(new.value, 6); end if;
      return new;
    end $$`,
    "create trigger fail before insert on phoneproof.value for each row when (new.value like 'fail %') execute function fail()",
    "alter table phoneproof.value add constraint short check (value not like 'bad %')",
  );
}
