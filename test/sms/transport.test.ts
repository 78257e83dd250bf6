import { createServer as createPlainServer } from "node:http";
import { createServer } from "node:https";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { Readable } from "node:stream";
import { afterEach, expect, it, vi } from "vitest";
import type { Fetch } from "../../adapters/kit/transport.js";
import { twilioSender } from "../../adapters/sms/twilio.js";
import { aMessage, inTime } from "../support/carriers/messages.js";
import { type Mood, type RunningCarrier, startCarrier } from "../support/carriers/server.js";
import { snsCertificate, snsKey } from "../support/carriers/sns-key.js";
import { twilioCarrier, twilioOptions } from "../support/carriers/twilio.js";

let running: RunningCarrier | undefined;
afterEach(async () => {
  vi.unstubAllGlobals();
  await running?.close();
});

async function start(mood: Mood): Promise<RunningCarrier> {
  running = await startCarrier(twilioCarrier, mood);
  return running;
}

const sendTo = (baseUrl: string, options: { timeout?: number; fetch?: Fetch } = {}) =>
  twilioSender({ ...twilioOptions, baseUrl, ...options }).send(aMessage(), inTime());

it("the sender's own timeout ends the wait before the send's deadline", async () => {
  const { url } = await start("withholds");
  expect(await sendTo(url, { timeout: 1 })).toEqual({ outcome: "unknown", reason: "no response in time" });
});

it("a message whose time is over before it starts is not sent", async () => {
  const { url, requests } = await start("accepts");
  const outcome = await twilioSender({ ...twilioOptions, baseUrl: url }).send(aMessage(), { signal: AbortSignal.abort(), deadline: 0, timeLeft: 0 });
  expect(outcome).toEqual({ outcome: "rejected", reason: "not sent: timed out" });
  expect(requests).toEqual([]);
});

it("the reason for a text without a code is not changed", async () => {
  const { url } = await start("refuses");
  const outcome = await twilioSender({ ...twilioOptions, baseUrl: url }).send(aMessage({ text: "Your password was changed.", code: "" }), inTime());
  expect(outcome).toEqual({ outcome: "rejected", reason: "HTTP 400, code 21211" });
});

it("a timeout leaves no timer and no listener behind", async () => {
  const { url } = await start("accepts");
  const { signal } = new AbortController();
  const added = vi.spyOn(signal, "addEventListener");
  const removed = vi.spyOn(signal, "removeEventListener");
  const cleared = vi.spyOn(globalThis, "clearTimeout");
  await twilioSender({ ...twilioOptions, baseUrl: url, timeout: 3600 }).send(aMessage(), { signal, deadline: Date.now() + 1000, timeLeft: 1000 });
  expect(removed.mock.calls.length).toBe(added.mock.calls.length);
  expect(cleared.mock.calls.some(([timer]) => timer !== undefined)).toBe(true);
  cleared.mockRestore();
});

it("a truncated response gives `unknown` if it should contain the id, and `rejected` if its status shows that", async () => {
  const { url } = await start("breaks off");
  expect(await sendTo(url)).toEqual({ outcome: "unknown", reason: "the carrier's response is not in the expected format" });
  const broken = () => new ReadableStream({ pull: (stream) => stream.error(new Error("cut")) });
  expect(await sendTo(url, { fetch: async () => new Response(broken(), { status: 400 }) })).toEqual({ outcome: "rejected", reason: "HTTP 400" });
});

it.each([
  [429, "rejected"],
  [503, "unknown"],
])("an error whose body never ends is decided by its status, in time for another route: %d", async (status, outcome) => {
  const server = createPlainServer((_, response) => response.writeHead(status).write('{"code":'));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const began = Date.now();
  expect(await sendTo(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)).toEqual({ outcome, reason: `HTTP ${status}` });
  expect(Date.now() - began).toBeLessThan(2_000);
  await new Promise((resolve) => server.close(resolve));
});

