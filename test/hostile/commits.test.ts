import { describe, expect, it } from "vitest";
import { PlainStore } from "../store/plain-store.js";
import { callbackUrl, drive, ending, type Fate, fates, pass, rigged, type Service, service, tallied, turns, wide } from "./kit.js";

/** A service with a rigged store, whose user has received a code. */
async function withCode(options: Parameters<typeof service>[0] = {}) {
  const store = rigged(new PlainStore());
  const one = service({ store, ...options });
  const { authentication_uuid: id } = await one.create(1, { callback_url: callbackUrl });
  await turns();
  return { ...one, store, id, code: one.sender.codeOf(id) };
}

/** Gives commits `fate` during `run`; then the store is back, held commits land, and a minute passes. */
async function during(one: Service & { readonly store: ReturnType<typeof rigged> }, fate: Fate, run: () => Promise<void>): Promise<void> {
  one.store.fate = (method) => (method === "commit" ? fate : "done");
  await run();
  one.store.fate = () => "done";
  await one.store.release();
  await pass(one.clock, 60_000);
}

describe.each(fates)("a commit that is %s", (fate) => {
  it("costs a retry that returned 503 no retry, no cool-down, no live code, no cap and no event", async () => {
    const one = await withCode();
    one.clock.advance(31_000);
    await during(one, fate, async () => {
      for (let i = 0; i < 4; i++) {
        expect(await drive(one.clock, ending(one.retry(one.id)))).toBe("unavailable");
        one.clock.advance(1_000);
      }
    });
    expect(one.sender.messages).toHaveLength(1);
    expect(await one.check(one.id, one.wrong(one.id))).toMatchObject({ status: "invalid" });
    const retried = await one.retry(one.id);
    expect(retried).toMatchObject({ status: "approved", remaining_retry: 3 });
    expect(Date.parse(retried.next_retry_at) - Date.parse(retried.created_at)).toBe(60_000);
    // 5 in ten minutes: two were sent.
    expect(tallied([await ending(one.create(1)), await ending(one.create(1)), await ending(one.create(1)), await ending(one.create(1))])).toEqual({
      pending: 3,
      rate_limited: 1,
    });
    await one.verifier.flush();
    await one.verifier.flush();
    expect(one.hook.story(one.id)).toEqual(["1:submitted", "2:submitted"]);
    expect(await one.check(one.id, one.code)).toMatchObject({ status: "valid" });
  });

  it("costs a create that returned 503 no cap and no money, and nothing is sent or reported", async () => {
    const store = rigged(new PlainStore());
    const limits = {
      ...wide,
      perDevice: [{ limit: 3, window: 3600 }],
      perIp: [{ limit: 3, window: 3600 }],
      perCustomer: [{ limit: 3, window: 3600 }],
      spend: [{ amount: 3, per: "hour" as const }],
    };
    const one = { ...service({ store, price: 1, policy: { limits } }), store };
    const fields = { device_id: "device", ip: "203.0.113.7", callback_url: callbackUrl };
    await during(one, fate, async () => {
      for (let i = 0; i < 4; i++) expect(await drive(one.clock, ending(one.create(i, fields)))).toBe("unavailable");
    });
    expect(one.sender.messages).toEqual([]);
    await one.verifier.flush();
    expect(one.hook.posted).toEqual([]);
    const endings: string[] = [];
    for (let i = 10; i < 14; i++) endings.push(await ending(one.create(i, fields)));
    expect(tallied(endings)).toEqual({ pending: 3, rate_limited: 1 });
  });

  it.each(["numbersPerDevice", "numbersPerIp"])("does not count a create that returned 503 among distinct numbers: %s", async (cap) => {
    const store = rigged(new PlainStore());
    const one = { ...service({ store, policy: { limits: { ...wide, [cap]: [{ limit: 3, window: 3600 }] } } }), store };
    const fields = { device_id: "device", ip: "203.0.113.7" };
    expect(await ending(one.create(0, fields))).toBe("pending");
    await during(one, fate, async () => {
      // A number that was counted before, and three others.
      for (let i = 0; i < 4; i++) expect(await drive(one.clock, ending(one.create(i, fields)))).toBe("unavailable");
    });
    const endings: string[] = [];
    for (const number of [0, 10, 11, 12]) endings.push(await ending(one.create(number, fields)));
    expect(endings).toEqual(["pending", "pending", "pending", "rate_limited"]);
  });

  it("lets a create under a key be repeated after a 503, with one message and one count", async () => {
    const store = rigged(new PlainStore());
    const one = { ...service({ store }), store };
    const keyed = () => one.create(1, {}, { idempotencyKey: "k" });
    await during(one, fate, async () => expect(await drive(one.clock, ending(keyed()))).toBe("unavailable"));
    expect(one.sender.messages).toEqual([]);
    const created = await keyed();
    expect(created.status).toBe("pending");
    expect(await keyed()).toEqual(created);
    expect(one.sender.messages).toHaveLength(1);
    const endings: string[] = [];
    for (let i = 0; i < 5; i++) endings.push(await ending(one.create(1)));
    expect(tallied(endings)).toEqual({ pending: 4, rate_limited: 1 });
    expect(await one.check(created.authentication_uuid, one.sender.codeOf(created.authentication_uuid))).toMatchObject({ status: "valid" });
  });

  it("does not let an immediate repeat of a create under a key send twice after a 503", async () => {
    const store = rigged(new PlainStore());
    const one = { ...service({ store }), store };
    const keyed = () => one.create(1, {}, { idempotencyKey: "k" });
    store.fate = (method) => (method === "commit" ? fate : "done");
    expect(await drive(one.clock, ending(keyed()))).toBe("unavailable");
    store.fate = () => "done";
    const first = await drive(one.clock, ending(keyed()));
    await store.release();
    await pass(one.clock, 60_000);
    const again = await drive(one.clock, keyed());
    expect(one.sender.messages.length).toBeLessThanOrEqual(1);
    expect(["pending", "unavailable"]).toContain(first);
    expect(again.status).toBe("pending");
    // If the repeat returns `pending` and no message comes, a retry sends one.
    const id = again.authentication_uuid;
    if (one.sender.messages.length === 0) {
      one.clock.advance(31_000);
      const retried = await one.retry(id);
      expect(retried.status).toBe("approved");
    }
    expect(one.sender.messages).toHaveLength(1);
    expect(await one.check(id, one.sender.codeOf(id))).toMatchObject({ status: "valid" });
  });

  it("of a check with the right code under a key lets its repeat return `valid`", async () => {
    const one = await withCode();
    const keyed = () => one.check(one.id, one.code, { idempotencyKey: "c" });
    await during(one, fate, async () => expect(await drive(one.clock, ending(keyed()))).toBe("unavailable"));
    expect(await keyed()).toMatchObject({ status: "valid" });
    expect(await keyed()).toMatchObject({ status: "valid" });
    expect(await one.check(one.id, one.code)).toMatchObject({ status: "already_validated" });
  });

  it("of a check with a wrong code under a key counts it once", async () => {
    const one = await withCode();
    const keyed = () => one.check(one.id, one.wrong(one.id), { idempotencyKey: "c" });
    await during(one, fate, async () => {
      for (let i = 0; i < 6; i++) expect(await drive(one.clock, ending(keyed()))).toBe("unavailable");
    });
    expect(await keyed()).toMatchObject({ status: "invalid" });
    const endings: string[] = [];
    for (let i = 0; i < 5; i++) endings.push(await ending(one.check(one.id, one.wrong(one.id))));
    expect(endings).toEqual(["invalid", "invalid", "invalid", "invalid", "rate_limited"]);
  });

  it("never lets more than five wrong codes be evaluated, however many were lost", async () => {
    const one = await withCode();
    let answered = 0;
    for (let i = 0; i < 2; i++) {
      if ((await ending(one.check(one.id, one.wrong(one.id)))) === "invalid") answered++;
      await during(one, fate, async () => expect(await drive(one.clock, ending(one.check(one.id, one.wrong(one.id))))).toBe("unavailable"));
    }
    for (let i = 0; i < 6; i++) if ((await ending(one.check(one.id, one.wrong(one.id)))) === "invalid") answered++;
    expect(answered).toBeLessThanOrEqual(5);
    expect(answered).toBeGreaterThanOrEqual(2);
    expect(await one.check(one.id, one.code)).toMatchObject({ status: "rate_limited" });
  });

  it("after the message was sent does not turn the result into an error, and its event is reported once", async () => {
    const store = rigged(new PlainStore());
    const one = { ...service({ store }), store };
    one.sender.answer = async () => {
      store.fate = (method) => (method === "commit" ? fate : "done");
      return { outcome: "accepted", messageId: "m1", route: "another" };
    };
    const created = await drive(one.clock, one.create(1, { callback_url: callbackUrl }));
    expect(created.status).toBe("pending");
    await pass(one.clock, 5_000);
    store.fate = () => "done";
    await store.release();
    await pass(one.clock, 60_000);
    for (let i = 0; i < 3; i++) await one.verifier.flush();
    const story = one.hook.story(created.authentication_uuid);
    expect(story.length).toBe(1);
    expect(["1:submitted", "1:unknown"]).toContain(story[0]);
    expect(await one.check(created.authentication_uuid, one.sender.codeOf(created.authentication_uuid))).toMatchObject({ status: "valid" });
  });

  it("after a carrier's rejection of a retry uses up no retry, and leaves the first code live", async () => {
    const one = await withCode();
    one.clock.advance(31_000);
    one.sender.answer = async () => {
      one.store.fate = (method) => (method === "commit" ? fate : "done");
      return { outcome: "rejected" };
    };
    expect(await drive(one.clock, ending(one.retry(one.id)))).toBe("denied");
    await pass(one.clock, 5_000);
    one.store.fate = () => "done";
    await one.store.release();
    await pass(one.clock, 115_000);
    one.sender.answer = async () => ({ outcome: "accepted" });
    expect(await one.retry(one.id)).toMatchObject({ status: "approved", remaining_retry: 3 });
    expect(await one.check(one.id, one.code)).toMatchObject({ status: "valid" });
  });
});

