import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import type { Origin } from "../../src/domain/authentication.js";
import { defaultPolicy } from "../../src/domain/policy.js";
import { measured } from "../../src/domain/quota.js";
import { defaultSpamPolicy, type SpamPolicy } from "../../src/domain/spam-policy.js";
import { creditClaims, exemptedBy, noExemptions, raisedAlarm, type SpamCharge, spamCharges, uncountClaims } from "../../src/domain/spam-rules.js";

/** A time at which a part of every sum begins, so that counts are exact within the next minutes. */
const start = Date.UTC(2026, 2, 1, 12);
const mask = (text: string) => `<${text}>`;

const off = { mode: "off" as const };
const quiet: SpamPolicy = {
  ...defaultSpamPolicy,
  range: { ...defaultSpamPolicy.range, ...off },
  crowd: { ...defaultSpamPolicy.crowd, ...off },
  country: { ...defaultSpamPolicy.country, ...off },
  newCountries: { ...defaultSpamPolicy.newCountries, ...off },
  address: { ...defaultSpamPolicy.address, ...off },
  strangeNetwork: { ...defaultSpamPolicy.strangeNetwork, ...off },
  trust: { open: 0 },
};

/** A customer's cells in a store, as create and check claim them. */
function cells(policy: SpamPolicy) {
  const store = memoryStore({ name: randomUUID() });
  const customer = randomUUID();
  let made = 0;
  const send = async (number: string, now: number, origin: Origin = {}, country = "FR") => {
    const charges = spamCharges({ customer, number, country, origin }, policy, [], noExemptions, [], { now, skew: 0 }, mask);
    const answer = await store.commit({ claims: charges.map(({ claim }) => claim) });
    if (answer.done) return [];
    const charge = charges[answer.refusedBy ?? 0] as SpamCharge;
    return [{ rule: charge.rule, ...measured(charge, (answer as { count: number }).count) }];
  };
  const verify = async (number: string, messages: number, now: number, origin: Origin = {}, country = "FR") => {
    const proof = { customer, number, country, origin, id: `id ${made++}`, createdAt: now };
    const sentAt = Array<number>(messages).fill(now);
    const credit = (earns: boolean) =>
      store.commit({ claims: creditClaims(proof, { spam: policy, limits: defaultPolicy.limits }, [], sentAt, earns, { now, skew: 0 }, mask) });
    const answer = await credit(true);
    if (!answer.done) expect((await credit(false)).done).toBe(true);
    return answer.done;
  };
  return { send, verify };
}

const ranged = { ...quiet, range: defaultSpamPolicy.range };

/** Steps in one range of 10,000: a new user sends, or one who has sent verifies or sends again. */
type Step = "send" | "verify" | "again";
const steps = fc.array(fc.constantFrom<Step>("send", "send", "verify", "again"), { maxLength: 60 });

