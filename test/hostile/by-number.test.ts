import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { fixedClock } from "../../src/testing/index.js";
import { PlainStore, TwoStepStore } from "../store/plain-store.js";
import { start as noon } from "../support/verifier.js";
import { ahead, chance, processes, Story } from "./by-number-kit.js";
import { callbackUrl, drive, fates, ForgetfulStore, pass, turns } from "./kit.js";

const minute = 60_000;
const hour = 60 * minute;

describe("any order of calls, races and faults over three processes", () => {
  it.each([
    ["one step", () => new PlainStore()],
    ["memory", () => memoryStore({ name: randomUUID() })],
    ["two steps", () => new TwoStepStore()],
  ])("breaks no rule, on a store of %s (docs/contract.md#start)", async (_, open) => {
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
      // And it is not locked for good.
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

describe("calls one after the other, in two processes", () => {
  it("are answered as the contract says, to the letter (docs/contract.md#start)", async () => {
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
          const status =
            isOpen && (isOpen.wrong >= 5 || isOpen.sends.length === 5) ? "rate_limited" : cooling ? "denied" : capped ? "rate_limited" : "pending";
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
            // A start that is refused leaves nothing open where nothing was.
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
