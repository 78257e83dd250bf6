import { expect, onTestFinished, test } from "vitest";
import { fetchBench } from "./frameworks-built-kit.js";

function bench() {
  const made = fetchBench();
  onTestFinished(made.close);
  return made;
}

// Elysia on Node (srvx 0.11): reading `bodyUsed` of a request that its parser has consumed throws.
test("fetchHandler responds 403 to a wrong key, although the framework's parser has consumed the request (docs/contract.md#key-before-body)", async () => {
  expect(await bench().create("wrong")).toBe("403 forbidden");
});

test("fetchHandler responds 500 and logs the fix, if the framework's parser has consumed the request (docs/errors.md#internal_server_error)", async () => {
  const { create, apiKey, log } = bench();
  expect(await create(apiKey)).toBe("500 internal_server_error");
  expect(log.join("\n")).toContain("new Request(");
});
