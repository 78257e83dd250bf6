import type { Receipt, ReceiptReading, ReceiptRequest } from "../../../src/ports/receipts.js";
import { errorToken } from "../../kit/error-code.js";
import { parseJson } from "../../kit/json.js";
import { optionError, requireSeconds, requireText } from "../../kit/option-error.js";
import { idToken } from "./outcomes.js";
import { sameText } from "./signature.js";

/** Maps a carrier's status words, in lower case, to ours. Unlisted words are ignored. */
export type StatusWords = ReadonlyMap<string, Receipt["status"]>;

/** The same map from lists of words by our status. */
export function statusWords(lists: { readonly [status in Receipt["status"]]?: readonly string[] }): StatusWords {
  return new Map(Object.entries(lists).flatMap(([status, words]) => words.map((word) => [word, status as Receipt["status"]] as const)));
}

/** A carrier's report on one message, in its own words. */
export interface CarrierReport {
  readonly messageId?: unknown;
  readonly status: unknown;
  readonly at?: number | undefined;
  readonly error?: unknown;
  /** Our reference, if the carrier echoes it. */
  readonly reference?: unknown;
  /** The scope in which `messageId` is unique, for carriers whose receipts name nothing else. */
  readonly idSpace?: string;
  /** No id is needed: the message's own URL may name it. */
  readonly byUrl?: boolean;
  /** Errors which mean that the number is not on the channel. */
  readonly unreachableBy?: ReadonlySet<string>;
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
 * Converts an authentic report. A status that is not in `words` (new, or about something else) is ignored: mapping it to
 * our `unknown` would end the message's tracking.
 */
export function readReport(report: CarrierReport, words: StatusWords, vouched?: boolean): ReceiptReading {
  return readReports([report], words, vouched);
}

/** The form of a `receipt_reference`; any other echo is not ours. */
const referenceForm = /^[\w-]{40,100}$/;

/** Like `readReport`, for several reports of one post; `malformed` if one of them is invalid. */
export function readReports(reports: readonly CarrierReport[], words: StatusWords, vouched = true): ReceiptReading {
  const receipts: Receipt[] = [];
  const ignored: string[] = [];
  for (const report of reports) {
    const messageId = idToken(report.messageId);
    const echo = typeof report.reference === "string" ? report.reference : "";
    const reference = referenceForm.test(echo) ? echo : undefined;
    const namesNone = messageId === undefined && reference === undefined && report.byUrl !== true;
    if (typeof report.status !== "string" || (namesNone && echo === "")) return malformed("a report names no message or no status");
    // Another system's message.
    if (namesNone) continue;
    const status = words.get(report.status.toLowerCase());
    if (status === undefined) {
      if (reference !== undefined) ignored.push(reference);
      continue;
    }
    const error = errorToken(report.error);
    receipts.push({
      ...(reference !== undefined && { reference }),
      ...(messageId !== undefined && { messageId }),
      ...(messageId !== undefined && report.idSpace !== undefined && { idSpace: report.idSpace }),
      status,
      ...(report.at !== undefined && Number.isFinite(report.at) && { at: report.at }),
      // Some carriers report "no error" as a zero or an empty text.
      ...(error !== undefined && error !== "0" && error !== "000" && { error }),
      ...(error !== undefined && report.unreachableBy?.has(error) && { unreachable: true }),
    });
  }
  return vouched ? { receipts } : { receipts, ignored, vouched };
}

/** The body as UTF-8; undefined if invalid. */
export function bodyText(request: ReceiptRequest): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(request.body);
  } catch {
    return undefined;
  }
}

/** The body as JSON; undefined if invalid. */
export function bodyJson(request: ReceiptRequest): unknown {
  const text = bodyText(request);
  return text === undefined ? undefined : parseJson(text);
}

/** The body as a form; undefined if it is not UTF-8. */
export function bodyForm(request: ReceiptRequest): URLSearchParams | undefined {
  const text = bodyText(request);
  return text === undefined ? undefined : new URLSearchParams(text);
}

/** Parses an ISO 8601 time, in UTC unless it names a zone, into milliseconds since the epoch. */
export function isoTime(value: unknown): number | undefined {
  const at = typeof value === "string" ? Date.parse(value.replace(/^(\d{4}-\d\d-\d\d)[T ]([\d:.]+)$/, "$1T$2Z")) : Number.NaN;
  return Number.isFinite(at) ? at : undefined;
}

/** Whether a signed time differs from `now` by more than `tolerance` seconds, in either direction. */
export function isStale(signedAt: number, now: number, tolerance: number): boolean {
  return !(Math.abs(now - signedAt) <= tolerance * 1000);
}

/** @throws TypeError unless it is a number of seconds, above 0 and at most 24 days. */
export function openTolerance(source: string, tolerance: number | undefined, usual: number): number {
  return requireSeconds(source, "tolerance", tolerance, `Leave it out for ${usual}.`) ?? usual;
}

/** Minimum characters of a secret in a URL: 96 bits or more in any usual encoding. */
const shortestSecret = 16;

/**
 * For carriers that sign nothing and post to one URL set in their dashboard: a secret in that URL's query, `?key=…`,
 * authenticates them. Returns a test for requests; several secrets allow rotation.
 *
 * @throws TypeError for a missing or guessable secret.
 */
export function openUrlSecret(source: string, secret: string | readonly string[] | undefined): (request: ReceiptRequest) => boolean {
  const fix = "Make one with `openssl rand -hex 24`, and set the carrier's dashboard to https://…/receipts/<provider>?key=<secret>.";
  const secrets = openSecrets(source, "secret", secret, fix);
  for (const one of secrets)
    if (one.length < shortestSecret || !/^[\w.~-]+$/.test(one))
      throw optionError(source, "secret", `must be ${shortestSecret} or more letters, digits, -, ., _ or ~, because it is part of a URL`, fix);
  return ({ url }) => {
    const given = URL.canParse(url) ? new URL(url).searchParams.get("key") : null;
    return given !== null && secrets.some((one) => sameText(one, given));
  };
}

/** One secret, or several for rotation. @throws TypeError if there is none. */
export function openSecrets(source: string, option: string, secrets: string | readonly string[] | undefined, fix: string): readonly string[] {
  const list = typeof secrets === "string" || secrets === undefined ? [secrets] : secrets;
  if (list.length === 0) throw optionError(source, option, "is an empty list", fix);
  return list.map((secret) => requireText(source, option, secret, fix));
}
