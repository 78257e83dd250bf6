import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import { cookies } from "next/headers";
import { required } from "./required";

/** What the page shows about a pending code. */
export interface Answer {
  readonly status: string;
  readonly remaining_checks: number;
  readonly remaining_retry: number;
  readonly next_retry_at?: string;
  readonly carrier_refused?: true;
}

/** The code that this browser requested. */
export interface Pending {
  readonly authentication_uuid: string;
  readonly phone_number: string;
  readonly answer: Answer;
}

const options = { httpOnly: true, sameSite: "lax", secure: process.env.NODE_ENV === "production", path: "/" } as const;
const key = () => createHash("sha256").update(required("SESSION_SECRET")).digest();

/** A value in a cookie of this name that only the server can read and write, for so many seconds. Works on any number of servers. */
function sealed<T>(name: string, seconds: number) {
  return {
    async write(value: T): Promise<void> {
      const iv = randomBytes(12);
      const cipher = createCipheriv("aes-256-gcm", key(), iv, { authTagLength: 16 }).setAAD(Buffer.from(name));
      const text = JSON.stringify({ value, until: Date.now() + seconds * 1000 });
      const bytes = Buffer.concat([iv, cipher.update(text), cipher.final(), cipher.getAuthTag()]);
      (await cookies()).set(name, bytes.toString("base64url"), { ...options, maxAge: seconds });
    },
    async read(): Promise<T | undefined> {
      const bytes = Buffer.from((await cookies()).get(name)?.value ?? "", "base64url");
      if (bytes.length <= 28) return undefined;
      try {
        const decipher = createDecipheriv("aes-256-gcm", key(), bytes.subarray(0, 12), { authTagLength: 16 }).setAAD(Buffer.from(name));
        const text = Buffer.concat([decipher.setAuthTag(bytes.subarray(-16)).update(bytes.subarray(12, -16)), decipher.final()]);
        const { value, until } = JSON.parse(text.toString());
        return Date.now() < until ? value : undefined;
      } catch {
        return undefined; // not ours
      }
    },
    async forget(): Promise<void> {
      (await cookies()).delete(name);
    },
  };
}

export const pending = sealed<Pending>("pending", 600);

/** The number that this browser has proven. */
export const proven = sealed<string>("proven", 30 * 86_400);

/** A random id for this browser, stored for a year: caps and spam rules count by it. */
export async function deviceId(): Promise<string> {
  const jar = await cookies();
  const known = jar.get("device")?.value ?? "";
  const device = /^[\w-]{24}$/.test(known) ? known : randomBytes(18).toString("base64url");
  jar.set("device", device, { ...options, maxAge: 365 * 86_400 });
  return device;
}
