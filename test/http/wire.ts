import * as zlib from "node:zlib";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Answer, type Call, exchange, isWhole } from "./client.js";
import type { Host, Mounting } from "./hosts.js";
import type { Caller, Service } from "./service.js";

/** What is mounted how, and what the framework decides before it calls us. */
export interface Traits extends Pick<Mounting, "name" | "readsFirst" | "decodes" | "unpacks" | "fetch" | "direct"> {
  /** Next.js responds to some paths without calling its routes. */
  readonly next?: true;
}

const timestamp = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const json = { "content-type": "application/json" };
const unknownAuthentication = "3f0e6f5c-3b7a-4d58-9c1e-6a1b2c3d4e5f";

/** The encodings that this version of Node supports. */
const encodings: [name: string, pack: (bytes: Buffer) => Buffer][] = [
  ["gzip", gzipSync],
  ["deflate", deflateSync],
  ["br", brotliCompressSync],
  ...("zstdCompressSync" in zlib ? [["zstd", zlib.zstdCompressSync] as [string, typeof gzipSync]] : []),
];

/** Node 22 accepts a truncated zstd body as complete; it is rejected because of the missing data. */
function passesForWhole(name: string, body: Buffer): boolean {
  if (name !== "zstd" || !("zstdDecompressSync" in zlib)) return false;
  try {
    (zlib.zstdDecompressSync as typeof gzipSync)(body);
    return true;
  } catch {
    return false;
  }
}

let drawn = 0;
/** A French mobile number that no other test uses. */
const freshNumber = () => `+3361${String((++drawn * 1_237_717) % 10_000_000).padStart(7, "0")}`;

