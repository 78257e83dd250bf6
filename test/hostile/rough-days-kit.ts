import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { promisify } from "node:util";
import { type CodeMessage, createVerifier, type SmsSender, type Store, type Verifier, type VerifierOptions } from "phoneproof";
import { memoryStore } from "phoneproof/memory";
import { type FixedClock, fixedClock } from "phoneproof/testing";

const root = join(import.meta.dirname, "../..");

export const secret = "qT7vX2mR9kLw4ZbN8cJfH5sYdG3pAeU6";
export const hang = (): Promise<never> => new Promise(() => {});

/** A verifier on a memory store with a silent log, the messages that its carrier accepted, and its clock. */
export function service(options: Partial<VerifierOptions> = {}): { verifier: Verifier; clock: FixedClock; sent: CodeMessage[] } {
  const clock = fixedClock(Date.parse("2026-03-01T12:00:00Z"));
  const sent: CodeMessage[] = [];
  const sender: SmsSender = {
    async send(message) {
      sent.push(message);
      return { outcome: "accepted" };
    },
  };
  const verifier = createVerifier({
    store: memoryStore({ now: () => clock.now() }),
    sender,
    secret,
    countries: ["FR"],
    callbacks: { worker: false },
    statistics: false,
    logger: { info() {}, warn() {}, error() {} },
    clock,
    ...options,
  });
  return { verifier, clock, sent };
}

/** How a call ended: its status, or what it threw. */
export const ending = (call: Promise<{ readonly status: string }>): Promise<string> =>
  call.then(
    ({ status }) => status,
    (error: { code?: string }) => error.code ?? String(error),
  );

/** The milliseconds of the clock until `call` settles; at most `most`. */
export async function takes(clock: FixedClock, call: Promise<unknown>, most = 60_000): Promise<number> {
  const from = clock.now();
  let settled = false;
  const end = () => {
    settled = true;
  };
  call.then(end, end);
  for (;;) {
    for (let i = 0; i < 20; i++) await turn();
    if (settled || clock.now() - from >= most) return clock.now() - from;
    clock.advance(100);
  }
}

/** A store that works until `hang` is called; then no call of it settles. */
export function hangingStore(store: Store): { store: Store; hang(): void } {
  let hangs = false;
  const wrapped = new Proxy(store, {
    get(target, name) {
      const method = Reflect.get(target, name);
      if (typeof method !== "function") return method;
      return (...args: unknown[]) => (hangs && name !== "close" ? hang() : method.apply(target, args));
    },
  });
  return {
    store: wrapped,
    hang() {
      hangs = true;
    },
  };
}

/** A store whose calls take a while by the clock, from `start` on. */
export function slowStore(store: Store): { store: Store; start(clock: FixedClock, ms: number): void; slowly<T>(ms: number, value: T): Promise<T> } {
  let clock: FixedClock | undefined;
  let delay = 0;
  const slowly = <T>(ms: number, value: T) => new Promise<T>((resolve) => (clock && ms > 0 ? void clock.after(ms, () => resolve(value)) : resolve(value)));
  const wrapped = new Proxy(store, {
    get(target, name) {
      const method = Reflect.get(target, name);
      if (typeof method !== "function" || name === "close") return method;
      return async (...args: unknown[]) => slowly(delay, await method.apply(target, args));
    },
  });
  return {
    store: wrapped,
    start(by, ms) {
      clock = by;
      delay = ms;
    },
    slowly,
  };
}

/** A port of loopback on which no connection is ever established: its queue is full, as behind a firewall that drops packets. */
export async function blackHole(): Promise<{ port: number; stop(): void }> {
  const lines = [
    "import socket, time",
    "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(0)",
    "held = [socket.socket() for _ in range(4)]",
    "for one in held:",
    "  one.setblocking(False); one.connect_ex(s.getsockname())",
    "print(s.getsockname()[1], flush=True)",
    "time.sleep(600)",
  ];
  const child = spawn("python3", ["-c", lines.join("\n")], { stdio: ["ignore", "pipe", "inherit"] });
  const [said] = await once(child.stdout, "data");
  return { port: Number(String(said)), stop: () => void child.kill("SIGKILL") };
}

/** A server of plain HTTP. */
export async function plainServer(): Promise<{ port: number; stop(): void }> {
  const server = createServer((_request, response) => void response.end());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { port: (server.address() as AddressInfo).port, stop: () => void server.close() };
}

/** Runs a module in a process of its own, and returns what it printed; `died` with the error if it did not end by itself. */
export async function program(source: string): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", source], { cwd: root });
    return stdout.trim();
  } catch (error) {
    return `died: ${(error as { stderr: string }).stderr.split("\n").find((line) => line.startsWith("Error")) ?? ""}`;
  }
}
