import { type BetterAuthOptions, betterAuth } from "better-auth";
import { memoryAdapter } from "better-auth/adapters/memory";
import { getMigrations } from "better-auth/db/migration";
import { phoneNumber } from "better-auth/plugins";
import { Pool } from "pg";
import { createClient } from "redis";
import type { Backend } from "./apps.js";
import { created, type Deliver, validNumber } from "./handmade.js";
import { postgresConnections } from "./service.js";

/**
 * better-auth's plugin `phone-number` behind our routes, with codes in Redis as its secondary storage. A right code is
 * consumed without a user or a session, so that its database stays empty.
 */
export async function betterAuthOnRedis(url: string, deliver: Deliver): Promise<Backend> {
  const redis = await createClient({ url }).connect();
  const auth = betterAuth({
    secret: "a secret of the bench, long enough to be one",
    baseURL: "http://127.0.0.1",
    database: memoryAdapter({ user: [], session: [], account: [], verification: [] }),
    secondaryStorage: {
      get: (key) => redis.get(key),
      getAndDelete: (key) => redis.getDel(key),
      async increment(key, ttl) {
        const [count] = await Promise.all([redis.incr(key), redis.expire(key, ttl, "NX")]);
        return count;
      },
      async set(key, value, ttl) {
        await redis.set(key, value, ttl === undefined ? {} : { expiration: { type: "EX", value: ttl } });
      },
      async delete(key) {
        await redis.del(key);
      },
    },
    rateLimit: { enabled: false },
    plugins: [phoneNumber({ sendOTP: ({ phoneNumber, code }) => deliver(phoneNumber, code) })],
  });
  return backendOf(auth);
}

/** The same with codes in PostgreSQL, in the tables of its own migrations. */
export async function betterAuthOnPostgres(url: string, deliver: Deliver): Promise<Backend> {
  const options = {
    secret: "a secret of the bench, long enough to be one",
    baseURL: "http://127.0.0.1",
    database: new Pool({ connectionString: url, max: postgresConnections }),
    rateLimit: { enabled: false },
    plugins: [phoneNumber({ sendOTP: ({ phoneNumber, code }) => deliver(phoneNumber, code) })],
  } satisfies BetterAuthOptions;
  await (await getMigrations(options)).runMigrations();
  return backendOf(betterAuth(options));
}

interface Auth {
  readonly api: {
    sendPhoneNumberOTP(call: { body: { phoneNumber: string } }): Promise<unknown>;
    consumePhoneNumberOTP(call: { body: { phoneNumber: string; code: string } }): Promise<{ status: boolean }>;
  };
}

function backendOf(auth: Auth): Backend {
  return {
    async create(body) {
      const number = validNumber((body as { phone_number?: unknown }).phone_number);
      if (number === undefined) return { code: "invalid_phone_number" };
      await auth.api.sendPhoneNumberOTP({ body: { phoneNumber: number } });
      return created(number);
    },
    async check(body) {
      const { authentication_uuid, check_code } = body as { authentication_uuid: string; check_code: string };
      const isRight = await auth.api.consumePhoneNumberOTP({ body: { phoneNumber: authentication_uuid, code: check_code } }).then(
        ({ status }) => status,
        (error: { body?: { code?: string } }) => {
          if (error.body?.code === "INVALID_OTP") return false;
          throw error;
        },
      );
      return { authentication_uuid, status: isRight ? "valid" : "invalid" };
    },
  };
}
