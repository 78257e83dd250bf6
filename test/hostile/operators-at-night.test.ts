import { expect, onTestFinished, test } from "vitest";
import { redisIsInstalled, startRedis, until } from "../support/redis.js";
import { phoneproof, service } from "./operators-at-night-kit.js";

const withRedis = redisIsInstalled("operators at night");

async function newService() {
  const made = await service();
  onTestFinished(() => made.remove());
  return made;
}

test.each([[[]], [["--json"]]])("doctor %j reports that its findings could not be written, on a full disk", async (options) => {
  const { folder, module } = await newService();
  const { status, stderr } = await phoneproof(["doctor", module, "--data", "data.db", ...options], {}, { to: "/dev/full", cwd: folder });
  expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining("the output was cut off") }); // as the other commands do
});

test("worker --once reports that its report could not be written, on a full disk", async () => {
  const { folder, module } = await newService();
  const { status, stderr } = await phoneproof(["worker", module, "--once", "--data", "memory"], {}, { to: "/dev/full", cwd: folder });
  expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining("the output was cut off") });
});

test.runIf(withRedis)("doctor finds the fault in PHONEPROOF_STORE of a Redis Cluster, where every create gets 503", async () => {
  const server = await startRedis(["--cluster-enabled", "yes"]);
  onTestFinished(() => server.stop());
  await server.cli("CLUSTER", "ADDSLOTSRANGE", "0", "16383");
  await until("the cluster", async () => (await server.cli("CLUSTER", "INFO")).includes("cluster_state:ok"));
  const { folder, module } = await newService();
  const { status, stdout } = await phoneproof(["doctor", module], { PHONEPROOF_STORE: server.url }, { cwd: folder });
  expect({ status, stdout }).toEqual({ status: 1, stdout: expect.stringMatching(/cluster/i) });
});
