import type { Receipt } from "../../../src/ports/receipts.js";
import type { Settings } from "./settings.js";
import { statuses } from "./status.js";

/** Calls of `onReceipt` under way at a time. */
const atOnce = 16;
/** Receipts that may wait for a call to end. With so many the connection is not read; what one read of it brings above them waits too. */
const roomFor = 1000;
/** A receipt that has had no answer for this many milliseconds is given back to the peer: above what a call of the verifier may take, and well below the time in which message centres want their answer. */
const patience = 3000;

/** Receipts on their way to `onReceipt`. */
export interface ReceiptQueue {
  /** `reply` takes the command_status for the peer, once: ESME_ROK when `onReceipt` is through, ESME_RX_T_APPN (deliver it again) when it failed or took too long. */
  enter(receipt: Receipt, reply: (status: number) => void): void;
  /** Receipts that wait, and calls that have not ended. */
  readonly underWay: number;
  /** Whether no more should be read just now. */
  readonly full: boolean;
}

/**
 * Hands receipts to `onReceipt`, a fixed number at a time, in the order of their arrival, and holds a bounded number back.
 * When it hangs, so that none of its calls ends for as long as a receipt waits, further receipts go back to the peer at once until one ends: what else the peer has to say (answers to submits) must not wait behind them.
 *
 * @param changed Called after each receipt that leaves the queue and each call that ends.
 */
export function receiptQueue(onReceipt: NonNullable<Settings["onReceipt"]>, { clock, logger }: Settings, changed: () => void): ReceiptQueue {
  const waiting = new Set<() => Promise<void>>();
  let running = 0;
  let ended = 0;
  let hangs = false;
  let late = false;

  function enter(receipt: Receipt, reply: (status: number) => void): void {
    if (hangs) {
      reply(statuses.temporaryReceiverError);
      return;
    }
    const endedBefore = ended;
    let answered = false;
    const answer = (status: number) => {
      cancel();
      if (!answered) reply(status);
      answered = true;
    };
    const cancel = clock.after(
      patience,
      () => {
        if (waiting.delete(call)) hangs = ended === endedBefore;
        if (!late) logger?.warn({ waiting: waiting.size, running }, "receipts wait too long for onReceipt; the SMPP peer is asked to deliver them again");
        late = true;
        answer(statuses.temporaryReceiverError);
        changed();
      },
      "background",
    );

    async function call(): Promise<void> {
      running += 1;
      try {
        await onReceipt(receipt);
        answer(statuses.ok);
      } catch (err) {
        logger?.error({ err, messageId: receipt.messageId }, "onReceipt failed; the SMPP peer is asked to deliver the receipt again");
        answer(statuses.temporaryReceiverError);
      }
      running -= 1;
      ended += 1;
      hangs = false;
      if (waiting.size === 0) late = false;
      start();
      changed();
    }
    waiting.add(call);
    start();
  }

  function start(): void {
    for (const call of waiting) {
      if (running >= atOnce) return;
      waiting.delete(call);
      void call();
    }
  }

  return {
    enter,
    get underWay() {
      return waiting.size + running;
    },
    get full() {
      return waiting.size >= roomFor;
    },
  };
}
