import { expect, it } from "vitest";
import { playChannels } from "../../tools/simulate/channels.js";

const size = { users: 30 };

it("a fallback verifies more users than SMS alone or than no fallback, at less than half the cost of SMS", async () => {
  const sms = await playChannels({ first: false, fallback: false }, size);
  const without = await playChannels({ first: true, fallback: false }, size);
  const fallback = await playChannels({ first: true, fallback: true }, size);
  for (const { all, faults } of [sms, without, fallback]) expect([all.users, faults]).toEqual([180, 0]);
  expect(fallback.all.verified).toBeGreaterThan(sms.all.verified);
  expect(fallback.all.verified).toBeGreaterThan(without.all.verified);
  expect(fallback.all.cost / fallback.all.verified).toBeLessThan(0.5 * (sms.all.cost / sms.all.verified));
  expect(sms.all.other).toBe(0);
  expect(fallback.all.sms).toBeLessThan(0.5 * sms.all.sms);
});

it("the rule `calls` limits an attack by voice calls to its seed, and a few more for verified users (docs/contract.md#spam-calls)", async () => {
  const attack = { country: "ID", requests: 300, channel: "voice" } as const;
  const played = (policy: object) => playChannels({ first: false, fallback: false, calls: true, policy, attack }, size);
  const { attack: bounded } = await played({});
  const { attack: unbounded } = await played({ spam: { calls: { mode: "off" } } });
  expect(bounded.calls).toBeGreaterThan(0);
  expect(bounded.calls).toBeLessThanOrEqual(16);
  expect(unbounded.calls).toBeGreaterThan(5 * bounded.calls);
});

it("the same seed gives the same figures", async () => {
  const play = () => playChannels({ first: true, fallback: true }, { users: 8, seed: 7 });
  expect(await play()).toEqual(await play());
});
