import { createServer } from "node:http";
import { gzipSync } from "node:zlib";
import express from "express";
import { describe, expect, it } from "vitest";
import { expressHandlers } from "../../adapters/http/express.js";
import { authenticationUuidOf } from "../../src/wires/twilio-verify/index.js";
import { numberOf } from "../support/verifier.js";
import { listening, type Mount, mounts } from "../wires/listen.js";
import { basic, Checked, codeOf, type Form, failed, outcome, raw, rejected, type Service, serve, show, to, Verification } from "./twilio-verify-kit.js";

const big = "x".repeat(1_000_000);

describe("a create", () => {
  const wrongTo = [
    "",
    " ",
    "+",
    "++33612000001",
    "33612000001",
    "0612000001",
    "00336120000001",
    "+33 6 12 00 00 01",
    "+33-612000001",
    "+33612000001;ext=7",
    "tel:+33612000001",
    "whatsapp:+33612000001",
    "+3361200000",
    "+336120000011",
    "+33612000001\u0000",
    "\u0000+33612000001",
    "+33612000001\r\nX: y",
    "＋33612000001",
    "+３３６１２０００００１",
    "+٣٣٦١٢٠٠٠٠٠١",
    "+33612000001,+33612000002",
    "+999123456789",
    "a@example.com",
    "null",
    "[object Object]",
    '{"$ne":null}',
    "' OR 1=1 --",
    "\ud800",
    "9".repeat(10_000),
  ];

  it.each(wrongTo.map((value) => [show(value), value] as const))("To = %s: 400 60200 and nothing is sent (docs/contract.md#phone-number)", async (_, value) => {
    const { ask, box } = await serve();
    const answer = await ask("POST", "/Verifications", { To: value, Channel: "sms" });
    expect([answer.status, rejected(answer, value)]).toEqual([400, 60200]);
    expect(answer.json["message"]).toMatch(/To/);
    expect(box.messages).toEqual([]);
  });

  it("lines and countries that get no messages give the vendor's 403 and send nothing (docs/contract.md#destinations)", async () => {
    const { begin, box } = await serve({ verifier: { blockedNumbers: [numberOf(9)] } as never });
    expect(outcome(await begin("+33142685300"))).toBe("403 60205");
    expect(outcome(await begin("+33899123456"))).toBe("403 60205");
    const country = await begin("+4915112345678");
    expect([country.status, rejected(country, "a country")]).toEqual([403, 60605]);
    expect(country.json["message"]).toMatch(/DE is blocked for sms channel/);
    expect(outcome(await begin(numberOf(9)))).toBe("403 60410");
    expect(box.messages).toEqual([]);
  });

  it("any Channel but exactly sms gives 400 60200 and sends nothing", async () => {
    const { ask, box } = await serve();
    for (const Channel of [
      "",
      "SMS",
      "Sms",
      "sms ",
      " sms",
      "call",
      "email",
      "whatsapp",
      "sna",
      "auto",
      "rcs",
      "push",
      "totp",
      "sms,call",
      "constructor",
      "\u0000",
      big,
    ]) {
      const answer = await ask("POST", "/Verifications", { To: to, Channel });
      expect(rejected(answer, Channel.slice(0, 20))).toBe(60200);
      if (Channel !== big) expect(answer.json["message"], Channel).toMatch(/Channel/);
    }
    expect(rejected(await ask("POST", "/Verifications", { To: to }), "no channel")).toBe(60200);
    expect(rejected(await ask("POST", "/Verifications", { Channel: "sms" }), "no To")).toBe(60200);
    expect(box.messages).toEqual([]);
  });

  it("Channel auto is sms with autoChannel", async () => {
    const { begin, box } = await serve({ wire: { autoChannel: "sms" } });
    const { status, json } = await begin(to, { Channel: "auto" });
    expect([status, Verification.parse(json).channel]).toEqual([201, "sms"]);
    expect(outcome(await begin(numberOf(2), { Channel: "call" }))).toBe("400 60200");
    expect(box.messages).toHaveLength(1);
  });

  it("payment fields and malformed optional fields give 400 60200 and send nothing", async () => {
    const { begin, box } = await serve();
    const wrong: Record<string, string>[] = [
      { Amount: "39.99" },
      { Payee: "Acme" },
      { Amount: "39.99", Payee: "Acme" },
      { Locale: "\u0000" },
      { Locale: "a language" },
      { AppHash: "short" },
      { AppHash: "x".repeat(12) },
      { AppHash: "abcdefghij\u0000" },
      { AppHash: "abcdefghij " },
      { DeviceIp: "localhost" },
      { DeviceIp: "999.1.1.1" },
      { DeviceIp: "192.0.2.7:80" },
      { DeviceIp: "192.0.2.7, 10.0.0.1" },
      { DeviceIp: "\u0000" },
    ];
    for (const more of wrong) {
      const answer = await begin(to, more);
      const [field = ""] = Object.keys(more);
      expect([answer.status, rejected(answer, JSON.stringify(more))], JSON.stringify(more)).toEqual([400, 60200]);
      expect(`${answer.json["message"]} ${JSON.stringify(answer.json["details"])}`).toMatch(new RegExp(field, "i"));
    }
    expect(box.messages).toEqual([]);
  });

  it("ignored fields, whatever their values, change neither the code nor a rule; CustomCode is never the code", async () => {
    const { begin, check, box, log } = await serve({ verifier: { blockedNumbers: [numberOf(50)] } as never });
    const ignored: Record<string, string>[] = [
      { CustomCode: "123456" },
      { CustomCode: "" },
      { CustomCode: "\u0000" },
      { CustomMessage: "Win! https://evil.example" },
      { CustomFriendlyName: "\r\n\u0000<b>" },
      { RiskCheck: "disable" },
      { RiskCheck: "" },
      { Tags: "{" },
      { Tags: '{"__proto__":1}' },
      { RateLimits: '{"a":"1"}' },
      { TemplateSid: "HJ" },
      { TemplateCustomSubstitutions: "{}" },
      { ChannelConfiguration: "{}" },
      { SendDigits: "1234" },
      { EnableSnaClientToken: "perhaps" },
      { Locale: "tlh" },
      { __proto__x: "y", constructor: "z", toString: "a", hasOwnProperty: "b" },
    ];
    for (const [i, more] of ignored.entries()) {
      const number = numberOf(i + 1);
      const answer = await begin(number, more);
      expect(answer.status, `${JSON.stringify(more)} ${answer.text}`).toBe(201);
      Verification.parse(answer.json);
      expect(box.messages).toHaveLength(i + 1);
      expect(box.messages.at(-1)?.text).not.toMatch(/evil|Win!|<b>/);
      if (more["CustomCode"] === "123456" && codeOf(box, number) !== "123456") {
        expect(outcome(await check(number, "123456"))).toBe("200 pending");
        expect(outcome(await check(number, codeOf(box, number)))).toBe("200 approved");
      }
    }
    expect(outcome(await begin(numberOf(50), { RiskCheck: "disable" }))).toBe("403 60410");
    expect(log.filter(({ message }) => /error/i.test(message))).toEqual([]);
  });
});

