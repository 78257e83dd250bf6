import { describe, expect, it } from "vitest";
import type { Change, CommitResult, List, StartRequest, Store, VerificationOptions } from "../../src/index.js";
import { errorCode, numberOf, setUp } from "../support/verifier.js";

const number = numberOf(1);

type Options = NonNullable<Parameters<typeof setUp>[0]>;

/** A verifier, its calls by number, and the methods of its store called since `roundTrips` was last called. */
function byNumber(options: Options = {}, share?: Store) {
  const calls: string[] = [];
  const own = share ?? setUp().store;
  const store = new Proxy(own, {
    get: (_target, name: keyof Store) =>
      typeof own[name] !== "function"
        ? own[name]
        : (...given: never[]) => {
            calls.push(name);
            return (own[name] as (...given: never[]) => unknown)(...given);
          },
  });
  const set = setUp({ store, customers: undefined, ...options } as Options);
  const { verifications } = set.verifier;
  return {
    ...set,
    own,
    roundTrips: () => calls.splice(0),
    start: (fields: Partial<StartRequest> = {}, call?: VerificationOptions) => verifications.start({ phone_number: number, ...fields }, call),
    check: (check_code: string, call?: VerificationOptions) => verifications.check({ phone_number: number, check_code }, call),
    cancel: () => verifications.cancel({ phone_number: number }),
    get: () => verifications.get({ phone_number: number }),
    /** Another process on the same store. */
    another: (more: Options = {}) => byNumber({ ...options, clock: set.clock, ...more } as Options, own),
  };
}

/** Replaces the store's commits. `turn` counts them from 1. */
function eachCommit(store: Store, commit: (change: Change, turn: number) => Promise<CommitResult>): Store {
  let turn = 0;
  return new Proxy(store, {
    get: (_target, name: keyof Store) =>
      name === "commit" ? (change: Change) => commit(change, ++turn) : (store[name] as { bind?: (to: Store) => unknown } | undefined)?.bind?.(store),
  });
}

/** Replaces the store's next commit. */
function nextCommit(store: Store, commit: (change: Change, own: Store) => Promise<CommitResult>): Store {
  return eachCommit(store, (change, turn) => (turn === 1 ? commit(change, store) : store.commit(change)));
}

