import { randomUUID } from "node:crypto";
import type { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { postgresStore } from "../../adapters/store/postgres/index.js";
import { fixedClock } from "../../src/testing/index.js";
import { newStore, type PostgresServer, poolOf, postgresServer } from "../support/postgres.js";
import { start } from "../support/verifier.js";
import { ending, type Service, sender, service, tallied, wide } from "./kit.js";
import { creates, french, only, pending, roomy, seeds, settled } from "./one-commit-kit.js";

describe("on PostgreSQL", () => {
  let server: PostgresServer | undefined;
  const pools: Pool[] = [];
  beforeAll(async () => {
    server = await postgresServer("the hostile tests of the anti-spam rules on PostgreSQL");
  });
  afterAll(async () => {
    await Promise.all(pools.map((one) => one.end()));
    await server?.stop();
  });

  /** Processes of one customer, each with a pool of its own. */
  const processes = async (count: number, options: Parameters<typeof service>[0] = {}): Promise<Service[]> => {
    const shared = { clock: fixedClock(start), sender: sender(options?.price), customer: randomUUID(), storeTimeout: 60, ...options };
    const { url, close } = await newStore(server);
    await close();
    const set: Service[] = [];
    for (let i = 0; i < count; i++) {
      const pool = poolOf(url);
      pools.push(pool);
      const store = postgresStore({ pool });
      set.push(service({ ...shared, store }));
    }
    return set;
  };
  const at = (set: readonly Service[], i: number): Service => set[i % set.length] as Service;

  it.each(seeds)(
    "%s: racers over four processes let out no more than the seed, and what they left is there for who comes after (docs/contract.md#one-commit)",
    async (_, rule, seed, number, fields) => {
      if (server === undefined) return;
      const set = await processes(4, { policy: { ...roomy, spam: only(rule) } });
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

  it("a number that is verified in four processes at once earns once; twins of a key are answered alike (docs/contract.md#balance)", async () => {
    if (server === undefined) return;
    const set = await processes(4, { policy: { ...roomy, spam: only("range") } });
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

  it("guesses of one number over twenty authentications and four processes stay at sends a day × checks (docs/contract.md#guesses-claimed)", async () => {
    if (server === undefined) return;
    const set = await processes(4, { policy: { lifetime: 200_000, longLifetime: true, limits: wide, spam: only() } });
    const one = at(set, 0);
    const ids: string[] = [];
    for (const wait of [0, 601_000, 85_800_000, 601_000]) {
      one.clock.advance(wait);
      for (let i = 0; i < 5; i++) ids.push((await one.create(french(1))).authentication_uuid);
    }
    const answers = await Promise.all(Array.from({ length: 200 }, (_, i) => ending(at(set, i).check(ids[i % 20] as string, one.wrong(ids[i % 20] as string)))));
    const judged = answers.filter((status) => status === "invalid").length;
    expect(judged).toBeLessThanOrEqual(50);
    expect(tallied(answers)).toEqual({ invalid: judged, rate_limited: 200 - judged });
  });
});