describe.each(fates)("a settling commit that is %s", (fate) => {
  it("does not let messages that the carrier rejected push out the only code that the user received", async () => {
    const one = await withCode();
    let carrierRejects = true;
    one.sender.answer = async () => {
      one.store.fate = (method) => (method === "commit" ? fate : "done");
      return { outcome: carrierRejects ? "rejected" : "accepted" };
    };
    for (let i = 0; i < 3; i++) {
      await pass(one.clock, 100_000);
      await drive(one.clock, ending(one.retry(one.id)));
      await pass(one.clock, 5_000);
      one.store.fate = () => "done";
      await one.store.release();
    }
    carrierRejects = false;
    await pass(one.clock, 60_000);
    expect(await one.check(one.id, one.code)).toMatchObject({ status: "valid" });
  });

  it("eventually gives back the price of a message that the carrier rejected", async () => {
    const store = rigged(new PlainStore());
    const one = service({ store, price: 1, policy: { limits: { ...wide, spend: [{ amount: 2, per: "day" }] } } });
    one.sender.answer = async () => {
      store.fate = (method) => (method === "commit" ? fate : "done");
      return { outcome: "rejected" };
    };
    for (let i = 0; i < 2; i++) {
      expect(await drive(one.clock, ending(one.create(i)))).toBe("pending");
      await pass(one.clock, 5_000);
      store.fate = () => "done";
      await store.release();
    }
    await pass(one.clock, 60_000);
    one.sender.answer = async () => ({ outcome: "accepted" });
    expect(tallied([await ending(one.create(5)), await ending(one.create(6)), await ending(one.create(7))])).toEqual({ pending: 2, rate_limited: 1 });
  });
});

