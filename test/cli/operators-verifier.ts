import { createVerifier } from "../../src/create-verifier.js";
import type { Store } from "../../src/ports/store.js";

/** What the operators' commands are given in the tests as MODULE: a verifier with a policy and a pepper of its own. */
export const verifier = ({ store }: { readonly store: Store }) =>
  createVerifier({
    store,
    sender: { send: async () => ({ outcome: "accepted" }) },
    secret: process.env["PHONEPROOF_SECRET"] ?? "",
    pepper: "a pepper of thirty-two characters",
    countries: ["FR"],
    customers: [{ customer_uuid: "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f", keys: ["k".repeat(40)] }],
    policy: { limits: { perNumber: [{ limit: 1, window: 86_400 }] } },
  });