describe("a cell blocks a message when open ≥ seed + k × verified (properties)", () => {
  it("after any steps, a message is sent exactly if open < 5 + 2 × verified, and open never exceeds that", async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (list) => {
        const { send, verify } = cells(ranged);
        const waiting: { number: string; messages: number }[] = [];
        let [verified, now, made] = [0, start, 0];
        for (const step of list) {
          now += 1000;
          const open = waiting.reduce((sum, { messages }) => sum + messages, 0);
          if (step === "verify") {
            const user = waiting.shift();
            if (user === undefined) continue;
            verified++;
            await verify(user.number, user.messages, now);
          } else {
            const user = step === "again" ? waiting[0] : undefined;
            const number = user?.number ?? `+3361200${String(made++).padStart(4, "0")}`;
            const refused = await send(number, now);
            expect(refused).toEqual(open >= 5 + 2 * verified ? [{ rule: "range 4", value: open, threshold: 5 + 2 * verified }] : []);
            if (refused.length > 0) continue;
            if (user === undefined) waiting.push({ number, messages: 1 });
            else user.messages++;
          }
          expect(waiting.reduce((sum, { messages }) => sum + messages, 0)).toBeLessThanOrEqual(5 + 2 * verified);
        }
      }),
      { numRuns: 200 },
    );
  });

  it("users are never blocked if at least every third verifies before the next ones send", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom(1, 2, 3), { maxLength: 40 }), async (groups) => {
        const { send, verify } = cells(ranged);
        let [now, made] = [start, 0];
        for (const size of groups) {
          const users = Array.from({ length: size }, () => `+3361200${String(made++).padStart(4, "0")}`);
          for (const user of users) expect(await send(user, (now += 1000))).toEqual([]);
          await verify(users[0] as string, 1, (now += 1000));
        }
      }),
      { numRuns: 50 },
    );
  });

  it("blocked messages add nothing: after any number of them, the same messages are sent", async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 30 }), async (refusals) => {
        const { send, verify } = cells(ranged);
        for (let index = 0; index < 5; index++) expect(await send(`+3361200${index}000`, start)).toEqual([]);
        for (let index = 0; index < refusals; index++)
          expect(await send(`+33612001${String(index).padStart(3, "0")}`, start + 1)).toMatchObject([{ rule: "range 4" }]);
        await verify("+33612000000", 1, start + 2);
        expect([await send("+33612002001", start + 3), await send("+33612002002", start + 3), await send("+33612002003", start + 3)]).toEqual([[], [], []]);
        expect(await send("+33612002004", start + 3)).toMatchObject([{ rule: "range 4" }]);
      }),
      { numRuns: 20 },
    );
  });

  it("a full range, country or address does not affect others", async () => {
    const policy = { ...quiet, range: defaultSpamPolicy.range, country: defaultSpamPolicy.country, address: defaultSpamPolicy.address };
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 10, max: 99 }), fc.integer({ min: 10, max: 99 }), async (one, other) => {
        fc.pre(one !== other);
        const { send } = cells(policy);
        for (let index = 0; index < 60; index++) await send(`+336${one}00${String(index).padStart(4, "0")}`, start, { a: `address ${one}` });
        expect(await send(`+44740${other}12345`, start, { a: `address ${other}` }, "GB")).toEqual([]);
      }),
      { numRuns: 20 },
    );
  });
});

describe("one sum, one limit (docs/contract.md#balance)", () => {
  it("a number counts as verified once in 24 h; its own messages are always subtracted", async () => {
    const { send, verify } = cells(ranged);
    const number = "+33612000001";
    for (const expected of [true, false, false]) {
      expect(await send(number, start)).toEqual([]);
      expect(await verify(number, 1, start + 1)).toBe(expected);
    }
    for (let index = 0; index < 7; index++) expect(await send(`+3361200100${index}`, start + 2)).toEqual([]);
    expect(await send("+33612001009", start + 3), "seven are open, one has verified").toEqual([{ rule: "range 4", value: 7, threshold: 7 }]);
    expect(await send(number, start + 24 * 3_600_000)).toEqual([expect.objectContaining({ rule: "range 4" })]);
    expect(await verify(number, 0, start + 24 * 3_600_000 + 2), "a day later").toBe(true);
  });

  it("parts count in full: a message counts for 24 to 36 hours", async () => {
    for (const [after, refuses] of [
      [23.9, true],
      [36.1, false],
    ] as const) {
      const { send } = cells(ranged);
      for (let index = 0; index < 5; index++) await send(`+3361200100${index}`, start);
      expect((await send("+33612001009", start + after * 3_600_000)).length > 0).toBe(refuses);
    }
  });

  it("the credit of the pot of new countries never exceeds its seed", async () => {
    const { send, verify } = cells({ ...quiet, newCountries: { ...defaultSpamPolicy.newCountries, seed: 5 } });
    for (let index = 0; index < 50; index++) {
      expect(await send(`+3361200${1000 + index}`, start, { p: 1 })).toEqual([]);
      await verify(`+3361200${1000 + index}`, 1, start, { p: 1 });
    }
    let out = 0;
    while ((await send(`+44740000${1000 + out}`, start, { p: 1 }, "GB")).length === 0) out++;
    expect(out, "five, and five that were saved up").toBe(10);
  });

  it("a number's cells lose exactly what its messages added", () => {
    const subject = { customer: "c", number: "+33612345678", country: "FR", origin: { a: "x", p: 1 as const } };
    const moment = { now: start, skew: 0 };
    const put = spamCharges(subject, defaultSpamPolicy, [], noExemptions, [], moment, mask).map(({ claim }) =>
      "sum" in claim ? [claim.sum, claim.part, claim.weight] : [],
    );
    const taken = uncountClaims(subject, defaultSpamPolicy, [], [start], moment, mask).map(({ sum, part, weight }) => [sum, part, -weight]);
    expect(taken).toEqual(put);
  });
});

