// Clients in Go, Java, PHP, Ruby, Python and curl, written from the documents with each language's HTTP library.
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import express from "express";
import { createVerifier, generateApiKey } from "phoneproof";
import { expressHandlers } from "phoneproof/express";
import { memoryStore } from "phoneproof/memory";
import { createTestVerifier } from "phoneproof/testing";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { listening } from "../wires/listen.js";
import { customer, servedWithWires, wordyReceiver } from "./other-languages-kit.js";

async function service() {
  const folder = mkdtempSync(join(tmpdir(), "phoneproof-languages-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const { key } = generateApiKey();
  const served = await servedWithWires(folder, key);
  onTestFinished(served.close);
  const prelude = (path: string, body: unknown) =>
    fetch(`${served.url}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  return { ...served, prelude };
}

const target = { type: "phone_number", value: "+33612345678" };

// Java's HttpClient with an Authenticator, PHP's CURLAUTH_ANY, Python's HTTPBasicAuthHandler, wget and `curl --anyauth`
// send Basic credentials only after a 401 that asks for them.
test("a Twilio Verify request without credentials is asked for Basic ones, so that clients that wait for it send them (docs/migrate/twilio-verify.md#your-client)", async () => {
  const { url } = await service();

  const { status, headers } = await fetch(`${url}/v2/Services/VA${customer.replaceAll("-", "")}`);

  expect(status).toBe(401);
  expect(headers.get("www-authenticate")).toMatch(/^Basic realm=/i);
});

describe("over the Prelude v2 wire of phoneproof serve", () => {
  test("the request_id of a body is the request's id in the header and the log (docs/serve.md#what-it-logs)", async () => {
    const { log, prelude } = await service();

    const response = await prelude("/v2/verification/check", { target, code: "123456" });

    const { request_id } = (await response.json()) as { request_id: string };
    const logged = await vi.waitUntil(() => log.find(({ type }) => type === "request"));
    expect(response.headers.get("x-request-id")).toBe(logged.request_id);
    expect(request_id).toBe(logged.request_id);
  });

  test("for an empty PHP array in place of an object, the error names what the field must be (docs/errors.md#bad_request)", async () => {
    const { prelude } = await service();

    const messages: string[] = [];
    for (const field of ["metadata", "options", "signals"]) {
      const response = await prelude("/v2/verification", { target, [field]: [] });
      const { message = `${field}: ${response.status}` } = (await response.json()) as { message?: string };
      messages.push(message);
    }

    expect(messages).toEqual([
      expect.stringMatching(/^metadata must be /),
      expect.stringMatching(/^options must be /),
      expect.stringMatching(/^signals must be /),
    ]);
  });

  test("an empty PHP array of variables, a field that is ignored, does not reject the create (docs/migrate/prelude-v2.md#what-maps-to-what)", async () => {
    const { prelude } = await service();

    const response = await prelude("/v2/verification", { target, options: { variables: [] } });

    expect(await response.json()).toMatchObject({ status: "success" });
  });
});

// Express' parser takes UTF-8 alone, by its exact name; clients in Java and C# also name utf8, us-ascii or ISO-8859-1.
test.each(["utf8", "us-ascii", "ISO-8859-1"])(
  "a valid JSON body with charset=%s, behind express.json(), is accepted, or the error names the charset (docs/contract.md#tolerated)",
  async (charset) => {
    const { verifier, customer_uuid, apiKey, close } = createTestVerifier();
    onTestFinished(() => close());
    const app = express();
    app.use(express.json(), expressHandlers(verifier));
    const server = await listening(createServer(app));
    onTestFinished(server.close);

    const response = await fetch(`${server.url}/v1/authentication`, {
      method: "POST",
      headers: { "x-api-key": apiKey, "content-type": `application/json; charset=${charset}` },
      body: JSON.stringify({ customer_uuid, phone_number: "+33612345678" }),
    });

    const { message = "" } = (await response.json()) as { message?: string };
    if (response.status !== 200) expect(message).toMatch(/charset/i);
  },
);

// PHP (`http_response_code(204); echo "ok";`) and Python's http.server send what a program writes after a 204.
test("a receiver whose 204 is followed by a body has the callback, and does not get it again (docs/contract.md#callback-answers)", async () => {
  const receiver = await wordyReceiver();
  onTestFinished(receiver.close);
  const verifier = createVerifier({
    store: memoryStore(),
    sender: { send: async () => ({ outcome: "accepted" }) },
    secret: "qT7vX2mR9kLw4ZbN8cJfH5sYdG3pAeU6",
    countries: ["FR"],
    callbacks: { allowOrigins: [receiver.origin], worker: false },
    logger: { info() {}, warn() {}, error() {} },
  });
  onTestFinished(() => verifier.close());
  await verifier.createAuthentication({ phone_number: "+33612345678", callback_url: `${receiver.origin}/hook` });

  expect(await verifier.flush()).toEqual({ delivered: 1, failed: 0, dead: 0 });
});
