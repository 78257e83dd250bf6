import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { expect } from "vitest";
import { spawnCommand } from "./demo.js";

/** A line of the standard output. */
export type Line = Readonly<Record<string, unknown>>;

/** `phoneproof serve` as a process. */
export interface Served {
  readonly url: string;
  readonly port: number;
  /** The URL of the metrics, with `--metrics-port`. */
  readonly metrics: string | undefined;
  readonly lines: readonly Line[];
  /** Everything that it has written so far, to both outputs. */
  written(): string;
  signal(name: NodeJS.Signals): void;
  /** Stops reading its standard output, like a log collector that has died. */
  closeOutput(): void;
  /** The exit code, or the signal that ended it. */
  readonly exited: Promise<readonly [number | null, NodeJS.Signals | null]>;
}

/** Starts the command on any free port, and waits until it listens. */
export async function startServe(path: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Served> {
  const child = spawnCommand(path, ["serve", ...args, ...(args.includes("--port") ? [] : ["--port", "0"])], env);
  const lines: Line[] = [];
  let written = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (written += chunk));
  const output = createInterface({ input: child.stdout });
  output.on("line", (line) => lines.push(JSON.parse(line) as Line));
  const exited = once(child, "close") as Promise<[number | null, NodeJS.Signals | null]>;
  const is = () => lines.find(({ type }) => type === "listening");
  await expect.poll(() => is() ?? child.exitCode).not.toBeNull();
  const listening = is();
  if (listening === undefined) throw new Error(`serve ended: ${written}`);
  const url = listening["url"] as string;
  return {
    url,
    port: Number(new URL(url).port),
    metrics: listening["metrics"] as string | undefined,
    lines,
    written: () => written,
    signal: (name) => void child.kill(name),
    closeOutput: () => child.stdout.destroy(),
    exited,
  };
}

/** A plain socket: what the server sent on it, and whether it has closed it. */
export interface RawConnection {
  readonly socket: Socket;
  received(): string;
  closed(): boolean;
}

/** Opens a connection on which a test can write anything. */
export async function rawConnection(port: number): Promise<RawConnection> {
  const socket = connect(port, "127.0.0.1");
  let received = "";
  let closed = false;
  socket.on("data", (chunk) => (received += chunk));
  socket.on("error", () => {});
  socket.on("close", () => (closed = true));
  await once(socket, "connect");
  return { socket, received: () => received, closed: () => closed };
}
