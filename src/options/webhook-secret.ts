import { knownError } from "./secret.js";

/** The form of a secret that signs callbacks (Standard Webhooks, Signature scheme: "192 bits, 512 maximum"). */
export const webhookSecretForm = "whsec_ and 24 to 64 bytes in base64";

/**
 * Whether a secret has that form. Padding is optional; URL-safe base64 is invalid, as some receivers read it as an
 * empty key.
 */
export function isWebhookSecret(secret: string): boolean {
  const [, digits = "", padding = ""] = /^whsec_([A-Za-z0-9+/]*)(={0,2})$/.exec(secret) ?? [];
  const bytes = Math.floor((digits.length * 3) / 4);
  const isWhole = padding === "" ? digits.length % 4 !== 1 : (digits.length + padding.length) % 4 === 0;
  return isWhole && bytes >= 24 && bytes <= 64;
}

const fix = 'make one with: echo "whsec_$(openssl rand -base64 32)"';

export function webhookSecretFormError(secret: string): string | undefined {
  return isWebhookSecret(secret) ? undefined : `must be ${webhookSecretForm}; ${fix}`;
}

export function webhookSecretError(secret: string): string | undefined {
  return webhookSecretFormError(secret) ?? knownError(secret, fix);
}
