import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { numberOf, setUp } from "../support/verifier.js";
import { parseText } from "./prometheus.js";

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[];
}

const dashboard = JSON.parse(readFileSync(join(import.meta.dirname, "../../observability/dashboard.json"), "utf8")) as { readonly panels: readonly Panel[] };

describe("the dashboard", () => {
  it("uses existing metrics and labels, and shows every metric", async () => {
    const set = setUp({ callbacks: { worker: false, sender: { post: async () => ({ status: 204 }) } } });
    set.box.answer = async () => ({ outcome: "accepted", messageId: "m", idSpace: "s" });
    const { authentication_uuid } = await set.create({ callback_url: "https://example.com/hook" });
    await set.verifier.settleReceipts([{ messageId: "m", idSpace: "s", status: "delivered" }]);
    await set.check(authentication_uuid, set.box.code());
    for (let more = 0; more < 6; more++) await set.create({ phone_number: numberOf(1) });
    await set.http("GET", "/v1/lookup/+33612345678", undefined, { "customer-uuid": set.customer });
    const samples = parseText(set.verifier.metrics());
    const labelsOf = (name: string) => samples.find((sample) => sample.name === name)?.labels;
    const shown = new Set<string>();
    for (const { title, targets } of dashboard.panels) {
      for (const { expr, legendFormat } of targets) {
        const names = expr.match(/phoneproof_\w+/g) ?? [];
        expect(names, title).not.toEqual([]);
        const grouped = /by \(([^)]*)\)/.exec(expr)?.[1]?.split(", ") ?? [];
        for (const name of names) {
          shown.add(name.replace(/_bucket$/, ""));
          const labels = Object.keys(labelsOf(name) ?? {});
          expect(labelsOf(name), `${title}: ${name}`).toBeDefined();
          expect(labels, title).toEqual(expect.arrayContaining(grouped));
        }
        expect(grouped, title).toEqual(expect.arrayContaining([...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label)));
      }
    }
    expect(shown).toEqual(new Set(samples.map(({ name }) => name.replace(/_(bucket|sum|count)$/, ""))));
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
  });
});