describe("a check", () => {
  it("with a Code that cannot be right gives 400 60200 and is not counted; separators and full-width digits are accepted (docs/contract.md#check-code)", async () => {
    const { begin, check, ask, box, wrong } = await serve();
    const { sid } = (await begin()).json as { sid: string };
    for (const by of [to, sid]) {
      for (const code of [
        "",
        " ",
        "-",
        "123",
        "12345678901",
        "abcdef",
        "12345x",
        "1".repeat(65),
        "1".repeat(10_000),
        "123456\u0000",
        "½½½½½½",
        "0x1234",
        "1e5000",
        "+12345",
        '{"$gt":""}',
      ]) {
        const answer = await check(by, code);
        expect([answer.status, rejected(answer, code)], code.slice(0, 20)).toEqual([400, 60200]);
        expect(answer.json["message"]).toMatch(/Code/);
      }
      expect(rejected(await ask("POST", "/VerificationCheck", by === to ? { To: to } : { VerificationSid: sid }), "no code")).toBe(60200);
    }
    for (let i = 0; i < 4; i++) expect(outcome(await check(to, wrong()))).toBe("200 pending");
    const typed = [...codeOf(box)].map((digit) => String.fromCodePoint(0xff10 + Number(digit))).join("");
    const answer = await check(to, ` ${typed.slice(0, 3)} - ${typed.slice(3)} `);
    expect([answer.status, Checked.parse(answer.json).status]).toEqual([200, "approved"]);
  });

  it("without To and VerificationSid gives 400 60221; with two that do not belong together it is never approved", async () => {
    const { begin, ask, box } = await serve();
    const one = (await begin(numberOf(1))).json as { sid: string };
    const two = (await begin(numberOf(2))).json as { sid: string };
    const Code = codeOf(box, numberOf(1));
    for (const form of [{ Code }, { Code, To: "", VerificationSid: "" }] as Record<string, string>[]) {
      expect(rejected(await ask("POST", "/VerificationCheck", form), JSON.stringify(form))).toBe(60221);
    }
    for (const form of [
      { Code, To: numberOf(2), VerificationSid: one.sid },
      { Code, To: numberOf(1), VerificationSid: two.sid },
      { Code, To: numberOf(1), VerificationSid: `VE${"0".repeat(32)}` },
      { Code, To: numberOf(3), VerificationSid: one.sid },
      { Code, To: "", VerificationSid: two.sid },
    ]) {
      const answer = await ask("POST", "/VerificationCheck", form);
      expect(answer.json["status"], JSON.stringify(form)).not.toBe("approved");
    }
    expect(outcome(await ask("POST", "/VerificationCheck", { Code, To: numberOf(1), VerificationSid: one.sid }))).toBe("200 approved");
  });

  it("with another spelling of To finds the same verification, with VerificationSid too (docs/contract.md#canonical-form)", async () => {
    const { begin, ask, fetch, box } = await serve();
    const begun = await begin("+330612000001");
    expect([begun.status, begun.json["to"]]).toEqual([201, to]);
    const { sid } = begun.json as { sid: string };
    expect((await fetch("+330612000001")).json["sid"]).toBe(sid);
    const form = { To: "+330612000001", VerificationSid: sid };
    expect(outcome(await ask("POST", "/VerificationCheck", { ...form, To: "+33", Code: codeOf(box) }))).toBe("400 60200");
    expect(outcome(await ask("POST", "/VerificationCheck", { ...form, Code: codeOf(box) }))).toBe("200 approved");
  });

  it("with SIDs of another length, prefix or kind gives 4xx and reveals nothing; upper-case digits never approve twice", async () => {
    const { begin, ask, cancel, fetch, box } = await serve();
    const { sid, send_code_attempts } = (await begin()).json as { sid: string; send_code_attempts: { attempt_sid: string }[] };
    const digits = sid.slice(2);
    const Code = codeOf(box);
    const wrong = [
      "VE",
      digits,
      `VA${digits}`,
      `AC${digits}`,
      `ve${digits}`,
      `VE${digits}0`,
      `VE${digits.slice(1)}`,
      `VE${digits.slice(1)}g`,
      `VE${"0".repeat(32)}`,
      `VE${"f".repeat(32)}`,
      send_code_attempts[0]?.attempt_sid as string,
      authenticationUuidOf(sid) as string,
      "constructor",
      "undefined",
      "x".repeat(5_000),
    ];
    for (const name of wrong) {
      for (const answer of [await fetch(name), await cancel(name), await ask("POST", "/VerificationCheck", { VerificationSid: name, Code })]) {
        rejected(answer, name.slice(0, 50));
        expect(answer.text).not.toContain(to);
      }
    }
    for (const name of [`${sid}\u0000`, ` ${sid}`, `${sid}\n`, `${sid},${sid}`]) {
      rejected(await ask("POST", "/VerificationCheck", { VerificationSid: name, Code }), JSON.stringify(name));
      rejected(await fetch(encodeURIComponent(name)), JSON.stringify(name));
    }
    const shouted = await ask("POST", "/VerificationCheck", { VerificationSid: `VE${digits.toUpperCase()}`, Code });
    const plain = await ask("POST", "/VerificationCheck", { VerificationSid: sid, Code });
    expect([outcome(shouted), outcome(plain)].filter((one) => one === "200 approved")).toHaveLength(1);
  });
});

