import { settleReceipt } from "../../domain/send.js";
import { day } from "../../domain/time.js";
import type { Receipt } from "../../ports/receipts.js";
import type { StoreBudget } from "../clock/budget.js";
import { newBudget, type Parts } from "../parts.js";
import { transition } from "../transition.js";
import { feedBack } from "./feedback.js";
import type { ReceiptTarget } from "./receipt-url.js";

/** How long a carrier's message id is kept, so that receipts which name nothing else find their message. Milliseconds. */
const keptIds = 3 * day;

const keyOf = (messageId: string) => `receipt:${messageId}`;

/** Keeps the carrier's id of a message. A store fault is reported, and costs the receipts of this message. */
export async function keepMessageId(parts: Parts, budget: StoreBudget, messageId: string, { customer, id, attempt }: ReceiptTarget): Promise<void> {
  const now = parts.clock.now();
  try {
    await budget.call(() => parts.store.put(keyOf(messageId), `${customer}/${id}/${attempt}`, { now, keepUntil: now + keptIds }));
  } catch (err) {
    parts.logger.warn({ err, authentication_uuid: id }, "a carrier's message id could not be kept; its receipts will not find their message");
  }
}

/** Settles carriers' receipts, one after another; those of unknown messages are ignored. `named`: the message that the request's URL vouches for. Rejects with `unavailable`. */
export async function settleReceipts(parts: Parts, receipts: readonly Receipt[], named?: ReceiptTarget): Promise<void> {
  for (const receipt of receipts) {
    const target = named ?? (await findTarget(parts, receipt));
    if (target !== undefined) await settleOne(parts, receipt, target);
  }
}

async function settleOne(parts: Parts, { status, error }: Receipt, { customer, id, attempt }: ReceiptTarget): Promise<void> {
  const now = parts.clock.now();
  const settled = await transition(parts.records, newBudget(parts), customer, id, (auth) => {
    const next = settleReceipt(auth, attempt, status, error, now);
    return { result: next, next };
  });
  if (settled === undefined) return;
  parts.outbox.deliverSoon(settled);
  if (status === "delivered" || status === "undeliverable") feedBack(parts, settled, attempt, status);
}

async function findTarget(parts: Parts, { messageId }: Receipt): Promise<ReceiptTarget | undefined> {
  if (messageId === undefined) return undefined;
  const kept = await newBudget(parts).call(() => parts.store.get(keyOf(messageId)));
  const [customer, id, attempt] = kept?.split("/") ?? [];
  return customer !== undefined && id !== undefined ? { customer, id, attempt: Number(attempt) } : undefined;
}
