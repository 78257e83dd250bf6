import { describe, expect, it } from "vitest";
import packageJson from "../../package.json" with { type: "json" };
import { openApiDocument } from "../../src/http/openapi.js";
import { routes } from "../../src/http/routes.js";

describe("openapi.json", () => {
  it("matches the schemas; `npm run openapi` updates it", async () => {
    await expect(`${JSON.stringify(openApiDocument(packageJson.version), null, 2)}\n`).toMatchFileSnapshot("../../openapi.json");
  });

  it("has every route, the fields of Authentication and the required fields of other schemas", () => {
    const document = openApiDocument("0") as {
      paths: Record<string, object>;
      components: { schemas: Record<string, { properties: object; required?: string[] }> };
    };
    expect(Object.keys(document.paths)).toEqual(routes.map((route) => route.path));
    const schemas = document.components.schemas;
    expect(Object.keys(schemas.Authentication?.properties ?? {}).sort()).toEqual(["authentication_uuid", "created_at", "expires_at", "status"]);
    expect(schemas.CreateAuthenticationRequest?.required).toEqual(["customer_uuid", "phone_number"]);
    expect(schemas.PhoneLookupResult?.required).toEqual(["line_type", "phone_number"]);
    expect(schemas.DeliveryStatusEvent?.required).toEqual(["type", "timestamp", "data"]);
    expect(schemas.CheckRequest?.required).toEqual(["authentication_uuid", "check_code", "customer_uuid"]);
  });

  it("bounds integers only where the API does", () => {
    expect(JSON.stringify(openApiDocument("0"))).not.toContain(String(Number.MAX_SAFE_INTEGER));
  });

  it("asks for the API key in requests, and for none in callbacks, which are signed", () => {
    expect(openApiDocument("0")).toMatchObject({ security: [{ apiKey: [] }], webhooks: { delivery_status: { post: { security: [] } } } });
  });
});
