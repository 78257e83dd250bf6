import { expect, it } from "vitest";
import { nearest } from "../../src/options/option-errors.js";

it.each([
  ["polcy", "policy"],
  ["prot", "port"],
  ["POLICY", "policy"],
  ["policies", undefined],
  ["po", undefined],
  ["x", undefined],
])("the option nearest to %s is %s", (given, meant) => {
  expect(nearest(given, ["host", "policy", "port"])).toBe(meant);
});
