import { createHmac } from "node:crypto";
import { describe, expect, test } from "vitest";
import { VerifierError } from "../../src/errors.js";
import { authentikHook, authgearHook, casdoorHook, genericHook, oktaHook } from "../../src/hooks/index.js";
import { now, sentence, served } from "./stand-in.js";

const token = "of-the-server";
const authorization = `Bearer ${token}`;
const form = { authorization, "content-type": "application/x-www-form-urlencoded" };

describe("oktaHook", () => {
  const body = {
    eventId: "uS5871kJThSsU8qlA1LTcg",
    eventTime: "2026-11-25T12:00:00.000Z",
    eventType: "com.okta.telephony.provider",
    source: "https://example.okta.com/api/v1/inlineHooks/calz6lVQA77AwFeEe0g3",
    requestType: "com.okta.user.telephony.mfa-verification",
    data: {
      context: { request: { id: "reqRgSk8IBBRhuo0YdlEDTmUw", method: "POST", ipAddress: "203.0.113.7" } },
      userProfile: { firstName: "Ada", lastName: "L", login: "ada@example.com", userId: "00uyxxSknGtK8022w0g3" },
      messageProfile: {
        msgTemplate: "(HOOK)Your code is 11111",
        phoneNumber: "33612345678",
        otpExpires: new Date(now + 240_000).toISOString(),
        deliveryChannel: "SMS",
        otpCode: "11111",
        locale: "EN-US",
      },
    },
  };
  const post = async (payload: unknown, answer?: Parameters<typeof served>[1]) => {
    // Files of secrets often end with a line break.
    const one = served(oktaHook({ token: `${token}\n`, header: "X-Okta-Secret" }), answer);
    const response = await one.send("okta", payload, { "x-okta-secret": token });
    return { ...one, response, answered: JSON.parse(response.body) };
  };

  test("reads the body and responds with a command", async () => {
    const { delivered, response, answered } = await post(body);
    expect(response.status).toBe(200);
    const action = { status: "SUCCESSFUL", provider: "phoneproof", transactionId: "d-1" };
    expect(answered).toEqual({ commands: [{ type: "com.okta.telephony.action", value: [action] }] });
    expect(delivered).toEqual([
      {
        phone_number: "+33612345678",
        code: "11111",
        text: "(HOOK)Your code is 11111",
        purpose: "mfa",
        locale: "EN-US",
        ip: "203.0.113.7",
        correlation_id: "00uyxxSknGtK8022w0g3",
        expires_in: 240,
        within: 2000,
        idempotency_key: body.eventId,
      },
    ]);
  });

  test.each([
    ["repeated", "SUCCESSFUL"],
    ["pending", "PENDING"],
    ["no_route", "FAILED"],
  ] as const)("responds to %s with %s", async (status, word) => {
    expect((await post(body, { status })).answered.commands[0].value[0].status).toBe(word);
  });

  test.each([
    { status: "rate_limited", message: sentence },
    { status: "spam_detected", message: sentence },
    { status: "invalid", message: sentence },
    { status: "unavailable" },
    new VerifierError("bad_request", "x"),
    new Error("x"),
  ] as const)("responds to %j with 200 and an error, because anything else makes Okta send the code", async (answer) => {
    const { response, answered } = await post(body, answer);
    expect(response.status).toBe(200);
    expect(answered).toEqual({ error: { errorSummary: expect.stringMatching(/^(Too many|The message could not)/) } });
  });

  const through = (deliveryChannel: unknown) => ({ ...body, data: { ...body.data, messageProfile: { ...body.data.messageProfile, deliveryChannel } } });

  test.each(["SMS", "sms", undefined])("sends a message if the channel is %s", async (channel) => {
    expect((await post(through(channel))).delivered).toHaveLength(1);
  });

  test("responds to any other channel and to a malformed body with an error, and sends nothing", async () => {
    for (const payload of [...["CALL", "call", "voice", "VOICE CALL", "voice_call"].map(through), {}, "{"]) {
      const { response, answered, delivered } = await post(payload);
      expect([response.status, Object.keys(answered), delivered]).toEqual([200, ["error"], []]);
    }
  });

  test("leaves out a template that has a placeholder instead of the code", async () => {
    const messageProfile = { ...body.data.messageProfile, msgTemplate: "Your code is $" + "{code}" };
    const { delivered } = await post({ ...body, data: { ...body.data, messageProfile } });
    expect(delivered[0]).not.toHaveProperty("text");
  });
});

