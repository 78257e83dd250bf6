import { execFileSync } from "node:child_process";
import { createVerifier } from "phoneproof";
import { fetchHandler } from "phoneproof/fetch";
import { memoryStore } from "phoneproof/memory";
import { describe, expect, onTestFinished, test } from "vitest";
import { apiKey, create, customer, numberOf, ordinary, place, type Server, secret, serve, until, wire } from "./command-kit.js";

const running = (args: readonly string[] = [], module = ordinary): Promise<Server> =>
  serve(["./verifier.js", "--data", "memory", ...args], { cwd: place({ "verifier.js": module }) });

/** Stops the process as a busy machine would: what arrives now waits in the kernel. */
async function pause({ process: { pid }, kill }: Server): Promise<void> {
  kill("SIGSTOP");
  await until(() => execFileSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" }).startsWith("T"));
}

const slowCarrier = `export const verifier = ({ store }) => createVerifier({ ...options, store, sender: {
  async send() {
    console.error("carrier: begin");
    await new Promise((resolve) => setTimeout(resolve, 500));
    console.error("carrier: end");
    return { outcome: "accepted" };
  },
} });`;

describe.skipIf(process.platform === "win32")("phoneproof serve stops under a proxy's load", () => {
  test("requests that arrived on new connections before the stop signal get a response", async () => {
    const server = await running();
    await pause(server);
    const proxies = Array.from({ length: 8 }, (_, index) => wire(server, create(numberOf(index))));
    await until(() => proxies.every(({ socket }) => !socket.connecting && socket.bytesWritten > 0 && socket.writableLength === 0));
    server.kill("SIGTERM");
    server.kill("SIGCONT");
    await until(() => proxies.every(({ closed }) => closed));
    expect(proxies.map(({ got }) => got.slice(0, 12))).toEqual(proxies.map(() => "HTTP/1.1 200"));
    expect(await server.end).toBe(0);
  });

  test("a request that has arrived on an open connection when the drain ends gets a response", async () => {
    const server = await running(["--drain", "1"]);
    const proxy = wire(server, "GET /healthz HTTP/1.1\r\nHost: backend\r\n\r\n");
    await until(() => proxy.got.includes("\r\n\r\n"));
    const healthz = proxy.got.length;
    server.kill("SIGTERM");
    await until(() => server.out.includes('"stopping"'));
    const drained = Date.now() + 1000;
    await pause(server);
    await new Promise<void>((resolve) => proxy.socket.write(create(numberOf(1)), () => resolve()));
    await until(() => Date.now() > drained);
    server.kill("SIGCONT");
    await until(() => proxy.closed);
    expect(proxy.got.slice(healthz)).toMatch(/^HTTP\/1\.1 200 /);
    expect(await server.end).toBe(0);
  });

  test("a message that is being handed to the carrier is completed though the proxy has given up", async () => {
    const server = await running([], slowCarrier);
    const proxy = wire(server, create(numberOf(1)));
    await until(() => server.err.includes("carrier: begin"));
    proxy.socket.destroy();
    await until(() => server.out.includes('"status":499'));
    server.kill("SIGTERM");
    expect(await server.end).toBe(0);
    expect(server.err).toContain("carrier: end");
  });
});

test("a 404 for a path with two slashes also names the proxy's prefix, which most often causes it", async () => {
  // nginx: location /verify { proxy_pass http://backend/; } passes /verify/v1/check on as //v1/check
  const verifier = createVerifier({
    store: memoryStore(),
    sender: { send: async () => ({ outcome: "accepted" }) },
    secret,
    countries: ["FR"],
    customers: [{ customer_uuid: customer, keys: [apiKey] }],
  });
  onTestFinished(() => verifier.close());
  const response = await fetchHandler(verifier)(new Request("http://backend//v1/check", { method: "POST" }));
  const { message } = (await response.json()) as { message: string };
  expect(message).toContain("proxy");
});
