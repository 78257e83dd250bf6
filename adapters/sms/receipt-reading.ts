import type { Receipt, ReceiptReading, ReceiptRequest } from "../../src/ports/receipts.js";
import { optionFault, requireText } from "./carrier-options.js";
import { errorToken, idToken } from "./carrier-send.js";
import { parseJson } from "./json.js";

/** A carrier's words for what became of a message, lower case, in ours. A word that is not listed says nothing. */
export type StatusWords = ReadonlyMap<string, Receipt["status"]>;

/** What a carrier says of one message, in its own words. */
export interface CarrierReport {
  readonly messageId?: unknown;
  readonly status: unknown;
  readonly at?: number | undefined;
  readonly error?: unknown;
  readonly reference?: { readonly authentication_uuid?: string; readonly attempt?: number };
}

export function badSignature(reason: string): ReceiptReading {
  return { refused: "signature", reason };
}

export function malformed(reason: string): ReceiptReading {
  return { refused: "malformed", reason };
}

export function expired(reason: string): ReceiptReading {
  return { refused: "expired", reason };
}

/**
 * An authentic report in our words. One whose status is not in `words` (the carrier has invented a new one, or it is about something else) yields no receipt:
 * it must not end a message's life, as our `unknown` would.
 */
export function readReport(report: CarrierReport, words: StatusWords): ReceiptReading {
  const receipts = toReceipts(report, words);
  return receipts === undefined ? malformed("the report names no message or no status") : { receipts };
}

/** As `readReport`, as a list of one or none; undefined when it is not a report at all. */
export function toReceipts(report: CarrierReport, words: StatusWords): readonly Receipt[] | undefined {
  const messageId = idToken(report.messageId);
  if (typeof report.status !== "string" || (messageId === undefined && report.reference?.authentication_uuid === undefined)) return undefined;
  const status = words.get(report.status.toLowerCase());
  if (status === undefined) return [];
  const error = errorToken(report.error);
  return [
    {
      ...report.reference,
      ...(messageId === undefined ? {} : { messageId }),
      status,
      ...(report.at === undefined || !Number.isFinite(report.at) ? {} : { at: report.at }),
      // Carriers say "no error" with a zero or an empty text.
      ...(error === undefined || error === "0" || error === "000" ? {} : { error }),
    },
  ];
}

/** The body as UTF-8; undefined when it is none. */
export function bodyText(request: ReceiptRequest): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(request.body);
  } catch {
    return undefined;
  }
}

/** The body as JSON; undefined when it is none. */
export function bodyJson(request: ReceiptRequest): unknown {
  const text = bodyText(request);
  return text === undefined ? undefined : parseJson(text);
}

/** The body as a form; undefined when it is not UTF-8. */
export function bodyForm(request: ReceiptRequest): URLSearchParams | undefined {
  const text = bodyText(request);
  return text === undefined ? undefined : new URLSearchParams(text);
}

/** A time written after ISO 8601, in milliseconds since the epoch. */
export function isoTime(value: unknown): number | undefined {
  const at = typeof value === "string" ? Date.parse(value) : Number.NaN;
  return Number.isFinite(at) ? at : undefined;
}

/** True when a signed time is further from `now` than `tolerance` seconds, either way. */
export function isStale(signedAt: number, now: number, tolerance: number): boolean {
  return !(Math.abs(now - signedAt) <= tolerance * 1000);
}

/** @throws TypeError unless it is a number of seconds above 0. */
export function openTolerance(source: string, tolerance: number | undefined, usual: number): number {
  if (tolerance === undefined) return usual;
  if (!(Number.isFinite(tolerance) && tolerance > 0))
    throw optionFault(source, "tolerance", "must be a number of seconds above 0", `Leave it out for ${usual}.`);
  return tolerance;
}

/** A secret, or several while it is being changed. @throws TypeError unless there is one. */
export function openSecrets(source: string, option: string, secrets: string | readonly string[] | undefined, mend: string): readonly string[] {
  const list = typeof secrets === "string" || secrets === undefined ? [secrets] : secrets;
  if (list.length === 0) throw optionFault(source, option, "is an empty list", mend);
  return list.map((secret) => requireText(source, option, secret, mend));
}
