import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");

it.each(["openapi.json", "openapi-prelude-v2.json", "openapi-twilio-verify.json"])(
  "%s has only schemas that JSON Schema 2020-12 allows, which OpenAPI 3.1 prescribes (docs/serve.md#call-it)",
  (file) => {
    const { components } = JSON.parse(readFileSync(join(root, file), "utf8")) as { components: { schemas: Record<string, object> } };
    const ajv = new Ajv2020({ strict: false });
    const invalid = Object.entries(components.schemas).flatMap(([name, schema]) => (ajv.validateSchema(schema) ? [] : [`${name}: ${ajv.errorsText()}`]));
    expect(invalid).toEqual([]);
  },
);
