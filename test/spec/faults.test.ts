import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import packageJson from "../../package.json" with { type: "json" };
import { generateApiKey } from "../../src/index.js";
import { errorCode, numberOf, setUp } from "../support/verifier.js";

const uuid = "11111111-2222-3333-4444-555555555555";

describe("An error that the caller can act on returns 400 with exactly { code, message, doc_url } (docs/contract.md#caller-faults)", () => {
  const create = async (fields: object) => {
    const set = setUp();
    const response = await set.http("POST", "/v1/authentication", { customer_uuid: set.customer, phone_number: numberOf(1), ...fields });
    expect(Object.keys(response.json).sort()).toEqual(["code", "doc_url", "message"]);
    for (const value of Object.values(response.json)) expect(value).toBeTypeOf("string");
    expect(set.box.messages).toHaveLength(0);
    return [response.status, response.json.code];
  };
  it.each([
    ["bad_request", { phone_number: undefined }],
    ["bad_request", { phone_number: 33612345678 }],
    ["bad_request", { phone_number: { $ne: null } }],
    ["bad_request", { phone_number: ["+33612345678"] }],
    ["bad_request", { phone_number: null }],
    ["bad_request", { customer_uuid: undefined }],
    ["bad_request", { customer_uuid: "nonsense" }],
    ["bad_request", { customer_uuid: { $ne: null } }],
    ["account_invalid", { customer_uuid: uuid }],
    ["invalid_phone_number", { phone_number: "+33" }],
    ["bad_request", { ip: "1.2.3" }],
    ["bad_request", { ip: "example.com" }],
    ["bad_request", { ip: 3232235777 }],
    ["bad_request", { ip: "fe80::1%eth0" }],
    ["bad_request", { device_type: "android" }],
    ["bad_request", { device_type: 1 }],
    ["bad_request", { is_returning_user: "true" }],
    ["bad_request", { is_returning_user: 1 }],
    ["invalid_app_realm", { app_realm: "short", device_type: "ANDROID" }],
    ["invalid_app_realm", { app_realm: "123456789012", device_type: "ANDROID" }],
    ["bad_request", { app_realm: 12345678901, device_type: "ANDROID" }],
    ["app_realm_require_device_type", { app_realm: "FA+9qCX9VSu" }],
    ["unsupported_app_realm_device_type", { app_realm: "FA+9qCX9VSu", device_type: "IOS" }],
    ["unsupported_app_realm_device_type", { app_realm: "FA+9qCX9VSu", device_type: "WEB" }],
    ["invalid_app_version", { app_version: "" }],
    ["invalid_app_version", { app_version: "1".repeat(129) }],
    ["bad_request", { app_version: 1.2 }],
    ["invalid_os_version", { os_version: "1\n2" }],
    ["invalid_device_model", { device_model: "a\u0000b" }],
    ["invalid_device_model", { device_model: "a\u202eb" }],
    ["invalid_device_id", { device_id: "" }],
    ["bad_request", { device_id: { $gt: "" } }],
    ["bad_request", { callback_url: 1 }],
    ["bad_request", { __proto__: { x: 1 }, phone_number: 1 }],
  ])("`%s` for %j", async (code, fields) => {
    expect(await create(fields)).toEqual([400, code]);
  });

  it.each([
    "http://example.com/hook",
    "https://user:pass@example.com/",
    "https://user@example.com/",
    "https://example.com/#fragment",
    "https://example.com/#",
    "https://example.com:22/",
    "https://example.com:8080/",
    "https://127.0.0.1/",
    "https://10.1.2.3/",
    "https://192.168.0.1/",
    "https://169.254.169.254/latest/meta-data",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0177.0.0.1/",
    "https://127.1/",
    "https://0/",
    "https://[::1]/",
    "https://[::]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:7f00:1]/",
    "https://[2002:7f00:1::]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[fe80::1]/",
    "https://[fc00::1]/",
    "https://[2001:0:7f00:1::]/",
    "https://１２７.0.0.1/",
    "https://localhost/",
    "https://LOCALHOST./",
    "https://db.localhost/",
    "https://metadata.google.internal/",
    "https://intranet/",
    "ftp://example.com/",
    "javascript:alert(1)",
    "//example.com/",
    "nonsense",
    "",
    `https://example.com/${"a".repeat(2048)}`,
  ])(
    "a `callback_url` that is not https, is over 2,048 characters, has credentials, a fragment, a private address or another port is `bad_request`: %s",
    async (callback_url) => {
      expect(await create({ callback_url })).toEqual([400, "bad_request"]);
    },
  );

  it.each(["https://example.com/hook?x=1", "https://example.com:8443/", "https://8.8.8.8/", "https://[2606:4700::1111]/hook", "https://bücher.example/"])(
    "a valid `callback_url` is accepted: %s",
    async (callback_url) => {
      const set = setUp();
      expect((await set.create({ callback_url })).status).toBe("pending");
    },
  );

  it("exact origins can be allowed for development", async () => {
    const set = setUp({ callbacks: { allowOrigins: ["http://localhost:4000"] } });
    expect((await set.create({ callback_url: "http://localhost:4000/hook" })).status).toBe("pending");
    const response = await set.http("POST", "/v1/authentication", {
      customer_uuid: set.customer,
      phone_number: numberOf(1),
      callback_url: "http://localhost:4001/hook",
    });
    expect(response.json.code).toBe("bad_request");
  });

  it.each(["blob:http://localhost:4000/x", "BLOB:https://example.com/x", "filesystem:http://localhost:4000/x", "view-source:http://localhost:4000/x"])(
    "a scheme that wraps an allowed origin is `bad_request`: %s",
    async (callback_url) => {
      const set = setUp({ callbacks: { allowOrigins: ["http://localhost:4000", "https://example.com"] } });
      expect(await errorCode(set.create({ callback_url }))).toBe("bad_request");
    },
  );

  it.each([
    ["bad_request", "/v1/retry", { authentication_uuid: 5 }],
    ["bad_request", "/v1/retry", { authentication_uuid: "nonsense" }],
    ["bad_request", "/v1/retry", { authentication_uuid: { $ne: null } }],
    ["bad_request", "/v1/retry", {}],
    ["invalid_auth_uuid", "/v1/retry", { authentication_uuid: uuid }],
    ["invalid_auth_uuid", "/v1/check", { authentication_uuid: uuid, check_code: "123456" }],
    ["bad_request", "/v1/check", { authentication_uuid: uuid, check_code: 123456 }],
    ["bad_request", "/v1/check", { authentication_uuid: uuid, check_code: ["1", "2"] }],
    ["bad_request", "/v1/check", { authentication_uuid: uuid }],
    ["account_invalid", "/v1/check", { authentication_uuid: uuid, check_code: "1", customer_uuid: uuid }],
  ])("`%s` on %s for %j", async (code, path, fields) => {
    const set = setUp();
    const response = await set.http("POST", path, { customer_uuid: set.customer, ...fields });
    expect([response.status, response.json.code]).toEqual([400, code]);
  });

  it.each(["null", "[]", '"text"', "1", "", "{", "{'a':1}", "undefined", "[".repeat(6000), `${'{"a":'.repeat(2000)}1${"}".repeat(2000)}`])(
    "a malformed body is `bad_request`: %s",
    async (body) => {
      const set = setUp();
      const response = await set.http("POST", "/v1/authentication", body);
      expect([response.status, response.json.code]).toEqual([400, "bad_request"]);
    },
  );

  it.each(['"__proto__":{"is_returning_user":true}', `"extra":${"[".repeat(40)}${"]".repeat(40)}`, '"extra":{"deep":{"__proto__":1}}'])(
    "an otherwise valid request with %s is `bad_request`, and nothing is sent",
    async (addition) => {
      const set = setUp();
      const response = await set.http("POST", "/v1/authentication", `{"customer_uuid":"${set.customer}","phone_number":"${numberOf(1)}",${addition}}`);
      expect([response.status, response.json.code]).toEqual([400, "bad_request"]);
      expect(set.box.messages).toHaveLength(0);
    },
  );
});

