import { expect, it } from "vitest";
import { ending, type Service, tallied, wide } from "./kit.js";
import { creates, french, only, pending, roomy, seeds, settled } from "./one-commit-kit.js";

/** Registers tests of four processes of one customer on one store; `start` makes them, each with its own handle. */
export function oneCommitCases(start: (count: number, options: Parameters<typeof import("./kit.js").service>[0]) => Promise<Service[]>): void {
  const at = (set: readonly Service[], i: number): Service => set[i % set.length] as Service;

  it.each(seeds)(
    "%s: 200 concurrent creates in four processes send no more than the seed, and later ones use the rest (docs/contract.md#two-steps)",
    async (_, rule, seed, number, fields) => {
      const set = await start(4, { policy: { ...roomy, spam: only(rule) } });
      const answers = await Promise.all(Array.from({ length: 200 }, (_, i) => ending(at(set, i).create(number(i), fields(i)))));
      const racers = pending(answers);
      expect(racers).toBeLessThanOrEqual(seed);
      expect(tallied(answers)).toEqual({ ...(racers > 0 && { pending: racers }), spam_detected: 200 - racers });
      await settled();
      const after = pending(
        await creates(
          at(set, 1),
          seed + 5,
          (i) => number(1_000 + i),
          (i) => fields(1_000 + i),
        ),
      );
      expect(racers + after).toBe(seed);
      expect(at(set, 0).sender.messages).toHaveLength(seed);
    },
  );

  it("a number verified in four processes at once earns once; concurrent creates under one key get the same result (docs/contract.md#balance)", async () => {
    const set = await start(4, { policy: { ...roomy, spam: only("range") } });
    const one = at(set, 0);
    const made = await Promise.all(Array.from({ length: 5 }, (_, i) => at(set, i).create(french(9_000))));
    const open = made.filter(({ status }) => status === "pending");
    const checks = open.map(({ authentication_uuid: id }, i) => ending(at(set, i + 1).check(id, one.sender.codeOf(id))));
    expect(tallied(await Promise.all(checks))).toEqual({ valid: open.length });
    await settled();
    expect(pending(await creates(one, 20, (i) => french(i)))).toBe(7);
    for (let round = 0; round < 5; round++) {
      const twins = await Promise.all(Array.from({ length: 6 }, (_, i) => at(set, i).create(french(50 + round), {}, { idempotencyKey: `k${round}` })));
      expect(new Set(twins.map(({ status, authentication_uuid: id }) => `${status} ${id}`))).toEqual(
        new Set([`spam_detected ${twins[0]?.authentication_uuid}`]),
      );
    }
  });

  it("guesses of one number in twenty authentications and four processes stay within sends per day × checks (docs/contract.md#guesses-claimed)", async () => {
    const set = await start(4, { policy: { lifetime: 200_000, longLifetime: true, limits: wide, spam: only() } });
    const one = at(set, 0);
    const ids: string[] = [];
    for (const wait of [0, 601_000, 85_800_000, 601_000]) {
      one.clock.advance(wait);
      for (let i = 0; i < 5; i++) ids.push((await one.create(french(1))).authentication_uuid);
    }
    const answers = await Promise.all(Array.from({ length: 200 }, (_, i) => ending(at(set, i).check(ids[i % 20] as string, one.wrong(ids[i % 20] as string)))));
    const judged = answers.filter((status) => status === "invalid").length;
    expect(judged).toBeLessThanOrEqual(50);
    // On a loaded machine, some of these are not processed in time, and return `unavailable`.
    expect(answers.filter((status) => !["invalid", "rate_limited", "unavailable"].includes(status))).toEqual([]);
    for (let more = 0; more < 50 - judged; more++) await ending(one.check(ids[more % 20] as string, one.wrong(ids[more % 20] as string)));
    expect(await ending(one.check(ids[19] as string, one.wrong(ids[19] as string)))).toBe("rate_limited");
  });
}
