import { constants, generateKeyPairSync, verify } from "node:crypto";
import { request as httpRequest } from "node:http";
import { gzipSync } from "node:zlib";
import Prelude from "@prelude.so/sdk";
import { Webhook } from "standardwebhooks";
import { describe, expect, it, onTestFinished } from "vitest";
import * as z from "zod";
import { fixedClock } from "../../src/testing/index.js";
import { receiver } from "../support/receiver.js";
import { numberOf } from "../support/verifier.js";
import { losingProxy } from "../wires/listen.js";
import { serve } from "../wires/prelude-v2/service.js";
import { tallied } from "./kit.js";

const id = z.string().regex(/^vrf_[0-7][0-9a-hjkmnp-tv-z]{25}$/);
const request_id = z.string().min(1).optional();
const metadata = z.strictObject({ correlation_id: z.string().optional() }).optional();
/** Strict: no field or value that clients in other languages do not know. */
const Created = z.discriminatedUnion("status", [
  z.strictObject({ status: z.enum(["success", "retry"]), id, method: z.literal("message"), channels: z.tuple([z.literal("sms")]), metadata, request_id }),
  z.strictObject({
    status: z.literal("blocked"),
    id,
    method: z.literal("message"),
    reason: z.enum(["in_block_list", "invalid_phone_line", "repeated_attempts", "suspicious"]),
    channels: z.array(z.literal("sms")).optional(),
    metadata,
    request_id,
  }),
]);
const Checked = z.strictObject({ status: z.enum(["success", "failure", "expired_or_not_found"]), id, metadata, request_id });
const Failed = z.strictObject({ code: z.string().regex(/^[a-z_]+$/), message: z.string().min(1), type: z.string(), param: z.string().optional(), request_id });
const shapes: Readonly<Record<string, z.ZodType>> = { "/v2/verification": Created, "/v2/verification/check": Checked };

const create = "/v2/verification";
const check = "/v2/verification/check";
const targetOf = (value: unknown) => ({ type: "phone_number", value });
const again = (tries: number | string) => ({ "x-stainless-retry-count": String(tries) });

/** Sends raw bytes with any headers; fetch rejects some of them. */
function bytes(
  url: string,
  path: string,
  body: string | Uint8Array,
  headers: Record<string, string>,
): Promise<{ status: number; json: unknown; retryAfter: unknown }> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(
      url + path,
      { method: "POST", headers: { "content-length": String(Buffer.byteLength(body as string)), ...headers } },
      (response) => {
        let text = "";
        response.on("data", (chunk) => {
          text += chunk;
        });
        response.on("end", () => resolve({ status: response.statusCode ?? 0, json: JSON.parse(text), retryAfter: response.headers["retry-after"] }));
      },
    );
    sent.on("error", reject);
    sent.end(body);
  });
}

