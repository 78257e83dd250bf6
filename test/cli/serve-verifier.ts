import { createClient } from "redis";
import { redisStore } from "../../adapters/store/redis/index.js";
import { createVerifier } from "../../src/create-verifier.js";

/** The module for `phoneproof serve` in the tests, configured by the environment. Messages are posted to CARRIER. */
const { REDIS_URL = "", CARRIER = "", CUSTOMER = "", API_KEY = "", SECRET = "" } = process.env;

const client = createClient({ url: REDIS_URL, disableOfflineQueue: true });
client.on("error", () => {});
await client.connect();

export const verifier = Promise.resolve(
  createVerifier({
    store: redisStore({ client }),
    sender: {
      async send({ to, code }) {
        const { ok } = await fetch(`${CARRIER}/messages`, { method: "POST", body: JSON.stringify({ to, code }) });
        return ok ? { outcome: "accepted" } : { outcome: "unknown" };
      },
    },
    secret: SECRET,
    countries: "all",
    customers: [{ customer_uuid: CUSTOMER, keys: [API_KEY] }],
    callbacks: { allowOrigins: [CARRIER] },
    sendTimeout: 20,
  }),
);
