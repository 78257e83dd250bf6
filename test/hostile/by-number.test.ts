import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { redisStore } from "../../adapters/store/redis/index.js";
import { fixedClock } from "../../src/testing/index.js";
import { PlainStore, TwoStepStore } from "../store/plain-store.js";
import { type RedisServer, redisIsInstalled, startRedis } from "../support/redis.js";
import { start as noon } from "../support/verifier.js";
import { ahead, chance, type Process, pausable, processes, Story } from "./by-number-kit.js";
import { callbackUrl, drive, ending, ForgetfulStore, fates, type Hook, hook, keyOf, numberAt, pass, postReceipt, receipts, tallied, turns } from "./kit.js";
import { day, hour, minute, roomy } from "./one-commit-kit.js";

type Set = readonly [Process, Process, Process];
const three = (...given: Parameters<typeof processes> extends [number, ...infer Rest] ? Rest : never) => processes(3, ...given) as unknown as Set;
const times = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
/** Everything that a plain store holds. */
const held = ({ records, windows, sums, values, counters }: PlainStore): string =>
  JSON.stringify([
    [...records],
    [...windows].map(([name, members]) => [name, ...members]),
    [...sums].map(([name, parts]) => [name, ...parts]),
    [...values],
    [...counters],
  ]);

describe("random calls, races and store errors over three processes", () => {
  it.each([
    ["one step", () => new PlainStore()],
    ["memory", () => memoryStore({ name: randomUUID() })],
    ["two steps", () => new TwoStepStore()],
  ])("break no rule, on the store: %s (docs/contract.md#start)", async (_, open) => {
    for (let seed = 1; seed <= 5; seed++) {
      const dice = chance(seed * 7919);
      const clock = fixedClock(noon);
      const skew = seed % 3 === 0 ? 2_500 : 0;
      const set = processes(3, open(), { clock, clockSkew: skew / 500 }, (i) => (skew ? { clock: ahead(clock, (i - 1) * skew) as never } : {}));
      const [first] = set as [(typeof set)[0]];
      const story = new Story(clock, first.sender, () => dice.one(["accepted", "accepted", "accepted", "accepted", "unknown", "rejected"] as const));
      for (let step = 0; step < 120; step++) {
        for (const { store } of set) {
          const faulty = dice.next() < 0.25 ? dice.one(fates) : undefined;
          let at = dice.below(4);
          store.fate = () => (faulty && at-- === 0 ? faulty : "done");
        }
        const calls = Array.from({ length: 1 + dice.below(4) }, () => {
          const one = dice.one(set);
          const roll = dice.next();
          const codes = story.sent.map(({ message }) => message.code);
          if (roll < 0.45) return story.call("start", () => one.start(dice.next() < 0.5 ? { callback_url: callbackUrl } : {}));
          if (roll < 0.6) return story.call("cancel", () => one.cancel());
          const code = roll < 0.75 ? (codes.at(-1 - dice.below(4)) ?? "none") : roll < 0.85 ? (codes.at(-1) ?? "none") : "wrong";
          return story.call("check", () => one.check(code), code);
        });
        await drive(clock, Promise.all(calls));
        if (dice.next() < 0.5) for (const { store } of set) await store.release();
        await pass(clock, dice.one([0, 1_000, 31_000, 61_000, 121_000, 301_000, 601_000]), 5_000);
      }
      expect(story.faults({ late: 2_000 + 2 * skew, life: 600_000 + 2 * skew }), `seed ${seed}`).toEqual([]);
      expect(story.sent.length, `seed ${seed}`).toBeGreaterThan(5);
      // The number is not locked permanently.
      for (const { store } of set) {
        store.fate = () => "done";
        await store.release();
      }
      await pass(clock, 2 * minute, 1_000);
      clock.advance(37 * hour);
      first.sender.answer = async () => ({ outcome: "accepted" });
      const again = await drive(clock, first.start());
      expect(again).toMatchObject({ status: "pending", attempt: 1 });
      expect(await first.check(first.sender.codeOf(again.authentication_uuid))).toMatchObject({ status: "valid" });
    }
  });
});

describe("sequential calls in two processes", () => {
  it("return exactly what the contract says (docs/contract.md#start)", async () => {
    for (let seed = 1; seed <= 60; seed++) {
      const dice = chance(seed * 104_729);
      const clock = fixedClock(noon);
      const inner = new ForgetfulStore(clock.now);
      const set = processes(2, inner, { clock });
      const out = (set[0] as (typeof set)[0]).sender;
      let slot: { id: string; expires: number; sends: { at: number; code: string }[]; wrong: number; end?: "verified" | "canceled" } | undefined;
      const sends: number[] = [];
      const guesses: number[] = [];
      const told: string[] = [];
      const within = (times: readonly number[], ms: number) => times.filter((at) => at > clock.now() - ms).length;
      for (let step = 0; step < 80; step++) {
        const one = dice.one(set);
        const now = clock.now();
        const capped = within(sends, 600_000) >= 5 || within(sends, 86_400_000) >= 10;
        const alive = slot && !slot.end && now < slot.expires ? slot : undefined;
        const roll = dice.next();
        if (roll < 0.4) {
          const usedUp = dice.next() < 0.3 ? ("wait" as const) : ("anew" as const);
          const isOpen = alive && (alive.wrong < 5 || usedUp === "wait") ? alive : undefined;
          const cooling = isOpen && now < (isOpen.sends.at(-1)?.at ?? 0) + 30_000 * isOpen.sends.length;
          const status = isOpen && (isOpen.wrong >= 5 || isOpen.sends.length === 5) ? "rate_limited" : cooling ? "denied" : capped ? "rate_limited" : "pending";
          told.push(`${step} start ${usedUp} ${status}`);
          const answer = await one.start({}, { usedUp });
          await turns();
          expect(answer.status, `seed ${seed} ${told.join(", ")}`).toBe(status);
          if (isOpen) expect(answer.authentication_uuid).toBe(isOpen.id);
          else expect(answer.authentication_uuid).not.toBe(slot?.id);
          if (status === "pending") {
            sends.push(now);
            const code = out.codeOf(answer.authentication_uuid);
            if (isOpen) isOpen.sends.push({ at: now, code });
            else slot = { id: answer.authentication_uuid, expires: now + 600_000, sends: [{ at: now, code }], wrong: 0 };
            expect(answer.attempt).toBe(slot?.sends.length);
          } else {
            expect(answer.attempt).toBe(0);
            // A rejected start opens no verification.
            if (!isOpen) slot = alive ? slot : undefined;
          }
          expect(out.messages.length).toBe(sends.length);
        } else if (roll < 0.75) {
          const right = slot && dice.next() < 0.25;
          const code = right ? (dice.one(slot?.sends ?? []).code as string) : "wrong";
          const live = alive?.sends.slice(-2).some((sent) => sent.code === code);
          const locked = within(guesses, 86_400_000) >= 50;
          if (!locked && within(guesses, 36 * hour) >= 50) continue;
          const status = !alive ? "not_found" : alive.wrong >= 5 || locked ? "rate_limited" : live ? "valid" : "invalid";
          told.push(`${step} check ${code} ${status}`);
          const answer = await one.check(code);
          await turns();
          expect(answer.status, `seed ${seed} ${told.join(", ")}`).toBe(status);
          if (alive && status === "valid") alive.end = "verified";
          if (alive && status === "invalid") {
            alive.wrong++;
            guesses.push(now);
          }
        } else if (roll < 0.82) {
          told.push(`${step} cancel ${alive?.id}`);
          const answer = await one.cancel();
          await turns();
          expect(answer?.authentication_uuid, `seed ${seed} ${told.join(", ")}`).toBe(alive?.id);
          if (alive) alive.end = "canceled";
        } else if (roll < 0.88) {
          told.push(`${step} get`);
          if (!slot) continue;
          const answer = await one.get();
          if (now >= slot.expires + 86_400_000) expect(answer).toBeUndefined();
          else {
            const status = slot.end ?? (now >= slot.expires ? "expired" : slot.wrong >= 5 ? "used_up" : "open");
            expect(answer, `seed ${seed} ${told.join(", ")}`).toMatchObject({ authentication_uuid: slot.id, status, attempts: slot.sends.length });
          }
        } else {
          const ms = dice.one([1, 29_999, 30_000, 60_000, 90_000, 120_000, 599_999, 600_000, 3 * hour, 24 * hour]);
          told.push(`${step} +${ms}`);
          clock.advance(ms);
        }
      }
    }
  });
});

