import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { createKeyring } from "../../src/core/keyring.js";
import { maskNumber } from "../../src/domain/phone-number.js";
import type { Store, VerifierOptions } from "../../src/index.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";
import { rigged } from "../hostile/kit.js";
import { processOn } from "../hostile/store-users-kit.js";
import { PlainStore } from "../store/plain-store.js";
import { type Dump, dumpOfMemory, spellingsOf, spellingsOfId, traces } from "../support/dump.js";
import { errorCode, inbox, secret, setUp, start } from "../support/verifier.js";

const number = "+33612098765";
const mask = createKeyring([secret]).pseudonym(number);

const turns = async (count = 40) => {
  for (let i = 0; i < count; i++) await new Promise((done) => setImmediate(done));
};

/** The contents of a plain store. */
function dumpOfPlain({ records, windows, sums, counters, values }: PlainStore): Dump {
  const all = [...windows].filter(([, members]) => members.size > 0).map(([name, members]) => `${name} ${[...members.keys()]}`);
  return [
    ...all,
    ...[...records].map(([key, record]) => `${key} ${JSON.stringify(record)}`),
    ...sums.keys(),
    ...counters.keys(),
    ...[...values].map((one) => one.join(" ")),
  ];
}

/** What links to the number or one of its authentications, except the times that its caps count. */
function leftOf(dump: Dump, ids: readonly string[]): string[] {
  return [
    ...traces(dump, spellingsOf(number, maskNumber(number))),
    ...traces(dump, [mask]).filter((text) => ![":n:", ":u:", ":g:", ":v:"].some((kind) => text.includes(kind + mask))),
    ...traces(dump, ids.flatMap(spellingsOfId)),
  ];
}

/** A store whose calls each take a few turns of the event loop, so that they interleave. */
function interleaved(store: Store): Store {
  const pause = () => turns(Math.floor(Math.random() * 4));
  const methods = ["find", "commit", "members", "tally", "lease", "get", "put", "delete"] as const;
  const slow =
    (name: (typeof methods)[number]) =>
    async (...args: unknown[]) => {
      await pause();
      const answer = await (store[name] as (...given: unknown[]) => Promise<unknown>).apply(store, args);
      await pause();
      return answer;
    };
  return Object.fromEntries(methods.map((name) => [name, slow(name)])) as unknown as Store;
}

function serviceOn(store: Store, options: Partial<VerifierOptions> = {}) {
  const box = inbox();
  let messages = 0;
  box.answer = async () => ({ outcome: "accepted", messageId: `message-${++messages}`, idSpace: "carrier" });
  const set = setUp({
    store,
    sender: box,
    callbacks: { worker: false, allowOrigins: ["http://127.0.0.1:1"], sender: { post: async () => ({ status: 410 }) } },
    ...options,
  });
  const of = { customer_uuid: set.customer, phone_number: number };
  return { ...set, box, of };
}

