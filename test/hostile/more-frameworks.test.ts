import { twilioReceipts } from "phoneproof/senders/twilio";
import { createTestVerifier } from "phoneproof/testing";
import { twilioVerify } from "phoneproof/twilio-verify";
import { expect, onTestFinished, test } from "vitest";
import { reply, run } from "./more-frameworks-kit.js";

test("the 404 of receipts mounted without their /receipts suggests `stripped`, as that of /v1 does (docs/frameworks.md#nodehttp)", async () => {
  const sources = [twilioReceipts({ authToken: "0123456789abcdef0123456789abcdef" })];
  const service = createTestVerifier({ receipts: { baseUrl: "https://app.example", sources } });
  onTestFinished(service.close);
  expect(await reply(service.verifier.receipts, "/twilio")).toContain("stripped");
});

test("the 404 of the Twilio Verify API suggests no fix for a path that is none of its own", async () => {
  const service = createTestVerifier();
  onTestFinished(service.close);
  const handler = twilioVerify(service.verifier);
  expect(await reply(handler, "/favicon.ico", { basePath: "/api" })).not.toContain("/v2/Services");
  expect(await reply(handler, "/")).not.toContain("/v2/Services");
});

test("Fastify's error for a route that is there already rejects, and does not end the process (docs/frameworks.md#fastify)", async () => {
  const { code, printed } = await run(`
    import Fastify from "fastify";
    import { fastifyPlugin } from "phoneproof/fastify";
    import { createTestVerifier } from "phoneproof/testing";
    const service = createTestVerifier();
    const app = Fastify();
    app.get("/v1", async () => "mine");
    try {
      await app.register(fastifyPlugin(service.verifier));
    } catch (error) {
      console.log("rejected", error.code);
    }
    await service.close();
  `);
  expect(printed).toContain("rejected FST_ERR_DUPLICATED_ROUTE");
  expect(code).toBe(0);
});
