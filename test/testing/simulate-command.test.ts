import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { noSpamRules } from "../../src/testing/verifier/no-limits.js";
import { quickForm } from "../../tools/simulate/command/quick.js";
import { scenarios } from "../../tools/simulate/scenario.js";
import { simulate } from "../../tools/simulate/simulate.js";

const root = resolve(import.meta.dirname, "../..");

interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

function run(...args: string[]): Promise<Ended> {
  const file = resolve(root, "tools/simulate/command/command.ts");
  return new Promise((done) => {
    execFile(process.execPath, ["--import", "tsx", file, ...args], { cwd: root }, (error, out, err) => done({ code: Number(error?.code ?? 0), out, err }));
  });
}

test("scenarios run from the sources, with progress on stderr and a legend", async () => {
  const { code, out, err } = await run("--quick", "peace500", "bombing", "--volume", "100");
  expect(out).toMatch(/^ {2}scenario .*\n✓ peace500 .*\n✓ bombing .*\n\nLegend/m);
  expect(err).toMatch(/^\d+ % · 1 of 2 played · .*\n100 % · 2 of 2 played · .*\n$/);
  expect(code).toBe(0);
});

test("a missed goal exits with 1", async () => {
  const { code, out } = await run("--quick", "range", "--volume", "100", "--shadow");
  expect(out).toMatch(/every spam rule in shadow mode, seed 1\n.*\n✗ range .* out ≤ 100 ✗/);
  expect(code).toBe(1);
});

test("invalid arguments and policies exit with 2 and one line that names them", async () => {
  expect(await run("ranje")).toMatchObject({ code: 2, out: "", err: expect.stringMatching(/^simulate: unknown scenario ranje\. .*\n$/) });
  const folder = mkdtempSync(join(tmpdir(), "simulate-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "policy.json"), '{ "spam": { "ranje": { "mode": "off" } } }');
  const { code, err } = await run("--quick", "peace500", "range", "--policy", join(folder, "policy.json"));
  expect(err.trimEnd().split("\n").at(-1)).toMatch(/^simulate: .*policy\.spam\.ranje is not an option/);
  expect(code).toBe(2);
});

test("the quick form meets its goals under the default policy, and misses them without rules or with too strict rules", async () => {
  const scenario = { ...quickForm(scenarios.range), visitsPerDay: 120 };
  const [normal, none, strict] = await Promise.all([
    simulate({}, scenario),
    simulate({ policy: { spam: noSpamRules } }, scenario),
    simulate({ policy: { spam: { range: { seeds: [1, 1, 1], perVerified: 0 } } } }, scenario),
  ]);
  const missed = ({ goals }: typeof normal) => goals.filter(({ reached }) => !reached).map(({ what }) => what);
  expect([normal, none, strict].map(missed)).toEqual([[], ["messages of the attack"], ["honest visits refused"]]);
});
