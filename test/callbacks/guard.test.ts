import { createServer as createHttpServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { afterAll, afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { guardedSender } from "../../src/callbacks/guarded-sender.js";
import { type Receiver, receiver } from "../support/receiver.js";

const request = (url: string, allowOrigins: readonly string[] = [], timeout = 2000) => ({
  url,
  customer: "c",
  headers: { "content-type": "application/json" },
  body: "{}",
  timeout,
  allowOrigins,
});

describe("address guard: rejects addresses outside the public internet, based on the address actually connected to", () => {
  /** Counts the connections that reach loopback on this port. */
  let canary: { port: number; connections: () => number; close: () => void };
  beforeEach(async () => {
    let connections = 0;
    const server = createServer((socket) => {
      connections++;
      socket.destroy();
    });
    await new Promise<void>((resolve) => server.listen(0, "::", resolve));
    canary = { port: (server.address() as AddressInfo).port, connections: () => connections, close: () => server.close() };
  });
  afterEach(() => canary.close());

  it.each([
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "127.255.255.254",
    "2130706433",
    "0x7f000001",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "017700000001",
    "0x7f.1",
    "0",
    "0.0.0.0",
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[2002:7f00:1::]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[fe80::1]",
    "[fc00::1]",
    "[2001:0:7f00:1::]",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.0.1",
    "169.254.169.254",
    "100.64.0.1",
    "localhost",
    "LocalHost.",
    "①②⑦.0.0.1",
    "127。0。0。1",
  ])("a literal internal address in any spelling is rejected before any connection: %s", async (host) => {
    for (const scheme of ["https", "http"])
      expect(await guardedSender().post(request(`${scheme}://${host}:${canary.port}/`))).toEqual({ failed: expect.stringMatching(/^callback_url must/) });
    expect(await guardedSender().post(request(`https://${host}/`))).toEqual({ failed: "callback_url must point to a host on the public internet" });
    expect(canary.connections()).toBe(0);
  });

  it.each([["127.0.0.1"], ["10.1.1.1"], ["::1"], ["::ffff:10.0.0.1"], ["169.254.169.254"], ["93.184.216.34", "127.0.0.1"], ["fd00::1", "2606:4700::1111"]])(
    "a name that resolves to an internal address is rejected without a connection: %s",
    async (...inside) => {
      const sender = guardedSender({ resolve: async () => inside.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })) });
      expect(await sender.post(request("https://hook.example.com/"))).toEqual({ failed: expect.stringContaining("not on the public internet") });
      expect(canary.connections()).toBe(0);
    },
  );

  it("DNS rebinding fails: each connection resolves the name once and uses exactly that address", async () => {
    const hosts = ["127.0.0.77", "127.0.0.78"];
    const reached: string[] = [];
    const servers = await Promise.all(
      hosts.map(async (host) => {
        const server = createServer((socket) => {
          reached.push(host);
          socket.destroy();
        });
        await new Promise<void>((resolve) => server.listen(8443, host, resolve));
        return server;
      }),
    );
    const asked: string[] = [];
    const sender = guardedSender({
      // The first address stands for a public one, the second for an internal one.
      isPublic: (address) => address === hosts[0],
      resolve: async (hostname) => [{ address: hosts[asked.push(hostname) - 1] ?? "127.0.0.78", family: 4 }],
    });
    expect(await sender.post(request("https://rebind.example.com:8443/"))).toHaveProperty("failed");
    expect([asked, reached]).toEqual([["rebind.example.com"], ["127.0.0.77"]]);
    expect(await sender.post(request("https://rebind.example.com:8443/"))).toEqual({
      failed: expect.stringContaining("127.0.0.78, which is not on the public internet"),
    });
    expect(reached).toEqual(["127.0.0.77"]);
    for (const server of servers) server.close();
  });

  it("a name without addresses and a failing resolver are failures", async () => {
    expect(await guardedSender({ resolve: async () => [] }).post(request("https://hook.example.com/"))).toEqual({
      failed: expect.stringContaining("has no address"),
    });
    expect(await guardedSender({ resolve: async () => Promise.reject(new Error("no such name")) }).post(request("https://hook.example.com/"))).toEqual({
      failed: "no such name",
    });
  });
});

