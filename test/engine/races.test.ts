import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { SendOutcome, Store, StoredRecord } from "../../src/index.js";
import type { Change } from "../../src/ports/store.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";
import { roundTrip, TwoStepStore } from "../store/plain-store.js";
import { inbox, numberOf, setUp, start } from "../support/verifier.js";

const racers = 1000;
const tally = (statuses: readonly string[]) =>
  Object.fromEntries([...new Set(statuses)].sort().map((status) => [status, statuses.filter((one) => one === status).length]));

/** Lets other requests run between any two steps of a store, in varying order. */
function interleaved(store: Store): Store {
  let turn = 0;
  const pause = async () => {
    for (let steps = turn++ % 5; steps > 0; steps--) await new Promise((resolve) => setImmediate(resolve));
  };
  const slow =
    <A extends unknown[], R>(method: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      await pause();
      const result = await method(...args);
      await pause();
      return result;
    };
  return {
    find: slow(store.find.bind(store)),
    commit: slow(store.commit.bind(store)),
    members: slow(store.members.bind(store)),
    tally: slow(store.tally.bind(store)),
    lease: slow(store.lease.bind(store)),
    get: slow(store.get.bind(store)),
    put: slow(store.put.bind(store)),
    delete: slow(store.delete.bind(store)),
  };
}

