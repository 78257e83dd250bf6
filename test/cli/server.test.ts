import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { assets } from "../../src/cli/demo/assets.js";
import { curls, shellQuoted } from "../../src/cli/demo/curl.js";
import { createFeed } from "../../src/cli/demo/feed.js";
import { createMessages } from "../../src/cli/demo/messages.js";
import { takeReceipt } from "../../src/cli/demo/receipts.js";
import { devListener } from "../../src/cli/demo/server.js";
import { createSession } from "../../src/cli/demo/session.js";
import { isLoopback, isOwnHost } from "../../src/cli/hosts.js";
import { readServeSettings } from "../../src/cli/serve/settings.js";
import { readDevSettings } from "../../src/cli/settings.js";

const session = createSession(
  {
    customer_uuid: "2f0e6f5c-3b7a-4d58-9c1e-6a1b2c3d4e5f",
    api_key: "k".repeat(32),
    secret: "s".repeat(32),
    hasty: { customer_uuid: "7c1d9e40-52f8-4a6b-8e3d-9b0a1c2d3e4f", api_key: "h".repeat(32) },
  },
  "http://127.0.0.1:3000",
);
const feed = createFeed();
const messages = createMessages(feed);
const message = {
  to: "+14155552671",
  text: "Your code is 123456",
  code: "123456",
  authentication_uuid: "0b7a5e0c-1f7e-4b58-8f3c-2d1e0f9a8b7c",
  attempt: 1,
  outcome: "accepted" as const,
  at: 0,
};
const settled: unknown[] = [];
const server = createServer(
  devListener({
    api: (_, response) => response.writeHead(418).end(),
    session,
    feed,
    takers: new Map([
      [
        "/dev/receipts",
        (request) =>
          takeReceipt(request, messages, async (...receipt) => {
            if (receipt[0].attempt === 13) throw new Error("the store is away");
            settled.push(receipt);
          }),
      ],
    ]),
    host: "demo.example",
  }),
);
let url: string;

beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  feed.close();
  server.close();
  server.closeAllConnections();
});

test("every file of the page is served uncached and to no other origin, and its policy allows only the page's own scripts", async () => {
  expect([...assets.keys()]).toContain("/");
  for (const path of [...assets.keys(), "/dev/session", "/dev/events"]) {
    const abort = new AbortController();
    const { status, headers } = await fetch(url + path, { headers: { origin: "https://elsewhere.example" }, signal: abort.signal });
    abort.abort();
    expect(status, path).toBe(200);
    expect(headers.get("cache-control"), path).toBe("no-store");
    expect(headers.get("access-control-allow-origin"), path).toBeNull();
    expect(headers.get("cross-origin-resource-policy"), path).toBe("same-origin");
    expect(headers.get("content-security-policy"), path).toMatch(/^default-src 'none'; script-src 'self'; .*frame-ancestors 'none'$/);
    expect(headers.get("content-security-policy"), path).not.toMatch(/unsafe|\*|https?:/);
  }
});

test("the page loads only files that the demo serves", () => {
  for (const [path, { text }] of assets) {
    const named = [...text.matchAll(/(?:src|href)="([^"]+)"|from "([^"]+)"|url\(([^)]+)\)/g)].map((match) => match[1] ?? match[2] ?? match[3] ?? "");
    for (const name of named.filter((reference) => !reference.startsWith("#")))
      expect(assets.has(new URL(name, `http://page${path}`).pathname), `${path}: ${name}`).toBe(true);
  }
});