describe("malformed bodies", () => {
  const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;
  const number = JSON.stringify(targetOf(numberOf(1)));

  it("give 4xx in the vendor's format; nothing is sent or counted", async () => {
    const { url, apiKey, box, raw } = await serve();
    await raw("POST", create, { target: targetOf(numberOf(1)) });
    const texts: (string | Uint8Array)[] = [
      "",
      " ",
      "null",
      "[]",
      "7",
      '"text"',
      "{",
      "{}}",
      "{'a':1}",
      "undefined",
      "\u0000",
      new Uint8Array([0xff, 0xfe, 0x7b, 0x7d]),
      new Uint8Array([...Buffer.from('{"target":"'), 0xc3, 0x28, ...Buffer.from('"}')]),
      deep(33),
      deep(2_000),
      `${"[".repeat(8_000)}${"]".repeat(8_000)}`,
      `{"target":${number},"code":"123456","__proto__":{"admin":true}}`,
      `{"target":{"type":"phone_number","value":"${numberOf(1)}","__proto__":{}},"code":"123456"}`,
      `{"target":${number},"code":"123456","more":"${"x".repeat(17 * 1024)}"}`,
      `{"target":{"type":"phone_number","value":"${"9".repeat(15_000)}"},"code":"123456"}`,
      `{"target":{"type":"phone_number","value":{"$ne":null}},"code":{"$gt":""}}`,
      `{"target":{"type":["phone_number"],"value":["${numberOf(1)}"]},"code":["123456"]}`,
      `{"target":{"type":"phone_number","value":"${numberOf(1)}\\u0000"},"code":"123456"}`,
      `{"target":{"type":"phone_number","value":"+33612000001; DROP TABLE"},"code":"123456"}`,
      `{"target":{"type":"PHONE_NUMBER","value":"${numberOf(1)}"},"code":"123456"}`,
      `{"target":null,"code":null}`,
    ];
    for (const path of [create, check]) {
      for (const body of texts) {
        const name = `${path} ${String(body).slice(0, 60)}`;
        const answer = await bytes(url, path, body, { authorization: `Bearer ${apiKey}`, "content-type": "application/json" });
        expect(answer.status, name).toBeGreaterThanOrEqual(400);
        expect(answer.status, name).toBeLessThan(500);
        expect([408, 409, 429], name).not.toContain(answer.status);
        expect(Failed.safeParse(answer.json).success, `${name} ${JSON.stringify(answer.json)}`).toBe(true);
        expect(answer.retryAfter, name).toBeUndefined();
      }
      for (const headers of [
        { "content-type": "text/plain" },
        { "content-type": "application/x-www-form-urlencoded" },
        { "content-type": "multipart/form-data; boundary=x" },
        { "content-type": "application/json", "content-encoding": "gzip" },
        { "content-type": "application/json", "content-encoding": "deflate" },
      ] as Record<string, string>[]) {
        const plain = `{"target":${number},"code":"111112"}`;
        const answer = await bytes(url, path, "content-encoding" in headers ? gzipSync(plain) : plain, { authorization: `Bearer ${apiKey}`, ...headers });
        expect(answer.status, JSON.stringify(headers)).toBe(400);
        Failed.parse(answer.json);
      }
    }
    expect(box.messages).toHaveLength(1);
    expect(({} as Record<string, unknown>)["admin"]).toBeUndefined();
    for (let i = 0; i < 4; i++) expect((await raw("POST", check, { target: targetOf(numberOf(1)), code: `11111${i}` })).json["status"]).toBe("failure");
    expect((await raw("POST", check, { target: targetOf(numberOf(1)), code: box.code() })).json["status"]).toBe("success");
  });

  it("each field of create and the code of check, in every wrong type: 200 if it is ignored, else 400 and nothing is sent; never 500", async () => {
    const { raw, box } = await serve({ verifier: { policy: { limits: { perDevice: [], numbersPerDevice: [] } } } });
    const full = (n: number) => ({
      target: targetOf(numberOf(n)),
      dispatch_id: "d",
      metadata: { correlation_id: "order-7" },
      options: {
        template_id: "t",
        variables: { name: "x" },
        method: "message",
        locale: "fr-FR",
        sender_id: "me",
        app_realm: { platform: "android", value: "abcdefghijk" },
        code_size: 6,
        callback_url: "https://receiver.example/hook",
        preferred_channel: "rcs",
        integration: "auth0",
        max_auto_fallbacks: 1,
      },
      signals: {
        ip: "192.0.2.7",
        device_id: "d",
        device_platform: "android",
        device_model: "m",
        os_version: "1",
        app_version: "1",
        user_agent: "u",
        is_trusted_user: true,
      },
    });
    const odd: unknown[] = [
      null,
      true,
      0,
      -1,
      1.5,
      1e308,
      "",
      " ",
      "\u0000",
      "\ud800",
      "x".repeat(9_000),
      [],
      [[]],
      {},
      { toString: "x" },
      { length: 3 },
      "constructor",
      "toString",
    ];
    type Tree = Record<string, unknown>;
    const paths = (tree: Tree, at: string[] = []): string[][] =>
      Object.entries(tree).flatMap(([key, value]) => [
        [...at, key],
        ...(value !== null && typeof value === "object" ? paths(value as Tree, [...at, key]) : []),
      ]);
    let n = 100;
    let accepted = 0;
    for (const path of paths(full(0))) {
      for (const value of odd) {
        const body = structuredClone(full(++n)) as Tree;
        let place = body;
        for (const key of path.slice(0, -1)) place = place[key] as Tree;
        place[path.at(-1) as string] = value;
        const before = box.messages.length;
        const { status, json } = await raw("POST", create, body);
        const name = `${path.join(".")} = ${JSON.stringify(value).slice(0, 40)}: ${status} ${JSON.stringify(json)}`;
        if (status === 200) {
          expect(Created.safeParse(json).success, name).toBe(true);
          expect(box.messages.length - before, name).toBe(json["status"] === "blocked" ? 0 : 1);
          accepted++;
        } else {
          expect(status, name).toBe(400);
          expect(Failed.safeParse(json).success, name).toBe(true);
          expect(box.messages.length, name).toBe(before);
        }
      }
    }
    expect(accepted).toBeGreaterThan(50);
    for (const code of odd) {
      const { status, json } = await raw("POST", check, { target: targetOf(numberOf(1)), code });
      if (status === 200) expect(json["status"]).toBe("expired_or_not_found");
      else expect([status, Failed.parse(json).code]).toEqual([400, "invalid_request"]);
    }
  }, 60_000);
});

