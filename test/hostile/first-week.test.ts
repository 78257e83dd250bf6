import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { PGlite } from "@electric-sql/pglite";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { defaultSpamPolicy } from "../../src/domain/spam-policy.js";
import { genericHook } from "../../src/hooks/index.js";
import type { SendOutcome } from "../../src/index.js";
import type { Answer } from "../http/client.js";
import { freePort } from "../support/ports.js";
import { listening } from "../wires/listen.js";
import { world } from "./first-week-kit.js";
import { actionOf, index, lambdaOf, pageOf } from "./hook-pages.js";
import { answerWithin, type Served, serve } from "./hooks-kit.js";
import { genericToken, goJson, supabase, supabaseBody, supabaseConfirmToken, supabaseHeaders, supabaseUser } from "./identity-servers.js";
import { numberAt } from "./kit.js";

const minute = 60_000;
const day = 86_400_000;
const rejected: SendOutcome = { outcome: "rejected", reason: "no such number" };
const blocked = "+33620000001";
const wrong = ["000000", "111111", "222222", "333333", "444444", "555555", "666666"];
/** Numbers that get no message: invalid, a landline, another country, on the block list. */
const unsendable = ["x", "+33140205050", "+4915123456789", blocked];
/** Numbers of every kind that offline data distinguishes. */
const lookups = [...unsendable, "+883510001234567", "+14155552671", "+33899700001", "+870773111632"];

async function open() {
  const at = await world({ blockedNumbers: [blocked] }, ["sms", "whatsapp", "voice"]);
  onTestFinished(() => at.close());
  return at;
}

