import { describe, expect, it } from "vitest";
import { ownRule, ruleWords, wordsOf } from "../../src/cli/operators/rules.js";
import { destinationErrors } from "../../src/domain/phone-number.js";
import { defaultPolicy, type Policy } from "../../src/domain/policy.js";
import { capCharges } from "../../src/domain/quota.js";
import { defaultSpamPolicy, type SpamPolicy } from "../../src/domain/spam-policy.js";
import { noExemptions, spamCharges } from "../../src/domain/spam-rules.js";
import { ceilingsOf, spendCharges } from "../../src/domain/spend.js";
import { readPage } from "./pages.js";

const { text } = readPage("docs/no-code.md");
const [, table = ""] = /<!-- rules: .*?-->\n([\s\S]*?)<!-- \/rules -->/.exec(text) ?? [];
const rows = [...table.matchAll(/^\| `?([^|`]+)`? \| ([^|]+) \| ([^|]+) \|$/gm)].slice(1).map(([, form, means, fix]) => ({ form, means, fix }));

describe("docs/no-code.md: the table of rules", () => {
  it("has the sentences of phoneproof why", () => {
    expect(rows).toEqual(Object.entries({ ...ruleWords, "any other name": ownRule }).map(([form, words]) => ({ form, ...words })));
  });

  it("has sentences that fit a rule in shadow mode too: none says that the message was blocked", () => {
    for (const { means } of [...Object.values(ruleWords), ownRule]) expect(means).not.toMatch(/\bblocked\b/);
  });

  it("has a row for every cap, spend limit, cell and error code that phoneproof why shows", () => {
    const moment = { now: Date.UTC(2026, 2, 1), skew: 0 };
    const cap = [{ limit: 7, window: 60 }];
    const { limits } = defaultPolicy;
    const capped = Object.fromEntries(
      Object.keys(limits).map((name) => [name, /spend/i.test(name) ? [{ amount: 5, per: "day" }] : cap]),
    ) as unknown as Policy["limits"];
    const policy = { ...defaultPolicy, limits: capped };
    const spam = Object.fromEntries(Object.entries(defaultSpamPolicy).map(([name, rule]) => [name, { ...rule, mode: "enforce" }])) as unknown as SpamPolicy;
    const subject = { customer: "c", id: "i", number: "+33612345678", country: "FR", createdAt: 0, attempt: 1, deviceId: "d", ip: "192.0.2.1", isCall: true };
    const cells = spamCharges({ ...subject, calls: [], origin: { a: "a", w: "w", p: 1 } }, spam, [], noExemptions, [], moment, (name) => name);
    const charges = [...capCharges(subject, policy, moment, (name) => name), ...spendCharges("c", 1, ceilingsOf(policy.limits, "voice"), moment), ...cells];
    const names = [...charges.map(({ rule }) => rule), ...destinationErrors, "strangeNetwork", "signals", "blockList", "fallback", "guesses"];
    expect(names.filter((name) => wordsOf(name) === ownRule)).toEqual([]);
    // Every row is needed: each belongs to one of these names.
    expect(new Set(names.map((name) => Object.values(ruleWords).indexOf(wordsOf(name)))).size).toBe(Object.keys(ruleWords).length);
    for (const name of ["my-rule", "country house", "toString", "perNumbers 1/1s"]) expect(wordsOf(name)).toBe(ownRule);
  });
});
