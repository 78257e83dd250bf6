import { memoryStore } from "../../adapters/store/memory/index.js";
import { createVerifier } from "../../src/create-verifier.js";
import type { Store } from "../../src/ports/store.js";

/** The MODULE for the operators' commands in the tests: a verifier with its own policy and pepper. */
export const verifier = ({ store }: { readonly store: Store }) =>
  createVerifier({
    store: process.env["IN_MEMORY"] ? memoryStore() : store,
    sender: { send: async () => ({ outcome: "accepted" }) },
    secret: process.env["PHONEPROOF_SECRET"] ?? "",
    pepper: "a pepper of thirty-two characters",
    countries: ["FR"],
    customers: [{ customer_uuid: "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f", keys: ["k".repeat(40)] }],
    ...(process.env["STATISTICS_KEEP"] && { statistics: { keep: Number(process.env["STATISTICS_KEEP"]) } }),
    policy: { limits: { perNumber: [{ limit: 1, window: 86_400 }] } },
  });