describe("every response and header matches the OpenAPI document, on a service with SMS, WhatsApp and calls", () => {
  it("of /v1 (openapi.json, docs/serve.md#call-it)", async () => {
    const at = await open();
    const customer_uuid = at.customer;
    const create = (fields: object, headers = {}) => at.call("v1", "POST", "/v1/authentication", { customer_uuid, ...fields }, { headers });
    const retry = (authentication_uuid: string, more = {}) => at.call("v1", "POST", "/v1/retry", { customer_uuid, authentication_uuid, ...more });
    const check = (authentication_uuid: string, check_code: string, headers = {}) =>
      at.call("v1", "POST", "/v1/check", { customer_uuid, authentication_uuid, check_code }, { headers });
    for (const [index, channel] of [undefined, "whatsapp", "voice"].entries()) {
      const to = numberAt(10 + index);
      const id: string = (await create({ phone_number: to, channel, ip: "192.0.2.1", device_id: "d", device_type: "WEB" })).body.authentication_uuid;
      await retry(id);
      await check(id, "no code");
      at.clock.advance(minute);
      await retry(id, { channel: "voice" });
      for (let turn = 0; turn < 2; turn++) await check(id, at.code(to), { "idempotency-key": `${id}${turn}` });
      await retry(id);
      at.clock.advance(15 * minute);
      await check(id, "no code");
      await retry(id);
    }
    const used: string = (await create({ phone_number: numberAt(20) }, { "idempotency-key": "one" })).body.authentication_uuid;
    for (const index of [20, 21]) await create({ phone_number: numberAt(index) }, { "idempotency-key": "one" });
    for (const code of wrong) await check(used, code);
    await retry(used);
    at.outcomes["sms"] = at.outcomes["whatsapp"] = rejected;
    const unsent: string = (await create({ phone_number: numberAt(22) })).body.authentication_uuid;
    await check(unsent, "000000");
    await retry(unsent);
    delete at.outcomes["sms"];
    for (let turn = 0; turn < 6; turn++) {
      const { authentication_uuid, status } = (await create({ phone_number: numberAt(23) })).body;
      if (status === "rate_limited") for (const call of [() => check(authentication_uuid, "1"), () => retry(authentication_uuid)]) await call();
    }
    for (const phone_number of unsendable) await create({ phone_number });
    for (const phone_number of lookups)
      await at.call("v1", "GET", "/v1/lookup/{phone_number}", undefined, { path: { phone_number }, headers: { "customer-uuid": customer_uuid } });
    await at.call("v1", "GET", "/v1/lookup/{phone_number}", undefined, { path: { phone_number: "+14155552671" } });
    await check(randomUUID(), "000000");
    await check(used, "");
    await create({ phone_number: numberAt(24), channel: "telegram" });
    await create({ phone_number: numberAt(24) }, { "x-api-key": "another" });
    expect(at.faults).toEqual([]);
    const all = ["valid", "invalid", "without_attempt", "rate_limited", "already_validated", "expired_auth"].map((status) => `v1 POST /check 200 ${status}`);
    const also = ["approved", "denied", "no_attempt", "rate_limited", "expired_auth", "already_validated"].map((status) => `v1 POST /retry 200 ${status}`);
    expect([...at.seen]).toEqual(
      expect.arrayContaining([...all, ...also, "v1 POST /authentication 200 rate_limited", "v1 POST /authentication 400  blocked_number"]),
    );
  });

  it("of the Prelude v2 API (openapi-prelude-v2.json, docs/migrate/prelude-v2.md#what-maps-to-what)", async () => {
    const at = await open();
    const target = (value: string) => ({ type: "phone_number", value });
    const create = (value: string, more = {}) => at.call("prelude", "POST", "/v2/verification", { target: target(value), ...more });
    const check = (value: string, code: string) => at.call("prelude", "POST", "/v2/verification/check", { target: target(value), code });
    const wishes = [
      { preferred_channel: "whatsapp" },
      { preferred_channel: "rcs" },
      { method: "voice" },
      { channels: ["rcs", "whatsapp"] },
      { channels: ["zalo"] },
      { code_size: 7 },
      { code_size: 4 },
      { custom_code: "123456" },
      { app_realm: { platform: "web", value: "https://x.example" } },
      { callback_url: "http://x.example" },
      { locale: "no locale!" },
      { locale: null, method: null, channels: null, custom_code: null },
    ];
    for (const [index, options] of wishes.entries()) {
      const to = numberAt(100 + index);
      const { status } = await create(to, { options, metadata: { correlation_id: "c1" }, signals: { ip: "192.0.2.1", device_platform: "ios" } });
      if (status !== 200) continue;
      await create(to, { options });
      await check(to, "no code");
      at.clock.advance(minute);
      await create(to, { options });
      for (let turn = 0; turn < 2; turn++) await check(to, at.code(to));
    }
    await create(numberAt(120));
    for (const code of wrong) await check(numberAt(120), code);
    for (const to of unsendable) await create(to, { metadata: { correlation_id: "c2" } });
    for (let turn = 0; turn < 6; turn++) {
      await create(numberAt(121));
      at.clock.advance(2 * minute - 1);
    }
    for (const phone_number of lookups) await at.call("prelude", "GET", "/v2/lookup/{phone_number}", undefined, { path: { phone_number } });
    await at.call("prelude", "POST", "/v2/watch/feedback", { feedbacks: [] });
    await at.call("prelude", "POST", "/v2/watch/event", { events: [] });
    await at.call("prelude", "POST", "/v2/verification", { target: { type: "email_address", value: "zoe@example.com" } });
    expect(at.faults).toEqual([]);
    const all = ["success", "retry", "blocked  in_block_list", "blocked  invalid_phone_line"].map((status) => `prelude POST /verification 200 ${status}`);
    expect([...at.seen]).toEqual(expect.arrayContaining([...all, "prelude POST /verification/check 429  too_many_checks"]));
  });

  it("of the Twilio Verify v2 API (openapi-twilio-verify.json, docs/migrate/twilio-verify.md#what-maps-to-what)", async () => {
    const at = await open();
    const of = "/v2/Services/{Service}";
    const create = (To: string, Channel = "sms", more = {}) => at.call("twilio", "POST", `${of}/Verifications`, { To, Channel, ...more });
    const check = (form: object) => at.call("twilio", "POST", `${of}/VerificationCheck`, form);
    const fetched = (Sid: string) => at.call("twilio", "GET", `${of}/Verifications/{Sid}`, undefined, { path: { Sid } });
    const update = (Sid: string, Status: string) => at.call("twilio", "POST", `${of}/Verifications/{Sid}`, { Status }, { path: { Sid } });
    for (const [index, channel] of ["sms", "whatsapp", "call", "auto", "email"].entries()) {
      const to = numberAt(300 + index);
      const { status, body } = await create(to, channel);
      if (status !== 201) continue;
      await create(to, channel);
      for (const name of [to, body.sid as string]) await fetched(name);
      await check({ To: to, Code: "0000000" });
      for (const next of ["call", "whatsapp"]) {
        at.clock.advance(2 * minute);
        await create(to, next);
        await fetched(to);
      }
      for (let turn = 0; turn < 2; turn++) await check({ VerificationSid: body.sid, Code: at.code(to) });
      await fetched(to);
    }
    const used = await create(numberAt(320));
    for (const code of wrong) await check({ To: numberAt(320), Code: code });
    await create(numberAt(320));
    for (const name of [used.body.sid as string, numberAt(320)]) await fetched(name);
    await update(used.body.sid, "approved");
    await update(used.body.sid, "canceled");
    await fetched(used.body.sid);
    for (const to of unsendable) await create(to);
    at.outcomes["sms"] = at.outcomes["whatsapp"] = rejected;
    const unsent = await create(numberAt(321));
    await fetched(unsent.body.sid);
    await check({ To: numberAt(321), Code: "000000" });
    await check({ Code: "000000" });
    await at.call("twilio", "GET", of);
    await at.call("twilio", "POST", of, { CodeLength: "8" });
    await at.call("twilio", "GET", "/v2/Services");
    await at.call("twilio", "POST", "/v2/Services", { FriendlyName: "Acme" });
    expect(at.faults).toEqual([]);
    const states = ["pending", "max_attempts_reached", "canceled"].map((status) => `twilio GET /Services/{Service}/Verifications/{Sid} 200 ${status}`);
    const codes = ["400 400 60200", "403 403 60205", "403 403 60410", "403 403 60605", "429 429 60203", "429 429 60212"];
    expect([...at.seen]).toEqual(expect.arrayContaining([...states, ...codes.map((code) => `twilio POST /Services/{Service}/Verifications ${code}`)]));
  });
});

