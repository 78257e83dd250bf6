import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { VerifierOptions } from "../../src/index.js";
import { inbox, numberOf, setUp } from "../support/verifier.js";
import { parseText } from "./prometheus.js";
import { evaluate, promtoolIsInstalled } from "./promtool.js";

const root = join(import.meta.dirname, "../..");
const rules = join(root, "observability/alerts.yml");
const text = readFileSync(rules, "utf8");

/** The annotations of each alert in the file, by name. */
const alerts = new Map(
  text
    .split("- alert: ")
    .slice(1)
    .map((block) => {
      const annotation = (name: string) => new RegExp(`${name}: "(.*)"`).exec(block)?.[1] ?? "";
      return [
        block.split("\n", 1)[0] as string,
        { summary: annotation("summary"), fix: annotation("fix"), severity: /severity: (\w+)/.exec(block)?.[1] ?? "" },
      ];
    }),
);

type Set = ReturnType<typeof setUp>;

/** Scrapes of a verifier, one a minute; `happens` runs before each. */
async function scrapesOf(options: Partial<VerifierOptions>, minutes: number, happens: (set: Set, minute: number) => Promise<void>): Promise<string[]> {
  const set = setUp({
    callbacks: { worker: false, sender: { post: async () => ({ status: 410 }) } },
    ...options,
    policy: { limits: { perCustomer: [] }, ...options.policy },
  });
  const scrapes = [set.verifier.metrics()];
  for (let minute = 0; minute < minutes; minute++) {
    await happens(set, minute);
    set.clock.advance(60_000);
    scrapes.push(set.verifier.metrics());
  }
  return scrapes;
}

let numbers = 0;
const create = (set: Set, fields = {}) => set.create({ phone_number: numberOf(numbers++), ...fields });

/** Normal traffic: most codes are entered. */
async function peace(set: Set): Promise<void> {
  for (let each = 0; each < 4; each++) {
    const { authentication_uuid } = await create(set);
    if (each > 0) await set.check(authentication_uuid, set.box.code());
  }
}

const slow = Object.assign(inbox(), {});

const firing: readonly (readonly [name: string, labels: Readonly<Record<string, string>>, scrapes: () => Promise<string[]>])[] = [
  [
    "PhoneproofStoreFails",
    { part: "store" },
    () =>
      scrapesOf({}, 5, async (set) => {
        (set.store as { commit: unknown }).commit = async () => Promise.reject(new Error("down"));
        await create(set).catch(() => undefined);
      }),
  ],
  [
    "PhoneproofCarrierFails",
    { route: "one" },
    () =>
      scrapesOf({}, 20, async (set, minute) => {
        set.box.answer = async () => (minute % 3 === 0 ? { outcome: "rejected", route: "one" } : { outcome: "accepted", route: "one" });
        await peace(set);
      }),
  ],
  [
    "PhoneproofFewVerify",
    { country: "FR" },
    () =>
      scrapesOf({}, 80, async (set) => {
        for (let each = 0; each < 2; each++) await create(set);
      }),
  ],
  [
    "PhoneproofAlarm",
    { alarm: "customer_cap" },
    () =>
      scrapesOf({ policy: { limits: { perCustomer: [{ limit: 10, window: 86_400 }] } } }, 5, async (set, minute) => {
        if (minute < 2) await peace(set);
      }),
  ],
  [
    "PhoneproofCallbacksGivenUp",
    {},
    () =>
      scrapesOf({}, 5, async (set, minute) => {
        if (minute !== 2) return;
        await create(set, { callback_url: "https://example.com/hook" });
        await set.verifier.flush();
      }),
  ],
  [
    "PhoneproofSlow",
    { operation: "create" },
    () =>
      scrapesOf({ sender: slow, sendTimeout: 60 }, 20, async (set) => {
        slow.answer = async () => {
          set.clock.advance(4_000);
          return { outcome: "accepted" };
        };
        await create(set);
      }),
  ],
];

describe("the alert rules", () => {
  it("are six, and a test fires each", () => {
    expect([...alerts.keys()]).toEqual(firing.map(([name]) => name));
  });

  it("use existing metrics", async () => {
    const scrapes = await scrapesOf({}, 2, peace);
    const names = new Set(parseText(scrapes.at(-1) ?? "").map(({ name }) => name));
    for (const name of text.match(/phoneproof_\w+/g) ?? []) if (name !== "phoneproof_message_seconds") expect(names).toContain(name);
  });
});

describe.skipIf(!promtoolIsInstalled("the alert rules"))("in Prometheus' own engine, over a verifier's scrapes", () => {
  const quiet = Object.fromEntries([...alerts.keys()].map((name) => [name, []]));

  it("normal traffic fires none", async () => {
    expect(await evaluate(rules, await scrapesOf({}, 90, peace), quiet)).toBe("");
  });

  it.each(firing)("%s fires, and no other", async (name, labels, scrapes) => {
    const { summary, fix, severity } = alerts.get(name) as { summary: string; fix: string; severity: string };
    const expected = { ...quiet, [name]: [{ exp_labels: { severity, ...labels }, exp_annotations: { summary, fix } }] };
    expect(await evaluate(rules, await scrapes(), expected)).toBe("");
  });
});
