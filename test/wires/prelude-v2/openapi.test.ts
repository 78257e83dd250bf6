import { expect, it } from "vitest";
import packageJson from "../../../package.json" with { type: "json" };
import { preludeV2Document } from "../../../src/wires/prelude-v2/openapi.js";

it("openapi-prelude-v2.json matches the schemas; `npx vitest run test/wires/prelude-v2/openapi.test.ts --update` writes it again", async () => {
  await expect(`${JSON.stringify(preludeV2Document(packageJson.version), null, 2)}\n`).toMatchFileSnapshot("../../../openapi-prelude-v2.json");
});

it("only target and code are required", () => {
  const { components } = preludeV2Document("0") as { components: { schemas: Record<string, { required?: string[]; properties: object }> } };
  expect(components.schemas.CreateRequest?.required).toEqual(["target"]);
  expect(components.schemas.CheckRequest?.required).toEqual(["target", "code"]);
});