/** An address where nothing listens, as during the restart of a deployment. */
const nobody = async () => `http://127.0.0.1:${await freePort()}`;

/** A proxy in front of the service that responds with its own page. */
async function proxy(status: number): Promise<string> {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(status, { "content-type": "text/html" }).end("<html><head><title>Sorry</title></head></html>");
  });
  const { url, close } = await listening(server);
  onTestFinished(close);
  return url;
}

/** How a call ended, in a word. */
const endOf = (call: Promise<unknown> | undefined) =>
  Promise.resolve(call).then(
    () => "returned",
    (error: unknown) => `threw ${(error as Error).message}`,
  );

describe("the page's Actions for Auth0", () => {
  const { to, code } = { to: numberAt(700), code: "482913" };
  const event = {
    notification: { recipient: to, code, as_text: `Your code is ${code}`, as_voice: "…", delivery_method: "text", locale: "en_US", message_type: "otp_verify" },
    request: { ip: "203.0.113.7" },
    user: { user_id: "auth0|64" },
    transaction: { correlation_id: "c-1" },
    secrets: { TOKEN: genericToken },
  };
  const send = async (url: string) => {
    const told: string[] = [];
    const api = { notification: { retry: () => told.push("retry"), drop: () => told.push("drop") } };
    const end = await endOf(actionOf("auth0-action.cjs", url).onExecuteCustomPhoneProvider?.(event, api));
    return [end, ...told].join(", ");
  };
  const login = (url: string, user: object, names: readonly string[]) =>
    actionOf("auth0-post-login.cjs", url).onExecutePostLogin?.({
      authentication: { methods: names.map((name) => ({ name, timestamp: "2026-03-01T12:00:10Z" })) },
      user: { user_id: "auth0|64", ...user },
      secrets: { TOKEN: genericToken },
    });

  // A post-login Action that throws denies the login: a lost confirmation must not prevent the sign-in.
  it("let the user in while the service cannot be reached, and log it (docs/behind/index.md#auth0)", async () => {
    const logged = vi.spyOn(console, "log").mockReturnValue();
    onTestFinished(() => logged.mockRestore());
    for (const url of [await nobody(), await proxy(502)]) expect(await endOf(login(url, { phone_number: to }, ["sms"]))).toBe("returned");
    expect(logged.mock.calls.flat()).toEqual([expect.stringMatching(/phoneproof did not receive a confirmation/), expect.stringMatching(/HTTP 502/)]);
  });

  it("ask for a retry while the service cannot be reached, because Auth0 repeats only then (docs/behind/index.md#auth0)", async () => {
    expect(await send(await nobody())).toBe("returned, retry");
  });

  it.each([403, 404, 413, 429, 502])("ask for a retry if a proxy responds %i with a page (docs/behind/index.md#auth0)", async (status) => {
    expect(await send(await proxy(status))).toBe("returned, retry");
  });

  // Auth0: `user.phone_number` is "only valid for users with SMS connections".
  // The number of a second factor is in no field of the event.
  it("do not confirm a second factor, and the page's service does not expect it (docs/behind/index.md#auth0)", async () => {
    const served = await serve([genericHook({ token: genericToken, name: "auth0", ip: "trust" })]);
    expect(await send(served.url)).toBe("returned");
    served.clock.advance(10_000);
    await login(served.url, { email: "zoe@example.com" }, ["pwd", "mfa"]);
    await login(served.url, { phone_number: to }, ["pwd", "mfa"]);
    expect(await served.newest(to)).toMatchObject({ validated: false });
    expect(/genericHook\(.*name: "auth0".*\)/.exec(index)?.[0]).not.toContain("conversion");
    expect(index).toContain('  conversion: "unknown",');
  });
});

