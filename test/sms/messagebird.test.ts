import { createHash } from "node:crypto";
import { SignJWT } from "jose";
import { expect, it } from "vitest";
import { messageBirdReceipts } from "../../adapters/sms/messagebird.js";
import { aReceipt } from "../support/carriers/messages.js";

const now = Date.UTC(2027, 0, 1);
const url = "https://otp.example/receipts/messagebird?a=1&id=m1&status=delivered";
const claims = { iss: "MessageBird", nbf: now / 1000, exp: now / 1000 + 60, url_hash: createHash("sha256").update(url).digest("hex") };

async function read(changed: Record<string, unknown>) {
  const token = await new SignJWT({ ...claims, ...changed }).setProtectedHeader({ alg: "HS256" }).sign(Buffer.from("key"));
  return messageBirdReceipts({ signingKey: "key" }).read(aReceipt({ method: "GET", url, headers: { "messagebird-signature-jwt": token } }), now);
}

it("accepts a token with all its claims, and one without `nbf`", async () => {
  expect(await read({})).toMatchObject({ receipts: [{ messageId: "m1", status: "delivered" }] });
  expect(await read({ nbf: undefined })).toMatchObject({ receipts: [{ messageId: "m1", status: "delivered" }] });
});

it.each([
  ["that another issuer signed with the same key", { iss: "Someone" }],
  ["without an end", { exp: undefined }],
  ["whose end is no number", { exp: "never" }],
  ["without the URL", { url_hash: undefined }],
  ["with a hash that is no text", { url_hash: 7 }],
  ["that holds a body where there is none", { payload_hash: "00" }],
])("rejects a token %s", async (_, changed) => {
  expect(await read(changed)).toMatchObject({ refused: "signature" });
});