describe("an update", () => {
  it("to any status but canceled, approved included, gives 400 60200 and changes nothing", async () => {
    const { begin, ask, check, fetch, box } = await serve();
    const { sid } = (await begin()).json as { sid: string };
    const forms: Form[] = [
      "",
      { Status: "" },
      { Status: "pending" },
      { Status: "Canceled" },
      { Status: "cancelled" },
      { Status: "canceled\u0000" },
      { Status: "deleted" },
      { Status: "__proto__" },
      { status: "canceled" },
    ];
    for (const name of [sid, to]) {
      for (const form of forms) {
        const answer = await ask("POST", `/Verifications/${name}`, form);
        expect([answer.status, rejected(answer, show(form))], show(form)).toEqual([400, 60200]);
      }
      for (const form of [{ Status: "approved" }, { Status: "approved", Code: codeOf(box) }] as Form[]) {
        const answer = await ask("POST", `/Verifications/${name}`, form);
        expect([answer.status, rejected(answer, show(form))]).toEqual([400, 60200]);
        expect(answer.json["message"]).toMatch(/Status/);
      }
    }
    expect(outcome(await fetch(sid))).toBe("200 pending");
    expect(outcome(await check(to, codeOf(box)))).toBe("200 approved");
  });
});

describe("malformed bodies", () => {
  it("give 4xx in the vendor's format on every call; nothing is sent or counted", async () => {
    const { begin, ask, check, box, wrong } = await serve();
    const { sid } = (await begin()).json as { sid: string };
    const sent = box.messages.length;
    const all = `To=%2B33612000002&Channel=sms&Code=${wrong()}&VerificationSid=${sid}&Status=pending`;
    const bodies: Form[] = [
      "",
      "&&&&",
      "====",
      "To",
      "=+33612000002",
      "%",
      "%00",
      "To=%2B33612000002&Channel",
      "To[]=%2B33612000002&Channel[]=sms&Code[]=123456&Status[]=canceled",
      "To[a]=%2B33612000002&Channel[b]=sms&Code[$ne]=&Status[x]=canceled",
      "to=%2B33612000002&channel=sms&code=123456&status=canceled",
      "To=%FF%FE&Channel=%FF&Code=%FF&Status=%FF",
      "To=%E0%A4%A&Channel=%E0%A4%A&Code=%E0%A4%A&Status=%E0%A4%A",
      new Uint8Array([0xff, 0xfe, 0x54, 0x6f, 0x3d]),
      `{"To":"+33612000002","Channel":"sms","Code":"123456","Status":"canceled"}`,
      "[1]",
      "null",
      "<xml/>",
      `${"a=b&".repeat(3_000)}Channel=sms`,
      `${all}&Tags=${big}`,
      `To=${"[".repeat(8_000)}`,
    ];
    for (const path of ["/Verifications", "/VerificationCheck", `/Verifications/${sid}`]) {
      for (const body of bodies) rejected(await ask("POST", path, body), `${path} ${show(body)}`);
      for (const headers of [{ "content-encoding": "gzip" }, { "content-encoding": "deflate" }, { "content-encoding": "br" }] as Record<string, string>[]) {
        rejected(await ask("POST", path, gzipSync(all), headers), `${path} ${JSON.stringify(headers)}`);
      }
      for (const type of ["application/json", "multipart/form-data; boundary=x", "text/xml", "image/png"]) {
        const answer = await ask("POST", path, `{"To":"+33612000002","Channel":"sms","Code":"${wrong()}","Status":"pending"}`, { "content-type": type });
        rejected(answer, `${path} ${type}`);
      }
    }
    expect(box.messages).toHaveLength(sent);
    expect(({} as Record<string, unknown>)["a"]).toBeUndefined();
    for (let i = 0; i < 4; i++) expect(outcome(await check(to, wrong()))).toBe("200 pending");
    expect(outcome(await check(to, codeOf(box)))).toBe("200 approved");
  });

  it("a body over the limit gives 413 in the vendor's format, even at a megabyte", async () => {
    const { ask, box } = await serve();
    for (const size of [16 * 1024 + 1, 1_000_000]) {
      const answer = await ask("POST", "/Verifications", `To=%2B33612000001&Channel=sms&Tags=${"x".repeat(size)}`);
      expect([answer.status, failed(answer, String(size))]).toEqual([413, 60200]);
    }
    expect(box.messages).toEqual([]);
  });

  it.each([
    ["extended", express.urlencoded({ extended: true })],
    ["simple", express.urlencoded({ extended: false })],
    ["json and text", [express.json(), express.text({ type: "*/*" })]],
  ] as const)("behind a body parser (%s) the same forms are rejected, and a valid one works (docs/contract.md#http-shape)", async (_, parser) => {
    const mount: Mount = (handler, basePath, seen) => {
      const app = express();
      app.use(parser as express.RequestHandler);
      app.use(basePath || "/", expressHandlers(handler));
      return listening(createServer(app).prependListener("request", seen));
    };
    const { ask, begin, check, box } = await serve({ mount });
    for (const body of [
      "",
      "To[a]=%2B33612000001&Channel[b]=sms&Code[$ne]=",
      "__proto__[To]=%2B33612000001&__proto__[Channel]=sms&constructor[prototype][Code]=123456",
    ]) {
      for (const path of ["/Verifications", "/VerificationCheck"]) rejected(await ask("POST", path, body), `${path} ${body}`);
    }
    expect(box.messages).toEqual([]);
    expect((await begin()).status).toBe(201);
    expect(outcome(await check(to, codeOf(box)))).toBe("200 approved");
  });

  it("a repeated field gives 400 60200, so that no server in between can read another value", async () => {
    const { ask, begin, fetch, check, box } = await serve();
    const { sid } = (await begin()).json as { sid: string };
    const code = codeOf(box);
    for (const [path, body, field] of [
      ["/Verifications", "To=%2B33612000002&To=%2B33612000003&Channel=sms", "To"],
      ["/Verifications", "To=%2B33612000002&To=%2B33612000002&Channel=sms", "To"],
      ["/Verifications", "To=%2B33612000002&Channel=call&Channel=sms", "Channel"],
      ["/Verifications", "To=%2B33612000002&Channel=sms&DeviceIp=192.0.2.7&DeviceIp=192.0.2.8", "DeviceIp"],
      ["/VerificationCheck", `To=%2B33612000001&Code=000000&Code=${code}`, "Code"],
      ["/VerificationCheck", `To=%2B33612000002&To=%2B33612000001&Code=${code}`, "To"],
      ["/VerificationCheck", `VerificationSid=VE${"0".repeat(32)}&VerificationSid=${sid}&Code=${code}`, "VerificationSid"],
      [`/Verifications/${sid}`, "Status=approved&Status=canceled", "Status"],
    ] as const) {
      const answer = await ask("POST", path, body);
      expect([answer.status, rejected(answer, body)], body).toEqual([400, 60200]);
      expect(answer.json["message"], body).toContain(field);
    }
    expect(box.messages).toHaveLength(1);
    expect(outcome(await fetch(sid))).toBe("200 pending");
    expect(outcome(await check(to, code))).toBe("200 approved");
  });

  it("a raw + in To, which a form decodes to a space, still gives the number", async () => {
    const { ask, box } = await serve();
    expect((await ask("POST", "/Verifications", "To=+33612000001&Channel=sms")).json["to"]).toBe(to);
    expect(outcome(await ask("POST", "/VerificationCheck", `To=+33612000001&Code=${codeOf(box)}`))).toBe("200 approved");
  });
});

