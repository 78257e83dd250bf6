import { Redis } from "ioredis";
import { redisStore } from "../../adapters/store/redis/index.js";
import { createVerifier } from "../../src/create-verifier.js";
import type { Store } from "../../src/ports/store.js";

/** Where the process ends: after the write, after the message, before or after the write that settles it. */
export type End = "written" | "sent" | "unsettled" | "settled";

export interface Setup {
  readonly url: string;
  readonly customer: string;
  readonly secret: string;
  readonly number: string;
  readonly callbackUrl: string;
  readonly idempotencyKey: string;
  readonly end: End;
}

/** The timings of this process and of the one that survives. */
export const brief = { sendTimeout: 1, clockSkew: 0, policy: { retryCooldowns: [1, 1, 1, 1] } };

const end = (): never => {
  process.kill(process.pid, "SIGKILL");
  throw new Error("gone");
};
const tell = (message: unknown) => new Promise<void>((done) => void process.send?.(message, () => done()));

async function run({ url, customer, secret, number, callbackUrl, idempotencyKey, end: at }: Setup): Promise<void> {
  const inner = redisStore({ client: new Redis(url) });
  let commits = 0;
  const store: Store = {
    ...inner,
    async commit(change) {
      commits++;
      if (commits === 2 && at === "unsettled") end();
      const result = await inner.commit(change);
      if ((commits === 1 && at === "written") || (commits === 2 && at === "settled")) end();
      return result;
    },
  };
  const verifier = createVerifier({
    store,
    secret,
    countries: "all",
    customers: [{ customer_uuid: customer, keys: ["k".repeat(40)] }],
    ...brief,
    callbacks: { worker: false },
    sender: {
      plan: () => ({ route: "planned" }),
      async send({ authentication_uuid, code, attempt }) {
        await tell({ id: authentication_uuid, code, attempt });
        if (at === "sent") end();
        return { outcome: "accepted", route: "another", messageId: "m1" };
      },
    },
  });
  await verifier.createAuthentication({ customer_uuid: customer, phone_number: number, callback_url: callbackUrl }, { idempotencyKey });
}

if (process.argv[2]?.startsWith("{")) await run(JSON.parse(process.argv[2]) as Setup);
