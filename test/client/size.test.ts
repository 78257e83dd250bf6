import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { shipped } from "../support/shipped.js";

test("phoneproof/client is below 3.8 kB minified, and below 2.1 kB gzipped", async () => {
  const bytes = await shipped(`export * from "phoneproof/client";`);
  expect(bytes.length).toBeGreaterThan(1_000);
  expect(bytes.length).toBeLessThan(3_800);
  expect(gzipSync(bytes).length).toBeLessThan(2_100);
});

test("importing one name bundles only what that name needs", async () => {
  expect((await shipped(`export { FaultError } from "phoneproof/client";`)).length).toBeLessThan(400);
});
