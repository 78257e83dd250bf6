import { isGsm7 } from "../../src/domain/gsm.js";
import type { CodeMessage } from "../../src/ports/sms-sender.js";
import { digits } from "../kit/spelling.js";

/** The value of each placeholder of a message template, explained at `url` of `HttpSenderOptions`; empty for none. */
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
