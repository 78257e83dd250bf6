import { expect, it } from "vitest";
import { type Run, type Scenario, shareOf, simulate } from "./simulation.js";
import { tallyStore } from "./tally-store.js";

const routes = [{ name: "A" }, { name: "B" }, { name: "C" }];
const [from, healed, end] = [800, 1500, 3000];
const scenario = (seed: number): Scenario => ({
  seed,
  routes,
  countries: ["DE", "FR", "US"],
  sends: end,
  every: 4000,
  // A country whose users rarely finish, and one degrading route.
  conversion: (route, country, send) => (country === "US" ? 0.5 : route === "B" && country === "DE" && send > from && send <= healed ? 0.6 : 0.9),
});

const seeds = [1, 2, 3];

/** Number of messages after `start` until the route has less than half its fair third of the newest 50. */
function movedAfter({ records }: Run, country: string, route: string, start: number): number {
  const later = records.filter((record) => record.country === country && record.send > start);
  for (let end = 50; end <= later.length; end++) {
    if (later.slice(end - 50, end).filter((record) => record.route === route).length < 50 / 6) return end;
  }
  return Number.POSITIVE_INFINITY;
}

/** Number of messages after `start` until the route has at least 25 of the newest 100. */
function backAfter({ records }: Run, country: string, route: string, start: number): number {
  const later = records.filter((record) => record.country === country && record.send > start);
  for (let end = 100; end <= later.length; end++) {
    if (later.slice(end - 100, end).filter((record) => record.route === route).length >= 25) return end;
  }
  return Number.POSITIVE_INFINITY;
}

function conversionOf({ records }: Run, country: string, first: number, last: number): number {
  const part = records.filter((record) => record.country === country && record.send >= first && record.send <= last);
  return part.filter(({ converted }) => converted).length / part.length;
}

const median = (values: readonly number[]) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
const percent = (share: number) => `${Math.round(share * 100)} %`;

it("a carrier that falls to 60 % in one country loses its traffic there within 200 messages, and gets it back when it recovers", async () => {
  const runs = [];
  for (const seed of seeds) runs.push(await simulate(scenario(seed)));

  const rows = runs.map((run, i) => {
    const elsewhere = ["FR", "US"].flatMap((country) => routes.map(({ name }) => shareOf(run, country, name, from + 1, healed)));
    return {
      seed: seeds[i]!,
      before: shareOf(run, "DE", "B", from - 299, from),
      moved: movedAfter(run, "DE", "B", from),
      late: shareOf(run, "DE", "B", from + 201, healed),
      conversion: conversionOf(run, "DE", from + 201, healed),
      back: backAfter(run, "DE", "B", healed),
      after: shareOf(run, "DE", "B", end - 499, end),
      elsewhere: [Math.min(...elsewhere), Math.max(...elsewhere)] as const,
      falseAlarms: run.changes.filter(({ breaker, country, route }) => breaker === "open" && !(country === "DE" && route === "B")).length,
    };
  });
  const table = rows.map((row) => [
    row.seed,
    percent(row.before),
    row.moved,
    percent(row.late),
    percent(row.conversion),
    row.back,
    percent(row.after),
    `${percent(row.elsewhere[0])} to ${percent(row.elsewhere[1])}`,
    row.falseAlarms,
  ]);
  const head = [
    "seed",
    "B before",
    "moved after",
    "B, 201st to 700th",
    "DE converts then",
    "back after healing",
    "B, last 500",
    "routes elsewhere",
    "false alarms",
  ];
  console.log([head, head.map(() => "---"), ...table].map((cells) => `| ${cells.join(" | ")} |`).join("\n"));

  expect(median(rows.map(({ moved }) => moved))).toBeLessThanOrEqual(150);
  for (const row of rows) {
    expect(row.moved).toBeLessThanOrEqual(200);
    expect(row.before).toBeGreaterThan(0.2);
    expect(row.late).toBeLessThan(1 / 6);
    // With an even split it would be 80 %.
    expect(row.conversion).toBeGreaterThan(0.84);
  }
  expect(median(rows.map(({ after }) => after))).toBeGreaterThan(0.28);
  for (const { after } of rows) expect(after).toBeGreaterThan(0.2);
  expect(median(rows.map(({ back }) => back))).toBeLessThanOrEqual(700);
  // The other countries: one where most codes are entered and one where half are.
  for (const { elsewhere } of rows) {
    expect(elsewhere[0]).toBeGreaterThan(0.2);
    expect(elsewhere[1]).toBeLessThan(0.47);
  }
  expect(rows.reduce((sum, { falseAlarms }) => sum + falseAlarms, 0)).toBeLessThanOrEqual(2);
});

it("four processes that share a store detect it as fast as one, wherever the codes are checked", async () => {
  const rows = [];
  for (const seed of seeds.slice(0, 2)) {
    const four: Scenario = { ...scenario(seed), processes: 4, countries: ["DE"] };
    const [shared, alone] = [await simulate({ ...four, store: tallyStore() }), await simulate(four)];
    rows.push({
      moved: movedAfter(shared, "DE", "B", from),
      late: shareOf(shared, "DE", "B", from + 201, healed),
      lateAlone: shareOf(alone, "DE", "B", from + 201, healed),
      after: shareOf(shared, "DE", "B", end - 499, end),
    });
  }
  const table = rows.map(({ moved, late, lateAlone, after }, i) => [seeds[i], moved, percent(late), percent(lateAlone), percent(after)]);
  const head = ["seed", "moved after", "B, 201st to 700th", "the same without a store", "B, last 500"];
  console.log([head, head.map(() => "---"), ...table].map((cells) => `| ${cells.join(" | ")} |`).join("\n"));
  for (const { moved, late, lateAlone, after } of rows) {
    expect(moved).toBeLessThanOrEqual(200);
    expect(late).toBeLessThan(1 / 6);
    expect(after).toBeGreaterThan(0.28);
    expect(lateAlone).toBeGreaterThan(1 / 4);
  }
});

it("a backup of lower priority takes over from a failing route, and gives the traffic back when it recovers", async () => {
  const run = await simulate({
    ...scenario(3),
    routes: [{ name: "B" }, { name: "backup", priority: 2 }],
    countries: ["DE"],
  });
  expect(shareOf(run, "DE", "B", 301, from)).toBeGreaterThan(0.9);
  expect(shareOf(run, "DE", "B", from + 151, healed)).toBeLessThan(0.3);
  expect(shareOf(run, "DE", "B", end - 499, end)).toBeGreaterThan(0.9);
});
