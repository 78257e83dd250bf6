import type { ReceiptReading, ReceiptRequest } from "../../../src/ports/receipts.js";
import { badSignature, expired, isStale, openSecrets, openTolerance } from "./report.js";
import { claimTime, isSha256Of, readJwt } from "./signature.js";

export interface VonageWebhookOptions {
  /** The account's signature secret; a list allows rotation. */
  readonly signatureSecret: string | readonly string[];
  /** Maximum seconds between the token's `iat` and now. Default: 300. */
  readonly tolerance?: number;
}

/** The same options, checked. @throws TypeError for a missing secret and an invalid tolerance. */
export function openWebhooks(name: string, { signatureSecret, tolerance }: VonageWebhookOptions) {
  const fix = "Pass the signature secret of the Vonage dashboard (API settings); it is not the API secret.";
  return { secrets: openSecrets(name, "signatureSecret", signatureSecret, fix), tolerance: openTolerance(name, tolerance, 300) };
}

/** Why a request is not an authentic webhook of Vonage; undefined if it is one. */
export function refuseVonage(request: ReceiptRequest, now: number, { secrets, tolerance }: ReturnType<typeof openWebhooks>): ReceiptReading | undefined {
  const token = /^bearer\s+(\S+)$/i.exec(request.header("authorization") ?? "")?.[1];
  if (token === undefined) return badSignature("there is no bearer token");
  const claims = secrets.map((secret) => readJwt(token, secret)).find((found) => found !== undefined);
  if (claims === undefined) return badSignature("the token is not signed with signatureSecret");
  if (!isSha256Of(request.body, claims["payload_hash"])) return badSignature("the body is not the one that was signed");
  const issuedAt = claimTime(claims["iat"]);
  const expiresAt = claimTime(claims["exp"]);
  if (issuedAt === undefined) return badSignature("the token does not say when it was issued");
  if (isStale(issuedAt, now, tolerance) || (expiresAt !== undefined && now >= expiresAt)) return expired("the token is too old or from the future");
  return undefined;
}
