import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { quickForm, quickIds } from "../../tools/simulate/command/quick.js";
import { progressText } from "../../tools/simulate/command/screen.js";
import { help, readSettings, type Settings } from "../../tools/simulate/command/settings.js";
import { headLine, legendLines, rowOf, textLine } from "../../tools/simulate/command/table.js";
import { requireScenario } from "../../tools/simulate/read-scenario.js";
import { type Scenario, scenarios } from "../../tools/simulate/scenario.js";
import { simulate } from "../../tools/simulate/simulate.js";

const read = (...args: string[]) => readSettings(args) as Settings;
const ids = ({ chosen }: Settings) => chosen.map(({ id }) => id);

function newFile(name: string, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), "simulate-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, name), text);
  return join(folder, name);
}

describe("arguments", () => {
  test("without any, every scenario is run unchanged, once", () => {
    const settings = read();
    expect(settings.chosen).toEqual(Object.entries(scenarios).map(([id, scenario]) => ({ id, scenario })));
    expect(settings).toMatchObject({ seed: 1, variants: [{ title: "the default policy", policy: {} }] });
  });

  test("scenarios are named by the ids in the table, with --quick too", () => {
    expect(ids(read("bombing", "tvAd", "bombing"))).toEqual(["bombing", "tvAd"]);
    const { chosen } = read("--quick", "tvAd");
    expect(chosen).toEqual([{ id: "tvAd", scenario: quickForm(scenarios.tvAd) }]);
    expect(ids(read("--quick"))).toEqual(quickIds);
  });

  test("--volume applies to the goals of the quick form", () => {
    const [few, many] = ["1,000", "100_000"].map((volume) => read("--quick", "range", "--volume", volume).chosen[0]!.scenario);
    expect([few!.visitsPerDay, many!.visitsPerDay]).toEqual([1_000, 100_000]);
    expect(few!.goal!.refused!).toBeGreaterThan(many!.goal!.refused!);
  });

  test("--shadow and --without add tables", () => {
    const { variants } = read("--shadow", "--without", "crowd", "--without", "each");
    expect(variants.map(({ title }) => title.replace("the default policy", ""))).toEqual([
      "",
      ", every spam rule in shadow mode",
      ...["crowd", "range", "country", "newCountries", "address", "strangeNetwork", "signals"].map((rule) => `, without ${rule}`),
    ]);
    expect(variants[2]!.policy).toEqual({ spam: { crowd: { mode: "off" } } });
  });

  test.each([
    [["ranje"], "unknown scenario ranje. Scenarios: peace500, "],
    [["toString"], "unknown scenario toString."],
    [["--without", "ranges"], "--without: unknown rule ranges. Rules: range, crowd, "],
    [["--volume", "0"], '--volume takes a whole number from 1 to 1000000, not "0"'],
    [["--seed", "-1"], "--seed"],
    [["--seed=x"], '--seed takes a whole number from 0 to 1000000000, not "x"'],
    [["--processes", "0"], '--processes takes a whole number from 1 to 256, not "0"'],
    [["--policy", "missing.json"], "--policy: missing.json does not exist"],
    [["--html", "missing/page.html"], "--html: the folder "],
    [["--fast"], "Unknown option '--fast'"],
  ])("%j is rejected", (args, message) => {
    expect(() => readSettings(args)).toThrow(TypeError);
    expect(() => readSettings(args)).toThrow(message);
  });

  test("a policy that is not a JSON object is rejected, and a valid one is read", () => {
    expect(() => read("--policy", newFile("policy.json", "{"))).toThrow(/policy\.json is not valid JSON: /);
    for (const none of ["[]", "null", "6"]) expect(() => read("--policy", newFile("policy.json", none))).toThrow(/policy\.json must contain an object/);
    const file = newFile("policy.json", '\ufeff{ "codeLength": 6 }');
    expect(read("--policy", file)).toMatchObject({ file, variants: [{ title: file }] });
  });

  test("the help lists every scenario", () => {
    expect(readSettings(["--help", "--volume", "none"])).toBe("help");
    for (const id of Object.keys(scenarios)) expect(help).toContain(`\n  ${id} `);
  });
});