describe("an erasure during other work", () => {
  it("racing a retry, a check, a receipt and a callback: nothing is left of the number once all have ended", async () => {
    for (let round = 0; round < 60; round++) {
      const store = new PlainStore();
      const service = serviceOn(interleaved(store), { policy: { retryCooldowns: [0, 0, 0, 0] } });
      const { authentication_uuid: id } = await service.create({ phone_number: number, callback_url: "http://127.0.0.1:1/hook" });
      await turns(20);
      const code = service.box.code();
      const { of, verifier } = service;
      const racers = [
        () => verifier.erase(of),
        () => service.check(id, code),
        () => service.retry(id),
        () => verifier.settleReceipts([{ messageId: "message-1", idSpace: "carrier", status: "in_transit" }]),
        () => verifier.flush(),
      ];
      const outcomes = await Promise.allSettled(
        racers.map(async (race) => {
          await turns(Math.floor(Math.random() * 6));
          return race();
        }),
      );
      await turns();
      expect(outcomes[0]).toMatchObject({ status: "fulfilled", value: { erased: 1 } });
      for (const outcome of outcomes.slice(1)) if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ code: "invalid_auth_uuid" });
      expect(leftOf(dumpOfPlain(store), [id]), `round ${round}`).toEqual([]);
    }
  });

  it("during a send: its outcome causes no callback, and no trace of it is stored", async () => {
    const store = new PlainStore();
    const posts: string[] = [];
    const service = serviceOn(store, {
      callbacks: { allowOrigins: ["http://127.0.0.1:1"], sender: { post: async ({ body }) => ({ status: posts.push(body) > 0 ? 200 : 500 }) } },
    });
    let answer: (outcome: { outcome: "accepted"; messageId: string; idSpace: string }) => void = () => {};
    service.box.answer = () => new Promise((resolve) => (answer = resolve));
    const creating = service.create({ phone_number: number, callback_url: "http://127.0.0.1:1/hook" });
    await turns(5);
    expect(await service.verifier.erase(service.of)).toMatchObject({ erased: 1 });
    answer({ outcome: "accepted", messageId: "late", idSpace: "carrier" });
    const { authentication_uuid } = await creating;
    await turns();
    expect(posts).toEqual([]);
    expect(leftOf(dumpOfPlain(store), [authentication_uuid])).toEqual([]);
    await service.verifier.close();
  });

  it("another process that has the authentication in memory finds it gone", async () => {
    const store = new PlainStore();
    const one = serviceOn(store);
    const two = serviceOn(store, { clock: one.clock, customers: [{ customer_uuid: one.customer, keys: ["k".repeat(40)] }] });
    const { authentication_uuid } = await one.create({ phone_number: number });
    await two.verifier.erase(one.of);
    for (const call of [() => one.check(authentication_uuid, one.box.code()), () => one.retry(authentication_uuid)])
      expect(await errorCode(call())).toBe("invalid_auth_uuid");
  });

  it("two parallel erasures among creates: one more erasure leaves nothing, and the caps still count", async () => {
    const store = new PlainStore();
    const service = serviceOn(interleaved(store));
    const made = await Promise.all([
      ...Array.from({ length: 5 }, () => service.create({ phone_number: number })),
      service.verifier.erase(service.of),
      service.verifier.erase(service.of),
    ]);
    await turns();
    await service.verifier.erase(service.of);
    await turns();
    const ids = made.flatMap((one) => ("authentication_uuid" in one ? [one.authentication_uuid] : []));
    expect(leftOf(dumpOfPlain(store), ids)).toEqual([]);
    expect((await service.create({ phone_number: number })).status, "five in ten minutes stay five").toBe("rate_limited");
  });

  it("two parallel erasures with different clocks: each message counts once", async () => {
    for (let round = 0; round < 30; round++) {
      const store = interleaved(new PlainStore());
      const policy = { limits: { perNumber: [{ limit: 5, window: 86_400 }] } };
      const one = serviceOn(store, { policy });
      const two = serviceOn(store, { policy, clock: fixedClock(start + 2), customers: [{ customer_uuid: one.customer, keys: ["k".repeat(40)] }] });
      for (let i = 0; i < 4; i++) await one.create({ phone_number: number });
      await Promise.all([one, two].map(({ verifier }) => verifier.erase(one.of)));
      await turns();
      expect((await one.create({ phone_number: number })).status, `round ${round}: four of five`).toBe("pending");
      expect((await one.create({ phone_number: number })).status, "five of five").toBe("rate_limited");
    }
  });
});

