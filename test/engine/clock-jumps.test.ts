import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { lookupChain } from "../../adapters/lookup/chain.js";
import { memoryStore } from "../../adapters/store/memory/index.js";
import type { Clock, LookupProvider, SmsSender, Store } from "../../src/index.js";
import { router } from "../../src/routing/router.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";
import { errorCode, numberOf, setUp, start } from "../support/verifier.js";

const day = 86_400_000;

/** Resolves after some microtasks, as in-memory work does. */
async function soon<T>(value: T): Promise<T> {
  await steps(20);
  return value;
}

/** A memory store whose methods take some microtasks; the method `hangs` never resolves. */
function slowStore(hangs?: keyof Store): Store {
  return new Proxy(memoryStore({ name: randomUUID() }), {
    get(target, name) {
      const own: unknown = Reflect.get(target, name, target);
      if (typeof own !== "function") return own;
      return async (...args: unknown[]) => (name === hangs ? new Promise(() => {}) : soon(await Reflect.apply(own, target, args)));
    },
  });
}

/** Lets `many` microtasks pass. */
async function steps(many: number): Promise<void> {
  for (let step = 0; step < many; step++) await Promise.resolve();
}

/** After how many microtasks of the work the clock jumps: one test for each. */
const jumpsAt = Array.from({ length: 50 }, (_, at) => at * 3);

/** A sender that accepts every message after some microtasks. */
const taking: SmsSender = { send: async () => soon({ outcome: "accepted" }) };

describe("a jump of the clock is not an outage: calls that have returned by then are not late", () => {
  it("polls of the worker that become due in it log nothing", async () => {
    const set = setUp({ callbacks: { worker: true }, statistics: {} });
    await set.create();
    set.clock.advance(600_001);
    set.clock.advance(day);
    await set.verifier.close();
    expect(set.log.lines).toEqual([]);
  });

  it.each(jumpsAt)("create and retry succeed during a jump, and no failure is logged: after %s steps", async (at) => {
    const clock = fixedClock(start);
    for (const sender of [taking, router({ clock, routes: [{ name: "one", sender: taking }] })]) {
      const set = setUp({ clock, store: slowStore(), sender });
      const jumped = async <T>(request: Promise<T>): Promise<T> => {
        await steps(at);
        clock.advance(60_000);
        return request;
      };
      const { authentication_uuid } = await jumped(set.create());
      clock.advance(30_000);
      expect((await jumped(set.retry(authentication_uuid))).status).toBe("approved");
      expect(set.log.lines).toEqual([]);
    }
  });

  it("a retry with several store calls succeeds if a jump beyond the deadline comes during each of them", async () => {
    const set = setUp({ store: slowStore() });
    const { authentication_uuid } = await set.create();
    set.clock.advance(30_000);
    const retrying = set.retry(authentication_uuid);
    for (let jump = 0; jump < 20; jump++) {
      await steps(5);
      set.clock.advance(3_000);
    }
    expect((await retrying).status).toBe("approved");
    expect(set.log.lines).toEqual([]);
  });

  it("a lookup that returns during a jump counts, through a chain too", async () => {
    const clock = fixedClock(start);
    const knows: LookupProvider = { lookup: async () => soon({ carrier: "Free Mobile", line_type: "Mobile" as const }) };
    for (const lookup of [knows, lookupChain([knows], { clock })]) {
      const set = setUp({ clock, lookup });
      const looking = set.verifier.lookup({ customer_uuid: set.customer, phone_number: "+33612345678" });
      await steps(10);
      clock.advance(60_000);
      expect((await looking).carrier).toBe("Free Mobile");
      expect(set.log.lines).toEqual([]);
    }
  });

  it("a store that hangs still times out, and is logged once", async () => {
    const set = setUp({ store: slowStore("commit") });
    const creating = set.create();
    // The state of the country is read first.
    await new Promise((resolve) => setImmediate(resolve));
    set.clock.advance(2_000);
    await expect(creating).rejects.toMatchObject({ code: "unavailable" });
    expect(set.log.lines.map(({ message }) => message)).toEqual(["the store failed"]);
  });
});

/** As the system's clock: its timers and `elapsed` run on although the time is set back. */
function steppedClock() {
  let back = 0;
  const real = fixedClock(start);
  const clock: Clock = { now: () => real.now() - back, elapsed: () => real.now(), after: real.after };
  return { clock, setBack: (ms: number) => void (back += ms), pass: (ms: number) => real.advance(ms) };
}

it("a clock that is set back an hour keeps no revoked key in use and no outage open (docs/contract.md#key-revocation, docs/contract.md#outages)", async () => {
  const { clock, setBack, pass } = steppedClock();
  const store = memoryStore({ name: randomUUID(), now: () => clock.now() });
  const [one, other] = [setUp({ store, clock, customers: "store" }), setUp({ store, clock, customers: "store" })];
  const { customer_uuid } = await one.verifier.customers.create({ name: "ACME" });
  const { key, key_id } = await one.verifier.customers.keys.issue({ customer_uuid });
  expect(await one.verifier.customerOf(key)).toBe(customer_uuid);
  one.box.answer = () => Promise.reject(new Error("no carrier"));
  await one.create({ customer_uuid });
  setBack(3_600_000);
  await other.verifier.customers.keys.revoke({ customer_uuid, key_id });
  pass(2_000);
  expect(await errorCode(one.verifier.customerOf(key))).toBe("forbidden");
  one.box.answer = async () => ({ outcome: "accepted" });
  await one.create({ customer_uuid, phone_number: numberOf(2) });
  expect(one.verifier.metrics()).toMatch(/phoneproof_outage\{part="sender"\} 0/);
});
