import { createClient } from "phoneproof/client";
import { expect, onTestFinished, test } from "vitest";
import { sectionOf, serveSlashes } from "./frameworks-live-kit.js";

test("the client's error names the slash if an app redirects every path to one that ends with a slash", async () => {
  const app = await serveSlashes();
  onTestFinished(app.close);
  const client = createClient({ baseUrl: app.url, apiKey: "pp_any", customerUuid: "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f" });
  const error = await client.createAuthentication({ phone_number: "+33612345678" }).catch(String);
  expect(error).toMatch(/slash/i);
});

// An app made by `sv create` has no types of Node: its `npm run check` rejects `process` in both documented files.
test("the section on SvelteKit installs the types that its files need (docs/frameworks.md#sveltekit)", async () => {
  const section = await sectionOf("SvelteKit");
  expect(section).toContain("process.env");
  expect(section).toContain("@types/node");
});