describe("every rule holds under a thousand concurrent requests", () => {
  it("checks: 5 wrong codes per authentication, counted under any concurrency", async () => {
    const base = setUp();
    const set = setUp({ store: interleaved(base.store) });
    const { authentication_uuid } = await set.create();
    const statuses = (await Promise.all(Array.from({ length: racers }, () => set.check(authentication_uuid, set.wrong())))).map(({ status }) => status);
    expect(tally(statuses)).toEqual({ invalid: 5, rate_limited: racers - 5 });
  });

  it("checks: of any number with the right code, exactly one is `valid` (docs/contract.md#already-validated)", async () => {
    const base = setUp();
    const set = setUp({ store: interleaved(base.store) });
    const { authentication_uuid } = await set.create();
    const statuses = (await Promise.all(Array.from({ length: racers }, () => set.check(authentication_uuid, set.box.code())))).map(({ status }) => status);
    expect(tally(statuses)).toEqual({ already_validated: racers - 1, valid: 1 });
  });

  it("checks: right and wrong codes together, at most one `valid`, at most 5 `invalid`", async () => {
    const base = setUp();
    const set = setUp({ store: interleaved(base.store) });
    const { authentication_uuid } = await set.create();
    const statuses = (
      await Promise.all(Array.from({ length: racers }, (_, index) => set.check(authentication_uuid, index % 7 === 6 ? set.box.code() : set.wrong())))
    ).map(({ status }) => status);
    const counts = tally(statuses);
    expect(counts.invalid ?? 0).toBeLessThanOrEqual(5);
    expect(counts.valid ?? 0).toBeLessThanOrEqual(1);
  });

  it("checks: two processes on one store count together, although each remembers the record", async () => {
    const one = setUp();
    const two = setUp({ store: one.store, clock: one.clock, customers: [{ customer_uuid: one.customer, keys: [one.apiKey] }] });
    const { authentication_uuid } = await one.create();
    const request = { customer_uuid: one.customer, authentication_uuid };
    const statuses: string[] = [];
    for (let guess = 0; guess < 8; guess++) {
      const verifier = guess % 2 === 0 ? one.verifier : two.verifier;
      statuses.push((await verifier.check({ ...request, check_code: one.wrong() })).status);
    }
    expect(tally(statuses)).toEqual({ invalid: 5, rate_limited: 3 });
  });

  it("retries: one is `approved` and sends a message, the others are `denied`", async () => {
    const base = setUp();
    const set = setUp({ store: interleaved(base.store) });
    const { authentication_uuid } = await set.create();
    set.clock.advance(30_000);
    const statuses = (await Promise.all(Array.from({ length: racers }, () => set.retry(authentication_uuid)))).map(({ status }) => status);
    expect(tally(statuses)).toEqual({ approved: 1, denied: racers - 1 });
    expect(set.box.messages).toHaveLength(2);
    const later = [];
    for (let sent = 0; sent < 4; sent++) later.push((await set.create()).status);
    expect(later, "two of five are charged").toEqual(["pending", "pending", "pending", "rate_limited"]);
  });

  it("creates: never more than the cap", async () => {
    const base = setUp();
    const set = setUp({ store: interleaved(base.store) });
    const statuses = (await Promise.all(Array.from({ length: racers }, () => set.create()))).map(({ status }) => status);
    expect(tally(statuses)).toEqual({ pending: 5, rate_limited: racers - 5 });
    expect(set.box.messages).toHaveLength(5);
  });

  describe("the spend ceiling", () => {
    /** Two verifiers on one store, as in two processes; a message costs 1, and the ceiling is 50. */
    const twoUnder = (store: Store) => {
      const policy = { limits: { spend: [{ amount: 50, per: "hour" as const }] } };
      const plan = () => ({ route: "only", price: 1 });
      const [one, two] = [inbox(), inbox()];
      const first = setUp({ store, policy, sender: Object.assign(one, { plan }) });
      const customers = [{ customer_uuid: first.customer, keys: [first.apiKey] }];
      const second = setUp({ store, policy, sender: Object.assign(two, { plan }), customers, clock: first.clock });
      const race = async () => {
        const creates = Array.from({ length: racers }, (_, index) => {
          const { verifier } = index % 2 === 0 ? first : second;
          return verifier.createAuthentication({ customer_uuid: first.customer, phone_number: numberOf(index) });
        });
        return tally((await Promise.all(creates)).map(({ status }) => status));
      };
      return { race, sent: () => one.messages.length + two.messages.length };
    };

    it("is never exceeded, and can be used to the last message", async () => {
      const { race, sent } = twoUnder(interleaved(setUp().store));
      expect(await race()).toEqual({ pending: 50, rate_limited: racers - 50 });
      expect(sent()).toBe(50);
      expect(await race()).toEqual({ rate_limited: racers });
    });

    it("blocks by what is stored, not by what the process remembers", async () => {
      const plan = () => ({ route: "only", price: 1 });
      const policy = { limits: { spend: [{ amount: 2, per: "hour" as const }] } };
      let reject = (_: SendOutcome) => undefined as unknown;
      const one = setUp({ policy, sender: { plan, send: async () => ({ outcome: "accepted" }) } });
      const customers = [{ customer_uuid: one.customer, keys: [one.apiKey] }];
      const slow = { plan, send: () => new Promise<SendOutcome>((resolve) => (reject = resolve)) };
      const two = setUp({ store: one.store, clock: one.clock, policy, customers, sender: slow });
      const underWay = two.verifier.createAuthentication({ customer_uuid: one.customer, phone_number: numberOf(1) });
      await new Promise((resolve) => setImmediate(resolve));
      expect((await one.create({ phone_number: numberOf(2) })).status, "the second message: the sum is full").toBe("pending");
      reject({ outcome: "rejected" });
      await underWay;
      expect((await one.create({ phone_number: numberOf(3) })).status, "the other process has given one back").toBe("pending");
      expect((await one.create({ phone_number: numberOf(4) })).status).toBe("rate_limited");
    });

    it("is exceeded on a store that counts and writes in two steps: the test above can fail", async () => {
      const whole = interleaved(setUp().store);
      const racy: Store = {
        ...whole,
        async commit({ claims = [], ...change }) {
          const free = (list: typeof claims) => list.map(({ limit, ...claim }) => claim as (typeof claims)[number]);
          const asks = claims.flatMap((claim) => ("sum" in claim ? [claim] : []));
          const asked = await whole.commit({ asks });
          const full = claims.find(
            (claim) =>
              "sum" in claim &&
              (asked.done ? (asked.asked[asks.findIndex(({ sum }) => sum === claim.sum)] ?? 0) : 0) + claim.weight > (claim.limit ?? Number.POSITIVE_INFINITY),
          );
          if (full !== undefined) return { done: false, refusedBy: claims.indexOf(full), count: 0 };
          return whole.commit({ ...change, claims: free(claims) });
        },
      };
      const { race, sent } = twoUnder(racy);
      await race();
      expect(sent()).toBeGreaterThan(50);
    });
  });

  it("a check concurrent with a retry still accepts the earlier code", async () => {
    const base = setUp();
    for (let round = 0; round < 50; round++) {
      const set = setUp({ store: interleaved(base.store), policy: { limits: { perNumber: [{ limit: 10, window: 86_400 }] } } });
      const { authentication_uuid } = await set.create();
      const first = set.box.code();
      set.clock.advance(30_000);
      const [checked, retried] = await Promise.all([set.check(authentication_uuid, first), set.retry(authentication_uuid)]);
      expect(checked.status).toBe("valid");
      expect(["approved", "already_validated"]).toContain(retried.status);
    }
  });

  it("after 32 lost races the response is 503", async () => {
    const set = setUp();
    const { authentication_uuid } = await set.create();
    const record = (await set.store.find(set.customer, authentication_uuid)) as StoredRecord;
    let lost = 0;
    set.store.commit = async () => ({ done: false, current: { ...record, tokens: [`other ${++lost}`] } });
    await expect(set.check(authentication_uuid, set.wrong())).rejects.toMatchObject({ code: "unavailable" });
    expect(lost).toBe(32);
  });
});

