import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { failing, newStore, postgresServer } from "../support/postgres.js";
import { root } from "./built.js";
import { missing, runFile, runtimeOf, runtimes } from "./programs.js";

const server = await postgresServer("test/package/postgres-runtimes.test.ts");
afterAll(() => server?.stop());

// Every client and every runtime at least once.
test.runIf(server).for([
  ["Bun.sql", "Bun"],
  ["postgres", "Bun"],
  ["pg", "Deno"],
] as const)("%s on %s passes the store contract, and its errors are recognised", async ([client, runtime], { skip }) => {
  const program = await runtimeOf(runtime);
  if (program === undefined) return skip(missing(runtimes[runtime]));
  const { url, close } = await newStore(server);
  await failing(url);
  const args = runtime === "Deno" ? [...runFile.Deno, "--allow-read"] : runFile.Bun;
  const { stdout } = await promisify(execFile)(program, [...args, "test/package/runtimes/contract-postgres.js", client, url], { cwd: root });
  expect(JSON.parse(stdout)).toEqual({
    cases: expect.any(Number),
    broken: [],
    errors: [null, null, expect.stringContaining("postgresStore: no fail 57014 (57014): "), "postgresStore: the server rejected a value (23514)"],
  });
  await close();
});
