import { expect, it } from "vitest";
import { messageBirdReceipts } from "../../adapters/sms/messagebird.js";
import { plivoReceipts } from "../../adapters/sms/plivo.js";
import { twilioReceipts } from "../../adapters/sms/twilio.js";
import { aReceipt } from "../support/carriers/messages.js";

/* Signatures that the carriers' own libraries made or accepted.
   They check our code without relying on our own reading of the carriers' documentation. */

const form = (fields: readonly (readonly [string, string])[]) => new URLSearchParams(fields.map(([name, value]): [string, string] => [name, value])).toString();
const authentic = (reading: object) => !("refused" in reading && reading.refused === "signature");

/** Made by `getExpectedTwilioSignature` of npm twilio 6.2.0; the first is from Twilio's page "Webhooks security". */
const twilio = [
  [
    "12345",
    "https://mycompany.com/myapp.php?foo=1&bar=2",
    [
      ["CallSid", "CA1234567890ABCDE"],
      ["Caller", "+12349013030"],
      ["Digits", "1234"],
      ["From", "+12349013030"],
      ["To", "+18005551212"],
    ],
    "0/KCTR6DLpKmkAf8muzZqo1nDgQ=",
  ],
  [
    "twilio-auth-token",
    "https://otp.example/receipts/twilio?a=1&t=abc-_d",
    [
      ["MessageSid", "SM00000000000000000000000000000001"],
      ["MessageStatus", "delivered"],
      ["To", "+14155552671"],
      ["AccountSid", "AC1"],
    ],
    "P8dthxdwqyqf1C0UZa28nnBNMvU=",
  ],
  [
    "twilio-auth-token",
    "https://otp.example/r",
    [
      ["MessageSid", "SM1"],
      ["MessageStatus", "sent"],
      ["Media", "b"],
      ["Media", "a"],
      ["Media", "a"],
    ],
    "k0FKD4kJk1GGnpz9AlRJnFMSgGQ=",
  ],
] as const;

it.each(twilio)("twilio: accepts its library's signature with auth token %s for %s", async (authToken, url, fields, signature) => {
  const headers = { "x-twilio-signature": signature };
  const source = twilioReceipts({ authToken });
  expect(authentic(await source.read(aReceipt({ url, headers, body: form(fields) }), 0))).toBe(true);
  expect(authentic(await source.read(aReceipt({ url, headers, body: form([...fields, ["More", "1"]]) }), 0))).toBe(false);
  expect(authentic(await source.read(aReceipt({ url: `${url}#`, headers, body: form(fields) }), 0))).toBe(false);
});

it("twilio: a port in the URL makes no difference, but another scheme or order of the query does", async () => {
  const [, [authToken, , fields, signature]] = twilio;
  const read = (url: string) => twilioReceipts({ authToken }).read(aReceipt({ url, headers: { "x-twilio-signature": signature }, body: form(fields) }), 0);
  expect(await read("https://otp.example:443/receipts/twilio?a=1&t=abc-_d")).toMatchObject({ receipts: [{ status: "delivered" }] });
  expect(authentic(await read("https://otp.example:8443/receipts/twilio?a=1&t=abc-_d"))).toBe(true);
  expect(authentic(await read("http://otp.example/receipts/twilio?a=1&t=abc-_d"))).toBe(false);
  expect(authentic(await read("https://otp.example/receipts/twilio?t=abc-_d&a=1"))).toBe(false);
});

it("twilio: a JSON body is checked against its hash in the URL", async () => {
  const body = '{"MessageSid":"SM1","MessageStatus":"sent"}';
  const url = "https://otp.example/r?bodySHA256=fc1a85c3da8e0304d7195ae2bea3fa391521a8060142a85dbfaf6a9db8025570";
  const headers = { "x-twilio-signature": "l32MRhUlh/NzSPRIayMSTSXY5nE=", "content-type": "application/json" };
  const source = twilioReceipts({ authToken: "twilio-auth-token" });
  expect(authentic(await source.read(aReceipt({ url, headers, body }), 0))).toBe(true);
  expect(authentic(await source.read(aReceipt({ url, headers, body: body.replace("sent", "read") }), 0))).toBe(false);
  expect(authentic(await source.read(aReceipt({ url: url.replace("fc1a", "0c1a"), headers, body }), 0))).toBe(false);
});

