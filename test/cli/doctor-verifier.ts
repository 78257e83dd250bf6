import { MongoClient } from "mongodb";
import { Pool } from "pg";
import { createClient } from "redis";
import { twilioReceipts, twilioSender } from "../../adapters/sms/twilio.js";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { mongoStore } from "../../adapters/store/mongo/index.js";
import { postgresStore } from "../../adapters/store/postgres/index.js";
import { redisStore } from "../../adapters/store/redis/index.js";
import { createVerifier } from "../../src/create-verifier.js";
import type { VerifierOptions } from "../../src/options/types.js";
import { router } from "../../src/routing/router.js";

/** The module for `phoneproof doctor` in the tests: one of several set-ups, chosen by the environment. */
const { SETUP = "", REDIS_URL = "", MONGO_URL = "", POSTGRES_URL = "", CARRIER_URL = "" } = process.env;

const authToken = "token of the tests";
const twilio = twilioSender({ accountSid: `AC${"0".repeat(32)}`, authToken, from: "+15005550006", baseUrl: CARRIER_URL });

/** Everything is set up correctly. */
const sound = async (): Promise<VerifierOptions> => {
  const client = createClient({ url: REDIS_URL, disableOfflineQueue: true });
  client.on("error", () => {});
  await client.connect();
  return {
    store: redisStore({ client }),
    sender: router({ routes: [{ name: "twilio", sender: twilio, price: 0.05 }] }),
    secret: "QvX5sVnC0m1yZ8eTgB2kLw7uRj4pHdAf",
    countries: ["FR"],
    customers: [{ customer_uuid: "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f", keys: [`sha256:${"0123456789abcdef".repeat(4)}`] }],
    policy: { limits: { spend: [{ amount: 100, per: "day" }] } },
    receipts: { baseUrl: "https://api.acme.test", sources: [twilioReceipts({ authToken })] },
  };
};

const setUps: Readonly<Record<string, () => Promise<VerifierOptions>>> = {
  sound,

  /** A first try that is used in production. */
  async "tried out"() {
    return {
      ...(await sound()),
      store: memoryStore(),
      secret: "change me before this goes live, please",
      countries: "all",
      customers: [{ customer_uuid: "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f", keys: ["change-me-change-me-change-me-change-me"] }],
      policy: {},
      receipts: { baseUrl: "http://localhost:3000", sources: [twilioReceipts({ authToken })] },
      callbacks: { allowOrigins: ["http://localhost:4000"] },
    };
  },

  /** Its indexes were never created. */
  async "bare MongoDB"() {
    const store = mongoStore({ db: new MongoClient(MONGO_URL).db("phoneproof-doctor") });
    await store.put("anything", "", { now: 0, keepUntil: 1 });
    return { ...(await sound()), store };
  },

  /** Its schema was never created. */
  async "bare PostgreSQL"() {
    return { ...(await sound()), store: postgresStore({ pool: new Pool({ connectionString: POSTGRES_URL }) }) };
  },

  async "store down"() {
    const client = createClient({ url: "redis://127.0.0.1:1", disableOfflineQueue: true });
    client.on("error", () => {});
    void client.connect().catch(() => undefined);
    return { ...(await sound()), store: redisStore({ client }) };
  },

  async "options that cannot work"() {
    return { ...(await sound()), secret: "short", countrys: ["FR"] } as never;
  },
};

export const verifier = createVerifier(await (setUps[SETUP] ?? sound)());
