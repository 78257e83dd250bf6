import { createHmac } from "node:crypto";
import type { ReceiptReading, ReceiptRequest } from "../../../src/ports/receipts.js";
import { badSignature, bodyForm, malformed } from "./report.js";
import { isSha256Of, sameText, sortedPairs } from "./signature.js";

/** The form of an authentic request from Twilio, or why it is not one. */
export function readTwilioRequest(request: ReceiptRequest, tokens: readonly string[]): URLSearchParams | ReceiptReading {
  const signature = request.header("x-twilio-signature");
  if (signature === undefined) return badSignature("there is no X-Twilio-Signature header");
  if (!URL.canParse(request.url)) return malformed("the request has no absolute URL");
  const form = bodyForm(request);
  if (form === undefined) return malformed("the body is not UTF-8");
  const bodyHash = new URL(request.url).searchParams.get("bodySHA256");
  const signed = bodyHash === null ? joined(form) : "";
  const signatureWith = (token: string, url: string) => createHmac("sha1", token).update(url).update(signed).digest("base64");
  const authentic = tokens.some((token) => urlSpellings(request.url).some((url) => sameText(signatureWith(token, url), signature)));
  if (!authentic)
    return badSignature(
      "X-Twilio-Signature does not match this URL and body: is the public URL the exact one that Twilio was given, and authToken the primary one?",
    );
  if (bodyHash !== null && !isSha256Of(request.body, bodyHash)) return badSignature("the body is not the one that was signed");
  return form;
}

/** Joins sorted parameters: names and values without separators; a repeated value counts once. */
function joined(form: URLSearchParams): string {
  return sortedPairs(form)
    .filter(([key, value], at, all) => at === 0 || all[at - 1]?.[0] !== key || all[at - 1]?.[1] !== value)
    .flat()
    .join("");
}

/** The URL as received, and with the scheme's default port added or removed: Twilio signs one or the other. */
function urlSpellings(url: string): string[] {
  const parts = /^(https?):\/\/([^/?#:]+|\[[^\]]+\])(:\d+)?(.*)$/is.exec(url);
  if (parts === null) return [url];
  const [, scheme = "", host = "", , rest = ""] = parts;
  return [url, `${scheme}://${host}:${scheme.toLowerCase() === "https" ? 443 : 80}${rest}`, `${scheme}://${host}${rest}`];
}
