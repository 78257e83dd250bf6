import { describe, expect, it } from "vitest";
import { generateApiKey } from "../../src/index.js";
import { authenticationUuidOf } from "../../src/wires/twilio-verify/index.js";
import { numberOf } from "../support/verifier.js";
import { tallied } from "./kit.js";
import { type Answer, basic, callerOf, codeOf, type Form, outcome, raw, rejected, serve, to } from "./twilio-verify-kit.js";

describe("credentials", () => {
  const form = { To: to, Channel: "sms", Code: "123456" };

  it("that are missing, wrong or odd give 401 20003 before the body is read, for each call; nothing is sent (docs/contract.md#key-before-body)", async () => {
    const service = await serve();
    const { url, accountSid, serviceSid, token, box } = service;
    const sid = ((await service.begin()).json as { sid: string }).sid;
    const wrong: Record<string, string>[] = [
      {},
      { authorization: "" },
      { authorization: "Basic" },
      { authorization: "Basic " },
      { authorization: "Basic !!!!" },
      { authorization: `Basic ${"A".repeat(7_000)}` },
      { authorization: basic("", "") },
      { authorization: basic(accountSid, "") },
      { authorization: basic("", token) },
      { authorization: basic(token, accountSid) },
      { authorization: basic(accountSid, `${token}x`) },
      { authorization: basic(accountSid, token.slice(1)) },
      { authorization: basic(accountSid, token.toUpperCase()) },
      { authorization: basic(accountSid, `:${token}`) },
      { authorization: basic(accountSid, `${token}:`) },
      { authorization: basic(accountSid, `${token}:${token}`) },
      { authorization: basic(`${accountSid}:x`, token) },
      { authorization: basic(accountSid, `${token}\u0000`) },
      { authorization: basic(accountSid, ` ${token}`) },
      { authorization: basic(`AC${"0".repeat(32)}`, token) },
      { authorization: basic(`${accountSid}0`, token) },
      { authorization: basic(accountSid.slice(0, -1), token) },
      { authorization: basic(accountSid.slice(2), token) },
      { authorization: basic(serviceSid, token) },
      { authorization: basic(service.customer, token) },
      { authorization: basic("constructor", token) },
      { authorization: `Basic ${Buffer.from(`${accountSid}${token}`).toString("base64")}` },
      { authorization: `Basic ${Buffer.from([0xff, 0xfe, 0x3a, 0xff]).toString("base64")}` },
      { authorization: `Bearer ${token}` },
      { authorization: token },
      { authorization: `Digest username="${accountSid}"` },
      { "x-api-key": token },
      { cookie: `authorization=${basic(accountSid, token)}` },
    ];
    const calls = [
      ["POST", "/Verifications"],
      ["POST", "/VerificationCheck"],
      ["GET", `/Verifications/${sid}`],
      ["POST", `/Verifications/${sid}`],
      ["GET", ""],
    ] as const;
    for (const headers of wrong) {
      for (const [method, path] of calls) {
        const answer = await raw(url, method, `/v2/Services/${serviceSid}${path}`, method === "POST" ? form : "", headers);
        const name = `${method} ${path} ${JSON.stringify(headers).slice(0, 90)}`;
        expect([answer.status, rejected(answer, name)], name).toEqual([401, 20003]);
        expect(answer.text).not.toContain(token);
      }
    }
    const large = await raw(url, "POST", `/v2/Services/${serviceSid}/Verifications`, `Tags=${"x".repeat(17 * 1024)}`, {});
    expect(outcome(large)).toBe("401 20003");
    expect(box.messages).toHaveLength(1);
    for (const user of [accountSid, `SK${"0".repeat(32)}`, "SK"]) {
      const answer = await raw(url, "GET", `/v2/Services/${serviceSid}`, "", { authorization: basic(user, token) });
      expect([user, answer.status]).toEqual([user, 200]);
    }
    for (const [user, password] of [
      [`SK${"0".repeat(32)}`, `${token}x`],
      [`sk${"0".repeat(32)}`, token],
      ["SK", ""],
    ] as const) {
      expect(outcome(await raw(url, "POST", `/v2/Services/${serviceSid}/Verifications`, form, { authorization: basic(user, password) }))).toBe("401 20003");
    }
  });

  it("a key without its underscore is the same key; other changes give 401 (docs/contract.md#api-keys)", async () => {
    const { key } = generateApiKey();
    const { url, accountSid, serviceSid } = await serve({ token: key });
    const by = (password: string) => raw(url, "GET", `/v2/Services/${serviceSid}`, "", { authorization: basic(accountSid, password) });
    expect((await by(key)).status).toBe(200);
    expect((await by(key.replace("_", ""))).status).toBe(200);
    expect((await raw(url, "GET", `/v2/Services/${serviceSid}`, "", { authorization: basic("SK1", key.replace("_", "")) })).status).toBe(200);
    for (const password of [
      key.replace("_", "-"),
      key.replace("_", "__"),
      key.replace("pp_", ""),
      key.replace("pp_", "_"),
      `${key}_`,
      key.replace("_", "").toLowerCase(),
    ]) {
      expect(outcome(await by(password)), password.slice(0, 4)).toBe("401 20003");
    }
  });

  it("a 401 response repeats nothing from the request", async () => {
    const { url, serviceSid } = await serve();
    const answer = await raw(url, "POST", `/v2/Services/${serviceSid}/Verifications`, form, { authorization: basic("<script>alert(1)</script>", "hunter2") });
    expect(answer.text).not.toMatch(/script|hunter2/);
    expect(JSON.stringify(answer.headers)).not.toMatch(/script|hunter2/);
  });
});

