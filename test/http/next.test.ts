import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { wiresSuite } from "../wires/mounts.js";
import { bodySuite } from "./bodies.js";
import { exchange } from "./client.js";
import type { Host } from "./hosts.js";
import { buildNextApp, startNextApp } from "./next-app.js";
import type { Service } from "./service.js";
import { wireSuite } from "./wire.js";

beforeAll(() => buildNextApp("next"));

const traits = { name: "Next.js 16, next build and next start", next: true, fetch: true } as const;
wireSuite(traits, startNextApp);
bodySuite(traits, "/v1", startNextApp);
bodySuite(traits, "/receipts", startNextApp);
wiresSuite("Next.js, app/v1 and app/v2", startNextApp);
wiresSuite("Next.js, all under app/otp", async () => {
  const { host, service } = await startNextApp();
  return { host: { ...host, prefix: "/otp" }, service };
});

describe("Next.js: mounting, and what Next decides before it calls a route", () => {
  let host: Host;
  let service: Service;
  const headers = () => ({ "x-api-key": service.customer.key, "customer-uuid": service.customer.customer_uuid });

  beforeAll(async () => {
    ({ host, service } = await startNextApp());
  });
  afterAll(() => host?.close());

  test("works under app/api/v1 with basePath, with only GET and POST exported", async () => {
    const answer = await host.send({ method: "GET", path: "/api/v1/lookup/+33612345678", headers: headers() });
    expect(answer).toMatchObject({ status: 200, headers: { "content-type": "application/json" } });
    expect(JSON.parse(answer.text)).toMatchObject({ phone_number: "+33612345678" });
    expect(await host.send({ method: "POST", path: "/api/v1/lookup/+33612345678" })).toMatchObject({ status: 405, headers: { allow: "GET" } });
    expect(await host.send({ method: "PUT", path: "/api/v1/check" })).toMatchObject({ status: 405, text: "" });
  });

  test("both handlers work under app/otp, without options for the path", async () => {
    expect(await host.send({ method: "GET", path: "/otp/v1/lookup/+33612345678", headers: headers() })).toMatchObject({ status: 200 });
    expect(await host.send({ method: "POST", path: "/otp/receipts/twilio", body: "a=b" })).toMatchObject({ status: 403 });
    const unknown = await host.send({ method: "GET", path: "/otp/none" });
    expect([unknown.status, JSON.parse(unknown.text)]).toEqual([404, expect.objectContaining({ code: "not_found" })]);
  });

  test("a path with a trailing slash or `//` is redirected to the path without it", async () => {
    expect(await host.send({ method: "POST", path: "/v1/check/" })).toMatchObject({ status: 308, headers: { location: "/v1/check" } });
    expect(await host.send({ method: "POST", path: "/v1//check" })).toMatchObject({ status: 308, headers: { location: "/v1/check" } });
  });

  test("`/v1` alone gets Next's own 404, and TRACE its own 500", async () => {
    const alone = await host.send({ method: "POST", path: "/v1" });
    expect(alone).toMatchObject({ status: 404, headers: { "content-type": expect.stringContaining("text/html") } });
    expect(await host.send({ method: "TRACE", path: "/v1/check" })).toMatchObject({ status: 500, text: expect.not.stringContaining("node_modules") });
  });

  test("a malformed percent escape gets Next's own error without a stack, and Next stays up", async () => {
    for (const number of ["%", "%zz", "%FF"]) {
      const answer = await host.send({ method: "GET", path: `/v1/lookup/${number}`, headers: headers() });
      expect(answer.status).toBe(500);
      expect(answer.text).not.toMatch(/node_modules|\bat \S+ \(/);
    }
    expect(await host.send({ method: "GET", path: "/v1/lookup/+33612345678", headers: headers() })).toMatchObject({ status: 200 });
  });

  test("a client still sending 5 MB may miss the 413, since Next closes the connection with it; nothing is sent and Next stays up", async () => {
    const call = { method: "POST", path: "/v1/authentication", headers: headers(), body: Buffer.alloc(5 * 1024 * 1024, "x") };
    const outcome = await host.send(call).then(
      ({ status }) => status,
      (error: NodeJS.ErrnoException) => error.code,
    );
    expect([413, "EPIPE", "ECONNRESET"]).toContain(outcome);
    expect(await service.sent()).toEqual([]);
    expect(await host.send({ method: "GET", path: "/v1/lookup/+33612345678", headers: headers() })).toMatchObject({ status: 200 });
  });

  test.each([300_000, 3_000_000])(
    "a body of %i bytes gets 413; up to 1 MiB the next request on the connection gets a response, above that it is closed",
    async (length) => {
      const head = (size: number) =>
        `POST /v1/check HTTP/1.1\r\nhost: a\r\nx-api-key: ${service.customer.key}\r\ncontent-type: application/json\r\ncontent-length: ${size}\r\n\r\n`;
      const closes = /^connection: close\r$/im;
      const bytes = `${head(length)}${" ".repeat(length)}${head(2)}{}`;
      const answers = await exchange(host.port as number, bytes, (text) => closes.test(text) || text.includes("HTTP/1.1 400 "));
      expect(answers).toMatch(/^HTTP\/1\.1 413 /);
      expect(answers).toMatch(length > 1024 * 1024 ? closes : /HTTP\/1\.1 400 /);
    },
  );

  test("`Upgrade: h2c` gets no response: Next handles upgrades itself and closes the connection; nothing is sent and Next stays up", async () => {
    const body = JSON.stringify({ customer_uuid: service.customer.customer_uuid, phone_number: "+33612345678" });
    const lines = [
      "POST /v1/authentication HTTP/1.1",
      "Host: localhost",
      "Connection: Upgrade, HTTP2-Settings",
      "Upgrade: h2c",
      "HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA",
      `x-api-key: ${service.customer.key}`,
      "Content-Type: application/json",
      `Content-Length: ${body.length}`,
    ];
    expect(await exchange(host.port as number, `${lines.join("\r\n")}\r\n\r\n${body}`, () => false)).toBe("");
    expect(await service.sent()).toEqual([]);
    expect(await host.send({ method: "GET", path: "/v1/lookup/+33612345678", headers: headers() })).toMatchObject({ status: 200 });
  });
});
