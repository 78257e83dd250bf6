import { expect, it } from "vitest";
import { parseJson } from "../../adapters/kit/json.js";
import type { Fetch } from "../../adapters/kit/transport.js";
import { type HttpSenderOptions, httpReceipts, httpSender } from "../../adapters/sms/http.js";
import { aMessage, aReceipt, inTime, reference } from "../support/carriers/messages.js";

/** Sends one message and returns the request. */
async function request(options: HttpSenderOptions, message = aMessage()) {
  const seen: { url: string; method: string; headers: Record<string, string>; body?: string }[] = [];
  const fetch: Fetch = async (url, { method, headers, body }) => {
    seen.push({ url, method, headers, ...(body === undefined ? {} : { body }) });
    return new Response("ok");
  };
  expect(await httpSender({ ...options, fetch }).send(message, inTime())).toEqual({ outcome: "accepted" });
  return seen[0]!;
}

const awkward = aMessage({ text: 'a&b=c#d?e%20 "{code}" {to}\r\nünï 😀', receipt_reference: reference, receipt_url: "https://otp.example/r?a=1&t=x" });

it("fills in a URL, with every value percent-encoded", async () => {
  const made = await request({ url: "https://sms.example/send?to={to}&n={to_digits}&m={text}&ref={reference}&cb={receipt_url}&c={country}" }, awkward);
  const query = new URL(made.url).searchParams;
  expect(made.method).toBe("GET");
  expect(Object.fromEntries(query)).toEqual({
    to: "+14155552671",
    n: "14155552671",
    m: awkward.text,
    ref: reference,
    cb: awkward.receipt_url,
    c: "US",
  });
});

it("fills in a form, JSON and headers; placeholders inside values are not expanded, and line breaks in headers become spaces", async () => {
  const latin = { ...awkward, text: awkward.text.replace(" 😀", "") };
  const form = await request({ url: "https://sms.example/send", form: { dest: "{to}", msg: "{text}", kind: "otp" } }, awkward);
  expect(form).toMatchObject({ method: "POST", headers: { "content-type": "application/x-www-form-urlencoded" } });
  expect(Object.fromEntries(new URLSearchParams(form.body))).toEqual({ dest: "+14155552671", msg: awkward.text, kind: "otp" });
  const made = await request(
    {
      url: "https://sms.example/send",
      method: "PUT",
      headers: { "X-Text": "{text}", "Content-Type": "application/vnd.sms+json" },
      json: { list: [{ "{to}": "{text}", n: 1, yes: true, none: null }], code: "{code}" },
    },
    latin,
  );
  expect(made.method).toBe("PUT");
  expect(JSON.parse(made.body ?? "")).toEqual({ list: [{ "{to}": latin.text, n: 1, yes: true, none: null }], code: "493817" });
  expect(made.headers["x-text"]).toBe('a&b=c#d?e%20 "{code}" {to} ünï');
  expect(made.headers["content-type"]).toBe("application/vnd.sms+json");
});

it("braces that hold no name are sent as they stand", async () => {
  const made = await request({ url: "https://sms.example/send", form: { payload: '{"message":"{code}","options":{},"{ x }":[{"a b":1}]}' } }, awkward);
  expect(new URLSearchParams(made.body).get("payload")).toBe('{"message":"493817","options":{},"{ x }":[{"a b":1}]}');
});

it("a message with a header value that cannot be sent is `rejected`, not `unknown`, and no request is made", async () => {
  const sent: string[] = [];
  const fetch: Fetch = async (url) => {
    sent.push(url);
    return new Response("ok");
  };
  for (const headers of [{ "X-Text": "{text}" }]) {
    const sender = httpSender({ url: "https://sms.example/send?t={text}", headers, fetch });
    expect(await sender.send(awkward, inTime())).toMatchObject({
      outcome: "rejected",
      reason: expect.stringMatching(/^not sent: the request could not be made: the header x-\S+ has a value that no header can have/),
    });
  }
  expect(sent).toEqual([]);
});