describe("keys", () => {
  it("that are missing, wrong or in another header or scheme give 401 before the body is read; nothing is sent", async () => {
    const { url, apiKey, box } = await serve();
    const body = JSON.stringify({ target: targetOf(numberOf(1)), code: "123456" });
    const wrong: Record<string, string>[] = [
      {},
      { authorization: "" },
      { authorization: "Bearer" },
      { authorization: "Bearer " },
      { authorization: apiKey },
      { authorization: `Basic ${Buffer.from(`${apiKey}:`).toString("base64")}` },
      { authorization: `Bearer ${apiKey}x` },
      { authorization: `Bearer ${apiKey.slice(0, -1)}` },
      { authorization: `Bearer ${apiKey.toUpperCase()}` },
      { authorization: `Bearer ${apiKey}, Bearer ${apiKey}` },
      { authorization: `Bearer Bearer ${apiKey}` },
      { authorization: `Bearer ${"k".repeat(8_000)}` },
      { "x-api-key": apiKey },
      { cookie: `authorization=Bearer ${apiKey}` },
    ];
    for (const headers of wrong) {
      for (const path of [create, check]) {
        for (const text of [body, "{", `"${"x".repeat(17 * 1024)}"`]) {
          const { status, json } = await bytes(url, path, text, { "content-type": "application/json", ...headers });
          expect([status, Failed.parse(json).code], JSON.stringify(headers).slice(0, 80)).toEqual([401, expect.stringMatching(/^(missing|invalid)_api_key$/)]);
        }
      }
    }
    expect(box.messages).toEqual([]);
  });

  it("another customer's key cannot check this customer's verification, even with the right code", async () => {
    const [a, b] = ["6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f", "7f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f"];
    const keys = ["a".repeat(40), "b".repeat(40)] as const;
    const { raw, box } = await serve({
      verifier: {
        customers: [
          { customer_uuid: a as string, keys: [keys[0]] },
          { customer_uuid: b as string, keys: [keys[1]] },
        ],
      },
    });
    const by = (key: string) => ({ authorization: `Bearer ${key}` });
    const target = targetOf(numberOf(1));
    const mine = await raw("POST", create, { target }, by(keys[0]));
    const theirs = { target, code: box.code() };
    for (const headers of [by(keys[1]), { ...by(keys[1]), ...again(1) }, { ...by(keys[1]), "idempotency-key": "k" }]) {
      expect((await raw("POST", check, theirs, headers)).json["status"]).toBe("expired_or_not_found");
    }
    const other = await raw("POST", create, { target }, by(keys[1]));
    expect(other.json).toMatchObject({ status: "success" });
    expect(other.json["id"]).not.toBe(mine.json["id"]);
    expect((await raw("POST", check, theirs, by(keys[1]))).json["status"]).toBe("failure");
    expect((await raw("POST", check, theirs, by(keys[0]))).json["status"]).toBe("success");
  });
});

