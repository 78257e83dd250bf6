import { createVerifier } from "phoneproof";
import { memoryStore } from "phoneproof/memory";
import { consoleSender } from "phoneproof/senders/console";

/** Both are set, at the build too. */
const { PHONEPROOF_SECRET: secret = "", PHONEPROOF_API_KEY: key = "" } = process.env;

export const verifier = createVerifier({
  store: memoryStore({ name: "verifier" }),
  sender: consoleSender({ allowInProduction: true }),
  secret,
  countries: ["FR"],
  customers: [{ customer_uuid: "5f0c7f3e-1d2b-4c3a-9e8f-7a6b5c4d3e2f", keys: [key] }],
});