it("{is_unicode} and {coding} show the encoding that the text needs; url may be a function, and an invalid URL from it gives `rejected`", async () => {
  const url = "https://sms.example/send?t={text}&u={is_unicode}&coding={coding}";
  expect((await request({ url })).url).toMatch(/u=0&coding=0$/);
  expect((await request({ url }, aMessage({ text: "Кοд 493817" }))).url).toMatch(/u=1&coding=2$/);
  const byRegion = ({ country, text }: { country?: string | undefined; text: string }) =>
    `https://${country?.toLowerCase()}.sms.example/?t=${encodeURIComponent(text)}`;
  expect((await request({ url: byRegion })).url).toBe("https://us.sms.example/?t=Your%20code%20is%20493817.");
  for (const bad of [() => "not a URL", () => "file:///etc/passwd", () => undefined as never]) {
    const outcome = await httpSender({ url: bad, fetch: async () => new Response("ok") }).send(aMessage(), inTime());
    expect(outcome).toMatchObject({ outcome: "rejected" });
  }
});

it("accepts a body that the user's function builds", async () => {
  const made = await request({
    url: "https://sms.example/send",
    headers: { "content-type": "text/xml" },
    from: "ACME",
    body: ({ to }, from) => `<sms from="${from}" to="${to}"/>`,
  });
  expect(made).toMatchObject({ method: "POST", body: '<sms from="ACME" to="+14155552671"/>' });
});

it("placeholders for which the message has no value become empty", async () => {
  const { country: _, ...message } = aMessage();
  expect((await request({ url: "https://sms.example/?t={text}&c={country}&r={receipt_url}&f={from}", from: "ACME" }, message)).url).toBe(
    "https://sms.example/?t=Your%20code%20is%20493817.&c=&r=&f=ACME",
  );
});

it.each<[string, Partial<HttpSenderOptions>, Response, object]>([
  ["any 2xx", {}, new Response("whatever"), { outcome: "accepted" }],
  [
    "a function's yes",
    { accepted: ({ status }) => status === 201, messageId: ({ text }) => text },
    new Response("m1", { status: 201 }),
    { outcome: "accepted", messageId: "m1" },
  ],
  ["a function's no", { accepted: ({ status }) => status === 201 }, new Response("m1"), { outcome: "unknown" }],
  ["a pattern with a memory", { accepted: /ok/gy }, new Response("ok"), { outcome: "accepted" }],
  [
    "a number in JSON",
    { accepted: { path: "code", values: [0] }, messageId: "id" },
    Response.json({ code: 0, id: 12 }),
    { outcome: "accepted", messageId: "12" },
  ],
  ["an own path only", { accepted: { path: "constructor.name", values: ["Object"] } }, Response.json({}), { outcome: "unknown" }],
  ["an id that is no id", { messageId: "id" }, Response.json({ id: "two words" }), { outcome: "accepted" }],
  ["rejected before accepted", { accepted: /./, rejected: /barred/ }, new Response("barred"), { outcome: "rejected", reason: "rejected by the carrier" }],
  [
    "rejected at 500",
    { rejected: { path: "sent", values: [false] }, errorCode: "error" },
    Response.json({ sent: false, error: "E9" }, { status: 500 }),
    { outcome: "rejected", reason: "rejected by the carrier, code E9" },
  ],
  ["a code that is the number", { errorCode: "error" }, Response.json({ error: "14155552671" }, { status: 400 }), { outcome: "rejected", reason: "HTTP 400" }],
  ["500 without more", {}, new Response("", { status: 500 }), { outcome: "unknown", reason: "HTTP 500" }],
])("reads a response: %s", async (_, options, answer, outcome) => {
  const sender = httpSender({ url: "https://sms.example/?t={text}", fetch: async () => answer, ...options });
  const first = await sender.send(aMessage(), inTime());
  expect(first).toMatchObject(outcome);
  if (!("messageId" in outcome)) expect(first).not.toHaveProperty("messageId");
});

it("patterns with the g flag work for every message", async () => {
  const sender = httpSender({ url: "https://sms.example/?t={text}", fetch: async () => new Response("ok 1"), accepted: /ok/g, messageId: /ok (\d)/g });
  for (let i = 0; i < 3; i += 1) expect(await sender.send(aMessage(), inTime())).toEqual({ outcome: "accepted", messageId: "1" });
});