describe("429", () => {
  it("has x-should-retry: false and no retry-after, and stays the same on every repeat, whatever its retry count", async () => {
    const { raw, box, clock, wrong, target } = await serve();
    const body = { target: target() };
    const refused = async (path: string, more: object, code: string) => {
      for (const tries of ["0", "1", "2", "99", "-1", "abc", "1e3", ""]) {
        const { status, json, headers } = await raw("POST", path, { ...body, ...more }, again(tries));
        expect([status, Failed.parse(json).code, headers.get("x-should-retry"), headers.get("retry-after")], tries).toEqual([429, code, "false", null]);
      }
    };
    await raw("POST", create, body);
    await refused(create, { metadata: { correlation_id: "another" } }, "premature_retry");
    for (const wait of [30, 60, 90, 120]) {
      clock.advance(wait * 1_000);
      expect((await raw("POST", create, body)).json["status"]).toBe("retry");
    }
    clock.advance(150_000);
    await refused(create, {}, "too_many_attempts");
    expect(box.messages).toHaveLength(5);
    for (let i = 0; i < 5; i++) expect((await raw("POST", check, { ...body, code: wrong() })).json["status"]).toBe("failure");
    await refused(check, { code: box.code() }, "too_many_checks");
    expect(box.messages).toHaveLength(5);
  });

  it("200 concurrent creates send one message, and 200 concurrent right codes give one success", async () => {
    const { raw, box, target } = await serve();
    const creates = await Promise.all(Array.from({ length: 200 }, () => raw("POST", create, { target: target() })));
    expect(tallied(creates.map(({ json }) => String(json["status"] ?? json["code"])))).toEqual({ success: 1, premature_retry: 199 });
    expect(box.messages).toHaveLength(1);
    const checks = await Promise.all(Array.from({ length: 200 }, () => raw("POST", check, { target: target(), code: box.code() })));
    expect(tallied(checks.map(({ json }) => String(json["status"])))).toEqual({ success: 1, expired_or_not_found: 199 });
    for (const { json } of checks) Checked.parse(json);
  });
});

describe("responses lost on the way to the client", () => {
  it.each([1, 2])(
    "%i lost: the SDK gets the first result of each call, with one message and one count",
    async (drops) => {
      const service = await serve();
      const proxy = await losingProxy(service.url);
      const { verification } = new Prelude({ apiToken: service.apiKey, baseURL: proxy.url });
      const target = service.target();
      const lost = async <T>(call: () => Promise<T>) => {
        proxy.drop(drops);
        return call();
      };
      const first = await lost(() => verification.create({ target }));
      expect(first.status).toBe("success");
      service.clock.advance(30_000);
      expect(await lost(() => verification.create({ target }))).toMatchObject({ status: "retry", id: first.id });
      expect(service.box.messages).toHaveLength(2);
      for (let i = 0; i < 5; i++) {
        const one = await (i < 3 ? lost(() => verification.check({ target, code: `11111${i}` })) : verification.check({ target, code: `11111${i}` }));
        expect(one.status).toBe("failure");
      }
      await expect(lost(() => verification.check({ target, code: service.box.code() }))).rejects.toMatchObject({ status: 429 });
      // The guesses are used up: the next create starts another verification.
      const next = await lost(() => verification.create({ target }));
      expect(next.status).toBe("success");
      expect(next.id).not.toBe(first.id);
      expect(service.box.messages).toHaveLength(3);
      const code = service.box.code();
      expect(await lost(() => verification.check({ target, code }))).toMatchObject({ status: "success", id: next.id });
      expect((await verification.check({ target, code })).status).toBe("expired_or_not_found");
      expect((await lost(() => verification.check({ target, code: "111119" }))).status).toBe("expired_or_not_found");
    },
    60_000,
  );

  it("a retry count alone gives no success to another code or number, nor to the previous code after a new create", async () => {
    const { raw, box, target, clock } = await serve();
    await raw("POST", create, { target: target() });
    const code = box.code();
    expect((await raw("POST", check, { target: target(), code }, again(1))).json["status"]).toBe("success");
    for (const body of [
      { target: target(), code: "111111" },
      { target: target(2), code },
      { target: target(), code: `${code.slice(0, 5)}x` },
    ]) {
      expect((await raw("POST", check, body, again(1))).json["status"], JSON.stringify(body)).toBe("expired_or_not_found");
    }
    for (const tries of ["0", "-1", "abc", "", "NaN", "0x1", "1.5"]) {
      const { json } = await raw("POST", check, { target: target(), code }, again(tries));
      expect(["expired_or_not_found", "success"], tries).toContain(json["status"]);
      if (!/[1-9]/.test(tries)) expect(json["status"], tries).toBe("expired_or_not_found");
    }
    clock.advance(131_000);
    expect((await raw("POST", create, { target: target() }, again(2))).json["status"]).toBe("success");
    expect(box.messages).toHaveLength(2);
    expect((await raw("POST", check, { target: target(), code }, again(1))).json["status"]).not.toBe("success");
  });
});

