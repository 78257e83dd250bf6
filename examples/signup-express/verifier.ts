import { createVerifier } from "phoneproof";
import { memoryStore } from "phoneproof/memory";
import { router } from "phoneproof/router";
import { consoleSender } from "phoneproof/senders/console";
import { required } from "../required.js";

export const verifier = createVerifier({
  store: memoryStore(), // or redisStore({ client }), mongoStore({ db })
  sender: router({
    routes: [
      { name: "sms", sender: consoleSender() }, // prints the codes; in production a carrier
      { name: "calls", sender: consoleSender({ channel: "voice" }) }, // in production twilioVoiceSender or vonageVoiceSender; or no calls, and no `call-after` in pages.ts
    ],
  }),
  secret: required("PHONEPROOF_SECRET"),
  countries: ["FR", "GB", "US"], // countries allowed to receive messages; "all" invites fraud
});
