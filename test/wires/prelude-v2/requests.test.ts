import { describe, expect, it } from "vitest";
import { memoryStore } from "../../../adapters/store/memory/index.js";
import { createVerifier, lazyVerifier, VerifierError } from "../../../src/index.js";
import { preludeV2 } from "../../../src/wires/prelude-v2/index.js";
import { inbox, logger, numberOf, secret } from "../../support/verifier.js";
import { serve } from "./service.js";

const target = { type: "phone_number", value: numberOf(1) };

describe("wrong fields of a create", () => {
  const wrong: [code: string, param: string | undefined, body: unknown][] = [
    ["invalid_request", undefined, "{"],
    ["invalid_request", undefined, []],
    ["invalid_request", "target", {}],
    ["invalid_request", "target.type", { target: { value: numberOf(1) } }],
    ["invalid_request", "target.value", { target: { type: "phone_number", value: 33612000001 } }],
    ["email_verification_not_allowed", "target.type", { target: { type: "email_address", value: "a@example.com" } }],
    ["invalid_phone_number", "target.value", { target: { type: "phone_number", value: "33612000001" } }],
    ["region_blocked_by_customer", "target.value", { target: { type: "phone_number", value: "+14155552671" } }],
    ["invalid_correlation_id", "metadata.correlation_id", { target, metadata: { correlation_id: "x".repeat(81) } }],
    ["invalid_correlation_id", "metadata.correlation_id", { target, metadata: { correlation_id: "" } }],
    ["invalid_method", "options.method", { target, options: { method: "voice" } }],
    ["invalid_locale", "options.locale", { target, options: { locale: "not a language" } }],
    ["invalid_app_realm_platform", "options.app_realm.platform", { target, options: { app_realm: { platform: "web", value: "https://example.com" } } }],
    ["invalid_app_realm_value", "options.app_realm.value", { target, options: { app_realm: { platform: "android", value: "short" } } }],
    ["invalid_code_size", "options.code_size", { target, options: { code_size: 3 } }],
    ["invalid_code_size", "options.code_size", { target, options: { code_size: 9 } }],
    ["invalid_code_size", "options.code_size", { target, options: { code_size: 4 } }],
    ["invalid_request", "options.code_size", { target, options: { code_size: "6" } }],
    ["custom_code_not_allowed", "options.custom_code", { target, options: { custom_code: "123456" } }],
    ["invalid_callback_url", "options.callback_url", { target, options: { callback_url: "http://example.com" } }],
    ["channel_not_enabled_in_region", "options.channels", { target, options: { channels: ["whatsapp", "viber"] } }],
    ["invalid_integration", "options.integration", { target, options: { integration: "other" } }],
    ["invalid_request", "signals.ip", { target, signals: { ip: "localhost" } }],
    ["invalid_device_id", "signals.device_id", { target, signals: { device_id: "" } }],
    ["invalid_device_model", "signals.device_model", { target, signals: { device_model: "a\nb" } }],
    ["invalid_device_platform", "signals.device_platform", { target, signals: { device_platform: "symbian" } }],
    ["invalid_os_version", "signals.os_version", { target, signals: { os_version: "x".repeat(129) } }],
    ["invalid_app_version", "signals.app_version", { target, signals: { app_version: "" } }],
    ["invalid_request", "signals.device_id", { target, signals: { device_id: 7 } }],
  ];
  it("are 400 with the vendor's code and the path of the field, and nothing is sent", async () => {
    const { raw, box } = await serve({ verifier: { countries: ["FR"] } });
    for (const [code, param, body] of wrong) {
      const { status, json } = await raw("POST", "/v2/verification", body);
      expect([status, json.code, json.param], JSON.stringify(body)).toEqual([400, code, param]);
      expect(json.message, JSON.stringify(body)).toMatch(param === undefined ? /\.$/ : new RegExp(`^${param} .*\\.$`));
    }
    expect(box.messages).toEqual([]);
  });

  it("a code_size that the guess budget forbids is rejected with the calculation", async () => {
    const { raw } = await serve();
    const { json } = await raw("POST", "/v2/verification", { target, options: { code_size: 5 } });
    expect(json.message).toMatch(/^options\.code_size 5 is not allowed: .*10 .*5/);
  });

  it("code_size is used if the guess budget allows it", async () => {
    const { raw, box } = await serve();
    expect((await raw("POST", "/v2/verification", { target, options: { code_size: 8 } })).json.status).toBe("success");
    expect(box.code()).toMatch(/^\d{8}$/);
    expect((await raw("POST", "/v2/verification/check", { target, code: box.code() })).json.status).toBe("success");
  });
});

