import { expect, it } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { agedCache } from "../../src/core/collections.js";
import { createVerifier } from "../../src/index.js";
import type { Clock } from "../../src/ports/clock.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";
import { secret } from "../support/verifier.js";

// Cloudflare Workers end a timer with the request that began it.

function deadTimers() {
  const fixed = fixedClock(Date.UTC(2026, 0, 1));
  const clock: Clock = { now: () => fixed.now(), after: (ms, run, kind) => (kind === "background" ? () => undefined : fixed.after(ms, run, kind)) };
  return { clock, advance: (ms: number) => fixed.advance(ms) };
}

it("counts are written in the work after a response; those of a batch whose timer is dead, with a later request", async () => {
  const { clock, advance } = deadTimers();
  const store = memoryStore({ now: () => clock.now() });
  const later: Promise<unknown>[] = [];
  const options = { store, clock, secret, countries: "all", sender: { send: async () => ({ outcome: "accepted" as const }) } } as const;
  const worker = createVerifier({ ...options, callbacks: { worker: false, waitUntil: (work) => void later.push(work) } });
  const other = createVerifier({ ...options, callbacks: { worker: false } });
  const counted = async () => (await other.stats({ from: new Date(clock.now() - 3_600_000), to: new Date(clock.now() + 1) })).sends;

  await worker.createAuthentication({ phone_number: "+14155550123" });
  await Promise.all(later.splice(0));
  expect(await counted()).toBe(1);
  await worker.createAuthentication({ phone_number: "+14155550124" });
  await Promise.all(later.splice(0));
  advance(5_000);
  expect(await counted(), "within two seconds: in a batch whose timer is dead").toBe(1);
  await worker.createAuthentication({ phone_number: "+14155550125" });
  await Promise.all(later.splice(0));
  expect(await counted()).toBe(3);
});

it("a cache whose timer is dead drops an entry at twice its age", () => {
  const { clock, advance } = deadTimers();
  const cache = agedCache<string>(clock, 10, 1_000);
  cache.set("one", "first");
  advance(2_000);
  expect(cache.get("one")).toBe("first");
  advance(1);
  expect(cache.get("one")).toBeUndefined();
  cache.set("one", "second");
  expect(cache.get("one")).toBe("second");
});
