import type { Receipt } from "../../../src/ports/receipts.js";
import type { Deliver } from "./pdu.js";
import { isReceipt, readReceipt } from "./receipt.js";
import type { Settings } from "./settings.js";
import { statuses } from "./status.js";

/** Where a deliver_sm or data_sm goes. */
export interface Inbox {
  /** `reply` takes the command_status for the peer: for a receipt, once `onReceipt` is through. */
  deliver(delivered: Deliver | undefined, reply: (status: number) => void): void;
  /** Receipts that `onReceipt` has not finished with. */
  readonly underWay: number;
}

/** Hands receipts to the option `onReceipt`; messages from phones are acknowledged and dropped. `done` is called after each receipt. */
export function receiptInbox(settings: Settings, done: () => void): Inbox {
  const { onReceipt, logger } = settings;
  let underWay = 0;

  async function take(handle: NonNullable<Settings["onReceipt"]>, receipt: Receipt, reply: (status: number) => void): Promise<void> {
    underWay += 1;
    try {
      await handle(receipt);
      reply(statuses.ok);
    } catch (err) {
      logger?.error({ err, messageId: receipt.messageId }, "onReceipt failed; the SMPP peer is asked to deliver the receipt again");
      reply(statuses.temporaryReceiverError);
    }
    underWay -= 1;
    done();
  }

  return {
    deliver(delivered, reply) {
      if (delivered === undefined) {
        logger?.warn({}, "the SMPP peer sent a message that is cut short");
        reply(statuses.invalidLength);
      } else if (onReceipt === undefined || !isReceipt(delivered)) {
        reply(statuses.ok);
      } else {
        const receipt = readReceipt(delivered, settings);
        if (receipt !== undefined) return void take(onReceipt, receipt, reply);
        logger?.warn({}, "a receipt of the SMPP peer names no message; it is dropped");
        reply(statuses.ok);
      }
    },
    get underWay() {
      return underWay;
    },
  };
}
