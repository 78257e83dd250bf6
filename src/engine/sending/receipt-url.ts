import { timingSafeEqual } from "node:crypto";
import type { Authentication } from "../../domain/authentication.js";
import type { Codes } from "../codes.js";

/** Which message a receipt is about. */
export interface ReceiptTarget {
  readonly customer: string;
  readonly id: string;
  readonly attempt: number;
}

/**
 * The URL that a carrier may post the newest message's receipts to. Its token vouches for carriers that sign nothing, and names the message without an index. The sender puts its provider's name in the place of `{provider}`.
 */
export function receiptUrlOf(codes: Codes, base: string, { customer, id, attempts }: Authentication): string {
  const query = new URLSearchParams({ c: customer, a: id, n: String(attempts), t: token(codes, { customer, id, attempt: attempts })[0] as string });
  return `${base}/receipts/{provider}?${query}`;
}

/** The message that a receipt's query names: `undefined` when it names none, `"forged"` when its token is not ours. */
export function readReceiptUrl(codes: Codes, query: string): ReceiptTarget | "forged" | undefined {
  const given = new URLSearchParams(query);
  const target = { customer: given.get("c") ?? "", id: given.get("a") ?? "", attempt: Number(given.get("n")) };
  if (!given.has("t")) return undefined;
  const theirs = Buffer.from(given.get("t") ?? "");
  const ours = token(codes, target).map((each) => Buffer.from(each));
  return ours.some((each) => each.length === theirs.length && timingSafeEqual(each, theirs)) ? target : "forged";
}

function token(codes: Codes, { customer, id, attempt }: ReceiptTarget): readonly string[] {
  return codes.fingerprints("receipt", `${customer}/${id}/${attempt}`);
}