/** The wire (docs/contract.md#the-wire), and responses to bad input, over one way of mounting. */
export function wireSuite(traits: Traits, start: () => Promise<{ host: Host; service: Service }>): void {
  describe(traits.name, () => {
    let host: Host;
    let service: Service;
    let me: Caller;

    beforeAll(async () => {
      ({ host, service } = await start());
      me = service.customer;
    });
    afterAll(() => host?.close());

    const call = (method: string, path: string, rest: Omit<Call, "method" | "path"> = {}) => host.send({ method, path: host.prefix + path, ...rest });
    const keyed = (headers: Call["headers"] = {}) => ({ "x-api-key": me.key, ...headers });
    const post = (path: string, body: unknown, headers: Call["headers"] = keyed(json)) => call("POST", path, { headers, body: JSON.stringify(body) });
    const postRaw = (body: NonNullable<Call["body"]>, headers: Call["headers"] = keyed(json), path = "/v1/authentication") =>
      call("POST", path, { headers, body });
    const createBody = (more: object = {}) => ({ customer_uuid: me.customer_uuid, phone_number: freshNumber(), ...more });
    const lookup = (number: string, headers: Call["headers"] = keyed({ "customer-uuid": me.customer_uuid })) =>
      call("GET", `/v1/lookup/${number}`, { headers });

    const handled = (answer: Answer): Record<string, unknown> => {
      expect(answer.status, answer.text).toBe(200);
      expect(answer.headers["content-type"]).toBe("application/json");
      return JSON.parse(answer.text) as Record<string, unknown>;
    };
    const expectError = (answer: Answer, status: number, ...codes: string[]): Record<string, unknown> => {
      expect(answer.status, answer.text).toBe(status);
      expect(answer.headers["content-type"]).toBe("application/json");
      const body = JSON.parse(answer.text) as Record<string, unknown>;
      expect(Object.keys(body).sort()).toEqual(["code", "doc_url", "message"]);
      for (const value of Object.values(body)) expect(value).toBeTypeOf("string");
      expect(codes).toContain(body.code);
      expect(answer.text).not.toMatch(/node_modules|\.[jt]s\b|\bat \w+ \(|hunter2|ECONN|SyntaxError|TypeError/);
      return body;
    };
    /** The request gets an error of our form, and nothing is sent. */
    const refused = async (answer: () => Promise<Answer>, status: number, ...codes: string[]) => {
      const before = (await service.sent()).length;
      const body = expectError(await answer(), status, ...codes);
      expect((await service.sent()).length).toBe(before);
      return body;
    };
    const create = async (more?: object) =>
      handled(await post("/v1/authentication", createBody(more))) as Record<"authentication_uuid" | "status" | "created_at" | "expires_at", string>;
    const codeFor = async (id: string) => (await service.sent()).findLast((message) => message.authentication_uuid === id)?.code ?? "none";
    const check = (id: string, code: string, path = "/v1/check") => post(path, { customer_uuid: me.customer_uuid, authentication_uuid: id, check_code: code });
    const wrong = (code: string) => code.replace(/^./, (digit) => String((Number(digit) + 1) % 10));

    describe("the wire", () => {
      test("create, retry and check return exactly 200 with application/json and exactly their fields", async () => {
        const created = await create();
        expect(Object.keys(created).sort()).toEqual(["authentication_uuid", "created_at", "expires_at", "status"]);
        expect(created.authentication_uuid).toMatch(uuid);
        expect(created.created_at).toMatch(timestamp);
        expect(created.expires_at).toMatch(timestamp);
        expect(created.status).toBe("pending");
        const id = created.authentication_uuid;
        const code = await codeFor(id);

        const retried = handled(await post("/v1/retry", { customer_uuid: me.customer_uuid, authentication_uuid: id }));
        expect(Object.keys(retried).sort()).toEqual(["authentication_uuid", "created_at", "next_retry_at", "remaining_retry", "status"]);
        expect(retried).toMatchObject({ authentication_uuid: id, status: "denied", remaining_retry: 4 });
        expect(retried.next_retry_at).toMatch(timestamp);
        expect(retried.created_at).toMatch(timestamp);

        expect(handled(await check(id, wrong(code)))).toEqual({ authentication_uuid: id, status: "invalid" });
        expect(handled(await check(id, code))).toEqual({ authentication_uuid: id, status: "valid" });
        expect(handled(await check(id, code))).toEqual({ authentication_uuid: id, status: "already_validated" });
        expect(handled(await post("/v1/retry", { customer_uuid: me.customer_uuid, authentication_uuid: id }))).toMatchObject({
          status: "already_validated",
          remaining_retry: 0,
        });
      });

      test("additional facts are in headers, and the bodies stay unchanged", async () => {
        const told = ({ headers }: Answer) => Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith("x-phoneproof-")));
        const phone_number = freshNumber();
        const created = await post("/v1/authentication", createBody({ phone_number: phone_number.replace("+33", "+330") }));
        const { authentication_uuid: id, created_at } = handled(created) as Record<"authentication_uuid" | "created_at", string>;
        const standing = {
          "x-phoneproof-phone-number": phone_number,
          "x-phoneproof-next-retry-at": new Date(Date.parse(created_at) + 30_000).toISOString(),
          "x-phoneproof-remaining-retry": "4",
          "x-phoneproof-remaining-checks": "5",
        };
        expect(told(created)).toEqual(standing);
        expect(told(await post("/v1/retry", { customer_uuid: me.customer_uuid, authentication_uuid: id }))).toEqual(standing);
        const code = await codeFor(id);
        expect(told(await check(id, wrong(code)))).toEqual({ ...standing, "x-phoneproof-remaining-checks": "4" });
        const over = { "x-phoneproof-remaining-retry": "0", "x-phoneproof-remaining-checks": "0" };
        const valid = await check(id, code);
        expect(handled(valid)).toEqual({ authentication_uuid: id, status: "valid" });
        expect(told(valid)).toEqual({ ...over, "x-phoneproof-phone-number": phone_number });
        expect(told(await check(id, code))).toEqual(over);
        expect(told(await lookup(phone_number))).toEqual({});

        const another = { phone_number: freshNumber() };
        for (let sent = 0; sent < 5; sent++) await create(another);
        const refused = await post("/v1/authentication", createBody(another));
        expect(Object.keys(handled(refused)).sort()).toEqual(["authentication_uuid", "created_at", "expires_at", "status"]);
        expect(told(refused)).toEqual({ ...over, "x-phoneproof-phone-number": another.phone_number, "x-phoneproof-retry-after": "610" });
      });

      test("a domain outcome is never 429: the 5th wrong code returns `invalid`, later ones `rate_limited`", async () => {
        const { authentication_uuid: id } = await create();
        const code = await codeFor(id);
        const statuses = [];
        for (let count = 0; count < 6; count++) statuses.push(handled(await check(id, wrong(code))).status);
        expect(statuses).toEqual(["invalid", "invalid", "invalid", "invalid", "invalid", "rate_limited"]);
        expect(handled(await check(id, code)).status).toBe("rate_limited");
      });

      test("lookup returns phone_number, country_code and line_type without the fields that are not known", async () => {
        expect(handled(await lookup("+33612345678"))).toEqual({ phone_number: "+33612345678", country_code: "FR", line_type: "Mobile" });
      });

      test("invalid_auth_uuid for an unknown and for another customer's authentication, which are indistinguishable", async () => {
        const { authentication_uuid: id } = await create();
        const code = await codeFor(id);
        const { other } = service;
        const faults = [];
        for (const authentication_uuid of [id, unknownAuthentication]) {
          for (const path of ["/v1/check", "/v1/retry"]) {
            const body = { customer_uuid: other.customer_uuid, authentication_uuid, check_code: code };
            faults.push(await refused(() => post(path, body, { ...json, "x-api-key": other.key }), 400, "invalid_auth_uuid"));
          }
        }
        for (const fault of faults) expect(fault).toEqual(faults[0]);
        expect(handled(await check(id, code)).status).toBe("valid");
      });

      test("account_invalid if customer_uuid is not the key's customer; bad_request if it is missing", async () => {
        const foreign = service.other.customer_uuid;
        await refused(() => post("/v1/authentication", createBody({ customer_uuid: foreign })), 400, "account_invalid");
        await refused(
          () => post("/v1/check", { customer_uuid: foreign, authentication_uuid: unknownAuthentication, check_code: "123456" }),
          400,
          "account_invalid",
        );
        await refused(() => lookup("+33612345678", keyed({ "customer-uuid": foreign })), 400, "account_invalid");
        await refused(() => post("/v1/authentication", { phone_number: freshNumber() }), 400, "bad_request");
        await refused(() => lookup("+33612345678", keyed()), 400, "bad_request");
      });

      test.each([
        ["invalid_phone_number", { phone_number: "0612345678" }],
        ["invalid_phone_number", { phone_number: "+331" }],
        ["unsupported_region", { phone_number: "+4915112345678" }],
        ["invalid_line", { phone_number: "+33140205050" }],
        ["invalid_app_realm", { app_realm: "short", device_type: "ANDROID" }],
        ["app_realm_require_device_type", { app_realm: "AbCdEfGhIj+" }],
        ["unsupported_app_realm_device_type", { app_realm: "AbCdEfGhIj+", device_type: "IOS" }],
        ["invalid_app_version", { app_version: "" }],
        ["invalid_os_version", { os_version: "a\u0000b" }],
        ["invalid_device_model", { device_model: "m".repeat(129) }],
        ["invalid_device_id", { device_id: "" }],
        ["bad_request", { ip: "300.1.1.1" }],
        ["bad_request", { device_type: "android" }],
        ["bad_request", { callback_url: "http://127.0.0.1/" }],
      ])("an error that the caller can act on returns 400 with exactly code, message, doc_url: %s for %o", async (code, fields) => {
        await refused(() => post("/v1/authentication", createBody(fields)), 400, code);
      });

      test.each([
        ["missing", {}],
        ["wrong", { "x-api-key": "pp_not-a-key-of-anyone-0123456789012345678" }],
        ["empty", { "x-api-key": "" }],
        ["of odd bytes", { "x-api-key": "pp_\u00ff\u0080" }],
        ["in the wrong header", { authorization: "Bearer x" }],
        ["longer than any key", { "x-api-key": "k".repeat(4000) }],
      ])("a missing or wrong API key: 403, code forbidden (%s)", async (_how, headers) => {
        await refused(() => post("/v1/authentication", createBody(), { ...json, ...headers }), 403, "forbidden");
        await refused(() => postRaw("{not json", { ...json, ...headers }), 403, "forbidden");
        await refused(() => lookup("+33612345678", { "customer-uuid": me.customer_uuid, ...headers }), 403, "forbidden");
      });

      test("an API key sent twice is wrong: 403", async () => {
        await refused(() => post("/v1/authentication", createBody(), { ...json, "x-api-key": [me.key, me.key] }), 403, "forbidden");
      });

      test("403 takes precedence over a body that is too large", async () => {
        await refused(() => postRaw("x".repeat(20_000), json), 403, "forbidden");
      });

      test("an unknown route is 404, with any method and body", async () => {
        for (const path of ["/v1/unknown", "/v1/authentication/x", "/v1/lookup/+33612345678/x", "/v1/Check", "/v1/checks", "/v1/lookup"]) {
          await refused(() => call("GET", path, { headers: keyed() }), 404, "not_found");
          await refused(() => postRaw("{not json", keyed(json), path), 404, "not_found");
        }
      });

      // A catch-all segment of Next is never empty.
      if (!traits.next)
        test("exactly /v1 is our path, but not a route: 404", async () => {
          for (const method of ["GET", "POST", "PUT"])
            for (const query of ["", "?a=b"]) await refused(() => call(method, `/v1${query}`, { headers: keyed() }), 404, "not_found");
        });

      if (!traits.next)
        test("one slash at the end of a path is ignored, two are 404", async () => {
          const { authentication_uuid } = handled(await post("/v1/authentication/", createBody()));
          expect(handled(await check(authentication_uuid as string, "none", "/v1/check/"))).toMatchObject({ status: "invalid" });
          expect(handled(await lookup("+33612345678/"))).toMatchObject({ phone_number: "+33612345678" });
          expectError(await call("GET", "/v1/retry/?a=/b", { headers: keyed() }), 405, "method_not_allowed");
          for (const path of ["/v1/check//", "/v1/lookup/", "/v1/lookup//", "/v1/"])
            await refused(() => call("POST", path, { headers: keyed() }), 404, "not_found");
        });

      test("a wrong method is 405 with Allow", async () => {
        for (const method of ["GET", "PUT", "PATCH", "DELETE", "OPTIONS"]) {
          for (const path of ["/v1/authentication", "/v1/retry", "/v1/check"]) {
            const answer = await call(method, path, { headers: keyed() });
            expectError(answer, 405, "method_not_allowed");
            expect(answer.headers.allow).toBe("POST");
          }
        }
        const answer = await post("/v1/lookup/+33612345678", {});
        expectError(answer, 405, "method_not_allowed");
        expect(answer.headers.allow).toBe("GET");
      });

      test("405 to HEAD has no body", async () => {
        const answer = await call("HEAD", "/v1/check", { headers: keyed() });
        expect(answer).toMatchObject({ status: 405, text: "" });
        expect(answer.headers.allow).toBe("POST");
        expect(answer.headers["content-type"]).toBe("application/json");
      });

      test("413 over 16 KiB, by content-length and chunked; exactly 16 KiB are accepted", async () => {
        const sized = (size: number) => {
          const body = JSON.stringify({ ...createBody(), padding: "" });
          return body.replace('"padding":""', `"padding":"${"x".repeat(size - body.length)}"`);
        };
        const inPieces = (text: string) => Array.from({ length: Math.ceil(text.length / 1000) }, (_, index) => text.slice(index * 1000, index * 1000 + 1000));
        handled(await postRaw(sized(16 * 1024)));
        handled(await postRaw(inPieces(sized(16 * 1024))));
        await refused(() => postRaw(sized(16 * 1024 + 1)), 413, "payload_too_large");
        await refused(() => postRaw(inPieces(sized(16 * 1024 + 1))), 413, "payload_too_large");
        await refused(() => postRaw(inPieces(sized(64 * 1024))), 413, "payload_too_large");
      });

      // Next closes the connection while such a body is still being sent: see next.test.ts.
      if (!traits.next)
        test("413 reaches a client that sends 5 MB, by content-length and chunked", async () => {
          const piece = Buffer.alloc(64 * 1024, "x");
          await refused(() => postRaw(Buffer.alloc(5 * 1024 * 1024, "x")), 413, "payload_too_large");
          await refused(() => postRaw(Array.from({ length: 80 }, () => piece)), 413, "payload_too_large");
        });

      test("503 with Retry-After if the store fails, and nothing internal in `message`", async () => {
        await service.breakStore(true);
        try {
          await refused(
            () => post("/v1/check", { customer_uuid: me.customer_uuid, authentication_uuid: unknownAuthentication, check_code: "123456" }),
            503,
            "unavailable",
          );
          const answer = await post("/v1/authentication", createBody());
          expectError(answer, 503, "unavailable");
          expect(Number(answer.headers["retry-after"])).toBeGreaterThan(0);
        } finally {
          await service.breakStore(false);
        }
      });

      test("any key order, unknown body fields and query parameters are accepted", async () => {
        const answer = await postRaw(
          `{"extra":{"a":[1]},"phone_number":"${freshNumber()}","customer_uuid":"${me.customer_uuid}"}`,
          keyed(json),
          "/v1/authentication?debug=1&x[]=2&phone_number=%zz",
        );
        expect(handled(answer).status).toBe("pending");
        handled(await lookup("+33612345678?customer-uuid=x&a=b/c"));
      });

      test.each([
        ["missing", {}],
        ["empty", { "content-type": "" }],
        ["application/json with a charset", { "content-type": "application/json; charset=utf-8" }],
        ["of another case", { "content-type": "Application/JSON" }],
        ["application/vnd.api+json", { "content-type": "application/vnd.api+json" }],
      ])("an empty or missing content type, and relatives of JSON, are accepted: %s", async (_what, headers) => {
        expect(handled(await postRaw(JSON.stringify(createBody()), keyed(headers))).status).toBe("pending");
      });

      test.each([
        ["text/plain"],
        ["application/x-www-form-urlencoded"],
        ["multipart/form-data; boundary=x"],
        ["application/xml"],
        ["nonsense"],
        ["application/json-seq"],
      ])("another content type is bad_request: %s", async (type) => {
        await refused(() => postRaw(JSON.stringify(createBody()), keyed({ "content-type": type })), 400, "bad_request");
        await refused(() => postRaw(`customer_uuid=${me.customer_uuid}&phone_number=%2B33612345678`, keyed({ "content-type": type })), 400, "bad_request");
      });

      test("in the lookup path, `+` may be raw or `%2B`, never read as a space", async () => {
        for (const number of ["+33612345678", "%2B33612345678", "%2b33612345678", "%2B3361234567%38"])
          expect(handled(await lookup(number)).phone_number).toBe("+33612345678");
        for (const number of ["%2033612345678", "%20%2B33612345678", "33612345678", "%252B33612345678"])
          await refused(() => lookup(number), 400, "invalid_phone_number");
      });

      if (!traits.next)
        test("a malformed percent escape in the lookup path is bad_request", async () => {
          for (const number of ["%", "%2", "%zz", "%E0%A4%A", "%FF", "+3361234567%C0"]) await refused(() => lookup(number), 400, "bad_request");
          await refused(() => call("GET", "/v1/unknown/%zz", { headers: keyed() }), 404, "not_found");
          await refused(() => lookup("%zz", json), 403, "forbidden");
        });

      test("an empty `cookie` header, and `Content-Length: 0` on GET, are accepted", async () => {
        handled(await lookup("+33612345678", keyed({ "customer-uuid": me.customer_uuid, cookie: "", "content-length": "0" })));
        expect(handled(await post("/v1/authentication", createBody(), keyed({ ...json, cookie: "" }))).status).toBe("pending");
      });

      if (!traits.next)
        test("`Upgrade: h2c`, as Java's HttpClient offers it, is accepted", async () => {
          const upgrade = { connection: "Upgrade, HTTP2-Settings", upgrade: "h2c", "http2-settings": "AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA" };
          expect(handled(await post("/v1/authentication", createBody(), keyed({ ...json, ...upgrade }))).status).toBe("pending");
          handled(await lookup("+33612345678", keyed({ "customer-uuid": me.customer_uuid, ...upgrade })));
        });

      test.each([
        ["phone_number", 33612345678],
        ["phone_number", { $ne: null }],
        ["phone_number", ["+33612345678"]],
        ["phone_number", null],
        ["customer_uuid", 12],
        ["customer_uuid", { $gt: "" }],
        ["device_id", 1],
        ["is_returning_user", "true"],
        ["is_returning_user", 1],
        ["app_version", null],
        ["ip", { toString: "1.2.3.4" }],
      ])("types are strict, never coerced: %s %o is bad_request", async (field, value) => {
        await refused(() => post("/v1/authentication", createBody({ [field]: value })), 400, "bad_request");
      });

      test.each([[123456], [{ $ne: null }], [{ $gt: "" }], [["123456"]], [null], [true], [""], [" - "], ["1".repeat(65)]])(
        "check_code %o is bad_request, and not counted",
        async (check_code) => {
          const { authentication_uuid } = await create();
          const code = await codeFor(authentication_uuid);
          for (let count = 0; count < 6; count++)
            await refused(() => post("/v1/check", { customer_uuid: me.customer_uuid, authentication_uuid, check_code }), 400, "bad_request");
          await refused(() => post("/v1/check", { customer_uuid: me.customer_uuid, authentication_uuid: { $ne: null }, check_code: code }), 400, "bad_request");
          expect(handled(await check(authentication_uuid, code)).status).toBe("valid");
        },
      );

      test("check_code tolerates spaces, hyphens and Unicode digits", async () => {
        const { authentication_uuid: id } = await create();
        const code = await codeFor(id);
        const arabic = [...code].map((digit) => String.fromCodePoint(0x660 + Number(digit))).join("");
        expect(handled(await check(id, ` ${arabic.slice(0, 3)} - ${arabic.slice(3)} `)).status).toBe("valid");
      });

      test("customer_uuid and ids are any string with the shape of a UUID, in either case", async () => {
        const { authentication_uuid: id } = await create({ customer_uuid: me.customer_uuid.toUpperCase() });
        expect(handled(await check(id.toUpperCase(), await codeFor(id))).status).toBe("valid");
        await refused(() => check("ffffffff-ffff-ffff-ffff-ffffffffffff", "123456"), 400, "invalid_auth_uuid");
        await refused(() => check("not-a-uuid", "123456"), 400, "bad_request", "invalid_auth_uuid");
      });

      test("Idempotency-Key: the same key and body return the same result without a second message; another body under the key is bad_request", async () => {
        const headers = keyed({ ...json, "idempotency-key": crypto.randomUUID() });
        const body = createBody();
        const first = handled(await post("/v1/authentication", body, headers));
        expect(handled(await post("/v1/authentication", body, headers))).toEqual(first);
        expect((await service.sent()).filter((message) => message.authentication_uuid === first.authentication_uuid)).toHaveLength(1);
        await refused(() => post("/v1/authentication", createBody(), headers), 400, "bad_request");
      });
    });

    describe("bad input gets a 4xx response of our form, nothing is sent, and the service stays up", () => {
      const deep = `{"a":${"[".repeat(5000)}${"]".repeat(5000)}}`;
      const valid = () => JSON.stringify(createBody());
      test.each<[string, () => string]>([
        ["malformed JSON", () => '{"customer_uuid":'],
        ["JSON with a comment", () => `/* */${valid()}`],
        ["single quotes", () => "{'a':1}"],
        ["two values", () => `${valid()}${valid()}`],
        ["an empty body", () => ""],
        ["white space", () => "  \n"],
        ["null", () => "null"],
        ["an array", () => `[${valid()}]`],
        ["a string", () => JSON.stringify("text")],
        ["a string that holds JSON", () => JSON.stringify(valid())],
        ["a number", () => "12345"],
        ["true", () => "true"],
        ["an empty object", () => "{}"],
        ["5,000 nested arrays", () => deep],
        ["5,000 nested objects", () => `${'{"a":'.repeat(2500)}1${"}".repeat(2500)}`],
        ["an unclosed deep body", () => "[".repeat(12_000)],
        ["a __proto__ key", () => valid().replace("{", '{"__proto__":{"phone_number":"+33612345678"},')],
        ["a __proto__ key below", () => valid().replace("{", '{"extra":{"__proto__":{"isAdmin":true}},')],
        ["NaN", () => valid().replace(/"\+33\d+"/, "NaN")],
        ["a lone NUL", () => "\u0000"],
      ])("%s", async (_what, body) => {
        await refused(() => postRaw(body()), 400, "bad_request");
        if (body() !== "") await refused(() => postRaw([body()]), 400, "bad_request");
        expect(({} as Record<string, unknown>).isAdmin).toBeUndefined();
      });

      test("constructor and prototype keys are unknown fields like others", async () => {
        expect(handled(await postRaw(valid().replace("{", '{"constructor":{"prototype":{"isAdmin":true}},'))).status).toBe("pending");
        expect(({} as Record<string, unknown>).isAdmin).toBeUndefined();
      });

      test("bad UTF-8", async () => {
        const [head = "", tail = ""] = valid().split("+33");
        const body = Buffer.concat([Buffer.from(`${head}+33`), Buffer.from([0xff, 0xc0, 0x80]), Buffer.from(tail)]);
        // A host's parser that decodes the text puts replacement characters there: not a phone number either.
        await refused(() => postRaw(body), 400, ...(traits.decodes ? ["bad_request", "invalid_phone_number"] : ["bad_request"]));
      });

      test("a byte order mark before UTF-8 is accepted", async () => {
        expect(handled(await postRaw(Buffer.from(`\ufeff${valid()}`))).status).toBe("pending");
      });

      test("UTF-16", async () => {
        const body = Buffer.from(`\ufeff${valid()}`, "utf16le");
        await refused(() => postRaw(body), 400, "bad_request");
        const declared = () => postRaw(body, keyed({ "content-type": "application/json; charset=utf-16" }));
        // Some hosts' parsers can read it; we do not.
        if (traits.decodes) expect([200, 400]).toContain((await declared()).status);
        else await refused(declared, 400, "bad_request");
      });

      test("a content encoding that does not match the body", async () => {
        const answer = await postRaw("not gzip at all", keyed({ ...json, "content-encoding": "gzip" }));
        expectError(answer, 400, "bad_request");
        expectError(await postRaw("x", keyed({ ...json, "content-encoding": "unheard-of" })), 400, "bad_request");
      });

      describe.each(encodings)("content-encoding: %s", (name, pack) => {
        const packed = () => keyed({ ...json, "content-encoding": name });
        const unpacks = traits.unpacks?.includes(name) === true;
        const notSupported = `The body is not plain JSON, and its content-encoding, ${name}, is not supported: send it without one.`;

        test("is accepted if the host's parser decompresses it, else bad_request that names it", async () => {
          const answer = () => postRaw(pack(Buffer.from(valid())), packed());
          if (unpacks) expect(handled(await answer()).status).toBe("pending");
          else expect((await refused(answer, 400, "bad_request")).message).toBe(notSupported);
        });

        test("90 KB raw are 413; compressed to less than 1 KB they are 413 or not supported", async () => {
          const large = JSON.stringify({ ...createBody(), padding: "x".repeat(90_000) });
          await refused(() => postRaw(large), 413, "payload_too_large");
          expect(pack(Buffer.from(large)).length).toBeLessThan(1000);
          const answer = () => postRaw(pack(Buffer.from(large)), packed());
          if (unpacks) await refused(answer, 413, "payload_too_large");
          else await refused(answer, 400, "bad_request");
        });

        test("a body that cannot be decompressed is bad_request, and 403 without a key", async () => {
          const whole = pack(Buffer.from(valid()));
          for (const broken of [Buffer.from("not packed at all"), whole.subarray(0, -4), Buffer.concat([whole.subarray(0, 8), whole.subarray(12)])]) {
            const { message } = await refused(() => postRaw(broken, packed()), 400, "bad_request");
            if (!(unpacks && passesForWhole(name, broken))) expect(message).toBe(notSupported);
            await refused(() => postRaw(broken, { ...json, "content-encoding": name }), 403, "forbidden");
          }
        });
      });

      test("operators and paths in the lookup path", async () => {
        for (const number of ["%7B%22$ne%22:null%7D", "..%2Fcheck", "%00", "+".repeat(3000), "%F0%9F%93%9E"])
          await refused(() => lookup(number), 400, "invalid_phone_number", "bad_request");
      });

      test("after all this, a create, its message and its check work", async () => {
        const { authentication_uuid: id } = await create();
        expect(handled(await check(id, await codeFor(id))).status).toBe("valid");
      });
    });

    if (!traits.direct)
      describe("raw HTTP", () => {
        const target = () => host.port as number;
        const head = (method: string, path: string, ...lines: string[]) => [`${method} ${path} HTTP/1.1`, "Host: localhost", ...lines, "", ""].join("\r\n");

        if (!traits.readsFirst)
          test("403, 404, 405 and 413 by content-length come before any byte of the body is read", async () => {
            const length = "Content-Length: 500";
            const forbidden = await exchange(target(), head("POST", `${host.prefix}/v1/authentication`, "Content-Type: application/json", length), isWhole);
            expect(forbidden).toMatch(/^HTTP\/1\.1 403 /);
            expect(forbidden).toContain('"code":"forbidden"');
            expect(await exchange(target(), head("POST", `${host.prefix}/v1/nowhere`, length), isWhole)).toMatch(/^HTTP\/1\.1 404 /);
            expect(await exchange(target(), head("PUT", `${host.prefix}/v1/check`, length), isWhole)).toMatch(/^HTTP\/1\.1 405 /);
            const tooLarge = head("POST", `${host.prefix}/v1/authentication`, `x-api-key: ${me.key}`, "Content-Length: 16385");
            expect(await exchange(target(), tooLarge, isWhole)).toMatch(/^HTTP\/1\.1 413 /);
          });

        if (!traits.next)
          test("a response has a content-length and no transfer encoding", async () => {
            const answer = await lookup("+33612345678");
            expect(answer.headers["content-length"]).toBe(String(Buffer.byteLength(answer.text)));
            expect(answer.headers["transfer-encoding"]).toBeUndefined();
          });

        if (!traits.next)
          test("a request target in absolute form is accepted", async () => {
            const received = await exchange(
              target(),
              head("GET", `http://localhost${host.prefix}/v1/lookup/+33612345678`, `x-api-key: ${me.key}`, `customer-uuid: ${me.customer_uuid}`),
              isWhole,
            );
            expect(received).toMatch(/^HTTP\/1\.1 200 /);
          });

        test("a client that disconnects during a body leaves the service up and sends nothing", async () => {
          const before = (await service.sent()).length;
          for (let count = 0; count < 5; count++) {
            const start = head(
              "POST",
              `${host.prefix}/v1/authentication`,
              `x-api-key: ${me.key}`,
              "Content-Type: application/json",
              "Expect: 100-continue",
              "Content-Length: 500",
            );
            await exchange(target(), `${start}{"customer_uuid":`, () => true);
          }
          expect((await service.sent()).length).toBe(before);
          handled(await lookup("+33612345678"));
        });

        if (!traits.readsFirst)
          test("two requests on one connection, the first rejected with its body unread", async () => {
            const body = valid(me);
            const first = `${head("POST", `${host.prefix}/v1/authentication`, "Content-Type: application/json", `Content-Length: ${body.length}`)}${body}`;
            const second = head(
              "GET",
              `${host.prefix}/v1/lookup/+33612345678`,
              `x-api-key: ${me.key}`,
              `customer-uuid: ${me.customer_uuid}`,
              "Connection: close",
            );
            const received = await exchange(target(), first + second, () => false);
            expect(received.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 403", "HTTP/1.1 200"]);
          });
      });
  });
}

const valid = (caller: Caller) => JSON.stringify({ customer_uuid: caller.customer_uuid, phone_number: freshNumber() });
