import { createHmac } from "node:crypto";
import { describe, expect, test } from "vitest";
import { VerifierError } from "../../src/errors.js";
import { kratosHook, zitadelHook } from "../../src/hooks/index.js";
import { now, seconds, sentence, served } from "./stand-in.js";

const authorization = "Bearer of-the-courier";
const kratosBody = {
  to: "+33612345678",
  text: "Your login code is: 482913\n\nIt expires in 15 minutes.",
  type: "login_code_valid",
  data: {
    to: "+33612345678",
    login_code: "482913",
    expires_in_minutes: 15,
    identity: {
      id: "9a1c9a9e-6c1b-4d62-9f8f-0a8f1f1f2b11",
      traits: { phone: "+33612345678", locale: "de" },
      verifiable_addresses: [{ value: "+33612345678", verified_at: "2026-11-01T00:00:00Z" }],
    },
    transient_payload: { ip: "198.51.100.1" },
  },
  headers: { "True-Client-Ip": ["203.0.113.7"], "Accept-Language": ["fr-FR,fr;q=0.9"] },
};

const zitadelBody = {
  contextInfo: { eventType: "session.otp.sms.challenged", provider: { id: "1", description: "phoneproof" }, recipientPhoneNumber: "+33612345678" },
  templateData: { title: "", subject: "", text: "48291355 is your one-time password.\n@auth.example #48291355" },
  args: { verifiedPhone: "+33612345678", lastPhone: "+33612345678", oTP: "48291355", loginName: "ada@example.com" },
};
const signed = (text: string, key = "signing-key", at = seconds) => ({
  "zitadel-signature": `t=${at},v1=${createHmac("sha256", "another").update("x").digest("hex")},v1=${createHmac("sha256", key).update(`${at}.${text}`).digest("hex")}`,
});

const kratos = (...answer: [Parameters<typeof served>[1]?]) => {
  const one = served(kratosHook({ token: "of-the-courier" }), ...answer);
  return { ...one, post: (body: unknown = kratosBody) => one.send("kratos", body, { authorization }) };
};
const zitadel = (...answer: [Parameters<typeof served>[1]?]) => {
  const one = served(zitadelHook({ signingKey: "signing-key" }), ...answer);
  return { ...one, post: (body: unknown = zitadelBody) => one.send("zitadel", body, signed(JSON.stringify(body))) };
};

describe.each([
  ["kratosHook", kratos],
  ["zitadelHook", zitadel],
] as const)("%s", (_, start) => {
  test.each(["rate_limited", "spam_detected", "invalid"] as const)("responds to %s with 200, because a queue would repeat an error", async (status) => {
    expect(await start({ status, message: sentence }).post()).toMatchObject({ status: 200, headers: { "x-phoneproof-status": status }, body: "{}" });
  });

  test.each(["no_route", "unavailable"] as const)("responds to %s with 503, because a repeat may succeed", async (status) => {
    expect(await start({ status }).post()).toMatchObject({ status: 503 });
  });

  test("responds to an invalid body with 400, and to invalid options with 500", async () => {
    const one = start();
    expect((await one.post({ To: "+33612345678", Body: "482913" })).status).toBe(400);
    expect(one.delivered).toEqual([]);
    expect((await start(new VerifierError("invalid_options", "no ceiling")).post()).status).toBe(500);
  });

  test("responds with 200 to what the verifier rejects, because it would reject a repeat too, and logs the reason", async () => {
    const one = start(new VerifierError("bad_request", "text costs 2 SMS segments."));
    expect(await one.post()).toMatchObject({ status: 200, headers: { "x-phoneproof-status": "malformed" }, body: "{}" });
    expect(one.warned).toEqual([expect.stringMatching(/^a request to \/hooks\/\w+ was malformed: text costs 2 SMS segments\.$/)]);
  });

  test("leaves out a text that is too long to send, if there is a code", async () => {
    const one = start();
    const text = JSON.stringify(start === kratos ? kratosBody : zitadelBody);
    await one.post(JSON.parse(text.replace('"text":"', `"text":"${"x".repeat(1600)}`)));
    expect(one.delivered).toHaveLength(1);
    expect(one.delivered[0]).not.toHaveProperty("text");
  });

  test("has a hash as idempotency key, which only the same event repeats", async () => {
    const one = start();
    await one.post();
    await one.post();
    const text = JSON.stringify(one === undefined ? {} : start === kratos ? kratosBody : zitadelBody);
    await one.post(JSON.parse(text.replaceAll(/48291(3|355)/g, "77777777")));
    const [first, second, third] = one.delivered.map(({ idempotency_key }) => idempotency_key);
    expect(first).toMatch(/^[\w-]{43}$/);
    expect(second).toBe(first);
    expect(third).not.toBe(first);
  });
});

