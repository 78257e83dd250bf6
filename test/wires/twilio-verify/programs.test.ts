import { describe, expect, it } from "vitest";
import { numberOf } from "../../support/verifier.js";
import { serve } from "./service.js";

const to = numberOf(1);
const sms = { To: to, Channel: "sms" };

/** Types of Go's encoding/json, and whether it decodes a value into them. */
const goTypes = {
  string: (value: unknown) => typeof value === "string",
  bool: (value: unknown) => typeof value === "boolean",
  int: (value: unknown) => Number.isInteger(value),
  time: (value: unknown) => typeof value === "string" && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(value),
  list: (value: unknown) => Array.isArray(value),
  map: (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value),
} as const;
type GoStruct = Readonly<Record<string, keyof typeof goTypes>>;

/** Decodes like encoding/json: ignores unknown keys, takes null and absent ones as zero, throws for other types. */
function decode<Struct extends GoStruct>(struct: Struct, json: Readonly<Record<string, unknown>>): { [Field in keyof Struct]: unknown } {
  const fields = Object.entries(struct).map(([name, type]) => {
    const value = json[name];
    if (value !== undefined && value !== null && !goTypes[type](value))
      throw new Error(`json: cannot unmarshal ${JSON.stringify(value)} into ${name} of type ${type}`);
    return [name, value ?? undefined];
  });
  return Object.fromEntries(fields) as { [Field in keyof Struct]: unknown };
}

it("the decoder rejects the same values as Go's", () => {
  expect(() => decode({ code: "int" }, { code: "60200" })).toThrow("cannot unmarshal");
  expect(() => decode({ error_code: "string" }, { error_code: 60200 })).toThrow("cannot unmarshal");
  expect(decode({ error_code: "string" }, { error_code: null, other: 1 })).toEqual({ error_code: undefined });
});

describe("an authentication server in Go, with its own decoders", () => {
  const response = { to: "string", status: "string", channel: "string", valid: "bool", sid: "string", error_code: "string", error_message: "string" } as const;
  const failure = { code: "int", message: "string", more_info: "string", status: "int" } as const;

  it("accepts 200 and 201, requires status approved and valid, and builds its error message", async () => {
    const { raw, box, wrong } = await serve();
    const sent = await raw("POST", "/Verifications", sms);
    expect([200, 201]).toContain(sent.status);
    expect(decode(response, sent.json)).toMatchObject({ to, status: "pending", channel: "sms", valid: false, error_code: undefined });
    const check = async (Code: string) => {
      const { status, json } = await raw("POST", "/VerificationCheck", { To: to, Code });
      if (status === 200 || status === 201) {
        const { status: of, valid } = decode(response, json);
        return of === "approved" && valid === true ? "verified" : "twilio verification error";
      }
      const { message, more_info } = decode(failure, json);
      return `${message} More information: ${more_info}`;
    };
    expect(await check(wrong())).toBe("twilio verification error");
    expect(await check(box.code())).toBe("verified");
    // Apps cut the error code from the end of the message.
    expect(await check(box.code())).toMatch(/was not found More information: https:\/\/www\.twilio\.com\/docs\/errors\/20404$/);
  });
});

describe("the SDK for Go", () => {
  const verification = {
    sid: "string",
    service_sid: "string",
    account_sid: "string",
    to: "string",
    channel: "string",
    status: "string",
    valid: "bool",
    lookup: "map",
    amount: "string",
    payee: "string",
    send_code_attempts: "list",
    date_created: "time",
    date_updated: "time",
    sna: "map",
    url: "string",
  } as const;
  const check = { ...verification, sna_attempts_error_codes: "list" } as const;
  const restError = { code: "int", details: "map", message: "string", more_info: "string", status: "int" } as const;

  it("decodes every response, and every error with integer codes", async () => {
    const { raw, box, wrong } = await serve();
    const { json } = await raw("POST", "/Verifications", sms);
    for (const name of ["date_created", "date_updated", "send_code_attempts", "lookup"])
      expect(decode(verification, json)).toHaveProperty(name, expect.anything());
    decode(verification, (await raw("GET", `/Verifications/${json.sid}`)).json);
    decode(check, (await raw("POST", "/VerificationCheck", { To: to, Code: wrong() })).json);
    const service = {
      sid: "string",
      friendly_name: "string",
      code_length: "int",
      push: "map",
      totp: "map",
      whatsapp: "map",
      date_created: "time",
      links: "map",
    } as const;
    expect(decode(service, (await raw("GET", "")).json)).toMatchObject({ code_length: 6 });
    const errors = [
      await raw("POST", "/Verifications", sms),
      await raw("POST", "/Verifications", { ...sms, To: "1" }),
      await raw("GET", "/Verifications/none"),
      await raw("GET", "/RateLimits"),
      await raw("DELETE", ""),
      await raw("GET", "", undefined, { authorization: "Basic none" }),
      await raw("POST", "/VerificationCheck", { To: numberOf(2), Code: box.code() }),
    ];
    for (const error of errors) {
      const { code, status } = decode(restError, error.json);
      expect([typeof code, status]).toEqual(["number", error.status]);
      for (const name of ["error_code", "title", "type"]) expect(error.json).not.toHaveProperty(name);
    }
  });
});