describe("a process that holds a copy of an earlier verification (docs/contract.md#check-by-number)", () => {
  it("evaluates codes of the next verification once the checks of the earlier one are used up, in either process", async () => {
    for (let bits = 0; bits < 16; bits++) await usedUp(bits);
  });
  async function usedUp(bits: number): Promise<void> {
    const set = processes(2, new PlainStore());
    const by = (i: number) => set[(bits >> i) & 1] as Process;
    await by(0).start();
    for (let i = 0; i < 5; i++) expect((await by(1).check("wrong")).status).toBe("invalid");
    const next = await by(2).start();
    expect(next).toMatchObject({ status: "pending", attempt: 1 });
    expect(await by(3).check("wrong")).toMatchObject({ status: "invalid", authentication_uuid: next.authentication_uuid });
    expect(await by(3).start({}, { usedUp: "wait" })).toMatchObject({ status: "denied", authentication_uuid: next.authentication_uuid });
    expect(await by(3).check(by(3).sender.codeOf(next.authentication_uuid))).toMatchObject({ status: "valid" });
  }

  it("accepts the code of the next verification after every route rejected the earlier one", async () => {
    const [one, two] = three(new PlainStore());
    let looked = "";
    two.sender.answer = async () => {
      looked = (await one.check("wrong")).status;
      return { outcome: "rejected" };
    };
    await two.start();
    expect(looked, "the code may already be in the user's hand").toBe("invalid");
    two.sender.answer = async () => ({ outcome: "accepted" });
    const next = await two.start();
    expect(next).toMatchObject({ status: "pending", attempt: 1 });
    expect(await one.check(two.sender.codeOf(next.authentication_uuid))).toMatchObject({ status: "valid", authentication_uuid: next.authentication_uuid });
  });

  it.each(["canceled", "verified", "expired"])("after the earlier one was %s, applies start, check, cancel and get to the next verification", async (end) => {
    for (const last of ["start", "check", "cancel", "get", "old code"]) {
      const [one, two] = three(new PlainStore());
      const first = await one.start();
      const code = one.sender.codeOf(first.authentication_uuid);
      if (end === "canceled") expect(await two.cancel()).toMatchObject({ status: "canceled" });
      if (end === "verified") expect(await two.check(code)).toMatchObject({ status: "valid" });
      if (end === "expired") one.clock.advance(600_000);
      const next = await two.start();
      expect(next).toMatchObject({ status: "pending", attempt: 1 });
      const id = next.authentication_uuid;
      expect(id).not.toBe(first.authentication_uuid);
      if (last === "start") expect(await one.start()).toMatchObject({ status: "denied", authentication_uuid: id, attempt: 0 });
      if (last === "check") expect(await one.check(one.sender.codeOf(id))).toMatchObject({ status: "valid", authentication_uuid: id });
      if (last === "cancel") expect(await one.cancel()).toMatchObject({ status: "canceled", authentication_uuid: id });
      if (last === "get") expect(await one.get()).toMatchObject({ status: "open", authentication_uuid: id });
      if (last === "old code") expect(await one.check(code)).toMatchObject({ status: "invalid", authentication_uuid: id });
      expect(one.sender.messages).toHaveLength(2);
      expect(await ending(one.verifier.check({ customer_uuid: one.customer, authentication_uuid: first.authentication_uuid, check_code: code }))).toBe(
        end === "verified" ? "already_validated" : "expired_auth",
      );
    }
  });
});

