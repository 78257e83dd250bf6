import { after } from "next/server";
import { createVerifier } from "phoneproof";
import { memoryStore } from "phoneproof/memory";
import { consoleSender } from "phoneproof/senders/console";

/** Pages and server actions may use it too: `verifier.createAuthentication(…)`. */
export const verifier = createVerifier({
  store: memoryStore({ name: "verifier" }), // one per process, although Next.js loads this module more than once
  sender: consoleSender({ allowInProduction: true }), // an example only: put a carrier here
  secret: process.env.PHONEPROOF_SECRET ?? "for development only: openssl rand -base64 32",
  countries: ["FR", "GB", "US"],
  customers: [{ customer_uuid: "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f", keys: [process.env.PHONEPROOF_API_KEY ?? "pp_for_development_only_0123456789abcdef"] }],
  callbacks: { waitUntil: (work) => after(() => work) },
});
