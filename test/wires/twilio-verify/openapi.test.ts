import { expect, it } from "vitest";
import packageJson from "../../../package.json" with { type: "json" };
import { twilioVerifyDocument } from "../../../src/wires/twilio-verify/openapi.js";

it("openapi-twilio-verify.json matches the schemas; `npx vitest run test/wires/twilio-verify/openapi.test.ts --update` writes it again", async () => {
  await expect(`${JSON.stringify(twilioVerifyDocument(packageJson.version), null, 2)}\n`).toMatchFileSnapshot("../../../openapi-twilio-verify.json");
});

it("only To and Channel of a create, Code of a check and Status of an update are required", () => {
  const { components } = twilioVerifyDocument("0") as { components: { schemas: Record<string, { required?: string[] }> } };
  const required = ["CreateRequest", "CheckRequest", "UpdateRequest", "ServiceRequest"].map((name) => components.schemas[name]?.required);
  expect(required).toEqual([["To", "Channel"], ["Code"], ["Status"], undefined]);
});
