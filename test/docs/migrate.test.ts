import { describe, expect, it } from "vitest";
import { openPage } from "./open-page.js";

const number = "+33612345678";

describe("docs/migrate/twilio.md", async () => {
  const { box, clock, load } = await openPage("migrate/twilio");
  type Pending = { to: string; authentication_uuid: string };
  const { start, finish } = await load<{
    start(to: string, ip?: string, pending?: Pending): Promise<Pending | undefined>;
    finish(pending: Pending, code: string): Promise<string | undefined>;
  }>("verification.ts");
  const { finishEither } = await load<{
    finishEither(session: { to: string; pending?: Pending }, code: string, check: () => Promise<{ status: string }>): Promise<string | undefined>;
  }>("switch.ts");

  it("start, start again, finish | sends no second code during the cool-down, and then one of the same authentication", async () => {
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

  it("finish | returns the number in E.164 form, however it was entered", async () => {
    const pending = (await start("+330612345680")) as Pending;
    expect(await finish(pending, box.messages.at(-1)?.code ?? "")).toBe("+33612345680");
  });

  it("an authentication that is not in the store | cannot be checked, and start makes another", async () => {
    const forgotten = { to: "+33612345682", authentication_uuid: "11111111-2222-3333-4444-555555555555" };
    expect(await finish(forgotten, "123456")).toBeUndefined();
    expect(await start(forgotten.to, undefined, forgotten)).toMatchObject({ to: forgotten.to });
    expect(box.messages.at(-1)?.to).toBe(forgotten.to);
  });

  it("start | returns undefined for a number that cannot receive messages", async () => expect(await start("+1900")).toBeUndefined());

  it("the switch | a session with an id is checked here, one without by Verify", async () => {
    const pending = (await start("+447700900123")) as Pending;
    const verify = async () => ({ status: "approved" });
    expect(await finishEither({ to: "+447700900123", pending }, "000000", verify)).toBeUndefined();
    expect(await finishEither({ to: "+447700900123", pending }, "424242", verify)).toBe("+447700900123");
    expect(await finishEither({ to: number }, "1", verify)).toBe(number);
    expect(await finishEither({ to: number }, "1", async () => ({ status: "pending" }))).toBeUndefined();
  });
});

describe("docs/migrate/hand-written.md", async () => {
  const { box, load } = await openPage("migrate/hand-written");
  type Session = { proven?: string };
  const { sendCode, checkCode } = await load<{
    sendCode(session: Session, phone_number: string, user: { ip: string; device_id: string }): Promise<string>;
    checkCode(session: Session, code: string): Promise<boolean>;
  }>("sign-up.ts");
  const user = { ip: "198.51.100.7", device_id: "a browser" };

  it("proves a number in E.164 form, however it was entered", async () => {
    const session: Session = {};
    await sendCode(session, "+330612345681", user);
    expect(await checkCode(session, box.messages.at(-1)?.code ?? "")).toBe(true);
    expect(session.proven).toBe("+33612345681");
  });

  it("a code proves the number only once, and only in its own session", async () => {
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
  const { box, verifier, load } = await openPage("migrate/prelude");
  type Check = (request: { authentication_uuid: string; check_code: string }) => Promise<{ status: string }>;
  const { checkBoth } = await load<{ checkBoth(ours: object, theirs: { check: Check }): Check }>("check.ts");

  it("the switch | only an id that the new service does not know goes to the old one", async () => {
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
