import { readFileSync, writeFileSync } from "node:fs";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { environmentFor } from "./environment.js";
import { readPages } from "./pages.js";
import { layOut } from "./project.js";
import { type Running, start } from "./run.js";

// Starts the programs of the documents that are servers, and sends them requests.

const pages = readPages();
const texts = pages.flatMap(({ blocks }) => blocks.map(({ text }) => text));
const project = layOut(pages, "phoneproof-docs-driven");
const environment = environmentFor(texts);
const running: Running[] = [];

async function begin(page: string, name: string, more: Readonly<Record<string, string>> = {}): Promise<Running> {
  const one = await start(project.fileOf(page, name), { ...environment, ...more });
  running.push(one);
  return one;
}

beforeAll(async () => {
  await project.compile("unchecked");
});
afterAll(async () => {
  for (const one of running) await one.end();
  project.remove();
});

const customer_uuid = "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f";
const create = () => ({
  method: "POST",
  headers: { "content-type": "application/json", "x-api-key": environment["PHONEPROOF_API_KEY"] ?? "" },
  body: JSON.stringify({ customer_uuid, phone_number: "+33612345678" }),
});

describe("docs/frameworks.md: servers respond under /v1", () => {
  it.each(["express.ts", "express.cjs", "fastify.ts", "node.ts", "hono.ts", "main.ts", "koa.ts"])("%s", async (name) => {
    const { port } = await begin("docs/frameworks.md", name);
    const answer = await fetch(`http://127.0.0.1:${port}/v1/authentication`, create());
    expect([answer.status, await answer.json()]).toMatchObject([200, { status: "pending" }]);
  });

  it.each(["express.ts", "fastify.ts", "node.ts", "hono.ts", "main.ts"])("%s also responds under /receipts", async (name) => {
    const { port } = await begin("docs/frameworks.md", name);
    const answer = await fetch(`http://127.0.0.1:${port}/receipts/twilio`, { method: "POST", body: "a=b" });
    expect([answer.status, await answer.json()]).toMatchObject([404, { code: "not_found", message: expect.stringContaining("receipt") }]);
  });

  it("koa.ts leaves the app its own paths that only begin like /v1", async () => {
    const { port } = await begin("docs/frameworks.md", "koa.ts");
    const answers = ["/v10/users", "/v1-docs", "/v1.json"].map(async (path) => (await fetch(`http://127.0.0.1:${port}${path}`)).text());
    expect(await Promise.all(answers)).toEqual(Array(3).fill("Not Found"));
  });

  it("README.md: service.ts", async () => {
    const { port } = await begin("README.md", "service.ts");
    expect((await fetch(`http://127.0.0.1:${port}/v1/authentication`, create())).status).toBe(200);
  });
});

describe("docs/frameworks.md: exported handlers respond to a real request", () => {
  const probe = (name: string, call: string) => begin("docs/frameworks.md", name, { PROBE: call, REQUEST: JSON.stringify(create()) });
  const handed = 'new Request("http://app.example/v1/authentication", request)';
  const event =
    '{ rawPath: "/v1/authentication", rawQueryString: "", headers: request.headers, requestContext: { http: { method: "POST" } }, body: Buffer.from(request.body).toString("base64"), isBase64Encoded: true }';

  it.each([
    ["fetch.ts", `(await exported.default.fetch(${handed})).status`],
    ["app/v1/[...route]/route.ts", `(await exported.POST(${handed})).status`],
    ["src/routes/v1/[...route]/+server.ts", `(await exported.fallback({ request: ${handed} })).status`],
    ["lambda.ts", `(await exported.handler(${event})).statusCode`],
    ["server/routes/v1/[...].ts", "await served(h3.toNodeListener(h3.createApp().use(exported.default)))"],
  ])("%s", async (name, call) => {
    const { printed, end } = await probe(name, call);
    // Next.js's `after` works only inside its server.
    const outside = name.startsWith("app/") ? /^phoneproof: callbacks.waitUntil failed.*`after` was called outside a request scope/s : /^$/;
    expect(await end()).toMatchObject({ code: 0, stderr: expect.stringMatching(outside) });
    expect(printed()).toMatch(/^answered 200$/m);
  });
});

