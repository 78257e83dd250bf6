// Clients and validators that teams generate from the OpenAPI documents, against what the service does.
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Prelude from "@prelude.so/sdk";
import { nodeHandler } from "phoneproof/node";
import { createTestVerifier } from "phoneproof/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { listening } from "../wires/listen.js";
import { advisedBasePath, read, responses, servedByCommand, told, wronglyMocked } from "./generated-clients-kit.js";

const post: RequestInit = { method: "POST", headers: { "content-type": "application/json" }, body: "{}" };

/** A service of node:http for one test. */
async function service(basePath?: string) {
  const world = createTestVerifier();
  onTestFinished(() => world.close());
  const { url, close } = await listening(createServer(nodeHandler(world.verifier, { basePath })));
  onTestFinished(close);
  return { ...world, url };
}

describe("the message of a 404", () => {
  test.each([["//v1/authentication"], ["/api//v1/authentication"]])(
    "for %s, as of a base URL that ends with a slash, advises nothing that the mount rejects",
    async (path) => {
      const { url, verifier } = await service();

      const { status, message } = await told(`${url}${path}`, post);

      expect(status).toBe(404);
      const basePath = advisedBasePath(message);
      expect(() => nodeHandler(verifier, { basePath }), message).not.toThrow();
    },
  );

  test("for /v1/v1/authentication, as of a base URL that ends with /v1, blames the client's base URL, not the mount", async () => {
    const { url } = await service();

    const { status, message } = await told(`${url}/v1/v1/authentication`, post);

    expect(status).toBe(404);
    // A service that follows this advice no longer serves /v1/authentication.
    expect(message).not.toContain('basePath: "/v1"');
  });

  test("of phoneproof serve names no option that the command does not have", async () => {
    const folder = mkdtempSync(join(tmpdir(), "phoneproof-served-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const { url, close } = await servedByCommand(folder);
    onTestFinished(close);

    const { status, message } = await told(`${url}/api/v1/authentication`, post);

    expect(status).toBe(404);
    expect(message).not.toContain("basePath");
  });
});

test("a lookup without its customer-uuid header is told to send that header", async () => {
  const { url, apiKey } = await service();

  const { status, message } = await told(`${url}/v1/lookup/+33612345678`, { headers: { "x-api-key": apiKey } });

  expect(status).toBe(400);
  expect(message).toContain("customer-uuid");
});

test("openapi-prelude-v2.json has a body wherever Prelude's SDK sends one, so that validating proxies pass it on", async () => {
  const { paths } = read("openapi-prelude-v2.json");
  const undocumented: string[] = [];
  const sdk = new Prelude({
    apiToken: "a-key",
    baseURL: "http://127.0.0.1:9",
    maxRetries: 0,
    fetch: async (input, init) => {
      const { pathname } = new URL(String(input));
      if (init?.body && !paths[pathname]?.["post"]?.requestBody?.content?.["application/json"]) undocumented.push(pathname);
      return new Response("{}", { headers: { "content-type": "application/json" } });
    },
  });
  const target = { type: "phone_number", value: "+33612345678" } as const;

  await sdk.verification.create({ target });
  await sdk.verification.check({ target, code: "123456" });
  await sdk.watch.sendEvents({ events: [{ target, label: "signed-up", confidence: "high" }] });
  await sdk.watch.sendFeedbacks({ feedbacks: [{ target, type: "verification.completed" }] });

  expect(undocumented).toEqual([]);
});

describe("the responses of the OpenAPI documents", () => {
  test("are described by their `status` only if they have one", () => {
    const wrong = [...responses()].filter(({ description, schema }) => description.includes("`status`") && !schema.properties?.["status"]);

    expect(wrong.map(({ name }) => name)).toEqual([]);
  });

  test("are mocked with values that their own schemas accept, so that generated clients that validate can use mock servers", () => {
    const wrong = [...responses()].filter(({ name }) => / 20[01]$/.test(name)).flatMap((response) => [...wronglyMocked(response)]);

    expect(wrong).toEqual([]);
  });
});