describe("kratosHook", () => {
  test("reads the body that the Jsonnet builds for a sign-in code", async () => {
    const { post, delivered } = kratos();
    expect((await post()).status).toBe(200);
    expect(delivered).toEqual([
      {
        phone_number: "+33612345678",
        code: "482913",
        text: kratosBody.text,
        purpose: "sign_in",
        locale: "fr-FR",
        correlation_id: kratosBody.data.identity.id,
        known: true,
        expires_in: 900,
        idempotency_key: expect.any(String),
      },
    ]);
  });

  test.each([
    ["registration_code_valid", "registration_code", "sign_up"],
    ["verification_code_valid", "verification_code", "change"],
    ["recovery_code_valid", "verification_code", "reset"],
  ])("reads the code of %s in %s", async (type, field, purpose) => {
    const { post, delivered } = kratos();
    await post({ to: "+33612345678", text: "Your code is: 482913", type, data: { [field]: "482913" }, headers: null });
    expect(delivered).toMatchObject([{ code: "482913", purpose, known: false }]);
  });

  test("sends a notice, which has no code", async () => {
    const { post, delivered } = kratos();
    await post({ to: "+33612345678", text: "A new authenticator was added.", type: "authenticator_key_added", data: {}, headers: null });
    expect(delivered[0]).not.toHaveProperty("code");
    expect(delivered).toMatchObject([{ text: "A new authenticator was added.", purpose: "authenticator_key_added" }]);
    // Another such event has the same body: only the verifier's 30 seconds distinguish a repeat.
    expect(delivered[0]).not.toHaveProperty("idempotency_key");
  });

  test("uses the address in the allowed header if `ip` is `trust`, and never the client's payload", async () => {
    const { send, delivered } = served(kratosHook({ token: "of-the-courier", ip: "trust" }));
    await send("kratos", kratosBody, { authorization });
    await send("kratos", { ...kratosBody, headers: null }, { authorization });
    expect(delivered.map(({ ip }) => ip)).toEqual(["203.0.113.7", undefined]);
  });

  test("accepts basic authentication, and an API key in a separate header", async () => {
    const basic = `Basic ${Buffer.from("kratos:of-the-courier").toString("base64")}`;
    expect((await served(kratosHook({ token: "of-the-courier" })).send("kratos", kratosBody, { authorization: basic })).status).toBe(200);
    const own = served(kratosHook({ token: "of-the-courier", header: "X-Api-Key" }));
    expect((await own.send("kratos", kratosBody, { "x-api-key": "of-the-courier" })).status).toBe(200);
    expect((await own.send("kratos", kratosBody, { authorization })).status).toBe(401);
  });

  test("confirms by a web_hook, and ignores a user without a number", async () => {
    const { send, confirmed } = kratos();
    expect(await send("kratos/confirmed", { to: "+33612345678" }, { authorization })).toMatchObject({ status: 200 });
    expect(await send("kratos/confirmed", { to: null }, { authorization })).toMatchObject({ status: 200, body: '{"status":"ignored"}' });
    expect((await send("kratos/confirmed", { to: "+33612345678" })).status).toBe(401);
    expect(confirmed).toEqual([{ phone_number: "+33612345678" }]);
  });
});

describe("zitadelHook", () => {
  test("reads a challenge, whose text already has its last line", async () => {
    const { post, delivered } = zitadel();
    expect((await post()).status).toBe(200);
    expect(delivered).toEqual([
      {
        phone_number: "+33612345678",
        code: "48291355",
        text: zitadelBody.templateData.text,
        purpose: "mfa",
        known: true,
        within: 4000,
        idempotency_key: expect.any(String),
      },
    ]);
  });

  test("reads the code of a new number", async () => {
    const { post, delivered } = zitadel();
    const contextInfo = { eventType: "user.human.phone.code.added", recipientPhoneNumber: "+33612345678" };
    await post({ contextInfo, templateData: { text: "Code: 123456" }, args: { code: "123456" } });
    expect(delivered).toMatchObject([{ code: "123456", purpose: "change", known: false }]);
  });

  test.each([
    ["another key", signed(JSON.stringify(zitadelBody), "x")],
    ["another body", signed("{}")],
    ["an old timestamp", signed(JSON.stringify(zitadelBody), "signing-key", String(now / 1000 - 301))],
    ["no timestamp", { "zitadel-signature": "v1=00" }],
    ["no header", {}],
  ])("rejects %s", async (_, headers) => {
    const { send, delivered } = zitadel();
    expect((await send("zitadel", zitadelBody, headers)).status).toBe(401);
    expect(delivered).toEqual([]);
  });
});
