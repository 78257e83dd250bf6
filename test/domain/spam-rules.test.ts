import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { Questions } from "../../src/domain/cells.js";
import { defaultPolicy } from "../../src/domain/policy.js";
import { takenBack } from "../../src/domain/quota.js";
import { defaultSpamPolicy, type SpamPolicy } from "../../src/domain/spam-policy.js";
import { creditClaims, type Origin, SpamQuestion } from "../../src/domain/spam-rules.js";

/** A time at which a part of every sum has just begun, so that what follows within minutes is exact. */
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

/** A customer's cells in a store: messages are sent as create does, and taken out again where a rule refuses. */
function cells(policy: SpamPolicy) {
  const store = memoryStore({ name: randomUUID() });
  const customer = randomUUID();
  const send = async (number: string, now: number, origin: Origin = {}, country = "FR") => {
    const questions = new Questions(customer, { now, skew: 0 });
    const question = new SpamQuestion(questions, { customer, number, country, origin }, policy, [], mask);
    const answer = await store.commit({ claims: questions.claims, asks: questions.asks });
    if (!answer.done) throw new Error("a claim without a limit was refused");
    const { decisions } = question.judge(answer, 0, now);
    if (decisions.length > 0) await store.commit({ claims: takenBack(questions.claims, true) });
    return decisions.map(({ rule }) => rule);
  };
  const verify = (number: string, messages: number, now: number, origin: Origin = {}, country = "FR") =>
    store.commit({ claims: creditClaims({ customer, number, country, origin }, { ...defaultPolicy, spam: policy }, [], messages, { now, skew: 0 }, mask) });
  return { send, verify };
}

const ranged = { ...quiet, range: defaultSpamPolicy.range };

/** Who does what, in one range of 10,000: a new user sends, one who has sent verifies, or sends again. */
type Step = "send" | "verify" | "again";
const steps = fc.array(fc.constantFrom<Step>("send", "send", "verify", "again"), { maxLength: 60 });

describe("a cell refuses a message when open ≥ seed + k × verified (properties)", () => {
  it("whatever people do, a message goes exactly if open < 5 + 2 × verified, and never more are open than that", async () => {
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
            expect(refused.includes("range 4")).toBe(open >= 5 + 2 * verified);
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

  it("people of whom at least every third verifies before the next ones come are never refused, however many they are", async () => {
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

  it("refusals fill nothing: after any number of them the same messages go as without", async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 30 }), async (refusals) => {
        const { send, verify } = cells(ranged);
        for (let index = 0; index < 5; index++) expect(await send(`+3361200${index}000`, start)).toEqual([]);
        for (let index = 0; index < refusals; index++) expect(await send(`+33612001${String(index).padStart(3, "0")}`, start + 1)).toContain("range 4");
        await verify("+33612000000", 1, start + 2);
        expect([await send("+33612002001", start + 3), await send("+33612002002", start + 3), await send("+33612002003", start + 3)]).toEqual([[], [], []]);
        expect(await send("+33612002004", start + 3)).toEqual(["range 4"]);
      }),
      { numRuns: 20 },
    );
  });

  it("cells are kept apart: what one range, country or address is full of refuses nobody elsewhere", async () => {
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

describe("names of cells", () => {
  it("hold no number, address or device in clear", () => {
    const questions = new Questions("c", { now: start, skew: 0 });
    const masked = (text: string) => Buffer.from(text).toString("hex").slice(0, 12);
    new SpamQuestion(questions, { customer: "c", number: "+33612345678", country: "FR", origin: { a: "x", w: "y" } }, defaultSpamPolicy, [], masked);
    const names = [...questions.claims, ...questions.asks].map(({ sum }) => sum);
    expect(names.length).toBeGreaterThan(15);
    for (const name of names) expect(name).not.toMatch(/33612345|612345/);
  });

  it("each sum is claimed once, and asked for once", () => {
    const questions = new Questions("c", { now: start, skew: 0 });
    new SpamQuestion(questions, { customer: "c", number: "+33612345678", country: "FR", origin: { a: "x", w: "y", p: 1 } }, defaultSpamPolicy, [], mask);
    for (const list of [questions.claims, questions.asks]) expect(new Set(list.map(({ sum }) => sum)).size).toBe(list.length);
  });
});
