import type { SendOutcome, SmsSender } from "../../../src/ports/sms-sender.js";
import { discreet } from "../kit/outcomes.js";
import { handover } from "./handover.js";
import type { ReceiptIds } from "./ids.js";
import { receiptInbox } from "./inbox.js";
import { keepBound, type Link, type LinkState } from "./link.js";
import type { SmppOptions } from "./options.js";
import type { SmppParameter, SmppParameters } from "./parameters.js";
import { readOptions } from "./settings.js";
import { submissions } from "./submission.js";
import { leastValidity } from "./validity.js";

export type { ReceiptIds, SmppOptions, SmppParameter, SmppParameters };

export interface SmppStatus {
  /** `idle`: not connected yet. `waiting`: the connection was lost and will be made again. `refused`: the peer refused the bind, so messages are rejected; it is tried again. */
  readonly state: LinkState;
  /** Why the last connection ended, until the next bind. */
  readonly error?: string;
  /** Messages that wait to be written, and messages without an answer yet. */
  readonly queued: number;
  readonly outstanding: number;
  /** Messages that may be outstanding now: fewer than the option says after the peer throttled. */
  readonly window: number;
  /** Receipts that `onReceipt` has not finished with. */
  readonly receipts: number;
  /** The second connection, for receipts, where `bindType` makes two; `state` and `error` above are the first's, for messages. */
  readonly receiver?: { readonly state: LinkState; readonly error?: string };
}

export interface SmppSender extends SmsSender {
  /** Connects and binds now instead of at the first send, both connections where `bindType` makes two. Rejects when this attempt fails; further ones follow on their own until `close()`. */
  connect(): Promise<void>;
  status(): SmppStatus;
  /** Takes no more messages, waits for answers and receipts under way, unbinds and disconnects: within `drainTimeout`. */
  close(): Promise<void>;
}

/** A message that still waits this many milliseconds before its deadline is given up, so that the caller hears "rejected" while it listens. */
const giveUpBefore = 100;

/**
 * A sender that hands messages to a message centre over SMPP 3.4. Node only, in a process that lives on: not on serverless platforms.
 *
 * The connection is made at the first send, or by `connect()`, and made again whenever it is lost, until `close()`. While it stands it keeps the process alive; the pause before the next attempt does not.
 * A message is `accepted` when the peer's answer says so, `rejected` when the peer refused it or it was never written, `unknown` when it was written and no answer came, or one that says nothing
 * (ESME_RUNKNOWNERR). Messages wait for a connection, or for room in the window, until shortly before their deadline; when the peer refuses the bind, or the next attempt comes after the deadline, they are
 * rejected at once.
 *
 * @throws Error that names the option and the mend when an option is missing or cannot work.
 */
export function smppSender(options: SmppOptions): SmppSender {
  const settings = readOptions(options);
  const { clock } = settings;
  const submissionOf = submissions(settings);
  /** Messages whose outcome is not known yet. */
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
      for (const link of links) link.cut("closed before the answer came");
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
    reaches: (country) => settings.sources.has(country),
    async send(message, context) {
      if (closing !== undefined) return notSent("the sender is closed");
      if (context.signal.aborted || context.timeLeft <= 0) return notSent("the deadline had passed");
      // The verifier's clock may be another than ours.
      const life = message.expires_at - (context.deadline - context.timeLeft);
      const left = life - leastValidity;
      if (!(left > 0)) return notSent("the code has ended");
      const bodies = submissionOf({ ...message, expires_at: clock.now() + life });
      if (typeof bodies === "string") return discreet(notSent(bodies), message);
      for (const link of links) link.start();
      sending += 1;
      try {
        return await outbound.send(bodies, clock.now() + Math.min(context.timeLeft - giveUpBefore, left), context.signal);
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

function notSent(reason: string): SendOutcome {
  return { outcome: "rejected", reason };
}
