import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import express from "express";
import Fastify from "fastify";
import { afterEach, describe, expect, it } from "vitest";
import { expressHandlers } from "../../adapters/http/express.js";
import { fastifyPlugin } from "../../adapters/http/fastify.js";
import { fetchHandler } from "../../adapters/http/fetch.js";
import { nextHandlers } from "../../adapters/http/next.js";
import { nodeHandler } from "../../adapters/http/node.js";
import { africasTalkingReceipts } from "../../adapters/sms/africastalking.js";
import { infobipReceipts } from "../../adapters/sms/infobip.js";
import { twilioReceipts, twilioSender } from "../../adapters/sms/twilio.js";
import type { DeliveryStatusEvent, Feedback, Verifier } from "../../src/index.js";
import { signTwilio } from "../support/carriers/receipts.js";
import { numberOf, setUp, start } from "../support/verifier.js";

const base = "https://otp.example";
const sources = [twilioReceipts({ authToken: "twilio-auth-token" }), africasTalkingReceipts(), infobipReceipts()];

/** A verifier that takes receipts, and the statuses that its callbacks tell. */
function withReceipts() {
  const told: string[] = [];
  const feedback: Feedback[] = [];
  const set = setUp({
    receipts: { baseUrl: base, sources },
    callbacks: {
      worker: false,
      allowOrigins: ["http://receiver.test"],
      sender: { post: async ({ body }) => ({ status: told.push((JSON.parse(body) as DeliveryStatusEvent).data.status) > 0 ? 200 : 500 }) },
    },
  });
  Object.assign(set.box, { plan: () => ({ route: "one" }), feedback: (event: Feedback) => feedback.push(event) });
  const create = () => set.create({ callback_url: "http://receiver.test/" });
  const events = async () => {
    await set.verifier.flush();
    return told;
  };
  /** The URL of the newest message, for a provider. */
  const urlOf = (provider: string) => (set.box.messages.at(-1)?.receipt_url ?? "").replace("{provider}", provider);
  const post = async (verifier: Verifier, url: string, body: string, headers: Record<string, string> = {}) => {
    const { pathname, search } = new URL(url);
    const response = await verifier.receipts.handle({
      method: "POST",
      path: pathname,
      query: search,
      header: (name) => headers[name],
      body: async () => ({ kind: "bytes", bytes: new TextEncoder().encode(body) }),
    });
    return response.status;
  };
  const twilio = (status: string, url = urlOf("twilio")) => {
    const request = signTwilio({ MessageSid: "SM1", MessageStatus: status, To: numberOf(1) }, { url } as never) as unknown as {
      url: string;
      body: Uint8Array;
      header(name: string): string | undefined;
    };
    return {
      url,
      body: Buffer.from(request.body).toString(),
      headers: { "x-twilio-signature": request.header("x-twilio-signature") ?? "", "content-type": "application/x-www-form-urlencoded" },
    };
  };
  const fromTwilio = async (status: string, change: (request: ReturnType<typeof twilio>) => Partial<ReturnType<typeof twilio>> = () => ({})) => {
    const made = twilio(status);
    const { url, body, headers } = { ...made, ...change(made) };
    return post(set.verifier, url, body, headers);
  };
  return { ...set, create, events, urlOf, post, fromTwilio, twilio, feedback };
}

