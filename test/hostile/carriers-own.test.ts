import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { httpReceipts, httpSender } from "../../adapters/sms/http.js";
import { inboxSender } from "../../adapters/sms/inbox.js";
import {
  acceptedAs,
  type CarrierApi,
  type CarrierOptions,
  carrierSender,
  framedSender,
  openSecrets,
  openUrlSecret,
  pick,
  readReport,
  readReports,
  requireText,
  type SmsSender,
} from "../../adapters/sms/kit/index.js";
import { createVerifier } from "../../src/index.js";
import { aMessage, aReceipt, inTime, reference } from "../support/carriers/messages.js";
import type { SeenRequest } from "../support/carriers/server.js";
import { at, carrierNames, fieldsOf, make, run, scriptOf } from "./carrier-kit.js";
import { service, wide } from "./kit.js";
import { begin, listening, messageOf, post, told } from "./receipt-kit.js";

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

/** A carrier that accepts anything and records it byte for byte. */
async function anything(status = 200, answer = "{}") {
  const seen: { method: string; url: string; headers: Record<string, unknown>; body: string }[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    seen.push({ method: request.method ?? "", url: request.url ?? "", headers: request.headers, body: Buffer.concat(chunks).toString("utf8") });
    response.writeHead(status).end(answer);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  closing.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

const hostile = [
  "a&to=%2B33612345678&x=1",
  "quote\" and 'quote' and \\ and {to} and {text}{code}",
  "line\nbreak\r\nX-Evil: 1\u0000",
  "100% <b>&amp;</b> + plus # hash ? query / slash",
  "Ünïcödé \u{1F511} \u202E reversed",
  '","to":"+33612345678',
  "$& $1 $$ %s $`",
];

describe("httpSender: the content of a text or rule stays where the template put it", () => {
  it.each(hostile)("in a URL, a form and JSON: %j", async (text) => {
    const { url, seen } = await anything();
    const message = aMessage({ text, receipt_reference: reference });
    const fields = { text: "{text}", to: "{to}", mark: "static {to_digits}" };
    const senders = [
      httpSender({ url: `${url}/send?to={to}&text={text}&mark=static%20{to_digits}` }),
      httpSender({ url, form: fields }),
      httpSender({ url, json: { list: [fields] } }),
    ];
    for (const sender of senders) expect((await sender.send(message, inTime())).outcome).toBe("accepted");
    const query = new URL(url + (seen[0]?.url ?? "")).searchParams;
    const form = new URLSearchParams(seen[1]?.body);
    const json = (JSON.parse(seen[2]?.body ?? "") as { list: Record<string, string>[] }).list[0] as Record<string, string>;
    for (const read of [(key: string) => query.get(key), (key: string) => form.get(key), (key: string) => json[key]]) {
      expect(read("text")).toBe(text);
      expect(read("to")).toBe("+14155552671");
      expect(read("mark")).toBe("static 14155552671");
    }
    expect([...query.keys()].sort()).toEqual(["mark", "text", "to"]);
    expect([...form.keys()].sort()).toEqual(["mark", "text", "to"]);
    expect(Object.keys(json).sort()).toEqual(["mark", "text", "to"]);
    for (const { headers } of seen) expect(headers).not.toHaveProperty("x-evil");
  });

  it.each(["a\r\nX-Evil: 1", "a\nb", "a\r\n\r\nPOST / HTTP/1.1"])("in a header: %j is one line", async (text) => {
    const { url, seen } = await anything();
    await httpSender({ url, headers: { "x-text": "{text}" }, json: {} }).send(aMessage({ text }), inTime());
    expect(seen).toHaveLength(1);
    expect(seen[0]?.headers).not.toHaveProperty("x-evil");
    expect(seen[0]?.headers["x-text"]).toMatch(/^a [^\r\n]+$/);
  });

  it.each(["ключ", "a\0b", "lone \ud800", "\u{1F511}"])("in a header: %j is rejected, and nothing goes out", async (text) => {
    const { url, seen } = await anything();
    expect(await httpSender({ url, headers: { "x-text": "{text}" }, json: {} }).send(aMessage({ text }), inTime())).toMatchObject({ outcome: "rejected" });
    expect(seen).toEqual([]);
  });

  it("a URL rule that throws or returns no absolute URL is rejected, and reveals neither code nor number", async () => {
    const { url, seen } = await anything();
    const rules: (() => unknown)[] = [
      () => {
        throw new Error("no URL for +14155552671 and 493817");
      },
      () => undefined,
      () => "",
      () => 7,
      () => Promise.resolve(url),
      () => new URL(url),
      () => "/relative",
      () => "//carrier",
    ];
    for (const rule of rules.filter((_, i) => i !== 5)) {
      const outcome = await httpSender({ url: rule as never, json: { t: "{text}" } }).send(aMessage(), inTime());
      expect(outcome.outcome, String(rule)).toBe("rejected");
      expect(JSON.stringify(outcome)).not.toMatch(/493817|4155552671/);
    }
    expect(seen).toEqual([]);
  });

  it("tests on the response that throw or never match do not reject the message, and do not reveal the code", async () => {
    const { url } = await anything(200, '{"state":"ok"}');
    const bad = () => {
      throw new Error("493817");
    };
    for (const tests of [
      { accepted: bad },
      { rejected: bad },
      { messageId: bad },
      { accepted: /never/ },
      { accepted: { path: "a.b.c.d", values: ["x"] } },
      { errorCode: "__proto__.x", accepted: /never/ },
    ]) {
      const outcome = await httpSender({ url, json: { t: "{text}" }, ...(tests as object) }).send(aMessage(), inTime());
      expect(outcome.outcome, JSON.stringify(tests)).not.toBe("rejected");
      expect(JSON.stringify(outcome)).not.toContain("493817");
    }
    expect((await httpSender({ url, json: { t: "{text}" }, accepted: /never/ }).send(aMessage(), inTime())).outcome).toBe("unknown");
  });

  it.each<[string, object]>([
    ["no text", { url: "https://sms.example/?to={to}" }],
    ["an unknown placeholder", { url: "https://sms.example/?t={txt}" }],
    ["two bodies", { url: "https://sms.example", json: { t: "{text}" }, form: { t: "{text}" } }],
    ["no URL", { json: { t: "{text}" } }],
    ["an empty URL", { url: "", json: { t: "{text}" } }],
    ["a URL of another scheme", { url: "ftp://sms.example/{text}" }],
    ["a header that is no text", { url: "https://sms.example/?t={text}", headers: { a: 7 } }],
    ["an `accepted` that is none", { url: "https://sms.example/?t={text}", accepted: "OK" }],
    ["a `rejected` that is none", { url: "https://sms.example/?t={text}", rejected: { path: "a" } }],
    ["a `messageId` that is none", { url: "https://sms.example/?t={text}", messageId: 7 }],
    ["`from` that nothing uses", { url: "https://sms.example/?t={text}", from: "ACME" }],
    ["{from} without `from`", { url: "https://sms.example/?t={text}&f={from}" }],
  ])("%s is a TypeError at construction", (_, options) => {
    expect(() => httpSender(options as never)).toThrow(TypeError);
  });
});

describe("httpSender: options that can never work", () => {
  it.each<[string, object]>([
    ["a header whose name is none", { url: "https://sms.example/?t={text}", headers: { "a b": "c" } }],
    ["a form field that is no text", { url: "https://sms.example/", form: { t: "{text}", n: 7 } }],
    ["a provider that is no route", { url: "https://sms.example/?t={text}", provider: "My Carrier" }],
    ["an empty provider", { url: "https://sms.example/?t={text}", provider: "" }],
  ])("%s is a TypeError at construction", (_, options) => {
    expect(() => httpSender(options as never)).toThrow(TypeError);
  });
});

describe("httpReceipts: lists of reports from a dashboard's URL", () => {
  const key = "dashboard-secret-1234";
  const source = httpReceipts({
    provider: "gup",
    statuses: { DELIVERED: "delivered", FAILED: "undeliverable" },
    reports: "response",
    secret: key,
    error: "cause",
    at: "time",
  });
  const read = (body: string, type = "application/json", query = `?key=${key}`) =>
    source.read(aReceipt({ url: `https://otp.example/receipts/gup${query}`, body, headers: { "content-type": type } }), Date.UTC(2027, 0, 1));

  it("a list, a list in a field and a list as JSON in a form give each report once", async () => {
    const list = [
      { id: "1", status: "DELIVERED" },
      { id: "2", status: "failed" },
      { id: "3", status: "WHATEVER" },
    ];
    for (const [body, type] of [
      [JSON.stringify(list), "application/json"],
      [JSON.stringify({ response: list }), "application/json"],
      [new URLSearchParams({ response: JSON.stringify(list) }).toString(), "application/x-www-form-urlencoded"],
    ] as const) {
      const reading = (await read(body, type)) as { receipts: { messageId?: string; status: string; idSpace?: string }[] };
      expect(
        reading.receipts.map(({ messageId, status }) => [messageId, status]),
        body,
      ).toEqual([
        ["1", "delivered"],
        ["2", "undeliverable"],
      ]);
      for (const { idSpace } of reading.receipts) expect(idSpace).toBe("gup");
    }
  });

  it("carriers' errors and times are reported in short form, without numbers or junk", async () => {
    const errors = ["+33612345678 is off", "x".repeat(5_000), { a: 1 }, ["E1"], null, "33612345678"];
    for (const cause of errors) {
      const reading = JSON.stringify(await read(JSON.stringify([{ id: "1", status: "FAILED", cause, time: "yesterday" }])));
      expect(reading).not.toContain("33612345678");
      expect(reading.length).toBeLessThan(400);
      expect(reading).not.toContain("yesterday");
      expect(reading).not.toContain("null");
    }
  });

  it.each([
    [1798761600, 1798761600000],
    ["1798761600", 1798761600000],
    [1798761600000, 1798761600000],
    ["2027-01-01T00:00:00Z", 1798761600000],
    ["2027-01-01T01:00:00+01:00", 1798761600000],
  ])("a time %j is read", async (time, ms) => {
    const reading = (await read(JSON.stringify([{ id: "1", status: "FAILED", time }]))) as unknown as { receipts: { at?: number }[] };
    expect(reading.receipts[0]?.at).toBe(ms);
  });

  it("huge, empty and nested lists are rejected or give no report, and do not take long", async () => {
    const started = performance.now();
    for (const body of [
      JSON.stringify(Array.from({ length: 30_000 }, () => ({}))),
      "[]",
      "[[]]",
      "[[[{}]]]",
      "[1,2,3]",
      '{"response":[]}',
      '{"response":{"id":"1"}}',
      `[${'{"id":"1","status":"DELIVERED"},'.repeat(3_000)}0]`,
    ])
      expect(await read(body)).toSatisfy((reading: object) => "refused" in reading || "receipts" in reading);
    expect(performance.now() - started).toBeLessThan(30_000);
  });

  it("with a secret in the dashboard, a reference in the message's own URL still identifies the message", async () => {
    const one = listening({ receipts: { baseUrl: "https://otp.example", sources: [source] } });
    const id = await begin(one);
    const url = `https://otp.example/receipts/gup?key=${key}&r=${messageOf(one, id).receipt_reference}`;
    expect(
      (await post(one.verifier, { url, body: JSON.stringify({ id: "x", status: "DELIVERED" }), headers: { "content-type": "application/json" } })).status,
    ).toBe(200);
    expect(await told(one, id)).toEqual(["1:submitted", "1:delivered"]);
  });
});

describe("registered texts (India's DLT), through a verifier", () => {
  const registered = { IN: { text: "{code} is your code. ACME", ids: { entity: "1101000000001", template: "1107000000002" } } };
  const places: readonly (readonly [string, string, string])[] = [
    ["plivo", "dlt_entity_id", "dlt_template_id"],
    ["aws", "DestinationCountryParameters.IN_ENTITY_ID", "DestinationCountryParameters.IN_TEMPLATE_ID"],
    ["vonage", "sms.entity_id", "sms.content_id"],
    ["infobip", "messages.0.options.regional.indiaDlt.principalEntityId", "messages.0.options.regional.indiaDlt.contentTemplateId"],
  ];
  const send = async (name: string, number: string, more: object = {}) => {
    const carrier = await run(scriptOf(name));
    const one = service({
      sender: make(name, { ...more, baseUrl: carrier.url }) as never,
      message: { registered, domain: "example.com" },
      policy: { limits: wide },
    });
    await one.create(number, { device_type: "WEB" });
    return { text: carrier.taken[0]?.text, fields: fieldsOf(carrier.requests[0] as SeenRequest) };
  };

  it.each(places)("%s: sends the exact text, without a last line, and the ids in their documented fields, in India only", async (name, entity, template) => {
    const india = await send(name, "+919876543210");
    expect(india.text).toMatch(/^\d{6} is your code\. ACME$/);
    expect([at(india.fields, entity), at(india.fields, template)]).toEqual(["1101000000001", "1107000000002"]);
    const france = await send(name, "+33612345678");
    expect(france.text).toMatch(/@example\.com #\d{6}$/);
    expect(at(france.fields, entity)).toBeUndefined();
    expect(JSON.stringify(france.fields)).not.toContain("1101000000001");
  });

  it.each(carrierNames.filter((name) => !places.some(([one]) => one === name)))(
    "%s: sends the exact text, and the ids from the country's `extra`",
    async (name) => {
      const extra = { IN: { DltId: "1107" }, default: { Tag: "t" } };
      const india = await send(name, "+919876543210", { extra });
      expect(india.text).toMatch(/^\d{6} is your code\. ACME$/);
      expect(JSON.stringify(india.fields)).toContain("1107");
      expect(JSON.stringify((await send(name, "+33612345678", { extra })).fields)).not.toContain("1107");
    },
  );
});

describe("`receipts: false` and sources", () => {
  const build = (sender: SmsSender, sources: readonly ReturnType<typeof httpReceipts>[]) =>
    createVerifier({
      store: listening().settings?.store as never,
      sender,
      secret: "a secret of the tests, long enough to be one",
      countries: ["FR", "US"],
      customers: [{ customer_uuid: "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f", keys: [`pp_${"0".repeat(40)}`] }],
      callbacks: { worker: false },
      receipts: { baseUrl: "https://otp.example", sources },
    });

  it.each(carrierNames)("%s: building a verifier with receipts fails without the carrier's source, unless the sender asks for none", (name) => {
    const other = [httpReceipts({ statuses: { a: "delivered" } })];
    expect(() => build(make(name), other)).toThrow(new RegExp(name, "i"));
    expect(() => build(make(name, { receipts: false }), other)).not.toThrow();
  });

  it.each(carrierNames)("%s: building a verifier fails if an allowed country has no sender", (name) => {
    const other = [httpReceipts({ statuses: { a: "delivered" } })];
    expect(() => build(make(name, { receipts: false, from: { FR: "ACME" } }), other)).toThrow(/US/);
    expect(() => build(make(name, { receipts: false, from: { FR: "ACME", US: "+15005550006" } }), other)).not.toThrow();
  });
});

describe("phoneproof/senders/kit, for a custom carrier", () => {
  const api: CarrierApi = {
    provider: "acme",
    url: "https://api.acme.example",
    request: (message, { baseUrl, from, extra, ttl }) => ({ url: `${baseUrl}/m`, json: { ...extra, to: message.to, from, text: message.text, ttl } }),
    accepted: ({ json }) => acceptedAs(pick(json, "id")),
  };
  const acme = (options: CarrierOptions, more: Partial<CarrierApi> = {}) => carrierSender("acmeSender", options, { ...api, ...more });
  const bad = () => {
    throw new Error("broken for +14155552671 and 493817");
  };

  it("a mistake of its author is `rejected` before the request, and never `rejected` once the message may be out", async () => {
    const { url, seen } = await anything(200, '{"id":"1"}');
    const { url: refusing } = await anything(422, '{"error":"E1"}');
    for (const [more, baseUrl, outcome] of [
      [{ request: bad }, url, "rejected"],
      [{ request: async () => bad() }, url, "rejected"],
      [{ request: () => ({}) }, url, "rejected"],
      [{ request: () => ({ url: 7 }) }, url, "rejected"],
      [{ request: () => ({ url, headers: { "bad name": "x" } }) }, url, "rejected"],
      [{ request: () => ({ url, headers: { a: 7 } }) }, url, "any"],
      [{ accepted: bad }, url, "unknown"],
      [{ accepted: () => undefined }, url, "unknown"],
      [{ accepted: () => ({ outcome: "sent" }) }, url, "unknown"],
      [{ judgeFirst: bad }, url, "unknown"],
      [{ errorCode: bad }, refusing, "any"],
      [{ notSent: bad, errorCode: () => "E1" }, refusing, "any"],
    ] as const) {
      const outcomes: string[] = [];
      const sender = acme({ from: "ACME", baseUrl }, more as never);
      await sender.send(aMessage(), inTime()).then(
        (answer) => {
          outcomes.push(String(answer?.outcome));
          expect(JSON.stringify(answer) ?? "").not.toMatch(/493817|4155552671/);
        },
        (error: unknown) => outcomes.push(`thrown ${String(error)}`),
      );
      // The verifier treats an invalid result and a rejected promise as `unknown`.
      if (outcome === "rejected") expect(outcomes, String(more)).toEqual(["rejected"]);
      else if (outcome === "unknown") expect(outcomes).not.toContain("rejected");
    }
    expect(seen.length).toBeGreaterThan(0);
  });

  it.each([undefined, null])("a `request` that returns %j is rejected, because nothing was sent", async (request) => {
    expect(await acme({ from: "ACME" }, { request: () => request as never }).send(aMessage(), inTime())).toMatchObject({ outcome: "rejected" });
  });

  it.each<[string, () => unknown]>([
    ["no `from`", () => acme({})],
    ["a map without senders", () => acme({ from: {} })],
    ["conversions that nobody hears", () => acme({ from: "A", conversions: true })],
    ["a base URL that is none", () => acme({ from: "A", baseUrl: "acme" })],
    ["a text that is missing", () => requireText("acmeSender", "apiKey", undefined, "Pass it.")],
    ["a text of blanks", () => requireText("acmeSender", "apiKey", "  ", "Pass it.")],
    ["a secret that is missing", () => openSecrets("acmeReceipts", "secret", undefined, "Pass it.")],
    ["a list of no secrets", () => openSecrets("acmeReceipts", "secret", [], "Pass it.")],
    ["a list with an empty secret", () => openSecrets("acmeReceipts", "secret", ["good-secret", ""], "Pass it.")],
    ["a URL secret that can be guessed", () => openUrlSecret("acmeReceipts", "secret")],
    ["a frame without a sender", () => framedSender("acmeSender", {}, { provider: "acme", hand: async () => ({ outcome: "accepted" }) })],
  ])("%s is a TypeError at construction", (_, build) => {
    expect(build).toThrow(TypeError);
  });

  it("an unknown status settles nothing, a report without one is malformed, and malformed ids are left out", () => {
    const words = new Map([["ok", "delivered"]] as const);
    expect(readReport({ messageId: "1", status: "new" }, words)).toEqual({ receipts: [] });
    expect(readReport({ messageId: "1", status: " OK ".trim() }, words)).toMatchObject({ receipts: [{ status: "delivered" }] });
    for (const status of [undefined, null, {}, []]) expect(readReport({ messageId: "1", status }, words)).toMatchObject({ refused: "malformed" });
    for (const status of ["__proto__", "constructor", "toString"]) expect(readReport({ messageId: "1", status }, words)).toEqual({ receipts: [] });
    for (const messageId of ["x".repeat(201), "a b", "a\n", "ключ"]) {
      const reading = readReport({ messageId, status: "ok" }, words);
      expect(JSON.stringify(reading)).not.toContain(messageId);
    }
    expect(readReports([], words)).toEqual(expect.objectContaining({ receipts: [] }));
    expect(readReport({ messageId: "1", status: "ok", error: "+14155552671" }, words)).not.toMatchObject({
      receipts: [{ error: expect.stringContaining("4155552671") }],
    });
  });

  it("a message has a receipt URL and a reference, but neither with `receipts: false`", async () => {
    const { url, seen } = await anything(200, '{"id":"1"}');
    const message = aMessage({ receipt_reference: reference, receipt_url: `https://otp.example/receipts/{provider}?r=${reference}` });
    const own = {
      request: (sent: typeof message, { baseUrl }: { baseUrl: string }) => ({
        url: `${baseUrl}/m`,
        json: { cb: sent.receipt_url ?? null, ref: sent.receipt_reference ?? null },
      }),
    };
    await acme({ from: "A", baseUrl: url }, own as never).send(message, inTime());
    await acme({ from: "A", baseUrl: url, receipts: false }, own as never).send(message, inTime());
    expect(seen.map(({ body }) => JSON.parse(body))).toEqual([
      { cb: `https://otp.example/receipts/acme?r=${reference}`, ref: reference },
      { cb: null, ref: null },
    ]);
  });

  it("an inbox needs no receipts and reaches every country", () => {
    const inbox = inboxSender();
    expect([inbox.receiptProviders, inbox.reaches?.("FR") ?? true]).toEqual([undefined, true]);
  });
});
