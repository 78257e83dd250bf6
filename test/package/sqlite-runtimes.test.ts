import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { newFolder } from "../support/sqlite.js";
import { root } from "./built.js";
import { missing, runtimeOf, runtimes } from "./programs.js";
import { startWorker } from "./worker.js";

test("a Durable Object's storage passes the store contract, in workerd", async ({ skip }) => {
  const miniflare = await runtimeOf("Workers");
  if (miniflare === undefined) return skip(missing(runtimes.Workers));
  const worker = await startWorker(miniflare, "worker-object.js", undefined, "Contract");
  try {
    const told = await (await worker.fetch("/")).json();
    expect(told).toEqual({ cases: expect.any(Number), broken: [], kind: "sqlite" });
  } finally {
    await worker.stop();
  }
});

test("bun:sqlite passes the store contract, in Bun", async ({ skip }) => {
  const bun = await runtimeOf("Bun");
  if (bun === undefined) return skip(missing(runtimes.Bun));
  const { folder, remove } = newFolder();
  try {
    const { stdout } = await promisify(execFile)(bun, ["--no-install", "test/package/runtimes/contract-bun.js", folder], { cwd: root });
    expect(JSON.parse(stdout)).toEqual({ cases: expect.any(Number), broken: [] });
  } finally {
    remove();
  }
});
