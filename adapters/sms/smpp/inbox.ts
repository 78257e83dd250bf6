import type { Receipt } from "../../../src/ports/receipts.js";
import type { Deliver } from "./deliver.js";
import { isReceipt, readReceipt } from "./receipt.js";
import type { Settings } from "./settings.js";
import { statuses } from "./status.js";

/** Maximum number of concurrent `onReceipt` calls. */
const atOnce = 16;
/** Maximum number of waiting receipts before reading pauses. Receipts beyond it from the same read wait too. */
const roomFor = 1000;
/**
 * Milliseconds after which an unfinished receipt is returned to the peer, and an unfinished call no longer counts: longer
 * than a verifier call may take, and well below the response timeout of message centres.
 */
const patience = 3000;

/**
 * Passes receipts to the option `onReceipt` in order of arrival, with a limit on concurrent calls and on waiting
 * receipts; messages from phones are acknowledged and dropped.
 * If no call ends for as long as a receipt waits, further receipts that get no call go back to the peer at once until
 * one ends, so that submit responses do not wait behind them.
 *
 * @param changed Called after each receipt that leaves the queue and each call that ends.
 */
export function receiptInbox(settings: Settings, changed: () => void) {
  const { onReceipt, clock, throttled } = settings;
  const waiting = new Set<() => Promise<void>>();
  let running = 0;
  let ended = 0;
  let hangs = false;

  /**
   * `reply` is called once with the command_status for the peer: ESME_ROK after `onReceipt`, ESME_RX_T_APPN (deliver it
   * again) if that failed or took too long.
   */
  function enter(receipt: Receipt, reply: (status: number) => void): void {
    if (hangs && running >= atOnce) {
      reply(statuses.ESME_RX_T_APPN);
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
        throttled?.warn({ waiting: waiting.size, running }, "receipts wait too long for onReceipt; the SMPP peer is asked to deliver them again");
        answer(statuses.ESME_RX_T_APPN);
        changed();
      },
      "background",
    );

    let holds = true;
    /** Frees the call's place, which it loses after a while: it may never end. */
    function release(): void {
      if (holds) running -= 1;
      holds = false;
      start();
      changed();
    }
    async function call(): Promise<void> {
      running += 1;
      const cancelRelease = clock.after(patience, release, "background");
      try {
        await onReceipt?.(receipt);
        answer(statuses.ESME_ROK);
      } catch (err) {
        throttled?.error(
          { err: String((err as Partial<Error> | null)?.stack ?? err), messageId: receipt.messageId },
          "onReceipt failed; the SMPP peer is asked to deliver the receipt again",
        );
        answer(statuses.ESME_RX_T_APPN);
      }
      ended += 1;
      hangs = false;
      cancelRelease();
      release();
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
    /** Receives each deliver_sm and data_sm. `reply` takes the command_status for the peer. */
    deliver(delivered: Deliver | undefined, reply: (status: number) => void) {
      if (delivered === undefined) {
        throttled?.warn({}, "the SMPP peer sent a message that is cut short");
        reply(statuses.ESME_RINVCMDLEN);
      } else if (onReceipt === undefined || !isReceipt(delivered)) {
        reply(statuses.ESME_ROK);
      } else {
        const receipt = readReceipt(delivered, settings);
        if (receipt !== undefined) return enter(receipt, reply);
        throttled?.warn({}, "a receipt of the SMPP peer names no message, and is dropped: ask the carrier for the form of SMPP 3.4, Appendix B (id:… stat:…)");
        reply(statuses.ESME_ROK);
      }
    },
    /** Receipts that wait for a call, and calls that are neither finished nor given up. */
    get underWay() {
      return waiting.size + running;
    },
    /** Whether reading should pause. */
    get full() {
      return waiting.size >= roomFor;
    },
  };
}
