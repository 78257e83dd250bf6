import { fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { postgresStore } from "../../adapters/store/postgres/index.js";
import { fixedClock } from "../../src/testing/index.js";
import { bundle } from "../store/processes.js";
import { postgresServer } from "../support/postgres.js";
import { secret, start } from "../support/verifier.js";
import { ending, numberAt, sender, service, tallied } from "./kit.js";
import { database, patient, pool } from "./postgres-kit.js";
import { policyOf, type Setup } from "./postgres-process.js";

const server = await postgresServer("the hostile tests of killed processes on PostgreSQL");
afterAll(() => server?.stop());

describe.runIf(server)("a process killed while its creates share calls", () => {
  let bundled: Awaited<ReturnType<typeof bundle>>;
  beforeAll(async () => {
    bundled = await bundle(new URL("postgres-process.ts", import.meta.url));
  });
  afterAll(() => rmSync(bundled.outDir, { recursive: true }));

  it("after 20 of its 40 commits: another process repeats the creates under their keys; at most one message per number, each counted once (docs/contract.md#keyed-id)", async () => {
    const url = await database(server);
    const numbers = Array.from({ length: 40 }, (_, n) => numberAt(n));
    const setup: Setup = { url, customer: randomUUID(), secret, cap: 41, now: start, numbers, end: 20 };
    const child = fork(bundled.script, [JSON.stringify(setup)], { execArgv: [] });
    const before: string[] = [];
    child.on("message", (to: string) => void before.push(to));
    const [, signal] = await once(child, "exit");
    expect(signal).toBe("SIGKILL");
    const carrier = sender();
    const one = service({
      store: postgresStore({ pool: pool(url, patient) }),
      customer: setup.customer,
      clock: fixedClock(start),
      sender: carrier,
      storeTimeout: 60,
      policy: policyOf(41),
    });
    const repeats = () => Promise.all(numbers.map((number) => ending(one.create(number, {}, { idempotencyKey: number.slice(1) }))));
    expect(tallied(await repeats())).toEqual({ pending: 40 });
    expect(tallied(await repeats())).toEqual({ pending: 40 });
    const sent = [...before, ...carrier.messages.map(({ to }) => to)];
    expect(new Set(sent).size).toBe(sent.length);
    for (const { authentication_uuid: id, code } of carrier.messages) expect(await ending(one.check(id, code))).toBe("valid");
    expect([await ending(one.create(100)), await ending(one.create(101))]).toEqual(["pending", "rate_limited"]);
  });
});
