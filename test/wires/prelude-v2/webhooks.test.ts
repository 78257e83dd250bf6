import { constants, generateKeyPairSync, verify } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { verifyWebhook } from "../../../clients/webhooks.js";
import { readOptions } from "../../../src/options/options.js";
import { authenticationUuidOf } from "../../../src/wires/prelude-v2/index.js";
import { neededOptions } from "../../support/options.js";
import { type Receiver, receiver } from "../../support/receiver.js";
import { start as noon, numberOf } from "../../support/verifier.js";
import { serve } from "./service.js";

let hook: Receiver;
beforeEach(async () => {
  hook = await receiver();
});
afterEach(async () => {
  await hook.close();
});

const start = (callbacks: object = {}) => serve({ verifier: { callbacks: { allowOrigins: [hook.origin], ...callbacks } } });
const target = { type: "phone_number" as const, value: numberOf(1) };
const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();

describe("webhooks of verifications that were started on this wire (docs/contract.md#callback-forms)", () => {
  it("have the vendor's form", async () => {
    const { client, customer, verifier } = await start();
    const created = await client().verification.create({ target, options: { callback_url: `${hook.origin}/hook` }, metadata: { correlation_id: "order-7" } });
    await expect.poll(() => hook.received.length).toBe(1);
    const [{ headers, body }] = hook.received as [Receiver["received"][number]];
    const time = new Date(noon).toISOString();
    expect(JSON.parse(body)).toEqual({
      id: expect.stringMatching(/^evt_[0-7][0-9a-z]{25}$/),
      type: "verify.delivery_status",
      created_at: time,
      payload: {
        id: expect.stringMatching(/^dls_[0-7][0-9a-z]{25}$/),
        verification_id: created.id,
        attempt_id: expect.stringMatching(/^att_[0-7][0-9a-z]{25}$/),
        status: "submitted",
        target: { type: "phone_number", value: "+33612****01" },
        metadata: { correlation_id: "order-7" },
        time,
      },
    });
    expect(headers["x-webhook-signature"]).toBeUndefined();
    // Our own signature is valid too.
    verifyWebhook({ secret: await verifier.webhookSecrets(customer), headers, body, now: noon });
    expect((await verifier.explain({ customer_uuid: customer, authentication_uuid: authenticationUuidOf(created.id) as string })).status).toBe("pending");
  });

  it("have different ids for messages and events, and redeliveries are identical", async () => {
    const { client, clock, verifier } = await start();
    hook.answer = (_request, response) => void response.writeHead(500).end();
    await client().verification.create({ target, options: { callback_url: `${hook.origin}/hook` } });
    await expect.poll(() => hook.received.length).toBe(1);
    hook.answer = (_request, response) => void response.writeHead(200).end();
    clock.advance(30_000);
    await verifier.flush();
    await client().verification.create({ target });
    await expect.poll(() => hook.received.length).toBe(3);
    const [first, again, second] = hook.received.map(({ body }) => JSON.parse(body));
    expect(again).toEqual(first);
    expect(first.payload.metadata).toEqual({});
    expect(second.payload.verification_id).toBe(first.payload.verification_id);
    for (const differs of [second.id !== first.id, second.payload.id !== first.payload.id, second.payload.attempt_id !== first.payload.attempt_id])
      expect(differs).toBe(true);
  });

  it("contain the whole number if `fullNumber` is set", async () => {
    const { client } = await start({ fullNumber: true });
    await client().verification.create({ target, options: { callback_url: `${hook.origin}/hook` } });
    await expect.poll(() => hook.received.length).toBe(1);
    expect(JSON.parse(hook.received[0]?.body ?? "").payload.target).toEqual(target);
  });

  it("are signed like the vendor's if there is a key, in base64url, over the raw body", async () => {
    const { client, verifier, customer } = await start({ rsaPrivateKey: pem.replaceAll("\n", "\\n") });
    await client().verification.create({ target, options: { callback_url: `${hook.origin}/hook` } });
    await expect.poll(() => hook.received.length).toBe(1);
    const [{ headers, body }] = hook.received as [Receiver["received"][number]];
    const [, signature = ""] = /^rsassa-pss-sha256=([\w-]{342})$/.exec(String(headers["x-webhook-signature"])) ?? [];
    const key = { key: publicKey, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };
    expect(verify("sha256", Buffer.from(body), key, Buffer.from(signature, "base64url"))).toBe(true);
    expect(verify("sha256", Buffer.from(`${body} `), key, Buffer.from(signature, "base64url"))).toBe(false);

    // Callbacks of /v1 keep their form.
    await verifier.createAuthentication({ customer_uuid: customer, phone_number: numberOf(2), callback_url: `${hook.origin}/v1` });
    await expect.poll(() => hook.received.length).toBe(2);
    expect(JSON.parse(hook.received[1]?.body ?? "").type).toBe("delivery_status");
    expect(hook.received[1]?.headers["x-webhook-signature"]).toBeUndefined();
  });

  it("a key that is malformed, of another kind or too short is an invalid option, and is not in the error message", () => {
    const { privateKey: curve } = generateKeyPairSync("ed25519");
    const { privateKey: short } = generateKeyPairSync("rsa", { modulusLength: 1024 });
    const wrong = ["none", publicKey.export({ type: "spki", format: "pem" }).toString()];
    for (const key of [curve, short]) wrong.push(key.export({ type: "pkcs8", format: "pem" }).toString());
    for (const rsaPrivateKey of wrong) {
      const message = (() => {
        try {
          readOptions({ ...neededOptions, callbacks: { rsaPrivateKey } });
        } catch (error) {
          return (error as Error).message;
        }
        return "no error";
      })();
      expect(message).toMatch(
        /^phoneproof: callbacks\.rsaPrivateKey must be an RSA private key of 2048 bits or more in PEM form; make one with: openssl genpkey /,
      );
      expect(message).not.toContain("MII");
    }
  });
});

describe("the correlation id (docs/contract.md#correlation-id)", () => {
  it("is returned by create, retry and check, and a later one replaces it", async () => {
    const { client, clock, box, wrong } = await start();
    const verification = client().verification;
    const first = { correlation_id: "order-7" };
    expect((await verification.create({ target, metadata: first })).metadata).toEqual(first);
    expect((await verification.check({ target, code: wrong() })).metadata).toEqual(first);
    clock.advance(30_000);
    expect((await verification.create({ target })).metadata).toEqual(first);
    clock.advance(60_000);
    expect((await verification.create({ target, metadata: { correlation_id: "order-8" } })).metadata).toEqual({ correlation_id: "order-8" });
    expect((await verification.check({ target, code: box.code() })).metadata).toEqual({ correlation_id: "order-8" });
    expect((await verification.check({ target, code: box.code() })).metadata).toBeUndefined();
  });
});