describe("an erasure on a store that fails", () => {
  it.each(["refused", "lost"] as const)("at every step, with a call that is %s: 503, and the next erasure completes it", async (fate) => {
    for (let step = 1, failed = true; failed; step++) {
      const plain = new PlainStore();
      const store = rigged(plain);
      const service = serviceOn(store);
      const { authentication_uuid: id } = await service.create({ phone_number: number, callback_url: "http://127.0.0.1:1/hook" });
      const other = await service.create({ phone_number: number }, { idempotencyKey: "key" });
      await service.check(other.authentication_uuid, service.box.code());
      await turns();
      await service.verifier.flush();
      await turns();
      let calls = 0;
      store.fate = () => (++calls === step ? fate : "done");
      failed = (await errorCode(service.verifier.erase(service.of))) === "unavailable";
      expect(failed, `step ${step}`).toBe(calls >= step);
      store.fate = () => "done";
      await service.verifier.erase(service.of);
      expect(leftOf(dumpOfPlain(plain), [id, other.authentication_uuid]), `step ${step}`).toEqual([]);
      expect(traces(dumpOfPlain(plain), ["message-"]), "the carrier's ids").toEqual([]);
      expect(step).toBeLessThan(40);
    }
  });

  it.each(["refused", "lost"] as const)("unlock: at every step, with a call that is %s: 503, and the next call lifts the caps, once", async (fate) => {
    for (let step = 1, failed = true; failed; step++) {
      const store = rigged(new PlainStore());
      const service = serviceOn(store, { policy: { limits: { perNumber: [{ limit: 1, window: 86_400 }] } } });
      await service.create({ phone_number: number });
      await turns();
      let calls = 0;
      store.fate = () => (++calls === step ? fate : "done");
      failed = (await errorCode(service.verifier.unlock(service.of))) === "unavailable";
      store.fate = () => "done";
      await turns();
      expect(await service.verifier.unlock(service.of), `step ${step}`).toMatchObject({ unlocked: failed });
      expect(await service.verifier.unlock(service.of)).toMatchObject({ unlocked: false });
      expect((await service.create({ phone_number: number })).status).toBe("pending");
      expect((await service.create({ phone_number: number })).status).toBe("rate_limited");
      expect(await service.verifier.history(service.of)).toHaveLength(3);
    }
  });

  it("unlock: caps that are sums are lifted together with the others, or not at all", async () => {
    const store = rigged(new PlainStore());
    const service = serviceOn(store, { policy: { maxGuessOdds: 1, limits: { perNumber: [{ limit: 101, window: 86_400 }] } } });
    for (let i = 0; i < 101; i++) expect((await service.create({ phone_number: number })).status).toBe("pending");
    store.fate = (method) => (method === "delete" ? "refused" : "done");
    expect(await errorCode(service.verifier.unlock(service.of))).toBe("unavailable");
    expect((await service.create({ phone_number: number })).status).toBe("rate_limited");
    store.fate = () => "done";
    await turns();
    expect(await service.verifier.unlock(service.of)).toMatchObject({ unlocked: true });
    expect((await service.create({ phone_number: number })).status).toBe("pending");
  });
});

