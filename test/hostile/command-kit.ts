import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { expect, onTestFinished } from "vitest";

const root = resolve(import.meta.dirname, "../..");

export const customer = "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f";
export const secret = randomBytes(32).toString("base64url");
export const apiKey = randomBytes(32).toString("base64url");

const head = `
import { createVerifier } from "phoneproof";
import { memoryStore } from "phoneproof/memory";
import { consoleSender } from "phoneproof/senders/console";
import { twilioReceipts, twilioSender } from "phoneproof/senders/twilio";
import { appendFileSync } from "node:fs";
const { env } = process;
const sender = {
  async send(message) {
    if (env.SLOW) await new Promise((resolve) => setTimeout(resolve, Number(env.SLOW)));
    if (env.CODES) appendFileSync(env.CODES, JSON.stringify([message.authentication_uuid, message.code]) + "\\n");
    return { outcome: "accepted" };
  },
};
const options = {
  sender,
  secret: env.PHONEPROOF_SECRET,
  countries: ["FR", "GB", "US"],
  customers: [{ customer_uuid: "${customer}", keys: [env.PHONEPROOF_API_KEY] }],
  callbacks: { allowOrigins: env.ORIGIN ? [env.ORIGIN] : [] },
};
const shadow = { mode: "shadow" };
const quiet = { spam: { range: shadow, crowd: shadow, country: shadow, newCountries: shadow, address: shadow } };
`;

/** An operator's folder: the package, and modules that may use `options` and `quiet`. It is removed after the test. */
export function place(modules: Readonly<Record<string, string>>, name = "operator"): string {
  const top = mkdtempSync(join(tmpdir(), "phoneproof-"));
  onTestFinished(() => rmSync(top, { recursive: true, force: true }));
  const folder = join(top, name);
  mkdirSync(join(folder, "node_modules"), { recursive: true });
  symlinkSync(root, join(folder, "node_modules", "phoneproof"), "dir");
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  for (const [file, text] of Object.entries(modules)) writeFileSync(join(folder, file), head + text);
  return folder;
}

/** A module as docs/serve.md shows it. */
export const ordinary = "export const verifier = ({ store }) => createVerifier({ ...options, store });";
/** The same, without rules that block numbers of one country. */
export const unruled = "export const verifier = ({ store }) => createVerifier({ ...options, policy: quiet, store });";

export interface Line {
  readonly type?: string;
  readonly url?: string;
  readonly status?: number;
  readonly [field: string]: unknown;
}

export interface Command {
  readonly process: ChildProcess;
  readonly out: string;
  readonly err: string;
  /** The exit code, or the signal that ended it. */
  readonly ended: number | string | undefined;
  readonly end: Promise<number | string>;
  lines(): Line[];
  kill(signal?: NodeJS.Signals): void;
}

interface How {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdout?: number;
}

/** Starts the command as a person does; it is killed after the test. */
export function start(args: readonly string[], { cwd, env = {}, stdout }: How): Command {
  const child = spawn(process.execPath, [join(root, "dist/dev.js"), ...args], {
    cwd,
    env: { PATH: process.env["PATH"], PHONEPROOF_SECRET: secret, PHONEPROOF_API_KEY: apiKey, ...env },
    stdio: ["ignore", stdout ?? "pipe", "pipe"],
  });
  const told = { out: "", err: "", ended: undefined as number | string | undefined };
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (told.out += text));
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (told.err += text));
  const end = new Promise<number | string>((resolve) =>
    child.once("close", (code, signal) => {
      told.ended = code ?? signal ?? "unknown";
      resolve(told.ended);
    }),
  );
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await end;
  });
  return Object.defineProperties({} as Command, {
    ...Object.fromEntries(["out", "err", "ended"].map((name) => [name, { get: () => told[name as keyof typeof told] }])),
    process: { value: child },
    end: { value: end },
    kill: { value: (signal: NodeJS.Signals = "SIGTERM") => child.kill(signal) },
    lines: {
      value: () =>
        told.out
          .split("\n")
          .slice(0, -1)
          .map((line) => JSON.parse(line) as Line),
    },
  });
}

/** Runs a command to its end. */
export async function run(args: readonly string[], how: How): Promise<Command> {
  const command = start(args, how);
  await command.end;
  return command;
}

export interface Server extends Command {
  readonly url: string;
}

/** Starts `serve` on a free port, and waits until it listens. */
export async function serve(args: readonly string[], how: How): Promise<Server> {
  const command = start(["serve", ...args, "--port", "0"], how);
  await until(() => command.out.includes("\n") || command.ended !== undefined);
  expect(command.ended, command.err).toBeUndefined();
  return Object.defineProperty(command as Server, "url", { value: command.lines()[0]?.url });
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: Record<string, string>;
}

/** One request to `/v1`, as an app makes it. */
export async function call(server: { readonly url: string }, path: string, fields: Record<string, unknown> = {}, key = apiKey): Promise<Answer> {
  const response = await fetch(`${server.url}/v1/${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": key },
    body: JSON.stringify({ customer_uuid: customer, ...fields }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: JSON.parse(text) };
}

export const healthOf = async ({ url }: { readonly url: string }): Promise<number> => (await fetch(`${url}/healthz`)).status;

export interface Wire {
  readonly socket: Socket;
  readonly got: string;
  readonly closed: boolean;
}

/** A connection that sends a text and stays open. */
export function wire({ url }: { readonly url: string }, text: string): Wire {
  const { port, hostname } = new URL(url);
  const socket = connect(Number(port), hostname, () => socket.write(text));
  const told = { socket, got: "", closed: false };
  socket.setEncoding("utf8").on("data", (part: string) => (told.got += part));
  socket.on("error", () => {}).on("close", () => (told.closed = true));
  onTestFinished(() => void socket.destroy());
  return told;
}

/** The bytes of a create. */
export function create(phone_number: string): string {
  const body = JSON.stringify({ customer_uuid: customer, phone_number });
  return `POST /v1/authentication HTTP/1.1\r\nhost: x\r\nx-api-key: ${apiKey}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
}

/** Valid French mobile numbers, far from each other. */
export const numberOf = (index: number): string => `+3361${2_000_000 + index * 9_013}`;

/** Codes that the module's sender wrote to a file, by authentication. */
export const codesOf = (file: string): Map<string, string> =>
  new Map(
    readFileSync(file, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as [string, string]),
  );

export const until = (condition: () => unknown, timeout = 20_000): Promise<void> =>
  expect.poll(async () => Boolean(await condition()), { timeout, interval: 25 }).toBe(true);

/** Fails if the command wrote a whole number, a key or a secret. */
export function expectQuiet(command: Command, ...more: readonly string[]): void {
  const text = command.out + command.err;
  // A UUID can contain as many digits.
  expect(text.replace(/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g, "")).not.toMatch(/(?<!\d)(33|44)\d{9,10}(?!\d)/);
  for (const word of [apiKey, secret, ...more]) expect(text.includes(word), `${word} in ${text}`).toBe(false);
}