describe("a wallet in TypeScript that matches error messages", () => {
  const known = {
    InvalidPhoneNumber: /Invalid parameter `To`/,
    InvalidCode: /Invalid parameter: Code/,
    AttemptsReached: /Max.*attempts reached/,
    RateLimit: /Too many concurrent requests for phone number/,
    Fraud: /The destination phone number has been temporarily blocked by Twilio due to fraudulent activities/,
    Region: /The destination phone number has been blocked by Verify Geo-Permissions. .* is blocked for sms channel for all services/,
    NotFound: /The requested resource \/(v2\/)?Services\/.*\/VerificationCheck was not found/,
    ServiceDown: /Service is unavailable. Please try again/,
  } as const;
  const kindOf = ({ json }: { readonly json: Readonly<Record<string, unknown>> }) =>
    Object.entries(known).flatMap(([name, form]) => (form.test(String(json.message)) ? [name] : []));

  it("recognizes each rejection, and mistakes none for another", async () => {
    const { raw, box, wrong, clock, store } = await serve({ verifier: { countries: ["FR"], lists: { block: { cidrs: ["192.0.2.9/32"] } } } });
    const create = (fields: Record<string, string> = {}) => raw("POST", "/Verifications", { ...sms, ...fields });
    const check = (Code: string) => raw("POST", "/VerificationCheck", { To: to, Code });
    expect(kindOf(await create({ To: "+3361" }))).toEqual(["InvalidPhoneNumber"]);
    expect(kindOf(await create({ To: "+14155552671" }))).toEqual(["Region"]);
    expect(kindOf(await create({ DeviceIp: "192.0.2.9" }))).toEqual(["Fraud"]);
    expect(kindOf(await check("12"))).toEqual(["InvalidCode"]);
    expect(kindOf(await check("123456"))).toEqual(["NotFound"]);
    await create();
    expect(kindOf(await create())).toEqual(["RateLimit"]);
    for (let tries = 0; tries < 5; tries++) await check(wrong());
    expect(kindOf(await check(box.code()))).toEqual(["AttemptsReached"]);
    clock.advance(30_000);
    expect(kindOf(await create())).toEqual(["AttemptsReached"]);
    (store as { commit: unknown }).commit = async () => Promise.reject(new Error("down"));
    clock.advance(600_000);
    expect(kindOf(await create())).toEqual(["ServiceDown"]);
  });
});

describe("a registration service in Java", () => {
  it("gets the SID of the first attempt in each response, and checks by the verification's SID", async () => {
    const { raw, box, clock } = await serve();
    const body = { ...sms, CustomFriendlyName: "Registration", TemplateSid: "HJ0123456789abcdef0123456789abcdef", Locale: "de", AppHash: "FA+9qCX9VSu" };
    const first = await raw("POST", "/Verifications", body);
    const attemptOf = ({ json }: typeof first) => (json.send_code_attempts as { attempt_sid: string }[])[0]?.attempt_sid;
    clock.advance(30_000);
    const second = await raw("POST", "/Verifications", body);
    expect(attemptOf(first)).toMatch(/^VL[0-9a-f]{32}$/);
    expect(attemptOf(second)).toBe(attemptOf(first));
    const checked = await raw("POST", "/VerificationCheck", { VerificationSid: String(second.json.sid), Code: box.code() });
    expect(checked).toMatchObject({ status: 200, json: { valid: true } });
  });
});