describe("other errors: 403, 404, 405, 413, 500, 503 (docs/contract.md#other-faults)", () => {
  it.each([undefined, "", "wrong", "pp_", "x".repeat(100_000)])(
    "a missing or wrong API key gives 403 `forbidden`, decided before the body is read: %s",
    async (key) => {
      const set = setUp();
      let read = false;
      const response = await set.verifier.http.handle({
        method: "POST",
        path: "/v1/authentication",
        header: (name) => (name === "x-api-key" ? key : undefined),
        body: async () => {
          read = true;
          return { kind: "text", text: "{}" };
        },
      });
      expect([response.status, JSON.parse(response.body).code, read]).toEqual([403, "forbidden", false]);
    },
  );

  it.each(["/", "/v1", "/v1/", "/v1/checks", "/V1/check", "/v1/lookup", "/v1/lookup/", "/v1/lookup/+1/x", "/v2/check", "/v1//check", "/v1/%63heck"])(
    "404 for an unknown route: %s",
    async (path) => {
      const response = await setUp().http("POST", path, {});
      expect([response.status, response.json.code]).toEqual([404, "not_found"]);
    },
  );

  it.each([
    ["GET", "/v1/authentication", "POST"],
    ["PUT", "/v1/check", "POST"],
    ["DELETE", "/v1/retry", "POST"],
    ["OPTIONS", "/v1/check", "POST"],
    ["POST", "/v1/lookup/+33612345678", "GET"],
    ["HEAD", "/v1/lookup/+33612345678", "GET"],
  ])("405 with `Allow` for a wrong method: %s %s", async (method, path, allow) => {
    const response = await setUp().http(method, path);
    expect([response.status, response.json.code, response.headers.allow]).toEqual([405, "method_not_allowed", allow]);
  });

  it("413 for a body over 16 KiB", async () => {
    const set = setUp();
    const body = (length: number) => {
      const text = JSON.stringify({ customer_uuid: set.customer, phone_number: numberOf(1), pad: "" });
      return text.replace('"pad":""', `"pad":"${"x".repeat(length - text.length)}"`);
    };
    expect((await set.http("POST", "/v1/authentication", body(16_384))).status).toBe(200);
    const response = await set.http("POST", "/v1/authentication", body(16_385));
    expect([response.status, response.json.code]).toEqual([413, "payload_too_large"]);
    expect(set.box.messages).toHaveLength(1);
  });

  it("500 for an internal error: the response shows nothing internal, the log has it", async () => {
    const set = setUp();
    const response = await set.verifier.http.handle({
      method: "POST",
      path: "/v1/check",
      header: (name) => (name === "x-api-key" ? set.apiKey : undefined),
      body: () => Promise.reject(new Error("select * from secrets")),
    });
    expect([response.status, JSON.parse(response.body).code]).toEqual([500, "internal_server_error"]);
    expect(response.body).not.toContain("secrets");
    expect(set.log.lines.some(({ fields }) => String(fields.err).includes("select"))).toBe(true);
  });

  it.each([
    [
      "throws",
      () => {
        throw new Error("select * from customers");
      },
    ],
    ["rejects", () => Promise.reject(new Error("select * from customers"))],
  ])("503 if the host's customer source %s, over HTTP and in direct calls", async (_what, find) => {
    const set = setUp({ customers: { findByKeyDigest: find, find } });
    const response = await set.http("POST", "/v1/check", {});
    expect([response.status, response.json.code, response.body.includes("select")]).toEqual([503, "unavailable", false]);
    expect(await errorCode(set.create())).toBe("unavailable");
  });

  it("503 if the customer source hangs longer than `storeTimeout`", async () => {
    const set = setUp({ customers: { findByKeyDigest: () => new Promise(() => undefined), find: () => undefined } });
    const asked = set.http("POST", "/v1/check", {});
    set.clock.advance(2000);
    expect((await asked).status).toBe(503);
  });

  it("503 with `Retry-After` if the store fails: the response shows nothing internal, nothing is sent", async () => {
    const set = setUp();
    set.store.commit = () => Promise.reject(new Error("redis://password@host is down"));
    const response = await set.http("POST", "/v1/authentication", { customer_uuid: set.customer, phone_number: numberOf(1) });
    expect([response.status, response.json.code, response.headers["retry-after"]]).toEqual([503, "unavailable", "2"]);
    expect(response.body).not.toContain("redis");
    expect(set.box.messages).toHaveLength(0);
  });

  it("`doc_url` links to the code on the errors page of this version, or on the page set as `docUrl`", async () => {
    const page = `https://unpkg.com/phoneproof@${packageJson.version}/docs/errors.md`;
    expect((await setUp().http("GET", "/nope")).json.doc_url).toBe(`${page}#not_found`);
    const own = setUp({ docUrl: "https://example.com/errors" });
    expect((await own.http("GET", "/nope")).json.doc_url).toBe("https://example.com/errors#not_found");
    expect((await own.http("GET", "/v1/authentication")).json.doc_url).toBe("https://example.com/errors#method_not_allowed");
    expect(() => setUp({ docUrl: "https://example.com/errors#codes" })).toThrow("docUrl must not contain #: the error's code is added");
  });
});