describe("a process that was suspended for minutes (docs/contract.md#late-hand-over)", () => {
  for (const fate of ["held", "late"] as const) {
    for (const first of ["timers first", "answers first"]) {
      it(`sends nothing for a second start whose commit was ${fate}, if another process canceled and started again (${first})`, async () => {
        const clock = fixedClock(noon);
        const still = pausable(clock);
        const [one, two] = three(new PlainStore(), { clock }, (i) => (i === 0 ? { clock: still as never } : {}));
        const begun = await one.start();
        clock.advance(31_000);
        let isOn = true;
        one.store.fate = (method) => (method === "commit" && isOn ? fate : "done");
        const call = ending(one.start());
        await turns();
        isOn = false;
        still.pause();
        await pass(clock, 5 * minute, minute);
        expect(await two.cancel()).toMatchObject({ status: "canceled", authentication_uuid: begun.authentication_uuid });
        // A commit that landed counts as a message that may have been sent, until it is undone.
        const next = await two.start();
        expect(next).toMatchObject({ status: "pending", attempt: 1 });
        if (first === "timers first") still.resume();
        await one.store.release();
        await turns();
        if (first === "answers first") still.resume();
        await drive(clock, call);
        await pass(clock, minute, 1_000);
        const sent = one.sender.messages.map(({ authentication_uuid: id, attempt }) => `${id}:${attempt}`);
        expect(sent).toEqual([`${begun.authentication_uuid}:1`, `${next.authentication_uuid}:1`]);
        expect(["denied", "unavailable"]).toContain(await call);
        expect(await two.check(one.sender.codeOf(next.authentication_uuid))).toMatchObject({ status: "valid" });
        // Nor does it cost a message: of five in ten minutes, two went out.
        clock.advance(1);
        const more: string[] = [];
        for (let i = 0; i < 4; i++) {
          more.push((await two.start()).status);
          await two.cancel();
        }
        expect(more).toEqual(["pending", "pending", "pending", "rate_limited"]);
      });

      it(`sends nothing for a first start whose commit was ${fate}, if another process started and verified others (${first})`, async () => {
        const clock = fixedClock(noon);
        const still = pausable(clock);
        const [one, two] = three(new PlainStore(), { clock }, (i) => (i === 0 ? { clock: still as never } : {}));
        let isOn = true;
        one.store.fate = (method) => (method === "commit" && isOn ? fate : "done");
        const call = ending(one.start());
        await turns();
        isOn = false;
        still.pause();
        await pass(clock, 11 * minute, minute);
        const ids: string[] = [];
        for (let i = 0; i < 3; i++) {
          const { status, authentication_uuid: id } = await two.start();
          expect(status).toBe("pending");
          ids.push(id);
          if (i < 2) expect(await two.check(two.sender.codeOf(id))).toMatchObject({ status: "valid" });
        }
        if (first === "timers first") still.resume();
        await one.store.release();
        await turns();
        if (first === "answers first") still.resume();
        await drive(clock, call);
        await pass(clock, minute, 1_000);
        expect(two.sender.messages.map(({ authentication_uuid: id }) => id)).toEqual(ids);
        expect(["denied", "unavailable"]).toContain(await call);
        expect(await one.check(two.sender.codeOf(ids[2] as string))).toMatchObject({ status: "valid", authentication_uuid: ids[2] });
      });

      it(`applies a check and a cancel whose commit was ${fate} only to the verification that they read (${first})`, async () => {
        for (const last of ["check", "cancel"]) {
          const clock = fixedClock(noon);
          const still = pausable(clock);
          const [one, two] = three(new PlainStore(), { clock }, (i) => (i === 0 ? { clock: still as never } : {}));
          const begun = await one.start();
          let isOn = true;
          one.store.fate = (method) => (method === "commit" && isOn ? fate : "done");
          const call = last === "check" ? ending(one.check(one.sender.codeOf(begun.authentication_uuid))) : ending(one.cancel() as never);
          await turns();
          isOn = false;
          still.pause();
          await pass(clock, 2 * minute, minute);
          const landed = fate === "late";
          expect(await two.cancel()).toEqual(landed ? undefined : expect.objectContaining({ status: "canceled" }));
          const next = await two.start();
          expect(next).toMatchObject({ status: "pending", attempt: 1 });
          await one.store.release();
          still.resume();
          const ended = await drive(clock, call);
          await pass(clock, minute, 1_000);
          if (!landed) expect(["valid", "canceled"]).not.toContain(ended);
          expect(await two.get()).toMatchObject({ status: "open", authentication_uuid: next.authentication_uuid });
          expect(await one.check(one.sender.codeOf(next.authentication_uuid))).toMatchObject({ status: "valid" });
        }
      });
    }
  }

  it("after a process died between commit and message, the event is `unknown` and the next start waits for the cool-down", async () => {
    for (const at of ["begin", "again"]) {
      const clock = fixedClock(noon);
      const dead = pausable(clock);
      const [one, two] = three(new PlainStore(), { clock }, (i) => (i === 0 ? { clock: dead as never } : {}));
      if (at === "again") {
        await two.start({ callback_url: callbackUrl });
        await one.get();
        clock.advance(31_000);
      }
      one.store.fate = (method) => (method === "commit" ? "deaf" : "done");
      void one.start({ callback_url: callbackUrl }).catch(() => {});
      await turns();
      dead.pause();
      const before = at === "again" ? 1 : 0;
      expect(one.sender.messages).toHaveLength(before);
      clock.advance(3_000);
      const denied = await two.start();
      expect(denied).toMatchObject({ status: "denied", is_open: true });
      clock.advance(60_000);
      for (let i = 0; i < 3; i++) {
        await two.verifier.flush();
        await turns();
      }
      const id = denied.authentication_uuid;
      expect(two.hook.story(id)).toEqual(at === "again" ? ["1:submitted", "2:unknown"] : ["1:unknown"]);
      expect(await two.start()).toMatchObject({ status: "pending", attempt: before + 2, authentication_uuid: id });
      expect(await two.check(two.sender.codeOf(id, before + 2))).toMatchObject({ status: "valid" });
    }
  });
});

it("with clocks 5 s apart, around expiry and cool-down, one verification is open and only its codes are valid (docs/contract.md#every-window)", async () => {
  for (const [a, b] of [
    [2_500, -2_500],
    [-2_500, 2_500],
  ]) {
    const clock = fixedClock(noon);
    const [one, two] = three(new PlainStore(), { clock, clockSkew: 5 }, (i) => ({ clock: ahead(clock, (i === 0 ? a : b) as number) as never }));
    const codes: string[] = [];
    const first = await one.start();
    codes.push(one.sender.codeOf(first.authentication_uuid));
    for (const ms of [27_499, 1, 2_500, 2_500, 564_999, 1, 2_500, 2_500, 27_500, 2_500, 2_500]) {
      clock.advance(ms);
      for (const each of [one, two]) {
        const { authentication_uuid: id, status } = await each.start();
        const latest = each.sender.messages.at(-1);
        expect(["pending", "denied"]).toContain(status);
        if (status === "pending") expect(latest?.authentication_uuid).toBe(id);
      }
    }
    const ids = new Set(one.sender.messages.map(({ authentication_uuid: id }) => id));
    expect(ids.size).toBe(2);
    for (const code of codes) for (const each of [one, two]) expect((await each.check(code)).status).toBe("invalid");
    const last = one.sender.messages.at(-1);
    const answers = await Promise.all(times(20, (i) => ending([one, two][i % 2]?.check(last?.code as string) as never)));
    expect(tallied(answers)).toEqual({ valid: 1, not_found: 19 });
  }
});