describe("a commit that lands after everything else (docs/contract.md#lost-write)", () => {
  it("of a create is undone: no cap, no event", async () => {
    const store = rigged(new PlainStore());
    const one = service({ store, policy: { limits: { ...wide, perCustomer: [{ limit: 1, window: 3600 }] } } });
    let first = true;
    store.fate = (method) => {
      if (method !== "commit" || !first) return "done";
      first = false;
      return "held";
    };
    expect(await drive(one.clock, ending(one.create(1, { callback_url: callbackUrl })))).toBe("unavailable");
    await pass(one.clock, 10_000);
    await store.release();
    await pass(one.clock, 60_000);
    await one.verifier.flush();
    expect(one.hook.posted).toEqual([]);
    expect(await ending(one.create(2))).toBe("pending");
  });

  it("of a retry is undone: no retry, no cool-down, no event", async () => {
    const one = await withCode();
    one.clock.advance(31_000);
    let first = true;
    one.store.fate = (method) => {
      if (method !== "commit" || !first) return "done";
      first = false;
      return "held";
    };
    expect(await drive(one.clock, ending(one.retry(one.id)))).toBe("unavailable");
    await pass(one.clock, 10_000);
    await one.store.release();
    await pass(one.clock, 60_000);
    await one.verifier.flush();
    expect(one.hook.story(one.id)).toEqual(["1:submitted"]);
    expect(await one.retry(one.id)).toMatchObject({ status: "approved", remaining_retry: 3 });
    expect(await one.check(one.id, one.code)).toMatchObject({ status: "valid" });
  });

  it("of a retry does not undo the retry that the user made in the meantime", async () => {
    const one = await withCode();
    one.clock.advance(31_000);
    let first = true;
    one.store.fate = (method) => {
      if (method !== "commit" || !first) return "done";
      first = false;
      return "held";
    };
    expect(await drive(one.clock, ending(one.retry(one.id)))).toBe("unavailable");
    expect(await drive(one.clock, ending(one.retry(one.id)))).toBe("approved");
    const second = one.sender.codeOf(one.id);
    await one.store.release();
    await pass(one.clock, 60_000);
    expect(one.sender.messages).toHaveLength(2);
    for (let i = 0; i < 3; i++) await one.verifier.flush();
    expect(one.hook.story(one.id)).toEqual(["1:submitted", "2:submitted"]);
    expect(await one.check(one.id, second)).toMatchObject({ status: "valid" });
  });
});

