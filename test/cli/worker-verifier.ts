import { createClient } from "redis";
import { redisStore } from "../../adapters/store/redis/index.js";
import { createVerifier } from "../../src/create-verifier.js";

/** The module for `phoneproof worker` in the tests, configured by the environment. */
const { REDIS_URL = "", ALLOWED_ORIGIN = "", CUSTOMER = "", SECRET = "", WORKER } = process.env;

const client = createClient({ url: REDIS_URL, disableOfflineQueue: true });
client.on("error", () => {});
await client.connect();

export const verifier = createVerifier({
  store: redisStore({ client }),
  sender: { send: async () => ({ outcome: "accepted" }) },
  secret: SECRET,
  countries: "all",
  customers: [{ customer_uuid: CUSTOMER, keys: ["k".repeat(32)] }],
  callbacks: { allowOrigins: [ALLOWED_ORIGIN], worker: WORKER === "true" },
});