describe("scopes and customers (docs/contract.md#slot)", () => {
  const customers = times(3, () => randomUUID());
  const open = (policy = {}) =>
    processes(2, new PlainStore(), { customers: customers.map((customer_uuid) => ({ customer_uuid, keys: [keyOf(customer_uuid)] })), policy } as never);
  const phone_number = numberAt(1);

  it("20 scopes of 3 customers with one number are 60 verifications, and no code is valid in another", async () => {
    const [one, two] = open(roomy) as [Process, Process];
    const all = customers.flatMap((customer_uuid) => times(20, (i) => ({ customer_uuid, scope: `scope-${i}` })));
    const codes = new Map<string, string>();
    const ids = await Promise.all(
      all.map(async ({ customer_uuid, scope }) => {
        const { authentication_uuid: id, status } = await one.verifier.verifications.start({ customer_uuid, phone_number }, { scope });
        expect(status).toBe("pending");
        codes.set(`${customer_uuid} ${scope}`, one.sender.codeOf(id));
        return id;
      }),
    );
    expect(new Set(ids).size).toBe(60);
    for (const [at, { customer_uuid, scope }] of all.entries()) {
      const other = all[(at + 21) % 60] as (typeof all)[0];
      const check = (check_code: string, scope: string) => two.verifier.verifications.check({ customer_uuid, phone_number, check_code }, { scope });
      expect(await check(codes.get(`${other.customer_uuid} ${other.scope}`) as string, scope)).toMatchObject({
        status: "invalid",
        authentication_uuid: ids[at],
      });
      expect(await check(codes.get(`${customer_uuid} ${scope}`) as string, scope)).toMatchObject({ status: "valid", authentication_uuid: ids[at] });
      expect(await check(codes.get(`${customer_uuid} ${scope}`) as string, scope)).toEqual({ status: "not_found" });
    }
    for (const customer_uuid of customers) expect(await one.verifier.history({ customer_uuid, phone_number })).toHaveLength(20);
    // An id of one customer finds nothing for another.
    const stolen = { customer_uuid: customers[1] as string, authentication_uuid: ids[0] as string };
    expect(await two.verifier.verifications.get(stolen)).toBeUndefined();
    expect(await two.verifier.verifications.cancel(stolen)).toBeUndefined();
    expect(await two.verifier.verifications.check({ ...stolen, check_code: "123456" })).toEqual({ status: "not_found" });
  });

  it("scopes share the number's caps and guesses: five messages in ten minutes, fifty wrong codes a day", async () => {
    const [one, two] = open() as [Process, Process];
    const customer_uuid = customers[0] as string;
    const set = [one, two];
    const began: Record<string, number> = {};
    let wrong = 0;
    for (let round = 0; round < 20; round++) {
      const scope = `scope-${round}`;
      const { status } = await one.verifier.verifications.start({ customer_uuid, phone_number }, { scope });
      began[status] = (began[status] ?? 0) + 1;
      const check = (i: number) => (set[i % 2] as Process).verifier.verifications.check({ customer_uuid, phone_number, check_code: "wrong" }, { scope });
      const answers = await Promise.all(times(20, (i) => ending(check(i) as never)));
      wrong += tallied(answers)["invalid"] ?? 0;
      if (round === 9) one.clock.advance(601_000);
    }
    expect(began).toEqual({ pending: 10, rate_limited: 10 });
    expect(wrong).toBe(50);
    one.clock.advance(day - 599_000);
    const { authentication_uuid: id, status } = await one.verifier.verifications.start({ customer_uuid, phone_number }, { scope: "late" });
    expect(status).toBe("pending");
    const last = await two.verifier.verifications.check({ customer_uuid, phone_number, check_code: one.sender.codeOf(id) }, { scope: "late" });
    expect(["rate_limited", "valid"]).toContain(last.status);
  });
});

