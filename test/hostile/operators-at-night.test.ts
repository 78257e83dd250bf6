import { readdir } from "node:fs/promises";
import { expect, onTestFinished, test } from "vitest";
import { freePort } from "../support/ports.js";
import { redisIsInstalled, startRedis, until } from "../support/redis.js";
import { phoneproof, service } from "./operators-at-night-kit.js";

const withRedis = redisIsInstalled("operators at night");

async function newService() {
  const made = await service();
  onTestFinished(() => made.remove());
  return made;
}

test("a URL of Upstash at which nothing listens is reported as refused, not as a time-out", async () => {
  const url = `http://127.0.0.1:${await freePort()}`;
  const { status, stderr } = await phoneproof(["customers", "list"], { PHONEPROOF_STORE: url, UPSTASH_REDIS_REST_TOKEN: "token" });
  expect(status).toBe(1);
  expect(stderr).toMatch(/ECONNREFUSED/); // as for Redis, PostgreSQL and MongoDB
});

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

test("PHONEPROOF_DATA with a line break at its end does not start an empty file of another name", async () => {
  const { folder, module } = await newService();
  await phoneproof(["worker", module, "--once"], { PHONEPROOF_DATA: "data.db\r\n" }, { cwd: folder });
  expect((await readdir(folder)).filter((name) => /\s/.test(name))).toEqual([]);
});

test.runIf(withRedis)("doctor names the missing right of a Redis user, not a server to start", async () => {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  await server.cli("ACL", "SETUSER", "app", "on", ">pw", "~phoneproof*", "+ping", "+@read", "+@write");
  const { folder, module } = await newService();
  const { stdout } = await phoneproof(["doctor", module, "--json"], { PHONEPROOF_STORE: `redis://app:pw@127.0.0.1:${server.port}` }, { cwd: folder });
  expect(stdout).toMatch(/NOPERM/);
  expect(stdout).toMatch(/ACL SETUSER|docs\/stores\.md/);
  expect(stdout).not.toMatch(/Start it, or correct the URL/);
});

/** A cluster of one node, which holds all slots. */
async function cluster(): Promise<string> {
  const server = await startRedis(["--cluster-enabled", "yes"]);
  onTestFinished(() => server.stop());
  await server.cli("CLUSTER", "ADDSLOTSRANGE", "0", "16383");
  await until("the cluster", async () => (await server.cli("CLUSTER", "INFO")).includes("cluster_state:ok"));
  return server.url;
}

test.runIf(withRedis)("PHONEPROOF_STORE of a Redis Cluster is rejected with a fix that the command has", async () => {
  const { status, stderr } = await phoneproof(["customers", "create"], { PHONEPROOF_STORE: await cluster() });
  expect(status).toBe(1);
  expect(stderr).toMatch(/module|calls in code|docs\/customers\.md/); // the command has no option cluster
});

test.runIf(withRedis)("doctor finds the fault in PHONEPROOF_STORE of a Redis Cluster, where every create gets 503", async () => {
  const { folder, module } = await newService();
  const { status, stdout } = await phoneproof(["doctor", module], { PHONEPROOF_STORE: await cluster() }, { cwd: folder });
  expect({ status, stdout }).toEqual({ status: 1, stdout: expect.stringMatching(/cluster/i) });
});
