import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";

/** Listens and returns the port, which the system chooses if `port` is 0. Rejects with the error of node:net. */
export async function listen(server: Server, host: string, port: number): Promise<number> {
  await once(server.listen(port, host), "listening");
  return (server.address() as AddressInfo).port;
}

/** Explains why listening failed, and the fix. `portOption`: the option that sets the port. */
export function listenError(error: unknown, host: string, port: number, portOption = "--port"): Error {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "EADDRINUSE") return new Error(`port ${port} of ${host} is taken: stop what listens there, or choose another with ${portOption}`);
  return new Error(`cannot listen on ${host}:${port} (${code}): choose another address with --host or another port with ${portOption}`, { cause: error });
}

/** As `listen`, but rejects with the fix. */
export async function listenOn(server: Server, host: string, port: number, portOption: string): Promise<number> {
  return listen(server, host, port).catch((error) => {
    throw listenError(error, host, port, portOption);
  });
}

/** The base address of a server that listens there, without a trailing slash. */
export function urlOf(host: string, port: number): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
