import Prelude from "@prelude.so/sdk";
import { describe, expect, it } from "vitest";
import { numberOf } from "../../support/verifier.js";
import { losingProxy, type Mount } from "../listen.js";
import { serve } from "./service.js";

const idForm = /^vrf_[0-7][0-9a-hjkmnp-tv-z]{25}$/;

/** The error that a call of the SDK rejects with. */
async function errorOf(call: Promise<unknown>): Promise<{ status: number; name: string; code: unknown; message: string }> {
  const error = await call.then(
    () => undefined,
    (thrown) => thrown,
  );
  if (!(error instanceof Prelude.APIError)) throw new Error(`no APIError: ${error}`);
  return { status: error.status as number, name: error.constructor.name, code: (error.error as { code?: unknown }).code, message: error.message };
}

/** Every case of the SDK against one way of mounting the wire. */
export function sdkSuite(name: string, mount: Mount): void {
  describe(`over ${name}`, () => {
    const start = (options?: Parameters<typeof serve>[0]) => serve({ ...options, mount });

    describe("the SDK creates", () => {
      it("success: a code is sent, and the metadata is returned", async () => {
        const { client, box, target } = await start();
        const created = await client().verification.create({
          target: target(),
          metadata: { correlation_id: "order-7" },
          options: { preferred_channel: "rcs", locale: "fr-FR", code_size: 6, template_id: "tpl_1", variables: { name: "x" }, sender_id: "Me", method: "auto" },
          signals: { ip: "192.0.2.7", device_id: "a-device", device_platform: "ipados", is_trusted_user: true, user_agent: "x", ja4_fingerprint: "y" },
          dispatch_id: "d",
        });
        expect(created).toEqual({
          id: expect.stringMatching(idForm),
          status: "success",
          method: "message",
          channels: ["sms"],
          metadata: { correlation_id: "order-7" },
          request_id: expect.any(String),
        });
        expect(box.messages).toMatchObject([{ to: numberOf(1), code: expect.stringMatching(/^\d{6}$/) }]);
      });

      it("retry: the same id, another message, after the cool-down", async () => {
        const { client, box, target, clock } = await start();
        const first = await client().verification.create({ target: target() });
        clock.advance(30_000);
        const second = await client().verification.create({ target: target() });
        expect(second).toMatchObject({ id: first.id, status: "retry", channels: ["sms"] });
        expect(box.messages).toHaveLength(2);
      });

      it("premature_retry within the cool-down, in exactly one request", async () => {
        const { client, box, target, seen } = await start();
        await client().verification.create({ target: target() });
        expect(await errorOf(client().verification.create({ target: target() }))).toMatchObject({
          status: 429,
          name: "RateLimitError",
          code: "premature_retry",
        });
        expect(seen).toHaveLength(2);
        expect(box.messages).toHaveLength(1);
      });

      it("too_many_attempts once the messages of a window are used up; the last code is still valid", async () => {
        const { client, box, target, clock, seen } = await start();
        await client().verification.create({ target: target() });
        for (let message = 2; message <= 5; message++) {
          clock.advance(120_000);
          expect((await client().verification.create({ target: target() })).status).toBe("retry");
        }
        clock.advance(110_000);
        const before = seen.length;
        expect(await errorOf(client().verification.create({ target: target() }))).toMatchObject({ status: 429, code: "too_many_attempts" });
        expect(seen.length).toBe(before + 1);
        expect((await client().verification.check({ target: target(), code: box.code() })).status).toBe("success");
      });

      it("blocked, with a reason and an id: by a cap, a spam rule, the block list, the line", async () => {
        const capped = await start({ verifier: { policy: { limits: { perDevice: [{ limit: 1, window: 3600 }] } } } });
        await capped.client().verification.create({ target: capped.target(1), signals: { device_id: "d" } });
        const refused = await capped.client().verification.create({ target: capped.target(2), signals: { device_id: "d" } });
        expect(refused).toEqual({
          id: expect.stringMatching(idForm),
          status: "blocked",
          method: "message",
          reason: "repeated_attempts",
          request_id: expect.any(String),
        });

        const suspected = await start({ verifier: { lists: { block: { cidrs: ["192.0.2.9/32"] } } } });
        expect(await suspected.client().verification.create({ target: suspected.target(), signals: { ip: "192.0.2.9" } })).toMatchObject({
          status: "blocked",
          reason: "suspicious",
        });

        const blocking = await start({ verifier: { blockedNumbers: [numberOf(1)] } });
        expect(await blocking.client().verification.create({ target: blocking.target() })).toMatchObject({
          id: expect.stringMatching(idForm),
          status: "blocked",
          reason: "in_block_list",
        });
        const fixed = { type: "phone_number" as const, value: "+33142685300" };
        expect(await blocking.client().verification.create({ target: fixed })).toMatchObject({
          id: expect.stringMatching(idForm),
          status: "blocked",
          reason: "invalid_phone_line",
        });
        for (const { box } of [suspected, blocking]) expect(box.messages).toEqual([]);
      });

      it("success if every route rejects the message; check finds no code, and the next create starts a new verification", async () => {
        const { client, box, target } = await start();
        box.answer = async () => ({ outcome: "rejected", error: "no" });
        const first = await client().verification.create({ target: target() });
        expect(first.status).toBe("success");
        expect((await client().verification.check({ target: target(), code: "123456" })).status).toBe("expired_or_not_found");
        box.answer = async () => ({ outcome: "accepted" });
        const second = await client().verification.create({ target: target() });
        expect(second.status).toBe("success");
        expect(second.id).not.toBe(first.id);
      });

      it("premature_retry if every route rejects a retry", async () => {
        const { client, box, target, clock } = await start();
        await client().verification.create({ target: target() });
        clock.advance(30_000);
        box.answer = async () => ({ outcome: "rejected", error: "no" });
        expect(await errorOf(client().verification.create({ target: target() }))).toMatchObject({ status: 429, code: "premature_retry" });
      });
    });

    describe("the SDK checks", () => {
      it("success once, failure, expired_or_not_found, each with an id", async () => {
        const { client, box, target, wrong, clock } = await start();
        const none = await client().verification.check({ target: target(), code: "123456" });
        expect(none).toEqual({ id: expect.stringMatching(idForm), status: "expired_or_not_found", request_id: expect.any(String) });

        const { id } = await client().verification.create({ target: target() });
        expect(await client().verification.check({ target: target(), code: wrong() })).toMatchObject({ id, status: "failure" });
        expect(await client().verification.check({ target: target(), code: ` ${box.code().slice(0, 3)}-${box.code().slice(3)}` })).toMatchObject({
          id,
          status: "success",
        });
        expect(await client().verification.check({ target: target(), code: box.code() })).toMatchObject({ status: "expired_or_not_found" });

        await client().verification.create({ target: target(2) });
        clock.advance(600_000);
        expect(await client().verification.check({ target: target(2), code: box.code() })).toMatchObject({ status: "expired_or_not_found" });
      });

      it("too_many_checks after five wrong codes, in one request; the next create starts a new verification", async () => {
        const { client, box, target, wrong, seen, clock } = await start();
        const { id } = await client().verification.create({ target: target() });
        for (let tries = 0; tries < 5; tries++) expect((await client().verification.check({ target: target(), code: wrong() })).status).toBe("failure");
        const before = seen.length;
        expect(await errorOf(client().verification.check({ target: target(), code: box.code() }))).toMatchObject({ status: 429, code: "too_many_checks" });
        expect(seen.length).toBe(before + 1);
        clock.advance(30_000);
        const again = await client().verification.create({ target: target() });
        expect(again.status).toBe("success");
        expect(again.id).not.toBe(id);
        expect((await client().verification.check({ target: target(), code: box.code() })).status).toBe("success");
      });

      it("never another customer's verification", async () => {
        const key = `pp_${crypto.randomUUID()}${crypto.randomUUID()}`;
        const other = { customer_uuid: crypto.randomUUID(), keys: [key] };
        const mine = { customer_uuid: crypto.randomUUID(), keys: [`pp_${crypto.randomUUID()}${crypto.randomUUID()}`] };
        const { client, box, target } = await start({ verifier: { customers: [mine, other] } });
        await client({ apiToken: mine.keys[0] }).verification.create({ target: target() });
        expect((await client({ apiToken: key }).verification.check({ target: target(), code: box.code() })).status).toBe("expired_or_not_found");
        expect((await client({ apiToken: mine.keys[0] }).verification.check({ target: target(), code: box.code() })).status).toBe("success");
      });
    });

    describe("the SDK's error classes", () => {
      it("AuthenticationError for a missing and for a wrong key", async () => {
        const { client, target, raw } = await start();
        expect(await errorOf(client({ apiToken: "nobody's" }).verification.create({ target: target() }))).toMatchObject({
          status: 401,
          name: "AuthenticationError",
          code: "invalid_api_key",
        });
        expect(await raw("POST", "/v2/verification", {}, { authorization: "Basic eDp5" })).toMatchObject({ status: 401, json: { code: "invalid_api_key" } });
        const missing = await fetch(`${(await start()).url}/v2/verification`, { method: "POST" });
        expect([missing.status, await missing.json()]).toMatchObject([401, { code: "missing_api_key", type: "unauthorized", request_id: expect.any(String) }]);
      });

      it("BadRequestError with code, message and param at the top level", async () => {
        const { client } = await start();
        const error = await client()
          .verification.create({ target: { type: "phone_number", value: "0612345678" } })
          .catch((thrown) => thrown);
        expect(error).toBeInstanceOf(Prelude.BadRequestError);
        expect(error.error).toEqual({
          code: "invalid_phone_number",
          message: expect.stringMatching(/^target\.value is not a valid number/),
          type: "bad_request",
          param: "target.value",
          request_id: expect.any(String),
        });
        expect(error.message).toMatch(/^400 target\.value/);
      });

      it("NotFoundError for calls that are not supported, naming what to use instead", async () => {
        const { client, target } = await start();
        const prediction = client().watch.predict({ target: target(), dispatch_id: "d" } as never);
        expect(await errorOf(prediction)).toMatchObject({
          status: 404,
          name: "NotFoundError",
          code: "not_found",
          message: expect.stringContaining("spam rules"),
        });
        expect(await errorOf(client().verificationManagement.listPhoneNumbers("block"))).toMatchObject({
          status: 404,
          message: expect.stringContaining("lists"),
        });
        expect(await errorOf(client().transactional.send({ template_id: "t", to: "+33612345678" }))).toMatchObject({
          status: 404,
          message: expect.stringContaining("codes only"),
        });
      });

      it("InternalServerError while the store is down, with a Retry-After of two seconds", async () => {
        const { client, target, raw, store, seen } = await start();
        const commit = store.commit;
        (store as { commit: unknown }).commit = async () => Promise.reject(new Error("down"));
        expect(await errorOf(client({ maxRetries: 0 }).verification.create({ target: target() }))).toMatchObject({
          status: 503,
          name: "InternalServerError",
          code: "internal",
        });
        expect((await raw("POST", "/v2/verification", { target: target() })).headers.get("retry-after")).toBe("2");
        expect(seen).toHaveLength(2);
        (store as { commit: unknown }).commit = commit;
      });
    });

    describe("a lost response", () => {
      it("to create: the SDK's second attempt returns the result of the first, and sends nothing", async () => {
        const { client, box, target, url, seen, clock } = await start();
        const proxy = await losingProxy(url);
        proxy.drop(1);
        const created = await client({ baseURL: proxy.url }).verification.create({ target: target() });
        expect(created.status).toBe("success");
        expect(seen.map(({ tries }) => tries)).toEqual(["0", "1"]);
        expect(box.messages).toHaveLength(1);

        clock.advance(30_000);
        proxy.drop(1);
        expect(await client({ baseURL: proxy.url }).verification.create({ target: target() })).toMatchObject({ id: created.id, status: "retry" });
        expect(box.messages).toHaveLength(2);
      });

      it("to check: success again only for the second attempt, and a wrong code counts once", async () => {
        const { client, box, target, url, wrong } = await start();
        const proxy = await losingProxy(url);
        await client().verification.create({ target: target() });
        for (let tries = 0; tries < 4; tries++) {
          proxy.drop(1);
          expect((await client({ baseURL: proxy.url }).verification.check({ target: target(), code: wrong() })).status).toBe("failure");
        }
        proxy.drop(1);
        expect((await client({ baseURL: proxy.url }).verification.check({ target: target(), code: box.code() })).status).toBe("success");
        expect((await client().verification.check({ target: target(), code: box.code() })).status).toBe("expired_or_not_found");
      });
    });

    describe("the base address", () => {
      it("may have a prefix, a trailing slash, and a /v2 that the paths repeat", async () => {
        const { client, target, url, seen } = await start({ basePath: "/otp" });
        let index = 0;
        for (const base of ["/otp", "/otp/", "/otp/v2", "/otp/v2/"])
          expect((await client({ baseURL: url + base }).verification.create({ target: target(++index) })).status, base).toBe("success");
        expect(seen.at(-1)?.path).toBe("/otp/v2/v2/verification");
      });

      // In Express and Fastify, the framework handles prefixes.
      if (name !== "Express" && name !== "Fastify")
        it("is named in the 404 for a request with another prefix", async () => {
          const { client, target, url } = await start({ basePath: "/otp" });
          expect((await errorOf(client({ baseURL: `${url}/sms` }).verification.create({ target: target() }))).message).toContain('{ basePath: "/sms" }');
        });

      it("may come from the environment", async () => {
        const { apiKey, target, url } = await start();
        process.env.PRELUDE_BASE_URL = url;
        process.env.API_TOKEN = apiKey;
        try {
          expect((await new Prelude().verification.create({ target: target() })).status).toBe("success");
        } finally {
          delete process.env.PRELUDE_BASE_URL;
          delete process.env.API_TOKEN;
        }
      });
    });

    describe("the SDK looks up", () => {
      it("what the numbering plan knows, with a raw or an encoded plus", async () => {
        const { client, raw, seen } = await start();
        expect(await client().lookup.lookup("+33612345678", { type: ["cnam"] })).toEqual({
          phone_number: "+33612345678",
          country_code: "FR",
          line_type: "mobile",
        });
        expect(seen[0]?.path).toMatch(/^\/v2\/lookup\/\+33612345678\?/);
        expect((await raw("GET", "/v2/lookup/%2B33142685300")).json).toEqual({ phone_number: "+33142685300", country_code: "FR", line_type: "fixed_line" });
        expect(await errorOf(client().lookup.lookup("+331"))).toMatchObject({ status: 400, name: "BadRequestError", code: "invalid_phone_number" });
        expect((await raw("GET", "/v2/lookup/%2B331")).json).toMatchObject({ message: expect.stringMatching(/^phone_number /), param: "phone_number" });
      });

      it("a number of an ambiguous plan as mobile, or as set in the option", async () => {
        const kind = await start();
        expect((await kind.client().lookup.lookup("+14155552671")).line_type).toBe("mobile");
        const strict = await start({ wire: { ambiguousLineType: "unknown" } });
        expect((await strict.client().lookup.lookup("+14155552671")).line_type).toBe("unknown");
      });

      it("what a provider knows", async () => {
        const facts = { carrier: "Orange", mcc: "208", mnc: "01", number_ported: true, line_type: "Voip" as const };
        const { client } = await start({ verifier: { lookup: { lookup: async () => facts } as never } });
        expect(await client().lookup.lookup("+33612345678")).toEqual({
          phone_number: "+33612345678",
          country_code: "FR",
          line_type: "voip",
          network_info: { carrier_name: "Orange", mcc: "208", mnc: "01" },
          flags: ["ported"],
        });
      });
    });

    describe("calls other than verification", () => {
      it("feedback and events are accepted and do nothing", async () => {
        const { client, target, box } = await start();
        expect(await client().watch.sendFeedbacks({ feedbacks: [{ type: "verification.started", target: target() }] })).toMatchObject({ status: "success" });
        expect(await client().watch.sendEvents({ events: [{ target: target(), label: "x", confidence: "low" }] })).toMatchObject({
          status: "success",
          request_id: expect.any(String),
        });
        expect(box.messages).toEqual([]);
      });
    });
  });
}
