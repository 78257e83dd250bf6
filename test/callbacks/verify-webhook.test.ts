import { createHmac } from "node:crypto";
import { createServer, type IncomingMessage, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import express from "express";
import express4 from "express4";
import fc from "fast-check";
import Fastify from "fastify";
import { Webhook } from "standardwebhooks";
import { afterEach, describe, expect, it } from "vitest";
import { type VerifyWebhookOptions, verifyWebhook, WebhookError } from "../../clients/webhooks.js";
import { codePoint } from "../support/code-point.js";
import { start } from "../support/verifier.js";

const bytes = Buffer.from(Array.from({ length: 32 }, (_, index) => (index * 37 + 251) % 256));
const secret = `whsec_${bytes.toString("base64")}`;
const other = `whsec_${Buffer.alloc(32, 9).toString("base64")}`;
const body = '{"type":"delivery_status"}';
const event = { type: "delivery_status" };
const seconds = start / 1000;

type Signed = Record<"webhook-id" | "webhook-timestamp" | "webhook-signature", string>;

/** A webhook from a sender that has the key. */
function signed({ key = bytes as Uint8Array, id = "msg_1", timestamp = String(seconds), text = body as string | Uint8Array } = {}): Signed {
  const signature = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(text).digest("base64");
  return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": `v1,${signature}` };
}

const verify = (changes: Partial<Record<keyof VerifyWebhookOptions, unknown>> = {}) =>
  verifyWebhook({ secret, headers: signed(), body, now: start, ...changes } as VerifyWebhookOptions);

/** The reason for the rejection; fails if there is none, or another error. */
function refusal(changes: Parameters<typeof verify>[0]): string {
  try {
    verify(changes);
  } catch (error) {
    expect(error).toBeInstanceOf(WebhookError);
    expect(error).toHaveProperty("name", "WebhookError");
    return (error as Error).message;
  }
  throw new Error("it was taken for genuine");
}

it("without options, names the secret", () => {
  expect(() => verifyWebhook(undefined as never)).toThrow(/^secret is undefined, not a string/);
});

describe("verifyWebhook reads what the package `standardwebhooks` signs", () => {
  it("as text or bytes, with node's headers or a Headers object", () => {
    const headers = { ...signed(), "webhook-signature": new Webhook(secret).sign("msg_1", new Date(start), body) };
    const encoded = new TextEncoder().encode(body);
    const bodies = [body, encoded, Buffer.from(body), encoded.buffer, Buffer.from(`xx${body}`).subarray(2)];
    for (const one of bodies) for (const shape of [headers, new Headers(headers)]) expect(verify({ headers: shape, body: one })).toEqual(event);
  });

  it.each([24, 25, 32, 48, 64, 75, 512])("under a key of %i bytes", (length) => {
    const key = Buffer.alloc(length, 0xfb);
    const headers = signed({ key });
    for (const text of ["base64", "base64url"] as const)
      for (const prefix of ["whsec_", ""]) expect(verify({ secret: prefix + key.toString(text), headers })).toEqual(event);
    expect(new Webhook(key.toString("base64")).sign("msg_1", new Date(start), body)).toBe(headers["webhook-signature"]);
  });

  it("with any event, as it was received, and nothing else", () => {
    for (const text of ['{"type":"é€😀\\u2028"}', ` \n${body}\n`, '{"type":"x","__proto__":{"admin":true}}', '{"type":"b.c.d"}'])
      expect(verify({ body: text, headers: signed({ text }) })).toEqual(JSON.parse(text));
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
    for (const text of ["{}", "[]", '"x"', "null", "1", '{"type":1}', '[{"type":"delivery_status"}]'])
      expect(refusal({ body: text, headers: signed({ text }) })).toBe("the signed body is not an event: an object with a `type`");
    for (const text of ["", " ", "{", "NaN", "undefined", "<xml/>"]) expect(refusal({ body: text, headers: signed({ text }) })).toBe("the body is not JSON");
    const rubbish = Buffer.from([0xff, 0xfe, 0x00]);
    expect(refusal({ body: rubbish, headers: signed({ text: rubbish }) })).toBe("the body is not JSON");
  });

  it("with a body of five megabytes, a hundred thousand signatures or a thousand secrets", () => {
    const text = JSON.stringify({ type: "x".repeat(5_000_000) });
    expect(verify({ body: text, headers: signed({ text }) })).toHaveProperty("type");
    const { "webhook-signature": right } = signed();
    const many = `${"v1,x ".repeat(100_000)}${right}`;
    expect(verify({ headers: { ...signed(), "webhook-signature": many } })).toEqual(event);
    expect(refusal({ headers: { ...signed(), "webhook-signature": "v1,".repeat(100_000) } })).toMatch("no signature");
    expect(verify({ secret: [...Array(1_000).fill(other), secret] })).toEqual(event);
  });
});

describe("an invalid secret rejects every webhook, and the error gives the fix", () => {
  const fix = "pass what verifier.webhookSecrets(customer_uuid) returns, whsec_ and at least 24 bytes in base64; is the environment variable set?";
  const short = (length: number) => `whsec_${Buffer.alloc(length, 7).toString("base64")}`;

  it.each([
    ["empty", "", "has 0 bytes"],
    ["white space", " \r\n\t", "has 0 bytes"],
    ["the prefix alone", "whsec_", "has 0 bytes"],
    ["the prefix and a line break", "whsec_\n", "has 0 bytes"],
    ["the word undefined", "undefined", "is not base64"],
    ["the word undefined behind the prefix", "whsec_undefined", "is not base64"],
    ["the word null", "null", "has 3 bytes"],
    ["the word of an object", "[object Object]", "is not base64"],
    ["a word", "changeme", "has 6 bytes"],
    ["one byte", short(1), "has 1 bytes"],
    ["23 bytes", short(23), "has 23 bytes"],
    ["23 bytes without a prefix", Buffer.alloc(23, 7).toString("base64url"), "has 23 bytes"],
    ["23 bytes in quotation marks", `"${short(23)}"`, "is not base64"],
    ["no base64", `whsec_${"!".repeat(44)}`, "is not base64"],
    ["base64 and more", `${secret}!`, "is not base64"],
    ["base64 that breaks off", `${secret.slice(0, -3)}`, "is not base64"],
    ["too much padding", `${secret}===`, "is not base64"],
    ["padding in the middle", `${secret}${secret.slice(6)}`, "is not base64"],
    ["quotation marks", `"${secret}"`, "is not base64"],
    ["an invisible space", `${secret.slice(0, 20)}\u200b${secret.slice(20)}`, "is not base64"],
    ["full-width letters", "ｗ".repeat(44), "is not base64"],
    ["two in one variable", `${secret} ${other}`, "is not base64"],
    ["two in one variable, with a comma", `${secret},${other}`, "is not base64"],
    ["percent-encoded", encodeURIComponent(secret), "is not base64"],
    ["the prefix twice", `whsec_whsec_${bytes.toString("base64")}`, "is not base64"],
    ["the public half of an asymmetric key", `whpk_${Buffer.alloc(32, 7).toString("base64url")}`, "is a key of asymmetric signatures (v1a), and these are v1"],
    ["the secret half of one", `whsk_${Buffer.alloc(64, 7).toString("base64url")}`, "is a key of asymmetric signatures (v1a), and these are v1"],
  ])("%s, alone and in a list with a valid one", (_what, bad, fault) => {
    // A forgery by someone who guesses how such a secret is decoded.
    const headers = signed({ key: Buffer.from(bad.replace(/^whsec_/, ""), "base64") });
    const told = /bytes$/.test(fault) ? `${fault}, and below 24 it can be guessed` : fault;
    expect(refusal({ secret: bad, headers })).toBe(`secret ${told}: ${fix}`);
    expect(refusal({ secret: [bad], headers })).toBe(`secret.0 ${told}: ${fix}`);
    expect(refusal({ secret: [secret, bad], headers })).toBe(`secret.1 ${told}: ${fix}`);
    expect(refusal({ secret: [bad, secret] }), "nor what the good one signed").toBe(`secret.0 ${told}: ${fix}`);
  });

  it.each([
    ["undefined", undefined, "secret is undefined, not a string"],
    ["null", null, "secret is null, not a string"],
    ["a number", 5, "secret is number, not a string"],
    ["true", true, "secret is boolean, not a string"],
    ["an object", {}, "secret is object, not a string"],
    ["a function", () => secret, "secret is function, not a string"],
    ["a symbol", Symbol("secret"), "secret is symbol, not a string"],
    ["bytes", bytes, "secret is object, not a string"],
    ["a String", Object(secret), "secret is object, not a string"],
    ["a promise", Promise.resolve([secret]), "secret is object, not a string"],
    ["a Set", new Set([secret]), "secret is object, not a string"],
    ["an empty list", [], "secret is an empty list"],
    ["a list of nothing", [undefined], "secret.0 is undefined, not a string"],
    ["a list with a hole", Object.assign([secret], { 2: secret }), "secret.1 is undefined, not a string"],
    ["a list in a list", [[secret]], "secret.0 is object, not a string"],
    ["an empty list in a list", [secret, []], "secret.1 is object, not a string"],
  ])("%s", (_what, bad, fault) => {
    expect(refusal({ secret: bad })).toBe(`${fault}: ${fix}`);
    expect(refusal({ secret: bad, headers: signed({ key: Buffer.alloc(0) }) })).toBe(`${fault}: ${fix}`);
  });

  it("the error reveals nothing of the secret", () => {
    for (const bad of [`${secret}!`, short(20), `"${secret}"`]) expect(refusal({ secret: bad })).not.toContain(bad.slice(6, 20));
  });

  it.each(["\n", "\r\n", " ", "\t", "\n\n", "\u00a0", "\ufeff"])("white space around a pasted secret is ignored: %j", (space) => {
    for (const text of [`${secret}${space}`, `${space}${secret}`, `${space}${secret.slice(6)}${space}`]) expect(verify({ secret: text })).toEqual(event);
    expect(refusal({ secret: `${other}${space}` })).toMatch("no signature");
  });
});

describe("a hostile sender", () => {
  const { "webhook-signature": right } = signed();
  const wrong = signed({ key: Buffer.alloc(32, 9) })["webhook-signature"];
  const withSignature = (signature: unknown) => ({ headers: { ...signed(), "webhook-signature": signature } });

  it.each([
    ["another body", { body: `${body} ` }],
    ["an empty body", { body: "" }],
    ["another id", { headers: { ...signed(), "webhook-id": "msg_2" } }],
    ["the id in capitals", { headers: { ...signed(), "webhook-id": "MSG_1" } }],
    ["another time", { headers: { ...signed(), "webhook-timestamp": String(seconds + 1) } }],
    ["a dot moved from the id to the time", { headers: { ...signed({ id: "msg_1.5" }), "webhook-id": "msg_1" } }],
    ["another's signature", withSignature(wrong)],
    ["several of others", withSignature(`${wrong} ${wrong}`)],
    ["an empty signature", withSignature("v1,")],
    ["no version", withSignature(right.slice(3))],
    ["the version alone", withSignature("v1")],
    ["the version without a comma", withSignature(right.replace(",", ""))],
    ["the version in capitals", withSignature(right.replace("v1", "V1"))],
    ["version v1a", withSignature(right.replace("v1", "v1a"))],
    ["version v2", withSignature(right.replace("v1", "v2"))],
    ["version v11", withSignature(right.replace("v1", "v11"))],
    ["an equals sign in the comma's place", withSignature(right.replace(",", "="))],
    ["a colon in the comma's place", withSignature(right.replace(",", ":"))],
    ["signatures that are cut off", withSignature(Array.from({ length: 44 }, (_, length) => right.slice(0, 3 + length)).join(" "))],
    ["a longer signature", withSignature(`${right}A`)],
    ["a signature twice without a space", withSignature(`${right}${right.slice(3)}`)],
    ["a signature in lower case", withSignature(`v1,${right.slice(3).toLowerCase()}`)],
    ["a signature in hexadecimal digits", withSignature(`v1,${Buffer.from(right.slice(3), "base64").toString("hex")}`)],
    ["letters that look alike", withSignature(right.replace("v", "ｖ"))],
    ["a null byte behind it", withSignature(`${right}\0`)],
    ["the signature as a number", withSignature(5)],
    ["the signature as an object", withSignature({ v1: right.slice(3) })],
    ["the signature as true", withSignature(true)],
    ["the signature in a list of a list", withSignature([[right]])],
    ["an empty list of signatures", withSignature([])],
  ])("%s is rejected", (_what, changes) => {
    expect(refusal(changes)).toMatch(/^(no signature in webhook-signature is valid|the header webhook-signature is missing)/);
  });

  it.each([
    ["behind one of another", `${wrong} ${right}`],
    ["before one of another", `${right} ${wrong}`],
    ["behind an asymmetric one", `v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg== ${right}`],
    ["behind one of a version to come", `v9,x ${right}`],
    ["behind rubbish", `rubbish ,,, v1 ${right}`],
    ["with spaces too many", `  ${right}   `],
    ["with a tab", `${wrong}\t${right}`],
    ["behind a comma, as a header that came twice is joined", `${wrong}, ${right}`],
    ["before a comma", `${right}, ${wrong}`],
    ["behind a comma without a space", `${wrong},${right}`],
    ["in a list of header lines", [wrong, right]],
    ["in a list of one", [right]],
  ])("the right signature is found %s", (_what, signature) => {
    expect(verify(withSignature(signature))).toEqual(event);
  });

  it.each([
    ["301 seconds old", seconds - 301],
    ["301 seconds ahead", seconds + 301],
    ["of 1970", 0],
    ["in milliseconds", start],
    ["beyond all numbers", "9".repeat(400)],
    ["negative", -seconds],
    ["with a sign", `+${seconds}`],
    ["with a fraction", `${seconds}.0`],
    ["with an exponent", "1.7723664e9"],
    ["hexadecimal", `0x${seconds.toString(16)}`],
    ["with spaces", ` ${seconds} `],
    ["with a line break", `${seconds}\n`],
    ["twice", `${seconds}, ${seconds}`],
    ["in other digits", [...String(seconds)].map((digit) => String.fromCodePoint(0x660 + Number(digit))).join("")],
    ["no number", "NaN"],
    ["without end", "Infinity"],
    ["a date", new Date(start).toISOString()],
  ])("a time that is %s is rejected despite a right signature", (_what, timestamp) => {
    expect(refusal({ headers: signed({ timestamp: String(timestamp) }) })).toBe("webhook-timestamp is more than 5 minutes off");
  });

  it.each([-300, -1, 0, 299, 300])("a time that is %i seconds off is accepted", (off) => {
    expect(verify({ headers: signed({ timestamp: String(seconds + off) }) })).toEqual(event);
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, "rubbish", {}, null, Object(Number.NaN)])(
    "a receiver's clock that returns %s accepts nothing",
    (now) => {
      expect(refusal({ now })).toBe("webhook-timestamp is more than 5 minutes off");
    },
  );

  it.each(["webhook-id", "webhook-timestamp", "webhook-signature"] as const)("%s is missing, empty, repeated, or not a string", (name) => {
    const missing = `the header ${name} is missing; is headers the headers of the request?`;
    for (const value of [undefined, null, "", [], [""], [undefined], 5, {}, true]) expect(refusal({ headers: { ...signed(), [name]: value } })).toBe(missing);
    const { [name]: value, ...rest } = signed();
    expect(refusal({ headers: rest })).toBe(missing);
    expect(refusal({ headers: new Headers(rest) })).toBe(missing);
    expect(refusal({ headers: Object.create(signed()) }), "inherited").toMatch(/^the header webhook-id is missing/);
    if (name === "webhook-signature") return;
    const twice = `the header ${name} occurs more than once`;
    expect(refusal({ headers: { ...signed(), [name]: [value, value] } })).toBe(twice);
    expect(refusal({ headers: { ...signed(), [name.toUpperCase()]: "another" } }), "in another case").toBe(twice);
  });

  it.each([
    undefined,
    null,
    "webhook-id: msg_1",
    5,
    [],
    Object.entries(signed()).flat(),
    () => signed(),
    new Request("http://localhost/", { headers: signed() }),
  ])("invalid headers: %s", (headers) => {
    expect(refusal({ headers })).toMatch(/^the header webhook-id is missing/);
  });

  it.each([
    ["undefined", undefined, "undefined"],
    ["null", null, "null"],
    ["what a JSON parser made of it", JSON.parse(body), "object"],
    ["a list of bytes", [...Buffer.from(body)], "object"],
    ["a Buffer as JSON", Buffer.from(body).toJSON(), "object"],
    ["something with a length", { length: 5 }, "object"],
    ["a number", 5, "number"],
    ["wider numbers", new Uint16Array(Buffer.from(body)), "object"],
    ["a stream", new Blob([body]).stream(), "object"],
    ["a String", Object(body), "object"],
  ])("a body that is %s is rejected, with the reason", (_what, given, kind) => {
    expect(refusal({ body: given })).toBe(`body is ${kind}, not the raw body as a string or bytes; does a JSON parser come before?`);
  });

  it("changing any one character of what is signed gets the webhook rejected", () => {
    const text = JSON.stringify({ type: "delivery_status", data: { authentication_uuid: "6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f" } });
    const headers = signed({ text });
    const parts = { ...headers, body: text };
    fc.assert(
      fc.property(fc.constantFrom(...(Object.keys(parts) as (keyof typeof parts)[])), fc.nat(), fc.string({ unit: codePoint }), (name, at, put) => {
        const value = parts[name];
        const changed = value.slice(0, at % value.length) + put + value.slice((at % value.length) + 1);
        // White space, and anything after a comma, separates signatures.
        fc.pre(changed !== value && !(name === "webhook-signature" && changed.split(/[\s,]+/).includes(value.slice(3))));
        const { body: changedBody, ...changedHeaders } = { ...parts, [name]: changed };
        refusal({ headers: changedHeaders, body: changedBody });
      }),
      { numRuns: 1_000 },
    );
  });
});

describe("headers as frameworks provide them", () => {
  const open: { close(): unknown }[] = [];
  afterEach(async () => {
    for (const one of open.splice(0)) await one.close();
  });

  /** The server's result for a genuine webhook with these header lines: the event, or why it was rejected. */
  async function posted(server: Server, lines: Record<string, string | string[]> = signed()): Promise<string> {
    open.push(server);
    if (!server.listening) await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
    return new Promise((resolve, reject) => {
      const { port } = server.address() as AddressInfo;
      const sent = request({ port, host: "127.0.0.1", method: "POST", headers: { ...lines, "content-type": "application/json" }, agent: false }, (answer) => {
        let text = "";
        answer.on("data", (chunk) => (text += chunk)).on("end", () => resolve(text));
      });
      sent.on("error", reject).end(body);
    });
  }

  const outcome = (headers: VerifyWebhookOptions["headers"], received: unknown) => {
    try {
      return JSON.stringify(verify({ headers, body: received }));
    } catch (error) {
      return (error as Error).message;
    }
  };

  const read = async (message: IncomingMessage) => {
    const chunks: Buffer[] = [];
    for await (const chunk of message) chunks.push(chunk);
    return Buffer.concat(chunks);
  };

  it("node:http: headers and headersDistinct, with repeated header lines", async () => {
    const serve = (which: "headers" | "headersDistinct") =>
      createServer(async (message, response) => response.end(outcome(message[which] as VerifyWebhookOptions["headers"], await read(message))));
    const { "webhook-signature": right, ...rest } = signed();
    const wrong = signed({ key: Buffer.alloc(32, 9) })["webhook-signature"];
    for (const which of ["headers", "headersDistinct"] as const) {
      expect(await posted(serve(which))).toBe(body);
      expect(await posted(serve(which), { ...rest, "webhook-signature": [wrong, right] })).toBe(body);
      expect(await posted(serve(which), { ...rest, "webhook-signature": [wrong, wrong] })).toMatch("no signature");
      expect(await posted(serve(which), { ...signed(), "webhook-id": ["msg_1", "msg_1"] })).toMatch(/no signature|more than once/);
      expect(await posted(serve(which), { ...signed(), "webhook-timestamp": [String(seconds), String(seconds)] })).toMatch(/5 minutes off|more than once/);
    }
  });

  it.each([
    ["Express 5", express],
    ["Express 4", express4 as unknown as typeof express],
  ])("%s: req.headers, and req itself; after express.json() the error gives the cause", async (_name, make) => {
    const app = make();
    app.post("/", make.raw({ type: "*/*" }), (req, res) => void res.send(outcome(req.headers, req.body) + outcome(req as never, req.body)));
    expect(await posted(createServer(app))).toBe(`${body}${body}`);
    const parsed = make();
    parsed.post("/", make.json(), (req, res) => void res.send(outcome(req.headers, req.body)));
    expect(await posted(createServer(parsed))).toMatch("does a JSON parser come before?");
  });

  it("Fastify: request.headers with a parser that returns the bytes", async () => {
    const app = Fastify();
    app.addContentTypeParser("application/json", { parseAs: "buffer" }, (_request, payload, done) => done(null, payload));
    app.post("/", (req, reply) => reply.send(outcome(req.headers, req.body)));
    await app.ready();
    expect(await posted(app.server)).toBe(body);
    expect((await app.inject({ method: "POST", url: "/", headers: { ...signed(), "content-type": "application/json" }, payload: body })).body).toBe(body);
  });

  it("fetch: request.headers of any kind, with text(), arrayBuffer() and bytes", async () => {
    const make = () => new Request("http://localhost/", { method: "POST", headers: signed(), body });
    expect(outcome(make().headers, await make().text())).toBe(body);
    expect(outcome(make().headers, await make().arrayBuffer())).toBe(body);
    // Another library's Headers is not an instance of the platform's class.
    const { headers } = make();
    expect(outcome({ get: (name) => headers.get(name) }, body)).toBe(body);
    expect(outcome(new Map(Object.entries(signed())) as never, body)).toBe(body);
  });

  it("Lambda and other gateways: header names in any case, with one value or a list", () => {
    const cased = Object.fromEntries(Object.entries(signed()).map(([name, value]) => [name.replace(/(^|-)[a-z]/g, (letter) => letter.toUpperCase()), value]));
    expect(Object.keys(cased)).toContain("Webhook-Id");
    expect(outcome(cased, body)).toBe(body);
    expect(outcome(Object.fromEntries(Object.entries(cased).map(([name, value]) => [name, [value]])), body)).toBe(body);
    expect(outcome(Object.assign(Object.create(null), signed()), body)).toBe(body);
  });
});
