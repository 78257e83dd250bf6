import { execFileSync } from "node:child_process";
import { chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../support/ports.js";
import { spawnServer } from "../support/programs.js";
import { until } from "../support/redis.js";

/** Errors of PgBouncer when it is full or disabled, or its server is down: all have the code `08P01`. */
export const bouncerErrors = [
  "no more connections allowed (max_client_conn)",
  "query_wait_timeout",
  "server login has been failing, try again later (server_login_retry)",
  'database "postgres" is disabled',
] as const;

/** PgBouncer does not run as root. */
const id = (flag: "-u" | "-g") => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));

/** A PgBouncer without the database `postgres`. */
export async function otherBouncer(): Promise<{ readonly url: string; stop(): void }> {
  const directory = mkdtempSync(join(tmpdir(), "phoneproof-instances-"));
  const port = await freePort();
  const file = join(directory, "pgbouncer.ini");
  const settings = [
    "[databases]",
    "other = host=127.0.0.1 port=1 user=postgres",
    "[pgbouncer]",
    "listen_addr = 127.0.0.1",
    `listen_port = ${port}`,
    "unix_socket_dir =",
    "auth_type = any",
    "pool_mode = transaction",
  ];
  writeFileSync(file, settings.join("\n"));
  const user = process.getuid?.() === 0 ? { uid: id("-u"), gid: id("-g") } : undefined;
  if (user !== undefined) for (const path of [directory, file]) chownSync(path, user.uid, user.gid);
  const child = spawnServer("pgbouncer", [file], "QUIT", { ...user, cwd: "/" });
  await until(
    `pgbouncer on ${port} listens`,
    () =>
      new Promise((resolve) => {
        const socket = connect(port, "127.0.0.1", () => resolve(socket.destroy().destroyed)).once("error", () => resolve(false));
      }),
  );
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    stop() {
      child.kill("SIGKILL");
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
