import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import type { Store } from "../../src/index.js";
import { type FixedClock, fixedClock } from "../../src/testing/fixed-clock.js";
import { numberOf, setUp, start } from "../support/verifier.js";

const hang = () => new Promise<never>(() => undefined);

/** Everything that a message may wait for, and that fails open; and the carrier. */
const everything = {
  sender: { send: hang },
  lists: { block: hang, safe: hang },
  spamRules: [{ name: "own", judge: hang }],
  ipInfo: hang,
  challenge: { verify: hang },
  lookup: { lookup: hang },
  lookupBeforeSend: true,
};
const request = { ip: "192.0.2.7", proof: "p" };

/** The milliseconds of the clock until the call settles. */
async function takes(clock: FixedClock, call: Promise<unknown>): Promise<number> {
  const from = clock.now();
  let settled = false;
  const end = () => {
    settled = true;
  };
  call.then(end, end);
  for (;;) {
    for (let turns = 0; turns < 20; turns++) await turn();
    if (settled || clock.now() - from > 60_000) return clock.now() - from;
    clock.advance(50);
  }
}

/** A store whose calls take `delay` milliseconds, at first none. */
function slowStore(clock: FixedClock) {
  const real = memoryStore({ now: () => clock.now() });
  const pace = { delay: 0 };
  const slowly = (name: string | symbol, work: (...args: unknown[]) => Promise<unknown>) =>
    async function slow(...args: unknown[]) {
      const answer = await work.apply(real, args);
      if (pace.delay > 0 && name !== "close") await new Promise<void>((resolve) => void clock.after(pace.delay, resolve));
      return answer;
    };
  const store = new Proxy(real, {
    get(target, name) {
      const member = Reflect.get(target, name);
      return typeof member === "function" ? slowly(name, member) : member;
    },
  });
  return { store: store as Store, pace };
}

describe("time-outs (docs/operations.md#timeouts)", () => {
  it("the first create waits for lists, then for all else side by side, then for the carrier; the next one for no list", async () => {
    const set = setUp(everything);
    expect(await takes(set.clock, set.create(request))).toBe(2_000 + 2_000 + 5_000);
    expect(await takes(set.clock, set.create(request))).toBe(2_000 + 5_000);
  });

  it("a retry waits for own rules and the lookup side by side", async () => {
    const set = setUp({ ...everything, policy: { lifetime: 3_600 } });
    const created = set.create(request);
    await takes(set.clock, created);
    const { authentication_uuid } = await created;
    // Until the failed lookup is forgotten.
    set.clock.advance(700_000);
    expect(await takes(set.clock, set.retry(authentication_uuid))).toBe(2_000 + 5_000);
  });

  it("a create waits at most 15 s in all, if the store and the source of customers are slow too", async () => {
    const clock = fixedClock(start);
    const { store, pace } = slowStore(clock);
    const customer_uuid = "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f";
    const source = () => new Promise<{ customer_uuid: string }>((resolve) => void clock.after(1_950, () => resolve({ customer_uuid })));
    const set = setUp({ ...everything, clock, store, customers: { find: source, findByKeyDigest: source } });
    pace.delay = 950;
    const took = await takes(clock, set.create({ ...request, customer_uuid }));
    expect(took).toBeGreaterThan(13_000);
    expect(took).toBeLessThanOrEqual(15_000);
  });

  it("requests wait at most 2 s for a write that the platform stopped with an earlier request, and later ones not at all", async () => {
    const clock = fixedClock(start);
    let stopped = false;
    const set = setUp({
      clock: { ...clock, after: (...timer: Parameters<FixedClock["after"]>) => (stopped ? () => undefined : clock.after(...timer)) },
      spamRules: [{ name: "own", judge: () => ({ reason: "rejected" }) }],
    } as object);
    const { commit } = set.store;
    stopped = true;
    set.store.commit = hang;
    const { status, authentication_uuid } = await set.create();
    expect(status).toBe("spam_detected");
    stopped = false;
    set.store.commit = commit;
    const of = { customer_uuid: set.customer, phone_number: numberOf(1) };
    const calls = [set.check(authentication_uuid, "1"), set.verifier.history(of), set.verifier.refusals(of), set.verifier.unlock(of), set.verifier.close()];
    expect(await takes(clock, Promise.allSettled(calls))).toBe(2_000);
    expect(
      await takes(
        clock,
        set.check(authentication_uuid, "1").catch(() => undefined),
      ),
    ).toBe(0);
    expect((await Promise.allSettled(calls)).map((call) => (call.status === "fulfilled" ? "answered" : call.reason.code))).toEqual([
      "invalid_auth_uuid",
      ...Array(4).fill("answered"),
    ]);
  });
});