describe("start", () => {
  it("start: begins a verification, or sends again in the open one under the same id (docs/contract.md#start)", async () => {
    const set = byNumber();
    const first = await set.start();
    expect(first).toMatchObject({ status: "pending", attempt: 1, is_open: true, phone_number: number, remaining_retry: 4, remaining_checks: 5 });
    expect(await set.start()).toMatchObject({ status: "denied", attempt: 0, is_open: true, authentication_uuid: first.authentication_uuid });
    set.clock.advance(30_000);
    const again = await set.start();
    expect(again).toMatchObject({ status: "pending", attempt: 2, authentication_uuid: first.authentication_uuid, created_at: first.created_at });
    const sends = [
      { attempt: 1, at: first.created_at },
      { attempt: 2, at: new Date(set.clock.now()).toISOString() },
    ];
    expect([first.sends, again.sends]).toEqual([sends.slice(0, 1), sends]);
    expect(set.box.messages).toHaveLength(2);
    const { authentication_uuid, created_at } = first;
    expect(await set.check(set.box.code(0))).toMatchObject({ status: "valid", phone_number: number, authentication_uuid, created_at });
  });

  it("round trips: 1 for the first start, 1 for a later start or check, or 2 in another process (docs/contract.md#start)", async () => {
    const set = byNumber();
    const there = set.another();
    await set.start();
    expect(set.roundTrips()).toEqual(["commit"]);
    set.clock.advance(30_000);
    await set.start();
    expect(set.roundTrips()).toEqual(["commit"]);
    set.clock.advance(60_000);
    await there.start();
    expect(there.roundTrips()).toEqual(["commit", "commit"]);
    const elsewhere = set.another();
    expect(await elsewhere.check("0000")).toMatchObject({ status: "invalid" });
    expect(elsewhere.roundTrips()).toEqual(["find", "commit"]);
    expect(await elsewhere.check(there.box.code())).toMatchObject({ status: "valid" });
    expect(elsewhere.roundTrips()).toEqual(["commit"]);
  });

  it.each(["verified", "canceled", "expired"] as const)(
    "a verification that is %s makes room for the next, with another id (docs/contract.md#slot)",
    async (how) => {
      const set = byNumber();
      const first = await set.start();
      if (how === "verified") await set.check(set.box.code());
      if (how === "canceled") await set.cancel();
      if (how === "expired") set.clock.advance(600_000);
      const elsewhere = set.another();
      const next = await elsewhere.start();
      expect(next).toMatchObject({ status: "pending", attempt: 1 });
      expect(next.authentication_uuid).not.toBe(first.authentication_uuid);
      expect(await set.check(set.box.code())).toMatchObject({ status: "invalid" });
      expect(await set.check(elsewhere.box.code())).toMatchObject({ status: "valid", authentication_uuid: next.authentication_uuid });
    },
  );

  it("the previous verification stays available to explain, history, get, check and retry by id (docs/contract.md#slot)", async () => {
    const set = byNumber();
    const first = await set.start();
    await set.check(set.box.code());
    set.clock.advance(1000);
    const second = await set.start();
    const elsewhere = set.another();
    const { authentication_uuid } = first;
    expect(await elsewhere.verifier.explain({ authentication_uuid })).toMatchObject({ authentication_uuid, validated: true });
    expect((await elsewhere.verifier.history({ phone_number: number })).map((one) => one.authentication_uuid)).toEqual([
      second.authentication_uuid,
      authentication_uuid,
    ]);
    expect(await elsewhere.verifier.verifications.get({ authentication_uuid })).toMatchObject({ status: "verified", phone_number: "+33612****01" });
    expect(await elsewhere.verifier.check({ authentication_uuid, check_code: set.box.code(0) })).toMatchObject({ status: "already_validated" });
    expect(await elsewhere.verifier.retry({ authentication_uuid })).toMatchObject({ status: "already_validated" });
  });

  it("retry, check and explain accept a verification's id; the slot's own id is unknown (docs/contract.md#slot)", async () => {
    const set = byNumber();
    const { authentication_uuid } = await set.start();
    set.clock.advance(30_000);
    expect(await set.verifier.retry({ authentication_uuid })).toMatchObject({ status: "approved" });
    expect(await set.verifier.explain({ authentication_uuid })).toMatchObject({ authentication_uuid, validated: false });
    const slot = `${authentication_uuid.slice(0, -8)}00000000`;
    expect(await errorCode(set.verifier.check({ authentication_uuid: slot, check_code: set.box.code() }))).toBe("invalid_auth_uuid");
    expect(await errorCode(set.verifier.explain({ authentication_uuid: slot }))).toBe("invalid_auth_uuid");
    expect(await set.verifier.check({ authentication_uuid, check_code: set.box.code() })).toMatchObject({ status: "valid" });
  });

  it("of two hundred concurrent starts in four processes, one begins a verification and sends, the others are denied (docs/contract.md#start)", async () => {
    const set = byNumber();
    const processes = [set, set.another(), set.another(), set.another()];
    const answers = await Promise.all(Array.from({ length: 200 }, (_, at) => (processes[at % 4] as typeof set).start()));
    expect(answers.filter(({ status, attempt }) => status === "pending" && attempt === 1)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === "denied")).toHaveLength(199);
    expect(new Set(answers.map((one) => one.authentication_uuid)).size).toBe(1);
    expect(processes.flatMap(({ box }) => box.messages)).toHaveLength(1);
  });

  it("of two hundred concurrent right codes, exactly one is `valid` (docs/contract.md#check-by-number)", async () => {
    const set = byNumber();
    await set.start();
    const processes = [set, set.another(), set.another(), set.another()];
    const answers = await Promise.all(Array.from({ length: 200 }, (_, at) => (processes[at % 4] as typeof set).check(set.box.code())));
    expect(answers.filter(({ status }) => status === "valid")).toHaveLength(1);
    expect(answers.filter(({ status }) => status === "not_found")).toHaveLength(199);
  });

  it("if a cap blocks a new verification, none is open, and history lists it (docs/contract.md#start)", async () => {
    const set = byNumber({ policy: { limits: { perNumber: [{ limit: 1, window: 86_400 }] } } });
    await set.start();
    await set.check(set.box.code());
    set.clock.advance(1000);
    const refused = await set.start();
    expect(refused).toMatchObject({ status: "rate_limited", attempt: 0, is_open: false, remaining_checks: 0 });
    expect(refused.retry_after).toBeGreaterThan(0);
    expect((await set.verifier.history({ phone_number: number }))[0]).toMatchObject({
      authentication_uuid: refused.authentication_uuid,
      status: "rate_limited",
    });
    expect(await set.check("123456")).toEqual({ status: "not_found" });
  });

  it("a cap that blocks another message leaves the verification open (docs/contract.md#start)", async () => {
    const set = byNumber({ policy: { limits: { perNumber: [{ limit: 1, window: 86_400 }] } } });
    await set.start();
    set.clock.advance(30_000);
    expect(await set.start()).toMatchObject({ status: "rate_limited", attempt: 0, is_open: true });
    expect(await set.check(set.box.code())).toMatchObject({ status: "valid" });
  });

  it("start returns `rate_limited` after five messages; the last code is still valid (docs/contract.md#start)", async () => {
    const set = byNumber();
    for (const wait of [0, 30_000, 60_000, 90_000, 120_000]) {
      set.clock.advance(wait);
      expect(await set.start()).toMatchObject({ status: "pending" });
    }
    set.clock.advance(120_000);
    expect(await set.start()).toMatchObject({ status: "rate_limited", is_open: true, remaining_retry: 0 });
    expect(await set.check(set.box.code())).toMatchObject({ status: "valid" });
  });

  it.each([
    ["anew", { status: "pending", attempt: 1 }],
    ["wait", { status: "rate_limited", attempt: 0, is_open: false }],
  ] as const)("start after the checks are used up, with usedUp %s (docs/contract.md#start)", async (usedUp, expected) => {
    const set = byNumber();
    await set.start();
    for (let guess = 0; guess < 5; guess++) expect(await set.check(set.wrong())).toMatchObject({ status: "invalid" });
    expect(await set.check(set.box.code())).toMatchObject({ status: "rate_limited" });
    expect(await set.get()).toMatchObject({ status: "used_up" });
    set.clock.advance(30_000);
    expect(await set.start({}, { usedUp })).toMatchObject(expected);
  });

  it("a new verification brings no new guesses: the wrong codes of a number are counted over all (docs/contract.md#guesses-claimed)", async () => {
    const set = byNumber({ policy: { limits: { perNumber: [{ limit: 2, window: 86_400 }] } } });
    const statuses: string[] = [];
    for (let verification = 0; verification < 3; verification++) {
      await set.start();
      for (let guess = 0; guess < 6; guess++) statuses.push((await set.check(set.wrong())).status);
      set.clock.advance(600_000);
    }
    expect(statuses.filter((status) => status === "invalid")).toHaveLength(10);
  });

  it("every route rejects: `pending` with `carrier_refused`; the next start begins a new one at once (docs/contract.md#start)", async () => {
    const set = byNumber();
    set.box.answer = async () => ({ outcome: "rejected", reason: "no" });
    expect(await set.start()).toMatchObject({ status: "pending", attempt: 1, carrier_refused: true, is_open: false });
    set.box.answer = async () => ({ outcome: "accepted" });
    expect(await set.start()).toMatchObject({ status: "pending", attempt: 1, is_open: true });
  });

  it("no route takes a further message: `denied` with `carrier_refused`, and the cool-down starts again (docs/contract.md#start)", async () => {
    const set = byNumber();
    await set.start();
    set.clock.advance(30_000);
    set.box.answer = async () => ({ outcome: "rejected", reason: "no" });
    expect(await set.start()).toMatchObject({ status: "denied", attempt: 0, carrier_refused: true, is_open: true });
    expect(await set.start()).toMatchObject({ status: "denied" });
    expect(set.box.messages).toHaveLength(2);
  });

  it("each scope has its own verification of a number (docs/contract.md#slot)", async () => {
    const set = byNumber();
    const login = await set.start({}, { scope: "login" });
    const payment = await set.start({}, { scope: "payment" });
    expect(payment).toMatchObject({ status: "pending", attempt: 1 });
    expect(payment.authentication_uuid.slice(0, -8)).not.toBe(login.authentication_uuid.slice(0, -8));
    expect(await set.check(set.box.code(0), { scope: "payment" })).toMatchObject({ status: "invalid" });
    expect(await set.check(set.box.code(0))).toEqual({ status: "not_found" });
    expect(await set.check(set.box.code(0), { scope: "login" })).toMatchObject({ status: "valid" });
  });

  it("each customer has its own verification of a number (docs/contract.md#slot)", async () => {
    const one = setUp();
    const two = setUp({ store: one.store, clock: one.clock });
    const calls = ({ verifier, customer: customer_uuid }: typeof one) => ({
      start: () => verifier.verifications.start({ customer_uuid, phone_number: number }),
      check: (check_code: string) => verifier.verifications.check({ customer_uuid, phone_number: number, check_code }),
      cancel: () => verifier.verifications.cancel({ customer_uuid, phone_number: number }),
      get: () => verifier.verifications.get({ customer_uuid, phone_number: number }),
    });
    const [mine, theirs] = [calls(one), calls(two)];
    const { authentication_uuid } = await mine.start();
    expect([await theirs.get(), await theirs.cancel(), await theirs.check(one.box.code())]).toEqual([undefined, undefined, { status: "not_found" }]);
    expect(await theirs.start()).toMatchObject({ status: "pending", attempt: 1 });
    expect(await theirs.cancel()).toMatchObject({ status: "canceled" });
    expect(await mine.check(one.box.code())).toMatchObject({ status: "valid", authentication_uuid });
  });

  it("the caller's own rules run once for each start, with its attempt (docs/contract.md#start)", async () => {
    const asked: number[] = [];
    const set = byNumber({ spamRules: [{ name: "asked", judge: ({ attempt }) => void asked.push(attempt) }] });
    await set.start();
    set.clock.advance(30_000);
    await set.another().start();
    expect(asked).toEqual([1, 2]);
  });

  it("a number that was blocked in the meantime is `blocked_number`, and its verification stays open (docs/contract.md#start)", async () => {
    let block: List = {};
    const set = byNumber({ lists: { block: () => block, refresh: 1 } });
    await set.start();
    block = { numbers: [number] };
    set.clock.advance(30_000);
    await set.start({ phone_number: numberOf(2) });
    await new Promise(setImmediate);
    expect(await errorCode(set.start())).toBe("blocked_number");
    const elsewhere = set.another({ countries: ["US"] });
    expect(await errorCode(elsewhere.start())).toBe("unsupported_region");
    expect(await set.get()).toMatchObject({ status: "open" });
  });

  it("a blocked send whose verification is replaced at the same time does not delay later calls (docs/contract.md#start)", async () => {
    const set = byNumber();
    await set.start();
    set.clock.advance(30_000);
    const there = set.another();
    const refusing = set.another({
      spamRules: [{ name: "never", judge: ({ attempt }) => (attempt > 1 ? { reason: "never" } : undefined) }],
      store: nextCommit(set.own, async (change, own) => {
        await there.cancel();
        await there.start();
        return own.commit(change);
      }),
    } as Options);
    expect(await refusing.start()).toMatchObject({ status: "rate_limited" });
    await expect.poll(() => there.box.messages.length).toBe(1);
    expect(await refusing.get()).toMatchObject({ status: "open", attempts: 1 });
  });

  it("an ended verification that cannot be stored yet does not delay calls about the next one, and is stored later (docs/contract.md#slot)", async () => {
    const set = byNumber();
    const first = await set.start();
    await set.check(set.box.code());
    let kept = false;
    // The first commit finds the slot taken, the second takes it.
    const store = eachCommit(set.own, async (change, turn) => {
      if (turn === 3) throw new Error("away");
      kept = turn > 3;
      return set.own.commit(change);
    });
    const there = set.another({ store } as Options);
    const second = await there.start();
    expect(await there.get()).toMatchObject({ authentication_uuid: second.authentication_uuid, status: "open" });
    expect(await errorCode(there.verifier.explain({ authentication_uuid: first.authentication_uuid }))).toBe("invalid_auth_uuid");
    set.clock.advance(1_000);
    await expect.poll(() => kept).toBe(true);
    expect(await set.another().verifier.explain({ authentication_uuid: first.authentication_uuid })).toMatchObject({ validated: true });
  });

  it("undoing a start whose response was lost does not change the next verification, even one of the same moment (docs/contract.md#take-back)", async () => {
    const set = byNumber();
    const there = set.another();
    let isTakenBack = false;
    const store = eachCommit(set.own, async (change, turn) => {
      const result = await set.own.commit(change);
      isTakenBack = result.done && turn > 1;
      if (turn > 1) return result;
      await there.cancel();
      await there.start();
      await there.check(there.box.code());
      throw new Error("the reply is lost");
    });
    expect(await errorCode(set.another({ store } as Options).start())).toBe("unavailable");
    await expect.poll(() => isTakenBack).toBe(true);
    expect(await set.get()).toMatchObject({ status: "verified", attempts: 1, sends: [{ attempt: 1 }] });
  });

  it("a start whose response was lost sends nothing and restores the previous verification; the next start sends (docs/contract.md#take-back)", async () => {
    const set = byNumber();
    const first = await set.start();
    await set.check(set.box.code());
    const failing = set.another({
      store: nextCommit(set.own, async (change, own) => {
        await own.commit(change);
        throw new Error("the reply is lost");
      }),
    } as Options);
    expect(await errorCode(failing.start())).toBe("unavailable");
    await expect.poll(async () => (await set.another().get())?.authentication_uuid).toBe(first.authentication_uuid);
    expect(failing.box.messages).toEqual([]);
    const there = set.another();
    expect(await there.get()).toMatchObject({ status: "verified" });
    expect(await there.start()).toMatchObject({ status: "pending", attempt: 1 });
  });
});

