import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import type { Inbox } from "../../adapters/sms/inbox.js";
import type { Verifier } from "../../src/index.js";
import type { FixedClock } from "../../src/testing/fixed-clock.js";
import { root } from "../package/built.js";

const cache = join(root, "node_modules/.cache/phoneproof-migrate");
afterAll(() => rmSync(cache, { recursive: true, force: true }));

/** In the place of the pages' own `./verifier.js`: one whose messages and clock are at hand. */
const verifierFor = (page: string) => `
import { createVerifier } from "phoneproof";
import { memoryStore } from "phoneproof/memory";
import { inboxSender } from "phoneproof/senders/inbox";
import { fixedClock } from "phoneproof/testing";
export const clock = fixedClock(Date.now());
export const box = inboxSender();
export const verifier = createVerifier({
  store: memoryStore({ name: "migrate ${page}" }),
  sender: box,
  clock,
  secret: "${"Kq7".repeat(14)}",
  countries: ["FR"],
  callbacks: { worker: false }, // nothing looks for due ones while the clock jumps
  testNumbers: [{ number: "+447700900123", code: "424242" }],
});
`;

interface Bench {
  readonly verifier: Verifier;
  readonly box: Inbox;
  readonly clock: FixedClock;
}

/** The programs of a page as the files that they name, beside that verifier. */
async function layOut(page: string): Promise<Bench & { load<T>(name: string): Promise<T> }> {
  const folder = join(cache, page);
  mkdirSync(join(folder, "node_modules"), { recursive: true });
  symlinkSync(root, join(folder, "node_modules/phoneproof"), "dir");
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  const text = readFileSync(join(root, `docs/migrate/${page}.md`), "utf8");
  for (const [, name = "", program = ""] of text.matchAll(/^```ts\n\/\/ (\S+)\n([\s\S]*?)^```$/gm)) writeFileSync(join(folder, name), program);
  writeFileSync(join(folder, "verifier.ts"), verifierFor(page));
  writeFileSync(join(folder, "required.ts"), `export const required = () => "${"Zr4".repeat(14)}";`);
  const load = <T>(name: string) => import(/* @vite-ignore */ pathToFileURL(join(folder, name)).href) as Promise<T>;
  return { ...(await load<Bench>("verifier.ts")), load };
}

const number = "+33612345678";

describe("docs/migrate/better-auth.md: the hooks in better-auth itself", async () => {
  const { box, clock, verifier, load } = await layOut("better-auth");
  const { auth } = await load<{ auth: { handler(request: Request): Promise<Response> } }>("auth.ts");
  const call = async (path: string, body: object) => {
    const headers = { "content-type": "application/json", origin: "http://localhost:3000" };
    const url = `http://localhost:3000/api/auth/phone-number${path}`;
    const response = await auth.handler(new Request(url, { method: "POST", headers, body: JSON.stringify(body) }));
    return { ...((await response.json()) as object), status: response.status };
  };
  const code = () => box.messages.at(-1)?.code ?? "";
  const wrong = () => (code() === "000000" ? "000001" : "000000");

  it("send-otp | the code of phoneproof goes out, not better-auth's", async () => {
    expect(await call("/send-otp", { phoneNumber: number })).toMatchObject({ status: 200 });
    expect(box.messages.length).toBe(1);
  });

  it("send-otp again | 429 until the cool-down is over, then a retry of the same authentication", async () => {
    expect(await call("/send-otp", { phoneNumber: number })).toMatchObject({ status: 429, code: "not_yet" });
    clock.advance(31_000);
    expect(await call("/send-otp", { phoneNumber: number })).toMatchObject({ status: 200 });
    expect(new Set(box.messages.map(({ authentication_uuid }) => authentication_uuid)).size).toBe(1);
  });

  it("verify | a wrong code is refused, the right one signs in once", async () => {
    expect(await call("/verify", { phoneNumber: number, code: wrong() })).toMatchObject({ status: 400, code: "INVALID_OTP" });
    expect(await call("/verify", { phoneNumber: number, code: code() })).toMatchObject({ status: 200, token: expect.any(String) });
    expect(await call("/verify", { phoneNumber: number, code: code() })).toMatchObject({ status: 400 });
  });

  it("a code for signing in changes no password, and the other way round", async () => {
    clock.advance(61_000);
    expect(await call("/request-password-reset", { phoneNumber: number })).toMatchObject({ status: 200 });
    const reset = code();
    expect(await call("/verify", { phoneNumber: number, code: reset })).toMatchObject({ status: 400 });
    expect(await call("/send-otp", { phoneNumber: number })).toMatchObject({ status: 200 });
    expect(await call("/reset-password", { phoneNumber: number, otp: code(), newPassword: "a long password" })).toMatchObject({ status: 400 });
    expect(await call("/reset-password", { phoneNumber: number, otp: reset, newPassword: "a long password" })).toMatchObject({ status: 200 });
  });

  it.each(["0612345678", "+33 6 12 34 56 78", "+330612345678", "+15005550006x"])("%s is no number: one spelling, one account", async (phoneNumber) => {
    expect(await call("/send-otp", { phoneNumber })).toMatchObject({ status: 400 });
  });

  it("an authentication that the store forgot | is checked in vain, and another is made", async () => {
    const forgotten = "+33612345699";
    expect(await call("/send-otp", { phoneNumber: forgotten })).toMatchObject({ status: 200 });
    await verifier.erase({ phone_number: forgotten });
    expect(await call("/verify", { phoneNumber: forgotten, code: code() })).toMatchObject({ status: 400, code: "INVALID_OTP" });
    expect(await call("/send-otp", { phoneNumber: forgotten })).toMatchObject({ status: 200 });
    expect(await call("/verify", { phoneNumber: forgotten, code: code() })).toMatchObject({ status: 200 });
  });

  it("a country that is not sent to is told by its code", async () => {
    expect(await call("/send-otp", { phoneNumber: "+447400123456" })).toMatchObject({ status: 400, code: "unsupported_region" });
  });
});