describe("stores that make claims before they write the record", () => {
  const customer_uuid = randomUUID();
  const customers = [{ customer_uuid, keys: [`pp_${randomUUID()}${randomUUID()}`] }];

  /** A process of its own on a store. `late`: its milliseconds ahead of others. */
  function processOn(store: Store, late = 0) {
    const background: Promise<unknown>[] = [];
    const callbacks = { worker: false, waitUntil: (work: Promise<unknown>) => void background.push(work) };
    return { ...setUp({ store, customers, callbacks, clock: fixedClock(start + late) }), idle: () => Promise.all(background) };
  }

  const countedIn = (store: TwoStepStore) => [...store.windows].filter(([name]) => name.includes(":n:")).flatMap(([, members]) => [...members.keys()]);

  it("retries that lose to a check are not counted, however many race (docs/contract.md#two-steps)", async () => {
    const store = new TwoStepStore();
    const processes = [0, 1, 2, 3].map((late) => processOn(store, late));
    const [{ verifier, box }] = processes as [ReturnType<typeof processOn>];
    for (let round = 0; round < 20; round++) {
      const { authentication_uuid } = await verifier.createAuthentication({ customer_uuid, phone_number: numberOf(round) });
      const named = { customer_uuid, authentication_uuid };
      const check_code = box.code();
      for (const { clock } of processes) clock.advance(31_000);
      const retries = processes.map((one) => one.verifier.retry(named));
      // The later the check, the more often a retry wins.
      for (let turn = round % 8; turn > 0; turn--) await roundTrip();
      await Promise.all([verifier.check({ ...named, check_code }), ...retries]);
    }
    await Promise.all(processes.map((one) => one.idle()));
    expect(countedIn(store)).toHaveLength(processes.flatMap((one) => one.box.messages).length);
  });

  /** Waits between the claims and the record of the first commit, until `goOn`; `isCut`: then its connection breaks. */
  function stopping(store: TwoStepStore, isCut = false) {
    let goOn = () => {};
    let gate: Promise<void> | undefined = new Promise<void>((resolve) => (goOn = resolve));
    const stopped: Store = Object.assign(Object.create(store) as TwoStepStore, {
      async commit(change: Change) {
        if (gate !== undefined) {
          store.make(change.claims ?? [], change.record?.tokens[0]);
          await gate;
          gate = undefined;
          if (isCut) throw new Error("connection reset");
        }
        return store.commit(change);
      },
    });
    return { store: stopped, goOn: () => goOn() };
  }

  /** A verification whose cool-down is over. */
  async function begun() {
    const store = new TwoStepStore();
    const { verifier, box, clock } = processOn(store);
    const { authentication_uuid } = await verifier.createAuthentication({ customer_uuid, phone_number: numberOf(1) });
    clock.advance(31_000);
    return { store, verifier, box, named: { customer_uuid, authentication_uuid } };
  }

  it("a retry that loses to one whose message was sent leaves that one counted (docs/contract.md#two-steps)", async () => {
    const { store, verifier, box, named } = await begun();
    const stopped = stopping(store);
    const slow = processOn(stopped.store, 31_001);
    const losing = slow.verifier.retry(named);
    await expect.poll(() => countedIn(store)).toHaveLength(2);
    await verifier.retry(named);
    await verifier.check({ ...named, check_code: box.code() });
    stopped.goOn();
    expect((await losing).status).toBe("already_validated");
    await slow.idle();
    expect(slow.box.messages).toEqual([]);
    expect(countedIn(store)).toHaveLength(box.messages.length);
  });

  it("retries that lose to a check are not counted if the response of one is lost too (docs/contract.md#take-back)", async () => {
    const { store, verifier, box, named } = await begun();
    const [cut, stopped] = [stopping(store, true), stopping(store)];
    const [first, second] = [processOn(cut.store, 31_002), processOn(stopped.store, 31_001)];
    const losing = first.verifier.retry(named);
    await expect.poll(() => countedIn(store)).toHaveLength(2);
    const other = second.verifier.retry(named);
    await expect.poll(() => store.tickets.size).toBe(3);
    await verifier.check({ ...named, check_code: box.code() });
    for (const { goOn } of [stopped, cut]) goOn();
    await expect(losing).rejects.toMatchObject({ code: "unavailable" });
    expect((await other).status).toBe("already_validated");
    await Promise.all([first.idle(), second.idle()]);
    expect(countedIn(store)).toHaveLength(box.messages.length);
  });
});