describe("routes", () => {
  it("unknown paths give 404 20404 and wrong methods 405 20004, in the vendor's format; nothing is sent", async () => {
    const { ask, begin, url, accountSid, token, box } = await serve();
    const { sid } = (await begin()).json as { sid: string };
    const form = { To: numberOf(2), Channel: "sms", Code: "123456", Status: "canceled" };
    for (const path of [
      "/RateLimits",
      "/Templates",
      "/Entities",
      "/Webhooks",
      "/MessagingConfigurations",
      "/AccessTokens",
      "/Passkeys",
      "/Verification",
      "/verifications",
      "/VERIFICATIONS",
      "/VerificationChecks",
      "//Verifications",
      "/Verifications//",
      `/Verifications/${sid}/x`,
      "/Verifications%2F",
      "/Verifications/%2e%2e/VerificationCheck",
      "/%56erifications%00",
      `/${"x".repeat(6_000)}`,
    ]) {
      for (const method of ["GET", "POST"]) {
        const answer = await ask(method, path, method === "POST" ? form : "");
        expect([answer.status, rejected(answer, path)], path.slice(0, 60)).toEqual([404, 20404]);
      }
    }
    for (const path of [
      "/v2",
      "/v2/Attempts",
      "/v2/Attempts/Summary",
      "/v2/Forms/x",
      "/v2/SafeList/Numbers",
      "/v2/Services/VA",
      `/v2/Services/VA${"0".repeat(32)}`,
      "/v2/services",
      "/v1/Services",
      "/v2/Services/../Services",
    ]) {
      const answer = await raw(url, "GET", path, "", { authorization: basic(accountSid, token) });
      expect(answer.status, path).toBe(404);
    }
    for (const [method, path] of [
      ["PUT", "/Verifications"],
      ["PATCH", "/Verifications"],
      ["DELETE", "/Verifications"],
      ["GET", "/Verifications"],
      ["GET", "/VerificationCheck"],
      ["PUT", "/VerificationCheck"],
      ["DELETE", "/VerificationCheck"],
      ["PUT", `/Verifications/${sid}`],
      ["DELETE", `/Verifications/${sid}`],
      ["DELETE", ""],
      ["PUT", ""],
    ] as const) {
      const answer = await ask(method, path, method === "PUT" ? form : "");
      expect([answer.status, rejected(answer, `${method} ${path}`)], `${method} ${path}`).toEqual([405, 20004]);
      expect(answer.headers["allow"], `${method} ${path}`).toMatch(/GET|POST/);
    }
    for (const path of ["/Verifications", "/VerificationCheck", `/Verifications/${sid}`, ""]) {
      const answer = await ask("HEAD", path);
      expect([answer.status === 405 || answer.status === 200, answer.text], path).toEqual([true, ""]);
    }
    expect(box.messages).toHaveLength(1);
    expect(outcome(await ask("GET", `/Verifications/${sid}`))).toBe("200 pending");
  });

  it("a number in the path may have a raw or encoded +, encoded digits and a query after it, and nothing else (docs/contract.md#plus-in-path)", async () => {
    const { begin, fetch } = await serve();
    const { sid } = (await begin()).json as { sid: string };
    for (const name of ["+33612000001", "%2B33612000001", "%2b33612000001", "%2B%33%33612000001", "+33612000001?x=y&__proto__=z"]) {
      const answer = await fetch(name);
      expect([name, answer.status, answer.json["sid"]]).toEqual([name, 200, sid]);
    }
    for (const name of [
      "33612000001",
      "%2B%2B33612000001",
      "+33612000001%00",
      "+33612000001%0d%0aX:%20y",
      "+33612000001%2F",
      "%20%2B33612000001",
      "%",
      "%E0%A4%A",
      "%252B33612000001",
      "+33612000002",
      "*",
      "..",
    ]) {
      const answer = await fetch(name);
      expect([400, 404], name).toContain(answer.status);
      failed(answer, name);
      expect(answer.headers["x"], name).toBeUndefined();
    }
    expect((await fetch(`%56E${sid.slice(2)}`)).json["sid"]).toBe(sid);
  });

  it("line breaks in numbers, SIDs and page tokens reach no header of the response", async () => {
    const { begin, ask } = await serve();
    await begin();
    for (const text of ["a\r\nset-cookie: x=1", "a%0d%0aset-cookie:%20x=1", "\r\n\r\n<html>"]) {
      for (const answer of [
        await ask("POST", "/Verifications", { To: text, Channel: text }),
        await ask("POST", "/VerificationCheck", { VerificationSid: text, Code: "123456" }),
        await ask("GET", `/Verifications/${encodeURIComponent(text)}`),
        await ask("GET", `?PageToken=${encodeURIComponent(text)}`),
      ]) {
        expect(answer.headers["set-cookie"]).toBeUndefined();
        expect(answer.headers["content-type"]).toMatch(/^application\/json/);
        expect(answer.status).toBeLessThan(500);
      }
    }
  });

  it("lists of services end, whatever page is requested; their links stay on the server", async () => {
    const { url, accountSid, serviceSid, token, client } = await serve();
    const list = (query: string) => raw(url, "GET", `/v2/Services${query}`, "", { authorization: basic(accountSid, token) });
    for (const query of [
      "",
      "?",
      "?PageSize=1",
      "?PageSize=0",
      "?PageSize=-1",
      "?PageSize=1e308",
      "?PageSize=99999999999999999999",
      "?PageSize=abc",
      "?PageSize=%00",
      "?PageSize=1&PageSize=2",
      "?PageToken=garbage",
      `?PageToken=${"x".repeat(5_000)}`,
      "?Page=0&PageToken=https://evil.example/",
      "?PageSize[]=1",
      "?__proto__=x",
      "?%",
    ]) {
      const answer = await list(query);
      const { status, json, text } = answer;
      const name = `${query.slice(0, 40)} ${text.slice(0, 200)}`;
      if (status !== 200) {
        expect([status, failed(answer, name)], name).toEqual([400, 60200]);
        continue;
      }
      const { meta, services } = json as { meta: Record<string, unknown>; services: { sid: string }[] };
      expect(services.length, name).toBeLessThanOrEqual(1);
      expect([meta["key"], meta["next_page_url"]], name).toEqual(["services", null]);
      for (const link of [meta["url"], meta["first_page_url"]]) expect(new URL(String(link)).host, name).toBe(new URL(url).host);
    }
    for (const page of [1, 2, 1_000_000]) expect((await list(`?Page=${page}`)).json["services"], String(page)).toEqual([]);
    const account = twilioOf(client);
    expect((await account.list()).map(({ sid }) => sid)).toEqual([serviceSid]);
    expect((await account.list({ pageSize: 1, limit: 100 })).map(({ sid }) => sid)).toEqual([serviceSid]);
  });

  it("a service is never changed, and creating one returns the existing one", async () => {
    const { ask, url, accountSid, serviceSid, token } = await serve();
    const made = await raw(url, "POST", "/v2/Services", { FriendlyName: "Mine", CodeLength: "6" }, { authorization: basic(accountSid, token) });
    expect([made.status, made.json["sid"]]).toEqual([201, serviceSid]);
    const before = (await ask("GET", "")).json;
    for (const form of [
      { CodeLength: "4" },
      { CodeLength: "1000" },
      { CodeLength: "x" },
      { LookupEnabled: "true" },
      { Psd2Enabled: "true" },
      { CustomCodeEnabled: "true" },
    ] as Form[]) {
      const answer = await ask("POST", "", form);
      expect([answer.status, rejected(answer, show(form))], show(form)).toEqual([400, 60200]);
    }
    expect((await ask("GET", "")).json).toEqual(before);
    expect((await ask("POST", "", { CodeLength: "6" })).status).toBe(200);
  });

  for (const [name, mount] of mounts) {
    for (const basePath of ["/api", "/a/b.c/%7Ed"].slice(0, name === "Fastify" ? 1 : 2)) {
      it(`${name} under ${basePath}: a sign-up by the twilio client`, async () => {
        const service = await serve({ mount, basePath });
        const verify = service.client();
        const begun = await verify.verifications.create({ to, channel: "sms" });
        expect((await verify.verifications(begun.sid).fetch()).status).toBe("pending");
        expect((await verify.verifications(to).fetch()).sid).toBe(begun.sid);
        expect(begun.url.endsWith(`/v2/Services/${service.serviceSid}/Verifications/${begun.sid}`)).toBe(true);
        expect((await verify.verificationChecks.create({ to, code: codeOf(service.box) })).status).toBe("approved");
        expect(service.seen.every((one) => one.includes(`${basePath}/v2/Services`))).toBe(true);
      });
    }
  }
});

/** The list of services, of the client that a service's client belongs to. */
function twilioOf(client: Service["client"]) {
  return (client() as unknown as { _version: { services: { list(options?: object): Promise<{ sid: string }[]> } } })._version.services;
}