it("a body that is not a web stream, such as node-fetch's, is read as text", async () => {
  const nodeFetch =
    (text: () => Promise<string>): Fetch =>
    async () => ({ status: 201, body: Readable.from([]), text });
  const answer = JSON.stringify({ sid: "SM1", status: "queued" });
  expect(await sendTo("https://carrier.example", { fetch: nodeFetch(async () => answer) })).toEqual({ outcome: "accepted", messageId: "SM1" });
  const cut = nodeFetch(() => Promise.reject(new Error("cut")));
  expect(await sendTo("https://carrier.example", { fetch: cut })).toEqual({
    outcome: "unknown",
    reason: "the carrier's response is not in the expected format",
  });
});

it("an endless response is not read to the end", async () => {
  const { url } = await start("endless");
  expect(await sendTo(url)).toEqual({ outcome: "unknown", reason: "the carrier's response is not in the expected format" });
  let parts = 0;
  let cancelled = false;
  const endless = new ReadableStream<Uint8Array>({
    pull(stream) {
      parts += 1;
      stream.enqueue(new Uint8Array(16_384).fill(0x78));
    },
    cancel() {
      cancelled = true;
    },
  });
  expect(await sendTo(url, { fetch: async () => new Response(endless, { status: 201 }) })).toMatchObject({ outcome: "unknown" });
  expect(parts).toBeLessThan(10);
  expect(cancelled).toBe(true);
});

it("a redirect is not followed, so the credentials go nowhere else", async () => {
  const elsewhere = await startCarrier(twilioCarrier, "accepts");
  const server = createPlainServer((_, response) =>
    response.writeHead(307, { location: `${elsewhere.url}/2010-04-01/Accounts/${twilioOptions.accountSid}/Messages.json` }).end(),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  expect(await sendTo(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)).toEqual({ outcome: "unknown", reason: "HTTP 307" });
  expect(elsewhere.requests).toEqual([]);
  await elsewhere.close();
  await new Promise((resolve) => server.close(resolve));
});

it("a host name that does not exist gives `rejected`, because nothing was sent", async () => {
  expect(await sendTo("http://carrier.invalid")).toEqual({
    outcome: "rejected",
    reason: expect.stringMatching(/^not sent: no connection, code (ENOTFOUND|EAI_AGAIN)$/),
  });
});

it.each([
  ["plain HTTP", "HTTP/1.1 400 Bad Request\r\n\r\n", / no connection, code ERR_SSL_WRONG_VERSION_NUMBER$/],
  ["nothing before it closes", "", / no connection, code ECONNRESET$/],
  ["a TLS alert that no version or cipher is shared", Buffer.from([21, 3, 3, 0, 2, 2, 40]), / no connection/],
  ["a TLS alert that the version is not supported", Buffer.from([21, 3, 3, 0, 2, 2, 70]), / no connection, code ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION$/],
])("a server that answers a TLS handshake with %s gives `rejected`, because nothing was sent", async (_, answer, reason) => {
  const server = createTcpServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.end(answer));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const outcome = await sendTo(`https://127.0.0.1:${(server.address() as AddressInfo).port}`);
  expect(outcome).toEqual({ outcome: "rejected", reason: expect.stringMatching(reason) });
  await new Promise((resolve) => server.close(resolve));
});

