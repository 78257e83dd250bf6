import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { redisStore } from "../../adapters/store/redis/index.js";
import { newNumber, serviceOn } from "../support/redis-service.js";

/** Bytes of the heap that are in use after a garbage collection. */
function heapUsed(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  return process.memoryUsage().heapUsed;
}

it("a create whose response of the store is lost takes up to 9 kB of the heap until it is undone (docs/operations.md)", async () => {
  const lost = () => Promise.reject(new Error("Command timed out"));
  const service = serviceOn(redisStore({ client: lost }), { storeTimeout: 0.2, statistics: false, callbacks: { worker: false }, policy: { spam: {} } });
  expect((await service.create(newNumber())).status).toBe(503);

  const before = heapUsed();
  for (let batch = 0; batch < 6; batch++) {
    const answers = await Promise.all(Array.from({ length: 500 }, () => service.create(newNumber(), { ip: "203.0.113.7" })));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]));
  }
  expect((heapUsed() - before) / 3_000).toBeLessThan(9_000);
});
