import { createHash, generateKeyPairSync } from "node:crypto";
import { importSPKI, jwtVerify, SignJWT, UnsecuredJWT } from "jose";
import { expect, it } from "vitest";
import { vonageReceipts, vonageSender } from "../../adapters/sms/vonage.js";
import { aMessage, aReceipt, inTime } from "../support/carriers/messages.js";
import { signVonage } from "../support/carriers/receipts.js";
import { startCarrier } from "../support/carriers/server.js";
import { vonageScript } from "../support/carriers/vonage.js";

it("authenticates with an application's key: each message has a new token that jose verifies", async () => {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", {
    modulusLength: 2048,
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "pem" },
  });
  const script = vonageScript(({ headers }) => headers["authorization"]?.startsWith("Bearer ") === true);
  const carrier = await startCarrier({ ...script, sender: () => sender }, "accepts");
  const sender = vonageSender({ applicationId: "app-1", privateKey, from: "ACME", baseUrl: carrier.url });
  for (let i = 0; i < 2; i += 1) expect(await sender.send(aMessage(), inTime())).toMatchObject({ outcome: "accepted" });
  const key = await importSPKI(publicKey, "RS256");
  const claims = await Promise.all(
    carrier.requests.map(({ headers }) =>
      jwtVerify((headers["authorization"] ?? "").slice(7), key, { algorithms: ["RS256"], requiredClaims: ["iat", "exp", "jti"] }),
    ),
  );
  expect(claims.map(({ payload }) => payload["application_id"])).toEqual(["app-1", "app-1"]);
  expect(claims[0]?.payload.jti).not.toBe(claims[1]?.payload.jti);
  await carrier.close();
});

const now = Date.UTC(2027, 0, 1);
const source = vonageReceipts({ signatureSecret: "vonage-signature-secret" });

it("rejects an unsigned token, and a signed one without the body's hash", async () => {
  const good = await signVonage({ message_uuid: "m1", status: "delivered" }, { at: now });
  const unsecured = new UnsecuredJWT({ payload_hash: "x" }).setIssuedAt(now / 1000).encode();
  expect(await source.read(aReceipt({ body: Buffer.from(good.body).toString(), headers: { authorization: `Bearer ${unsecured}` } }), now)).toMatchObject({
    refused: "signature",
  });
  for (const claims of [{ iat: now / 1000 }, { iat: now / 1000, payload_hash: 7 }, { iat: now / 1000, payload_hash: "" }]) {
    const token = await new SignJWT(claims).setProtectedHeader({ alg: "HS256" }).sign(Buffer.from("vonage-signature-secret"));
    expect(await source.read(aReceipt({ body: Buffer.from(good.body).toString(), headers: { authorization: `Bearer ${token}` } }), now)).toMatchObject({
      refused: "signature",
    });
  }
});

it("a token past its own expiry is rejected, however recently it was issued", async () => {
  const body = JSON.stringify({ message_uuid: "m1", status: "delivered" });
  const claims = { iat: now / 1000, exp: now / 1000 + 30, payload_hash: createHash("sha256").update(body).digest("hex") };
  const token = await new SignJWT(claims).setProtectedHeader({ alg: "HS256" }).sign(Buffer.from("vonage-signature-secret"));
  const request = aReceipt({ body, headers: { authorization: `bearer ${token}` } });
  expect(await source.read(request, now + 29_999)).toMatchObject({ receipts: [{ status: "delivered" }] });
  expect(await source.read(request, now + 30_000)).toMatchObject({ refused: "expired" });
});

it("a signature for one body is rejected with another body", async () => {
  const one = await signVonage({ message_uuid: "m1", status: "rejected" }, { at: now });
  const two = await signVonage({ message_uuid: "m1", status: "delivered" }, { at: now });
  expect(await source.read({ ...two, header: one.header }, now)).toMatchObject({ refused: "signature" });
});
