import { after } from "next/server";
import { lazyVerifier } from "phoneproof";
import { memoryStore } from "phoneproof/memory";
import { router } from "phoneproof/router";
import { consoleSender } from "phoneproof/senders/console";
import { required } from "./required";

/** Created on first use: `next build` imports this file before there is a secret. */
export const verifier = lazyVerifier(() => ({
  store: memoryStore({ name: "verifier" }), // one per process, although Next.js loads this file more than once; or redisStore, mongoStore
  sender: router({
    routes: [
      { name: "sms", sender: consoleSender() }, // prints the codes; in production a carrier
      { name: "calls", sender: consoleSender({ channel: "voice" }) }, // in production twilioVoiceSender or vonageVoiceSender; or no calls, and no `call-after` in code-form.tsx
    ],
  }),
  secret: required("PHONEPROOF_SECRET"),
  countries: ["FR", "GB", "US"], // countries allowed to receive messages; "all" invites fraud
  callbacks: { waitUntil: (work) => after(() => work) },
}));