describe("callbacks of one day's verifications (docs/contract.md#slot)", () => {
  /** Eight verifications that end in four ways, with receipts that arrive after the next one began. */
  async function busyDay(set: Set, form?: "prelude-v2"): Promise<{ ids: string[]; expected: Map<string, string[]> }> {
    const [one] = set;
    const ids: string[] = [];
    const expected = new Map<string, string[]>();
    const late: (() => Promise<void>)[] = [];
    for (let round = 0; round < 8; round++) {
      const at = set[round % 3] as Process;
      const { authentication_uuid: id, status } = await at.start({ callback_url: callbackUrl, ...(form && { callback_form: form }) });
      expect(status, `round ${round}`).toBe("pending");
      ids.push(id);
      const story = ["1:submitted"];
      expected.set(id, story);
      const message = one.sender.messages.at(-1) as (typeof one.sender.messages)[0];
      const end = (["verified", "canceled", "expired", "used up"] as const)[round % 4];
      if (end === "verified") expect(await (set[(round + 1) % 3] as Process).check(message.code)).toMatchObject({ status: "valid" });
      if (end === "canceled") expect(await (set[(round + 1) % 3] as Process).cancel()).toMatchObject({ status: "canceled" });
      if (end === "used up") for (let i = 0; i < 5; i++) await at.check("wrong");
      one.clock.advance(end === "expired" ? 601_000 : 200_000);
      for (const receipt of late.splice(0)) await receipt();
      late.push(async () => {
        const final = round % 2 ? "delivered" : "undeliverable";
        expect(await postReceipt((set[(round + 2) % 3] as Process).verifier, message, final)).toBeLessThan(300);
        story.push(`1:${final}`);
      });
      await turns();
    }
    for (const receipt of late.splice(0)) await receipt();
    await turns();
    return { ids, expected };
  }

  it("a receiver that was down all day gets every event when it is back, in order and for the right verification", async () => {
    const hooked = hook();
    const set = three(new PlainStore(), { receipts, callbacks: { sender: hooked } });
    hooked.answer = async () => ({ status: 500 });
    const { ids, expected } = await busyDay(set);
    await set[0].verifier.flush();
    expect(hooked.posted.length).toBeGreaterThan(0);
    hooked.posted.length = 0;
    hooked.answer = async () => ({ status: 204 });
    for (let i = 0; i < 60; i++) {
      set[0].clock.advance(hour);
      await (set[i % 3] as Process).verifier.flush();
      await turns(2);
    }
    for (const id of ids) {
      expect([...new Set(hooked.story(id))], id).toEqual(expected.get(id));
      const sequences = hooked.posted.filter(({ event }) => event.data.authentication_uuid === id).map(({ event }) => event.data.sequence);
      expect(
        [...new Set(sequences)].sort((a, b) => a - b),
        id,
      ).toEqual([1, 2]);
    }
    expect(new Set(hooked.posted.map(({ event }) => event.data.authentication_uuid))).toEqual(new Set(ids));
    // A webhook id always belongs to the same event.
    const named = new Map(hooked.posted.map(({ id, body }) => [id, body]));
    for (const { id, body } of hooked.posted) expect(body).toBe(named.get(id));
    expect(named.size).toBe(16);
  });

  it("events survive a failed or lost commit of the start that begins the next verification", async () => {
    for (const fate of ["refused", "lost", "deaf", "held"] as const) {
      for (let nth = 0; nth < 3; nth++) {
        const hooked: Hook = hook();
        hooked.answer = async () => ({ status: 500 });
        const [one, two] = three(new PlainStore(), { callbacks: { sender: hooked } });
        const first = await one.start({ callback_url: callbackUrl });
        await one.cancel();
        let at = nth;
        one.store.fate = (method) => (method === "commit" && at-- === 0 ? fate : "done");
        await drive(one.clock, ending(one.start({ callback_url: callbackUrl })));
        await one.store.release();
        await pass(one.clock, minute, 1_000);
        const next = await drive(one.clock, two.start({ callback_url: callbackUrl }));
        const id = next.authentication_uuid;
        hooked.posted.length = 0;
        hooked.answer = async () => ({ status: 204 });
        for (let i = 0; i < 30; i++) {
          one.clock.advance(hour);
          await (i % 2 ? one : two).verifier.flush();
          await turns(2);
        }
        expect([...new Set(hooked.story(first.authentication_uuid))], `${fate} ${nth}`).toEqual(["1:submitted"]);
        expect(hooked.story(id).length, `${fate} ${nth}`).toBeGreaterThan(0);
        const sent = new Set(one.sender.messages.map(({ authentication_uuid, attempt }) => `${authentication_uuid}:${attempt}`));
        for (const { event } of hooked.posted) {
          const { authentication_uuid, attempt, status } = event.data;
          if (status === "submitted") expect(sent).toContain(`${authentication_uuid}:${attempt}`);
        }
      }
    }
  });

  it("history and explain find each; after erase, nothing stored reveals the number or an id, and nothing is posted", async () => {
    const hooked = hook();
    const store = new PlainStore();
    const set = three(store, { receipts, callbacks: { sender: hooked } });
    const [one, two] = set;
    hooked.answer = async () => ({ status: 500 });
    const { ids } = await busyDay(set);
    await one.verifier.flush();
    const named = { customer_uuid: one.customer, phone_number: numberAt(1) };
    const known = await two.verifier.history(named);
    expect(known.map(({ authentication_uuid: id }) => id)).toEqual([...ids].reverse());
    for (const [at, id] of ids.entries()) {
      const told = await two.verifier.explain({ customer_uuid: one.customer, authentication_uuid: id });
      expect(told).toMatchObject({ authentication_uuid: id, validated: at % 4 === 0, wrong_codes: at % 4 === 3 ? 5 : 0 });
      expect(await one.verifier.verifications.get({ customer_uuid: one.customer, authentication_uuid: id })).toMatchObject({
        status: at === 7 ? "used_up" : ["verified", "canceled", "expired", at === 3 ? "expired" : "used_up"][at % 4],
      });
    }
    expect((await two.verifier.erase(named)).erased).toBe(8);
    const left = held(store);
    for (const id of ids) expect(left).not.toContain(id);
    expect(left).not.toContain(numberAt(1).slice(1));
    hooked.posted.length = 0;
    for (let i = 0; i < 30; i++) {
      one.clock.advance(hour);
      await (set[i % 3] as Process).verifier.flush();
    }
    expect(hooked.posted).toEqual([]);
    expect(await two.verifier.history(named)).toEqual([]);
    expect(await one.get()).toBeUndefined();
    expect(await two.check("123456")).toEqual({ status: "not_found" });
    expect(await two.start()).toMatchObject({ status: "pending", attempt: 1 });
  });

  it("after another process erased an open verification, check, cancel and start find nothing of it", async () => {
    const [one, two] = three(new PlainStore());
    const first = await one.start();
    await two.verifier.erase({ customer_uuid: one.customer, phone_number: numberAt(1) });
    expect(await one.check(one.sender.codeOf(first.authentication_uuid))).toEqual({ status: "not_found" });
    expect(await one.cancel()).toBeUndefined();
    const next = await one.start();
    expect(next).toMatchObject({ status: "pending", attempt: 1 });
    expect(await two.check(one.sender.codeOf(next.authentication_uuid))).toMatchObject({ status: "valid" });
  });
});

describe("guesses and messages of an attacker (docs/contract.md#guesses-claimed)", () => {
  it("starts, cancels, scopes and code lengths allow ten messages and up to fifty wrong codes a day", async () => {
    const set = three(new PlainStore());
    const [one] = set;
    const open = { sent: 0, wrong: 0 };
    for (let hourOf = 0; hourOf < 22; hourOf++) {
      for (let i = 0; i < 12; i++) {
        const at = set[i % 3] as Process;
        const scope = ["default", "login", "pay"][i % 3] as string;
        const { status } = await at.start({ code_length: 6 + (i % 5) }, { scope, usedUp: i % 2 ? "wait" : "anew" });
        if (status === "pending") open.sent++;
        const answers = await Promise.all(times(7, (j) => ending((set[j % 3] as Process).check(String(100_000 + j), { scope }) as never)));
        open.wrong += tallied(answers)["invalid"] ?? 0;
        expect((await at.check(one.sender.messages.at(-1)?.code as string, { scope })).status).not.toBe("valid");
        if (i % 2) await at.cancel(scope);
      }
      one.clock.advance(hour);
    }
    expect(open.sent).toBe(10);
    expect(one.sender.messages).toHaveLength(10);
    expect(open.wrong).toBeLessThanOrEqual(50);
    expect(open.wrong).toBeGreaterThanOrEqual(45);
  });

  it("unlock resets the number's caps and guesses once a day, and leaves verifications unchanged", async () => {
    const [one, two] = three(new PlainStore());
    const named = { customer_uuid: one.customer, phone_number: numberAt(1) };
    for (let i = 0; i < 5; i++) {
      expect((await one.start()).status).toBe("pending");
      for (let j = 0; j < 5; j++) await two.check("wrong");
    }
    expect((await one.start()).status).toBe("rate_limited");
    expect((await two.verifier.unlock(named)).unlocked).toBe(true);
    const next = await one.start();
    expect(next).toMatchObject({ status: "pending", attempt: 1 });
    expect((await two.verifier.unlock(named)).unlocked).toBe(false);
    expect(await two.check(one.sender.codeOf(next.authentication_uuid))).toMatchObject({ status: "valid" });
    expect(await two.check(one.sender.codeOf(next.authentication_uuid))).toEqual({ status: "not_found" });
    expect(tallied((await one.verifier.history(named)).map(({ status }) => status))).toEqual({ pending: 6, rate_limited: 1 });
  });
});

