import { createPrivateKey, type KeyObject } from "node:crypto";

const fix = "make one with: openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048";

/** Environment variables often hold line breaks as `\n`. Throws if the text is not a key. */
export function privateKeyOf(pem: string): KeyObject {
  return createPrivateKey(pem.replaceAll("\\n", "\n"));
}

/** What is wrong with an RSA private key in PEM form. Nothing of the key is in the text. */
export function rsaKeyError(pem: string): string | undefined {
  try {
    const { asymmetricKeyType, asymmetricKeyDetails } = privateKeyOf(pem);
    if (asymmetricKeyType === "rsa" && Number(asymmetricKeyDetails?.modulusLength) >= 2048) return undefined;
  } catch {}
  return `must be an RSA private key of 2048 bits or more in PEM form; ${fix}`;
}