describe("receipts: normalised, idempotent, out of order tolerated, a final status never left", () => {
  it("each status is told once, in order", async () => {
    const set = withReceipts();
    await set.create();
    for (const status of ["queued", "sent", "sent", "delivered", "delivered"]) expect(await set.fromTwilio(status)).toBe(200);
    expect(await set.events()).toEqual(["submitted", "in_transit", "delivered"]);
  });

  it("late and contradictory receipts change nothing", async () => {
    const set = withReceipts();
    await set.create();
    for (const status of ["delivered", "sent", "queued", "undelivered"]) expect(await set.fromTwilio(status)).toBe(200);
    expect(await set.events()).toEqual(["submitted", "delivered"]);
  });

  it("twins at the same time are told once", async () => {
    const set = withReceipts();
    await set.create();
    await Promise.all(Array.from({ length: 50 }, () => set.fromTwilio("delivered")));
    expect(await set.events()).toEqual(["submitted", "delivered"]);
    expect(set.feedback.map(({ event }) => event)).toEqual(["delivered"]);
  });

  it("nothing is ever gated on a receipt: the code of an undeliverable message works, and validating it tells the route", async () => {
    const set = withReceipts();
    const { authentication_uuid } = await set.create();
    await set.fromTwilio("failed");
    expect((await set.check(authentication_uuid, set.box.code())).status).toBe("valid");
    expect(set.feedback).toEqual([
      { route: "one", country: "FR", authentication_uuid, attempt: 1, sent_at: start, chosen: true, event: "undeliverable" },
      { route: "one", country: "FR", authentication_uuid, attempt: 1, sent_at: start, chosen: true, event: "validated" },
    ]);
  });

  it("unknown ids are answered 2xx and ignored", async () => {
    const set = withReceipts();
    await set.create();
    const url = `${base}/receipts/twilio`;
    const { body, headers } = set.twilio("delivered", url);
    expect(await set.post(set.verifier, url, body, headers)).toBe(200);
    expect(await set.events()).toEqual(["submitted"]);
  });

  it("receipts that name the carrier's id alone find their message by it", async () => {
    const set = withReceipts();
    set.box.answer = async () => ({ outcome: "accepted", messageId: "SM1" });
    await set.create();
    const url = `${base}/receipts/twilio`;
    const { body, headers } = set.twilio("delivered", url);
    expect(await set.post(set.verifier, url, body, headers)).toBe(200);
    expect(await set.events()).toEqual(["submitted", "delivered"]);
  });

  it("receipts that come on another way than HTTP", async () => {
    const set = withReceipts();
    set.box.answer = async () => ({ outcome: "accepted", messageId: "77" });
    await set.create();
    await set.verifier.settleReceipts([
      { messageId: "77", status: "delivered" },
      { messageId: "78", status: "undeliverable" },
    ]);
    expect(await set.events()).toEqual(["submitted", "delivered"]);
  });
});

describe("receipts: bad signatures refused, nothing settled", () => {
  it.each([
    ["another body", (made: { body: string }) => ({ body: made.body.replace("delivered", "undelivered") })],
    ["another signature", () => ({ headers: { "x-twilio-signature": "AAAA" } })],
    ["no signature", () => ({ headers: {} })],
    [
      "a prefix of the signature",
      (made: { headers: Record<string, string> }) => ({
        headers: { ...made.headers, "x-twilio-signature": made.headers["x-twilio-signature"]?.slice(0, 10) ?? "" },
      }),
    ],
    ["another query", (made: { url: string }) => ({ url: `${made.url}&x=1` })],
    ["another attempt in the URL", (made: { url: string }) => ({ url: made.url.replace("n=1", "n=2") })],
  ])("%s", async (_what, change) => {
    const set = withReceipts();
    await set.create();
    expect(await set.fromTwilio("delivered", change as never)).toBe(403);
    expect(await set.events()).toEqual(["submitted"]);
  });

  it("carriers that sign nothing are covered by the URL, which nobody else can make", async () => {
    const set = withReceipts();
    await set.create();
    const body = "id=ATXid_1&status=Success&phoneNumber=%2B33612000001&networkCode=20801";
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    const url = set.urlOf("africastalking");
    for (const bad of [
      `${base}/receipts/africastalking`,
      url.replace(/t=[^&]*/, "t=AAAA"),
      url.replace(/a=[^&]*/, "a=11111111-2222-3333-4444-555555555555"),
      url.replace(/&t=[^&]*/, ""),
    ]) {
      expect(await set.post(set.verifier, bad, body, headers)).toBe(403);
    }
    expect(await set.events()).toEqual(["submitted"]);
    expect(await set.post(set.verifier, url, body, headers)).toBe(200);
    expect(await set.events()).toEqual(["submitted", "delivered"]);
  });

  it("another customer's message cannot be named with a URL of one's own", async () => {
    const [mine, theirs] = [withReceipts(), withReceipts()];
    await mine.create();
    await theirs.create();
    const their = new URL(theirs.urlOf("africastalking"));
    const forged = new URL(mine.urlOf("africastalking"));
    forged.searchParams.set("a", their.searchParams.get("a") ?? "");
    forged.searchParams.set("c", their.searchParams.get("c") ?? "");
    expect(await mine.post(mine.verifier, String(forged), "id=1&status=Success")).toBe(403);
  });

  it("unknown providers are 404, nonsense is 4xx, and the store down is 503 so that the carrier tries again", async () => {
    const set = withReceipts();
    await set.create();
    expect(await set.post(set.verifier, set.urlOf("nobody"), "")).toBe(404);
    expect(await set.post(set.verifier, set.urlOf("infobip"), "not json", { "content-type": "application/json" })).toBe(400);
    set.store.find = () => Promise.reject(new Error("down"));
    set.store.commit = () => Promise.reject(new Error("down"));
    expect(await set.fromTwilio("delivered")).toBe(503);
  });
});

