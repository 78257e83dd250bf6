import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../support/ports.js";

const dist = new URL("../../dist/", import.meta.url);

/** A module for `phoneproof serve` that reports, when asked, how much of the heap is in use after a collection. */
const verifierModule = `
import { createVerifier, generateApiKey } from ${JSON.stringify(new URL("index.js", dist).href)};
import { memoryStore } from ${JSON.stringify(new URL("memory.js", dist).href)};
import { inboxSender } from ${JSON.stringify(new URL("senders/inbox.js", dist).href)};
process.on("message", () => {
  globalThis.gc();
  process.send(process.memoryUsage().heapUsed);
});
export const verifier = createVerifier({
  store: memoryStore(),
  sender: inboxSender(),
  secret: "q1YkC0n7uTz5rJm3Xw8bVd2fGs6hLp9aEo4iRt1yNcM=",
  countries: ["FR"],
  customers: [{ customer_uuid: "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f", keys: [generateApiKey().digest] }],
});
`;

export interface Service {
  readonly port: number;
  /** How many requests were logged as broken off by their client. */
  brokenOff(): number;
  /** Bytes of the heap that are in use after a collection. */
  heap(): Promise<number>;
  stop(): Promise<void>;
}

/** Starts `phoneproof serve` of the built package on 127.0.0.1. */
export async function startService(): Promise<Service> {
  const folder = await mkdtemp(join(tmpdir(), "phoneproof-exhaustion-"));
  const file = join(folder, "verifier.mjs");
  await writeFile(file, verifierModule);
  const port = await freePort();
  const child = fork(new URL("dev.js", dist), ["serve", file, "--port", String(port)], {
    execArgv: ["--expose-gc"],
    stdio: ["ignore", "pipe", "inherit", "ipc"],
  });
  let output = "";
  let brokenOff = 0;
  await new Promise<void>((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`the service ended with ${code}: ${output}`)));
    child.stdout?.on("data", (chunk) => {
      brokenOff += String(chunk).split('"status":499').length - 1;
      output = (output + chunk).slice(-2_000);
      if (output.includes('"listening"')) resolve();
    });
  });
  return {
    port,
    brokenOff: () => brokenOff,
    async heap() {
      child.send("heap");
      const [bytes] = await once(child, "message");
      return bytes as number;
    },
    async stop() {
      child.removeAllListeners("exit");
      const gone = once(child, "exit");
      child.kill("SIGKILL");
      await gone;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Sends many requests at once, and breaks the connection off at the first byte of a response. */
export async function pipelineAndBreakOff(port: number, requests: number): Promise<void> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => undefined); // the reset is ours
  const gone = once(socket, "close");
  await once(socket, "connect");
  socket.once("data", () => socket.resetAndDestroy());
  socket.write("GET /healthz HTTP/1.1\r\nHost: example.com\r\n\r\n".repeat(requests));
  await gone;
}
