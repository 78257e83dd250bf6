import { afterAll, afterEach, expect, vi } from "vitest";
import { forgetSecrets, look, takeLeaks, watched } from "./leaks.js";

// "Nothing that is logged, traced or counted holds a code, a key or a whole number": checks the logs and events of all
// verifiers of the suite, with any logger, and the console, except `console.log`, with which the demo prints codes.

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
  // The next file of this worker starts again.
  afterAll(() => {
    console[level] = real;
  });
}

afterEach(() => {
  expect(takeLeaks(), "nothing that is told holds a code, a key or a whole number").toEqual([]);
});
