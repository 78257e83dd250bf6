import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { lazyVerifier } from "../../src/index.js";
import { apiKey, bundled, complaints, customer, type Program, printedCode, run, shown } from "./apps-kit.js";

const headers = { "x-api-key": apiKey, "content-type": "application/json" };
const service = { "required.ts": shown("install.md", "required.ts"), "service.ts": shown("install.md", "service.ts") };

const fields = async (response: Response) => (await response.json()) as Record<string, unknown>;

/** Runs a file shown on a page, with the files that it imports. */
async function started(entry: string, files: Readonly<Record<string, string>>): Promise<Program> {
  const program = await run(["--input-type=module", "--eval", await bundled(entry, files)]);
  onTestFinished(() => program.end());
  return program;
}

describe("types", () => {
  /** The check that `next build` of Next.js 15 writes to .next/types for each method of a route. */
  const nextCheck = `
    type SecondArg<T extends Function> = T extends (...args: [any, infer T]) => any ? (unknown extends T ? any : T) : never;
    type RouteContext = { params: Promise<any> };
    type Check<Base, T extends Base> = T;
    export type Second = Check<{ type: RouteContext }, { type: SecondArg<typeof import("./route.js").GET> }>;`;

  it("next build accepts the route shown on the page, in Next.js 15 too (README.md#as-a-service-for-other-programs)", () => {
    const route = shown("frameworks.md", "app/v1/[...route]/route.ts").replace("../../../lib/service", "./service.js");
    const files = { "route.ts": route, "next-check.ts": nextCheck, ...service };
    expect(complaints(files, { strict: true })).toEqual([]);
  }, 60_000);

  it("the server shown on the page compiles in a project that is not strict (docs/front-end.md#one-whole-page)", () => {
    const files = { "server.ts": shown("front-end.md", "server.ts") };
    expect(complaints(files, { strict: false, esModuleInterop: true, types: ["node", "express"] })).toEqual([]);
  }, 60_000);
});

describe("a verifier that is created on first use, without its environment variables", () => {
  const broken = () =>
    lazyVerifier(() => {
      throw new Error("PHONEPROOF_SECRET is not set");
    });

  it("ping never rejects (docs/contract.md#ping)", async () => {
    expect(await broken().ping()).toMatchObject({ ok: false });
  });

  it("a request for the health page does not end the server (docs/operations.md#deploy)", async () => {
    const lazy = shown("install.md", "lazy-verifier.ts")
      .replace('required("PHONEPROOF_SECRET")', 'required("PHONEPROOF_SECRET_OF_NOBODY")')
      .replace("countries:", `customers: [{ customer_uuid: "${customer}", keys: [required("PHONEPROOF_API_KEY")] }], countries:`);
    const program = await started("server.ts", { ...service, "service.ts": lazy, "server.ts": shown("operations.md", "server.ts") });
    const asked = async (path: string, method = "GET") => (await fetch(program.base + path, { method }).catch(() => ({ status: 0 }))).status;
    expect(await asked("/v1/check", "POST")).toBe(500); // the log has the reason
    expect(await asked("/healthz")).toBe(503);
    expect(await asked("/v1/check", "POST")).toBe(500);
    expect(program.process.exitCode).toBe(null);
  });
});

describe("the app of the first-form page", () => {
  const files = {
    "required.ts": service["required.ts"],
    "verifier.ts": shown("install.md", "verifier.ts"),
    "session.ts": shown("first-form.md", "session.ts"),
    "app.ts": shown("first-form.md", "app.ts"),
  };
  const behind = (proxies: number) => ({ ...files, "app.ts": files["app.ts"].replace('"trust proxy", false', `"trust proxy", ${proxies}`) });
  const send = (program: Program, path: string, fields: Record<string, string>, more: Record<string, string> = {}) =>
    fetch(program.base + path, { method: "POST", body: new URLSearchParams(fields), headers: more, redirect: "manual" });

  it("verifies a number only in the session that requested the code (docs/first-form.md#what-goes-where)", async () => {
    const program = await started("app.ts", behind(1));
    const asked = await send(program, "/sign-up", { phone: "06 12 34 56 78" }, { "x-forwarded-for": "not an address, 203.0.113.9" });
    expect(asked.status).toBe(200);
    const cookie = asked.headers.getSetCookie().map((one) => one.split(";")[0]);
    const code = printedCode(program.output());
    const strange = await send(program, "/code", { code });
    expect([strange.status, strange.headers.get("location")]).toEqual([303, "/"]);
    const proven = await send(program, "/code", { code }, { cookie: cookie.join("; ") });
    const session = proven.headers.getSetCookie().map((one) => one.split(";")[0]);
    expect(await (await fetch(program.base, { headers: { cookie: session.join("; ") } })).text()).toContain("Signed in as +33612345678");
    expect(await (await fetch(program.base, { headers: { cookie: cookie.join("; ") } })).text()).not.toContain("Signed in");
  });

  it("works behind a proxy that adds the port to the user's address (docs/first-form.md#express)", async () => {
    const program = await started("app.ts", behind(1));
    for (const [phone, address] of [
      ["0612345671", "203.0.113.9:51234"], // Azure's gateways
      ["0612345672", "[2001:db8::7]:443"],
    ] as const) {
      const asked = await send(program, "/sign-up", { phone }, { "x-forwarded-for": address });
      expect([address, asked.status, /This number[^<]*/.exec(await asked.text())?.[0]]).toEqual([address, 200, undefined]);
    }
  });
});

