import { createHmac } from "node:crypto";
import { expect, test } from "vitest";
import { logtoHook } from "../../src/hooks/index.js";
import { sentence, served } from "./stand-in.js";

const authorization = "Bearer of-the-connector";
const body = {
  to: "33612345678",
  type: "SignIn",
  payload: { code: "482913", locale: "fr-FR", uiLocales: "fr-FR en" },
  ip: "203.0.113.7",
};

test("reads what the HTTP SMS connector sends", async () => {
  const { send, delivered } = served(logtoHook({ token: "of-the-connector" }));
  expect(await send("logto", body, { authorization })).toMatchObject({ status: 200, body: "" });
  expect(delivered).toEqual([{ phone_number: "+33612345678", code: "482913", purpose: "sign_in", locale: "fr-FR", expires_in: 600 }]);
});

test.each([
  ["Register", "sign_up"],
  ["ForgotPassword", "reset"],
  ["BindNewIdentifier", "change"],
  ["MfaVerification", "mfa"],
  ["BindMfa", "mfa"],
  ["Generic", "Generic"],
  ["Quelque chose de neuf", "Quelque-chose-de-neuf"],
  ["constructor", "constructor"],
])("reads the type %s as the purpose %s", async (type, purpose) => {
  const { send, delivered } = served(logtoHook({ token: "of-the-connector" }));
  await send("logto", { ...body, type }, { authorization });
  expect(delivered).toMatchObject([{ purpose }]);
});

test.each([
  [body.ip, body.ip],
  ["81.2.3.4:50812", "81.2.3.4"],
  [" 2001:db8::7 ", "2001:db8::7"],
  ["[2001:db8::7]", "2001:db8::7"],
  ["[2001:db8::7]:50812", "2001:db8::7"],
  ["[fe80::1%eth0]:50812", "fe80::1"],
  ["fe80::1%eth0", "fe80::1"],
  ["", undefined],
])("uses the address %j if `ip` is `trust`", async (ip, expected) => {
  const { send, delivered, warned } = served(logtoHook({ token: "of-the-connector", ip: "trust" }));
  await send("logto", { ...body, ip }, { authorization });
  expect(delivered[0]?.ip).toBe(expected);
  expect(warned).toEqual([]);
});

test("ignores an address that is none, with one warning a minute, which does not show it", async () => {
  const { send, delivered, warned } = served(logtoHook({ token: "of-the-connector", ip: "trust" }));
  for (const ip of ["unknown", "81.2.3.4, 10.0.0.1"]) await send("logto", { ...body, ip }, { authorization });
  expect(delivered.map((request) => "ip" in request)).toEqual([false, false]);
  expect(warned).toEqual(["a request to /hooks/logto has an ip that is not an IPv4 or IPv6 address; it is ignored"]);
});

test("sends the link of an invitation", async () => {
  const { send, delivered } = served(logtoHook({ token: "of-the-connector" }));
  await send("logto", { to: body.to, type: "OrganizationInvitation", payload: { link: "https://app.example/join" } }, { authorization });
  expect(delivered).toMatchObject([{ text: "https://app.example/join", purpose: "OrganizationInvitation" }]);
});

test.each([
  ["rate_limited", 429],
  ["spam_detected", 429],
  ["invalid", 422],
  ["no_route", 502],
  ["unavailable", 503],
] as const)("responds to %s with %s and one plain sentence", async (status, code) => {
  const { send } = served(logtoHook({ token: "of-the-connector" }), { status, message: sentence });
  expect(await send("logto", body, { authorization })).toMatchObject({
    status: code,
    headers: { "content-type": "text/plain; charset=utf-8" },
    body: sentence,
  });
});

test.each([{ authorization: "Bearer of-the-connecto" }, { authorization: "" }, {}])("rejects the headers %j", async (headers) => {
  const { send, delivered } = served(logtoHook({ token: "of-the-connector" }));
  expect((await send("logto", body, headers)).status).toBe(401);
  expect(delivered).toEqual([]);
});

test("accepts a token as it is configured, and each of several", async () => {
  for (const token of ["of-the-connector", authorization, ["an-old-one", "of-the-connector"]])
    expect((await served(logtoHook({ token })).send("logto", body, { authorization })).status).toBe(200);
  expect((await served(logtoHook({ token: "bare" })).send("logto", body, { authorization: "bare" })).status).toBe(200);
});

const event = {
  hookId: "h1",
  event: "PostSignIn",
  createdAt: "2026-11-25T11:59:58.000Z",
  userId: "u1",
  userIp: "203.0.113.7",
  user: { id: "u1", primaryPhone: "33612345678", lastSignInAt: 1795608000000 },
};
const signatureOf = (text: string, key = "key-of-webhook") => ({ "logto-signature-sha-256": createHmac("sha256", key).update(text).digest("hex") });

test.each(["PostSignIn", "PostRegister", "PostResetPassword"])("confirms by the webhook %s", async (name) => {
  const text = JSON.stringify({ ...event, event: name });
  const { send, confirmed } = served(logtoHook({ token: "of-the-connector", signingKey: ["old-key", "key-of-webhook"] }));
  expect(await send("logto/confirmed", text, signatureOf(text))).toMatchObject({ status: 200, body: '{"status":"confirmed"}' });
  expect(confirmed).toEqual([{ phone_number: "+33612345678", at: Date.parse(event.createdAt) }]);
});

test("ignores other events and users without a number, and rejects another key", async () => {
  const { send, confirmed } = served(logtoHook({ token: "of-the-connector", signingKey: "key-of-webhook" }));
  for (const payload of [
    { ...event, event: "User.Created" },
    { ...event, user: { id: "u1", primaryPhone: null } },
  ])
    expect(await send("logto/confirmed", payload, signatureOf(JSON.stringify(payload)))).toMatchObject({ status: 200, body: '{"status":"ignored"}' });
  expect((await send("logto/confirmed", event, signatureOf(JSON.stringify(event), "another"))).status).toBe(401);
  expect((await send("logto/confirmed", event, { authorization })).status).toBe(401);
  expect(confirmed).toEqual([]);
});