describe("repeats (docs/contract.md#repeated-starts)", () => {
  it("start and check return the same result under one idempotency key, in another process too", async () => {
    const set = byNumber();
    const there = set.another();
    const first = await set.start({}, { idempotencyKey: "one" });
    expect(await there.start({}, { idempotencyKey: "one" })).toMatchObject({ status: "pending", attempt: 1, authentication_uuid: first.authentication_uuid });
    set.clock.advance(30_000);
    expect(await there.start({}, { idempotencyKey: "two" })).toMatchObject({ status: "pending", attempt: 2 });
    expect(await set.start({}, { idempotencyKey: "two" })).toMatchObject({ status: "pending", attempt: 2 });
    expect(await set.start({}, { idempotencyKey: "one" })).toMatchObject({ status: "pending", attempt: 1 });
    expect([...set.box.messages, ...there.box.messages]).toHaveLength(2);
    expect(await errorCode(set.start({ ip: "192.0.2.1" }, { idempotencyKey: "one" }))).toBe("bad_request");
    expect(await set.check(there.box.code(), { idempotencyKey: "check" })).toMatchObject({ status: "valid", phone_number: number });
    expect(await there.check(there.box.code(), { idempotencyKey: "check" })).toMatchObject({ status: "valid", phone_number: number });
    expect(await there.check(there.box.code())).toEqual({ status: "not_found" });
    expect(await set.start({}, { idempotencyKey: "two" })).toMatchObject({ attempt: 2 });
  });

  it("start returns the same result under one idempotency key, even if every route rejected its message", async () => {
    const set = byNumber();
    set.box.answer = async () => ({ outcome: "rejected", reason: "no" });
    for (let call = 0; call < 2; call++)
      expect(await set.start({}, { idempotencyKey: "one" })).toMatchObject({ status: "pending", attempt: 1, carrier_refused: true });
    set.box.answer = async () => ({ outcome: "accepted" });
    await set.start();
    set.clock.advance(30_000);
    set.box.answer = async () => ({ outcome: "rejected", reason: "no" });
    for (let call = 0; call < 2; call++)
      expect(await set.start({}, { idempotencyKey: "two" })).toMatchObject({ status: "denied", attempt: 0, carrier_refused: true });
    expect(set.box.messages).toHaveLength(3);
  });

  it("concurrent starts under one key send one message", async () => {
    const set = byNumber();
    const processes = [set, set.another(), set.another()];
    const answers = await Promise.all(Array.from({ length: 60 }, (_, at) => (processes[at % 3] as typeof set).start({}, { idempotencyKey: "one" })));
    expect(answers.map(({ status, attempt }) => `${status} ${attempt}`)).toEqual(Array(60).fill("pending 1"));
    expect(processes.flatMap(({ box }) => box.messages)).toHaveLength(1);
  });

  it("a marked repeat of a start returns its result for 130 seconds; an unmarked one is a new start", async () => {
    const set = byNumber();
    const there = set.another();
    const repeat = (isRepeat: boolean) => ({ repeat: { request: "body", isRepeat } });
    await set.start({}, repeat(false));
    expect(await there.start({}, repeat(true))).toMatchObject({ status: "pending", attempt: 1 });
    expect(await there.start({}, repeat(false))).toMatchObject({ status: "denied" });
    expect(await there.start({}, { repeat: { request: "another", isRepeat: true } })).toMatchObject({ status: "denied" });
    set.clock.advance(130_000);
    expect(await there.start({}, repeat(true))).toMatchObject({ status: "pending", attempt: 2 });
    expect(there.box.messages).toHaveLength(1);
  });

  it("a marked repeat sends if there was no first start", async () => {
    const set = byNumber();
    expect(await set.start({}, { repeat: { request: "body", isRepeat: true } })).toMatchObject({ status: "pending", attempt: 1 });
    expect(set.box.messages).toHaveLength(1);
  });

  it("a marked repeat of a check returns `valid` again and counts a wrong code once; an unmarked one returns no second `valid`", async () => {
    const set = byNumber();
    const there = set.another();
    await set.start();
    const wrong = set.wrong();
    const repeat = (request: string, isRepeat: boolean) => ({ repeat: { request, isRepeat } });
    expect(await set.check(wrong, repeat(wrong, false))).toMatchObject({ status: "invalid", remaining_checks: 4 });
    expect(await there.check(wrong, repeat(wrong, true))).toMatchObject({ status: "invalid", remaining_checks: 4 });
    const code = set.box.code();
    expect(await set.check(code, repeat(code, false))).toMatchObject({ status: "valid" });
    expect(await there.check(code, repeat(code, false))).toEqual({ status: "not_found" });
    expect(await there.check(code, repeat(code, true))).toMatchObject({ status: "valid", phone_number: number });
  });
});