describe("scenarios", () => {
  test("are all valid, in their quick form and with few visits too", () => {
    for (const scenario of Object.values(scenarios) as Scenario[])
      for (const one of [scenario, quickForm(scenario), quickForm({ ...scenario, visitsPerDay: 1 })]) expect(() => requireScenario(one)).not.toThrow();
  });

  test.each([
    [{ visitPerDay: 800 }, "visitPerDay is not an option: did you mean visitsPerDay?"],
    [{ visitsPerDay: undefined }, "visitsPerDay must be a number"],
    [{ hours: -1 }, "hours must be 0 to 2400"],
    [{ strain: { kind: "flood" } }, "strain.kind must be one of: rush, launch, "],
    [{ strain: { kind: "outage" } }, "strain.hours must be a number"],
    [{ attack: { ...scenarios.ranges.attack, numbers: { kind: "ranges", country: "UZ", ranges: 1e9 } } }, "attack.numbers.ranges must be 1 to 100000"],
    [{ attack: { ...scenarios.ranges.attack, from: "datacenter" } }, "attack.from must be "],
    [{ goal: { refuse: 0.1 } }, "goal.refuse is not an option: did you mean refused?"],
  ])("%j is rejected", (changed, message) => {
    expect(() => requireScenario({ ...scenarios.range, ...changed } as Scenario)).toThrow(message);
  });

  test("and options are required", async () => {
    await expect(simulate({}, undefined as never)).rejects.toThrow("simulate: the scenario must be an object");
    await expect(simulate({}, scenarios.range, { seed: 1.5 })).rejects.toThrow("simulate: seed must be an integer");
    await expect(simulate(undefined as never, scenarios.range)).rejects.toThrow("simulate: the first argument must be an object; {} for the defaults");
    await expect(simulate(Promise.resolve({}) as never, scenarios.range)).rejects.toThrow("simulate: the first argument is a promise: await it first");
  });
});

describe("the quick form", () => {
  test("is a smaller form of the scenario, with the same limit for the attack", () => {
    for (const scenario of Object.values(scenarios) as Scenario[]) {
      const quick = quickForm(scenario);
      expect(quick.warmUpDays * quick.visitsPerDay).toBeLessThanOrEqual(scenario.deliveries?.conversion === "unknown" ? 8 * 500 : 2 * scenario.visitsPerDay);
      expect(quick.hours).toBeLessThanOrEqual(12);
      expect(quick.attack?.messages).toBe(scenario.attack && scenario.attack.messages / 12);
      expect(quick.goal?.out).toBe(scenario.goal?.out);
    }
  });

  test("the margin for chance shrinks as the number of visits grows", () => {
    const goals = [500, 5_000, 50_000, 5_000_000].map((visitsPerDay) => quickForm({ ...scenarios.range, visitsPerDay }).goal!.refused!);
    expect(goals.map((share) => share.toFixed(4))).toEqual(["0.0287", "0.0151", "0.0115", "0.0101"]);
  });

  test("every attack of --quick could exceed its goal", () => {
    for (const { scenario } of read("--quick").chosen) {
      if (scenario.attack !== undefined && scenario.goal?.out !== undefined) expect(scenario.attack.messages).toBeGreaterThan(scenario.goal.out);
    }
  });
});

describe("the table", () => {
  test("prints the id of the scenario, who was rejected by which rule, and a legend for exactly these rules", async () => {
    const policy = { limits: { perCustomer: [{ limit: 100, window: 86_400 }] } };
    const attack = { numbers: { kind: "ranges", country: "UZ", ranges: 1 }, messages: 100, perHour: 100, from: "country" } as const;
    const result = await simulate({ policy }, { ...scenarios.range, visitsPerDay: 600, warmUpDays: 0, hours: 12, attack });
    const row = rowOf("range", result);
    expect(textLine(row, false)).toMatch(/^✗ range {2,}\d+ of 100 .* out ≤ 100.* visits perCustomer 100\/86400s: \d+.*; attack /);
    expect(headLine()).toMatch(/^ {2}scenario .* rejected by$/);
    const legend = legendLines([result]).join("\n");
    expect(legend).toMatch(/^ {2}· perCustomer 100\/86400s {2}a cap of /m);
    expect(legend).toMatch(/^ {2}· range 4 .* {2}too many open messages to one range/m);
    expect(legend).not.toContain("newCountries");
  });

  test("explains the names of your own rules and of errors", () => {
    const refusedBy = { "range 4": 1, "range 6": 1, night: 1, unsupported_region: 1, "spend 5/hour": 1 };
    const legend = legendLines([{ honest: { refusedBy } } as unknown as Parameters<typeof legendLines>[0][number]]);
    expect(legend).toContain("  · night, unsupported_region  one of your own rules, or the code of an error");
    expect(legend.find((line) => line.startsWith("  · spend 5/hour "))).toMatch(/ the spend ceiling$/);
    expect(legend.find((line) => line.includes("· range 4, range 6  "))).toBeDefined();
  });
});

describe("progress", () => {
  test("is the share of the work, not of the scenarios", () => {
    const plays = [
      { id: "range", size: 900 },
      { id: "peace500", size: 100 },
    ];
    expect(progressText(plays, [0, 1], 1)).toBe("10 % · 1 of 2 played");
    expect(progressText(plays, [0.5, 1], 1)).toBe("55 % · 1 of 2 played");
  });
});