describe("large, unusual and invalid input", () => {
  it("thousands of authentications of one number: history returns the newest, erase deletes all", async () => {
    const store = memoryStore({ name: randomUUID() });
    const limits = { perNumber: [{ limit: 5_000, window: 86_400 }], perCustomer: [] };
    const service = serviceOn(store, { policy: { maxGuessOdds: 1, limits } });
    const ids: string[] = [];
    for (let i = 0; i < 3_000; i++) {
      ids.push((await service.create({ phone_number: number })).authentication_uuid);
      service.clock.advance(1);
    }
    await turns();
    const history = await service.verifier.history({ ...service.of, limit: 1_000 });
    expect(history.map(({ authentication_uuid }) => authentication_uuid)).toEqual(ids.slice(-1_000).reverse());
    expect(await service.verifier.erase(service.of)).toMatchObject({ erased: 3_000 });
    expect(await service.verifier.history(service.of)).toEqual([]);
    expect(traces(dumpOfMemory(store), [spellingsOf(number, "-")[0] as string, ...ids])).toEqual([]);
  });

  it("records that outlive the caps are found for as long as they are stored", async () => {
    const day = 86_400_000;
    const store = new PlainStore();
    const service = serviceOn(store, { policy: { tombstone: 30 * 86_400 } });
    const ids: string[] = [];
    for (let i = 0; i < 29; i++) {
      for (let j = 0; j < 2; j++) ids.push((await service.create({ phone_number: number })).authentication_uuid);
      service.clock.advance(day);
    }
    await turns();
    expect(await service.verifier.history({ ...service.of, limit: 1_000 })).toHaveLength(58);
    expect(await service.verifier.erase(service.of)).toMatchObject({ erased: 58 });
    expect(leftOf(dumpOfPlain(store), ids)).toEqual([]);
  });

  it.each([
    ["410", 6],
    ["500", 9],
  ])("records that outlive the caps because of a callback that was answered %s are found after %i days, and erased with it", async (status, days) => {
    const clock = fixedClock(start);
    const store = memoryStore({ name: randomUUID(), now: () => clock.now() });
    const post = async () => ({ status: Number(status) });
    const service = serviceOn(store, { clock, callbacks: { worker: false, allowOrigins: ["http://127.0.0.1:1"], sender: { post } } });
    const { authentication_uuid } = await service.create({ phone_number: number, callback_url: "http://127.0.0.1:1/hook" });
    for (let hour = 0; hour < days * 24; hour++) {
      await service.verifier.flush();
      clock.advance(3_600_000);
    }
    // The store deletes what has ended when it is written to.
    for (let i = 0; i < 50; i++) await store.put(`other ${i}`, "", { now: clock.now(), keepUntil: clock.now() + 1 });
    expect(await service.verifier.deadLetters()).toHaveLength(1);
    expect(await service.verifier.history(service.of)).toMatchObject([{ authentication_uuid }]);
    expect(await service.verifier.erase(service.of)).toMatchObject({ erased: 1 });
    expect(await service.verifier.deadLetters()).toEqual([]);
    expect(leftOf(dumpOfMemory(store), [authentication_uuid])).toEqual([]);
  });

  it("retention is set per customer by `tombstone`", async () => {
    const [short, long] = [randomUUID(), randomUUID()];
    const customers = [
      { customer_uuid: short, keys: ["s".repeat(40)], policy: { tombstone: 60 } },
      { customer_uuid: long, keys: ["l".repeat(40)], policy: { tombstone: 7 * 86_400 } },
    ];
    const service = serviceOn(new PlainStore(), { customers });
    for (const customer_uuid of [short, long]) await service.verifier.createAuthentication({ customer_uuid, phone_number: number });
    service.clock.advance(661_000);
    expect(await service.verifier.history({ ...service.of, customer_uuid: short })).toEqual([]);
    expect(await service.verifier.history({ ...service.of, customer_uuid: long })).toHaveLength(1);
    service.clock.advance(6 * 86_400_000);
    expect(await service.verifier.history({ ...service.of, customer_uuid: long })).toHaveLength(1);
  });

  it("a record holds the number until it is verified, and a retry in a process with both secrets can send to it", async () => {
    const store = new PlainStore();
    const clock = fixedClock(start);
    const one = serviceOn(store, { clock, secret: [secret, "another secret, long enough to be one as well"], pepper: "p".repeat(32) });
    const { authentication_uuid } = await one.create({ phone_number: number });
    clock.advance(31_000);
    const two = serviceOn(store, {
      clock,
      secret: ["another secret, long enough to be one as well", secret],
      pepper: "p".repeat(32),
      customers: [{ customer_uuid: one.customer, keys: ["k".repeat(40)] }],
    });
    expect((await two.verifier.retry({ customer_uuid: one.customer, authentication_uuid })).status).toBe("approved");
    expect(two.box.messages[0]?.to).toBe(number);
    const three = serviceOn(store, {
      clock,
      secret: "a third secret, which knows nothing of either",
      pepper: "p".repeat(32),
      customers: [{ customer_uuid: one.customer, keys: ["k".repeat(40)] }],
    });
    clock.advance(61_000);
    expect(await errorCode(three.verifier.retry({ customer_uuid: one.customer, authentication_uuid }))).toBe("unavailable");
    expect(three.box.messages).toEqual([]);
    await two.verifier.check({ customer_uuid: one.customer, authentication_uuid, check_code: two.box.code() });
    await turns();
    expect([...store.records.values()].map(({ data }) => JSON.parse(data).p)).toEqual([maskNumber(number)]);
  });

  it("wrong types and values are errors, and change nothing", async () => {
    const service = serviceOn(new PlainStore());
    await service.create({ phone_number: number });
    const { verifier, of } = service;
    const any = (value: unknown) => value as never;
    for (const operation of [verifier.history, verifier.erase, verifier.unlock]) {
      for (const input of [
        undefined,
        null,
        7,
        "text",
        [],
        {},
        { ...of, phone_number: 7 },
        { ...of, phone_number: { $ne: null } },
        { phone_number: number },
        { ...of, customer_uuid: "no uuid" },
      ])
        expect(await errorCode(operation(any(input))), JSON.stringify(input)).toBe("bad_request");
      for (const phone_number of ["", "12", "33612098765", "+33 6 12 09 87 65", "+3361209876512345", "*"])
        expect(await errorCode(operation({ ...of, phone_number })), phone_number).toBe("invalid_phone_number");
      expect(await errorCode(operation({ ...of, customer_uuid: randomUUID() }))).toBe("account_invalid");
    }
    for (const limit of [0, -1, 1.5, 1_001, "5", null, Number.NaN])
      expect(await errorCode(verifier.history({ ...of, limit: any(limit) })), String(limit)).toBe("bad_request");
    const counting = setUp({ statistics: {} });
    const stats = (from: unknown, to: unknown) => errorCode(counting.verifier.stats({ customer_uuid: counting.customer, from: any(from), to: any(to) }));
    const now = new Date(start);
    for (const [from, to] of [
      [1, 2],
      ["yesterday", now],
      [now, now],
      [now, new Date(start - 1)],
      [new Date(Number.NaN), now],
      [undefined, now],
      [new Date(0), now],
    ])
      expect(await stats(from, to), String(from)).toBe("bad_request");
    expect(await errorCode(verifier.stats({ customer_uuid: service.customer, from: new Date(start), to: new Date(start + 1) })), "off").toBe("bad_request");
    expect(await verifier.history(of)).toHaveLength(1);
  });
});