describe("authentikHook", () => {
  const body = { From: "phoneproof", To: "+33612345678", Body: "482913", Message: "Use this code to authenticate: 482913" };

  test("reads code and text, and the fields that a mapping adds", async () => {
    const { send, delivered } = served(authentikHook({ token, ip: "trust" }));
    await send("authentik", { ...body, ip: "203.0.113.7", user_id: "ada" }, { authorization });
    expect(delivered).toEqual([{ phone_number: "+33612345678", code: "482913", text: body.Message, purpose: "mfa", ip: "203.0.113.7", correlation_id: "ada" }]);
  });

  test.each([
    ["rate_limited", 429],
    ["invalid", 422],
    ["no_route", 502],
    ["unavailable", 503],
  ] as const)("responds to %s with %s and the text for the user", async (status, code) => {
    const { send } = served(authentikHook({ token }), { status, message: sentence });
    expect(await send("authentik", body, { authorization })).toMatchObject({ status: code, body: sentence });
  });
});

describe("authgearHook", () => {
  const body = {
    to: "+33612345678",
    body: "Your code is 482913",
    app_id: "app",
    template_name: "authenticate_primary_oob_sms.txt",
    language_tag: "fr",
    template_variables: { code: "482913", app_name: "App", phone: "+33612345678" },
  };
  const post = (answer?: Parameters<typeof served>[1], key = "hook-secret") => {
    const one = served(authgearHook({ signingKey: "hook-secret" }), answer);
    const signature = createHmac("sha256", key).update(JSON.stringify(body)).digest("hex");
    return { ...one, response: one.send("authgear", body, { "x-authgear-body-signature": signature }) };
  };

  test("reads the body", async () => {
    const { response, delivered } = post();
    expect(await response).toMatchObject({ status: 200, body: '{"code":"ok"}' });
    expect(delivered).toEqual([
      {
        phone_number: "+33612345678",
        code: "482913",
        text: body.body,
        purpose: "sign_in",
        locale: "fr",
        idempotency_key: expect.stringMatching(/^[\w-]{43}$/),
      },
    ]);
  });

  test.each([
    ["rate_limited", 200, "rate_limited"],
    ["spam_detected", 200, "rate_limited"],
    ["invalid", 200, "invalid_phone_number"],
    ["no_route", 200, "delivery_rejected"],
    ["unavailable", 503, "unavailable"],
  ] as const)("responds to %s with %s %s", async (status, outer, code) => {
    const response = await post({ status, message: sentence }).response;
    expect([response.status, JSON.parse(response.body)]).toEqual([
      outer,
      { code, description: sentence, info: { provider_name: "phoneproof", provider_error_code: code }, provider_error_code: code },
    ]);
  });

  test("rejects another key", async () => {
    const { response, delivered } = post(undefined, "another");
    expect([(await response).status, delivered]).toEqual([401, []]);
  });
});

describe("casdoorHook", () => {
  test.each([
    ["a form with a sentence", "phoneNumber=%2B33612345678&content=Your+code+is+482913", form, { code: "482913", text: "Your code is 482913" }],
    ["a form with a bare code", "phoneNumber=+33612345678&code=482913", form, { code: "482913" }],
    [
      "JSON with a name of the operator's",
      { phoneNumber: "+33612345678", msg: "482913 ist dein Code" },
      { authorization },
      { code: "482913", text: "482913 ist dein Code" },
    ],
    ["two runs of digits", { phoneNumber: "+33612345678", code: "482913, valid until 2026" }, { authorization }, { text: "482913, valid until 2026" }],
    ["no run of digits", { phoneNumber: "+33612345678", code: "Hello 123" }, { authorization }, { text: "Hello 123" }],
  ])("reads %s", async (_, body, headers, expected) => {
    const { send, delivered } = served(casdoorHook({ token }));
    expect((await send("casdoor", body, headers as Record<string, string>)).status).toBe(200);
    expect(delivered).toEqual([{ phone_number: "+33612345678", ...expected }]);
  });

  test("accepts the secret in the path of older releases, and does not show it in the route", async () => {
    const { send, delivered, handler } = served(casdoorHook({ token: "a secret/of the path" }));
    const path = `casdoor/${encodeURIComponent("a secret/of the path")}`;
    expect((await send(path, { phoneNumber: "+33612345678", code: "482913" })).status).toBe(200);
    expect((await send("casdoor/another", { phoneNumber: "+33612345678", code: "482913" })).status).toBe(401);
    expect(handler.routeOf?.(`/hooks/${path}`)).toBe("/hooks/casdoor/{secret}");
    expect(delivered).toHaveLength(1);
  });
});