describe("the page's Lambdas for Amazon Cognito", () => {
  async function load(url: string) {
    const handler = await lambdaOf("cognito-sender.mjs", url);
    return (source: string, secret: string, to: string) =>
      endOf(
        handler({
          triggerSource: `CustomSMSSender_${source}`,
          request: { code: Buffer.from(secret).toString("base64"), userAttributes: { sub: "s1", phone_number: to } },
        }),
      );
  }
  /** Whether the second Lambda returns its event after a user got in. */
  async function confirm(url: string, phone_number?: string) {
    const handler = await lambdaOf("cognito-confirm.mjs", url);
    const event = { triggerSource: "PostAuthentication_Authentication", request: { userAttributes: { sub: "s1", phone_number } } };
    return (await handler(event)) === event;
  }
  /** The `within` that the page sets, if it sets one. */
  const [, named] = /## Amazon Cognito\n[^#]*?within: ([\d_]+)/.exec(index) ?? [];
  const within = named === undefined ? undefined : Number(named.replaceAll("_", ""));
  const cognito = () => serve([genericHook({ token: genericToken, name: "cognito", within })]);

  it.each([502, 403, 0])(
    "shows users a sentence if a proxy responds %i with a page, or nothing responds (docs/behind/index.md#amazon-cognito)",
    async (status) => {
      const run = await load(status === 0 ? await nobody() : await proxy(status));
      expect(await run("SignUp", "482913", numberAt(701))).toBe("threw The message could not be sent. Try again later.");
    },
  );

  // A trigger that throws rejects the sign-in.
  it("confirms users who got in, and lets users in while the service cannot be reached (docs/behind/index.md#amazon-cognito)", async () => {
    const served = await cognito();
    const run = await load(served.url);
    const to = numberAt(704);
    expect(await run("Authentication", "482913", to)).toBe("returned");
    served.clock.advance(5_000);
    expect(await confirm(served.url, to)).toBe(true);
    expect(await served.newest(to)).toMatchObject({ validated: true });
    const logged = vi.spyOn(console, "error").mockReturnValue();
    onTestFinished(() => logged.mockRestore());
    expect(await confirm(served.url)).toBe(true);
    expect(logged).not.toHaveBeenCalled();
    for (const url of [await nobody(), await proxy(502)]) expect(await confirm(url, to)).toBe(true);
    expect(logged).toHaveBeenCalledTimes(2);
  });

  // "Amazon Cognito HTML-escapes reserved characters like < (&lt;) and > (&gt;) in your user's temporary password … your Lambda function must
  // unescape these characters after it decrypts the password": user-pool-lambda-custom-sender-triggers of its developer guide.
  it("sends a temporary password as the user must enter it, not as Cognito escapes it (docs/behind/index.md#amazon-cognito)", async () => {
    const served = await cognito();
    const run = await load(served.url);
    expect(await run("AdminCreateUser", "Zk4&lt;vQ&gt;9&amp;x", numberAt(702))).toBe("returned");
    expect(served.box.messages.map(({ text }) => text)).toEqual(["Your temporary password is Zk4<vQ>9&x"]);
  });

  // Cognito waits five seconds for a Lambda, its start and the decryption included, then calls it again, three times at most.
  it("ends before Cognito gives up, if the carrier is slow (docs/behind/index.md#amazon-cognito)", async () => {
    const served = await cognito();
    const run = await load(served.url);
    served.hangCarrier();
    expect(await answerWithin(served, 4_500, run("SignUp", "482913", numberAt(703)))).toBe("returned");
  });
});

