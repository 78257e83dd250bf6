import type { Receipt, ReceiptReading, ReceiptRequest } from "../../../src/ports/receipts.js";
import { errorToken } from "../../kit/error-code.js";
import { parseJson } from "../../kit/json.js";
import { optionFault, requireText } from "../../kit/option-fault.js";
import { idToken } from "./outcomes.js";
import { sameText } from "./signature.js";

/** A carrier's words for what became of a message, lower case, in ours. A word that is not listed says nothing. */
export type StatusWords = ReadonlyMap<string, Receipt["status"]>;

/** What a carrier says of one message, in its own words. */
export interface CarrierReport {
  readonly messageId?: unknown;
  readonly status: unknown;
  readonly at?: number | undefined;
  readonly error?: unknown;
  /** Our reference, where the carrier echoes it. */
  readonly reference?: unknown;
  /** What `messageId` is unique in, for carriers whose receipts name nothing else. */
  readonly idSpace?: string;
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
export function readReport(report: CarrierReport, words: StatusWords, vouched?: boolean): ReceiptReading {
  return readReports([report], words, vouched);
}

/** As `readReport`, as a list of one or none; undefined when it is not a report at all. */
export function toReceipts(report: CarrierReport, words: StatusWords): readonly Receipt[] | undefined {
  const messageId = idToken(report.messageId);
  const reference = typeof report.reference === "string" && referenceForm.test(report.reference) ? report.reference : undefined;
  if (typeof report.status !== "string" || (messageId === undefined && reference === undefined)) return undefined;
  const status = words.get(report.status.toLowerCase());
  if (status === undefined) return [];
  const error = errorToken(report.error);
  return [
    {
      ...(reference === undefined ? {} : { reference }),
      ...(messageId === undefined ? {} : { messageId }),
      ...(messageId === undefined || report.idSpace === undefined ? {} : { idSpace: report.idSpace }),
      status,
      ...(report.at === undefined || !Number.isFinite(report.at) ? {} : { at: report.at }),
      // Carriers say "no error" with a zero or an empty text.
      ...(error === undefined || error === "0" || error === "000" ? {} : { error }),
    },
  ];
}

/** The form of a `receipt_reference`; other echoes are somebody else's words. */
const referenceForm = /^[\w-]{40,100}$/;

/** As `readReport`, for several reports of one post; `malformed` when one of them is none. */
export function readReports(reports: readonly CarrierReport[], words: StatusWords, vouched = true): ReceiptReading {
  const receipts: Receipt[] = [];
  for (const report of reports) {
    const found = toReceipts(report, words);
    if (found === undefined) return malformed("a report names no message or no status");
    receipts.push(...found);
  }
  return vouched ? { receipts } : { receipts, vouched };
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

/** Characters of a secret in a URL: 96 bits and more, in any usual spelling. */
const shortestSecret = 16;

/**
 * For carriers that sign nothing and post to one URL set in their dashboard: a secret in that URL's query, `?key=…`, vouches for them. Answers whether a request bears it; several secrets while it is being changed.
 *
 * @throws TypeError for a secret that is missing or can be guessed.
 */
export function openUrlSecret(source: string, secret: string | readonly string[] | undefined): (request: ReceiptRequest) => boolean {
  const mend = "Make one with `openssl rand -hex 24`, and set the carrier's dashboard to https://…/receipts/<provider>?key=<secret>.";
  const secrets = openSecrets(source, "secret", secret, mend);
  for (const one of secrets)
    if (one.length < shortestSecret || !/^[\w.~-]+$/.test(one))
      throw optionFault(source, "secret", `must be ${shortestSecret} or more letters, digits, -, ., _ or ~, since it stands in a URL`, mend);
  return ({ url }) => {
    const given = URL.canParse(url) ? new URL(url).searchParams.get("key") : null;
    return given !== null && secrets.some((one) => sameText(one, given));
  };
}

/** A secret, or several while it is being changed. @throws TypeError unless there is one. */
export function openSecrets(source: string, option: string, secrets: string | readonly string[] | undefined, mend: string): readonly string[] {
  const list = typeof secrets === "string" || secrets === undefined ? [secrets] : secrets;
  if (list.length === 0) throw optionFault(source, option, "is an empty list", mend);
  return list.map((secret) => requireText(source, option, secret, mend));
}
