import { type BetterAuthOptions as AppOptions, betterAuth as createAuth } from "better-auth";
import { memoryAdapter } from "better-auth/adapters/memory";
import { type PhoneNumberOptions, phoneNumber } from "better-auth/plugins";
import { afterEach, describe, expect, it, vi } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { type BetterAuthOptions, betterAuth } from "../../src/hooks/better-auth.js";
import type { Store, VerifierOptions } from "../../src/index.js";
import { numberOf, onePerTenMinutes, setUp } from "../support/verifier.js";

const number = numberOf(1);
const other = numberOf(2);
const password = "a long enough password";
const message = { text: { default: "Your code is {code}", fr: "Votre code est {code}" } };

afterEach(() => void vi.restoreAllMocks());

interface Setting {
  readonly verifier?: Partial<VerifierOptions>;
  readonly hooks?: BetterAuthOptions;
  readonly plugin?: Partial<PhoneNumberOptions>;
  readonly app?: Partial<AppOptions>;
}

/** A separate Better Auth in front of a separate verifier, and a browser that stores its cookies. */
function setting({ verifier: options = {}, hooks, plugin, app }: Setting = {}) {
  const set = setUp({ customers: undefined, ...options } as Partial<VerifierOptions>);
  const database = { user: [] as Record<string, unknown>[], session: [], account: [], verification: [] as { identifier: string; value: string }[] };
  /** The plugin's own codes, oldest first. */
  const own: string[] = [];
  const logged: string[] = [];
  const ours = betterAuth(set.verifier, hooks);
  const auth = createAuth({
    secret: "a secret of the tests, long enough to be one",
    baseURL: "http://localhost:3000",
    database: memoryAdapter(database),
    rateLimit: { enabled: false },
    emailAndPassword: { enabled: true },
    logger: { log: (_level, message, ...rest) => void logged.push([message, ...rest].join(" ")) },
    ...app,
    plugins: [
      phoneNumber({
        ...ours,
        sendOTP: (data, ctx) => {
          own.push(data.code);
          return ours.sendOTP(data, ctx);
        },
        sendPasswordResetOTP: (data, ctx) => {
          own.push(data.code);
          return ours.sendPasswordResetOTP(data, ctx);
        },
        signUpOnVerification: { getTempEmail: (value) => `${value.slice(1)}@phones.example` },
        ...plugin,
      }),
    ],
  });
  let cookie = "";
  const call = async (path: string, body: object, headers: Record<string, string> = {}) => {
    const response = await auth.handler(
      new Request(`http://localhost:3000/api/auth${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", origin: "http://localhost:3000", ...(cookie !== "" && { cookie }), ...headers },
        body: JSON.stringify(body),
      }),
    );
    const cookies = response.headers.getSetCookie();
    if (cookies.length > 0) cookie = cookies.map((one) => one.split(";", 1)[0]).join("; ");
    const json = JSON.parse((await response.text()) || "{}") as {
      code?: string;
      message?: string;
      token?: string;
      user?: { id: string; phoneNumber?: string };
    };
    return { ...json, status: response.status, headers: response.headers };
  };
  const send = (phoneNumber: string = number, headers?: Record<string, string>) => call("/phone-number/send-otp", { phoneNumber }, headers);
  const verify = (code: string, phoneNumber: string = number, more: object = {}) => call("/phone-number/verify", { phoneNumber, code, ...more });
  const requestReset = (phoneNumber: string = number) => call("/phone-number/request-password-reset", { phoneNumber });
  const reset = (otp: string, phoneNumber: string = number) => call("/phone-number/reset-password", { phoneNumber, otp, newPassword: password });
  const signUp = async (phoneNumber: string = number) => {
    await send(phoneNumber);
    return verify(set.box.code(), phoneNumber);
  };
  return { ...set, auth, call, send, verify, requestReset, reset, signUp, own, logged, database };
}

/** A store that can be made to fail. */
function breakable() {
  const state = { isBroken: false };
  const store = new Proxy(memoryStore({ name: crypto.randomUUID() }), {
    get(target, name: keyof Store, receiver) {
      const value: unknown = Reflect.get(target, name, receiver);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => (state.isBroken ? Promise.reject(new Error("the store is down")) : Reflect.apply(value, target, args));
    },
  });
  return { state, store };
}

describe("proving a number", () => {
  it("sign-up | the code of the verifier proves the number, and creates the account", async () => {
    const { signUp, box, database } = setting();
    expect(await signUp()).toMatchObject({ status: 200, token: expect.any(String), user: { phoneNumber: number, phoneNumberVerified: true } });
    expect(box.messages).toMatchObject([{ to: number, text: `Your verification code is ${box.code()}` }]);
    expect(database.user).toMatchObject([{ phoneNumber: number, phoneNumberVerified: true }]);
  });

  it("sign-in | the same number is the same account", async () => {
    const { signUp, clock, database } = setting();
    const first = await signUp();
    clock.advance(31_000);
    const second = await signUp();
    expect(second).toMatchObject({ status: 200, user: { id: first.user?.id } });
    expect(database.user.length).toBe(1);
  });

  it("number change | the account of the session gets the new number", async () => {
    const { signUp, send, verify, box, database } = setting();
    const { user } = await signUp();
    await send(other);
    expect(await verify(box.code(), other, { updatePhoneNumber: true })).toMatchObject({ status: 200, user: { id: user?.id, phoneNumber: other } });
    expect(database.user).toMatchObject([{ id: user?.id, phoneNumber: other, phoneNumberVerified: true }]);
  });

  it("number change | is rejected for the number of another account, and with a code for another number", async () => {
    const { signUp, send, verify, box, clock } = setting();
    await signUp(other);
    clock.advance(31_000);
    await signUp();
    await send(other);
    expect(await verify(box.code(), number, { updatePhoneNumber: true })).toMatchObject({ status: 400 });
    expect(await verify(box.code(), other, { updatePhoneNumber: true })).toMatchObject({ status: 400, code: "PHONE_NUMBER_EXIST" });
  });

  it("a wrong code is INVALID_OTP; without tries left it is TOO_MANY_ATTEMPTS, for the right code too", async () => {
    const { send, verify, wrong, box } = setting();
    await send();
    for (let tries = 1; tries <= 5; tries++) expect(await verify(wrong())).toMatchObject({ status: 400, code: "INVALID_OTP" });
    expect(await verify(box.code())).toMatchObject({ status: 403, code: "TOO_MANY_ATTEMPTS" });
  });

  it("an old message | its code is valid until the verification ends", async () => {
    const { send, verify, box, clock } = setting();
    await send();
    clock.advance(31_000);
    await send();
    expect(box.messages.length).toBe(2);
    expect(await verify(box.code(0))).toMatchObject({ status: 200 });
    expect(await verify(box.code(1))).toMatchObject({ status: 400, code: "OTP_NOT_FOUND" });
  });

  it("an expired code, and one that was never sent, is OTP_NOT_FOUND", async () => {
    const { send, verify, box, clock } = setting();
    expect(await verify("123456")).toMatchObject({ status: 400, code: "OTP_NOT_FOUND" });
    await send();
    clock.advance(601_000);
    expect(await verify(box.code())).toMatchObject({ status: 400, code: "OTP_NOT_FOUND" });
  });

  it("a code is used once", async () => {
    const { signUp, verify, box } = setting();
    await signUp();
    expect(await verify(box.code())).toMatchObject({ status: 400, code: "OTP_NOT_FOUND" });
  });

  it("ten requests with the same right code at once | one succeeds", async () => {
    const { send, verify, box, database } = setting();
    await send();
    const answers = await Promise.all(Array.from({ length: 10 }, () => verify(box.code())));
    expect(answers.filter(({ status }) => status === 200).length).toBe(1);
    expect(database.user.length).toBe(1);
  });

  it("the plugin's own code is never accepted", async () => {
    const { send, verify, requestReset, reset, signUp, own, clock, box } = setting();
    await signUp();
    clock.advance(31_000);
    await send();
    await requestReset();
    expect(own.length).toBe(3);
    for (const code of own) {
      if (box.messages.some((message) => message.code === code)) continue;
      expect(await verify(code)).toMatchObject({ status: 400, code: "INVALID_OTP" });
      expect(await reset(code)).toMatchObject({ status: 400, code: "INVALID_OTP" });
    }
  });

  it("spaces in a code, and the digits of other scripts, are accepted", async () => {
    const { send, verify, box } = setting();
    await send();
    const [one, two] = [box.code().slice(0, 3), box.code().slice(3)];
    expect(await verify(`${one} ${two.replace(/\d/g, (digit) => String.fromCharCode(0x0660 + Number(digit)))}`)).toMatchObject({ status: 200 });
  });

  it("through auth.api, without a request", async () => {
    const { auth, box } = setting({ verifier: { message }, hooks: { fields: (headers) => ({ locale: headers.get("x-language") ?? "fr" }) } });
    await auth.api.sendPhoneNumberOTP({ body: { phoneNumber: number } });
    expect(box.messages.at(-1)?.text).toContain("Votre code");
    await expect(auth.api.sendPhoneNumberOTP({ body: { phoneNumber: number } })).rejects.toMatchObject({ status: "TOO_MANY_REQUESTS", statusCode: 429 });
    expect(await auth.api.consumePhoneNumberOTP({ body: { phoneNumber: number, code: box.code() } })).toEqual({ status: true });
    await expect(auth.api.consumePhoneNumberOTP({ body: { phoneNumber: number, code: box.code() } })).rejects.toMatchObject({ statusCode: 400 });
  });
});

describe("rejections reach the client", () => {
  it("too soon | 429 with the time to retry, and nothing is sent", async () => {
    const { send, box } = setting();
    await send();
    const refused = await send();
    expect(refused).toMatchObject({ status: 429, code: "CODE_ALREADY_SENT", message: "Too many messages were requested. Try again later." });
    expect([refused.headers.get("retry-after"), refused.headers.get("x-retry-after")]).toEqual(["30", "30"]);
    expect(box.messages.length).toBe(1);
  });

  it("a cap | 429 with the time when it has room again", async () => {
    const { signUp, send, box } = setting({ verifier: { policy: onePerTenMinutes } });
    await signUp();
    const refused = await send();
    expect(refused).toMatchObject({ status: 429, code: "TOO_MANY_MESSAGES", message: "Too many messages were requested. Try again later." });
    expect(refused.headers.get("retry-after")).toBe("600");
    expect(box.messages.length).toBe(1);
  });

  it("a spam rule | gives the same error as a cap", async () => {
    const { send, box } = setting({ verifier: { spamRules: [{ name: "mine", judge: () => ({ reason: "no" }) }] } });
    expect(await send()).toMatchObject({ status: 429, code: "TOO_MANY_MESSAGES", message: "Too many messages were requested. Try again later." });
    expect(box.messages.length).toBe(0);
  });

  it.each([
    ["+33142278186", "INVALID_LINE"],
    ["+447911123456", "UNSUPPORTED_REGION"],
    ["+33612", "INVALID_PHONE_NUMBER"],
  ])("%s | 400 %s", async (phoneNumber, code) => {
    const { send, box } = setting({ verifier: { countries: ["FR"] } });
    expect(await send(phoneNumber)).toMatchObject({ status: 400, code, message: "This phone number cannot receive messages." });
    expect(box.messages.length).toBe(0);
  });

  it("the store is down | 503, nothing is sent, and no code is accepted or rejected", async () => {
    const { state, store } = breakable();
    const { send, verify, box } = setting({ verifier: { store } });
    state.isBroken = true;
    expect(await send()).toMatchObject({ status: 503, code: "UNAVAILABLE", message: "The message could not be sent. Try again in a moment." });
    expect(box.messages.length).toBe(0);
    state.isBroken = false;
    await send();
    state.isBroken = true;
    expect(await verify(box.code())).toMatchObject({ status: 503, code: "UNAVAILABLE" });
    state.isBroken = false;
    expect(await verify(box.code())).toMatchObject({ status: 200 });
  });

  it("every carrier rejects the message | 502, for the first message and for a later one", async () => {
    const { send, box, clock } = setting();
    box.answer = async () => ({ outcome: "rejected", reason: "no route" });
    expect(await send()).toMatchObject({ status: 502, code: "MESSAGE_NOT_SENT" });
    // No code is on its way, so there is no cool-down.
    box.answer = async () => ({ outcome: "accepted" });
    expect(await send()).toMatchObject({ status: 200 });
    clock.advance(31_000);
    box.answer = async () => ({ outcome: "rejected", reason: "no route" });
    expect(await send()).toMatchObject({ status: 502, code: "MESSAGE_NOT_SENT" });
    // The first code is still valid.
    expect(await send()).toMatchObject({ status: 429, code: "CODE_ALREADY_SENT" });
  });

  it("a malformed code | 400", async () => {
    const { send, verify } = setting();
    await send();
    expect(await verify("1".repeat(65))).toMatchObject({ status: 400, code: "INVALID_OTP" });
  });

  it("with backgroundTasks.handler | a rejection is logged, and the client gets 200", async () => {
    const tasks: Promise<unknown>[] = [];
    const { send, logged, box } = setting({ app: { advanced: { backgroundTasks: { handler: (task) => void tasks.push(task) } } } });
    await send();
    expect(await send()).toMatchObject({ status: 200 });
    await Promise.all(tasks);
    expect(box.messages.length).toBe(1);
    expect(logged.join("\n")).toContain("Too many messages were requested");
  });

  it("an unknown customer | 500, and the log gives the reason", async () => {
    vi.spyOn(console, "error").mockReturnValue();
    const { send, logged } = setting({ hooks: { customer_uuid: crypto.randomUUID() } });
    expect((await send()).status).toBe(500);
    expect(logged.join("\n")).toContain("customer_uuid");
  });
});

describe("numbers", () => {
  it.each(["0612345678", "+33 6 12 00 00 01", "+330612000001", " +33612000001"])("%s is rejected, because it is not the stored form", async (phoneNumber) => {
    const { send, box } = setting();
    expect(await send(phoneNumber)).toMatchObject({ status: 400, code: "INVALID_PHONE_NUMBER" });
    expect(box.messages.length).toBe(0);
  });

  it.each(["+330612000001", "+33 6 12 00 00 01"])("a right code creates no second account under %s, whatever the validator allows", async (phoneNumber) => {
    const { send, verify, box, database } = setting({ plugin: { phoneNumberValidator: () => true } });
    expect(await send(phoneNumber)).toMatchObject({ status: 400, code: "INVALID_PHONE_NUMBER" });
    await send("+33612000001");
    expect(await verify(box.code(), phoneNumber)).toMatchObject({ status: 400, code: "INVALID_OTP" });
    expect(database.user).toEqual([]);
    expect(await verify(box.code(), "+33612000001")).toMatchObject({ status: 200 });
  });

  it("test numbers outside the numbering plan are accepted", async () => {
    const { send, verify } = setting({ verifier: { testNumbers: [{ number: "+447700900123", code: "424242" }] } });
    expect(await send("+447700900123")).toMatchObject({ status: 200 });
    expect(await verify("424242", "+447700900123")).toMatchObject({ status: 200 });
  });
});

describe("passwords", () => {
  it("reset | the code of the verifier changes the password, once", async () => {
    const { signUp, requestReset, reset, call, box, database, clock } = setting();
    await signUp();
    clock.advance(31_000);
    expect(await requestReset()).toMatchObject({ status: 200 });
    expect(box.messages.length).toBe(2);
    expect(await reset(box.code())).toMatchObject({ status: 200 });
    expect(await reset(box.code())).toMatchObject({ status: 400, code: "INVALID_OTP" });
    expect(await call("/sign-in/phone-number", { phoneNumber: number, password })).toMatchObject({ status: 200, token: expect.any(String) });
    expect(database.user.length).toBe(1);
  });

  it("reset | a code for signing in changes no password, and the other way round", async () => {
    const { signUp, send, verify, requestReset, reset, box, clock } = setting();
    await signUp();
    clock.advance(31_000);
    await requestReset();
    clock.advance(31_000);
    await send();
    const [forReset, forSignIn] = [box.code(1), box.code(2)];
    expect(await verify(forReset)).toMatchObject({ status: 400 });
    expect(await reset(forSignIn)).toMatchObject({ status: 400 });
    expect(await reset(forReset)).toMatchObject({ status: 200 });
    expect(await verify(forSignIn)).toMatchObject({ status: 200 });
  });

  it("reset | ten requests with the same right code at once: one succeeds", async () => {
    const { signUp, requestReset, reset, box, clock } = setting();
    await signUp();
    clock.advance(31_000);
    await requestReset();
    const answers = await Promise.all(Array.from({ length: 10 }, () => reset(box.code())));
    expect(answers.filter(({ status }) => status === 200).length).toBe(1);
  });

  it("reset | no response reveals whether a number has an account", async () => {
    const { signUp, requestReset, reset, wrong, box, clock } = setting();
    await signUp();
    clock.advance(31_000);
    for (let times = 1; times <= 3; times++) {
      const [known, unknown] = [await requestReset(number), await requestReset(other)];
      expect(known.status).toBe(200);
      expect({ ...known, headers: undefined }).toEqual({ ...unknown, headers: undefined });
    }
    expect(box.messages.length).toBe(2);
    for (let tries = 1; tries <= 7; tries++) {
      const [known, unknown] = [await reset(wrong(), number), await reset(wrong(), other)];
      expect(known).toMatchObject({ status: 400, code: "INVALID_OTP" });
      expect({ ...known, headers: undefined }).toEqual({ ...unknown, headers: undefined });
    }
    expect(await reset(box.code())).toMatchObject({ status: 400, code: "INVALID_OTP" });
  });

  it("reset | for a number that cannot receive messages nothing is sent, and no error is logged", async () => {
    const { signUp, requestReset, box, logged, database } = setting();
    await signUp();
    for (const user of database.user) user.phoneNumber = "+33142278186";
    expect(await requestReset("+33142278186")).toMatchObject({ status: 200 });
    expect(box.messages.length).toBe(1);
    expect(logged).toEqual([]);
  });

  it("reset | the store is down: a request gets 200 and the error is logged; a check gets 503", async () => {
    const { state, store } = breakable();
    const { signUp, requestReset, reset, box, logged, clock } = setting({ verifier: { store } });
    await signUp();
    clock.advance(31_000);
    state.isBroken = true;
    expect(await requestReset()).toMatchObject({ status: 200 });
    expect(box.messages.length).toBe(1);
    expect(logged.join("\n")).toContain("background task");
    expect(await reset("123456")).toMatchObject({ status: 503, code: "UNAVAILABLE" });
  });

  it("requireVerification | a sign-in by password sends a code, and works once the number is proven", async () => {
    const { signUp, send, verify, requestReset, reset, call, box, clock, database } = setting({ plugin: { requireVerification: true } });
    await signUp();
    clock.advance(31_000);
    await requestReset();
    await reset(box.code());
    for (const user of database.user) user.phoneNumberVerified = false;
    const signIn = () => call("/sign-in/phone-number", { phoneNumber: number, password });
    clock.advance(31_000);
    expect(await signIn()).toMatchObject({ status: 401, code: "PHONE_NUMBER_NOT_VERIFIED" });
    expect(box.messages.length).toBe(3);
    // The client does not learn that no other code was sent; send-otp reports it.
    expect(await signIn()).toMatchObject({ status: 401, code: "PHONE_NUMBER_NOT_VERIFIED" });
    expect(await send()).toMatchObject({ status: 429, code: "CODE_ALREADY_SENT" });
    expect(box.messages.length).toBe(3);
    expect(await verify(box.code())).toMatchObject({ status: 200 });
    expect(await signIn()).toMatchObject({ status: 200, token: expect.any(String) });
  });
});

describe("options", () => {
  it("fields | adds values of the request's headers to a start; by default no header is read", async () => {
    const fields = (headers: Headers) => ({ ip: headers.get("x-client-ip") ?? undefined, locale: headers.get("x-language") ?? undefined });
    const headers = { "x-client-ip": "203.0.113.7", "x-forwarded-for": "198.51.100.9", "x-real-ip": "198.51.100.9", "x-language": "fr" };
    const seen: unknown[] = [];
    const verifier: Setting["verifier"] = { message, spamRules: [{ name: "looking", judge: ({ ip }) => void seen.push(ip) }] };
    const told = setting({ verifier, hooks: { fields } });
    await told.send(number, headers);
    expect(told.box.messages.at(-1)?.text).toContain("Votre code");
    expect(await told.send(number, headers)).toMatchObject({ status: 429, message: "Trop de messages ont été demandés. Réessayez plus tard." });
    const plain = setting({ verifier });
    await plain.send(number, headers);
    expect(seen).toEqual(["203.0.113.7", undefined]);
  });

  it("customer_uuid | names the customer of every call", async () => {
    const customer_uuid = crypto.randomUUID();
    const { signUp, verifier } = setting({
      verifier: { customers: [{ customer_uuid, keys: [`pp_${crypto.randomUUID()}${crypto.randomUUID()}`] }] },
      hooks: { customer_uuid },
    });
    expect(await signUp()).toMatchObject({ status: 200 });
    expect(await verifier.history({ customer_uuid, phone_number: number })).toMatchObject([{ validated: true }]);
  });

  it("invalid options throw with their names", () => {
    const { verifier } = setUp();
    expect(() => betterAuth(verifier, { feilds: () => ({}) } as never)).toThrow("betterAuth.feilds is not an option");
    expect(() => betterAuth(verifier, { fields: "x-real-ip" } as never)).toThrow("betterAuth.fields must be a function");
    expect(() => betterAuth(verifier, { customer_uuid: "me" })).toThrow("betterAuth.customer_uuid must be a UUID");
  });

  it("a Better Auth that passes no context is rejected as too old", async () => {
    const { sendOTP } = betterAuth(setUp().verifier);
    await expect(sendOTP({ phoneNumber: number, code: "123456" })).rejects.toThrow("Use better-auth 1.7.8 or newer");
  });
});