test("the demo handles its page and paths under /dev/, and the service everything else", async () => {
  expect((await fetch(`${url}/v1/check`, { method: "POST" })).status).toBe(418);
  expect((await fetch(`${url}/nowhere`)).status).toBe(418);
  expect((await fetch(`${url}/dev/nowhere`)).status).toBe(404);
  const post = await fetch(url, { method: "POST" });
  expect([post.status, post.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
});

test("a page that opens late receives the messages so far, then each new one", async () => {
  messages.add(message);
  const response = await fetch(`${url}/dev/events`);
  const reader = (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
  const event = (attempt: number) => `event: message\ndata: ${JSON.stringify({ ...message, attempt })}\n\n`;
  expect((await reader.read()).value).toBe(`retry: 1000\n\n${event(1)}`);
  messages.add({ ...message, attempt: 2 });
  expect((await reader.read()).value).toBe(event(2));
  await reader.cancel();
});

describe("receipts from the page", () => {
  const { authentication_uuid } = message;
  const receipt = (fields: object, type = "application/json") =>
    fetch(`${url}/dev/receipts`, { method: "POST", headers: { "content-type": type }, body: JSON.stringify(fields) });

  test("the first one settles its message and is sent to the pages; a second one is rejected", async () => {
    const name = { authentication_uuid, attempt: 11 };
    messages.add({ ...message, ...name });
    const response = await fetch(`${url}/dev/events`);
    const reader = (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
    await reader.read();
    expect((await receipt({ ...name, status: "delivered" })).status).toBe(204);
    expect(settled).toEqual([[name, "delivered"]]);
    expect((await reader.read()).value).toBe(`event: message\ndata: ${JSON.stringify({ ...message, ...name, delivery: "delivered" })}\n\n`);
    await reader.cancel();
    expect((await receipt({ ...name, status: "undeliverable" })).status).toBe(409);
    expect(settled).toHaveLength(1);
    // A page that opens later receives it with the message.
    const later = await fetch(`${url}/dev/events`);
    const again = (later.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
    expect((await again.read()).value).toContain(`data: ${JSON.stringify({ ...message, ...name, delivery: "delivered" })}\n\n`);
    await again.cancel();
  });

  test("an invalid receipt, or one from another origin, settles nothing", async () => {
    const before = settled.length;
    messages.add({ ...message, attempt: 12 });
    messages.add({ ...message, attempt: 13 });
    messages.add({ ...message, attempt: 14, outcome: "unknown" });
    const good = { authentication_uuid, attempt: 12, status: "delivered" };
    const statuses = async (...answers: Promise<Response>[]) => (await Promise.all(answers)).map(({ status }) => status);
    // A page of another origin may send these types without a preflight; application/json needs one, by OPTIONS.
    expect(await statuses(receipt(good, "text/plain"), receipt(good, "application/x-www-form-urlencoded"))).toEqual([415, 415]);
    const asked = await fetch(`${url}/dev/receipts`, { method: "OPTIONS", headers: { origin: "https://elsewhere.example" } });
    expect([asked.status, asked.headers.get("allow"), asked.headers.get("access-control-allow-origin")]).toEqual([405, "POST", null]);
    expect(await statuses(receipt({ ...good, status: "late" }), receipt({ ...good, attempt: "12" }), receipt([]))).toEqual([400, 400, 400]);
    expect(await statuses(receipt({ ...good, more: "x".repeat(1024) }))).toEqual([413]);
    expect(await statuses(receipt({ ...good, attempt: 99 }), receipt({ ...good, attempt: 14 }))).toEqual([404, 409]);
    expect(await statuses(receipt({ ...good, attempt: 13 }))).toEqual([503]);
    expect(settled).toHaveLength(before);
    expect(await statuses(receipt(good))).toEqual([204]);
  });
});

test("--host accepts an IPv6 address in brackets, as the printed URL has it", () => {
  expect(readServeSettings(["verifier.js", "--host", "[::1]"], {}).host).toBe("::1");
  expect(readDevSettings(["--host", "[::1]"], {}).host).toBe("::1");
});

test("isLoopback accepts names of this machine, and not those that only look like them", () => {
  for (const host of ["localhost", "LOCALHOST", "127.0.0.1", "127.1.2.3", "::1"]) expect(isLoopback(host), host).toBe(true);
  for (const host of ["", "0.0.0.0", "localhost.example", "127.0.0.1.example", "example", "10.0.0.1", "[::2]"]) expect(isLoopback(host), host).toBe(false);
});

test("a page that opens late receives the last 50 events of each kind, each in its latest state", async () => {
  const late = createFeed();
  for (let call = 1; call <= 60; call++) late.tell("call", String(call), { call });
  late.tell("callback", "1", { status: "failed" });
  late.tell("callback", "1", { status: "delivered" });
  const told = createServer((_, response) => late.stream(response)).listen(0, "127.0.0.1");
  await once(told, "listening");
  const reading = fetch(`http://127.0.0.1:${(told.address() as AddressInfo).port}`);
  const response = await reading;
  late.close();
  const events = (await response.text()).split("\n\n").filter((event) => event.startsWith("event:"));
  told.close();
  expect(events).toHaveLength(51);
  expect(events[0]).toBe('event: call\ndata: {"call":11}');
  expect(events[50]).toBe('event: callback\ndata: {"status":"delivered"}');
});

describe("the Host header must be localhost, an IP address or the name given with --host", () => {
  const get = (host: string, path = "/dev/session") =>
    new Promise<[number | undefined, string]>((resolve, reject) => {
      request(new URL(path, url), { headers: { host } }, (response) => {
        let text = "";
        response.on("data", (chunk) => (text += chunk));
        response.on("end", () => resolve([response.statusCode, text]));
      })
        .on("error", reject)
        .end();
    });

  test.each(["localhost", "localhost:3000", "LOCALHOST", "127.0.0.1:3000", "192.168.1.7:3000", "[::1]:3000", "[fe80::1]", "demo.example", "DEMO.example:3000"])(
    "%s is accepted",
    async (host) => expect((await get(host))[0]).toBe(200),
  );

  test.each(["rebound.example", "rebound.example:3000", "127.0.0.1.example", "localhost.example", "demo.example.evil.example", "2130706433"])(
    "%j is rejected on every path, with the fix",
    async (host) => {
      for (const path of ["/", "/dev/session", "/dev/events", "/v1/check"]) {
        const [status, text] = await get(host, path);
        expect(status, path).toBe(403);
        expect(text).toContain("start it with --host NAME");
      }
    },
  );

  test("listening on all addresses allows no other host name", () => {
    expect(isOwnHost("rebound.example:3000", "0.0.0.0")).toBe(false);
    expect(isOwnHost("0.0.0.0:3000", "0.0.0.0")).toBe(true);
    expect(isOwnHost(undefined, "0.0.0.0")).toBe(false);
  });
});

test("the session lists the countries of a calling code, the main one first", () => {
  expect(session.calling_codes["1"]?.slice(0, 1)).toEqual(["US"]);
  expect(session.calling_codes["44"]?.[0]).toBe("GB");
  expect(session.calling_codes["33"]).toEqual(["FR"]);
});

test("shellQuoted escapes quotes and variables, and there are four curl commands", () => {
  expect(shellQuoted("it's $HOME")).toBe(`'it'\\''s $HOME'`);
  expect(curls("http://127.0.0.1:3000", session)).toHaveLength(4);
});