describe("wrong fields of a check", () => {
  it("are 400, and do not count as attempts", async () => {
    const { raw, box } = await serve();
    await raw("POST", "/v2/verification", { target });
    const bodies: [code: string, param: string, body: object][] = [
      ["invalid_request", "code", { target }],
      ["invalid_request", "code", { target, code: 123456 }],
      ["invalid_request", "code", { target, code: "" }],
      ["invalid_request", "code", { target, code: "1".repeat(65) }],
      ["invalid_request", "psd2", { target, code: "123456", psd2: { amount: "1", currency: "EUR", recipient: "x" } }],
      ["email_verification_not_allowed", "target.type", { target: { type: "email_address", value: "a@example.com" }, code: "123456" }],
      ["invalid_phone_number", "target.value", { target: { type: "phone_number", value: "+33" }, code: "123456" }],
    ];
    for (const [code, param, body] of bodies)
      expect(await raw("POST", "/v2/verification/check", body), JSON.stringify(body)).toMatchObject({
        status: 400,
        json: { code, param, type: "bad_request" },
      });
    expect((await raw("POST", "/v2/verification/check", { target, code: box.code() })).json.status).toBe("success");
  });
});

describe("fields that are passed on", () => {
  it("an Android app's hash, as the last token of the text, whatever the platform", async () => {
    const { raw, box } = await serve();
    await raw("POST", "/v2/verification", {
      target,
      options: { app_realm: { platform: "android", value: "FA+9qCX9VSu" } },
      signals: { device_platform: "ios" },
    });
    expect(box.messages[0]?.text).toMatch(/FA\+9qCX9VSu$/);
  });

  it.each([
    ["ios", true],
    ["ipados", true],
    ["web", true],
    ["android", false],
  ])("the platform %s, which decides whether the text has a last line", async (device_platform, hasLine) => {
    const { raw, box } = await serve({ verifier: { message: { domain: "example.com" } } });
    await raw("POST", "/v2/verification", { target, signals: { device_platform } });
    expect(box.messages[0]?.text.includes("@example.com #")).toBe(hasLine);
  });

  it("the locale, as the language of the message", async () => {
    const { raw, box } = await serve({ verifier: { message: { text: { default: "Code: {code}", de: "Kennwort: {code}" } } } });
    await raw("POST", "/v2/verification", { target, options: { locale: "de-DE" } });
    expect(box.messages[0]?.text).toMatch(/^Kennwort/);
  });

  it("the address, to the rules per address", async () => {
    const { raw } = await serve({ verifier: { lists: { block: { cidrs: ["2001:db8::/32"] } } } });
    expect((await raw("POST", "/v2/verification", { target, signals: { ip: "2001:db8::1" } })).json.reason).toBe("suspicious");
  });

  it("is_trusted_user turns no rule off", async () => {
    const { raw } = await serve({ verifier: { policy: { limits: { perDevice: [{ limit: 1, window: 3600 }] } } } });
    await raw("POST", "/v2/verification", { target, signals: { device_id: "d", is_trusted_user: true } });
    const second = { target: { ...target, value: numberOf(2) }, signals: { device_id: "d", is_trusted_user: true } };
    expect((await raw("POST", "/v2/verification", second)).json).toMatchObject({ status: "blocked", reason: "repeated_attempts" });
  });
});

it.each(["x".repeat(81), "a\u0000b", ""])("a correlation_id has 1 to 80 printable characters, whatever is wrong with it: %j", async (correlation_id) => {
  const { raw } = await serve();
  expect(await raw("POST", "/v2/verification", { target, metadata: { correlation_id } })).toMatchObject({
    status: 400,
    json: { code: "invalid_correlation_id", message: "metadata.correlation_id must be 1 to 80 printable characters." },
  });
});

describe("tolerated input", () => {
  it("unknown fields anywhere, nulls, chat channels as a preference, a lower-case scheme", async () => {
    const { raw, apiKey } = await serve();
    const body = {
      target: { ...target, more: 1 },
      preferred_channel: "whatsapp",
      options: { channels: ["whatsapp", "sms"], max_auto_fallbacks: 2, force_challenge: true, locale: null, custom_code: null },
      signals: { ip_address: "192.0.2.7", ip: null },
      metadata: null,
      dispatch_id: null,
    };
    expect(await raw("POST", "/v2/verification", body, { authorization: `bearer  ${apiKey}` })).toMatchObject({ status: 200, json: { status: "success" } });
    expect((await raw("POST", "/v2/verification/check", { target, code: "1", id: "vrf_x", psd2: null })).json.status).toBe("failure");
  });
});

it("a verification that the app itself starts for the number is separate", async () => {
  const { raw, verifier, customer, box } = await serve();
  await verifier.verifications.start({ customer_uuid: customer, phone_number: target.value });
  expect((await raw("POST", "/v2/verification/check", { target, code: box.code() })).json.status).toBe("expired_or_not_found");
  expect((await verifier.verifications.check({ customer_uuid: customer, phone_number: target.value, check_code: box.code() })).status).toBe("valid");
});