describe("odd requests", () => {
  it("odd paths, methods and lookups give 4xx in the vendor's format and send nothing; an odd query string is ignored", async () => {
    const { raw, box, target } = await serve();
    const body = { target: target(), code: "123456" };
    for (const path of [
      "/v2",
      "/v2/",
      "/v2/Verification",
      "/v2/verification%2Fcheck",
      "/v2//verification",
      "/v1/verification",
      "/v2/verification/../verification/checks",
      `/v2/${"x".repeat(6_000)}`,
    ]) {
      const { status, json } = await raw("POST", path, body);
      expect(status, path.slice(0, 60)).toBe(404);
      expect(Failed.parse(json).code).toBe("not_found");
    }
    for (const method of ["PUT", "PATCH", "DELETE"]) expect((await raw(method, create, body)).status, method).toBe(405);
    expect(box.messages).toEqual([]);
    expect((await raw("POST", `${create}?target=x&__proto__=y&${"a=b&".repeat(500)}`, { target: target() })).json["status"]).toBe("success");
    for (const number of [
      "%",
      "%00",
      "%E0%A4%A",
      "+",
      "%2B%2B33612345678",
      "33612345678",
      "+33612345678%0a",
      "..",
      "x".repeat(5_000),
      "%2B33612345678%2Fx",
      "null",
      "+33 6 12 34 56 78",
    ]) {
      const { status, json } = await raw("GET", `/v2/lookup/${number}`);
      expect([400, 404], number.slice(0, 40)).toContain(status);
      Failed.parse(json);
    }
  });

  it("an unavailable store gives 503 with JSON and nothing is sent; afterwards everything works as before", async () => {
    const { raw, box, target, store } = await serve();
    const { commit, find } = store;
    await raw("POST", create, { target: target() });
    store.commit = store.find = async () => {
      throw new Error("ECONNREFUSED 10.0.0.7:6379 password=hunter2");
    };
    for (const [path, body] of [
      [create, { target: target(2) }],
      [check, { target: target(2), code: "123456" }],
    ] as const) {
      const { status, json, text, headers } = await raw("POST", path, body);
      expect([status, Failed.parse(json).code, headers.get("retry-after")]).toEqual([503, "internal", "2"]);
      expect(text).not.toMatch(/hunter2|ECONN|10\.0\.0\.7/);
    }
    store.commit = commit;
    store.find = find;
    expect(box.messages).toHaveLength(1);
    expect((await raw("POST", create, { target: target(2) })).json["status"]).toBe("success");
    expect((await raw("POST", check, { target: target(), code: box.code(0) })).json["status"]).toBe("success");
  });

  it("every response of create and check passes a strict decoder", async () => {
    const { raw, box, target, clock, wrong } = await serve({
      verifier: {
        blockedNumbers: [numberOf(9)],
        spamRules: [{ name: "mine", judge: ({ phone_number }: { phone_number: string }) => (phone_number === numberOf(8) ? { reason: "x" } : undefined) }],
      } as never,
    });
    const seen = new Set<string>();
    const ask = async (path: string, body: object) => {
      const { status, json } = await raw("POST", path, body);
      const known = status === 200 ? (shapes[path] as z.ZodType) : Failed;
      known.parse(json);
      seen.add(`${path === create ? "create" : "check"} ${json["status"] ?? json["code"]} ${json["reason"] ?? ""}`.trim());
    };
    await ask(check, { target: target(), code: "123456" });
    for (const value of [numberOf(1), numberOf(8), numberOf(9), "+33899123456"])
      await ask(create, { target: targetOf(value), metadata: { correlation_id: "c" } });
    await ask(create, { target: target() });
    await ask(check, { target: target(), code: wrong() });
    clock.advance(31_000);
    await ask(create, { target: target() });
    await ask(check, { target: target(), code: box.code() });
    for (let i = 0; i < 4; i++) await ask(create, { target: target() });
    for (let i = 0; i < 3; i++) {
      clock.advance(120_000);
      await ask(create, { target: target() });
    }
    for (let i = 0; i < 6; i++) await ask(check, { target: target(), code: wrong() });
    await ask(create, { target: target() });
    expect([...seen].sort()).toEqual(
      expect.arrayContaining([
        "check expired_or_not_found",
        "check failure",
        "check success",
        "check too_many_checks",
        "create blocked in_block_list",
        "create blocked invalid_phone_line",
        "create blocked repeated_attempts",
        "create blocked suspicious",
        "create premature_retry",
        "create retry",
        "create success",
      ]),
    );
  });
});