describe("a hostile receiver", () => {
  let hook: Receiver;
  beforeEach(async () => {
    hook = await receiver();
  });
  afterEach(() => hook.close());
  const sender = guardedSender();
  afterAll(() => sender.close());
  const post = (timeout = 2000) => sender.post(request(`${hook.origin}/hook`, [hook.origin], timeout));

  it("only exactly the allowed origins are reached", async () => {
    expect(await post()).toEqual({ status: 204, retryAfter: undefined });
    expect(await guardedSender().post(request(`${hook.origin}/`, [`${hook.origin}0`]))).toHaveProperty("failed");
    expect(await guardedSender().post(request(`blob:${hook.origin}/`, [hook.origin]))).toEqual({ failed: "callback_url must be an https URL" });
    expect(hook.received).toHaveLength(1);
  });

  it("redirects are not followed", async () => {
    hook.answer = (_request, response) => void response.writeHead(302, { location: `${hook.origin}/elsewhere` }).end();
    expect(await post()).toMatchObject({ status: 302 });
    expect(hook.received.map(({ path }) => path)).toEqual(["/hook"]);
  });

  it("an endless body is cut off", async () => {
    let written = 0;
    hook.answer = (_request, response) => {
      response.writeHead(200);
      const more = () => {
        written += 4096;
        if (!response.destroyed) response.write("x".repeat(4096), () => setImmediate(more));
      };
      more();
    };
    expect(await post()).toMatchObject({ status: 200 });
    expect(written).toBeLessThan(10_000_000);
  });

  it("no response within the time limit is a failure; a response with an endless body still has its status", async () => {
    hook.answer = () => undefined;
    expect(await post(50)).toEqual({ failed: "no response within 50 ms" });
    hook.answer = (_request, response) => void response.writeHead(200).write("x");
    expect(await post(50)).toMatchObject({ status: 200 });
    const late = new Promise((resolve) => setTimeout(resolve, 1_050));
    expect(await Promise.race([post(1_100), late]), "before the caller's own time limit").toMatchObject({ status: 200 });
  });

  it("a connection that is cut off is a failure", async () => {
    hook.answer = (_request, response) => void response.destroy();
    expect(await post()).toHaveProperty("failed");
  });

  it.each([
    ["101", "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n", { status: 101 }],
    ["100, then an answer", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", { status: 204 }],
    ["a hundred early hints, and no answer", "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n".repeat(100), { failed: "no response within 500 ms" }],
    ["two answers", "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n", { status: 204 }],
    ["204 and a body", "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\nok", { status: 204 }],
    ["a body that the end of the connection ends", "HTTP/1.1 200 OK\r\n\r\nbody", { status: 200 }],
    ["a header without end", `HTTP/1.1 200 OK\r\nx: ${"y".repeat(100_000)}`, { failed: "Parse Error: Header overflow" }],
    ["thousands of headers", `HTTP/1.1 200 OK\r\n${"a: b\r\n".repeat(20_000)}\r\n`, { failed: "Parse Error: Header overflow" }],
    ["status 000", "HTTP/1.1 000 None\r\ncontent-length: 0\r\n\r\n", { status: 0 }],
    ["status 2000", "HTTP/1.1 2000 OK\r\ncontent-length: 0\r\n\r\n", { failed: expect.stringContaining("Parse Error") }],
    ["another protocol", "SSH-2.0-OpenSSH_9.6\r\n", { failed: expect.stringContaining("Parse Error") }],
    ["two Retry-After", "HTTP/1.1 503 Busy\r\nretry-after: 10\r\nretry-after: 99\r\ncontent-length: 0\r\n\r\n", { status: 503, retryAfter: 10_000 }],
    ["nothing, and ends", "", { failed: "socket hang up" }],
  ])("that responds with %s", async (_what, bytes, answer) => {
    const server = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.once("data", () => (bytes.startsWith("HTTP/1.1 103") ? socket.write(bytes) : socket.end(bytes)));
    });
    await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    expect(await sender.post(request(`${origin}/`, [origin], 500))).toMatchObject(answer);
    server.close();
  });

  it.each([
    ["120", 120_000],
    ["nonsense", undefined],
    ["-5", undefined],
  ])("Retry-After %s", async (header, retryAfter) => {
    hook.answer = (_request, response) => void response.writeHead(503, { "retry-after": header }).end();
    expect(await post()).toEqual({ status: 503, retryAfter });
  });

  it.each([
    ["a date", (date: Date) => date.toUTCString()],
    ["a date as of asctime", (date: Date) => date.toUTCString().replace(/^(\w+), (\d+) (\w+) (\d+) (\S+) GMT$/, "$1 $3 $2 $5 $4")],
  ])("Retry-After with %s", async (_form, written) => {
    vi.stubEnv("TZ", "Asia/Tokyo");
    onTestFinished(() => void vi.unstubAllEnvs());
    hook.answer = (_request, response) => void response.writeHead(503, { "retry-after": written(new Date(Date.now() + 60_000)) }).end();
    const { retryAfter } = (await post()) as { retryAfter: number };
    expect(retryAfter).toBeGreaterThan(50_000);
    expect(retryAfter).toBeLessThanOrEqual(60_000);
  });
});

describe("connections are kept alive", () => {
  let server: Server;
  let opened: number;
  let answer: (response: ServerResponse) => void;
  let origin: string;
  beforeEach(async () => {
    opened = 0;
    answer = (response) => void response.writeHead(204).end();
    server = createHttpServer((asked, response) => {
      asked.resume().on("end", () => answer(response));
    });
    server.on("connection", () => opened++);
    await new Promise<void>((ready) => server.listen(0, "0.0.0.0", ready));
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });
  const open = () => new Promise<number>((told) => server.getConnections((_error, count) => told(count)));

  const withSender = () => {
    const sender = guardedSender();
    return { ...sender, post: (to = origin) => sender.post(request(`${to}/hook`, [to])) };
  };

  it("consecutive callbacks share one connection, after any complete response", async () => {
    const { post, close } = withSender();
    for (let count = 0; count < 3; count++) expect(await post()).toMatchObject({ status: 204 });
    answer = (response) => void response.writeHead(503).end("not now");
    for (let count = 0; count < 3; count++) expect(await post()).toMatchObject({ status: 503 });
    expect(opened).toBe(1);
    close();
  });

  it("an idle connection that the receiver closes at that moment costs no delivery", async () => {
    const { post, close } = withSender();
    await post();
    answer = (response) => {
      answer = (fresh) => void fresh.writeHead(204).end();
      response.destroy();
    };
    expect(await post()).toMatchObject({ status: 204 });
    expect(opened).toBe(2);
    close();
  });

  it("close ends open connections, and later ones are not kept alive", async () => {
    const { post, close } = withSender();
    await post();
    expect(await open()).toBe(1);
    close();
    await expect.poll(open).toBe(0);
    await post();
    await expect.poll(open).toBe(0);
  });

  it("at most 128 connections are kept alive, over all hosts", async () => {
    const { post, close } = withSender();
    const origins = [origin, origin.replace("127.0.0.1", "127.0.0.2")];
    await Promise.all(Array.from({ length: 200 }, (_, index) => post(origins[index % 2])));
    expect(opened).toBe(200);
    await expect.poll(open).toBe(128);
    close();
  });
});
