import { after } from "next/server";
import { lazyVerifier } from "phoneproof";
import { memoryStore } from "phoneproof/memory";
import { consoleSender } from "phoneproof/senders/console";
import { required } from "../required";

/** Created on first use: `next build` imports this file before there is a secret. Pages and server actions can use it too: `verifier.createAuthentication(…)`. */
export const verifier = lazyVerifier(() => ({
  store: memoryStore({ name: "verifier" }), // one per process, although Next.js loads this module more than once
  sender: consoleSender(), // put a carrier here
  secret: required("PHONEPROOF_SECRET"),
  countries: ["FR", "GB", "US"],
  customers: [{ customer_uuid: "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f", keys: [required("PHONEPROOF_API_KEY")] }],
  callbacks: { waitUntil: (work) => after(() => work) },
}));
