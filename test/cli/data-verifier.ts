import { createVerifier } from "../../src/create-verifier.js";
import type { Store } from "../../src/ports/store.js";
import { noSpamRules } from "../../src/testing/verifier/no-limits.js";

/**
 * The module for `phoneproof serve` in the tests of `--data`: a function that takes its store from the command.
 * Messages and callbacks are posted to OUTSIDE; the clock is AHEAD milliseconds ahead.
 */
const { OUTSIDE = "", PHONEPROOF_SECRET = "", AHEAD = "0" } = process.env;

export const verifier = async ({ store }: { readonly store: Store }) =>
  createVerifier({
    store,
    sender: {
      async send({ to, code }) {
        const { ok } = await fetch(`${OUTSIDE}/messages`, { method: "POST", body: JSON.stringify({ to, code }) });
        return { outcome: ok ? "accepted" : "unknown" };
      },
    },
    secret: PHONEPROOF_SECRET,
    countries: "all",
    customers: "store",
    policy: { spam: noSpamRules },
    callbacks: { allowOrigins: [OUTSIDE] },
    clock: {
      now: () => Date.now() + Number(AHEAD),
      after(ms, run, kind) {
        const timer = setTimeout(run, ms);
        if (kind === "background") timer.unref();
        return () => clearTimeout(timer);
      },
    },
  });