describe("docs/front-end.md: the routes of a page", () => {
  it.each(["express", "express4"])("with %s, they send the page no id, and requests without a session do not crash them", async (framework) => {
    const file = project.fileOf("docs/front-end.md", "server.ts");
    const other = file.replace("server.js", `${framework}.js`);
    writeFileSync(other, readFileSync(file, "utf8").replace('"express"', JSON.stringify(framework)));
    const server = await start(other, environment);
    running.push(server);
    const post = async (step: string, body?: object, cookie = "") => {
      const headers = { "content-type": "application/json", cookie };
      const answer = await fetch(`http://127.0.0.1:${server.port}/sign-up/${step}`, { method: "POST", headers, ...(body && { body: JSON.stringify(body) }) });
      return { status: answer.status, cookie: answer.headers.get("set-cookie") ?? "", body: (await answer.json()) as Record<string, unknown> };
    };
    for (const step of ["check", "resend"]) expect(await post(step, { code: "123456" })).toMatchObject({ status: 401, body: { status: "expired_auth" } });
    expect(await post("number")).toMatchObject({ status: 400, body: { problem: "This is not a phone number. Type it in digits." } });
    expect(await post("number", { phone: "01 23 45 67 89" })).toMatchObject({
      status: 400,
      body: { problem: expect.stringContaining("cannot receive codes") },
    });
    const created = await post("number", { phone: "06 12 34 56 78" });
    expect(created.cookie).toMatch(/\bdevice=[\w-]{36};/);
    const cookie = /\bsign-up=[\w-]+/.exec(created.cookie)?.[0];
    const answers = [created, await post("check", { code: "1" }, cookie), await post("resend", {}, cookie)];
    expect(answers.map(({ body }) => body.status)).toEqual(["pending", "invalid", "denied"]);
    for (const { body } of answers) expect(Object.keys(body)).not.toEqual(expect.arrayContaining([expect.stringMatching(/uuid|phone/)]));
    // Without a code, check rejects the request.
    expect(await post("check", {}, cookie)).toMatchObject({ status: 400, body: { status: "bad_request" } });
  });
});

describe("docs/callbacks.md: the receiver", () => {
  it("accepts signed callbacks only", async () => {
    const { port } = await begin("docs/callbacks.md", "receiver.ts");
    const forged = await fetch(`http://127.0.0.1:${port}/`, { method: "POST", body: "{}" });
    expect(forged.status).toBe(400);
    const body = JSON.stringify({ type: "delivery_status", data: { authentication_uuid: "an id", status: "delivered" } });
    const now = new Date();
    const headers = {
      "webhook-id": "msg_1",
      "webhook-timestamp": String(Math.floor(now.getTime() / 1000)),
      "webhook-signature": new Webhook(environment["WEBHOOK_SECRET"] ?? "").sign("msg_1", now, body),
    };
    expect((await fetch(`http://127.0.0.1:${port}/`, { method: "POST", headers, body })).status).toBe(204);
  });

  it.each([undefined, ""])("does not start if WEBHOOK_SECRET is %j", async (WEBHOOK_SECRET) => {
    const { WEBHOOK_SECRET: _, ...without } = environment;
    const one = await start(project.fileOf("docs/callbacks.md", "receiver.ts"), { ...without, ...(WEBHOOK_SECRET !== undefined && { WEBHOOK_SECRET }) });
    expect(await one.end()).toMatchObject({ code: 1, stderr: expect.stringContaining("set WEBHOOK_SECRET to what verifier.webhookSecrets") });
  });
});

it("docs/install.md: the direct calls send a code", async () => {
  const { end } = await begin("docs/install.md", "direct.ts");
  const { stdout } = await end();
  expect(stdout).toContain("SMS to +33612345678");
  expect(stdout).toMatch(/^pending$/m);
});
