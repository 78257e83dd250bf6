import { createHmac } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { describe, expect, it } from "vitest";
import { type VerifyWebhookOptions, verifyWebhook, WebhookError } from "../../adapters/callback/webhooks.js";
import { start } from "../support/verifier.js";

const bytes = Buffer.from(Array.from({ length: 32 }, (_, index) => (index * 37 + 251) % 256));
const secret = `whsec_${bytes.toString("base64")}`;
const other = `whsec_${Buffer.alloc(32, 9).toString("base64")}`;
const body = '{"type":"delivery_status"}';
const event = { type: "delivery_status" };
const seconds = start / 1000;

type Signed = Record<"webhook-id" | "webhook-timestamp" | "webhook-signature", string>;

/** What a sender that knows the key sends. */
function signed({ key = bytes as Uint8Array, id = "msg_1", timestamp = String(seconds), text = body as string | Uint8Array } = {}): Signed {
  const signature = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(text).digest("base64");
  return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": `v1,${signature}` };
}

const verify = (changes: Partial<Record<keyof VerifyWebhookOptions, unknown>> = {}) =>
  verifyWebhook({ secret, headers: signed(), body, now: start, ...changes } as VerifyWebhookOptions);

/** Why it is refused; fails where it is not, or by another error. */
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

describe("verifyWebhook reads what the package `standardwebhooks` signs", () => {
  it("text and bytes, node's headers and Headers", () => {
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

  it("the body as it came, whatever is in it", () => {
    for (const text of ["{}", "[]", '{"a":"é€😀\\u2028"}', ` \n${body}\n`, '"x"', '{"__proto__":{"admin":true}}', '{"a":"b.c.d"}'])
      expect(verify({ body: text, headers: signed({ text }) })).toEqual(JSON.parse(text));
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
    for (const text of ["", " ", "{", "NaN", "undefined", "<xml/>"]) expect(refusal({ body: text, headers: signed({ text }) })).toBe("the body is not JSON");
    const rubbish = Buffer.from([0xff, 0xfe, 0x00]);
    expect(refusal({ body: rubbish, headers: signed({ text: rubbish }) })).toBe("the body is not JSON");
  });

  it("five megabytes of it, a hundred thousand signatures and a thousand secrets", () => {
    const text = JSON.stringify({ a: "x".repeat(5_000_000) });
    expect(verify({ body: text, headers: signed({ text }) })).toHaveProperty("a");
    const { "webhook-signature": right } = signed();
    const many = `${"v1,x ".repeat(100_000)}${right}`;
    expect(verify({ headers: { ...signed(), "webhook-signature": many } })).toEqual(event);
    expect(refusal({ headers: { ...signed(), "webhook-signature": "v1,".repeat(100_000) } })).toMatch("no signature");
    expect(verify({ secret: [...Array(1_000).fill(other), secret] })).toEqual(event);
  });
});

describe("H5: a secret that is none refuses every webhook, and says how it is mended", () => {
  const mend = "give what verifier.webhookSecrets(customer_uuid) answers, whsec_ and at least 24 bytes in base64; is the environment variable set?";
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
  ])("%s, alone and in a list beside a good one", (_what, bad, fault) => {
    // The forgery of whoever guesses how such a secret is read.
    const headers = signed({ key: Buffer.from(bad.replace(/^whsec_/, ""), "base64") });
    const told = /bytes$/.test(fault) ? `${fault}, and below 24 it can be guessed` : fault;
    expect(refusal({ secret: bad, headers })).toBe(`secret ${told}: ${mend}`);
    expect(refusal({ secret: [bad], headers })).toBe(`secret.0 ${told}: ${mend}`);
    expect(refusal({ secret: [secret, bad], headers })).toBe(`secret.1 ${told}: ${mend}`);
    expect(refusal({ secret: [bad, secret] }), "nor what the good one signed").toBe(`secret.0 ${told}: ${mend}`);
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
    expect(refusal({ secret: bad })).toBe(`${fault}: ${mend}`);
    expect(refusal({ secret: bad, headers: signed({ key: Buffer.alloc(0) }) })).toBe(`${fault}: ${mend}`);
  });

  it("tells nothing of the secret", () => {
    for (const bad of [`${secret}!`, short(20), `"${secret}"`]) expect(refusal({ secret: bad })).not.toContain(bad.slice(6, 20));
  });

  it.each(["\n", "\r\n", " ", "\t", "\n\n", "\u00a0", "\ufeff"])("one that was pasted with white space around it is taken without: %j", (space) => {
    for (const text of [`${secret}${space}`, `${space}${secret}`, `${space}${secret.slice(6)}${space}`]) expect(verify({ secret: text })).toEqual(event);
    expect(refusal({ secret: `${other}${space}` })).toMatch("no signature");
  });
});