describe("genericHook", () => {
  const to = "+33612345678";
  test.each([
    [
      "an Action of Auth0",
      { to, code: "482913", text: "482913 is your code", locale: "fr", type: "otp_verify", ip: "203.0.113.7", user_id: "auth0|1", id: "t1" },
      { code: "482913", text: "482913 is your code", locale: "fr", purpose: "mfa", correlation_id: "auth0|1", idempotency_key: expect.any(String) },
    ],
    [
      "a Lambda of Cognito",
      { phone_number: to, code: "482913", type: "CustomSMSSender_ForgotPassword", known: true },
      { code: "482913", purpose: "reset", known: true },
    ],
    [
      "the messenger of FusionAuth",
      { code: "482913", phoneNumber: to, textMessage: "Code: 482913", type: "SMS", userId: "u1" },
      { code: "482913", text: "Code: 482913", correlation_id: "u1" },
    ],
    [
      "a plugin of Keycloak",
      { id: "b3f0", to, text: "Your SMS code is 482913." },
      { code: "482913", text: "Your SMS code is 482913.", idempotency_key: expect.any(String) },
    ],
    [
      "an Action of Auth0 for a notice, whose year is no code",
      { to, text: "Blocked on 2026-03-01", type: "blocked_account" },
      { text: "Blocked on 2026-03-01", purpose: "blocked_account" },
    ],
    ["CAS", { clientIpAddress: "203.0.113.7", from: "cas", to, text: "Token: 482913" }, { code: "482913", text: "Token: 482913" }],
  ])("reads what %s sends", async (_, body, expected) => {
    const { send, delivered } = served(genericHook({ token }));
    expect((await send("generic", body, { authorization })).status).toBe(200);
    expect(delivered).toEqual([{ phone_number: to, known: false, ...expected }]);
  });

  test("uses the address if `ip` is `trust`", async () => {
    const { send, delivered } = served(genericHook({ token, ip: "trust" }));
    await send("generic", { to, code: "482913", ip: "203.0.113.7" }, { authorization });
    expect(delivered).toMatchObject([{ ip: "203.0.113.7" }]);
  });

  test("uses a new idempotency key for another code under the same id, and the same key for a repeat", async () => {
    const { send, delivered } = served(genericHook({ token }));
    for (const code of ["111111", "111111", "222222"]) await send("generic", { to, code, id: "t1" }, { authorization });
    const keys = delivered.map(({ idempotency_key }) => idempotency_key);
    expect([keys[0] === keys[1], keys[1] === keys[2]]).toEqual([true, false]);
  });

  test.each([
    [{ status: "sent", delivery_uuid: "d-1" }, 200, { status: "sent", id: "d-1" }],
    [
      { status: "rate_limited", delivery_uuid: "d-1", retry_after: 60, message: sentence },
      429,
      { status: "rate_limited", id: "d-1", message: sentence, retry_after: 60 },
    ],
    [{ status: "no_route", message: sentence }, 502, { status: "no_route", message: sentence }],
    [new VerifierError("bad_request", "code must be …"), 400, { status: "malformed", message: "code must be …" }],
    [new VerifierError("bad_request", "customer_uuid is required …"), 500, { status: "failed", message: expect.any(String) }],
  ] as const)("responds to %j with %s", async (answer, status, body) => {
    const { send } = served(genericHook({ token }), answer);
    const response = await send("generic", { to, code: "482913" }, { authorization });
    expect([response.status, JSON.parse(response.body)]).toEqual([status, body]);
  });

  test.each([{ type: "Voice" }, { channel: "call" }, { channel: "voice call" }, { delivery_method: "voice_call" }])("rejects calls: %j", async (fields) => {
    const { send, delivered } = served(genericHook({ token }));
    const response = await send("generic", { phoneNumber: to, message: "4 8 2 9 1 3", code: "482913", ...fields }, { authorization });
    expect([response.status, delivered]).toEqual([422, []]);
  });

  test.each([
    [
      { to, at: "2026-11-25T11:59:00Z" },
      { phone_number: to, at: "2026-11-25T11:59:00Z" },
    ],
    [{ phone_number: "33 6 12-34-56-78" }, { phone_number: to }],
    [{ id: "d-1" }, { delivery_uuid: "d-1" }],
  ])("confirms %j", async (body, expected) => {
    const customer = "2f0e6f5c-3b7a-4d58-9c1e-6a1b2c3d4e5f";
    const { send, confirmed } = served(genericHook({ token, name: "auth0", customer_uuid: customer }));
    expect(await send("auth0/confirmed", body, { authorization })).toMatchObject({ status: 200, body: '{"status":"confirmed"}' });
    expect(confirmed).toEqual([{ customer_uuid: customer, ...expected }]);
  });

  test.each([
    ["unavailable", 503],
    ["bad_request", 400],
    ["account_invalid", 500],
  ] as const)("responds to the error %s of a confirmation with %s", async (code, status) => {
    const { send } = served(genericHook({ token }), undefined, new VerifierError(code, "x"));
    expect((await send("generic/confirmed", { to }, { authorization })).status).toBe(status);
    expect((await send("generic/confirmed", {}, { authorization })).status).toBe(400);
  });
});
