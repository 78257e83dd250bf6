import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const root = join(import.meta.dirname, "../..");
const built = (file: string): string => pathToFileURL(join(root, "dist", file)).href;

export const customer = "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f";

const verifierModule = `
import { createVerifier } from "${built("index.js")}";
import { memoryStore } from "${built("memory.js")}";
import { consoleSender } from "${built("senders/console.js")}";
export const verifier = createVerifier({
  store: memoryStore(),
  sender: consoleSender(),
  secret: "qT7vX2mR9kLw4ZbN8cJfH5sYdG3pAeU6",
  countries: ["FR"],
  customers: [{ customer_uuid: "${customer}", keys: [process.env.KEY] }],
});
`;

interface LogLine {
  readonly type: string;
  readonly url?: string;
  readonly request_id?: string;
}

/** Starts `phoneproof serve` with both wires, and waits until it listens. */
export async function servedWithWires(folder: string, key: string) {
  const file = join(folder, "verifier.mjs");
  writeFileSync(file, verifierModule);
  const command = [join(root, "dist/dev.js"), "serve", file, "--port", "0", "--wires", "prelude-v2,twilio-verify"];
  const child = spawn(process.execPath, command, { env: { PATH: process.env["PATH"], KEY: key }, stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const log: LogLine[] = [];
  const lines = createInterface({ input: child.stdout });
  const url = await new Promise<string>((resolve, reject) => {
    void ended.then(() => reject(new Error("phoneproof serve ended before it listened")));
    lines.on("line", (text) => {
      if (!text.startsWith("{")) return; // the console sender's
      const line = JSON.parse(text) as LogLine;
      log.push(line);
      if (line.url !== undefined) resolve(line.url);
    });
  });
  const close = () => {
    child.kill("SIGTERM");
    return ended;
  };
  return { url, log, close };
}

/** A receiver of callbacks that writes a body after its 204, as PHP and Python let a program do. */
export async function wordyReceiver() {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.end("HTTP/1.1 204 No Content\r\nContent-Type: text/html\r\n\r\nok"));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const close = () => new Promise<void>((resolve) => server.close(() => resolve()));
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}
