import { expect, onTestFinished, test } from "vitest";
import { redisIsInstalled, startRedis, until } from "../support/redis.js";
import { phoneproof, service } from "./operators-at-night-kit.js";
import { serve } from "./self-hosters-kit.js";

/** A folder with a module for `serve`. */
async function aService() {
  const made = await service();
  onTestFinished(() => made.remove());
  return made;
}

test("a rotation that is rejected names the keys as they are: none is about to end", async () => {
  const { folder: cwd } = await aService();
  const run = (...args: string[]) => phoneproof(args, { PHONEPROOF_DATA: "customers.db" }, { cwd });
  const uuid = "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f";
  const created = await run("customers", "create", "--uuid", uuid);
  expect(created.status).toBe(0);
  const [first] = [await run("keys", "issue", uuid, "--json"), await run("keys", "issue", uuid, "--json")];
  const { key_id } = JSON.parse(first.stdout) as { key_id: string };

  const rotated = await run("keys", "rotate", uuid, key_id);

  expect(rotated.status).toBe(1);
  const listed = await run("keys", "list", uuid, "--json");
  expect(listed.stdout).not.toContain("ends_at"); // nothing was changed: both keys stay
  expect(rotated.stderr).toContain("2 keys in use");
  expect(rotated.stderr).not.toContain("ends at");
});

test("a PORT that ends in a carriage return, as in a file from Windows, is accepted or named", async () => {
  const { stderr, status } = await phoneproof(["serve", "./missing.js"], { PORT: "3112\r" });
  expect(status).toBe(2); // there is no such module
  // A terminal shows `not "3112"`, which is a whole number, or overwrites the line.
  expect(stderr).not.toContain("\r");
});

const hasRedis = redisIsInstalled("the log of phoneproof serve");

test.runIf(hasRedis)("when Redis goes away, the log of serve says why", async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const server = serve((await aService()).module, { PHONEPROOF_STORE: redis.url });
  onTestFinished(() => void server.kill());
  await until("it listens", async () => server.line("listening") !== undefined);
  const { url } = JSON.parse(server.line("listening") ?? "") as { url: string };

  await redis.signal("SIGKILL");
  await until("it has seen it", async () => (await fetch(`${url}/healthz`)).status === 503);
  await until("it has logged it", async () => server.line("store") !== undefined);

  // docs/serve.md: {"type":"store","ok":false,"fault":"connect ECONNREFUSED 10.0.0.7:6379"}
  expect(`${server.line("store")}\n${server.stderr()}`).toContain("ECONNREFUSED");
});