describe("cancel and get", () => {
  it("cancel: the codes stop working, an event reports it, check returns not_found and retry expired_auth (docs/contract.md#cancel)", async () => {
    const events: string[] = [];
    const set = byNumber({ onEvent: ({ type }) => void events.push(type) });
    const there = set.another();
    const { authentication_uuid } = await set.start();
    expect(await there.cancel()).toMatchObject({ authentication_uuid, status: "canceled", phone_number: number, attempts: 1, remaining_checks: 0 });
    expect(events.at(-1)).toBe("canceled");
    expect(await set.check(set.box.code())).toEqual({ status: "not_found" });
    expect(await set.verifier.retry({ authentication_uuid })).toMatchObject({ status: "expired_auth" });
    expect(await set.verifier.explain({ authentication_uuid })).toMatchObject({ validated: false, left: { checks: 0, retries: 0, seconds: 0 } });
    expect(await set.cancel()).toBeUndefined();
    expect(await set.get()).toMatchObject({ status: "canceled" });
  });

  it("cancel: with fifty concurrent right codes, either one is valid or the cancel succeeds, never both (docs/contract.md#cancel)", async () => {
    for (let round = 0; round < 10; round++) {
      const set = byNumber();
      const there = set.another();
      await set.start();
      const [canceled, ...checked] = await Promise.all([there.cancel(), ...Array.from({ length: 50 }, () => set.check(set.box.code()))]);
      expect(checked.filter(({ status }) => status === "valid")).toHaveLength(canceled === undefined ? 1 : 0);
    }
  });

  it("get: returns the latest verification of a number or the one with an id, `undefined` if there is none (docs/contract.md#get)", async () => {
    const set = byNumber();
    expect(await set.get()).toBeUndefined();
    expect(await set.cancel()).toBeUndefined();
    expect(await set.check("123456")).toEqual({ status: "not_found" });
    const { authentication_uuid, created_at } = await set.start();
    set.clock.advance(30_000);
    await set.start();
    expect(await set.another().get()).toMatchObject({
      authentication_uuid,
      status: "open",
      attempts: 2,
      sends: [
        { attempt: 1, at: created_at },
        { attempt: 2, at: new Date(Date.parse(created_at) + 30_000).toISOString() },
      ],
    });
    expect(await set.verifier.verifications.get({ authentication_uuid })).toMatchObject({ status: "open" });
    set.clock.advance(600_000);
    expect(await set.get()).toMatchObject({ status: "expired" });
  });

  it("erase removes every verification of the number, ended ones too (docs/contract.md#erase)", async () => {
    const set = byNumber();
    const first = await set.start();
    await set.check(set.box.code());
    const second = await set.start({}, { scope: "login" });
    const third = await set.start();
    expect(await set.another().verifier.erase({ phone_number: number })).toMatchObject({ erased: 3 });
    for (const { authentication_uuid } of [first, second, third]) {
      expect(await set.another().verifier.verifications.get({ authentication_uuid })).toBeUndefined();
      expect(await errorCode(set.verifier.explain({ authentication_uuid }))).toBe("invalid_auth_uuid");
    }
    expect(await set.get()).toBeUndefined();
    expect(await set.start()).toMatchObject({ status: "pending", attempt: 1 });
  });
});