it.each<[HttpSenderOptions, RegExp]>([
  [{} as never, /^httpSender: option url is missing\. Pass the carrier's address/],
  [{ url: "/send?t={text}" }, /option url is not a URL/],
  [{ url: "https://sms.example/send" }, /option url, form or json has neither \{text\} nor \{code\} in it/],
  [{ url: "https://sms.example/?t={text}&x={phone}" }, /has an unknown placeholder \{phone\}\. Those known are \{to\}/],
  [{ url: "https://sms.example/", json: { a: [{ b: "{txt}" }] } }, /has an unknown placeholder \{txt\}/],
  [{ url: "https://sms.example/?t={text}&x={toDigits}" }, /has an unknown placeholder \{toDigits\}\. Those known are \{to\}/],
  [{ url: "https://sms.example/?t={text}", headers: { x: "{To}" } }, /has an unknown placeholder \{To\}/],
  [{ url: "https://sms.example/?t={text}", form: { x: "{to-digits}" } }, /has an unknown placeholder \{to-digits\}/],
  [{ url: "https://sms.example/?t={text}", json: { x: "{to2}" } }, /has an unknown placeholder \{to2\}/],
  [{ url: "https://sms.example/?t={text}", headers: "Bearer abc" as never }, /option headers must be an object of texts/],
  [{ url: "https://sms.example/?t={text}", form: ["{text}"] as never }, /option form must be an object of texts/],
  [{ url: "https://sms.example/", form: { a: "{text}" }, json: { a: "{text}" } }, /option form json and body exclude each other/],
  [{ url: "https://sms.example/", method: "GET", form: { a: "{text}" } }, /option method GET takes no body/],
  [{ url: "https://sms.example/?t={text}", method: "post" as never }, /option method is not one of GET, POST, PUT\. Choose one/],
  [{ url: "https://sms.example/?t={text}", errorCode: 7 as never }, /option errorCode must be a non-empty string/],
  [{ url: "https://sms.example/?t={text}&f={from}" }, /option from is missing, and the template has \{from\} in it/],
  [{ url: "https://sms.example/?t={text}", from: "ACME" }, /option from is not used/],
  [{ url: "https://sms.example/?t={text}", accepted: "ok" as never }, /option accepted is not a test/],
  [{ url: "https://sms.example/?t={text}", rejected: { path: "a" } as never }, /option rejected is not a test/],
  [{ url: "https://sms.example/?t={text}", messageId: "" }, /option messageId must be a non-empty string/],
  [{ url: "https://sms.example/?t={text}", timeout: -1 }, /option timeout/],
])("invalid options throw at construction: %j", (options, message) => {
  expect(() => httpSender(options)).toThrow(TypeError);
  expect(() => httpSender(options)).toThrow(message);
});

it("an id of 64 bits that is a JSON number is the same text in the response and in the receipt", async () => {
  const id = "1234567890123456789";
  const fetch: Fetch = async () => new Response(`{"data":[{"id":${id}}]}`);
  const sender = httpSender({ url: "https://sms.example/send?to={to}&text={text}", receiptsById: true, messageId: "data.0.id", fetch });
  expect(await sender.send(aMessage(), inTime())).toMatchObject({ outcome: "accepted", messageId: id });
  const secret = "0123456789abcdefABC";
  const request = aReceipt({ url: `https://otp.example/receipts/http?key=${secret}`, body: `{"id":${id},"status":"DELIVRD"}` });
  const source = httpReceipts({ secret, statuses: { DELIVRD: "delivered" } });
  expect(await source.read(request, Date.now())).toMatchObject({ receipts: [{ messageId: id, status: "delivered" }] });
});

it.each([
  [`{"1234567890123456789":[1234567890123456789 ,-1234567890123456789]}`, { "1234567890123456789": ["1234567890123456789", "-1234567890123456789"] }],
  [`["\\"1234567890123456789\\\\",9007199254740991,9007199254740993]`, ['"1234567890123456789\\', 9007199254740991, "9007199254740993"]],
  ["[0.2500000000000000000,1000000000000000000.0,1000000000000000000e2]", [0.25, 1e18, 1e20]],
  ["1234567890123456789", "1234567890123456789"],
  [`{"id":1234567890123456789`, undefined],
])("JSON keeps integers that no number holds as text, and changes nothing else: %s", (text, value) => {
  expect(parseJson(text)).toEqual(value);
});

it("a long text with a long number is read at once, valid or not", () => {
  const began = performance.now();
  const escapes = '\\"'.repeat(100_000);
  expect(parseJson(`{"id":1234567890123456789,"${escapes}`)).toBeUndefined();
  expect(parseJson(`{"id":1234567890123456789,"a":"${escapes}"}`)).toMatchObject({ id: "1234567890123456789" });
  expect(performance.now() - began).toBeLessThan(1_000);
});
