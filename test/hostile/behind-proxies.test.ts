import { createVerifier } from "phoneproof";
import { fetchHandler } from "phoneproof/fetch";
import { memoryStore } from "phoneproof/memory";
import { describe, expect, onTestFinished, test } from "vitest";
import { answered, create, past, type Running, serve, upstream } from "./behind-proxies-kit.js";

async function running(...how: Parameters<typeof serve>): Promise<Running> {
  const server = await serve(...how);
  onTestFinished(() => server.close());
  return server;
}

describe.skipIf(process.platform === "win32")("phoneproof serve stops under a proxy's load", () => {
  test("requests that arrived on new connections before the stop signal are answered, not reset", async () => {
    const server = await running();
    await server.pause();
    const proxies = await Promise.all(Array.from({ length: 8 }, () => upstream(server.port)));
    await Promise.all(proxies.map((proxy) => proxy.send(create())));
    server.kill("SIGTERM");
    server.kill("SIGCONT");
    await Promise.all(proxies.map((proxy) => proxy.closed));
    expect(proxies.map((proxy) => proxy.received().slice(0, 12))).toEqual(proxies.map(() => "HTTP/1.1 200"));
    expect(await server.ended).toBe(0);
  });

  test("a request that has arrived on a kept connection when the drain ends is answered, not reset", async () => {
    const server = await running(["--drain", "1"]);
    const proxy = await upstream(server.port);
    await proxy.send("GET /healthz HTTP/1.1\r\nHost: backend\r\n\r\n");
    await answered(proxy);
    proxy.clear();
    server.kill("SIGTERM");
    await server.shows('"stopping"');
    const drained = Date.now() + 1000;
    await server.pause();
    await proxy.send(create());
    await past(drained);
    server.kill("SIGCONT");
    await proxy.closed;
    expect(proxy.received()).toMatch(/^HTTP\/1\.1 200 /);
    expect(await server.ended).toBe(0);
  });

  test("a message that is being handed to the carrier is completed though the proxy has given up", async () => {
    const server = await running([], { CARRIER_MS: "500" });
    const proxy = await upstream(server.port);
    await proxy.send(create());
    await server.shows("carrier: begin");
    proxy.socket.destroy();
    await server.shows('"status":499');
    server.kill("SIGTERM");
    expect(await server.ended).toBe(0);
    expect(server.output).toContain("carrier: end");
  });
});

test("a 404 for a path with two slashes also names the proxy's prefix, which most often causes it", async () => {
  // nginx: location /verify { proxy_pass http://backend/; } passes /verify/v1/check on as //v1/check
  const verifier = createVerifier({
    store: memoryStore(),
    sender: { send: async () => ({ outcome: "accepted" }) },
    secret: "qT7vX2mR9kLw4ZbN8cJfH5sYdG3pAeU6",
    countries: ["FR"],
    customers: [{ customer_uuid: "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f", keys: ["a-key-of-the-tests-that-is-long-enough-0001"] }],
  });
  onTestFinished(() => verifier.close());
  const response = await fetchHandler(verifier)(new Request("http://backend//v1/check", { method: "POST" }));
  const { message } = (await response.json()) as { message: string };
  expect(message).toContain("proxy");
});