describe("options of a start, and invalid input", () => {
  it("locale chooses the language of its messages, if the text has it (docs/contract.md#locale)", async () => {
    const set = byNumber({ message: { text: { fr: "Code {code}", de: "Ihr Code {code}", default: "Your code {code}" } } });
    await set.start({ locale: "de-AT" });
    set.clock.advance(30_000);
    await set.start();
    set.clock.advance(60_000);
    await set.start({ locale: "tlh" });
    expect(set.box.messages.map(({ text }) => text.split(" ").slice(0, -1).join(" "))).toEqual(["Ihr Code", "Ihr Code", "Code"]);
  });

  it("code_length sets another length if the guess budget allows it (docs/contract.md#code-length)", async () => {
    const set = byNumber();
    await set.start({ code_length: 8 });
    expect(set.box.code()).toMatch(/^\d{8}$/);
    set.clock.advance(30_000);
    await set.another().start();
    await expect(set.start({ code_length: 4 })).rejects.toThrow(/code_length 4 is not allowed.*10 sends.*5 checks/);
    expect(await errorCode(set.start({ code_length: 3 }))).toBe("bad_request");
  });

  it("invalid input is `bad_request`, and sends nothing (docs/contract.md#start)", async () => {
    const { box, verifier } = byNumber();
    const { verifications } = verifier;
    const calls = [
      () => verifications.start({} as never),
      () => verifications.start({ phone_number: number, locale: 1 } as never),
      () => verifications.start({ phone_number: number, locale: "not a tag" }),
      () => verifications.start({ phone_number: number, code_length: "6" } as never),
      () => verifications.start({ phone_number: number }, { scope: "Not one" }),
      () => verifications.start({ phone_number: number }, { scopes: "typo" } as never),
      // An id identifies one verification, whatever its scope.
      () => verifications.check({ authentication_uuid: crypto.randomUUID(), check_code: "1" }, { scope: "payment" }),
      () => verifications.cancel({ authentication_uuid: crypto.randomUUID() }, { scope: "payment" }),
      () => verifications.get({ authentication_uuid: crypto.randomUUID() }, { scope: "default" }),
      () => verifications.get({ authentication_uuid: crypto.randomUUID() }, { usedUp: "wait" } as never),
      () => verifications.start({ phone_number: number }, { usedUp: "never" } as never),
      () => verifications.start({ phone_number: number }, { repeat: { request: 1, isRepeat: true } } as never),
      () => verifications.start({ phone_number: number }, { idempotencyKey: "" }),
      () => verifications.check({ check_code: "123456" } as never),
      () => verifications.check({ phone_number: number, authentication_uuid: crypto.randomUUID(), check_code: "123456" } as never),
      () => verifications.check({ phone_number: number, check_code: "" }),
      () => verifications.get({} as never),
      () => verifications.cancel({ authentication_uuid: "no uuid" }),
    ];
    for (const call of calls) expect(await errorCode(call())).toBe("bad_request");
    expect(box.messages).toEqual([]);
  });

  it("customerOf returns the customer of an API key, else `forbidden` (docs/contract.md#api-keys)", async () => {
    const { verifier, apiKey, customer } = setUp();
    expect(await verifier.customerOf(apiKey)).toBe(customer);
    expect(await errorCode(verifier.customerOf("pp_nobody"))).toBe("forbidden");
    expect(await errorCode(verifier.customerOf(undefined))).toBe("forbidden");
  });
});

