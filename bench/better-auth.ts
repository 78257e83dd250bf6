import { betterAuth } from "better-auth";
import { memoryAdapter } from "better-auth/adapters/memory";
import { phoneNumber } from "better-auth/plugins";
import type { Backend } from "./apps.js";
import { created, validNumber } from "./handmade.js";

/** What is held of codes and users: its memory adapter searches each table row by row, so a round must be short, and begins with none. */
function newTables(): Record<string, object[]> {
  return { user: [], session: [], account: [], verification: [] };
}

/** better-auth's plugin `phone-number` behind routes of one's own, on its memory adapter. A right code makes a user, which it cannot do without, and no session. `send` gets the code. */
export function betterAuthInMemory(send: (id: string, code: string) => void): Backend {
  const tables = newTables();
  const auth = betterAuth({
    secret: "a secret of the bench, long enough to be one",
    baseURL: "http://127.0.0.1",
    database: memoryAdapter(tables),
    rateLimit: { enabled: false },
    plugins: [
      phoneNumber({
        sendOTP: ({ phoneNumber, code }) => send(phoneNumber, code),
        signUpOnVerification: { getTempEmail: (number) => `${number}@phone.invalid` },
      }),
    ],
  });
  let hasChecked = false;
  return {
    async create(body) {
      if (hasChecked) Object.assign(tables, newTables());
      hasChecked = false;
      const number = validNumber((body as { phone_number?: unknown }).phone_number);
      if (number === undefined) return { code: "bad_request" };
      await auth.api.sendPhoneNumberOTP({ body: { phoneNumber: number } });
      return created(number, Date.now());
    },
    async check(body) {
      hasChecked = true;
      const { authentication_uuid: id, check_code } = body as { authentication_uuid: string; check_code: string };
      const { status } = await auth.api.verifyPhoneNumber({ body: { phoneNumber: id, code: check_code, disableSession: true } });
      return { authentication_uuid: id, status: status ? "valid" : "invalid" };
    },
  };
}