describe("docs/migrate/twilio.md", async () => {
  const { box, clock, load } = await layOut("twilio");
  type Pending = { to: string; authentication_uuid: string };
  const { start, finish } = await load<{
    start(to: string, ip?: string, pending?: Pending): Promise<Pending | undefined>;
    finish(pending: Pending, code: string): Promise<string | undefined>;
  }>("verification.ts");
  const { finishEither } = await load<{
    finishEither(session: { to: string; pending?: Pending }, code: string, check: () => Promise<{ status: string }>): Promise<string | undefined>;
  }>("switch.ts");

  it("start, start again, finish | a code, at once none more, after the cool-down another one of the same authentication", async () => {
    const pending = (await start(number)) as Pending;
    expect(await start(number, undefined, pending)).toEqual(pending);
    expect(box.messages.length).toBe(1);
    clock.advance(31_000);
    expect(await start(number, undefined, pending)).toEqual(pending);
    expect(box.messages.length).toBe(2);
    const code = box.messages.at(-1)?.code ?? "";
    expect(await finish(pending, code)).toBe(number);
    expect(await finish(pending, code)).toBeUndefined();
  });

  it("finish | tells the number in E.164 form, however it was typed", async () => {
    const pending = (await start("+330612345680")) as Pending;
    expect(await finish(pending, box.messages.at(-1)?.code ?? "")).toBe("+33612345680");
  });

  it("an authentication that the store forgot | is checked in vain, and another is made", async () => {
    const forgotten = { to: "+33612345682", authentication_uuid: "11111111-2222-3333-4444-555555555555" };
    expect(await finish(forgotten, "123456")).toBeUndefined();
    expect(await start(forgotten.to, undefined, forgotten)).toMatchObject({ to: forgotten.to });
    expect(box.messages.at(-1)?.to).toBe(forgotten.to);
  });

  it("a number that cannot be sent to is no error of the app", async () => expect(await start("+1900")).toBeUndefined());

  it("the switch | who holds an id is checked here, who holds none by Verify", async () => {
    const pending = (await start("+447700900123")) as Pending;
    const verify = async () => ({ status: "approved" });
    expect(await finishEither({ to: "+447700900123", pending }, "000000", verify)).toBeUndefined();
    expect(await finishEither({ to: "+447700900123", pending }, "424242", verify)).toBe("+447700900123");
    expect(await finishEither({ to: number }, "1", verify)).toBe(number);
    expect(await finishEither({ to: number }, "1", async () => ({ status: "pending" }))).toBeUndefined();
  });
});

describe("docs/migrate/hand-written.md", async () => {
  const { box, load } = await layOut("hand-written");
  type Session = { proven?: string };
  const { sendCode, checkCode } = await load<{
    sendCode(session: Session, phone_number: string, user: { ip: string; device_id: string }): Promise<string>;
    checkCode(session: Session, code: string): Promise<boolean>;
  }>("sign-up.ts");
  const user = { ip: "198.51.100.7", device_id: "a browser" };

  it("proves a number in E.164 form, however it was typed", async () => {
    const session: Session = {};
    await sendCode(session, "+330612345681", user);
    expect(await checkCode(session, box.messages.at(-1)?.code ?? "")).toBe(true);
    expect(session.proven).toBe("+33612345681");
  });

  it("proves the number of its session, once, and of no other", async () => {
    const session: Session = {};
    expect(await sendCode(session, number, user)).toBe("sent");
    const code = box.messages.at(-1)?.code ?? "";
    expect(await checkCode({}, code)).toBe(false);
    expect(await checkCode(session, code)).toBe(true);
    expect(session.proven).toBe(number);
    expect(await checkCode(session, code)).toBe(false);
    expect(await sendCode({}, "+447400123456", user)).toBe("not this number");
  });
});

describe("docs/migrate/prelude.md", async () => {
  const { box, verifier, load } = await layOut("prelude");
  type Check = (request: { authentication_uuid: string; check_code: string }) => Promise<{ status: string }>;
  const { checkBoth } = await load<{ checkBoth(ours: object, theirs: { check: Check }): Check }>("check.ts");

  it("the switch | what the new service does not know goes to the old one, and nothing else", async () => {
    const asked: string[] = [];
    const check = checkBoth(verifier, {
      check: async ({ authentication_uuid }) => {
        asked.push(authentication_uuid);
        return { status: "valid" };
      },
    });
    const old = "11111111-2222-3333-4444-555555555555";
    const { authentication_uuid } = await verifier.createAuthentication({ phone_number: number });
    const code = box.messages.at(-1)?.code ?? "";
    expect(await check({ authentication_uuid, check_code: code === "000000" ? "000001" : "000000" })).toMatchObject({ status: "invalid" });
    expect(await check({ authentication_uuid: old, check_code: "1" })).toMatchObject({ status: "valid" });
    await expect(check({ authentication_uuid, check_code: "" })).rejects.toMatchObject({ code: "bad_request" });
    expect(asked).toEqual([old]);
  });
});
