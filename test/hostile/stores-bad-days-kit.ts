import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createVerifier, type Store } from "phoneproof";
import { logger } from "../support/verifier.js";

/** Runs work when a test has ended: `onTestFinished` of its context, since these tests run side by side. */
export type After = (work: () => void | Promise<void>) => void;

const root = resolve(import.meta.dirname, "../..");
const customer_uuid = "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f";
const key = randomBytes(32).toString("base64url");
const secret = randomBytes(32).toString("base64url");

const module = `
import { createVerifier } from "phoneproof";
const sender = { async send() { return { outcome: "accepted" }; } };
const { PHONEPROOF_SECRET: secret, KEY: key } = process.env;
export const verifier = ({ store }) =>
  createVerifier({ store, sender, secret, countries: ["FR"], customers: [{ customer_uuid: "${customer_uuid}", keys: [key] }], statistics: false });
`;

let last = 0;
/** A valid number that was not handed out before, far from the others. */
export const newNumber = (): string => `+3361${2_000_000 + ++last * 29_013}`;

/** An operator's folder: the package, and a module as docs/serve.md shows it. */
export function folder(after: After): string {
  const path = mkdtempSync(join(tmpdir(), "phoneproof-"));
  after(() => rmSync(path, { recursive: true, force: true }));
  mkdirSync(join(path, "node_modules"));
  symlinkSync(root, join(path, "node_modules", "phoneproof"), "dir");
  writeFileSync(join(path, "package.json"), '{ "type": "module" }');
  writeFileSync(join(path, "verifier.js"), module);
  return path;
}

interface Ran {
  readonly process: ReturnType<typeof spawn>;
  out(): string;
  readonly end: Promise<number | null>;
}

/** Starts `phoneproof` with these words; it is killed after the test. */
export function phoneproof(after: After, cwd: string, words: readonly string[], env: Readonly<Record<string, string>> = {}): Ran {
  const child = spawn(process.execPath, [join(root, "dist/dev.js"), ...words], {
    cwd,
    env: { PATH: process.env["PATH"], PHONEPROOF_SECRET: secret, PHONEPROOF_CUSTOMER: customer_uuid, KEY: key, ...env },
    stdio: ["ignore", "pipe", "ignore"],
  });
  let out = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    out += text;
  });
  const end = new Promise<number | null>((done) => child.once("close", done));
  after(async () => {
    child.kill("SIGKILL");
    await end;
  });
  return { process: child, out: () => out, end };
}

/** A running `phoneproof serve`. */
export interface Served {
  /** Status of the response, and the `status` or `code` in its body. */
  post(path: string, fields: Readonly<Record<string, unknown>>): Promise<{ readonly is: string; readonly id: string }>;
  health(): Promise<number>;
  stop(): Promise<unknown>;
}

export async function serve(after: After, cwd: string, env: Readonly<Record<string, string>> = {}): Promise<Served> {
  const command = phoneproof(after, cwd, ["serve", "./verifier.js", "--port", "0"], env);
  const listening = () => /"url":"([^"]+)"/.exec(command.out())?.[1];
  if (!(await within(15_000, async () => listening() !== undefined))) throw new Error(`serve does not listen: ${command.out()}`);
  const url = listening() as string;
  return {
    async post(path, fields) {
      const headers = { "content-type": "application/json", "x-api-key": key };
      const response = await fetch(`${url}/v1/${path}`, { method: "POST", headers, body: JSON.stringify({ customer_uuid, ...fields }) });
      const body = (await response.json()) as { status?: string; code?: string; authentication_uuid?: string };
      return { is: `${response.status} ${body.status ?? body.code}`, id: body.authentication_uuid ?? "" };
    },
    health: async () => (await fetch(`${url}/healthz`)).status,
    stop: () => {
      command.process.kill("SIGTERM");
      return command.end;
    },
  };
}

/** A verifier in this process, on a store. */
export function operated(store: Store) {
  const sent: string[] = [];
  const verifier = createVerifier({
    store,
    sender: {
      async send({ to }) {
        sent.push(to);
        return { outcome: "accepted" };
      },
    },
    secret,
    countries: ["FR"],
    callbacks: { worker: false },
    statistics: false,
    logger: logger(),
  });
  const create = () =>
    verifier.createAuthentication({ phone_number: newNumber() }).then(
      ({ status }) => status as string,
      (error: { code?: string }) => error.code ?? String(error),
    );
  return { verifier, sent, create };
}

/** Whether something becomes true within this many milliseconds. */
export async function within(ms: number, ready: () => Promise<boolean>): Promise<boolean> {
  for (const end = performance.now() + ms; performance.now() < end; await new Promise((done) => setTimeout(done, 50))) if (await ready()) return true;
  return false;
}

/** A fixed address in front of servers, such as a virtual IP: `to` decides where a new connection leads. Open ones stay. */
export async function address(after: After, to: () => number, port = 0): Promise<{ readonly port: number; connections(): number }> {
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((client) => {
    connections++;
    const upstream = connect(to(), "127.0.0.1");
    client.pipe(upstream).pipe(client);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        client.destroy();
        upstream.destroy();
      });
    }
  });
  await new Promise<void>((done) => server.listen(port, "127.0.0.1", done));
  after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, connections: () => connections };
}
