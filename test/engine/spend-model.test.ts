import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import type { SendOutcome } from "../../src/index.js";
import { router } from "../../src/routing/router.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";
import { numberOf, setUp, start } from "../support/verifier.js";

type Outcome = "accepted" | "rejected" | "unknown" | "throws";

/** A step; `by`: which of the two processes takes it. */
type Step =
  | { readonly kind: "create"; readonly by: 0 | 1; readonly number: number; readonly key?: number | undefined; readonly outcomes: readonly [Outcome, Outcome] }
  | { readonly kind: "retry" | "check"; readonly by: 0 | 1; readonly of: number }
  | { readonly kind: "wait"; readonly seconds: number };

const some = fc.constantFrom<Outcome>("accepted", "accepted", "rejected", "unknown", "throws");
const by = fc.constantFrom(0 as const, 1 as const);
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant("create" as const),
    by,
    number: fc.nat(4),
    key: fc.option(fc.nat(1), { nil: undefined, freq: 2 }),
    outcomes: fc.tuple(some, some),
  }),
  fc.record({ kind: fc.constantFrom("retry" as const, "check" as const), by, of: fc.nat(20) }),
  fc.record({ kind: fc.constant("wait" as const), seconds: fc.constantFrom(1, 31, 400, 3000, 20_000) }),
);

/** The steps of one inner list run concurrently. */
const someRun = fc.array(fc.array(step, { minLength: 1, maxLength: 6 }), { maxLength: 25 });

const hour = 3_600_000;
const prices = [3, 5] as const;
const ceilings = [
  { amount: 20, per: "hour" as const },
  { amount: 50, per: "day" as const },
];

/** Runs the steps in two processes; returns what each message cost, and what the store counts in the end. */
async function play(rounds: readonly (readonly Step[])[], afterUnknown: boolean) {
  const clock = fixedClock(start);
  const store = memoryStore({ name: randomUUID() });
  const customer = randomUUID();
  const commit = store.commit.bind(store);
  store.commit = async (change) => {
    await new Promise(setImmediate);
    return commit(change);
  };
  const paid: { readonly at: number; readonly price: number }[] = [];
  const outcomes = new Map<string, readonly [Outcome, Outcome]>();
  const route = (index: 0 | 1) => ({
    async send({ to }: { readonly to: string }): Promise<SendOutcome> {
      await new Promise(setImmediate);
      const outcome = outcomes.get(to)?.[index] ?? "accepted";
      if (outcome !== "rejected") paid.push({ at: clock.now(), price: prices[index] });
      if (outcome === "throws") throw new Error("cut");
      return { outcome };
    },
  });
  const policy = { limits: { spend: ceilings } };
  const processes = [0, 1].map(() => {
    const routes = ([0, 1] as const).map((index) => ({ name: `r${index}`, sender: route(index), price: prices[index], priority: index }));
    const sender = router({ routes, clock, failover: { afterUnknown } });
    return setUp({ store, clock, policy, sender, customers: [{ customer_uuid: customer, keys: [`pp_${randomUUID()}`] }] }).verifier;
  });
  const made: string[] = [];
  const run = async (one: Exclude<Step, { kind: "wait" }>) => {
    const verifier = processes[one.by]!;
    if (one.kind === "create") {
      outcomes.set(numberOf(one.number), one.outcomes);
      const key = one.key === undefined ? undefined : { idempotencyKey: `${one.number} ${one.key}` };
      const { authentication_uuid } = await verifier.createAuthentication({ customer_uuid: customer, phone_number: numberOf(one.number) }, key);
      made.push(authentication_uuid);
      return;
    }
    const authentication_uuid = made[one.of % Math.max(1, made.length)];
    if (authentication_uuid === undefined) return;
    const request = { customer_uuid: customer, authentication_uuid };
    await (one.kind === "retry" ? verifier.retry(request) : verifier.check({ ...request, check_code: "no" })).catch((error: { code?: string }) => {
      // An earlier record that was deleted.
      if (error.code !== "invalid_auth_uuid") throw error;
    });
  };
  for (const racers of rounds) {
    await Promise.all(racers.map((one) => (one.kind === "wait" ? undefined : run(one))));
    for (const one of racers) if (one.kind === "wait") clock.advance(one.seconds * 1000);
  }
  /** What is counted in one part of the sum. */
  const counted = async (per: "hour" | "day", part: number) => {
    const result = await commit({ asks: [{ sum: `${customer}:s:${per}`, part, parts: 1 }] });
    return (result.done ? (result.asked[0] ?? 0) : 0) / 1e6;
  };
  return { paid, counted, now: clock.now() };
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0);

describe("the spend ceiling under any steps in two processes (model)", () => {
  for (const afterUnknown of [false, true]) {
    it(`spending in any hour or day stays within the amount and is counted exactly, with failover ${afterUnknown ? "after an unknown outcome too" : "after rejections"}`, async () => {
      await fc.assert(
        fc.asyncProperty(someRun, async (rounds) => {
          const { paid, counted, now } = await play(rounds, afterUnknown);
          for (const { amount, per } of ceilings) {
            const length = per === "hour" ? hour : 24 * hour;
            const most = Math.max(0, ...paid.map(({ at }) => sum(paid.filter((one) => one.at <= at && one.at > at - length).map(({ price }) => price))));
            expect(most).toBeLessThanOrEqual(amount);
            const width = length / 12;
            const last = Math.floor(now / width);
            for (let part = last; part > last - 12; part--) {
              expect(await counted(per, part)).toBe(sum(paid.filter(({ at }) => Math.floor(at / width) === part).map(({ price }) => price)));
            }
          }
        }),
        { numRuns: 120 },
      );
    });
  }
});