describe("Supabase's database webhook and the page's trigger, with the rows that Supabase Auth writes", () => {
  let database: PGlite;
  beforeAll(async () => {
    const [, trigger] = /```sql\n([\s\S]*?)```/.exec(await pageOf("supabase")) ?? [];
    database = await PGlite.create();
    // As in a project: Supabase Auth's role is not the one that creates the trigger, and row level security is on.
    await database.exec(`
      create role supabase_auth_admin;
      create schema auth; create schema net;
      create table auth.mfa_factors (id uuid primary key, phone text);
      create table auth.mfa_challenges (id uuid primary key, factor_id uuid, created_at timestamptz default now(), verified_at timestamptz, otp_code text);
      alter table auth.mfa_factors enable row level security;
      grant usage on schema auth to supabase_auth_admin;
      grant all on auth.mfa_challenges to supabase_auth_admin;
      create table net.posted (url text, body text, headers jsonb);
      create function net.http_post(url text, body jsonb default '{}', params jsonb default '{}', headers jsonb default '{}', timeout_milliseconds int default 5000)
        returns bigint language sql as 'insert into net.posted values (url, body::text, headers) returning 1::bigint';
      ${trigger?.replace("<SUPABASE_CONFIRM_TOKEN>", supabaseConfirmToken)}`);
  });
  afterAll(() => database?.close());

  /** Creates and verifies a challenge, and passes what the trigger posts to the service. */
  async function verify(served: Served, factor: string, phone: string | null, at: string): Promise<Answer[]> {
    const id = randomUUID();
    await database.query("insert into auth.mfa_factors values ($1, $2) on conflict do nothing", [factor, phone]);
    await database.exec("set role supabase_auth_admin");
    await database.query("insert into auth.mfa_challenges (id, factor_id, otp_code) values ($1, $2, 'hidden')", [id, factor]);
    await database.query("update auth.mfa_challenges set verified_at = $2 where id = $1", [id, at]);
    await database.exec("reset role");
    const { rows } = await database.query<{ url: string; body: string; headers: Record<string, string> }>("delete from net.posted returning *");
    return Promise.all(rows.map(({ url, body, headers }) => served.send({ method: "POST", path: new URL(url).pathname, headers, body })));
  }

  const iso = (at: number) => new Date(at).toISOString();
  interface User {
    readonly id: string;
    readonly factor: string;
    readonly to: string;
    status: "unverified" | "verified";
    last: string;
  }
  const userAt = (index: number): User => ({ id: randomUUID(), factor: randomUUID(), to: numberAt(index), status: "unverified", last: iso(0) });
  const row = (served: Served, table: string, old_record: object, changes: object) =>
    served.send({
      method: "POST",
      path: "/hooks/supabase/confirmed",
      headers: { "content-type": "application/json", authorization: `Bearer ${supabaseConfirmToken}` },
      body: JSON.stringify({ type: "UPDATE", table, schema: "auth", record: { ...old_record, ...changes }, old_record }),
    });

  /**
   * A sign-in: a password, a code that arrives, the right code entered. The rows are those that Supabase Auth writes
   * (internal/api/mfa.go, internal/models/{factor,challenge}.go): each verification is a row of `auth.mfa_challenges`.
   */
  async function signIn(served: Served, user: User): Promise<"in" | "refused"> {
    const now = () => served.clock.now();
    const known = { id: user.id, email: "zoe@example.com", phone: null, last_sign_in_at: user.last };
    user.last = iso(now());
    await row(served, "users", { ...supabaseUser("", now()), ...known }, { last_sign_in_at: user.last, updated_at: user.last });
    served.clock.advance(1_000);
    const factor = { id: user.factor, user_id: user.id, status: user.status, factor_type: "phone", phone: user.to.slice(1), last_challenged_at: null };
    const made = supabaseBody(served.ask({ to: user.to, purpose: "mfa" }), now());
    const body = goJson({ ...made, user: { ...made.user, ...known, phone: "", last_sign_in_at: user.last, factors: [factor] } });
    const { text } = await served.send({ method: "POST", path: "/hooks/supabase", headers: supabaseHeaders(body, now()), body });
    if (text !== "{}") return "refused";
    served.clock.advance(5_000);
    expect(await verify(served, user.factor, factor.phone, iso(now()))).toMatchObject([{ status: 200, text: '{"status":"confirmed"}' }]);
    user.status = "verified";
    return "in";
  }

  it("each sign-in with MFA by SMS is reported, not only the enrollment (docs/behind/supabase.md#report-who-got-in)", async () => {
    const served = await serve(supabase);
    const user = userAt(1_000);
    const reported: unknown[] = [];
    for (let turn = 0; turn < 3; turn++) {
      expect(await signIn(served, user)).toBe("in");
      reported.push((await served.newest(user.to))?.["validated"]);
      served.clock.advance(day);
    }
    expect(reported).toEqual([true, true, true]);
  });

  it("sixty users who sign in with MFA each day do not lock out new users (docs/behind/supabase.md#report-who-got-in, docs/contract.md#balance)", async () => {
    const served = await serve(supabase, { policy: { spam: defaultSpamPolicy } });
    const users = Array.from({ length: 60 }, (_, index) => userAt(2_000 + index));
    const days: string[][] = [];
    for (let today = 0; today < 3; today++) {
      for (const user of users) {
        expect(await signIn(served, user)).toBe("in");
        served.clock.advance(10 * minute);
      }
      days.push([await signIn(served, userAt(3_000 + today))]);
      served.clock.advance(day - 60 * 10 * minute);
    }
    expect(days).toEqual([["in"], ["in"], ["in"]]);
  });

  it("a code of an authenticator app is ignored; a report that fails does not reject the code (docs/behind/supabase.md#report-who-got-in)", async () => {
    const served = await serve(supabase);
    const at = iso(served.clock.now());
    expect(await verify(served, randomUUID(), null, at)).toMatchObject([{ status: 200, text: '{"status":"ignored"}' }]);
    await database.exec("alter table net.posted rename to gone");
    onTestFinished(async () => void (await database.exec("alter table net.gone rename to posted")));
    const id = randomUUID();
    await database.query("insert into auth.mfa_challenges (id) values ($1)", [id]);
    await database.query("update auth.mfa_challenges set verified_at = $2 where id = $1", [id, at]);
    expect((await database.query("select id from auth.mfa_challenges where id = $1 and verified_at is not null", [id])).rows).toEqual([{ id }]);
  });

  // Entering a code confirms its number: Supabase Auth sets `phone_confirmed_at` in the same step.
  it("a sign-in by e-mail confirms no number that was never confirmed (docs/behind/supabase.md#report-who-got-in)", async () => {
    const served = await serve(supabase);
    const ask = served.ask();
    await served.told(supabase, ask);
    served.clock.advance(5_000);
    const at = served.clock.now();
    const old = supabaseUser(ask.to.slice(1), at, { email: "zoe@example.com", phone_confirmed_at: null, last_sign_in_at: iso(at - day) });
    const { status } = await row(served, "users", old, { last_sign_in_at: iso(at), updated_at: iso(at) });
    expect(status).toBe(200);
    expect(await served.newest(ask.to)).toMatchObject({ validated: false });
  });
});
