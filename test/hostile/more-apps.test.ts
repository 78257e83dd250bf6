import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import Koa from "koa";
import { nodeHandler } from "phoneproof/node";
import { createTestVerifier } from "phoneproof/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { shown } from "./apps-kit.js";

const root = join(import.meta.dirname, "../..");

async function addressOf(server: Server): Promise<string> {
  if (!server.listening) await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe("The OpenAPI documents", () => {
  it.each(["openapi.json", "openapi-prelude-v2.json", "openapi-twilio-verify.json"])(
    "hold only schemas that JSON Schema 2020-12 allows, which OpenAPI 3.1 prescribes: %s (docs/serve.md#call-it)",
    (file) => {
      const { components } = JSON.parse(readFileSync(join(root, file), "utf8")) as { components: { schemas: Record<string, object> } };
      const ajv = new Ajv2020({ strict: false });
      const invalid = Object.entries(components.schemas).flatMap(([name, schema]) => (ajv.validateSchema(schema) ? [] : [`${name}: ${ajv.errorsText()}`]));
      expect(invalid).toEqual([]);
    },
  );

  it("ask no API key of the webhook's receiver: callbacks carry a signature, and no x-api-key (openapi.json, docs/callbacks.md)", async () => {
    const test = createTestVerifier();
    onTestFinished(() => test.close());
    await test.verifier.createAuthentication({ phone_number: "+33612345678", callback_url: "https://app.example/hook" });
    await test.flush();
    const sent = Object.keys(test.callbacks[0]?.headers ?? {});
    const api = JSON.parse(readFileSync(join(root, "openapi.json"), "utf8")) as {
      security: readonly object[];
      webhooks: Record<string, { post: { security?: readonly object[] } }>;
    };
    const asked = (api.webhooks["delivery_status"]?.post.security ?? api.security).flatMap((scheme) => Object.keys(scheme));
    expect({ sent: sent.includes("x-api-key"), asked }).toEqual({ sent: false, asked: [] });
  });
});

describe("The pages", () => {
  it("leave an app of Koa its own paths that only begin like /v1 (docs/frameworks.md#koa)", async () => {
    const test = createTestVerifier();
    onTestFinished(() => test.close());
    const condition = /if \((!context\.path[^\n]+)\) return next\(\);/.exec(shown("frameworks.md", "koa.ts"))?.[1];
    const isNotOurs = new Function("context", `return ${condition};`) as (context: Koa.Context) => boolean;
    const v1 = nodeHandler(test.verifier);
    const koa = new Koa();
    koa.use((context, next) => {
      if (isNotOurs(context)) return next();
      context.respond = false;
      v1(context.req, context.res);
      return undefined;
    });
    koa.use((context) => {
      context.body = "mine";
    });
    const base = await addressOf(createServer(koa.callback()).listen(0, "127.0.0.1"));
    const bodies = await Promise.all(["/v10/users", "/v1-docs", "/v1.json"].map(async (path) => (await fetch(base + path)).text()));
    expect(bodies).toEqual(["mine", "mine", "mine"]);
  });
});