describe("a store that hangs", () => {
  it.each(["find", "commit"] as const)("at %s gives 503 with Retry-After after storeTimeout, on the system clock too", async (method) => {
    const store = rigged(new PlainStore());
    const one = service({ store, clock: undefined, storeTimeout: 0.3 });
    const { authentication_uuid: id } = await one.create(1);
    store.fate = (called) => (called === method ? "silent" : "done");
    const bodies = {
      "/v1/retry": { authentication_uuid: id },
      "/v1/check": { authentication_uuid: id, check_code: "000000" },
      ...(method === "commit" && { "/v1/authentication": { phone_number: "+33612345678" } }),
    };
    await Promise.all(
      Object.entries(bodies).map(async ([path, fields]) => {
        // This process still holds the record and needs no `find`; another process needs one.
        const other = service({ store, clock: undefined, storeTimeout: 0.3, customer: one.customer });
        const started = performance.now();
        const answer = await other.verifier.http.handle({
          method: "POST",
          path,
          header: (name) => (name === "x-api-key" ? `pp_${one.customer}` : undefined),
          body: async () => ({ kind: "parsed", value: { customer_uuid: one.customer, ...fields } }),
        });
        const took = performance.now() - started;
        if (path === "/v1/retry" && method === "commit") {
          expect(JSON.parse(answer.body)).toMatchObject({ status: "denied" }); // the cool-down; nothing to write
          return;
        }
        expect(answer.status, path).toBe(503);
        expect(Number(answer.headers["retry-after"])).toBeGreaterThan(0);
        expect(JSON.parse(answer.body)).toEqual({ code: "unavailable", message: expect.any(String), doc_url: expect.any(String) });
        expect(took).toBeGreaterThan(250);
        expect(took).toBeLessThan(9_000);
      }),
    );
  });

  it("during 400 concurrent requests, on every method, works as soon as it is back, with nothing lost", async () => {
    const store = rigged(new PlainStore());
    const one = service({ store, policy: { limits: { ...wide, perCustomer: [{ limit: 600, window: 86_400 }] } } });
    const before = await Promise.all(Array.from({ length: 100 }, (_, i) => one.create(i)));
    one.clock.advance(31_000);
    store.fate = () => "held";
    const calls = [
      ...Array.from({ length: 200 }, (_, i) => ending(one.create(1_000 + i))),
      ...before.map(({ authentication_uuid: id }) => ending(one.retry(id))),
      ...before.map(({ authentication_uuid: id }) => ending(one.check(id, one.wrong(id)))),
    ];
    expect(tallied(await drive(one.clock, Promise.all(calls)))).toEqual({ unavailable: 400 });
    store.fate = () => "done";
    await store.release();
    await pass(one.clock, 60_000);
    expect(one.sender.messages).toHaveLength(100);
    const retries = await Promise.all(before.map(({ authentication_uuid: id }) => one.retry(id)));
    expect(new Set(retries.map(({ status, remaining_retry }) => `${status} ${remaining_retry}`))).toEqual(new Set(["approved 3"]));
    // 600 a day: 200 were sent.
    const rest: string[] = [];
    for (let i = 0; i < 401; i++) rest.push(await ending(one.create(5_000 + i)));
    expect(tallied(rest)).toEqual({ pending: 400, rate_limited: 1 });
    const checks = await Promise.all(before.map(({ authentication_uuid: id }) => ending(one.check(id, one.sender.codeOf(id, 1)))));
    expect(tallied(checks)).toEqual({ valid: 100 });
  });

  it("once the carrier has the message leaves a code that works, and a retry", async () => {
    const one = await withCode();
    one.clock.advance(31_000);
    one.sender.answer = async () => {
      one.store.fate = () => "silent";
      return { outcome: "unknown" };
    };
    expect(await drive(one.clock, ending(one.retry(one.id)))).toBe("approved");
    await pass(one.clock, 8_000);
    one.store.fate = () => "done";
    await pass(one.clock, 60_000);
    one.sender.answer = async () => ({ outcome: "accepted" });
    expect(await one.retry(one.id)).toMatchObject({ status: "approved", remaining_retry: 2 });
    expect(one.sender.messages.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
    expect(new Set(one.sender.messages.map(({ idempotency_key }) => idempotency_key)).size).toBe(3);
    await one.verifier.flush();
    await one.verifier.flush();
    expect(one.hook.story(one.id)).toEqual(["1:submitted", "2:unknown", "3:submitted"]);
    expect(await one.check(one.id, one.sender.codeOf(one.id, 2))).toMatchObject({ status: "valid" });
  });
});