it("webhooks of several verifications: both signatures verify for the received body, redeliveries too, and not for a changed one (docs/contract.md#callback-forms)", async () => {
  const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const hook = await receiver();
  onTestFinished(() => hook.close());
  const clock = fixedClock(Date.now());
  const rsaPrivateKey = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  const { client, verifier, customer, box } = await serve({
    verifier: { clock, callbacks: { allowOrigins: [hook.origin], rsaPrivateKey, fullNumber: false } },
  });
  const { verification } = client();
  const ids: string[] = [];
  const options = { callback_url: `${hook.origin}/hook` };
  for (let i = 1; i <= 3; i++) {
    hook.answer = (_request, response) => void response.writeHead(i === 2 ? 500 : 200).end();
    const value = numberOf(i === 3 ? 1 : i);
    const created = await verification.create({ target: { type: "phone_number", value }, options, metadata: { correlation_id: `o-${i}` } });
    ids.push(created.id);
    const posts = i;
    await expect.poll(() => hook.received.length).toBe(posts);
    expect((await verification.check({ target: { type: "phone_number", value }, code: box.code() })).status).toBe("success");
  }
  hook.answer = (_request, response) => void response.writeHead(200).end();
  clock.advance(60_000);
  await verifier.flush();
  await expect.poll(() => hook.received.length).toBe(4);

  const [secret] = await verifier.webhookSecrets(customer);
  const standard = new Webhook(secret as string);
  const key = { key: publicKey, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };
  const events = hook.received.map(({ headers, body }) => {
    const named = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
    expect(() => standard.verify(`${body} `, named)).toThrow();
    const [, signature = ""] = /^rsassa-pss-sha256=([\w-]+)$/.exec(named["x-webhook-signature"] ?? "") ?? [];
    expect(verify("sha256", Buffer.from(body), key, Buffer.from(signature, "base64url"))).toBe(true);
    expect(body).not.toContain(numberOf(1));
    for (const { code } of box.messages) expect(body).not.toContain(code);
    return standard.verify(body, named) as {
      id: string;
      payload: { id: string; verification_id: string; attempt_id: string; status: string; metadata: unknown };
    };
  });
  expect(events.map(({ payload }) => payload.verification_id)).toEqual([...ids, ids[1]]);
  expect(events.map(({ payload }) => payload.metadata)).toEqual(["o-1", "o-2", "o-3", "o-2"].map((correlation_id) => ({ correlation_id })));
  expect(events[3]).toEqual(events[1]);
  expect(new Set(events.map(({ id }) => id)).size).toBe(3);
  expect(new Set(events.map(({ payload }) => payload.attempt_id)).size).toBe(3);
  expect(new Set(hook.received.map(({ headers }) => headers["webhook-id"])).size).toBe(3);
});