describe("responses and accepted requests (docs/contract.md#the-wire)", () => {
  it("a handled operation returns exactly 200 with `content-type: application/json` and exactly the fields of the specification (docs/contract.md#always-200)", async () => {
    const set = setUp();
    const created = await set.http("POST", "/v1/authentication", { customer_uuid: set.customer, phone_number: numberOf(1) });
    const ids = { customer_uuid: set.customer, authentication_uuid: created.json.authentication_uuid };
    const retried = await set.http("POST", "/v1/retry", ids);
    const checked = await set.http("POST", "/v1/check", { ...ids, check_code: "000" });
    const looked = await set.http("GET", `/v1/lookup/${numberOf(1)}`, undefined, { "customer-uuid": set.customer });
    for (const response of [created, retried, checked, looked]) expect([response.status, response.headers["content-type"]]).toEqual([200, "application/json"]);
    expect(Object.keys(created.json).sort()).toEqual(["authentication_uuid", "created_at", "expires_at", "status"]);
    expect(Object.keys(retried.json).sort()).toEqual(["authentication_uuid", "created_at", "next_retry_at", "remaining_retry", "status"]);
    expect(Object.keys(checked.json).sort()).toEqual(["authentication_uuid", "status"]);
    expect(Object.keys(looked.json).sort()).toEqual(["country_code", "line_type", "phone_number"]);
    for (const time of [created.json.created_at, created.json.expires_at, retried.json.next_retry_at])
      expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  });

  it("any key order, unknown body fields and all optional fields are accepted (docs/contract.md#tolerated)", async () => {
    const set = setUp();
    const response = await set.http("POST", "/v1/authentication", {
      zzz: { nested: [1, null] },
      phone_number: numberOf(1),
      os_version: "17.1",
      device_model: "Pixel 9 Pro – büro",
      device_id: "A1B2",
      device_type: "ANDROID",
      app_version: "1.2.3 (45)",
      app_realm: "FA+9qCX9VSu",
      ip: "2001:db8::1",
      is_returning_user: false,
      callback_url: "https://example.com/hook",
      customer_uuid: set.customer.toUpperCase(),
    });
    expect([response.status, response.json.status]).toEqual([200, "pending"]);
  });

  it("ids are any string with the shape of a UUID, in upper or lower case", async () => {
    const set = setUp();
    const { authentication_uuid } = await set.create();
    expect(await set.check(authentication_uuid.toUpperCase(), set.box.code())).toMatchObject({ authentication_uuid, status: "valid" });
    const odd = setUp({ customers: [{ customer_uuid: "ffffffff-ffff-ffff-ffff-ffffffffffff", keys: ["k".repeat(40)] }] });
    expect((await odd.verifier.createAuthentication({ customer_uuid: "ffffffff-ffff-ffff-ffff-ffffffffffff", phone_number: numberOf(1) })).status).toBe(
      "pending",
    );
  });

  it.each([undefined, "", "application/json", "application/json; charset=utf-8", "Application/JSON", "application/vnd.api+json"])(
    "content type %s is accepted",
    async (type) => {
      const set = setUp();
      expect(
        (
          await set.http(
            "POST",
            "/v1/authentication",
            { customer_uuid: set.customer, phone_number: numberOf(1) },
            type === undefined ? {} : { "content-type": type },
          )
        ).status,
      ).toBe(200);
    },
  );

  it.each(["text/plain", "text/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/xml", "application/jsonp", "json"])(
    "content type %s is rejected (docs/contract.md#content-type)",
    async (type) => {
      const set = setUp();
      const response = await set.http("POST", "/v1/authentication", { customer_uuid: set.customer, phone_number: numberOf(1) }, { "content-type": type });
      expect([response.status, response.json.code, response.json.message]).toEqual([400, "bad_request", "The content-type must be application/json."]);
      expect(set.box.messages).toHaveLength(0);
    },
  );

  it.each([
    ["raw", "+33612345678", 200],
    ["%2B", "%2B33612345678", 200],
    ["%2b", "%2b33612345678", 200],
    ["a space", "%2033612345678", 400],
    ["no plus", "33612345678", 400],
    ["a broken escape", "%zz33612345678", 400],
    ["broken UTF-8", "%ff33612345678", 400],
    ["a slash", "%2B336%2F12345678", 400],
  ])("in the lookup path, `+` may be raw or `%2B` (never read as a space): %s", async (_what, written, status) => {
    const set = setUp();
    const response = await set.http("GET", `/v1/lookup/${written}`, undefined, { "customer-uuid": set.customer });
    expect(response.status).toBe(status);
    if (status === 200) expect(response.json.phone_number).toBe("+33612345678");
  });

  it("a missing `customer-uuid` is `bad_request`, one that is not the key's customer `account_invalid`", async () => {
    const set = setUp();
    expect((await set.http("GET", "/v1/lookup/+33612345678")).json.code).toBe("bad_request");
    expect((await set.http("GET", "/v1/lookup/+33612345678", undefined, { "customer-uuid": uuid })).json.code).toBe("account_invalid");
  });
});