describe("repeats", () => {
  it("a second attempt after a 503 sends, as if it were the first", async () => {
    const { raw, box, store } = await serve();
    const commit = store.commit;
    (store as { commit: unknown }).commit = async () => Promise.reject(new Error("down"));
    expect((await raw("POST", "/v2/verification", { target }, { "x-stainless-retry-count": "0" })).status).toBe(503);
    (store as { commit: unknown }).commit = commit;
    expect((await raw("POST", "/v2/verification", { target }, { "x-stainless-retry-count": "1" })).json.status).toBe("success");
    expect(box.messages).toHaveLength(1);
  });

  it("a marked repeat with another body is a new request", async () => {
    const { raw } = await serve();
    await raw("POST", "/v2/verification", { target }, { "x-stainless-retry-count": "0" });
    const other = await raw("POST", "/v2/verification", { target, dispatch_id: "other" }, { "x-stainless-retry-count": "1" });
    expect(other).toMatchObject({ status: 429, json: { code: "premature_retry" } });
  });

  it("an Idempotency-Key returns the same result, and rejects another body", async () => {
    const { raw, box } = await serve();
    const first = await raw("POST", "/v2/verification", { target }, { "idempotency-key": "k" });
    const second = await raw("POST", "/v2/verification", { target }, { "idempotency-key": "k" });
    expect([second.status, second.json.id, second.json.status]).toEqual([200, first.json.id, "success"]);
    expect(box.messages).toHaveLength(1);
    expect(await raw("POST", "/v2/verification", { target, signals: { ip: "192.0.2.1" } }, { "idempotency-key": "k" })).toMatchObject({
      status: 400,
      json: { code: "invalid_request" },
    });
  });
});

describe("transport", () => {
  it("404, 405 and 413 are in the wire's format, and a slow body gives 400, never 408 or 409", async () => {
    const { raw, verifier, apiKey, clock } = await serve();
    expect(await raw("GET", "/v2/verifications")).toMatchObject({
      status: 404,
      json: { code: "not_found", type: "not_found", request_id: expect.any(String) },
    });
    const wrongMethod = await raw("PUT", "/v2/verification", {});
    expect([wrongMethod.status, wrongMethod.json.code, wrongMethod.headers.get("allow")]).toEqual([405, "method_not_allowed", "POST"]);
    expect(await raw("POST", "/v2/verification", { target, more: "x".repeat(16 * 1024) })).toMatchObject({ status: 413, json: { code: "invalid_request" } });
    expect(await raw("POST", "/v2/verification", { target }, { "content-type": "text/plain" })).toMatchObject({
      status: 400,
      json: { code: "invalid_request" },
    });
    const slow = preludeV2(verifier).handle({
      method: "POST",
      path: "/v2/verification",
      header: (name) => (name === "authorization" ? `Bearer ${apiKey}` : undefined),
      body: () => new Promise(() => undefined),
    });
    await new Promise((resolve) => setImmediate(resolve));
    clock.advance(10_000);
    expect(await slow).toMatchObject({ status: 400 });
  });

  it("the host's request id is returned", async () => {
    const { raw } = await serve();
    expect((await raw("POST", "/v2/verification", { target }, { "x-request-id": "3d19215e-2991" })).json.request_id).toBe("3d19215e-2991");
  });
});

describe("the handler", () => {
  const options = () => ({ store: memoryStore(), sender: inbox(), secret, countries: ["FR" as const], callbacks: { worker: false }, logger: logger() });

  it("cannot be mounted for a verifier without customers", () => {
    expect(preludeV2(createVerifier(options())).unmountable).toContain("/v2 is for customers with API keys");
  });

  it("creates no lazy verifier before the first request", async () => {
    let created = 0;
    const key = `pp_${"k".repeat(60)}`;
    const verifier = lazyVerifier(() => {
      created++;
      return { ...options(), customers: [{ customer_uuid: crypto.randomUUID(), keys: [key] }] };
    });
    const wire = preludeV2(verifier);
    expect(created).toBe(0);
    const request = (path: string, body: object) =>
      wire.handle({
        method: "POST",
        path,
        header: (name) => ({ authorization: `Bearer ${key}`, "content-type": "application/json" })[name],
        body: async () => ({ kind: "parsed", value: body }),
      });
    expect(JSON.parse((await request("/v2/verification", { target })).body).status).toBe("success");
    expect(JSON.parse((await request("/v2/verification/check", { target, code: "1" })).body).status).toBe("failure");
    expect(created).toBe(1);
  });

  it("rejects unknown and invalid options", () => {
    const wrong = () => preludeV2(createVerifier(options()), { ambiguousLineTypes: "mobile", ambiguousLineType: "Mobile" } as never);
    expect(wrong).toThrow(VerifierError);
    expect(wrong).toThrow(/preludeV2\.ambiguousLineType must be "mobile" or "unknown".*preludeV2\.ambiguousLineTypes is not an option/s);
  });
});
