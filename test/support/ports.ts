import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/**
 * A port of the loopback interface that nobody listens on, for a server that must be told its port. Below those that systems give away by themselves (from 32,768
 * on Linux): what is connected or listens on "any" port meanwhile never takes it.
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