describe("what caps count", () => {
  it("is gone by `counts_until`: then nothing at all is left of the number", async () => {
    const clock = fixedClock(start);
    const store = memoryStore({ name: randomUUID(), now: () => clock.now() });
    const service = serviceOn(store, { clock });
    const { authentication_uuid } = await service.create({ phone_number: number, device_id: "device", ip: "203.0.113.7" });
    await service.verifier.unlock(service.of);
    await service.create({ phone_number: number });
    await turns();
    const { counts_until } = await service.verifier.erase(service.of);
    expect(await store.find(service.customer, authentication_uuid)).toBe(undefined);
    expect(traces(dumpOfMemory(store), [mask]).length, "the test can fail").toBeGreaterThan(0);
    clock.advance(Date.parse(counts_until) - clock.now() + 15_000);
    for (let i = 0; i < 50; i++) await store.put(`other ${i}`, "", { now: clock.now(), keepUntil: clock.now() + 1 });
    expect(traces(dumpOfMemory(store), [mask, authentication_uuid])).toEqual([]);
  });
});

describe("during a rotation without a pepper", () => {
  it.each([
    ["a", "b"],
    ["b", "a"],
  ])("from %s to %s, refusals and unlock find what is stored under either secret", async (old, next) => {
    const store = memoryStore();
    const clock = fixedClock(start);
    const at = (letter: string, other?: string) => {
      const one = letter.repeat(40);
      return processOn(store, { clock, secret: other === undefined ? one : [one, other.repeat(40)] }).verifier;
    };
    await expect(
      processOn(store, { clock, secret: old.repeat(40), countries: ["DE"] }).verifier.createAuthentication({ phone_number: number }),
    ).rejects.toThrow();
    const sends = async () => {
      for (let i = 0; i < 5; i++) await at(old).createAuthentication({ phone_number: number });
      return (await at(old).createAuthentication({ phone_number: number })).status;
    };
    expect(await sends()).toBe("rate_limited");
    for (const both of [at(old, next), at(next, old)]) expect(await both.refusals({ phone_number: number })).toMatchObject([{ count: 1 }]);
    const { next_unlock_at, unlocked } = await at(next, old).unlock({ phone_number: number });
    expect(unlocked).toBe(true);
    expect(await sends()).toBe("rate_limited");
    for (const one of [at(old), at(old, next), at(next, old), at(next)])
      expect(await one.unlock({ phone_number: number })).toEqual({ unlocked: false, next_unlock_at });
  });
});
