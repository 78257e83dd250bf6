import type { PolicyOverride } from "../../src/domain/policy.js";
import type { Clock } from "../../src/ports/clock.js";
import type { Store } from "../../src/ports/store.js";
import { type Answer, serviceOn } from "../support/redis-service.js";

/** One request of a batch. */
export type Ask =
  | { readonly operation: "create"; readonly number: string; readonly key?: string }
  | { readonly operation: "retry"; readonly id: string }
  | { readonly operation: "check"; readonly id: string; readonly code: string }
  | { readonly operation: "start"; readonly number: string }
  | { readonly operation: "checkNumber"; readonly number: string; readonly code: string };

/** A batch that the parent process sends. */
export interface Batch {
  /** The true time in milliseconds since the epoch; the process's own clock may be off. */
  readonly now: number;
  /** Requests to run in parallel. */
  readonly asks: readonly Ask[];
}

/** A process's response to a batch: the answers in order, and the messages sent during it. */
export interface Outcome {
  readonly answers: readonly Answer[];
  readonly sent: readonly { readonly id: string; readonly to: string; readonly code: string; readonly attempt: number }[];
}

/** A process's settings, passed as its first argument. */
export interface ProcessSetup {
  readonly url: string;
  readonly customer: string;
  /** How far the process's clock is ahead of the true time, in milliseconds. */
  readonly skew: number;
  /** The customer's policy; a message costs 1. */
  readonly policy?: PolicyOverride | undefined;
}

/** A process of the service: opens its store and runs the batches of its parent, until the parent disconnects. */
export async function serveBatches(open: (url: string) => Promise<Store>): Promise<void> {
  const { url, customer, skew, policy } = JSON.parse(process.argv[2] ?? "") as ProcessSetup;
  let now = 0;
  const clock: Clock = {
    now: () => now + skew,
    after(ms, run) {
      const timer = setTimeout(run, ms);
      return () => clearTimeout(timer);
    },
  };
  const service = serviceOn(await open(url), { clock, storeTimeout: 120, policy }, customer);
  const answer = (ask: Ask): Promise<Answer> => {
    switch (ask.operation) {
      case "create":
        return service.create(ask.number, {}, ask.key);
      case "retry":
        return service.retry(ask.id);
      case "check":
        return service.check(ask.id, ask.code);
      case "start":
        return service.start(ask.number);
      case "checkNumber":
        return service.checkNumber(ask.number, ask.code);
    }
  };
  process.on("message", async (batch: Batch) => {
    now = batch.now;
    const before = service.sent.length;
    const answers = await Promise.all(batch.asks.map(answer));
    const sent = service.sent.slice(before).map(({ authentication_uuid: id, to, code, attempt }) => ({ id, to, code, attempt }));
    process.send?.({ answers, sent } satisfies Outcome);
  });
  process.on("disconnect", () => process.exit(0));
  process.send?.("ready");
}
