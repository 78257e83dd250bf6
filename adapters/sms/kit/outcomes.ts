import type { CodeMessage, SendOutcome } from "../../../src/ports/sms-sender.js";
import { errorToken, withCode } from "../../kit/error-code.js";

/** Accepted under the carrier's id; unknown if the response lacks a valid id. */
export function acceptedAs(id: unknown): SendOutcome {
  const messageId = idToken(id);
  return messageId === undefined ? { outcome: "unknown", reason: "the carrier's response is not in the expected format" } : { outcome: "accepted", messageId };
}

/**
 * Rejected within a response of 200 to 299.
 *
 * @param unreachableBy Codes which mean that the number is not on the channel. Default: none does.
 */
export function rejectedWith(code: unknown, unreachableBy?: ReadonlySet<string>): Extract<SendOutcome, { readonly outcome: "rejected" }> {
  const token = errorToken(code);
  return {
    outcome: "rejected",
    reason: withCode("rejected by the carrier", token),
    ...(token !== undefined && unreachableBy?.has(token) && { unreachable: true }),
  };
}

/** Rejected because nothing was sent. */
export function notSent(why: string): SendOutcome {
  return { outcome: "rejected", reason: `not sent: ${why}` };
}

/** A carrier's message id: 1 to 200 visible ASCII characters, or a whole number. */
export function idToken(value: unknown): string | undefined {
  const text = typeof value === "number" && Number.isSafeInteger(value) ? String(value) : value;
  return typeof text === "string" && /^[\x21-\x7e]{1,200}$/.test(text) ? text : undefined;
}

/** Removes the one-time code and phone numbers from a reason, whatever a carrier or function echoed. */
export function discreet(outcome: SendOutcome, { code }: CodeMessage): SendOutcome {
  if (outcome.outcome === "accepted" || outcome.reason === undefined) return outcome;
  // A text without a code has an empty one, which is everywhere.
  const reason = code === "" ? outcome.reason : outcome.reason.replaceAll(code, "******");
  return { ...outcome, reason: reason.replace(/\d(?:[ .-]?\d){6,}/g, "…") };
}
