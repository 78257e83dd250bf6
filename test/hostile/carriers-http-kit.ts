import { createSign, generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { CodeMessage, ReceiptRequest, SendContext } from "phoneproof";

export interface Answer {
  readonly status: number;
  readonly body: string;
  readonly type?: string;
}

/** A carrier on loopback that gives one answer to everything. */
export async function carrier({ status, body, type = "application/json" }: Answer) {
  const server = createServer((request, response) => {
    request.resume().on("end", () => response.writeHead(status, { "content-type": type }).end(body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

export function message(): CodeMessage {
  return {
    to: "+33612345678",
    authentication_uuid: "11111111-1111-4111-8111-111111111111",
    customer_uuid: "22222222-2222-4222-8222-222222222222",
    attempt: 1,
    country: "FR",
    idempotency_key: "one-message",
    text: "Your code is 482913",
    code: "482913",
    expires_at: Date.now() + 300_000,
  };
}

export function context(): SendContext {
  return { signal: AbortSignal.timeout(5_000), deadline: Date.now() + 5_000, timeLeft: 5_000 };
}

/** A carrier's request to the receipts route. */
export function report(url: string, headers: Readonly<Record<string, string>>, body: string): ReceiptRequest {
  return { method: "POST", url, header: (name) => headers[name], body: new TextEncoder().encode(body) };
}

const pair = generateKeyPairSync("rsa", { modulusLength: 2048 });

/** A notification as SNS posts it, signed with a key whose certificate is elsewhere. */
export function notification(topic: string, event: object, now: number): ReceiptRequest {
  const fields = { Message: JSON.stringify(event), MessageId: "1", Timestamp: new Date(now).toISOString(), TopicArn: topic, Type: "Notification" };
  const signed = Object.entries(fields).map(([name, value]) => `${name}\n${value}\n`);
  const whole = {
    ...fields,
    SignatureVersion: "2",
    Signature: createSign("RSA-SHA256").update(signed.join("")).sign(pair.privateKey, "base64"),
    SigningCertURL: "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-1.pem",
  };
  return report("https://api.example.com/receipts/aws", { "x-amz-sns-message-type": "Notification" }, JSON.stringify(whole));
}
