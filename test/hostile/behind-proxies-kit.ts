import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

const root = resolve(import.meta.dirname, "../..");
const customer = "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f";
const key = "a-key-of-the-tests-that-is-long-enough-0001";

/** Its sender needs `CARRIER_MS`, and reports when it begins and ends. */
const verifierModule = `
import { createVerifier } from "phoneproof";
const sender = {
  async send() {
    console.error("carrier: begin");
    await new Promise((resolve) => setTimeout(resolve, Number(process.env.CARRIER_MS ?? 0)));
    console.error("carrier: end");
    return { outcome: "accepted" };
  },
};
export const verifier = ({ store }) =>
  createVerifier({
    store,
    sender,
    secret: "qT7vX2mR9kLw4ZbN8cJfH5sYdG3pAeU6",
    countries: ["FR"],
    customers: [{ customer_uuid: "${customer}", keys: ["${key}"] }],
  });
`;

export interface Running {
  readonly pid: number;
  readonly port: number;
  /** Both outputs so far. */
  readonly output: string;
  /** Resolves with the exit code. */
  readonly ended: Promise<number | null>;
  kill(signal: NodeJS.Signals): void;
  /** Resolves once the output contains the text. */
  shows(text: string): Promise<void>;
  /** Stops the process as a busy machine would: what arrives now waits in the kernel. */
  pause(): Promise<void>;
  close(): void;
}

async function until(what: string, ready: () => boolean): Promise<void> {
  const end = Date.now() + 20_000;
  while (!ready()) {
    if (Date.now() > end) throw new Error(`not within 20 s: ${what}`);
    await wait(10);
  }
}

/** Starts `phoneproof serve` on a port that is free, with a store in memory. */
export async function serve(args: readonly string[] = [], env: Readonly<Record<string, string>> = {}): Promise<Running> {
  const folder = mkdtempSync(join(tmpdir(), "phoneproof-"));
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(root, join(folder, "node_modules", "phoneproof"), "dir");
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  writeFileSync(join(folder, "verifier.js"), verifierModule);
  const command = [join(root, "dist/dev.js"), "serve", "./verifier.js", "--port", "0", "--data", "memory", ...args];
  const child: ChildProcess = spawn(process.execPath, command, { cwd: folder, env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (data) => (output += data));
  const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
  const close = () => {
    child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  };
  const shows = (text: string) => until(`${text} in ${output}`, () => output.includes(text));
  try {
    await shows('"listening"');
  } catch (error) {
    close();
    throw error;
  }
  const pid = child.pid ?? 0;
  return {
    pid,
    port: Number(/"url":"http:\/\/127\.0\.0\.1:(\d+)"/.exec(output)?.[1]),
    get output() {
      return output;
    },
    ended,
    kill: (signal) => void child.kill(signal),
    shows,
    async pause() {
      child.kill("SIGSTOP");
      await until("the process stops", () => execFileSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" }).startsWith("T"));
    },
    close,
  };
}

/** A create, as a proxy passes it on. */
export function create(): string {
  const body = JSON.stringify({ customer_uuid: customer, phone_number: "+33698765432" });
  const headers = ["Host: backend", `x-api-key: ${key}`, "content-type: application/json", `content-length: ${body.length}`];
  return `POST /v1/authentication HTTP/1.1\r\n${headers.join("\r\n")}\r\n\r\n${body}`;
}

export interface Upstream {
  readonly socket: Socket;
  /** What came since the last call of `clear`, and at the end the error, if there was one. */
  received(): string;
  clear(): void;
  send(text: string): Promise<void>;
  readonly closed: Promise<void>;
}

/** A proxy's connection to the service. */
export async function upstream(port: number): Promise<Upstream> {
  let text = "";
  const socket = connect(port, "127.0.0.1");
  socket.on("data", (data) => (text += data));
  socket.on("error", (error: NodeJS.ErrnoException) => (text += `${error.code}`));
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  await new Promise<void>((resolve) => socket.once("connect", resolve));
  return {
    socket,
    received: () => text,
    clear: () => void (text = ""),
    send: (request) => new Promise((resolve) => socket.write(request, () => resolve())),
    closed,
  };
}

/** Waits until a response has arrived completely enough to be told from others. */
export const answered = (connection: Upstream): Promise<void> => until("a response", () => connection.received().includes("\r\n\r\n"));

/** Waits until a time has passed on this machine's clock. */
export const past = (time: number): Promise<void> => until("the time", () => Date.now() > time);