describe("secrets rotated during a verification (docs/contract.md#secret-rotation)", () => {
  it("with both secrets in either order, the open verification is found, and concurrent starts begin one", async () => {
    const old = "qT7vX2mR9kLw4ZbN8cJfH5sYdG3pAeU6";
    const pepper = "a-pepper-of-more-than-thirty-two-characters";
    for (const fresh of ["zk3PmW8xQv5LrT1nBy7CjFh2GdS9aEu4", "Ak3PmW8xQv5LrT1nBy7CjFh2GdS9aEu4"]) {
      const store = new PlainStore();
      const secrets = [old, [old, fresh], [fresh, old]];
      const [before, one, two] = three(store, { pepper } as never, (i) => ({ secret: secrets[i] as never }));
      const first = await before.start();
      one.clock.advance(31_000);
      expect(await one.start()).toMatchObject({ status: "pending", attempt: 2, authentication_uuid: first.authentication_uuid });
      expect(await two.get()).toMatchObject({ attempts: 2, authentication_uuid: first.authentication_uuid });
      expect(await two.check("wrong")).toMatchObject({ status: "invalid" });
      expect(await two.check(one.sender.codeOf(first.authentication_uuid, 1))).toMatchObject({ status: "valid" });
      expect(await one.check(one.sender.codeOf(first.authentication_uuid, 2))).toEqual({ status: "not_found" });
      const racing = await Promise.all(times(20, (i) => ending((i % 2 ? one : two).start() as never)));
      expect(tallied(racing)).toEqual({ pending: 1, denied: 19 });
      const code = one.sender.messages.at(-1)?.code as string;
      const checks = await Promise.all(times(20, (i) => ending((i % 2 ? one : two).check(code) as never)));
      expect(tallied(checks)).toEqual({ valid: 1, not_found: 19 });
    }
  });
});

describe("marked repeats (docs/contract.md#repeated-starts)", () => {
  const marked = (request: string) => ({ repeat: { request, isRepeat: true } });
  const first = (request: string) => ({ repeat: { request, isRepeat: false } });

  it("of another request, after 130 s or with other codes count as new calls", async () => {
    const set = three(new PlainStore());
    const [one, two] = set;
    expect(await one.start({}, first("a"))).toMatchObject({ status: "pending", attempt: 1 });
    expect(await two.start({}, marked("a"))).toMatchObject({ status: "pending", attempt: 1 });
    expect(await two.start({}, marked("b"))).toMatchObject({ status: "denied", attempt: 0 });
    for (let i = 0; i < 50; i++) expect(await (set[i % 3] as Process).start({}, marked("a"))).toMatchObject({ status: "pending", attempt: 1 });
    expect(one.sender.messages).toHaveLength(1);
    one.clock.advance(131_000);
    expect(await two.start({}, marked("a"))).toMatchObject({ status: "pending", attempt: 2 });
    expect(one.sender.messages).toHaveLength(2);

    // The mark does not bypass the budget: each different code counts once.
    const answers: string[] = [];
    for (let i = 0; i < 12; i++) answers.push((await (set[i % 3] as Process).check(`10000${i}`, marked(`10000${i}`))).status);
    expect(tallied(answers)).toEqual({ invalid: 5, rate_limited: 7 });
  });

  it("a wrong code counts once with its repeats in any process, and the right code is `valid` again only if marked", async () => {
    const set = three(new PlainStore());
    const [one] = set;
    const { authentication_uuid: id } = await one.start();
    const code = one.sender.codeOf(id);
    expect(await one.check("111112", first("w"))).toMatchObject({ status: "invalid", remaining_checks: 4 });
    for (let i = 0; i < 9; i++) expect(await (set[i % 3] as Process).check("111112", marked("w"))).toMatchObject({ status: "invalid", remaining_checks: 4 });
    // Unmarked, each counts.
    expect(await one.check("111112", first("w"))).toMatchObject({ status: "invalid", remaining_checks: 3 });
    expect(await one.check(code, first("r"))).toMatchObject({ status: "valid" });
    for (let i = 0; i < 9; i++) expect(await (set[i % 3] as Process).check(code, first("r"))).toEqual({ status: "not_found" });
    for (let i = 0; i < 9; i++) expect(await (set[i % 3] as Process).check(code, marked("r"))).toMatchObject({ status: "valid", authentication_uuid: id });
    for (let i = 0; i < 9; i++) expect((await (set[i % 3] as Process).check(one.sender.codeOf(id), marked("other"))).status).toBe("not_found");
  });

  it("every process finds the result after a newer verification began, without using up its guesses; marked, for 130 s", async () => {
    for (const [unmarked, call] of [[first("c"), marked("c")] as const, [{ idempotencyKey: "c" }, { idempotencyKey: "c" }] as const]) {
      const set = three(new PlainStore());
      const [one, two] = set;
      const { authentication_uuid: id } = await one.start();
      const code = one.sender.codeOf(id);
      expect(await one.check("111112", { idempotencyKey: "w" })).toMatchObject({ status: "invalid" });
      expect(await one.check(code, unmarked)).toMatchObject({ status: "valid" });
      const next = await two.start();
      for (const each of set) {
        expect(await each.check(code, call)).toMatchObject({ status: "valid", authentication_uuid: id, phone_number: numberAt(1) });
        expect(await each.check("111112", { idempotencyKey: "w" })).toMatchObject({ status: "invalid", authentication_uuid: id });
        expect(await each.get()).toMatchObject({ status: "open", remaining_checks: 5, authentication_uuid: next.authentication_uuid });
      }
      await expect(one.check("222223", { idempotencyKey: "w" })).rejects.toMatchObject({ code: "bad_request" });
      one.clock.advance(131_000);
      expect(await two.check(code, call)).toMatchObject("repeat" in call ? { status: "invalid", remaining_checks: 4 } : { status: "valid" });
      expect(await one.check(one.sender.codeOf(next.authentication_uuid), first("d"))).toMatchObject({ status: "valid" });
      await one.verifier.erase({ customer_uuid: one.customer, phone_number: numberAt(1) });
      for (const each of set) expect((await each.check(code, call)).status).toBe("not_found");
    }
  });

  it("other codes under the key of the previous check count in the newer verification, until the key no longer returns `valid` (docs/contract.md#idempotency)", async () => {
    const [one, two] = three(new PlainStore());
    const { authentication_uuid: id } = await one.start();
    const code = one.sender.codeOf(id);
    expect(await one.check(code, { idempotencyKey: "k" })).toMatchObject({ status: "valid" });
    await two.start();
    const wrong = (guess: number) => one.check(String(guess + 100_000).replace(code, "999999"), { idempotencyKey: "k" });
    for (let guess = 0; guess < 5; guess++) await expect(wrong(guess)).rejects.toMatchObject({ code: "bad_request" });
    for (const each of [one, two]) expect(await each.check(code, { idempotencyKey: "k" })).not.toMatchObject({ status: "valid" });
  });

  it("a verified number stays encrypted for repeats under a key or marked by id, and is masked otherwise (docs/contract.md#sealed-number)", async () => {
    const stored = async (check: (one: Process, id: string, code: string) => Promise<{ status: string }>) => {
      const store = new PlainStore();
      const [one] = three(store);
      const { authentication_uuid: id } = await one.start();
      expect((await check(one, id, one.sender.codeOf(id))).status).toBe("valid");
      return [...store.records.values()].map(({ data }) => (data.includes("****") ? "masked" : "encrypted"));
    };
    const byId = (one: Process, authentication_uuid: string, check_code: string) => ({ customer_uuid: one.customer, authentication_uuid, check_code });
    expect(await stored((one, _, code) => one.check(code, first("c")))).toEqual(["masked"]);
    expect(await stored((one, _, code) => one.check(code))).toEqual(["masked"]);
    expect(await stored((one, _, code) => one.check(code, { idempotencyKey: "k" }))).toEqual(["encrypted"]);
    expect(await stored((one, ...of) => one.verifier.verifications.check(byId(one, ...of), first("c")))).toEqual(["encrypted"]);
    expect(await stored((one, ...of) => one.verifier.check(byId(one, ...of)))).toEqual(["masked"]);
  });

  it("do not reopen a canceled verification", async () => {
    const set = three(new PlainStore());
    const [one, two] = set;
    const { authentication_uuid: id } = await one.start({}, first("a"));
    await two.cancel();
    const again = await one.start({}, marked("a"));
    expect(again).toMatchObject({ status: "pending", attempt: 1, authentication_uuid: id, is_open: false });
    expect(one.sender.messages).toHaveLength(1);
    for (const each of set) {
      for (const mark of [first("c"), marked("c")]) expect((await each.check(one.sender.codeOf(id), mark)).status).not.toBe("valid");
    }
  });

  it("concurrent repeats under one key or mark send one message and count once", async () => {
    for (const call of [{ idempotencyKey: "k" }, marked("a")]) {
      const set = three(new PlainStore());
      const [one] = set;
      const starts = await Promise.all(times(60, (i) => (set[i % 3] as Process).start({}, call)));
      expect(one.sender.messages).toHaveLength(1);
      expect(new Set(starts.map(({ status, attempt, authentication_uuid: id }) => `${status} ${attempt} ${id}`))).toEqual(
        new Set([`pending 1 ${one.sender.messages[0]?.authentication_uuid}`]),
      );
      const wrong = await Promise.all(times(60, (i) => ending((set[i % 3] as Process).check("111112", call) as never)));
      expect(tallied(wrong)).toEqual({ invalid: 60 });
      expect(await one.get()).toMatchObject({ remaining_checks: 4 });
    }
  });
});

