import { deliveryStatuses } from "../contract/callback.js";
import { getOrPut } from "../core/collections.js";
import type { StoreDeadline } from "../core/deadline.js";
import { runOfDigits } from "../core/loggers.js";
import { update } from "../core/records/transact.js";
import { type Authentication, sendOf } from "../domain/authentication.js";
import { plainLine } from "../domain/message.js";
import { synchronous } from "../domain/promises.js";
import { withoutFallback } from "../domain/retry.js";
import { settleReceipt } from "../domain/send.js";
import { VerifierError } from "../errors.js";
import type { Receipt } from "../ports/receipts.js";
import { sendFeedback } from "./feedback.js";
import { findById } from "./message-ids.js";
import type { Messages } from "./messages.js";
import { mayReplace } from "./plan.js";
import { type ReceiptTarget, readReference } from "./receipt-reference.js";
import { rememberUnreachable } from "./unreachable.js";

/** The source of receipts that came over HTTP. */
export interface ReceiptOrigin {
  readonly provider: string;
  /** `false`: unsigned; only our signed reference authenticates them. */
  readonly vouched: boolean;
}

/** Further information from a request with receipts. */
export interface ReceiptRound {
  /** The message whose own URL received them. */
  readonly url?: ReceiptTarget | undefined;
  /** Absent: the host passed them to `settleReceipts`. */
  readonly origin?: ReceiptOrigin | undefined;
}

/** Messages settled in parallel; receipts of one message are settled one after another. */
const atOnce = 16;

/**
 * Settles carriers' receipts: "one signed reference, carried in whichever field a carrier offers, and an index of
 * message ids only where a carrier offers none" (docs/contract.md#receipt-reference). Unknown messages are ignored. A
 * message's URL authenticates one receipt, so that one post cannot settle it twice. Returns how many were
 * authenticated. All store calls share one deadline; rejects with `unavailable`.
 */
export async function settleReceipts(parts: Messages, receipts: readonly Receipt[], { url, origin }: ReceiptRound = {}): Promise<number> {
  const deadline = parts.newDeadline();
  let trusted = 0;
  const lines = new Map<string, (() => Promise<void>)[]>();
  for (const receipt of receipts) {
    const named = receipt.reference === undefined ? (receipts.length === 1 ? url : undefined) : readReference(parts.keyring, receipt.reference);
    if (named === undefined && origin?.vouched === false) continue;
    trusted += 1;
    const key = named === undefined ? `${receipt.idSpace}/${receipt.messageId}` : named.id;
    getOrPut(lines, key, () => []).push(async () => {
      const target = named ?? (await targetById(parts, deadline, receipt));
      if (target !== undefined) await settleOne(parts, deadline, receipt, target, origin);
    });
  }
  const waiting = lines.values();
  const work = async () => {
    for (const line of waiting) for (const settle of line) await settle();
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, lines.size) }, work));
  return trusted;
}

/**
 * Settles receipts that the host received by other means than HTTP. Rejects with `bad_request` for an invalid receipt,
 * or one without a message.
 */
export async function settleForeign(parts: Messages, receipts: readonly Receipt[]): Promise<void> {
  if (!Array.isArray(receipts)) throw new VerifierError("bad_request", "settleReceipts takes a list of receipts.");
  const sound = receipts.map((receipt: unknown, index) => {
    const read = parseReceipt(receipt);
    if (typeof read === "string") throw new VerifierError("bad_request", `receipts.${index} ${read}`);
    if (read.reference === undefined && (read.messageId === undefined || read.idSpace === undefined))
      throw new VerifierError(
        "bad_request",
        `receipts.${index} names no message: pass its reference, or messageId and idSpace from the accepted outcome of its send.`,
      );
    return read;
  });
  await settleReceipts(parts, sound);
}

