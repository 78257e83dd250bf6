import type { Deliver } from "./deliver.js";
import { isReceipt, readReceipt } from "./receipt.js";
import { receiptQueue } from "./receipt-queue.js";
import type { Settings } from "./settings.js";
import { statuses } from "./status.js";

/** Receives each deliver_sm and data_sm. */
export interface Inbox {
  /** `reply` takes the command_status for the peer; for a receipt, after `onReceipt` has finished. */
  deliver(delivered: Deliver | undefined, reply: (status: number) => void): void;
  /** Receipts that `onReceipt` has not finished. */
  readonly underWay: number;
  /** Whether reading should pause. */
  readonly full: boolean;
}

/**
 * Passes receipts to the option `onReceipt`; messages from phones are acknowledged and dropped. `changed` is called
 * whenever the number of pending receipts drops.
 */
export function receiptInbox(settings: Settings, changed: () => void): Inbox {
  const { onReceipt, logger } = settings;
  const queue = onReceipt && receiptQueue(onReceipt, settings, changed);

  return {
    deliver(delivered, reply) {
      if (delivered === undefined) {
        logger?.warn({}, "the SMPP peer sent a message that is cut short");
        reply(statuses.invalidLength);
      } else if (queue === undefined || !isReceipt(delivered)) {
        reply(statuses.ok);
      } else {
        const receipt = readReceipt(delivered, settings);
        if (receipt !== undefined) return queue.enter(receipt, reply);
        logger?.warn({}, "a receipt of the SMPP peer names no message; it is dropped");
        reply(statuses.ok);
      }
    },
    get underWay() {
      return queue?.underWay ?? 0;
    },
    get full() {
      return queue?.full ?? false;
    },
  };
}
