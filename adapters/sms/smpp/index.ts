import type { SmsSender } from "../../../src/ports/sms-sender.js";
import { discreet } from "../kit/outcomes.js";
import { handover, notSent } from "./handover.js";
import type { ReceiptIds } from "./ids.js";
import { receiptInbox } from "./inbox.js";
import { keepBound, type Link, type LinkState } from "./link.js";
import type { SmppOptions } from "./options.js";
import type { SmppParameter, SmppParameters } from "./parameters.js";
import { readOptions } from "./settings.js";
import { leastValidity, submissions } from "./submission.js";

export type { ReceiptIds, SmppOptions, SmppParameter, SmppParameters };

export interface SmppStatus {
  /**
   * `idle`: not connected yet. `waiting`: the connection was lost and will be made again. `refused`: the peer rejected
   * the bind, so messages are rejected; the bind is retried.
   */
  readonly state: LinkState;
  /** Why the last connection ended; cleared by the next bind. */
  readonly error?: string;
  /** Messages waiting to be written, and messages without a response yet. */
  readonly queued: number;
  readonly outstanding: number;
  /** Current limit of unanswered messages: lower than the option after the peer throttled. */
  readonly window: number;
  /** Receipts that `onReceipt` has not finished. A call counts for up to 3 s. */
  readonly receipts: number;
  /** The second connection, for receipts, if `bindType` makes two; `state` and `error` above are of the first. */
  readonly receiver?: { readonly state: LinkState; readonly error?: string };
}

export interface SmppSender extends SmsSender {
  /**
   * Connects and binds now instead of at the first send (both connections if `bindType` makes two). Rejects if this
   * attempt fails; further attempts follow automatically until `close()`.
   */
  connect(): Promise<void>;
  status(): SmppStatus;
  /** Takes no more messages, waits for responses and receipts, then unbinds and disconnects; within `drainTimeout`. */
  close(): Promise<void>;
}

/** Milliseconds before its deadline at which a waiting message is given up, so that "rejected" arrives in time. */
const giveUpBefore = 100;

/**
 * Sends messages to a message centre over SMPP 3.4. Node only, in a long-running process: not on serverless platforms.
 *
 * The first send, or `connect()`, opens the connection. A lost connection is reopened until `close()`. An open
 * connection keeps the process alive; the pause before a new attempt does not.
 * A message is `accepted` when the peer accepts it; `rejected` when the peer rejects it or it was never written;
 * `unknown` when it was written and the response is missing or inconclusive (ESME_RUNKNOWNERR). Messages wait for a
 * connection, or for room in the window, until shortly before their deadline, or for `rejectAfter` if another route is
 * left. They are rejected at once if the peer rejects the bind or the next attempt comes after that time.
 *
 * @throws Error that names the option and the fix if an option is missing or invalid.
 */
export function smppSender(options: SmppOptions): SmppSender {
  const settings = readOptions(options);
  const { clock } = settings;
  const submissionOf = submissions(settings);
  /** Messages whose outcome is still open. */
  let sending = 0;
  let closing: Promise<void> | undefined;
  let onQuiet = () => {};

  const inbox = receiptInbox(settings, () => {
    if (!inbox.full) for (const link of links) link.readOn();
    checkQuiet();
  });
  const links = settings.roles.map((role) => keepBound(settings, role, { deliver: inbox.deliver, full: () => inbox.full }, () => outbound.look()));
  const [submitLink, receiveLink] = links as [Link, Link?];
  const outbound = handover(settings, submitLink, checkQuiet);

  function checkQuiet(): void {
    if (sending + outbound.window.outstanding + inbox.underWay === 0) onQuiet();
  }

  async function drain(): Promise<void> {
    const cancelForce = clock.after(settings.drainTimeout, () => {
      for (const link of links) link.cut("closed before the response arrived");
      onQuiet();
    });
    for (const link of links) link.retire();
    await new Promise<void>((resolve) => {
      onQuiet = resolve;
      checkQuiet();
    });
    await Promise.all(links.map((link) => link.unbind()));
    cancelForce();
  }

  return {
    takesReceipts: settings.onReceipt !== undefined,
    reaches: (country) => settings.sources.has(country),
    async send(message, context) {
      if (closing !== undefined) return notSent("the sender is closed");
      if (context.signal.aborted || context.timeLeft <= 0) return notSent("the deadline had passed");
      // The verifier's clock may differ from ours.
      const life = message.expires_at - (context.deadline - context.timeLeft);
      const left = life - leastValidity;
      if (!(left > 0)) return notSent("the code has ended");
      const bodies = submissionOf({ ...message, expires_at: clock.now() + life });
      if (typeof bodies === "string") return discreet(notSent(bodies), message);
      for (const link of links) link.start();
      sending += 1;
      try {
        const dueAt = clock.now() + Math.min(context.timeLeft - giveUpBefore, left);
        const firstDueAt = Math.min(dueAt, clock.now() + (context.rejectAfter ?? Number.POSITIVE_INFINITY));
        return await outbound.send(bodies, firstDueAt, dueAt, context.signal);
      } finally {
        sending -= 1;
        checkQuiet();
      }
    },
    async connect() {
      if (closing !== undefined) throw new Error("the SMPP sender is closed");
      await Promise.all(links.map((link) => link.connect()));
    },
    status: () => ({
      ...stateOf(submitLink),
      queued: outbound.window.queued,
      outstanding: outbound.window.outstanding,
      window: outbound.window.size,
      receipts: inbox.underWay,
      ...(receiveLink && { receiver: stateOf(receiveLink) }),
    }),
    close() {
      closing ??= drain();
      return closing;
    },
  };
}

function stateOf({ state, failure }: Link): { readonly state: LinkState; readonly error?: string } {
  return { state, ...(failure !== undefined && { error: failure }) };
}
