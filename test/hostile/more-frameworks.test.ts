import { expect, test } from "vitest";
import { run } from "./more-frameworks-kit.js";

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
