import { Webhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import { VerifierError } from "../../src/errors.js";
import { type SupabaseHookOptions, supabaseHook } from "../../src/hooks/index.js";
import { now, seconds, sentence, served } from "./stand-in.js";

const secretOf = (letter: string) => `v1,whsec_${Buffer.from(letter.repeat(32)).toString("base64")}`;
const [secret, other] = [secretOf("a"), secretOf("b")];

/** As the server signs: several signatures are joined by a comma and a space. */
function signed(body: string, secrets = [secret], at = new Date(now)): Record<string, string> {
  const signatures = secrets.map((one) => new Webhook(one.replace("v1,", "")).sign("f2d1", at, body));
  return { "webhook-id": "f2d1", "webhook-timestamp": String(at.getTime() / 1000), "webhook-signature": signatures.join(", ") };
}

const user = {
  id: "6481a5c1-3d37-4a56-9f6a-bee08c554965",
  phone: "33612345678",
  phone_confirmed_at: "2026-11-01T08:00:00.123456Z",
  last_sign_in_at: "2026-11-25T11:00:00.654321Z",
  user_metadata: { locale: "fr" },
};
const metadata = { uuid: "8b9e4e2c-3d2b-4f3c-a5b0-0d1f9d2a7c11", time: "2026-11-25T12:00:00Z", name: "send-sms", ip_address: "203.0.113.7" };
const body = { metadata, user, sms: { otp: "561166", phone: "33612345678" } };

const post = (options: Partial<SupabaseHookOptions>, payload: unknown, ...answer: [Parameters<typeof served>[1]?]) => {
  const one = served(supabaseHook({ secrets: secret, ...options }), ...answer);
  return { ...one, response: one.send("supabase", payload, signed(JSON.stringify(payload))) };
};

describe("supabaseHook", () => {
  test("reads the body of newer releases, and responds with an empty JSON object", async () => {
    const { response, delivered } = post({}, body);
    expect(await response).toMatchObject({ status: 200, headers: { "content-type": "application/json" }, body: "{}" });
    expect(delivered).toEqual([
      { phone_number: "+33612345678", code: "561166", locale: "fr", correlation_id: user.id, known: true, within: 3500, idempotency_key: metadata.uuid },
    ]);
  });

  test("reads the body of older releases, without metadata and sms.phone", async () => {
    const { response, delivered } = post({}, { user: { id: user.id, phone: "+33612345678" }, sms: { otp: "561166" } });
    expect((await response).status).toBe(200);
    expect(delivered).toMatchObject([{ phone_number: "+33612345678", known: false, idempotency_key: expect.stringMatching(/^[\w-]{43}$/) }]);
  });

  test("sends an MFA code to the factor's number, which does not count as known", async () => {
    const { response, delivered } = post({ ip: "trust", expiresIn: 60 }, { ...body, sms: { otp: "561166", sms_type: "mfa", phone: "4915112345678" } });
    expect((await response).status).toBe(200);
    expect(delivered).toMatchObject([{ phone_number: "+4915112345678", purpose: "mfa", known: false, ip: "203.0.113.7", expires_in: 60 }]);
  });

  test("does not treat a number that was confirmed today as known", async () => {
    const { response, delivered } = post({}, { ...body, user: { ...user, phone_confirmed_at: "2026-11-25T00:00:01Z" } });
    await response;
    expect(delivered).toMatchObject([{ known: false }]);
  });

  test.each([
    ["rate_limited", 200, 429],
    ["spam_detected", 200, 429],
    ["invalid", 200, 422],
    ["no_route", 200, 502],
    ["unavailable", 503, 503],
  ] as const)("responds to %s with the status %s, and an error with %s inside", async (status, outer, http_code) => {
    const { headers, ...response } = await post({}, body, { status, message: sentence }).response;
    expect(response).toEqual({ status: outer, body: JSON.stringify({ error: { http_code, message: sentence } }) });
    expect(headers).not.toHaveProperty("retry-after");
    expect(headers["content-type"]).toBe("application/json");
  });

  test("always has a message, because an error without one is a success", async () => {
    const { response } = post({}, body, { status: "invalid" });
    expect(JSON.parse((await response).body)).toEqual({ error: { http_code: 422, message: expect.stringMatching(/./) } });
  });

  test.each([
    ["bad_request", 400],
    ["invalid_options", 500],
    ["account_invalid", 500],
    ["unavailable", 503],
  ] as const)("responds to the error %s with %s", async (code, status) => {
    const { response, warned } = post({}, body, new VerifierError(code, "what is wrong"));
    expect((await response).status).toBe(status);
    expect(warned.join()).toBe(status === 503 ? "" : `a request to /hooks/supabase ${status === 400 ? "was malformed" : "failed"}: what is wrong`);
  });

  test("accepts each of several secrets, in a list or with | between them, and several signatures", async () => {
    const text = JSON.stringify(body);
    const [one, two] = [supabaseHook({ secrets: [other, secret] }), supabaseHook({ secrets: `${other}|${secret}` })];
    for (const hook of [one, two]) expect((await served(hook).send("supabase", body, signed(text))).status).toBe(200);
    for (const between of [" ", ", ", ","]) {
      const headers = signed(text, [other, secret]);
      const joined = { ...headers, "webhook-signature": headers["webhook-signature"]?.replace(", ", between) ?? "" };
      expect((await served(supabaseHook({ secrets: secret })).send("supabase", body, joined)).status).toBe(200);
    }
  });

  test.each([
    ["another secret", signed(JSON.stringify(body), [other]), "its signature does not match"],
    ["another body", signed("{}"), "its signature does not match"],
    ["an old timestamp", signed(JSON.stringify(body), [secret], new Date(now - 301_000)), "its timestamp is more than 300 s off"],
    ["a timestamp ahead", signed(JSON.stringify(body), [secret], new Date(now + 301_000)), "its timestamp is more than 300 s off"],
    ["another id", { ...signed(JSON.stringify(body)), "webhook-id": "f2d2" }, "its signature does not match"],
    ["no signature", {}, "it has no webhook-id, webhook-timestamp and webhook-signature headers"],
    ["a signature of no version", { "webhook-id": "1", "webhook-timestamp": seconds, "webhook-signature": "AAAA" }, "its signature does not match"],
  ])("rejects %s", async (_, headers, reason) => {
    const { send, delivered, warned } = served(supabaseHook({ secrets: secret }));
    expect(await send("supabase", body, headers)).toMatchObject({ status: 401, body: '{"status":"unauthorized","message":"Unauthorized."}' });
    await send("supabase", body, headers);
    expect(delivered).toEqual([]);
    expect(warned).toEqual([`a request to /hooks/supabase was rejected: ${reason}`]);
  });

  test.each([{}, [], null, { user }, { sms: { otp: "1234" } }, { user: { phone: "" }, sms: { otp: "1234" } }])(
    "responds to %j with 400 and sends nothing",
    async (payload) => {
      const { response, delivered } = post({}, payload);
      expect(await response).toMatchObject({ status: 400, body: expect.stringContaining('"error"') });
      expect(delivered).toEqual([]);
    },
  );

  test("with late conversion, confirms the last sign-in before it sends", async () => {
    const { response, confirmed, delivered } = post({ conversion: "late" }, body);
    expect((await response).status).toBe(200);
    expect(confirmed).toEqual([{ phone_number: "+33612345678", at: Date.parse(user.last_sign_in_at) }]);
    expect(delivered).toMatchObject([{ conversion: "late" }]);
    const reported = post({ conversion: "reported" }, body);
    const unconfirmed = post({ conversion: "late" }, { ...body, user: { ...user, phone_confirmed_at: null } });
    for (const other of [reported, unconfirmed]) {
      await other.response;
      expect(other.confirmed).toEqual([]);
    }
  });

  test("sends even if the last sign-in cannot be confirmed, unless the store is down", async () => {
    for (const [code, status, sent] of [
      ["invalid_phone_number", 200, 1],
      ["unavailable", 503, 0],
    ] as const) {
      const { send, delivered } = served(supabaseHook({ secrets: secret, conversion: "late" }), undefined, new VerifierError(code, "no"));
      expect((await send("supabase", body, signed(JSON.stringify(body)))).status).toBe(status);
      expect(delivered).toHaveLength(sent);
    }
  });

  const change = (record: object, old_record: object, table = "users") => ({ type: "UPDATE", table, schema: "auth", record, old_record });
  const before = { phone: "33612345678", phone_confirmed_at: null, last_sign_in_at: null };
  const signedIn = { ...before, phone_confirmed_at: "2026-11-01T08:00:00+00:00", last_sign_in_at: "2026-11-24T08:00:00+00:00" };
  const at = "2026-11-25T11:59:58.5+00:00";
  const when = Date.parse(at);
  test.each([
    ["a sign-in", change({ ...signedIn, last_sign_in_at: at }, signedIn), [when]],
    ["the first sign-in", change({ ...before, phone_confirmed_at: at, last_sign_in_at: at }, before), [when]],
    ["a sign-in of a user whose number is not confirmed", change({ ...before, last_sign_in_at: at }, before), []],
    ["a confirmed number", change({ ...before, phone_confirmed_at: at }, before), [when]],
    ["a second factor", { type: "UPDATE", table: "mfa_challenges", schema: "auth", record: { phone: "33612345678", verified_at: at } }, [when]],
    ["the enrolment of one", change({ phone: "33612345678", status: "verified", updated_at: at }, { status: "unverified" }, "mfa_factors"), [when]],
    ["a second factor by an app", { type: "UPDATE", table: "mfa_challenges", schema: "auth", record: { phone: null, verified_at: at } }, []],
    ["a challenge without its number", change({ factor_id: "f1", verified_at: at }, { factor_id: "f1", verified_at: null }, "mfa_challenges"), []],
    ["another column", change({ ...signedIn, email: "x" }, signedIn), []],
    ["a user without a number", change({ ...signedIn, phone: null, last_sign_in_at: at }, { ...signedIn, phone: null }), []],
    ["another table", change({ ...signedIn, last_sign_in_at: at }, signedIn, "profiles"), []],
    ["a new row", { type: "INSERT", table: "users", schema: "auth", record: { ...signedIn, last_sign_in_at: at }, old_record: null }, []],
  ])("confirms by a database webhook: %s", async (_, payload, times) => {
    const { send, confirmed } = served(supabaseHook({ secrets: secret, confirmToken: "token-of-webhook" }));
    expect((await send("supabase/confirmed", payload, { authorization: "Bearer token-of-webhook" })).status).toBe(200);
    expect(confirmed).toEqual(times.map((time) => ({ phone_number: "+33612345678", at: time })));
  });

  test("accepts no confirmation without the token, or without a token in the options", async () => {
    const payload = change({ ...signedIn, last_sign_in_at: at }, signedIn);
    const { send, confirmed } = served(supabaseHook({ secrets: secret, confirmToken: "token-of-webhook" }));
    expect((await send("supabase/confirmed", payload, signed(JSON.stringify(payload)))).status).toBe(401);
    expect(confirmed).toEqual([]);
    expect((await served(supabaseHook({ secrets: secret })).send("supabase/confirmed", payload)).status).toBe(404);
  });

  test.each([
    [undefined, "is missing"],
    ["", "must be a non-empty string"],
    [[], "is an empty list"],
    [secret.replace("v1,", ""), "must start with v1,whsec_"],
    ["v1,whsec_short", "must be whsec_ and 24 to 64 bytes in base64"],
    [`${secret}|x`, "must start with v1,whsec_"],
  ])("names the fix for secrets %j", (secrets, problem) => {
    expect(() => supabaseHook({ secrets: secrets as string })).toThrow(new RegExp(`^supabaseHook: option secrets ${problem}.*Pass the hook's secret`));
  });
});
