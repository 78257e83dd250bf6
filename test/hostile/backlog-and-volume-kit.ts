import { setImmediate } from "node:timers/promises";
import type { SmsSender, VerifierOptions } from "../../src/index.js";
import { router } from "../../src/routing/router.js";
import { fixedClock } from "../../src/testing/fixed-clock.js";
import { numberOf, setUp, start } from "../support/verifier.js";

/** Lets pending work continue until `ready`; fails after two seconds. */
export async function settled(ready: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + 2_000;
  while (!(await ready())) {
    if (Date.now() > end) throw new Error("gave up waiting");
    await setImmediate();
  }
}

/** Lets pending work of a store in memory continue. */
async function breathe(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await setImmediate();
}

/** A customer whose receivers of callbacks never respond, and whose WhatsApp messages never arrive: an SMS follows each. */
export function silentCustomer() {
  const clock = fixedClock(start);
  /** When each number got its SMS, in seconds since the start. */
  const texted = new Map<string, number>();
  const sender = (channel: "whatsapp" | "sms"): SmsSender => ({
    channel,
    confirms: channel === "whatsapp",
    takesReceipts: true,
    async send({ to }) {
      if (channel === "sms") texted.set(to, (clock.now() - start) / 1_000);
      return { outcome: "accepted" };
    },
  });
  const routes = [
    { name: "whatsapp", sender: sender("whatsapp"), priority: 0 },
    { name: "sms", sender: sender("sms") },
  ];
  const options: Partial<VerifierOptions> = {
    clock,
    sender: router({ routes, fallback: { after: 20 } }),
    callbacks: { sender: { post: ({ timeout }) => new Promise((done) => clock.after(timeout, () => done({ failed: "no response in time" }))) } },
  };
  const { verifier, create } = setUp(options);
  return {
    /** `close` waits up to five seconds for callbacks that hang: the clock must move. */
    async close() {
      let isOpen = true;
      const closed = verifier.close().then(() => {
        isOpen = false;
      });
      for (let turn = 0; isOpen && turn < 60; turn++) {
        await breathe();
        clock.advance(1_000);
      }
      await closed;
    },
    create,
    /** When the numbers got their SMS, after `seconds`; `never` for those that did not. */
    async textedAfter(seconds: number, indexes: readonly number[]) {
      for (let second = 0; second < seconds; second++) {
        clock.advance(1_000);
        await breathe();
      }
      return indexes.map((index) => texted.get(numberOf(index)) ?? "never");
    },
  };
}