describe("requested lengths and locales (docs/contract.md#code-length)", () => {
  it("lengths 6 to 10 work; shorter ones are rejected with the calculation, invalid ones with `bad_request`, before any store call", async () => {
    for (const code_length of [6, 7, 8, 9, 10]) {
      const [one, two] = three(new PlainStore());
      const { authentication_uuid: id } = await one.start({ code_length });
      const code = one.sender.codeOf(id);
      expect(code).toMatch(new RegExp(`^\\d{${code_length}}$`));
      expect(await two.check(code.slice(1))).toMatchObject({ status: "invalid" });
      expect(await two.check(code)).toMatchObject({ status: "valid" });
    }
    const [one] = three(new PlainStore());
    for (const code_length of [4, 5, 3, 11, 0, -6, 6.5, Number.NaN, Number.POSITIVE_INFINITY, 1e9, "6", null, true, [6], {}, 2n ** 64n]) {
      await expect(one.start({ code_length: code_length as never }), String(code_length)).rejects.toMatchObject({ code: "bad_request" });
    }
    await expect(one.start({ code_length: 4 })).rejects.toThrow(/10.*5.*10\^-4|0\.005/);
    expect(one.sender.messages).toEqual([]);
    expect(one.store.calls).toEqual([]);
  });

  it("a shorter length is accepted if the guess budget allows it (docs/contract.md#guess-budget)", async () => {
    const policy = {
      checks: 1,
      limits: {
        perNumber: [
          { limit: 1, window: 600 },
          { limit: 1, window: 86_400 },
        ],
      },
    };
    const [one] = three(new PlainStore(), { policy });
    await expect(one.start({ code_length: 4 })).resolves.toMatchObject({ status: "pending" });
    expect(one.sender.messages[0]?.code).toMatch(/^\d{4}$/);
  });

  it("unknown locales get a configured text; malformed locales and other fields are `bad_request`, before any store call", async () => {
    const text = { default: "Your code is {code}", fr: "Votre code est {code}" };
    for (const locale of ["toString", "valueOf", "xx", "zz-ZZ", "en_US", "FR-fr", "pt-BR-x-y"]) {
      const [one] = three(new PlainStore(), { message: { text } } as never);
      expect((await one.start({ locale })).status, locale).toBe("pending");
      expect(one.sender.messages[0]?.text, locale).toMatch(/^(Your code is|Votre code est) \d{6}$/);
    }
    const [one] = three(new PlainStore(), { message: { text } } as never);
    for (const locale of [
      "",
      "-",
      "e",
      "en-",
      "__proto__",
      "constructor",
      "en\n",
      "en fr",
      "x".repeat(10_000),
      `en${"-a".repeat(500)}`,
      "\u0000",
      7,
      null,
      ["fr"],
      {},
    ]) {
      await expect(one.start({ locale: locale as never }), String(locale)).rejects.toMatchObject({ code: "bad_request" });
    }
    for (const fields of [
      { correlation_id: "" },
      { correlation_id: "a\nb" },
      { correlation_id: "x".repeat(129) },
      { callback_form: "toString" },
      { callback_url: "http://receiver.example" },
    ]) {
      await expect(one.start(fields as never)).rejects.toMatchObject({ code: "bad_request" });
    }
    for (const scope of ["", "A", "a b", "x".repeat(33), "__proto__", 7, null]) {
      await expect(one.start({}, { scope: scope as never }), String(scope)).rejects.toMatchObject({ code: "bad_request" });
    }
    expect(one.sender.messages).toEqual([]);
    expect(one.store.calls).toEqual([]);
  });
});

