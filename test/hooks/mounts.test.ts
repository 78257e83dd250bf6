import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { DeliverResult } from "../../src/contract/delivery.js";
import type { DeliverRequest } from "../../src/contract/direct.js";
import { hooks, logtoHook, supabaseHook } from "../../src/hooks/index.js";
import { type Host, mountings } from "../http/hosts.js";
import { now, sentence, standIn } from "./stand-in.js";

const secret = `v1,whsec_${Buffer.from("s".repeat(32)).toString("base64")}`;
const authorization = "Bearer of-the-connector";
const payload = JSON.stringify({ metadata: { uuid: "u-1" }, user: { phone: "33612345678" }, sms: { otp: "561166", note: "é" } });

function signed(body: string, at = new Date(now)): Record<string, string> {
  const headers = { "webhook-id": "f2d1", "webhook-timestamp": String(at.getTime() / 1000), "content-type": "application/json" };
  return { ...headers, "webhook-signature": new Webhook(secret.replace("v1,", "")).sign("f2d1", at, body) };
}

/** Hosts whose JSON parser leaves values, and no bytes to check a signature against. */
const leavesValues = /after (express\.json\(\)|all four parsers)/;

describe.each(mountings)("$name", ({ name, start }) => {
  const calls = standIn();
  const seen = new Set<unknown>();
  const deliver = async (request: DeliverRequest): Promise<DeliverResult> => {
    await calls.verifier.deliver(request);
    if (request.code === "000000") return { status: "rate_limited", message: sentence };
    const repeated = seen.has(request.idempotency_key);
    seen.add(request.idempotency_key);
    return { status: repeated ? "repeated" : "sent" };
  };
  let host: Host;
  beforeAll(async () => {
    host = await start(hooks({ ...calls.verifier, deliver }, [supabaseHook({ secrets: secret }), logtoHook({ token: "of-the-connector" })]));
  });
  afterAll(() => host?.close());
  const post = (path: string, body: string, headers: Record<string, string>, method = "POST") =>
    host.send({ method, path: `${host.prefix}/hooks/${path}`, headers, ...(method === "POST" && { body }) });
  const logto = (code: string) => JSON.stringify({ to: "33612345678", type: "SignIn", payload: { code } });
  const json = { "content-type": "application/json", authorization };

  test("a signed request and its repeat", async () => {
    const answers = [await post("supabase", payload, signed(payload)), await post("supabase", payload, signed(payload))];
    if (leavesValues.test(name)) {
      expect(answers).toMatchObject([{ status: 500 }, { status: 500 }]);
      expect(calls.warned.join()).toMatch(/the hooks handler received it, .* mount the hooks handler before express\.json\(\)/);
      expect(calls.delivered).toEqual([]);
    } else {
      expect(answers).toMatchObject([
        { status: 200, text: "{}" },
        { status: 200, text: "{}" },
      ]);
      expect(calls.delivered.map(({ idempotency_key }) => idempotency_key)).toEqual(["u-1", "u-1"]);
    }
  });

  test("a request with a token, and a rejection", async () => {
    expect(await post("logto", logto("482913"), json)).toMatchObject({ status: 200, text: "" });
    expect(await post("logto/", logto("000000"), json)).toMatchObject({ status: 429, text: sentence });
  });

  test("rejects requests that are not authentic, too large or for no hook", async () => {
    const before = calls.delivered.length;
    const refused = leavesValues.test(name) ? 500 : 401;
    expect((await post("supabase", payload, { ...signed(payload), "webhook-signature": "v1,AAAA" })).status).toBe(refused);
    expect(await post("supabase", payload, signed(payload, new Date(now - 301_000)))).toMatchObject({
      status: 401,
      text: '{"status":"unauthorized","message":"Unauthorized."}',
    });
    expect((await post("logto", logto("482913"), { ...json, authorization: "Bearer x" })).status).toBe(401);
    const large = JSON.stringify({ to: "33612345678", payload: { code: "482913", note: "x".repeat(65_536) } });
    expect((await post("logto", large, json)).status).toBe(413);
    expect((await post("supabase", large, signed(large))).status).toBe(413);
    expect(await post("okta", payload, signed(payload))).toMatchObject({ status: 404, text: "There is no such hook." });
    expect(await post("supabase", "", {}, "GET")).toMatchObject({ status: 405, headers: { allow: "POST" } });
    expect(calls.delivered).toHaveLength(before);
  });
});
