import { expect, test } from "vitest";
import { readPage } from "../docs/pages.js";

// An app made by `sv create` has no types of Node: its `npm run check` rejects `process` in both documented files.
test("the section on SvelteKit installs the types that its files need (docs/frameworks.md#sveltekit)", () => {
  const section = readPage("docs/frameworks.md")
    .text.split(/^## /m)
    .find((text) => text.startsWith("SvelteKit\n"));
  expect(section).toContain("process.env");
  expect(section).toContain("npm install --save-dev @types/node");
});