describe("rejections and floods (docs/contract.md#refusal-consumes-nothing)", () => {
  it("calls that are rejected or find nothing change nothing in the store", async () => {
    const store = new PlainStore();
    const [one, two] = three(store);
    const same = async (what: string, call: () => Promise<unknown>) => {
      await turns();
      const before = held(store);
      await call();
      await turns();
      expect(held(store) === before, what).toBe(true);
    };
    await same("a check of nothing", () => two.check("123456"));
    await same("a cancel of nothing", () => two.cancel());
    await same("a get of nothing", () => two.get());
    await one.start();
    await same("a start within the cool-down", () => two.start());
    await same("under a key", () => two.start({}, { idempotencyKey: "k" }));
    await same("marked", () => two.start({}, { repeat: { request: "a", isRepeat: true } }));
    for (let i = 0; i < 5; i++) await one.check("wrong");
    await same("a check beyond the checks", () => two.check("wrong"));
    await same("a start that waits", () => two.start({}, { usedUp: "wait" }));
    await same("a get", () => two.get());
    await one.cancel();
    await same("a check of a canceled one", () => two.check("wrong"));
    await same("a cancel of a canceled one", () => two.cancel());
    expect(one.sender.messages).toHaveLength(1);
  });

  it("3,000 starts beyond the caps, over 300 scopes, add at most twenty records an hour", async () => {
    const store = new PlainStore();
    const set = three(store);
    const [one] = set;
    for (let i = 0; i < 5; i++) {
      await one.start();
      await one.cancel();
    }
    await turns();
    const before = store.records.size;
    for (let i = 0; i < 30; i++) {
      const answers = await Promise.all(times(100, (j) => (set[j % 3] as Process).start({}, { scope: `scope-${(i * 100 + j) % 300}` })));
      for (const { status, attempt, is_open } of answers) expect([status, attempt, is_open]).toEqual(["rate_limited", 0, false]);
    }
    await turns();
    expect(store.records.size - before).toBeLessThanOrEqual(20);
    expect(one.sender.messages).toHaveLength(5);
  });

  it.each(["rejected", "throws", "hangs", "nonsense"])(
    "600 concurrent starts with a carrier that fails (%s) send at most five messages, and every call returns",
    async (how) => {
      const set = three(new PlainStore());
      const [one] = set;
      let most = 0;
      one.sender.answer = async () => {
        most = Math.max(most, one.sender.messages.length);
        if (how === "throws") throw new Error("down");
        if (how === "hangs") return new Promise<never>(() => {});
        return how === "rejected" ? { outcome: "rejected" } : ("?" as never);
      };
      const answers = await drive(one.clock, Promise.all(times(600, (i) => ending((set[i % 3] as Process).start() as never))));
      expect(answers.filter((status) => !["pending", "denied", "rate_limited", "unavailable"].includes(status))).toEqual([]);
      expect(one.sender.messages.length).toBeLessThanOrEqual(5);
      expect(one.sender.messages.length).toBeGreaterThan(0);
      await pass(one.clock, minute, 1_000);
      const code = one.sender.messages.at(-1)?.code as string;
      const checks = tallied(await Promise.all(times(60, (i) => ending((set[i % 3] as Process).check(code) as never))));
      expect(checks["valid"] ?? 0).toBe(how === "rejected" ? 0 : 1);
    },
  );
});

describe.runIf(redisIsInstalled("verification by number on Redis"))("three processes on one Redis, each on its own connection", () => {
  let server: RedisServer;
  const clients: Redis[] = [];
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(async () => {
    for (const client of clients) client.disconnect();
    await server.stop();
  });
  const fleet = () => {
    const clock = fixedClock(Date.now());
    const customer = randomUUID();
    const shared = processes(1, new PlainStore(), { clock, customer })[0] as Process;
    return times(3, () => {
      const client = new Redis(server.url);
      clients.push(client);
      return processes(1, redisStore({ client }), {
        clock,
        customer,
        sender: shared.sender,
        callbacks: { sender: shared.hook },
        storeTimeout: 60,
      })[0] as Process;
    }) as unknown as Set;
  };

  it("each round of concurrent starts, cancels and checks has one message and one success or cancellation", async () => {
    const set = fleet();
    const [one] = set;
    const by = (i: number) => set[i % 3] as Process;
    for (let round = 0; round < 5; round++) {
      const starts = await Promise.all(times(60, (i) => by(i).start()));
      expect(tallied(starts.map(({ status }) => status))).toEqual({ pending: 1, denied: 59 });
      expect(new Set(starts.map(({ authentication_uuid: id }) => id)).size).toBe(1);
      expect(one.sender.messages).toHaveLength(round + 1);
      const code = one.sender.messages.at(-1)?.code as string;
      const checks = times(60, (i) => ending(by(i).check(code) as never));
      const cancels = times(6, (i) => by(i).cancel());
      const valid = tallied(await Promise.all(checks))["valid"] ?? 0;
      const canceled = (await Promise.all(cancels)).filter((answer) => answer?.status === "canceled").length;
      expect(valid + canceled, `${valid} ${canceled}`).toBe(1);
    }
    expect((await one.start()).status).toBe("rate_limited");
    for (const { authentication_uuid: id } of one.sender.messages) {
      expect((await by(1).verifier.explain({ customer_uuid: one.customer, authentication_uuid: id })).authentication_uuid).toBe(id);
    }
  });

  it("a lost or refused commit at any step causes no second message, success or charge", async () => {
    for (const fate of ["lost", "refused"] as const) {
      const set = fleet();
      const [one, two] = set;
      let isOn = true;
      one.store.fate = (method) => {
        if (method !== "commit" || !isOn) return "done";
        isOn = false;
        return fate;
      };
      expect(await ending(one.start() as never)).toBe("unavailable");
      expect(one.sender.messages).toHaveLength(0);
      await expect.poll(async () => (await two.start()).status).toBe("pending");
      const code = one.sender.messages.at(-1)?.code as string;
      await one.get();
      isOn = true;
      expect(await ending(one.check("111112") as never)).toBe("unavailable");
      expect(await two.get()).toMatchObject({ remaining_checks: fate === "lost" ? 4 : 5 });
      await one.get();
      isOn = true;
      expect(await ending(one.check(code) as never)).toBe("unavailable");
      expect((await two.check(code)).status).toBe(fate === "lost" ? "not_found" : "valid");
      expect((await one.check(code)).status).toBe("not_found");
      for (let i = 0; i < 4; i++) {
        expect((await two.start()).status, `${fate} ${i}`).toBe("pending");
        await one.cancel();
      }
      expect((await two.start()).status).toBe("rate_limited");
      expect(one.sender.messages).toHaveLength(5);
    }
  });
});
