import { randomUUID } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createKeyring } from "../../src/core/keyring.js";
import { maskNumber } from "../../src/domain/phone-number.js";
import type { Store } from "../../src/ports/store.js";
import type { FixedClock } from "../../src/testing/fixed-clock.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";
import { type Dump, spellingsOf, spellingsOfId, traces } from "../support/dump.js";
import { errorCode, inbox, secret, setUp, start } from "../support/verifier.js";

/** A store, and a dump of its contents. */
export interface Dumped {
  readonly store: Store;
  dump(): Promise<Dump>;
  close?(): Promise<void>;
}

const number = "+33612098765";
const mask = createKeyring([secret]).pseudonym(number);

const turns = async () => {
  for (let i = 0; i < 60; i++) await setImmediate();
};

/** Waits until the store has settled: work that goes on after responses takes a few round trips at most. */
async function settled(): Promise<void> {
  await turns();
  await new Promise((done) => setTimeout(done, 50));
  await turns();
}

/** Traces of the number and of its authentications, except what the caps count, and the credit of the day. */
function leftOf(dump: Dump, ids: readonly string[]): string[] {
  const own = traces(dump, [...spellingsOf(number, maskNumber(number)), mask]).filter(
    (text) => !/:[ngv]:/.test(text) || !text.includes(mask) || traces([text.replaceAll(mask, "")], spellingsOf(number, maskNumber(number))).length > 0,
  );
  return [...own, ...traces(dump, ids.flatMap(spellingsOfId))];
}

/**
 * A service that does everything possible with a number: sends and retries, verifies, rejects by caps with and without
 * a key, stores message ids, delivers callbacks and gives them up.
 */
function serviceOn(store: Store, clock: FixedClock = fixedClock(start)) {
  const box = inbox();
  let messages = 0;
  const idSpace = randomUUID();
  box.answer = async () => ({ outcome: "accepted", messageId: `message-${++messages}`, idSpace });
  const set = setUp({
    store,
    clock,
    sender: box,
    policy: {
      limits: {
        perNumber: [
          { limit: 4, window: 600 },
          { limit: 10, window: 86_400 },
        ],
      },
    },
    statistics: {},
    callbacks: { worker: false, allowOrigins: ["http://127.0.0.1:1"], sender: { post: async () => ({ status: 410 }) } },
  });
  const of = { customer_uuid: set.customer, phone_number: number };
  const ids: string[] = [];
  const create = async (fields: Record<string, unknown> = {}, call?: { idempotencyKey: string }) => {
    const made = await set.create({ phone_number: number, ...fields }, call);
    ids.push(made.authentication_uuid);
    return made;
  };
  /** Everything that can happen to the number under this customer. */
  const live = async () => {
    const first = await create({ ip: "203.0.113.7", callback_url: "http://127.0.0.1:1/hook" });
    await settled();
    clock.advance(31_000);
    expect((await set.retry(first.authentication_uuid)).status).toBe("approved");
    await set.verifier.settleReceipts([{ messageId: "message-1", idSpace, status: "in_transit" }]);
    const second = await create({}, { idempotencyKey: "key" });
    for (let again = 0; again < 2; again++)
      expect(await set.check(second.authentication_uuid, box.code(), { idempotencyKey: "check" })).toMatchObject({ status: "valid", phone_number: number });
    await create();
    expect((await create()).status).toBe("rate_limited");
    expect((await create({}, { idempotencyKey: "refused" })).status).toBe("rate_limited");
    await set.verifier.flush();
    await settled();
  };
  return { ...set, box, of, ids, create, live };
}

