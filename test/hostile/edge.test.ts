import { getEventListeners } from "node:events";
import { Agent, createServer, request } from "node:http";
import { connect } from "node:net";
import express from "express";
import fastify from "fastify";
import { afterEach, describe, expect, it } from "vitest";
import { turnstileChallenge } from "../../adapters/challenge/turnstile.js";
import { expressHandlers } from "../../adapters/http/express.js";
import { fastifyPlugin } from "../../adapters/http/fastify.js";
import { nodeHandler } from "../../adapters/http/node.js";
import { telnyxLookup } from "../../adapters/lookup/telnyx.js";
import { awsReceipts } from "../../adapters/sms/aws.js";
import { twilioReceipts } from "../../adapters/sms/twilio.js";
import { createClient } from "../../clients/client/index.js";
import type { Verifier } from "../../src/index.js";
import { signAws, signTwilio, topicArn } from "../support/carriers/receipts.js";
import { snsCertificate } from "../support/carriers/sns-key.js";
import { keyOf } from "./kit.js";
import { base, begin, listening, messageOf, noon, post, tellers, told, urlOf } from "./receipt-kit.js";

const ended: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0)) await end();
});

/** A server on the loopback interface. */
async function serve(answer: Parameters<typeof createServer>[1]): Promise<string> {
  const server = createServer(answer as never);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  ended.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`;
}

const context = () => ({ signal: AbortSignal.timeout(20_000), timeLeft: 20_000 });

describe("edge cases of adapters and clients", () => {
  it.each([
    [
      { mobile_country_code: "311", mobile_network_code: "480" },
      { mcc: "311", mnc: "480" },
    ],
    [{ mobile_country_code: null, mobile_network_code: "004" }, {}],
    [{ mobile_network_code: "Verizon 4" }, {}],
    [{ mobile_country_code: "1", mobile_network_code: "48" }, {}],
  ])("Telnyx's network code counts only with a country code of three digits: %o", async (carrier, facts) => {
    const url = await serve((_request, response) =>
      response.end(JSON.stringify({ data: { phone_number: "+14155552671", carrier: { name: "Verizon", type: "mobile", ...carrier } } })),
    );
    const looked = await telnyxLookup({ apiKey: "KEY", baseUrl: url }).lookup(
      { phone_number: "+14155552671", country_code: "US", line_type: "Unknown" },
      context(),
    );
    expect(looked).toEqual({ carrier: "Verizon", line_type: "Mobile", ...facts });
  });

  it("a huge siteverify response is rejected, and most of it is never read", async () => {
    let sent = 0;
    const url = await serve((_request, response) => {
      const more = (): void => {
        while (!response.destroyed && sent < 500_000_000) {
          sent += 65_536;
          if (!response.write(" ".repeat(65_536))) return void response.once("drain", more);
        }
      };
      more();
    });
    await expect(turnstileChallenge({ secret: "0x", baseUrl: url }).verify("proof", context())).rejects.toThrow("turnstileChallenge");
    expect(sent).toBeLessThan(20_000_000);
  });

  it("a thousand unsigned receipts make one warning a minute, with the provider's name", async () => {
    const one = listening({ receipts: { baseUrl: base, sources: [twilioReceipts({ authToken: "t" })] } } as never);
    const ask = () =>
      one.verifier.receipts.handle({
        method: "POST",
        path: "/receipts/twilio",
        header: () => undefined,
        body: async () => ({ kind: "text", text: "MessageStatus=delivered" }),
      });
    for (let i = 0; i < 1000; i++) expect((await ask()).status).toBe(403);
    one.clock.advance(60_000);
    await ask();
    const warnings = one.log.filter(({ level }) => level === "warn");
    expect(warnings).toHaveLength(2);
    expect(warnings[1]).toMatchObject({ fields: { provider: "twilio", left_out: 999 } });
  });

  it("a client leaves no listener on a signal that calls may share", async () => {
    const { signal } = new AbortController();
    let calls = 0;
    const url = await serve((_request, response) => {
      response.statusCode = 503;
      response.setHeader("retry-after", "0");
      response.end(JSON.stringify({ code: "unavailable", message: "m", doc_url: `d ${calls++}` }));
    });
    const client = createClient({ baseUrl: url, apiKey: "pp_key", customerUuid: crypto.randomUUID(), retries: 3 });
    await expect(client.lookup({ phone_number: "+33612345678" }, { signal })).rejects.toThrow();
    expect([calls, getEventListeners(signal, "abort")]).toEqual([4, []]);
  });

  it.each<[string, string, boolean?]>([
    ["RCS_QUEUED", "submitted"],
    ["RCS_UNREACHABLE", "in_transit"],
    ["RCS_SENT", "in_transit"],
    ["RCS_DELIVERED", "delivered"],
    ["RCS_READ", "delivered"],
    ["RCS_BLOCKED", "undeliverable", true],
    ["RCS_SMS_FALLBACK", "in_transit"],
  ])("AWS's %s is %s", async (eventType, status, isFinal = false) => {
    const asked = await signAws({ eventType, isFinal, messageId: "m1", eventTimestamp: noon, context: { phoneproof: "reference" } }, { at: noon });
    const reading = await awsReceipts({ topicArn, fetch: async () => new Response(snsCertificate) }).read(asked, noon);
    expect(reading).toMatchObject({ receipts: [{ status }] });
  });

  it("Twilio's partially_delivered is delivered", async () => {
    const asked = await signTwilio({ MessageSid: "SM1", MessageStatus: "partially_delivered" }, { at: noon, url: `${base}/receipts/twilio` });
    expect(await twilioReceipts({ authToken: "twilio-auth-token" }).read(asked, noon)).toMatchObject({ receipts: [{ status: "delivered" }] });
  });

  it("a signed Telnyx receipt of one message is rejected when posted to another's reference", async () => {
    const one = listening();
    const [first, second] = [await begin(one, 1), await begin(one, 2)];
    const url = (id: string) => urlOf(messageOf(one, id), "telnyx");
    const asked = await tellers["telnyx"]!.tell({ url: url(first), reference: "", id: "m1", status: "undeliverable", at: one.clock.now() });
    expect((await post(one.verifier, { ...asked, url: url(second) })).status).toBe(403);
    expect(await told(one, second)).toEqual(["1:submitted"]);
    expect((await post(one.verifier, asked)).status).toBe(200);
    expect(await told(one, first)).toEqual(["1:submitted", "1:undeliverable"]);
  });

  it("under a prefix, the Fastify plugin leaves malformed URLs of the host's own routes unchanged", async () => {
    const app = fastify();
    app.register(fastifyPlugin(listening().verifier), { prefix: "/api" });
    const urls: (string | undefined)[] = [];
    app.server.on("request", (request) => urls.push(request.url));
    await app.listen({ port: 0, host: "127.0.0.1" });
    ended.push(() => app.close());
    const { port } = app.server.address() as { port: number };
    for (const path of ["/shop/v1/%zz", "/api/v1/%zz"]) await raw(port, `GET ${path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`);
    expect(urls).toEqual(["/shop/v1/%zz", "/api/v1/%25zz"]);
  });

  it.each(["/API/v1/check", "/%61pi/v1/check"])("Fastify serves a prefix in another spelling that its router accepts: %s", async (url) => {
    const one = listening();
    const app = fastify({ routerOptions: { caseSensitive: false } });
    app.register(fastifyPlugin(one.verifier), { prefix: "/api" });
    const answer = await app.inject({ method: "POST", url, headers: { "x-api-key": keyOf(one.customer) }, payload: {} });
    expect([answer.statusCode, answer.json().code]).toEqual([400, "bad_request"]);
    await app.close();
  });

  it.each(["PROPFIND", "MKCOL", "PURGE", "REPORT"])("Fastify responds to %s under /v1 with 405", async (method) => {
    const app = fastify();
    app.register(fastifyPlugin(listening().verifier));
    await app.listen({ port: 0, host: "127.0.0.1" });
    ended.push(() => app.close());
    const answer = await raw((app.server.address() as { port: number }).port, `${method} /v1/check HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 405 .*allow: POST.*"code":"method_not_allowed"/is);
  });

  const hosts: [string, (verifier: Verifier) => Promise<number>][] = [
    ["Express", async (verifier) => portOf(createServer(express().use(expressHandlers(verifier) as never)))],
    ["plain node", async (verifier) => portOf(createServer(nodeHandler(verifier)))],
    [
      "Fastify",
      async (verifier) => {
        const app = fastify({ forceCloseConnections: true });
        app.register(fastifyPlugin(verifier));
        await app.listen({ port: 0, host: "127.0.0.1" });
        ended.push(() => app.close());
        return (app.server.address() as { port: number }).port;
      },
    ],
  ];
  it.each(hosts.flatMap(([name, start]) => [300_000, 3_000_000].map((size) => [name, size, start] as const)))(
    "%s, a body of %i bytes: the 413 closes the connection, or the next request on it gets a response",
    async (_, size, start) => {
      const one = listening();
      const port = await start(one.verifier);
      const head = (length: number) =>
        `POST /v1/check HTTP/1.1\r\nhost: a\r\nx-api-key: ${keyOf(one.customer)}\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`;
      const answer = await raw(port, `${head(size)}${" ".repeat(size)}${head(2)}{}`, (text) => /connection: close/i.test(text) || text.includes("400 Bad"));
      expect(answer).toMatch(/^HTTP\/1\.1 413 /);
      expect(answer).toMatch(/connection: close|HTTP\/1\.1 400 /i);
    },
  );

  it.each(hosts)("%s: its 413 reaches a client that is still sending 20 MB, piece by piece", async (_, start) => {
    const one = listening();
    const asking = request({
      port: await start(one.verifier),
      method: "POST",
      path: "/v1/check",
      headers: { "x-api-key": keyOf(one.customer), "content-length": 20 * 1024 * 1024 },
      agent: new Agent({ keepAlive: true }),
    });
    const piece = Buffer.alloc(64 * 1024);
    const statuses = new Promise((resolve, reject) => asking.on("response", ({ statusCode }) => resolve(statusCode)).on("error", reject));
    for (let i = 0; i < 320; i++) {
      asking.write(piece);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await statuses).toBe(413);
    asking.destroy();
  });
});

async function portOf(server: ReturnType<typeof createServer>): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  ended.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as { port: number }).port;
}

/** Writes to a new connection, and returns what it receives until the end or until `isEnough`. */
function raw(port: number, text: string, isEnough: (answer: string) => boolean = () => false): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(text));
    socket.on("data", (chunk) => {
      answer += chunk;
      if (isEnough(answer)) socket.destroy();
    });
    socket.on("error", (error) => (answer === "" ? reject(error) : resolve(answer)));
    socket.on("close", () => resolve(answer));
  });
}
