import { isGsm7 } from "../../src/domain/gsm.js";
import type { CodeMessage } from "../../src/ports/sms-sender.js";
import { digits } from "../kit/spelling.js";

/**
 * The value of each placeholder of a message template: `{to}` (`+14155552671`), `{to_digits}` (`14155552671`), `{text}`,
 * `{code}`, `{from}`, `{country}`, `{authentication_uuid}`, `{attempt}`.
 * For receipts: `{reference}`, which the carrier should echo, and `{receipt_url}`.
 * For texts outside GSM-7: `{is_unicode}` (1, else 0) and `{coding}` (2, else 0, as in Kannel).
 * A placeholder without a value becomes empty.
 */
export const placeholders = {
  to: ({ to }) => to,
  to_digits: ({ to }) => digits(to),
  text: ({ text }) => text,
  code: ({ code }) => code,
  from: (_, from = "") => from,
  country: ({ country = "" }) => country,
  authentication_uuid: ({ authentication_uuid }) => authentication_uuid,
  attempt: ({ attempt }) => String(attempt),
  reference: ({ receipt_reference = "" }) => receipt_reference,
  receipt_url: ({ receipt_url = "" }) => receipt_url,
  is_unicode: ({ text }) => (isGsm7(text) ? "0" : "1"),
  coding: ({ text }) => (isGsm7(text) ? "0" : "2"),
} satisfies Readonly<Record<string, (message: CodeMessage, from: string | undefined) => string>>;

export type Placeholder = keyof typeof placeholders;
