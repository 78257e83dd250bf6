import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { generateApiKey } from "../../src/access/accounts.js";
import { type Call, send } from "./client.js";
import { buildNextApp, type NextProcess, serveNext } from "./next-app.js";

/** An app whose verifier cannot be created at build time, with `trailingSlash: true` and `basePath: "/docs"`. */

const customer_uuid = "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f";
const { key } = generateApiKey();
const configured = { PHONEPROOF_SECRET: generateApiKey().key, PHONEPROOF_API_KEY: key };

let app: NextProcess;
afterEach(() => app?.close());

// Rejects if a route fails to import.
beforeAll(() => buildNextApp("next-lazy"));

const lookup = (path: string): Call => ({
  method: "GET",
  path: `${path}/v1/lookup/+33612345678/`,
  headers: { "x-api-key": key, "customer-uuid": customer_uuid },
});
const fault = (code: string) => ({ code, message: expect.any(String), doc_url: expect.any(String) });

describe("Next.js: a verifier that is created at first use", () => {
  test("the app builds without a secret; running without one, requests get 500 and the log names what is missing", async () => {
    app = await serveNext("next-lazy", { PRINT_CODES: "yes" });
    const answer = await send(app.port, lookup("/docs/api"));
    expect([answer.status, JSON.parse(answer.text)]).toEqual([500, fault("internal_server_error")]);
    expect(app.printed()).toMatch(/secret must be a string of at least 32 characters/);
    expect(answer.text).not.toContain("secret");
  });

  test("errors in its options are logged too: the console sender in production", async () => {
    app = await serveNext("next-lazy", configured);
    expect((await send(app.port, lookup("/docs/api"))).status).toBe(500);
    expect(app.printed()).toMatch(/consoleSender prints codes where anyone who reads the log can use them/);
  });

  test("works with `trailingSlash: true` and `basePath`, under app/api/v1 and app/otp, without options for the path", async () => {
    app = await serveNext("next-lazy", { ...configured, PRINT_CODES: "yes" });
    for (const path of ["/docs/api", "/docs/otp"]) {
      const answer = await send(app.port, lookup(path));
      expect([answer.status, JSON.parse(answer.text)]).toEqual([200, expect.objectContaining({ phone_number: "+33612345678" })]);
    }
    const redirected = { status: 308, headers: { location: "/docs/api/v1/check/" } };
    expect(await send(app.port, { method: "POST", path: "/docs/api/v1/check" })).toMatchObject(redirected);
    const body = JSON.stringify({ customer_uuid, phone_number: "+33612345678" });
    const headers = { "x-api-key": key, "content-type": "application/json" };
    const created = await send(app.port, { method: "POST", path: "/docs/otp/v1/authentication/", headers, body });
    expect([created.status, JSON.parse(created.text)]).toEqual([200, expect.objectContaining({ status: "pending" })]);
    const forged = await send(app.port, { method: "POST", path: "/docs/otp/receipts/twilio/", body: "MessageStatus=delivered" });
    expect([forged.status, JSON.parse(forged.text)]).toEqual([403, fault("forbidden")]);
    const unknown = await send(app.port, { method: "GET", path: "/docs/otp/none/" });
    expect([unknown.status, JSON.parse(unknown.text)]).toEqual([404, fault("not_found")]);
  });
});