/** Accepted by `validateV3Signature` of npm plivo 4.79.0. */
const plivoFields = [
  ["MessageUUID", "db3ce55a-7f1d-11e1-8ea7-1231380bc196"],
  ["Status", "delivered"],
  ["To", "14155552671"],
] as const;
const nonce = "05429567804466091622";

it.each([
  ["without a query", "https://otp.example/receipts/plivo", plivoFields, "4bEJnzpEYwTl/N/E+pEaoh3PFc+0Zc+W+T5AT0pukyg="],
  ["with a query, out of order and escaped", "https://otp.example/receipts/plivo?t=x%20y&a=1", plivoFields, "rndaf838xwVNmluKUoNKihkK19POCDY4Lgj0yTBNSS4="],
  ["with a port", "https://otp.example:8443/receipts/plivo?a=1", plivoFields, "kIENZrs9bTnw82A4vdWKLj4Loi63lhPa/ssYUEegiLs="],
  ["with a query alone", "https://otp.example/receipts/plivo?a=1", [], "XL9rMt/AbXf6A18fqzUJSt5HsFyVs4ZLVTlSJ5dojt8="],
  ["with nothing at all", "https://otp.example/receipts/plivo", [], "Ibut/JxOzPqQrLbT0H1/UrN74QcsPxjyQ6K9o91HEDw="],
] as const)("plivo: accepts its library's V3 signature of a URL %s", async (_, url, fields, signature) => {
  const read = (headers: Record<string, string>, body: string) => plivoReceipts({ authToken: "plivo-auth-token" }).read(aReceipt({ url, headers, body }), 0);
  const headers = { "x-plivo-signature-v3": signature, "x-plivo-signature-v3-nonce": nonce };
  expect(authentic(await read(headers, form(fields)))).toBe(true);
  expect(authentic(await read({ ...headers, "x-plivo-signature-v3": `AAAA, ${signature}` }, form(fields)))).toBe(true);
  expect(authentic(await read({ ...headers, "x-plivo-signature-v3-nonce": "1" }, form(fields)))).toBe(false);
  expect(authentic(await read(headers, form([...fields, ["Z", "1"]])))).toBe(false);
});

it("plivo: a V2 signature counts without a V3 one, but not next to an invalid V3 one or with `acceptV2: false`", async () => {
  // Accepted by `validateSignature` of npm plivo 4.79.0.
  const v2 = { "x-plivo-signature-v2": "f0FM6L47RsAVuCJwAV5YIRNVAnHYxciYHgUohK9lgwg=", "x-plivo-signature-v2-nonce": nonce };
  const request = (headers: Record<string, string>) => aReceipt({ url: "https://otp.example/receipts/plivo?a=1", headers, body: form(plivoFields) });
  const source = plivoReceipts({ authToken: "plivo-auth-token" });
  expect(await source.read(request(v2), 0)).toMatchObject({ receipts: [{ status: "delivered" }] });
  expect(await source.read(request({ ...v2, "x-plivo-signature-v2": "AAAA" }), 0)).toMatchObject({ refused: "signature" });
  expect(await source.read(request({ ...v2, "x-plivo-signature-v3": "AAAA", "x-plivo-signature-v3-nonce": nonce }), 0)).toMatchObject({ refused: "signature" });
  expect(await plivoReceipts({ authToken: "plivo-auth-token", acceptV2: false }).read(request(v2), 0)).toMatchObject({ refused: "signature" });
});

