import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/**
 * An unused port of the loopback interface, for a server that needs a port in advance. It is below the range that
 * systems assign themselves (from 32,768 on Linux), so that no connection or listener on "any" port takes it.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_000);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
