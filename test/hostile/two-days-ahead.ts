import { expect } from "vitest";
import type { Store } from "../../src/ports/store.js";
import { fixedClock } from "../../src/testing/index.js";
import { ending, sender, service, tallied, wide } from "./kit.js";

const twoDays = 2 * 86_400_000;

/** Checks that a process whose clock is two days ahead ends nothing that the others need, on any store. */
export async function twoDaysAhead(store: Store): Promise<void> {
  const now = Date.now();
  const policy = {
    limits: { ...wide, perDevice: [{ limit: 3, window: 3600 }], perCustomer: [{ limit: 2_000, window: 86_400 }], spend: [{ amount: 12, per: "day" as const }] },
  };
  const right = service({ store, clock: fixedClock(now), sender: sender(1), policy });
  const ahead = service({ store, clock: fixedClock(now + twoDays), sender: sender(1), policy, customer: right.customer });

  const created = [];
  for (let i = 0; i < 5; i++) created.push(await right.create(1, { device_id: i < 3 ? "device" : `d${i}` }));
  expect(new Set(created.map(({ status }) => status))).toEqual(new Set(["pending"]));
  // For the same number and device and for others, in the same windows and sums.
  expect(await ending(ahead.create(1, { device_id: "device" }))).toBe("pending");
  for (let i = 0; i < 3; i++) expect(await ending(ahead.create(10 + i))).toBe("pending");

  expect(await ending(right.create(1))).toBe("rate_limited");
  expect(await ending(right.create(2, { device_id: "device" }))).toBe("rate_limited");
  // 5 were sent before; what a clock that is days ahead has counted is in parts of the future.
  const rest: string[] = [];
  for (let i = 0; i < 9; i++) rest.push(await ending(right.create(20 + i)));
  expect(tallied(rest)).toEqual({ pending: 7, rate_limited: 2 });
  // Records are there, and their codes work.
  const [first] = created as [(typeof created)[0]];
  expect(await ending(right.check(first.authentication_uuid, right.wrong(first.authentication_uuid)))).toBe("invalid");
  expect(await ending(right.check(first.authentication_uuid, right.sender.codeOf(first.authentication_uuid)))).toBe("valid");
}
