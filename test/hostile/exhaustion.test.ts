import { expect, onTestFinished, test } from "vitest";
import { pipelineAndBreakOff, startService } from "./exhaustion-kit.js";

test("phoneproof serve frees and logs pipelined requests whose connection was reset", async () => {
  const service = await startService();
  onTestFinished(service.stop);
  for (let connections = 0; connections < 2; connections++) await pipelineAndBreakOff(service.port, 1_500); // warms up
  const before = await service.heap();
  for (let connections = 0; connections < 6; connections++) await pipelineAndBreakOff(service.port, 1_500);
  // Another request is answered, so the service has seen the ends of the connections.
  expect((await fetch(`http://127.0.0.1:${service.port}/healthz`)).status).toBe(200);
  // 400 kB were sent. A few megabytes are noise.
  await expect.poll(async () => (await service.heap()) - before, { timeout: 1_000 }).toBeLessThan(8 * 2 ** 20);
  // More than the one of each connection whose response was being written.
  await expect.poll(service.brokenOff, { timeout: 1_000 }).toBeGreaterThan(100);
});
