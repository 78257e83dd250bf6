import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { freePort } from "../support/ports.js";
import { password, startPeer, systemId } from "../support/smpp.js";

const adapter = new URL("../../adapters/sms/smpp/index.ts", import.meta.url).href;
const root = fileURLToPath(new URL("../..", import.meta.url));

/** Runs a module in a separate process and returns what it printed; fails if the process does not exit by itself. */
async function run(port: number, body: string): Promise<string> {
  const module = `
    import { smppSender } from ${JSON.stringify(adapter)};
    const sender = smppSender(${JSON.stringify({ host: "127.0.0.1", port, systemId, password, rebind: { min: 3600, max: 3600 } })});
    ${body}`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--import", "tsx", "--input-type=module", "-e", module], { cwd: root, timeout: 200_000 });
  return stdout.trim();
}

it("a sender that is not connected does not keep the process alive", async () => {
  expect(await run(await freePort(), `console.log(sender.status().state);`)).toBe("idle");
  expect(await run(await freePort(), `await sender.connect().catch((error) => console.log(error.message));`)).toContain("ECONNREFUSED");
});

it("a closed sender leaves no socket or timer that keeps the process alive", async () => {
  const peer = await startPeer();
  const text = await run(
    peer.port,
    `const message = { to: "+14155552671", text: "Hello", code: "1", authentication_uuid: "a", customer_uuid: "c", attempt: 1, idempotency_key: "k", expires_at: Date.now() + 600_000 };
     const outcome = await sender.send(message, { signal: AbortSignal.timeout(10_000), deadline: Date.now() + 10_000, timeLeft: 10_000 });
     await sender.close();
     console.log(JSON.stringify(outcome));`,
  );
  await peer.stop();
  expect(JSON.parse(text)).toEqual({ outcome: "accepted", messageId: "m1" });
});
