import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import type { ReceiptRequest } from "../../../src/ports/receipts.js";
import type { CodeMessage } from "../../../src/ports/sms-sender.js";

/** What is needed to say a code once a key is pressed. */
type SealedMessage = Pick<CodeMessage, "code" | "locale" | "country" | "expires_at">;

/** The URLs of a call that asks for a key. @throws Error if the verifier takes no receipts. */
export function keyUrls(message: CodeMessage, secret: string): { readonly events: string; readonly pressed: string } {
  const { receipt_url: url } = message;
  if (url === undefined) throw new Error("pressKey needs the verifier's option receipts; without it, pass pressKey: false");
  return { events: `${url}&press=1`, pressed: `${url}&sealed=${sealCode(secret, message)}` };
}

/** What the URL of a call's event contains. */
export function readCallUrl({ url }: ReceiptRequest, secrets: readonly string[], now: number) {
  const query = new URL(url).searchParams;
  const sealed = query.get("sealed");
  return {
    /** The call asks for a key. */
    asksForKey: query.has("press"),
    /** It is the request that follows a key. */
    isKey: sealed !== null,
    /** The code to say; undefined if it is no longer valid. */
    message: sealed === null ? undefined : unsealCode(secrets, query.get("r") ?? "", sealed, now),
  };
}

/**
 * Encrypts a message's code for the URL that the carrier requests when a key is pressed (AES-256-GCM), so that nothing
 * has to store it. It can only be decrypted together with the message's reference.
 */
function sealCode(secret: string, { code, locale, country, expires_at, receipt_reference = "" }: CodeMessage): string {
  const iv = randomBytes(12);
  const cipher = createCipheriv("aes-256-gcm", keyOf(secret), iv).setAAD(Buffer.from(receipt_reference));
  const sealed = Buffer.concat([cipher.update(JSON.stringify({ code, locale, country, expires_at })), cipher.final()]);
  return Buffer.concat([iv, sealed, cipher.getAuthTag()]).toString("base64url");
}

/** Decrypts a code. Returns undefined if it has expired, belongs to another reference, or was sealed with another secret. */
function unsealCode(secrets: readonly string[], reference: string, sealed: string, now: number): SealedMessage | undefined {
  const bytes = Buffer.from(sealed, "base64url");
  for (const secret of secrets) {
    try {
      const decipher = createDecipheriv("aes-256-gcm", keyOf(secret), bytes.subarray(0, 12), { authTagLength: 16 })
        .setAAD(Buffer.from(reference))
        .setAuthTag(bytes.subarray(-16));
      const text = Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()]).toString("utf8");
      const message = JSON.parse(text) as SealedMessage;
      return message.expires_at > now ? message : undefined;
    } catch {
      // Sealed with another secret, for another message, or not at all.
    }
  }
  return undefined;
}

function keyOf(secret: string): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", secret, "", "phoneproof: code of a call", 32));
}
