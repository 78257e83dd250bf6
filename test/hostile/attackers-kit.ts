import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { transform } from "esbuild";
import { fetchHandler } from "phoneproof/fetch";
import { plivoReceipts } from "phoneproof/senders/plivo";
import { twilioReceipts } from "phoneproof/senders/twilio";
import { twilioVoiceReceipts } from "phoneproof/senders/twilio-voice";
import { createTestVerifier } from "phoneproof/testing";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** Posts to the receipts of a verifier as a stranger: the signature is made up. */
export function strangerAtReceipts() {
  const authToken = randomBytes(16).toString("hex");
  const sources = [twilioReceipts({ authToken }), twilioVoiceReceipts({ authToken }), plivoReceipts({ authToken })];
  const quiet = { info() {}, warn() {}, error() {} };
  const test = createTestVerifier({ receipts: { baseUrl: "https://otp.example", sources }, logger: quiet });
  const handle = fetchHandler(test.verifier.receipts);
  const headers = {
    "content-type": "application/x-www-form-urlencoded",
    "x-twilio-signature": "made up",
    "x-plivo-signature-v3": "made up",
    "x-plivo-signature-v3-nonce": "1",
  };
  return {
    close: () => test.close(),
    /** The response's status, and the milliseconds of processor time that it took. */
    async post(provider: string, body: string): Promise<{ status: number; cpu: number }> {
      const before = process.cpuUsage();
      const { status } = await handle(new Request(`https://otp.example/receipts/${provider}`, { method: "POST", headers, body }));
      const { user, system } = process.cpuUsage(before);
      return { status, cpu: (user + system) / 1000 };
    },
  };
}

/** A form with this many parameters of different names. */
export const formOf = (parameters: number): string => Array.from({ length: parameters }, (_, index) => `${index.toString(36)}=`).join("&");

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

/** Runs the app of docs/first-form.md as it is printed there, with the verifier of docs/install.md. */
export async function firstForm() {
  const folder = await mkdtemp(join(tmpdir(), "first-form-"));
  for (const [page, file] of [
    ["first-form", "session"],
    ["first-form", "app"],
    ["install", "verifier"],
    ["install", "required"],
  ]) {
    const [, source = ""] = (await readFile(join(root, `docs/${page}.md`), "utf8")).split(`// ${file}.ts\n`);
    const { code } = await transform(source.split("```")[0] ?? "", { loader: "ts", format: "esm" });
    await writeFile(join(folder, `${file}.js`), code);
  }
  await writeFile(join(folder, "package.json"), '{ "type": "module" }');
  await mkdir(join(folder, "node_modules"));
  await symlink(join(root, "node_modules/express"), join(folder, "node_modules/express"));
  await symlink(root, join(folder, "node_modules/phoneproof"));
  const port = await freePort();
  const env = { PATH: process.env["PATH"] ?? "", PORT: String(port), PHONEPROOF_SECRET: randomBytes(32).toString("base64") };
  const app = spawn(process.execPath, ["app.js"], { cwd: folder, env });
  let output = "";
  app.stdout.on("data", (chunk) => (output += chunk));
  app.stderr.on("data", (chunk) => (output += chunk));
  const cookies = new Map<string, string>();
  return {
    output: () => output,
    async close() {
      if (app.exitCode === null && app.kill("SIGKILL")) await once(app, "exit");
      await rm(folder, { recursive: true });
    },
    /** As a browser does: keeps cookies. The text that the page shows as an alert. */
    async post(path: string, fields: Record<string, string>): Promise<string | undefined> {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, {
        method: "POST",
        headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; ") },
        body: new URLSearchParams(fields),
      });
      for (const cookie of response.headers.getSetCookie()) {
        const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
        cookies.set(name, value);
      }
      return /<p role="alert">([^<]*)</.exec(await response.text())?.[1];
    },
  };
}
