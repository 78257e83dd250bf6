import { describe, expect, it } from "vitest";
import type { Store, StoredRecord } from "../../src/index.js";
import { faultOf, inbox, numberOf, setUp } from "../support/verifier.js";

const methods = ["find", "compareAndSwap", "reserve"] as const;
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Makes one method fail, once it has run or instead. */
function fail(store: Store, method: (typeof methods)[number], how: "rejects" | "hangs" | "loses the reply"): () => void {
  const whole = store[method] as (...args: unknown[]) => Promise<unknown>;
  const broken = {
    rejects: async () => Promise.reject(new Error("store down")),
    hangs: () => new Promise(() => undefined),
    "loses the reply": async (...args: unknown[]) => {
      await whole.apply(store, args);
      throw new Error("reply lost");
    },
  }[how];
  Object.assign(store, { [method]: broken });
  return () => Object.assign(store, { [method]: whole });
}

describe("fails closed on guesses and sends, within a deadline, with a clear error", () => {
  for (const how of ["rejects", "loses the reply"] as const) {
    for (const method of ["compareAndSwap", "reserve"] as const) {
      it(`create: ${method} ${how} → 503, nothing sent`, async () => {
        const set = setUp();
        fail(set.store, method, how);
        expect(await faultOf(set.create())).toBe("unavailable");
        expect(await faultOf(set.create({}, { idempotencyKey: "k" }))).toBe("unavailable");
        expect(set.box.messages).toHaveLength(0);
      });

      it(`retry: ${method} ${how} → 503, nothing sent, and nothing lost when it is back`, async () => {
        const set = setUp();
        const { authentication_uuid } = await set.create();
        set.clock.advance(30_000);
        const mend = fail(set.store, method, how);
        expect(await faultOf(set.retry(authentication_uuid))).toBe("unavailable");
        expect(set.box.messages).toHaveLength(1);
        mend();
        if (method === "reserve") expect(await set.retry(authentication_uuid)).toMatchObject({ status: "approved", remaining_retry: 3 });
        expect((await set.check(authentication_uuid, set.box.code(0))).status).toBe("valid");
      });
    }

    it(`check: compareAndSwap ${how} → 503, never a verdict that is not stored`, async () => {
      const set = setUp();
      const { authentication_uuid } = await set.create();
      const mend = fail(set.store, "compareAndSwap", how);
      expect(await faultOf(set.check(authentication_uuid, set.box.code(), { idempotencyKey: "k" }))).toBe("unavailable");
      mend();
      expect((await set.check(authentication_uuid, set.box.code(), { idempotencyKey: "k" })).status, "the key tells the verdict").toBe("valid");
    });

    it(`check: a store whose swap ${how} is no way to guess more often`, async () => {
      const set = setUp();
      const { authentication_uuid } = await set.create();
      const verdicts: string[] = [];
      for (let guess = 0; guess < 10; guess++) {
        const mend = guess % 2 === 0 ? fail(set.store, "compareAndSwap", how) : () => undefined;
        verdicts.push(
          await set.check(authentication_uuid, set.wrong()).then(
            ({ status }) => status,
            ({ code }) => code,
          ),
        );
        mend();
      }
      expect(verdicts.filter((verdict) => verdict === "invalid").length).toBeLessThanOrEqual(5);
      expect((await set.check(authentication_uuid, set.wrong())).status).toBe(how === "rejects" ? "rate_limited" : "rate_limited");
    });
  }

  it("an ended record that the store clears away just as its key is used again is no fault", async () => {
    const set = setUp({ policy: { limits: { perNumber: [{ limit: 1, window: 86_400 }] } } });
    await set.create();
    const refused = await set.create({}, { idempotencyKey: "k" });
    expect(refused.status).toBe("rate_limited");
    set.clock.advance(3 * 86_400_000);
    const swap = set.store.compareAndSwap.bind(set.store);
    let cleared = 0;
    set.store.compareAndSwap = async (next, expected) => {
      const result = await swap(next, expected);
      if (!result.swapped && cleared++ === 0) {
        // What others write meanwhile tells the store the time, and has it clear away what has ended.
        const now = set.clock.now();
        await set.store.reserve([{ window: "x:x", member: "x", limit: 1, since: 0, now, keepUntil: now + 1000 }]);
        await swap({ customer: "x", id: "x", tokens: ["x"], data: "", keepUntil: now + 1000 }, null);
      }
      return result;
    };
    expect((await set.create({}, { idempotencyKey: "k" })).status).toBe("pending");
    expect(cleared).toBe(2);
  });

  it("One deadline (2 s) covers all store calls of a request; past it the request fails closed with 503", async () => {
    for (const [method, call] of [
      ["compareAndSwap", (set: ReturnType<typeof setUp>) => set.create()],
      ["reserve", (set: ReturnType<typeof setUp>) => set.create()],
      ["find", (set: ReturnType<typeof setUp>) => set.retry("11111111-2222-3333-4444-555555555555")],
      ["find", (set: ReturnType<typeof setUp>) => set.check("11111111-2222-3333-4444-555555555555", "1")],
    ] as const) {
      const set = setUp();
      fail(set.store, method, "hangs");
      let done = false;
      const asked = faultOf(call(set)).finally(() => (done = true));
      await turn();
      set.clock.advance(1999);
      await turn();
      expect(done).toBe(false);
      set.clock.advance(1);
      expect(await asked).toBe("unavailable");
      expect(set.box.messages).toHaveLength(0);
    }
  });

  describe("the spend ceiling", () => {
    /** A message costs 1. */
    const setUpSpend = (swap: (whole: Store["compareAndSwap"]) => Store["compareAndSwap"] = (whole) => whole, { amount = 1 } = {}) => {
      const box = Object.assign(inbox(), { plan: () => ({ route: "only", price: 1 }) });
      const set = setUp({ sender: box, policy: { limits: { spend: [{ amount, per: "hour" }] } } });
      set.store.compareAndSwap = swap(set.store.compareAndSwap.bind(set.store));
      return { ...set, box, create: (index: number, idempotencyKey?: string) => set.create({ phone_number: numberOf(index) }, { idempotencyKey } as never) };
    };
    /** Whether a write is one to the ledger, which lies under a customer of its own. */
    const toLedger = (set: { customer: string }, { customer }: StoredRecord) => customer !== set.customer;

    for (const how of ["rejects", "loses the reply"] as const) {
      it(`the ledger's swap ${how} → 503, nothing sent, with a key too`, async () => {
        let broken = true;
        const set = setUpSpend((whole) => async (next, expected) => {
          if (!broken || !toLedger(set, next)) return whole(next, expected);
          if (how === "loses the reply") await whole(next, expected);
          throw new Error("store down");
        });
        expect(await faultOf(set.create(1))).toBe("unavailable");
        expect(await faultOf(set.create(2, "k"))).toBe(how === "rejects" ? "unavailable" : "no fault");
        expect(set.box.messages).toHaveLength(0);
        broken = false;
        // What may have been held stays so: the ceiling errs on the side of less.
        expect((await set.create(3)).status).toBe(how === "rejects" ? "pending" : "rate_limited");
      });
    }

    for (const method of ["reserve", "compareAndSwap"] as const) {
      for (const key of [undefined, "k"]) {
        const then = key === undefined ? "what was held is given back" : "a repeat under the key is not charged again";
        it(`create${key === undefined ? "" : " with a key"}: the ledger holds, then ${method} fails → 503, nothing sent, and ${then}`, async () => {
          let broken = true;
          const set = setUpSpend((whole) => async (next, expected) => {
            if (broken && method === "compareAndSwap" && !toLedger(set, next) && (key === undefined || expected !== null)) throw new Error("store down");
            return whole(next, expected);
          });
          const mend = method === "reserve" ? fail(set.store, method, "rejects") : () => undefined;
          expect(await faultOf(set.create(1, key))).toBe("unavailable");
          expect(set.box.messages).toHaveLength(0);
          broken = false;
          mend();
          expect([(await set.create(1, key)).status, (await set.create(3)).status]).toEqual(["pending", "rate_limited"]);
          expect(set.box.messages).toHaveLength(1);
        });
      }
    }

    it("a retry that loses its race to a right check gives back what it held", async () => {
      const box = Object.assign(inbox(), { plan: () => ({ route: "only", price: 1 }) });
      const set = setUp({ sender: box, policy: { limits: { spend: [{ amount: 2, per: "hour" }] } } });
      const { authentication_uuid } = await set.create();
      set.clock.advance(30_000);
      const swap = set.store.compareAndSwap.bind(set.store);
      let raced = false;
      set.store.compareAndSwap = async (next, expected) => {
        if (!raced && next.customer === set.customer) {
          raced = true;
          expect((await set.check(authentication_uuid, box.code())).status).toBe("valid");
        }
        return swap(next, expected);
      };
      expect((await set.retry(authentication_uuid)).status).toBe("already_validated");
      expect((await set.create({ phone_number: numberOf(2) })).status).toBe("pending");
      expect((await set.create({ phone_number: numberOf(3) })).status).toBe("rate_limited");
    });

    it("a ledger that hangs holds up nobody for longer than the deadline; what was given up before its turn is not charged", async () => {
      const held: (() => void)[] = [];
      let hang = true;
      const set = setUpSpend(
        (whole) => async (next, expected) => {
          if (hang && toLedger(set, next)) await new Promise<void>((resolve) => held.push(resolve));
          return whole(next, expected);
        },
        { amount: 2 },
      );
      const asked = [faultOf(set.create(1))];
      await turn();
      asked.push(faultOf(set.create(2)));
      await turn();
      set.clock.advance(2000);
      expect(await Promise.all(asked)).toEqual(["unavailable", "unavailable"]);
      expect(set.box.messages).toHaveLength(0);
      await turn();
      hang = false;
      for (const open of held) open();
      await turn();
      // The write that hung has landed after all, so what the first asked for stays held; of the second nothing was written.
      expect([(await set.create(3)).status, (await set.create(4)).status]).toEqual(["pending", "rate_limited"]);
    });

    it("a request that was to lead the next turn and is gone holds up nobody for ever", async () => {
      let hang = true;
      const set = setUpSpend((whole) => (next, expected) => (hang && toLedger(set, next) ? new Promise(() => undefined) : whole(next, expected)));
      // The clock's timers are lost, as those of a request are on a platform that ends it: nothing ever ends this turn.
      const after = set.clock.after.bind(set.clock);
      set.clock.after = () => () => undefined;
      void set.create(1).catch(() => undefined);
      await turn();
      set.clock.after = after;
      hang = false;
      const second = faultOf(set.create(2));
      await turn();
      set.clock.advance(2000);
      expect(await second, "within that time it waits for its turn").toBe("unavailable");
      set.clock.advance(2001);
      expect((await set.create(3)).status).toBe("pending");
    });

    it("a corrupt ledger: 503, nothing sent", async () => {
      const set = setUpSpend();
      const find = set.store.find.bind(set.store);
      set.store.find = async (customer, id) => {
        const record = await find(customer, id);
        return customer === set.customer ? record : { customer, id, tokens: ["t"], data: "[[1],[]]", keepUntil: set.clock.now() + 1000 };
      };
      expect(await faultOf(set.create(1))).toBe("unavailable");
      expect(set.box.messages).toHaveLength(0);
    });
  });

  it("the deadline counts store time only: a slow carrier leaves it whole", async () => {
    const set = setUp();
    set.box.answer = async () => {
      set.clock.advance(4_900);
      return { outcome: "rejected" };
    };
    const { authentication_uuid } = await set.create();
    expect((await set.check(authentication_uuid, set.box.code())).status, "the rejection was stored").toBe("without_attempt");
  });

  it("Once a message may have been handed over, no store fault turns the answer into an error", async () => {
    const set = setUp({ policy: { limits: { perNumber: [{ limit: 10, window: 86_400 }] } } });
    set.box.answer = async () => {
      mend = fail(set.store, "compareAndSwap", "rejects");
      return { outcome: "rejected" };
    };
    let mend = () => undefined as unknown;
    expect((await set.create()).status).toBe("pending");
    mend();
    const good = setUp();
    const { authentication_uuid } = await good.create();
    good.clock.advance(30_000);
    good.box.answer = async () => {
      fail(good.store, "compareAndSwap", "rejects");
      return { outcome: "rejected" };
    };
    expect(await good.retry(authentication_uuid)).toMatchObject({ status: "denied", remaining_retry: 4 });
    expect(good.log.lines.some(({ message }) => message.includes("could not be stored"))).toBe(true);
  });

  it("a corrupt record: 503 for that request, the record left as it is, an error event with its id", async () => {
    for (const data of [
      "",
      "nonsense",
      "[]",
      "[2]",
      '{"a":1}',
      "null",
      '[1,"+33612345678","x",0,0,0,0,1,1,0,0,[]]',
      '[1,"+33612345678",0,0,0,9,0,1,1,0,0,[]]',
      '[1,"+33612345678",1e18,600000,0,0,0,1,1,0,0,[]]',
      '[1,"+33612345678",0,600000,0,0,0,1,1,-5,0,[]]',
      '[1,"+33612345678",0,600000,0,0,0,1,1,0,-100,[]]',
      '[1,"+33612345678",0,600000,0,0,0,1,1,0,0,[],null]',
      '[1,"+33612345678",0,600000,0,0,0,1,1,0,0,[],{"o":7,"u":5}]',
    ]) {
      const set = setUp();
      const { authentication_uuid } = await set.create({ phone_number: numberOf(3) });
      const record = await set.store.find(set.customer, authentication_uuid);
      const corrupt = { ...(record as NonNullable<typeof record>), tokens: ["corrupt"], data };
      await set.store.compareAndSwap(corrupt, record?.tokens[0] as string);
      expect(await faultOf(set.retry(authentication_uuid))).toBe("unavailable");
      expect(await faultOf(set.check(authentication_uuid, set.box.code()))).toBe("unavailable");
      expect(await set.store.find(set.customer, authentication_uuid)).toMatchObject({ data, tokens: ["corrupt"] });
      expect(set.log.lines).toContainEqual(expect.objectContaining({ level: "error", fields: expect.objectContaining({ authentication_uuid }) }));
    }
  });

  it("nothing that is logged holds a code or a whole number", async () => {
    const set = setUp();
    set.box.answer = async (message) => Promise.reject(new Error(`could not send ${message.text} to ${message.to}`));
    await set.create();
    fail(set.store, "compareAndSwap", "rejects");
    await faultOf(set.create());
    const logged = set.log.lines.map((line) => JSON.stringify([line.message, { ...line.fields, err: String(line.fields.err) }])).join();
    expect(set.log.lines.length).toBeGreaterThan(1);
    expect(logged).not.toContain(set.box.code());
    expect(logged).not.toContain(numberOf(1));
  });
});