it("the open verification is found with the secrets in another order, or with a second one during rotation (docs/contract.md#slot)", async () => {
  const secrets = ["qT7vX2mR9kLw4ZbN8cJfH5sYdG3pAeU6", "Zk3PmW8xQv5LrT1nBy7CjFh2GdS9aEu4"] as const;
  const before = byNumber({ secret: secrets[0] } as Options);
  await before.start();
  for (const secret of [
    [secrets[1], secrets[0]],
    [secrets[0], secrets[1]],
  ] as const) {
    const after = before.another({ secret } as Options);
    expect(await after.start()).toMatchObject({ status: "denied" });
    expect(await after.check("000000")).toMatchObject({ status: "invalid" });
  }
});

it("with a pepper, the open verification is found at every step of a rotation of the secret (docs/contract.md#slot)", async () => {
  const [old, next] = ["qT7vX2mR9kLw4ZbN8cJfH5sYdG3pAeU6", "Zk3PmW8xQv5LrT1nBy7CjFh2GdS9aEu4"] as const;
  const pepper = "Pm4XzQ8vLk2WnR6tBy9CjFh3GdS7aEu5";
  const before = byNumber({ secret: old, pepper } as Options);
  const { authentication_uuid } = await before.start();
  for (const secret of [[old, next], [next, old], next] as const)
    expect(await before.another({ secret, pepper } as Options).start()).toMatchObject({ status: "denied", authentication_uuid });
});
