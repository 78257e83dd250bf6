import { createHash, randomInt, randomUUID, timingSafeEqual } from "node:crypto";
import { parsePhoneNumberFromString } from "libphonenumber-js/max";
import type { Backend } from "./apps.js";

/** What a team writes by hand, after the tutorials: a limit on the sends to a number, a code that lives ten minutes, five tries. */

const life = 600;
const sendsPerNumber = 5;
const tries = 5;

interface Create {
  readonly customer_uuid: string;
  readonly phone_number: string;
}

interface Check {
  readonly authentication_uuid: string;
  readonly check_code: string;
}

/** `GET`, `SET` … of ioredis, one command after another. */
export interface Commands {
  incr(key: string): Promise<number>;
  expire(key: string, seconds: number): Promise<unknown>;
  set(key: string, value: string, how: "EX", seconds: number): Promise<unknown>;
  get(key: string): Promise<string | null>;
  del(key: string): Promise<unknown>;
}

/** A number as it must be, or `undefined`. */
export function validNumber(number: unknown): string | undefined {
  const parsed = typeof number === "string" ? parsePhoneNumberFromString(number) : undefined;
  return parsed?.isValid() ? parsed.number : undefined;
}

const digestOf = (code: string) => createHash("sha256").update(code).digest();
const newCode = () => String(randomInt(1_000_000)).padStart(6, "0");
export const created = (id: string, now: number) => ({
  authentication_uuid: id,
  created_at: new Date(now).toISOString(),
  expires_at: new Date(now + life * 1000).toISOString(),
  status: "pending",
});

/** Three commands each. `send` gets the code. */
export function handmadeOnRedis(redis: Commands, send: (id: string, code: string) => void): Backend {
  return {
    async create(body) {
      const { customer_uuid, phone_number } = body as Create;
      const number = validNumber(phone_number);
      if (typeof customer_uuid !== "string" || number === undefined) return { code: "bad_request" };
      const sends = await redis.incr(`limit:${number}`);
      if (sends === 1) await redis.expire(`limit:${number}`, life);
      if (sends > sendsPerNumber) return { status: "rate_limited" };
      const [id, code] = [randomUUID(), newCode()];
      await redis.set(`otp:${id}`, JSON.stringify({ customer_uuid, number, digest: digestOf(code).toString("hex") }), "EX", life);
      send(id, code);
      return created(id, Date.now());
    },
    async check(body) {
      const { authentication_uuid: id, check_code } = body as Check;
      const stored = await redis.get(`otp:${id}`);
      if (stored === null) return { authentication_uuid: id, status: "expired_auth" };
      if ((await redis.incr(`tries:${id}`)) > tries) return { authentication_uuid: id, status: "rate_limited" };
      const { digest } = JSON.parse(stored) as { digest: string };
      if (!timingSafeEqual(Buffer.from(digest, "hex"), digestOf(check_code))) return { authentication_uuid: id, status: "invalid" };
      await redis.del(`otp:${id}`);
      return { authentication_uuid: id, status: "valid" };
    },
  };
}

/** Maps with a timer for each entry. */
export function handmadeInMemory(send: (id: string, code: string) => void): Backend {
  const codes = new Map<string, { readonly digest: Buffer; tries: number }>();
  const limits = new Map<string, number>();
  const forget = (map: Map<string, unknown>, key: string) => setTimeout(() => map.delete(key), life * 1000).unref();
  return {
    create(body) {
      const { customer_uuid, phone_number } = body as Create;
      const number = validNumber(phone_number);
      if (typeof customer_uuid !== "string" || number === undefined) return { code: "bad_request" };
      const sends = (limits.get(number) ?? 0) + 1;
      if (sends > sendsPerNumber) return { status: "rate_limited" };
      if (sends === 1) forget(limits, number);
      limits.set(number, sends);
      const [id, code] = [randomUUID(), newCode()];
      codes.set(id, { digest: digestOf(code), tries: 0 });
      forget(codes, id);
      send(id, code);
      return created(id, Date.now());
    },
    check(body) {
      const { authentication_uuid: id, check_code } = body as Check;
      const stored = codes.get(id);
      if (stored === undefined) return { authentication_uuid: id, status: "expired_auth" };
      if (++stored.tries > tries) return { authentication_uuid: id, status: "rate_limited" };
      if (!timingSafeEqual(stored.digest, digestOf(check_code))) return { authentication_uuid: id, status: "invalid" };
      codes.delete(id);
      return { authentication_uuid: id, status: "valid" };
    },
  };
}
