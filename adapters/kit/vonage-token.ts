import { createPrivateKey, type KeyObject, randomUUID, sign } from "node:crypto";
import { optionError, requireText } from "./option-error.js";

/**
 * Returns a function that makes the authorization header for a Vonage application: a JSON Web Token, RS256 with its
 * private key, valid for 300 s.
 *
 * @throws TypeError for a missing application and an invalid private key.
 */
export function applicationToken(name: string, applicationId: string | undefined, privateKey: string | undefined): () => string {
  const application = requireText(name, "applicationId", applicationId, "Pass the id of the application in the Vonage dashboard.");
  const key = readKey(name, requireText(name, "privateKey", privateKey, "Pass the application's private key as PEM text."));
  return () => {
    const issuedAt = Math.floor(Date.now() / 1000);
    const content = [
      { alg: "RS256", typ: "JWT" },
      { application_id: application, iat: issuedAt, exp: issuedAt + 300, jti: randomUUID() },
    ]
      .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
      .join(".");
    return `Bearer ${content}.${sign("sha256", Buffer.from(content), key).toString("base64url")}`;
  };
}

function readKey(name: string, pem: string): KeyObject {
  try {
    const key = createPrivateKey(pem);
    if (key.asymmetricKeyType === "rsa") return key;
  } catch {
    // Reported below, without the key.
  }
  throw optionError(name, "privateKey", "is not an RSA private key in PEM", "Pass the text of the application's private.key, line breaks included.");
}
