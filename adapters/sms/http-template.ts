import { isGsm7 } from "../../src/domain/gsm.js";
import type { CodeMessage } from "../../src/ports/sms-sender.js";
import { digits } from "../kit/spelling.js";

/**
 * Placeholders of a message template: `{to}` (`+14155552671`), `{to_digits}` (`14155552671`), `{text}`, `{code}`,
 * `{from}`, `{country}`, `{authentication_uuid}`, `{attempt}`.
 * For receipts: `{reference}`, which the carrier should echo, and `{receipt_url}`.
 * For texts outside GSM-7: `{is_unicode}` (1, else 0) and `{coding}` (2, else 0, as in Kannel).
 * A placeholder without a value becomes empty.
 */
export const placeholders = [
  "to",
  "to_digits",
  "text",
  "code",
  "from",
  "country",
  "authentication_uuid",
  "attempt",
  "reference",
  "receipt_url",
  "is_unicode",
  "coding",
] as const;

export type Placeholder = (typeof placeholders)[number];

/** Returns the value of each placeholder for one message. */
export function valuesOf(message: CodeMessage, from: string | undefined): Record<Placeholder, string> {
  const unicode = !isGsm7(message.text);
  return {
    to: message.to,
    to_digits: digits(message.to),
    text: message.text,
    code: message.code,
    from: from ?? "",
    country: message.country ?? "",
    authentication_uuid: message.authentication_uuid,
    attempt: String(message.attempt),
    reference: message.receipt_reference ?? "",
    receipt_url: message.receipt_url ?? "",
    is_unicode: unicode ? "1" : "0",
    coding: unicode ? "2" : "0",
  };
}