describe("a second check (docs/contract.md#second-look)", () => {
  const now = start;
  const at = (days: number) => (now - days * 86_400_000).toString(36);

  it("trust: verified within 90 days, and fewer than three of its messages open within 24 hours", () => {
    const policy = { ...defaultSpamPolicy, trust: { open: 3 } };
    const look = (verified: string[], sends: string[]) =>
      exemptedBy({ verified, sends }, { at: now, rule: "range 4", mode: "enforce" }, 5, noExemptions, policy)?.all ?? false;
    const open = (count: number) => Array.from({ length: count }, (_, index) => `open${index}/${at(0.5)}/1`);
    expect(look([], [])).toBe(false);
    expect(look([`one/${at(89)}`], [])).toBe(true);
    expect(look([`one/${at(91)}`], [])).toBe(false);
    expect(look([`one/${at(60)}`], open(2))).toBe(true);
    expect(look([`one/${at(60)}`], open(3))).toBe(false);
    expect(look([`one/${at(0.2)}`], [`one/${at(0.2)}/1`, `one/${at(0.2)}/2`, ...open(2)]), "its own are not open").toBe(true);
  });

  it("crowd: a tenth of what its million verified, if that is more", () => {
    const look = (verified: number, held: number) =>
      exemptedBy(
        { verified: [`a/${at(1)}`], sends: [], million: verified },
        { at: now, rule: "crowd", mode: "enforce" },
        held,
        noExemptions,
        defaultSpamPolicy,
      )?.limits.get("crowd");
    expect(look(200, 25)).toBeUndefined();
    expect(look(300, 25)).toBe(30);
    expect(look(300, 30)).toBeUndefined();
  });

  it("crowd: verified more than a day and at most 90 days ago, and fewer than 2 messages within 24 hours", () => {
    const decision = { at: now, rule: "crowd", mode: "enforce" } as const;
    const look = (verified: number[], sends: number[], open = 3) => {
      const found = { verified: verified.map((days) => `v/${at(days)}`), sends: sends.map((days, index) => `s${index}/${at(days)}/1`) };
      return exemptedBy(found, decision, 25, noExemptions, { ...defaultSpamPolicy, trust: { open } })?.trustedByCrowd?.sends;
    };
    expect(look([2], [])).toBe(2);
    expect(look([0.5], [])).toBeUndefined();
    expect(look([91], [])).toBeUndefined();
    expect(look([2, 0.5], [2, 0.5])).toBe(2);
    expect(look([2], [0.5, 0.2])).toBeUndefined();
    expect(look([2], [], 0)).toBeUndefined();
  });
});

describe("a country's alarm (docs/contract.md#spam-strange-network)", () => {
  it("is on while open + blocked within the hour > 20 + 2 × the week's usual open share × verified", () => {
    const raised = (open: number, refused: number, verified: number, week: { open: number; verified: number }, usual = 0) =>
      raisedAlarm({ hour: { open, refused, verified }, week: { ...week, refused: 0 }, usual }, defaultSpamPolicy.strangeNetwork);
    expect(raised(20, 0, 0, { open: 0, verified: 0 })).toBeUndefined();
    expect(raised(20, 1, 0, { open: 0, verified: 0 })).toEqual({ value: 21, threshold: 20 });
    expect(raised(40, 0, 40, { open: 100, verified: 400 })).toBeUndefined();
    expect(raised(41, 0, 40, { open: 100, verified: 400 })).toEqual({ value: 41, threshold: 40 });
    expect(raised(0, 140, 0, { open: 0, verified: 0 }, 30), "four usual hours of rejections do not count").toBeUndefined();
    expect(raised(0, 141, 0, { open: 0, verified: 0 }, 30)).toEqual({ value: 21, threshold: 20 });
  });
});

describe("names of cells", () => {
  const namesIn = (masked: (text: string) => string, origin: Origin) =>
    spamCharges({ customer: "c", number: "+33612345678", country: "FR", origin }, defaultSpamPolicy, [], noExemptions, [], { now: start, skew: 0 }, masked).map(
      ({ claim }) => ("sum" in claim ? claim.sum : claim.window),
    );

  it("hold no number, address or device in clear", () => {
    const names = namesIn((text) => Buffer.from(text).toString("hex").slice(0, 12), { a: "x", w: "y" });
    expect(names).toHaveLength(6);
    for (const name of names) expect(name).not.toMatch(/33612345|612345/);
  });

  it("each sum is claimed once", () => {
    const names = namesIn(mask, { a: "x", w: "y", p: 1 });
    expect(names).toHaveLength(7);
    expect(new Set(names).size).toBe(names.length);
  });
});
