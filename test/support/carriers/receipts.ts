import { createHash, createHmac, createPrivateKey, generateKeyPairSync, randomUUID, sign } from "node:crypto";
import { SignJWT } from "jose";
import type { ReceiptRequest } from "../../../src/ports/receipts.js";
import { aReceipt } from "./messages.js";
import { snsKey } from "./sns-key.js";

/** The parameters of a carrier's signature, which tests can make wrong. */
export interface Signing {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly secret?: string;
  readonly url?: string;
}

/** Creates a carrier's receipt, signed by code that is independent of the library. */
export type Signer = (content: Record<string, unknown>, signing: Signing) => ReceiptRequest | Promise<ReceiptRequest>;

const hmac = (hash: string, secret: string, text: string) => createHmac(hash, secret).update(text).digest("base64");
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
const asForm = (content: Record<string, unknown>) => new URLSearchParams(content as Record<string, string>).toString();
const formHeaders = { "content-type": "application/x-www-form-urlencoded" };

export const signTwilio: Signer = (content, { secret = "twilio-auth-token", url = "https://otp.example/receipts/twilio?a=1&t=x" }) => {
  const joined = Object.keys(content)
    .sort()
    .map((key) => `${key}${String(content[key])}`)
    .join("");
  return aReceipt({ url, body: asForm(content), headers: { ...formHeaders, "X-Twilio-Signature": hmac("sha1", secret, url + joined) } });
};

export const signVonage: Signer = async (content, { at, secret = "vonage-signature-secret" }) => {
  const body = JSON.stringify(content);
  const claims = { iat: Math.floor(at / 1000), jti: randomUUID(), iss: "Vonage", payload_hash: sha256(body), api_key: "abcd1234", application_id: "aaaa" };
  const token = await new SignJWT(claims).setProtectedHeader({ alg: "HS256", typ: "JWT" }).sign(Buffer.from(secret));
  return aReceipt({ body, headers: { "content-type": "application/json", Authorization: `Bearer ${token}` } });
};

export const signMessageBird: Signer = async (
  content,
  { at, secret = "messagebird-signing-key", url: base = "https://otp.example/receipts/messagebird?a=1" },
) => {
  const url = `${base}&${asForm(content)}`;
  const seconds = Math.floor(at / 1000);
  const claims = { iss: "MessageBird", nbf: seconds, exp: seconds + 60, jti: randomUUID(), url_hash: sha256(url) };
  const token = await new SignJWT(claims).setProtectedHeader({ alg: "HS256", typ: "JWT" }).sign(Buffer.from(secret));
  return aReceipt({ method: "GET", url, headers: { "MessageBird-Signature-JWT": token } });
};

export const signPlivo: Signer = (content, { secret = "plivo-auth-token", url = "https://otp.example/receipts/plivo?a=1" }) => {
  const nonce = "05429567804466091622";
  const joined = Object.keys(content)
    .sort()
    .map((key) => `${key}${String(content[key])}`)
    .join("");
  return aReceipt({
    url,
    body: asForm(content),
    headers: { ...formHeaders, "X-Plivo-Signature-V3": hmac("sha256", secret, `${url}.${joined}.${nonce}`), "X-Plivo-Signature-V3-Nonce": nonce },
  });
};

export const signSinch: Signer = (content, { at, secret = "sinch-webhook-secret" }) => {
  const body = JSON.stringify(content);
  const time = String(Math.floor(at / 1000));
  const headers = {
    "x-sinch-webhook-signature": hmac("sha256", secret, `${body}.nonce-1.${time}`),
    "x-sinch-webhook-signature-nonce": "nonce-1",
    "x-sinch-webhook-signature-timestamp": time,
    "x-sinch-webhook-signature-algorithm": "HmacSHA256",
  };
  return aReceipt({ body, headers });
};

export const signTelegram: Signer = (content, { at, secret = "telegram-token" }) => {
  const body = JSON.stringify(content);
  const time = String(Math.floor(at / 1000));
  const key = createHash("sha256").update(secret).digest();
  const signature = createHmac("sha256", key).update(`${time}\n${body}`).digest("hex");
  return aReceipt({ body, headers: { "X-Request-Timestamp": time, "X-Request-Signature": signature } });
};

export const signWhatsapp: Signer = (content, { secret = "meta-app-secret" }) => {
  const body = JSON.stringify(content);
  return aReceipt({ body, headers: { "X-Hub-Signature-256": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}` } });
};

/** Meta's webhook with these statuses. */
export const statusWebhook = (...statuses: readonly object[]): Record<string, unknown> => ({
  object: "whatsapp_business_account",
  entry: [
    {
      id: "102290129340398",
      changes: [
        {
          field: "messages",
          value: { messaging_product: "whatsapp", metadata: { display_phone_number: "15550783881", phone_number_id: "106540352242922" }, statuses },
        },
      ],
    },
  ],
});

const telnyxKeys = generateKeyPairSync("ed25519");
const otherTelnyxKey = generateKeyPairSync("ed25519").privateKey;
export const telnyxPublicKey = telnyxKeys.publicKey.export({ type: "spki", format: "der" }).subarray(-32).toString("base64");

export const signTelnyx: Signer = (content, { at, secret }) => {
  const body = JSON.stringify(content);
  const time = String(Math.floor(at / 1000));
  const signature = sign(null, Buffer.from(`${time}|${body}`), secret === undefined ? telnyxKeys.privateKey : otherTelnyxKey).toString("base64");
  return aReceipt({ body, headers: { "telnyx-signature-ed25519": signature, "telnyx-timestamp": time } });
};

export const topicArn = "arn:aws:sns:eu-west-1:123456789012:sms-events";
export const certificateUrl = "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0123456789abcdef.pem";
const otherSnsKey = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;

/** A signed SNS message; `fields` replace parts of the envelope before signing. */
export function signSns(fields: Record<string, unknown>, { at, secret }: Signing): ReceiptRequest {
  const envelope: Record<string, unknown> = {
    Type: "Notification",
    MessageId: randomUUID(),
    TopicArn: topicArn,
    Timestamp: new Date(at).toISOString(),
    SignatureVersion: "2",
    SigningCertURL: certificateUrl,
    UnsubscribeURL: "https://sns.eu-west-1.amazonaws.com/?Action=Unsubscribe",
    ...fields,
  };
  const names =
    envelope["Type"] === "Notification"
      ? ["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"]
      : ["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"];
  const content = names
    .filter((name) => envelope[name] !== undefined)
    .map((name) => `${name}\n${String(envelope[name])}\n`)
    .join("");
  const hash = envelope["SignatureVersion"] === "1" ? "sha1" : "sha256";
  const signature = sign(hash, Buffer.from(content), secret === undefined ? createPrivateKey(snsKey) : otherSnsKey).toString("base64");
  return aReceipt({
    body: JSON.stringify({ ...envelope, Signature: signature }),
    headers: { "content-type": "text/plain; charset=UTF-8", "x-amz-sns-message-type": String(envelope["Type"]) },
  });
}

export const signAws: Signer = (content, signing) => signSns({ Message: JSON.stringify(content) }, signing);