describe("the server of the operations page", () => {
  const files = { ...service, "server.ts": shown("operations.md", "server.ts") };
  const create = JSON.stringify({ customer_uuid: customer, phone_number: "+33612345678" });

  it("completes requests in progress when it is stopped, and ends without an error (docs/operations.md#deploy)", async () => {
    const program = await started("server.ts", files);
    const ended = once(program.process, "exit");
    const request = httpRequest(`${program.base}/v1/authentication`, {
      method: "POST",
      headers: { ...headers, connection: "close", "content-length": create.length, expect: "100-continue" },
    });
    request.flushHeaders();
    await once(request, "continue");
    request.write(create.slice(0, 10));
    program.process.kill("SIGTERM");
    await expect
      .poll(() =>
        fetch(`${program.base}/healthz`).then(
          ({ status }) => status,
          () => 0,
        ),
      )
      .toBe(0);
    request.end(create.slice(10));
    const [response] = await once(request, "response");
    expect(response.statusCode).toBe(200);
    response.resume();
    expect(await ended).toEqual([0, null]);
  });

  it("a create whose caller disconnects sends one message, and its repeat returns `pending` (docs/contract.md#idempotency)", async () => {
    const program = await started("server.ts", files);
    const socket = connect(Number(new URL(program.base).port), "127.0.0.1");
    const lines = ["POST /v1/authentication HTTP/1.1", "host: a", `x-api-key: ${apiKey}`, "idempotency-key: once", `content-length: ${create.length}`, "", ""];
    socket.write(lines.join("\r\n") + create);
    await once(socket, "connect");
    socket.end();
    await once(socket.resume(), "close");
    const again = await fetch(`${program.base}/v1/authentication`, { method: "POST", headers: { ...headers, "idempotency-key": "once" }, body: create });
    expect((await fields(again)).status).toBe("pending");
    expect(program.output().match(/code is/g)).toHaveLength(1);
  });

  it("accepts headers as long as node accepts, and responds to OPTIONS and HEAD with 405 (docs/contract.md#other-faults)", async () => {
    const program = await started("server.ts", files);
    const cookie = "a=".padEnd(12_000, "b");
    const long = await fetch(`${program.base}/v1/check`, { method: "POST", headers: { ...headers, cookie }, body: "{}" });
    expect([long.status, (await fields(long)).code]).toEqual([400, "bad_request"]);
    const preflight = await fetch(`${program.base}/v1/check`, {
      method: "OPTIONS",
      headers: { origin: "https://a.example", "access-control-request-method": "POST" },
    });
    expect([preflight.status, preflight.headers.get("allow"), preflight.headers.get("access-control-allow-origin")]).toEqual([405, "POST", null]);
    const head = await fetch(`${program.base}/v1/check`, { method: "HEAD" });
    expect([head.status, await head.text()]).toEqual([405, ""]);
  });
});

describe("the function of the Lambda page", () => {
  it("responds to events of payload format 2.0, including bodies in base64 (docs/frameworks.md#aws-lambda)", async () => {
    const driver = `
      import { createServer } from "node:http";
      import { handler } from "./lambda.js";
      createServer(async (request, response) => {
        const { pathname, search } = new URL(request.url, "http://a");
        let bytes = Buffer.alloc(0);
        for await (const chunk of request) bytes = Buffer.concat([bytes, chunk]);
        const coded = request.headers["x-coded"] === "yes";
        const answer = await handler({ rawPath: pathname, rawQueryString: search.slice(1), headers: request.headers,
          requestContext: { http: { method: request.method } }, isBase64Encoded: coded,
          ...(bytes.length > 0 && { body: bytes.toString(coded ? "base64" : "utf8") }) });
        response.writeHead(answer.statusCode, answer.headers).end(answer.body);
      }).listen(Number(process.env.PORT));`;
    const program = await started("driver.ts", { ...service, "lambda.ts": shown("frameworks.md", "lambda.ts"), "driver.ts": driver });
    for (const [coded, phone_number] of [
      ["no", "+33612345678"],
      ["yes", "+33612345679"],
    ] as const) {
      const body = JSON.stringify({ customer_uuid: customer, phone_number });
      const made = await fetch(`${program.base}/v1/authentication`, { method: "POST", headers: { ...headers, "x-coded": coded }, body });
      expect([made.status, (await fields(made)).status, made.headers.get("x-phoneproof-phone-number")]).toEqual([200, "pending", phone_number]);
    }
    const found = await fetch(`${program.base}/v1/lookup/%2B33612345678`, { headers: { ...headers, "customer-uuid": customer } });
    expect([found.status, (await fields(found)).line_type]).toEqual([200, "Mobile"]);
    expect((await fetch(`${program.base}/v1/check`, { method: "HEAD" })).status).toBe(405);
  });
});