/** What must hold on every store. */
export function privacyCases(name: string, open: () => Promise<Dumped>): void {
  describe(`history, erase and unlock on ${name}`, () => {
    let opened: Dumped;
    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened?.close?.());

    it("no record contains the whole number in clear text at any time", async () => {
      const service = serviceOn(opened.store);
      await service.live();
      expect(traces(await opened.dump(), spellingsOf(number, "no mask"))).toEqual([]);
      await service.verifier.erase(service.of);
    });

    it("history lists the newest first, rejected ones included, each with its explain data; it takes a limit and omits other customers", async () => {
      const service = serviceOn(opened.store);
      const other = serviceOn(opened.store);
      await other.create();
      await service.live();
      const history = await service.verifier.history(service.of);
      expect(new Set(history.map(({ authentication_uuid }) => authentication_uuid))).toEqual(new Set(service.ids));
      expect(history.map(({ created_at }) => created_at)).toEqual(
        history
          .map(({ created_at }) => created_at)
          .sort()
          .reverse(),
      );
      expect(history.filter(({ status }) => status === "rate_limited")).toHaveLength(2);
      expect(history.filter(({ validated }) => validated)).toHaveLength(1);
      for (const entry of history)
        expect(entry).toMatchObject(await service.verifier.explain({ ...service.of, authentication_uuid: entry.authentication_uuid }));
      expect(history.find(({ status }) => status === "rate_limited")?.decisions).toMatchObject([{ rule: "perNumber 4/600s", threshold: 4 }]);
      expect(await service.verifier.history({ ...service.of, limit: 2 })).toEqual(history.slice(0, 2));
      expect(await other.verifier.history(other.of)).toHaveLength(1);
      service.clock.advance(700_000);
      expect(
        (await service.verifier.history(service.of)).map(({ status }) => status),
        "refused ones end when they expire",
      ).toEqual(["pending", "pending", "pending"]);
      for (const one of [service, other]) await one.verifier.erase(one.of);
    });

    it("erase leaves no trace of the number or its authentications, and leaves another customer's data", async () => {
      const service = serviceOn(opened.store);
      const other = serviceOn(opened.store);
      await other.live();
      await service.live();
      expect(leftOf(await opened.dump(), service.ids).length, "the test can fail").toBeGreaterThan(10);
      expect((await service.verifier.deadLetters()).filter(({ customer_uuid }) => customer_uuid === service.customer)).not.toEqual([]);
      expect(await service.verifier.erase(service.of)).toMatchObject({ erased: 5 });
      expect(traces(await opened.dump(), service.ids.flatMap(spellingsOfId))).toEqual([]);
      expect(await service.verifier.history(service.of)).toEqual([]);
      expect((await service.verifier.deadLetters()).filter(({ customer_uuid }) => customer_uuid === service.customer)).toEqual([]);
      for (const authentication_uuid of service.ids) {
        expect(await errorCode(service.check(authentication_uuid, "123456"))).toBe("invalid_auth_uuid");
        expect(await errorCode(service.retry(authentication_uuid))).toBe("invalid_auth_uuid");
      }
      expect(await other.verifier.history(other.of)).toHaveLength(5);
      expect(await service.verifier.erase(service.of)).toMatchObject({ erased: 0 });
      await other.verifier.erase(other.of);
      await settled();
      expect(leftOf(await opened.dump(), [...service.ids, ...other.ids])).toEqual([]);
    });

    it("erase does not circumvent caps, and unlock lifts them once a day", async () => {
      const service = serviceOn(opened.store);
      for (let i = 0; i < 4; i++) expect((await service.create()).status).toBe("pending");
      for (let i = 0; i < 2; i++) {
        await service.verifier.erase(service.of);
        expect((await service.create()).status, `after erasure ${i + 1}`).toBe("rate_limited");
      }
      const lifted = await Promise.all(Array.from({ length: 8 }, () => service.verifier.unlock(service.of)));
      expect(lifted.filter(({ unlocked }) => unlocked)).toHaveLength(1);
      expect(new Set(lifted.map(({ next_unlock_at }) => next_unlock_at)).size).toBe(1);
      for (let i = 0; i < 4; i++) expect((await service.create()).status).toBe("pending");
      expect((await service.create()).status).toBe("rate_limited");
      await service.verifier.erase(service.of);
      expect(await service.verifier.unlock(service.of), "an erasure does not make it lift again").toMatchObject({
        unlocked: false,
        next_unlock_at: lifted[0]?.next_unlock_at,
      });
      expect((await service.create()).status).toBe("rate_limited");
      service.clock.advance(86_400_000 + 1);
      expect(await service.verifier.unlock(service.of)).toMatchObject({ unlocked: true });
      await service.verifier.erase(service.of);
    });

    it("erase does not make messages count again that have left the caps", async () => {
      const service = serviceOn(opened.store);
      for (let i = 0; i < 4; i++) expect((await service.create()).status).toBe("pending");
      service.clock.advance(86_400_000 + 600_000 + 1);
      await service.verifier.erase(service.of);
      for (let i = 0; i < 4; i++) expect((await service.create()).status).toBe("pending");
      expect((await service.create()).status).toBe("rate_limited");
    });

    it("stats are by hour, country, route and rule, from all processes, with no number, id or address in their names", async () => {
      const clock = fixedClock(start);
      const box = Object.assign(inbox(), { plan: () => ({ route: "alpha/β", price: 0.05 }) });
      const one = setUp({ store: opened.store, clock, sender: box, statistics: {}, policy: { limits: { perNumber: [{ limit: 2, window: 86_400 }] } } });
      const two = setUp({
        store: opened.store,
        clock,
        sender: Object.assign(inbox(), { plan: () => ({ route: "beta", price: 0.2 }) }),
        statistics: {},
        customers: [{ customer_uuid: one.customer, keys: ["k".repeat(40)] }],
      });
      const made = await one.create({ ip: "203.0.113.7" });
      expect((await one.check(made.authentication_uuid, box.code())).status).toBe("valid");
      await one.create();
      await one.create();
      clock.advance(3_600_000);
      await two.verifier.createAuthentication({ customer_uuid: one.customer, phone_number: "+447400123456" });
      await two.verifier.close().catch(() => undefined);
      const between = { customer_uuid: one.customer, from: new Date(start), to: new Date(start + 7_000_000) };
      const hours = [start, start + 3_600_000].map((at) => new Date(at).toISOString());
      const stats = await one.verifier.stats(between);
      expect(stats).toEqual({
        from: hours[0],
        to: new Date(start + 7_200_000).toISOString(),
        sends: 3,
        verified: 1,
        refused: 1,
        cost: 0.3,
        messages: [
          { hour: hours[0], country: "FR", route: "alpha/β", sends: 2, verified: 1, cost: 0.1 },
          { hour: hours[1], country: "GB", route: "beta", sends: 1, verified: 0, cost: 0.2 },
        ],
        refusals: [{ hour: hours[0], country: "FR", rule: "perNumber 2/86400s", refused: 1 }],
      });
      expect(await one.verifier.stats({ ...between, from: hours[1] as string })).toMatchObject({ sends: 1, refused: 0, messages: [{ route: "beta" }] });
      expect(await one.verifier.stats({ ...between, from: new Date(start - 86_400_000), to: new Date(start) })).toMatchObject({ sends: 0, messages: [] });
      const named = traces(await opened.dump(), [":t:"]);
      expect(named.length).toBeGreaterThan(0);
      expect(traces(named, [made.authentication_uuid, "203.0.113", "33612", "7400123"])).toEqual([]);
    });
  });
}