/** Validates a receipt, shortening texts and removing numbers from them, but for an error that is a short number; returns an error text if it is invalid. */
export function parseReceipt(receipt: unknown): Receipt | string {
  if (typeof receipt !== "object" || receipt === null) return "is not a receipt: { reference, status }.";
  const { reference, messageId, idSpace, status, at, error, unreachable } = receipt as Readonly<Record<string, unknown>>;
  const known = deliveryStatuses.find((word) => word === status);
  if (known === undefined) return `has no status: one of ${deliveryStatuses.join(", ")}.`;
  for (const [name, value] of Object.entries({ reference, messageId, idSpace }))
    if (value !== undefined && (typeof value !== "string" || value === "" || value.length > 256))
      return `has a ${name} that is not a string of 1 to 256 characters.`;
  return {
    ...(reference !== undefined && { reference: reference as string }),
    ...(messageId !== undefined && { messageId: messageId as string }),
    ...(idSpace !== undefined && { idSpace: idSpace as string }),
    status: known,
    ...(typeof at === "number" && { at }),
    ...(unreachable === true && { unreachable }),
    ...(typeof error === "string" && error !== "" && { error: /^\d{1,6}$/.test(error) ? error : withoutDigits(error.slice(0, 200)) }),
  };
}

const digits = new RegExp(runOfDigits(6), "gu");
const withoutDigits = (error: string) => plainLine(error).replace(digits, "…");

/** Settles one receipt of a message. Rejects with `unavailable`. */
export async function settleOne(
  parts: Messages,
  deadline: StoreDeadline,
  receipt: Receipt,
  { customer, id, attempt }: ReceiptTarget,
  origin?: ReceiptOrigin,
): Promise<void> {
  const { status, error, at, unreachable } = receipt;
  const { failedReceipts } = parts;
  const key = `${id}/${attempt}/${status}`;
  const now = parts.clock.now();
  const settled = await update(parts.records, deadline, customer, id, (auth) => {
    if (!mayReport(parts, auth, attempt, origin)) return { result: undefined };
    const settled = settleReceipt(auth, attempt, { status, error, at }, now);
    const next = settled && withFallbackOf(parts, settled, attempt, receipt, now);
    const isStored = failedReceipts.get(key) === true && sendOf(auth, attempt)?.delivery === status;
    return { result: next ?? (isStored ? auth : undefined), next };
  }).catch((err: unknown) => {
    failedReceipts.set(key, true);
    throw err;
  });
  failedReceipts.delete(key);
  if (settled === undefined) return;
  const channel = sendOf(settled, attempt)?.channel;
  if (unreachable === true && channel !== undefined) rememberUnreachable(parts, settled, channel);
  parts.monitor.receipt(settled, attempt, status, error);
  parts.outbox.workSoon(settled);
  if (status === "delivered" || status === "undeliverable") sendFeedback(parts, settled, attempt, status, unreachable);
}

/**
 * What a receipt of the newest message changes of its fallback: delivered, there is none; undeliverable, it is due now
 * (docs/contract.md#fallback).
 */
function withFallbackOf(parts: Messages, auth: Authentication, attempt: number, { status, unreachable }: Receipt, now: number): Authentication {
  const { fallback } = parts.sender;
  if (fallback === undefined || attempt !== auth.attempts) return auth;
  if (status === "delivered") return withoutFallback(auth, []);
  const isDue = status === "undeliverable" && (fallback.on.includes("undeliverable") || (unreachable === true && fallback.on.includes("unreachable")));
  return isDue && mayReplace(parts, auth) ? { ...auth, fallbackAt: now } : auth;
}

/**
 * A reference may leak through a log. So unsigned receipts are accepted only from a provider of the message's own
 * route. Signed ones are ignored only if their provider is another route's, which may have sent the message too, and
 * the record shows which route took it.
 */
function mayReport({ sender }: Messages, auth: Authentication, attempt: number, origin: ReceiptOrigin | undefined): boolean {
  if (origin === undefined) return true;
  const { provider, vouched } = origin;
  const { route, state, moved } = sendOf(auth, attempt) ?? {};
  const isSettled = state === "accepted" || moved === true;
  if (vouched && (!isSettled || sender.receiptProviders?.includes(provider) !== true)) return true;
  const providers =
    route === undefined || sender.receiptProvidersOf === undefined
      ? sender.receiptProviders
      : synchronous("receiptProvidersOf", sender.receiptProvidersOf(route));
  return providers === undefined || providers.includes(provider);
}

async function targetById(parts: Messages, deadline: StoreDeadline, receipt: Receipt): Promise<ReceiptTarget | undefined> {
  const { reference, messageId, idSpace } = receipt;
  return reference === undefined && messageId !== undefined && idSpace !== undefined ? findById(parts, deadline, { messageId, idSpace }, receipt) : undefined;
}
