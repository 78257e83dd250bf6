import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

/** Authenticated encryption, AES-256-GCM, under keys derived from the verifier's secrets. */
export type Seals = ReturnType<typeof createSeals>;

const algorithm = "aes-256-gcm";
const [nonceBytes, tagBytes] = [12, 16];

/** `secrets`: current first. `use`: makes the keys those of this use. */
export function createSeals(secrets: readonly string[], use: string) {
  const keyOf = (secret: string) => Buffer.from(hkdfSync("sha256", secret, "", use, 32));
  return {
    /** Encrypts under the current secret, for this owner only. */
    seal(owner: string, texts: readonly string[]): string {
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv(algorithm, keyOf(secrets[0] as string), nonce).setAAD(Buffer.from(owner));
      const text = Buffer.concat([cipher.update(JSON.stringify(texts)), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), text]).toString("base64url");
    },
    /** Decrypts. `current`: sealed under the current secret. `undefined`: no secret fits, or it is another owner's. */
    open(owner: string, sealed: string): { readonly texts: readonly string[]; readonly current: boolean } | undefined {
      const bytes = Buffer.from(sealed, "base64url");
      for (const secret of secrets) {
        try {
          const decipher = createDecipheriv(algorithm, keyOf(secret), bytes.subarray(0, nonceBytes), { authTagLength: tagBytes });
          decipher.setAAD(Buffer.from(owner)).setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes));
          const text = Buffer.concat([decipher.update(bytes.subarray(nonceBytes + tagBytes)), decipher.final()]);
          return { texts: JSON.parse(text.toString()) as string[], current: secret === secrets[0] };
        } catch {} // Another secret may fit.
      }
      return undefined;
    },
  };
}