describe("customers and keys (docs/contract.md#customers-and-keys)", () => {
  it("an API key has a recognizable prefix and is stored as SHA-256; the stored hash itself is not accepted", async () => {
    const { key, digest } = generateApiKey();
    expect(key).toMatch(/^pp_[0-9A-Za-z]{49}$/);
    const customer = randomUUID();
    const set = setUp({ customers: [{ customer_uuid: customer, keys: [digest] }] });
    expect((await set.http("POST", "/v1/authentication", { customer_uuid: customer, phone_number: numberOf(1) }, { "x-api-key": key })).status).toBe(200);
    expect((await set.http("POST", "/v1/authentication", { customer_uuid: customer, phone_number: numberOf(1) }, { "x-api-key": digest })).status).toBe(403);
  });

  it("a customer can have several keys: all work, none for another customer", async () => {
    const [one, two] = [randomUUID(), randomUUID()];
    const [a, b, c] = [generateApiKey().key, generateApiKey().key, generateApiKey().key];
    const set = setUp({
      customers: [
        { customer_uuid: one, keys: [a, b] },
        { customer_uuid: two, keys: [c] },
      ],
    });
    const code = async (key: string, customer_uuid: string) => {
      const { status, json } = await set.http("POST", "/v1/authentication", { customer_uuid, phone_number: numberOf(1) }, { "x-api-key": key });
      return status === 200 ? json.status : json.code;
    };
    expect(await Promise.all([code(a, one), code(b, one), code(c, two), code(c, one), code(a, two)])).toEqual([
      "pending",
      "pending",
      "pending",
      "account_invalid",
      "account_invalid",
    ]);
  });

  it("a customer or key that is in the list twice is an error", () => {
    const customer_uuid = randomUUID();
    expect(() =>
      setUp({
        customers: [
          { customer_uuid, keys: ["a".repeat(40)] },
          { customer_uuid, keys: ["b".repeat(40)] },
        ],
      }),
    ).toThrow("customers.1.customer_uuid is in the list twice");
    expect(() =>
      setUp({
        customers: [
          { customer_uuid, keys: ["a".repeat(40)] },
          { customer_uuid: randomUUID(), keys: ["a".repeat(40)] },
        ],
      }),
    ).toThrow("customers.1.keys holds a key that is in the list twice");
  });
});
