import { generateApiKey } from "phoneproof";
import { memoryStore } from "phoneproof/memory";
import { expect, onTestFinished, test } from "vitest";
import { freePort } from "../support/ports.js";
import { secret } from "../support/verifier.js";
import { blockOf, connection, createInRequests, documentedApp, endsWithin, startProgram, statisticsOf } from "./serverless-kit.js";

/** Starts the server of "Deploy" as the documentation has it, and opens a connection that sends nothing, as browsers and proxies do. */
async function documentedServer() {
  const { folder, remove } = await documentedApp({
    "required.ts": blockOf("install.md", "required.ts"),
    "service.ts": blockOf("install.md", "service.ts"),
    "server.ts": blockOf("operations.md", "server.ts"),
  });
  onTestFinished(remove);
  const port = await freePort();
  const program = startProgram(folder, "server.js", { PORT: String(port), PHONEPROOF_SECRET: secret, PHONEPROOF_API_KEY: generateApiKey().key });
  onTestFinished(() => {
    program.kill("SIGKILL");
  });
  await expect.poll(() => fetch(`http://127.0.0.1:${port}/healthz`).then(({ status }) => status, String)).toBe(200);
  const socket = await connection(port);
  onTestFinished(() => {
    socket.destroy();
  });
  // A response to a later connection: the server has accepted the one before.
  expect((await fetch(`http://127.0.0.1:${port}/healthz`, { headers: { connection: "close" } })).status).toBe(200);
  return program;
}

test("on SIGTERM the documented server stops although a connection has sent nothing yet", async () => {
  const program = await documentedServer();
  program.kill("SIGTERM");
  // Nothing is in progress: there is no message to wait for. `phoneproof serve` gives such a connection 250 ms.
  expect(await endsWithin(program, 2_000)).toBe(true);
});

test("statistics are part of the work that continues after a response", async () => {
  const store = memoryStore();
  await createInRequests(store, 3);
  // Nothing else can write them: a platform that has stopped the request runs no timer of it.
  expect((await statisticsOf(store)).sends).toBe(3);
});

test("an attack raises its country's alarm where each request has a verifier of its own", async () => {
  const { statuses, alarms } = await createInRequests(memoryStore(), 40);
  expect(statuses).toContain("spam_detected");
  expect(alarms).toContain("country");
});
