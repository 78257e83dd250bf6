import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

/** Keeps texts so that the store cannot read them: AES-256-GCM under keys made of the verifier's secrets. */
export interface Seals {
  /** Under the current secret, for this customer alone. */
  seal(customer: string, texts: readonly string[]): string;
  /** What was sealed; `current`: under the current secret. Throws when it was sealed under none of the secrets, or for another customer. */
  open(customer: string, sealed: string): { readonly texts: readonly string[]; readonly current: boolean };
}

const [nonceBytes, tagBytes] = [12, 16];

/** `secrets`: the current one first. */
export function createSeals(secrets: readonly string[]): Seals {
  const keyOf = (secret: string) => Buffer.from(hkdfSync("sha256", secret, "", "phoneproof: secrets of customers", 32));

  const unseal = (secret: string, customer: string, sealed: Buffer): readonly string[] | undefined => {
    try {
      const opening = createDecipheriv("aes-256-gcm", keyOf(secret), sealed.subarray(0, nonceBytes), { authTagLength: tagBytes });
      opening.setAAD(Buffer.from(customer)).setAuthTag(sealed.subarray(nonceBytes, nonceBytes + tagBytes));
      const text = Buffer.concat([opening.update(sealed.subarray(nonceBytes + tagBytes)), opening.final()]).toString("utf8");
      return JSON.parse(text) as readonly string[];
    } catch {
      return undefined;
    }
  };

  return {
    seal(customer, texts) {
      const nonce = randomBytes(nonceBytes);
      const closing = createCipheriv("aes-256-gcm", keyOf(secrets[0] as string), nonce, { authTagLength: tagBytes }).setAAD(Buffer.from(customer));
      const text = Buffer.concat([closing.update(JSON.stringify(texts)), closing.final()]);
      return Buffer.concat([nonce, closing.getAuthTag(), text]).toString("base64url");
    },
    open(customer, sealed) {
      const bytes = Buffer.from(sealed, "base64url");
      for (const [at, secret] of secrets.entries()) {
        const texts = unseal(secret, customer, bytes);
        if (texts !== undefined) return { texts, current: at === 0 };
      }
      throw new Error(
        `the webhook secrets of customer ${customer} were kept under a secret that is no longer among the option secret: put it there, or set them anew`,
      );
    },
  };
}
