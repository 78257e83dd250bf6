import { afterAll, afterEach, expect, vi } from "vitest";
import { forgetSecrets, look, takeLeaks, watched } from "./leaks.js";

// "Nothing that is logged, traced or counted holds a code, a key or a whole number": all that the verifiers of the suite tell is looked at, whichever logger a test gives them, and so is the console but for `log`, which the demo prints codes with.

vi.mock("../../src/composition.js", async (original) => {
  const real = await original<typeof import("../../src/composition.js")>();
  const { consoleLogger } = await import("../../src/core/loggers.js");
  return { ...real, compose: (options: Parameters<typeof real.compose>[0]) => real.compose(options === undefined ? options : watched(options, consoleLogger)) };
});

forgetSecrets();

for (const level of ["info", "warn", "error"] as const) {
  const real = console[level];
  console[level] = (...told: unknown[]) => {
    look(...told);
    real(...told);
  };
  // The next file of this worker watches anew.
  afterAll(() => {
    console[level] = real;
  });
}

afterEach(() => {
  expect(takeLeaks(), "nothing that is told holds a code, a key or a whole number").toEqual([]);
});