describe("the receipts handler in every framework", () => {
  const closing: (() => Promise<unknown> | unknown)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });
  const listen = async (server: Server): Promise<string> => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    closing.push(() => server.close());
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  };

  const mounts: Record<string, (verifier: Verifier) => Promise<(path: string, init: RequestInit) => Promise<Response>>> = {
    async node(verifier) {
      const origin = await listen(createServer(nodeHandler(verifier.receipts)));
      return (path, init) => fetch(origin + path, init);
    },
    async "express, before the parsers"(verifier) {
      const app = express();
      app.use(expressHandlers(verifier.receipts));
      app.use(express.json(), express.urlencoded());
      app.use(expressHandlers(verifier));
      const origin = await listen(createServer(app));
      return (path, init) => fetch(origin + path, init);
    },
    async fastify(verifier) {
      const app = Fastify();
      app.register(fastifyPlugin(verifier));
      app.register(fastifyPlugin(verifier.receipts));
      const origin = await app.listen({ port: 0, host: "127.0.0.1" });
      closing.push(() => app.close());
      return (path, init) => fetch(origin + path, init);
    },
    async fetch(verifier) {
      const handler = fetchHandler(verifier.receipts);
      return (path, init) => handler(new Request(base + path, init));
    },
    async next(verifier) {
      const { POST } = nextHandlers(verifier.receipts);
      return (path, init) => POST(new Request(base + path, init));
    },
  };

  it.each(Object.entries(mounts))("%s", async (_name, mount) => {
    const set = withReceipts();
    await set.create();
    const send = await mount(set.verifier);
    const { url, body, headers } = set.twilio("delivered");
    const { pathname, search } = new URL(url);
    expect((await send(pathname + search, { method: "POST", body: body.replace("delivered", "failed"), headers })).status).toBe(403);
    expect((await send(pathname + search, { method: "POST", body, headers })).status).toBe(200);
    expect(await set.events()).toEqual(["submitted", "delivered"]);
  });

  it("a body parser before it is a fault that says the mend", async () => {
    const set = withReceipts();
    await set.create();
    const app = express();
    app.use(express.urlencoded());
    app.use(expressHandlers(set.verifier.receipts));
    const origin = await listen(createServer(app));
    const { url, body, headers } = set.twilio("delivered");
    const { pathname, search } = new URL(url);
    expect((await fetch(origin + pathname + search, { method: "POST", body, headers })).status).toBe(500);
    expect(set.log.lines.map(({ fields }) => String(fields.err)).join()).toContain("mount the receipts handler before express.json() and express.urlencoded()");
  });
});

it("a sender puts its provider's name into the URL: Twilio posts back what it was told", async () => {
  const requests: string[] = [];
  const sender = twilioSender({
    accountSid: `AC${"0".repeat(32)}`,
    authToken: "twilio-auth-token",
    from: "+15005550006",
    fetch: (async (_url: string, init: { body: string }) => {
      requests.push(init.body);
      return new Response(JSON.stringify({ sid: "SM1", status: "queued" }), { status: 201 });
    }) as never,
  });
  const set = setUp({ sender, receipts: { baseUrl: `${base}/`, sources } });
  await set.create();
  const callback = new URL(new URLSearchParams(requests[0]).get("StatusCallback") ?? "");
  expect(callback.origin + callback.pathname).toBe(`${base}/receipts/twilio`);
});
