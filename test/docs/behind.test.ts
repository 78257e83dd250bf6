import { createServer } from "node:http";
import express from "express";
import { middleware } from "supertokens-node/framework/express";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type SuperTokensCore, superTokensCore } from "../support/supertokens-core.js";
import { type Listening, listening } from "../wires/listen.js";
import { openPage } from "./open-page.js";

const number = "+33612345678";

describe("docs/behind/better-auth.md", async () => {
  const { box, clock, verifier, load } = await openPage("behind/better-auth");
  const { auth } = await load<{ auth: { handler(request: Request): Promise<Response> } }>("auth.ts");
  const call = async (path: string, body: object) => {
    const headers = { "content-type": "application/json", origin: "http://localhost:3000" };
    const url = `http://localhost:3000/api/auth/phone-number${path}`;
    const response = await auth.handler(new Request(url, { method: "POST", headers, body: JSON.stringify(body) }));
    return { ...((await response.json()) as object), status: response.status };
  };
  const code = () => box.messages.at(-1)?.code ?? "";

  it("send-otp | sends a code; a second call returns 429 during the cool-down, and then retries the same verification", async () => {
    expect(await call("/send-otp", { phoneNumber: number })).toMatchObject({ status: 200 });
    expect(await call("/send-otp", { phoneNumber: number })).toMatchObject({ status: 429, code: "CODE_ALREADY_SENT" });
    clock.advance(31_000);
    expect(await call("/send-otp", { phoneNumber: number })).toMatchObject({ status: 200 });
    expect(new Set(box.messages.map(({ authentication_uuid }) => authentication_uuid)).size).toBe(1);
  });

  it("verify | rejects a wrong code, and signs in once with the right one", async () => {
    expect(await call("/verify", { phoneNumber: number, code: code() === "000000" ? "000001" : "000000" })).toMatchObject({ status: 400, code: "INVALID_OTP" });
    expect(await call("/verify", { phoneNumber: number, code: code() })).toMatchObject({ status: 200, token: expect.any(String) });
    expect(await call("/verify", { phoneNumber: number, code: code() })).toMatchObject({ status: 400, code: "OTP_NOT_FOUND" });
  });

  it("an erased verification | cannot be checked, and the next send-otp starts another", async () => {
    const forgotten = "+33612345699";
    expect(await call("/send-otp", { phoneNumber: forgotten })).toMatchObject({ status: 200 });
    await verifier.erase({ phone_number: forgotten });
    expect(await call("/verify", { phoneNumber: forgotten, code: code() })).toMatchObject({ status: 400, code: "OTP_NOT_FOUND" });
    expect(await call("/send-otp", { phoneNumber: forgotten })).toMatchObject({ status: 200 });
    expect(await call("/verify", { phoneNumber: forgotten, code: code() })).toMatchObject({ status: 200 });
  });
});

describe("docs/behind/supertokens.md: supertokens-node with a simulated core", async () => {
  const { box, verifier, load } = await openPage("behind/supertokens");
  const { initSuperTokens } = await load<{ initSuperTokens(connectionURI: string): void }>("supertokens.ts");
  let core: SuperTokensCore;
  let app: Listening;

  beforeAll(async () => {
    core = await superTokensCore();
    initSuperTokens(core.url);
    app = await listening(createServer(express().use(middleware())));
  });
  afterAll(async () => {
    await app?.close();
    await core?.close();
  });

  type Answer = { status: string; message?: string; deviceId: string; preAuthSessionId: string; createdNewRecipeUser?: boolean };
  const call = async (path: string, body: object): Promise<Answer & { http: number }> => {
    const response = await fetch(`${app.url}/auth/signinup/code${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", rid: "passwordless", "st-auth-mode": "header" },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    if (!text.startsWith("{")) throw new Error(text);
    return { ...(JSON.parse(text) as Answer), http: response.status };
  };
  const code = () => box.messages.at(-1)?.code ?? "";
  const confirmed = async (phone_number: string) => (await verifier.history({ phone_number })).map(({ validated }) => validated);

  it("sign-up | SuperTokens' code is sent, signs the user in, and is confirmed", async () => {
    const { deviceId, preAuthSessionId, ...created } = await call("", { phoneNumber: number });
    expect(created).toMatchObject({ http: 200, status: "OK" });
    expect(box.messages).toMatchObject([{ to: number, code: expect.stringMatching(/^\d{6}$/) }]);
    const wrong = await call("/consume", { deviceId, preAuthSessionId, userInputCode: "000000" });
    expect(wrong).toMatchObject({ http: 200, status: "INCORRECT_USER_INPUT_CODE_ERROR" });
    expect(await confirmed(number)).toEqual([false]);
    const consumed = await call("/consume", { deviceId, preAuthSessionId, userInputCode: code() });
    expect(consumed).toMatchObject({ http: 200, status: "OK", createdNewRecipeUser: true });
    expect(await confirmed(number)).toEqual([true]);
    expect(core.unknown).toEqual([]);
  });

  it("sign-in | the same number is the same user; a confirmation that fails does not stop the sign-in", async () => {
    const reported = vi.spyOn(console, "error").mockReturnValue();
    vi.spyOn(verifier, "confirm").mockRejectedValueOnce(new Error("the store is down"));
    const { deviceId, preAuthSessionId } = await call("", { phoneNumber: number });
    const consumed = await call("/consume", { deviceId, preAuthSessionId, userInputCode: code() });
    expect(consumed).toMatchObject({ http: 200, status: "OK", createdNewRecipeUser: false });
    expect(reported).toHaveBeenCalledWith(new Error("the store is down"));
    vi.restoreAllMocks();
  });

  it("resend | sends another code of the same verification", async () => {
    const other = "+33612345679";
    const { deviceId, preAuthSessionId } = await call("", { phoneNumber: other });
    const first = code();
    expect(await call("/resend", { deviceId, preAuthSessionId })).toMatchObject({ http: 200, status: "OK" });
    expect(code()).not.toBe(first);
    expect((await verifier.history({ phone_number: other })).length).toBe(1);
    expect(await call("/consume", { deviceId, preAuthSessionId, userInputCode: code() })).toMatchObject({ status: "OK" });
    expect(await confirmed(other)).toEqual([true]);
  });

  it("a cap | create and resend show the user our message, and nothing is sent", async () => {
    const capped = "+33612345680";
    const { deviceId, preAuthSessionId } = await call("", { phoneNumber: capped });
    let answer = await call("/resend", { deviceId, preAuthSessionId });
    for (let tries = 0; tries < 20 && answer.status === "OK"; tries++) answer = await call("/resend", { deviceId, preAuthSessionId });
    const refused = { http: 200, status: "GENERAL_ERROR", message: "Too many messages were requested. Try again later." };
    expect(answer).toEqual(refused);
    const sent = box.messages.length;
    expect(await call("", { phoneNumber: capped })).toEqual(refused);
    expect(box.messages.length).toBe(sent);
  });

  it.each(["+33142278186", "+447911123456"])("%s | the user sees that the number cannot receive messages", async (phoneNumber) => {
    const sent = box.messages.length;
    expect(await call("", { phoneNumber })).toEqual({ http: 200, status: "GENERAL_ERROR", message: "This phone number cannot receive messages." });
    expect(box.messages.length).toBe(sent);
  });
});
