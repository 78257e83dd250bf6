import { postgresStore } from "../../adapters/store/postgres/index.js";
import { createVerifier } from "../../src/create-verifier.js";
import type { Store } from "../../src/ports/store.js";
import { noSpamRules } from "../../src/testing/verifier/no-limits.js";
import { poolOf } from "../support/postgres.js";

export interface Setup {
  readonly url: string;
  readonly customer: string;
  readonly secret: string;
  readonly cap: number;
  readonly now: number;
  readonly numbers: readonly string[];
  /** The process kills itself after this many commits. */
  readonly end: number;
}

export const policyOf = (cap: number) => ({
  spam: noSpamRules,
  limits: { perCustomer: [{ limit: cap, window: 3_600 }] },
});

/** Starts all creates at once, and kills the process partway. */
async function run({ url, customer, secret, cap, now, numbers, end }: Setup): Promise<void> {
  const inner = postgresStore({ pool: poolOf(url) });
  let answered = 0;
  const store: Store = {
    ...inner,
    async commit(change) {
      const result = await inner.commit(change);
      if (++answered >= end) process.kill(process.pid, "SIGKILL");
      return result;
    },
  };
  const verifier = createVerifier({
    store,
    secret,
    countries: "all",
    customers: [{ customer_uuid: customer, keys: ["k".repeat(40)] }],
    clock: { now: () => now, after: () => () => {} },
    clockSkew: 0,
    callbacks: { worker: false },
    statistics: false,
    policy: policyOf(cap),
    sender: {
      async send({ to }) {
        process.send?.(to);
        return { outcome: "accepted" };
      },
    },
  });
  await Promise.all(
    numbers.map((phone_number) => verifier.createAuthentication({ customer_uuid: customer, phone_number }, { idempotencyKey: phone_number.slice(1) })),
  );
}

if (process.argv[2]?.startsWith("{")) await run(JSON.parse(process.argv[2]) as Setup);