it("an untrusted certificate gives `rejected`, because nothing was sent", async () => {
  let requests = 0;
  const server = createServer({ key: snsKey, cert: snsCertificate }, () => {
    requests += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  expect(await sendTo(`https://127.0.0.1:${(server.address() as AddressInfo).port}`)).toEqual({
    outcome: "rejected",
    reason: "not sent: no connection, code DEPTH_ZERO_SELF_SIGNED_CERT",
  });
  expect(requests).toBe(0);
  await new Promise((resolve) => server.close(resolve));
});

/** node-fetch's error for an error of the system: it has no cause. */
const nodeFetchError = (code: string, message: string) =>
  Object.assign(new Error(`request to http://127.0.0.1:9/ failed, reason: ${message}`), { name: "FetchError", type: "system", code, errno: code });

it.each([
  [
    "Node, refused on every address",
    new TypeError("fetch failed", {
      cause: Object.assign(
        new AggregateError([
          Object.assign(new Error("a"), { code: "ECONNREFUSED", syscall: "connect" }),
          Object.assign(new Error("b"), { code: "ETIMEDOUT", syscall: "connect" }),
        ]),
        { code: "ECONNREFUSED" },
      ),
    }),
    "rejected",
  ],
  ["Node, no connection in time", new TypeError("fetch failed", { cause: Object.assign(new Error("x"), { code: "UND_ERR_CONNECT_TIMEOUT" }) }), "rejected"],
  [
    "Node, a certificate for another name",
    new TypeError("fetch failed", { cause: Object.assign(new Error("x"), { code: "ERR_TLS_CERT_ALTNAME_INVALID" }) }),
    "rejected",
  ],
  ["Bun, refused", Object.assign(new Error("Unable to connect"), { code: "ConnectionRefused" }), "rejected"],
  [
    "undici, a proxy that opens no tunnel",
    new TypeError("fetch failed", {
      cause: new Error("Request was cancelled.", {
        cause: Object.assign(new Error("Proxy response (407) !== 200 when HTTP Tunneling"), { code: "UND_ERR_ABORTED" }),
      }),
    }),
    "rejected",
  ],
  ["node-fetch, refused", nodeFetchError("ECONNREFUSED", "connect ECONNREFUSED 127.0.0.1:9"), "rejected"],
  ["node-fetch, refused on every address", nodeFetchError("ECONNREFUSED", ""), "rejected"],
  ["node-fetch, no such host", nodeFetchError("ENOTFOUND", "getaddrinfo ENOTFOUND carrier.invalid"), "rejected"],
  ["node-fetch, no route to the host", nodeFetchError("EHOSTUNREACH", "connect EHOSTUNREACH 192.0.2.1:443"), "rejected"],
  [
    "node-fetch, a handshake cut short",
    nodeFetchError("ECONNRESET", "Client network socket disconnected before secure TLS connection was established"),
    "rejected",
  ],
  [
    "node-fetch, no TLS",
    nodeFetchError("EPROTO", `write EPROTO 80:error:0A00010B:SSL routines:ssl3_get_record:wrong version number:record.c:350:\n`),
    "rejected",
  ],
  [
    "node-fetch, a TLS alert that may follow a request",
    nodeFetchError("EPROTO", `write EPROTO 80:error:0A000438:SSL routines:ssl3_read_bytes:tlsv1 alert internal error:record.c:1601:SSL alert number 80\n`),
    "unknown",
  ],
  ["node-fetch, reset", nodeFetchError("ECONNRESET", "read ECONNRESET"), "unknown"],
  ["node-fetch, cut", nodeFetchError("ECONNRESET", "socket hang up"), "unknown"],
  ["Node, cut", new TypeError("fetch failed", { cause: Object.assign(new Error("other side closed"), { code: "UND_ERR_SOCKET" }) }), "unknown"],
  ["Node, reset while reading", new TypeError("fetch failed", { cause: Object.assign(new Error("x"), { code: "ECONNRESET", syscall: "read" }) }), "unknown"],
  [
    "Node, refused on one address and reset on another",
    new TypeError("fetch failed", {
      cause: new AggregateError([
        Object.assign(new Error("a"), { code: "ECONNREFUSED", syscall: "connect" }),
        Object.assign(new Error("b"), { code: "ECONNRESET", syscall: "read" }),
      ]),
    }),
    "unknown",
  ],
  [
    "Node, a TLS alert that may follow a request",
    new TypeError("fetch failed", { cause: Object.assign(new Error("x"), { code: "ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR" }) }),
    "unknown",
  ],
  ["no error at all", undefined, "unknown"],
  [
    "an error that is its own cause",
    Object.defineProperty(new Error("x"), "cause", {
      get: function (this: Error) {
        return this;
      },
    }),
    "unknown",
  ],
])("an error thrown by fetch gives the right outcome: %s", async (_, error, outcome) => {
  expect(await sendTo("http://127.0.0.1:9", { fetch: () => Promise.reject(error) })).toMatchObject({ outcome });
});

const fetchFailed = (message: string, fields: object = {}) => new TypeError("fetch failed", { cause: Object.assign(new Error(message), fields) });

it.each([
  ["bad port", fetchFailed("bad port"), "not sent: no connection: fetch blocks this port"],
  [
    "a proxy that opens no tunnel",
    fetchFailed("Proxy response (407) !== 200 when HTTP Tunneling", { name: "AbortError", code: "UND_ERR_ABORTED" }),
    "not sent: no connection: the proxy responded with HTTP 407",
  ],
  ["a closed dispatcher", fetchFailed("The client is closed", { code: "UND_ERR_CLOSED" }), "not sent: no connection, code UND_ERR_CLOSED"],
  [
    "a destroyed dispatcher, which may have sent it",
    fetchFailed("The client is destroyed", { name: "ClientDestroyedError", code: "UND_ERR_DESTROYED" }),
    "no response: ClientDestroyedError, code UND_ERR_DESTROYED",
  ],
  ["an error in an own fetch", new ReferenceError("HTTPS_PROXY is not defined"), "no response: ReferenceError: HTTPS_PROXY is not defined"],
  [
    "an error whose message may contain keys, a number and the code",
    new TypeError("error sending request for url (https://sms.example/?key=k&to=%2B14155552671): 493817 to +1 415 555 2671"),
    "no response: TypeError",
  ],
  ["no error at all", undefined, "no response"],
])("an error thrown by fetch is in the reason: %s", async (_, error, reason) => {
  expect(await sendTo("http://127.0.0.1:9", { fetch: () => Promise.reject(error) })).toEqual({
    outcome: reason.startsWith("not sent") ? "rejected" : "unknown",
    reason,
  });
});

it("a port that fetch blocks is named, and nothing was sent", async () => {
  expect(await sendTo("http://127.0.0.1:6000")).toEqual({ outcome: "rejected", reason: "not sent: no connection: fetch blocks this port" });
});

it("a response of 407 gives `unknown`: Node's fetch turns it into an error without a message or code", async () => {
  const server = createPlainServer((_, response) => response.writeHead(407).end("{}"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const outcome = await sendTo(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  expect(outcome).toEqual({ outcome: "unknown", reason: expect.stringMatching(/^no response(: TypeError)?$/) });
  await new Promise((resolve) => server.close(resolve));
});

it("the global fetch is looked up for each message, so that tools can replace it", async () => {
  const sender = twilioSender(twilioOptions);
  const seen: string[] = [];
  vi.stubGlobal("fetch", async (url: string) => {
    seen.push(url);
    return new Response(JSON.stringify({ sid: "SM9", status: "queued" }), { status: 201 });
  });
  expect(await sender.send(aMessage(), inTime())).toEqual({ outcome: "accepted", messageId: "SM9" });
  expect(seen).toEqual([`https://api.twilio.com/2010-04-01/Accounts/${twilioOptions.accountSid}/Messages.json`]);
});

it("a base URL keeps its path and loses its trailing slashes", async () => {
  const seen: string[] = [];
  const fetch: Fetch = async (url) => {
    seen.push(url);
    return new Response(null, { status: 400 });
  };
  expect(await sendTo("https://mock.example/twilio//", { fetch })).toEqual({ outcome: "rejected", reason: "HTTP 400" });
  expect(seen[0]).toBe(`https://mock.example/twilio/2010-04-01/Accounts/${twilioOptions.accountSid}/Messages.json`);
});