describe("many customers", () => {
  const customers = Array.from({ length: 12 }, (_, i) => `6f1e7d2c-8a4b-4c3d-9e5f-${String(i).padStart(12, "0")}`);
  const keys = customers.map((_, i) => `${i}`.padStart(2, "0") + "k".repeat(40));
  const callers = customers.map((customer, i) => callerOf(customer, keys[i] as string));
  const start = () =>
    serve({
      customer: customers[0] as string,
      token: keys[0] as string,
      verifier: { customers: customers.map((customer_uuid, i) => ({ customer_uuid, keys: [keys[i] as string] })) },
    });
  const by = ({ accountSid, token }: (typeof callers)[number]) => ({ authorization: basic(accountSid, token) });

  it("fetch, check and cancel of another customer's SID or number give exactly the 404 of an unknown one (docs/contract.md#keyed-by-customer)", async () => {
    const { url, begin, check, fetch, box } = await start();
    const { sid } = (await begin()).json as { sid: string };
    const Code = codeOf(box);
    const unknown = `VE${"0123456789abcdef".repeat(2)}`;
    for (const caller of callers.slice(1, 4)) {
      const at = (method: string, path: string, form: Form = "") => raw(url, method, `/v2/Services/${caller.serviceSid}${path}`, form, by(caller));
      const blank = ({ status, text, headers }: Answer, name: string) => [status, text.replaceAll(name, "X"), Object.keys(headers).sort()];
      for (const user of [caller.accountSid, "SK1"]) {
        const authorization = basic(user, caller.token);
        for (const [method, path, form] of [
          ["GET", `/Verifications/${sid}`, ""],
          ["POST", `/Verifications/${sid}`, { Status: "canceled" }],
          ["POST", "/VerificationCheck", { VerificationSid: sid, Code }],
          ["POST", "/VerificationCheck", { VerificationSid: sid, To: to, Code }],
          ["GET", `/Verifications/${to}`, ""],
          ["POST", `/Verifications/${to}`, { Status: "canceled" }],
          ["POST", "/VerificationCheck", { To: to, Code }],
        ] as const) {
          const swap = (text: string) => text.replaceAll(sid, unknown).replaceAll(to, numberOf(77));
          const foreign = await raw(url, method, `/v2/Services/${caller.serviceSid}${path}`, form, { authorization });
          const none = JSON.parse(swap(JSON.stringify([path, form]))) as [string, Form];
          expect(outcome(foreign), path).toBe("404 20404");
          rejected(foreign, path);
          const missing = await at(method, ...none);
          expect(blank(foreign, path.split("/").at(-1) as string)).toEqual(blank(missing, none[0].split("/").at(-1) as string));
        }
      }
    }
    expect(outcome(await fetch(sid))).toBe("200 pending");
    expect(outcome(await check(to, Code))).toBe("200 approved");
  });

  it("another customer's service in the path gives 404 20404 for every call; an account with another's key gives 401", async () => {
    const { url, begin, serviceSid, box } = await start();
    const { sid } = (await begin()).json as { sid: string };
    const [mine, theirs] = callers as [(typeof callers)[number], (typeof callers)[number]];
    for (const [method, path, form] of [
      ["GET", "", ""],
      ["POST", "", { FriendlyName: "x" }],
      ["POST", "/Verifications", { To: numberOf(2), Channel: "sms" }],
      ["GET", `/Verifications/${sid}`, ""],
      ["POST", `/Verifications/${sid}`, { Status: "canceled" }],
      ["POST", "/VerificationCheck", { To: to, Code: codeOf(box) }],
    ] as const) {
      expect(outcome(await raw(url, method, `/v2/Services/${serviceSid}${path}`, form, by(theirs))), path).toBe("404 20404");
      const mixed = await raw(url, method, `/v2/Services/${serviceSid}${path}`, form, { authorization: basic(mine.accountSid, theirs.token) });
      expect(outcome(mixed), path).toBe("401 20003");
    }
    const { json } = await raw(url, "GET", "/v2/Services", "", by(theirs));
    expect((json["services"] as { sid: string }[]).map((one) => one.sid)).toEqual([theirs.serviceSid]);
    expect(box.messages).toHaveLength(1);
  });

  it("one number at twelve customers at once: twelve verifications, each with its own code, guesses and end", async () => {
    const { url, box } = await start();
    const at = (i: number, path: string, form: Form) =>
      raw(url, "POST", `/v2/Services/${callers[i]?.serviceSid}${path}`, form, by(callers[i] as (typeof callers)[number]));
    const begun = await Promise.all(callers.map((_, i) => at(i, "/Verifications", { To: to, Channel: "sms" })));
    expect(tallied(begun.map(outcome))).toEqual({ "201 pending": 12 });
    expect(new Set(begun.map(({ json }) => json["sid"])).size).toBe(12);
    expect(box.messages).toHaveLength(12);
    const codes = begun.map(({ json }) => box.codeOf(authenticationUuidOf(String(json["sid"])) as string));
    const none = ["000000", "111111", "222222"].find((code) => !codes.includes(code)) as string;
    for (let i = 0; i < 5; i++) await at(0, "/VerificationCheck", { To: to, Code: none });
    expect(outcome(await at(0, "/VerificationCheck", { To: to, Code: codes[0] as string }))).toBe("429 60202");
    expect(outcome(await at(1, `/Verifications/${to}`, { Status: "canceled" }))).toBe("200 canceled");
    const others = await Promise.all(callers.slice(2).map((_, i) => at(i + 2, "/VerificationCheck", { To: to, Code: codes[i + 2] as string })));
    expect(tallied(others.map(outcome))).toEqual({ "200 approved": 10 });
  });

  it("one customer's attack on a number does not affect another customer's user", async () => {
    const { url, box } = await start();
    const at = (i: number, path: string, form: Form) =>
      raw(url, "POST", `/v2/Services/${callers[i]?.serviceSid}${path}`, form, by(callers[i] as (typeof callers)[number]));
    for (let i = 0; i < 40; i++) {
      await at(0, "/Verifications", { To: to, Channel: "sms" });
      await at(0, "/VerificationCheck", { To: to, Code: "000000" });
      await at(0, `/Verifications/${to}`, { Status: "canceled" });
    }
    expect(box.messages.length).toBeLessThanOrEqual(5);
    expect(outcome(await at(1, "/Verifications", { To: to, Channel: "sms" }))).toBe("201 pending");
    expect(outcome(await at(1, "/VerificationCheck", { To: to, Code: codeOf(box) }))).toBe("200 approved");
  });
});