/** From `lib/testdata/webhook-signature-jwt-reference.json` of npm messagebird 4.0.1. */
const messageBird = [
  {
    name: "Valid JWT with no URL parameters or payload - GET",
    secret: "36efdd1aace2e26cd490f0d951138253bef2f7c6d34d18981da781555cc4cebb",
    url: "https://example.com/",
    time: "2021-07-05T12:00:00+02:00",
    token:
      "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJNZXNzYWdlQmlyZCIsIm5iZiI6MTYyNTQ3OTIwMCwiZXhwIjoxNjI1NDc5MjYwLCJqdGkiOiI1OWEyNDRkYy1lOWFkLTRlMjMtOTc3OC0zNzFmYWEyMzhmNzIiLCJ1cmxfaGFzaCI6IjBmMTE1ZGIwNjJiN2MwZGQwMzBiMTY4NzhjOTlkZWE1YzM1NGI0OWRjMzdiMzhlYjg4NDYxNzljNzc4M2U5ZDcifQ.6Fp0rVOsRr1fj9S2GidXAfkmPVofKr8_RTffC6G6r2E",
    valid: true,
  },
  {
    name: "Valid JWT with URL parameters and payload - POST",
    secret: "36efdd1aace2e26cd490f0d951138253bef2f7c6d34d18981da781555cc4cebb",
    url: "https://example.com/path?bar=1&foo=2",
    payload: "Hello, World!",
    time: "2021-07-05T12:00:00+02:00",
    token:
      "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJNZXNzYWdlQmlyZCIsIm5iZiI6MTYyNTQ3OTIwMCwiZXhwIjoxNjI1NDc5MjYwLCJqdGkiOiI5M2U1NTAwNi1hMGU4LTQ1MjYtYTE5MC1mYTVmZjAwZWExMTYiLCJ1cmxfaGFzaCI6IjQxZjA1ZjBkZGQwYTIyYWIyMDlhYzQ2ZjQ3YzQ1NzJkOWNlZmEyNTdlZDc0YjI0MDA0YmFlNzUzZWNlNmMyNjAiLCJwYXlsb2FkX2hhc2giOiJkZmZkNjAyMWJiMmJkNWIwYWY2NzYyOTA4MDllYzNhNTMxOTFkZDgxYzdmNzBhNGIyODY4OGEzNjIxODI5ODZmIn0._H--TOuYFLpeEH39-rg5E3IHVkjHozBcaKVWPRC5m9I",
    valid: true,
  },
  {
    name: "Token received before it was issued - GET",
    secret: "36efdd1aace2e26cd490f0d951138253bef2f7c6d34d18981da781555cc4cebb",
    url: "https://example.com/",
    time: "2021-07-05T12:00:00+02:00",
    token:
      "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJNZXNzYWdlQmlyZCIsIm5iZiI6MTYyNTQ4MjgwMCwiZXhwIjoxNjI1NDgyODYwLCJqdGkiOiJmOWY4YzM4Mi0yNDQ5LTQzMTEtYjcyYi0xZGY3MTY4NzkzMWUiLCJ1cmxfaGFzaCI6IjBmMTE1ZGIwNjJiN2MwZGQwMzBiMTY4NzhjOTlkZWE1YzM1NGI0OWRjMzdiMzhlYjg4NDYxNzljNzc4M2U5ZDcifQ.ZELgDFNGhjZH9CffQKcq3sytBe2I0KciLxpBhcfstHQ",
    valid: false,
  },
  {
    name: "Token received after it was expired - GET",
    secret: "36efdd1aace2e26cd490f0d951138253bef2f7c6d34d18981da781555cc4cebb",
    url: "https://example.com/",
    time: "2021-07-05T12:00:00+02:00",
    token:
      "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJNZXNzYWdlQmlyZCIsIm5iZiI6MTYyNTQ3NTYwMCwiZXhwIjoxNjI1NDc1NjYwLCJqdGkiOiI1ZjAyZjUyMi02MDMwLTQ2YzgtYjVhMy0wMTI0NjQ3OGQ4YmMiLCJ1cmxfaGFzaCI6IjBmMTE1ZGIwNjJiN2MwZGQwMzBiMTY4NzhjOTlkZWE1YzM1NGI0OWRjMzdiMzhlYjg4NDYxNzljNzc4M2U5ZDcifQ.45MSST3B_2PsjNUeiuW54_vUQgVw4rBXrdWrOUEz3lM",
    valid: false,
  },
  {
    name: "Token received on different URL (parameters were sorted out of order) - GET",
    secret: "36efdd1aace2e26cd490f0d951138253bef2f7c6d34d18981da781555cc4cebb",
    url: "https://example.com/path?foo=1&bar=2",
    time: "2021-07-05T12:00:00+02:00",
    token:
      "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJNZXNzYWdlQmlyZCIsIm5iZiI6MTYyNTQ3OTIwMCwiZXhwIjoxNjI1NDc5MjYwLCJqdGkiOiJhNzVjOTA5Ni1lODIzLTQ0MmItODVmMi03ZDNjOWQ5YjcyNmIiLCJ1cmxfaGFzaCI6IjZhMDIyZDgzNGMxODMzMGJhYWQ4YTJiZDYxMzUxNzNlZDIxNjEwYTQ1NDUxNmJlMGRmM2YxY2MwMTUxNjEwZWEifQ.z6Sw1XQIM0wuEQGBhXBdawDIIrtMg2XnmA_bpDq53pE",
    valid: false,
  },
  {
    name: "Payload does not match - POST",
    secret: "36efdd1aace2e26cd490f0d951138253bef2f7c6d34d18981da781555cc4cebb",
    url: "https://example.com/",
    payload: "Hello, World!",
    time: "2021-07-05T12:00:00+02:00",
    token:
      "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJNZXNzYWdlQmlyZCIsIm5iZiI6MTYyNTQ3OTIwMCwiZXhwIjoxNjI1NDc5MjYwLCJqdGkiOiIxNDUwMTUzMi05NmYyLTQ2ODQtOTgzMi02OGYwOTUxYWUzNDIiLCJ1cmxfaGFzaCI6IjBmMTE1ZGIwNjJiN2MwZGQwMzBiMTY4NzhjOTlkZWE1YzM1NGI0OWRjMzdiMzhlYjg4NDYxNzljNzc4M2U5ZDciLCJwYXlsb2FkX2hhc2giOiJmYjYyZjAyYWNkYTdkNzQxNzdhNzAxYTFjZTAwNmU2YmFjZDkwYzdkNGQ3YWI0ODE2OTJjMWRhNDdjODEwNzZiIn0.m79RCwO6dGa9pvzsQypkVuXQ6eM0CkRl6_U7MfWg6TM",
    valid: false,
  },
  {
    name: "Different secret - GET",
    secret: "36efdd1aace2e26cd490f0d951138253bef2f7c6d34d18981da781555cc4cebb",
    url: "https://example.com/",
    time: "2021-07-05T12:00:00+02:00",
    token:
      "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJNZXNzYWdlQmlyZCIsIm5iZiI6MTYyNTQ3OTIwMCwiZXhwIjoxNjI1NDc5MjYwLCJqdGkiOiIyNDNjMjdhZS0yZjAyLTQ2YTAtODg1Mi1jNjZmMzdlYTlmNDYiLCJ1cmxfaGFzaCI6IjBmMTE1ZGIwNjJiN2MwZGQwMzBiMTY4NzhjOTlkZWE1YzM1NGI0OWRjMzdiMzhlYjg4NDYxNzljNzc4M2U5ZDcifQ.JgSeYyOtlEKAXk8bz30iJI4tXgf4lxknoiezawuVhb4",
    valid: false,
  },
  {
    name: "payload was removed in transit - POST",
    secret: "36efdd1aace2e26cd490f0d951138253bef2f7c6d34d18981da781555cc4cebb",
    url: "https://example.com/",
    payload: "",
    time: "2021-07-05T12:00:00+02:00",
    token:
      "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJNZXNzYWdlQmlyZCIsIm5iZiI6MTYyNTQ3OTIwMCwiZXhwIjoxNjI1NDc5MjYwLCJqdGkiOiIxNDUwMTUzMi05NmYyLTQ2ODQtOTgzMi02OGYwOTUxYWUzNDIiLCJ1cmxfaGFzaCI6IjBmMTE1ZGIwNjJiN2MwZGQwMzBiMTY4NzhjOTlkZWE1YzM1NGI0OWRjMzdiMzhlYjg4NDYxNzljNzc4M2U5ZDciLCJwYXlsb2FkX2hhc2giOiJkZmZkNjAyMWJiMmJkNWIwYWY2NzYyOTA4MDllYzNhNTMxOTFkZDgxYzdmNzBhNGIyODY4OGEzNjIxODI5ODZmIn0.bHfsjj3tljfzTufoG3EU3p_yFrQh9CufyzRSaRMd4ss",
    valid: false,
  },
  {
    name: "payload was added in transit - POST",
    secret: "36efdd1aace2e26cd490f0d951138253bef2f7c6d34d18981da781555cc4cebb",
    url: "https://example.com/",
    payload: "Hello, World!",
    time: "2021-07-05T12:00:00+02:00",
    token:
      "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJNZXNzYWdlQmlyZCIsIm5iZiI6MTYyNTQ3OTIwMCwiZXhwIjoxNjI1NDc5MjYwLCJqdGkiOiI1OWEyNDRkYy1lOWFkLTRlMjMtOTc3OC0zNzFmYWEyMzhmNzIiLCJ1cmxfaGFzaCI6IjBmMTE1ZGIwNjJiN2MwZGQwMzBiMTY4NzhjOTlkZWE1YzM1NGI0OWRjMzdiMzhlYjg4NDYxNzljNzc4M2U5ZDcifQ.6Fp0rVOsRr1fj9S2GidXAfkmPVofKr8_RTffC6G6r2E",
    valid: false,
  },
  {
    name: "Port number in URL - GET",
    secret: "36efdd1aace2e26cd490f0d951138253bef2f7c6d34d18981da781555cc4cebb",
    url: "https://example.com:8080/",
    time: "2021-07-05T12:00:00+02:00",
    token:
      "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJNZXNzYWdlQmlyZCIsIm5iZiI6MTYyNTQ3OTIwMCwiZXhwIjoxNjI1NDc5MjYwLCJqdGkiOiI1OWEyNDRkYy1lOWFkLTRlMjMtOTc3OC0zNzFmYWEyMzhmNzIiLCJ1cmxfaGFzaCI6IjA3Zjc4NjFhNjliMTNjMjI5YzZhZTU5NmQxOThiMjc2M2IwNTRjZjVlMDAwZDczNmQxYzQ4MTAyZDc3MGNmZmMifQ.vcpa0IicGAbpo064dOjiA2VbVOR2S5uZBEaBOP16sS8",
    valid: true,
  },
  {
    name: "Special characters in URL - GET",
    secret: "36efdd1aace2e26cd490f0d951138253bef2f7c6d34d18981da781555cc4cebb",
    url: "https://example.com/?obj%5Bfield1%5D=val1&obj%5Bfield2%5D=val2&param=value+with+spaces",
    time: "2021-07-05T12:00:00+02:00",
    token:
      "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJNZXNzYWdlQmlyZCIsIm5iZiI6MTYyNTQ3OTIwMCwiZXhwIjoxNjI1NDc5MjYwLCJqdGkiOiI1OWEyNDRkYy1lOWFkLTRlMjMtOTc3OC0zNzFmYWEyMzhmNzIiLCJ1cmxfaGFzaCI6IjhhZmYzNzQ4ZDc4OWM0MzMzNTczZTFjMzFmZTViMDA0OTQwY2I1ZmM0NzQ2MGVkM2QwZTY1NGY3ZmM0ZTVmYWUifQ.mJBCMfEjKmN3IMuzqPXPHktWETrcu0iNdF3agE8PDyI",
    valid: true,
  },
  {
    name: "Special characters in the payload - POST",
    secret: "36efdd1aace2e26cd490f0d951138253bef2f7c6d34d18981da781555cc4cebb",
    url: "https://example.com/",
    payload: "Some text containg & < >, & and \\u0026",
    time: "2021-07-05T12:00:00+02:00",
    token:
      "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJNZXNzYWdlQmlyZCIsIm5iZiI6MTYyNTQ3OTIwMCwiZXhwIjoxNjI1NDc5MjYwLCJqdGkiOiI1OWEyNDRkYy1lOWFkLTRlMjMtOTc3OC0zNzFmYWEyMzhmNzIiLCJ1cmxfaGFzaCI6IjBmMTE1ZGIwNjJiN2MwZGQwMzBiMTY4NzhjOTlkZWE1YzM1NGI0OWRjMzdiMzhlYjg4NDYxNzljNzc4M2U5ZDciLCJwYXlsb2FkX2hhc2giOiIyNDMxYmQ5Y2NiNDhlZDAxNmZhZDU2N2IwNzcxMjAzOGI1Y2RkOTQ5YWM5ZDQxZmU0NjkzZDVhMzg0NWNmN2U4In0.IQiKzeEPaO3A48lhKmBDSmxZyCESPCGxdSKFdi0dEJs",
    valid: true,
  },
  {
    name: "HS384 alg - GET",
    secret: "36efdd1aace2e26cd490f0d951138253bef2f7c6d34d18981da781555cc4cebb",
    url: "https://example.com/",
    time: "2021-07-05T12:00:00+02:00",
    token:
      "eyJhbGciOiJIUzM4NCIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJNZXNzYWdlQmlyZCIsIm5iZiI6MTYyNTQ3OTIwMCwiZXhwIjoxNjI1NDc5MjYwLCJqdGkiOiI1OWEyNDRkYy1lOWFkLTRlMjMtOTc3OC0zNzFmYWEyMzhmNzIiLCJ1cmxfaGFzaCI6IjBmMTE1ZGIwNjJiN2MwZGQwMzBiMTY4NzhjOTlkZWE1YzM1NGI0OWRjMzdiMzhlYjg4NDYxNzljNzc4M2U5ZDcifQ.KNMW-29X77lZeuPmThmHWc_RUAvTkaDkpxIZK6mqE08v8mWKiU9Edh4QXwAJO2nv",
    valid: true,
  },
  {
    name: "HS512 alg - GET",
    secret: "36efdd1aace2e26cd490f0d951138253bef2f7c6d34d18981da781555cc4cebb",
    url: "https://example.com/",
    time: "2021-07-05T12:00:00+02:00",
    token:
      "eyJhbGciOiJIUzUxMiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJNZXNzYWdlQmlyZCIsIm5iZiI6MTYyNTQ3OTIwMCwiZXhwIjoxNjI1NDc5MjYwLCJqdGkiOiI1OWEyNDRkYy1lOWFkLTRlMjMtOTc3OC0zNzFmYWEyMzhmNzIiLCJ1cmxfaGFzaCI6IjBmMTE1ZGIwNjJiN2MwZGQwMzBiMTY4NzhjOTlkZWE1YzM1NGI0OWRjMzdiMzhlYjg4NDYxNzljNzc4M2U5ZDcifQ.rd6r0iMyNGnVPCwurETphE3Y8rpAyvvnUK0S8WvGUkt2E1QSRAZ7NZJZBHw1Y_Wb5W-sK9HJr_PRL2vz4jRT3Q",
    valid: true,
  },
  {
    name: "none alg - GET",
    url: "https://example.com/",
    time: "2021-07-05T12:00:00+02:00",
    token:
      "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.eyJpc3MiOiJNZXNzYWdlQmlyZCIsImlhdCI6MTYyNTQ3OTIwMCwiZXhwIjoxNjI1NDc5MjYwLCJqdGkiOiI1OWEyNDRkYy1lOWFkLTRlMjMtOTc3OC0zNzFmYWEyMzhmNzIiLCJ1cmxfaGFzaCI6IjBmMTE1ZGIwNjJiN2MwZGQwMzBiMTY4NzhjOTlkZWE1YzM1NGI0OWRjMzdiMzhlYjg4NDYxNzljNzc4M2U5ZDcifQ.",
    valid: false,
  },
];

it.each(messageBird)("messagebird: accepts or rejects its library's example as documented: $name", async ({ secret, url, payload, time, token, valid }) => {
  const reading = await messageBirdReceipts({ signingKey: secret ?? "none" }).read(
    aReceipt({ url, body: payload ?? "", headers: { "messagebird-signature-jwt": token } }),
    Date.parse(time),
  );
  // These are not status reports, so the authentic ones are malformed.
  if (valid) expect(reading).toMatchObject({ refused: "malformed" });
  else expect(reading).toMatchObject({ refused: expect.stringMatching(/^(signature|expired)$/) });
});
