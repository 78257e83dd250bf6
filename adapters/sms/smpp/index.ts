import type { SendOutcome, SmsSender } from "../../../src/ports/sms-sender.js";
import { type ReceiptIds, submittedId } from "./ids.js";
import { receiptInbox } from "./inbox.js";
import { keepBound, type Link, type LinkState } from "./link.js";
import type { SmppOptions } from "./options.js";
import type { SmppParameter, SmppParameters } from "./parameters.js";
import { commands, readString } from "./pdu.js";
import type { Answer } from "./session.js";
import { readOptions } from "./settings.js";
import { statuses, statusName } from "./status.js";
import { type BodyAt, submissions } from "./submission.js";
import { leastValidity } from "./validity.js";
import { type Answered, submitWindow } from "./window.js";

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
/** What a timer of the platform can hold, in milliseconds. */
const longestTimer = 2 ** 31 - 1;

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
  const { clock, receiptIds } = settings;
  /** What gives a message up that waits to be written, and when that is due, in milliseconds since the epoch. */
  const waiting = new Map<() => void, number>();
  const submissionOf = submissions(settings);
  /** Messages whose outcome is not known yet. */
  let sending = 0;
  let closing: Promise<void> | undefined;
  let closed = false;
  let onQuiet = () => {};

  const inbox = receiptInbox(settings, () => {
    if (!inbox.full) for (const one of links) one.readOn();
    checkQuiet();
  });
  const links = settings.roles.map((role) => keepBound(settings, role, { deliver: inbox.deliver, full: () => inbox.full }, changed));
  const [link, receiver] = links as [Link, Link?];
  const submits = submitWindow(
    settings,
    () => link.bound() !== undefined,
    (window) => settings.logger?.warn({ host: settings.host, port: settings.port, window }, "the SMPP peer throttles"),
  );

  /** The connection that messages take may have. */
  function changed(): void {
    submits.pump();
    for (const [giveUp, dueAt] of [...waiting]) if (isHopeless(dueAt)) giveUp();
  }

  function checkQuiet(): void {
    if (sending + submits.outstanding + inbox.underWay === 0) onQuiet();
  }

  /** Whether a message that can wait until `dueAt` will surely not be written. */
  function isHopeless(dueAt: number): boolean {
    return link.state === "refused" || link.state === "closed" || (link.state === "waiting" && link.nextAttemptAt >= dueAt);
  }

  /** Hands the parts of a message over, one after the other. It is given up at `dueAt`, in milliseconds since the epoch. */
  function submitAll(bodies: readonly BodyAt[], dueAt: number, signal: AbortSignal): Promise<SendOutcome> {
    return new Promise((resolve) => {
      function submitFrom(index: number): void {
        submit(bodies[index] as BodyAt, index === 0, dueAt, signal, (outcome) => {
          if (outcome.outcome === "accepted" && index + 1 < bodies.length) submitFrom(index + 1);
          // What was begun and not finished may have been sent.
          else if (outcome.outcome !== "accepted" && index > 0)
            resolve({ outcome: "unknown", reason: `part ${index + 1} of ${bodies.length}: ${outcome.reason}` });
          else resolve(outcome);
        });
      }
      submitFrom(0);
    });
  }

  /** Hands one submit_sm over. `first`: none of its message was before. `settled` is called once. */
  function submit(body: BodyAt, first: boolean, dueAt: number, signal: AbortSignal, settled: (outcome: SendOutcome) => void): void {
    if (signal.aborted || isHopeless(dueAt)) {
      settled(notSent(whyNotWritten()));
      return;
    }
    let open = true;
    let cancelWait = () => {};
    waiting.set(giveUp, dueAt);
    signal.addEventListener("abort", giveUp);
    const leave = submits.enter((done) => {
      cancelWait();
      waiting.delete(giveUp);
      link.bound()?.request(commands.submitSm, body(clock.now()), (answer) => {
        // Before its place in the window is given away, for the next part of the message goes first.
        settle(outcomeOf(answer));
        done(answeredBy(answer));
        checkQuiet();
      });
    }, !first);
    if (waiting.has(giveUp)) cancelWait = clock.after(Math.min(Math.max(0, dueAt - clock.now()), longestTimer), giveUp);

    function giveUp(): void {
      settle(leave() ? notSent(whyNotWritten()) : { outcome: "unknown", reason: "no answer from the SMPP peer before the deadline" });
    }
    function settle(outcome: SendOutcome): void {
      cancelWait();
      waiting.delete(giveUp);
      signal.removeEventListener("abort", giveUp);
      if (open) settled(outcome);
      open = false;
    }
  }

  function whyNotWritten(): string {
    if (closed) return "the sender is closed";
    if (link.state === "refused") return link.failure as string;
    if (submits.paused) return "the SMPP peer throttles";
    if (link.state === "bound" && submits.outstanding < submits.size)
      return "no turn before the deadline: more messages wait than the option messagesPerSecond lets go";
    if (link.state === "bound") return `no room before the deadline: the window of ${submits.size} messages without an answer stayed full`;
    return `no bind with the SMPP peer before the deadline${link.failure === undefined ? "" : `: ${link.failure}`}`;
  }

  function outcomeOf(answer: Answer): SendOutcome {
    if ("lost" in answer) return { outcome: "unknown", reason: answer.lost };
    if (answer.status === statuses.unknownError) return { outcome: "unknown", reason: statusName(answer.status) };
    if (answeredBy(answer) !== "accepted") return notSent(statusName(answer.status));
    const messageId = submittedId(readString(answer.body), receiptIds);
    if (messageId === undefined) return { outcome: "accepted" };
    return { outcome: "accepted", messageId, ...(settings.onReceipt !== undefined && { idSpace: settings.idSpace }) };
  }

  async function drain(): Promise<void> {
    closed = true;
    const cancelForce = clock.after(settings.drainTimeout, () => {
      for (const one of links) one.cut("closed before the answer came");
      onQuiet();
    });
    for (const one of links) one.retire();
    await new Promise<void>((resolve) => {
      onQuiet = resolve;
      checkQuiet();
    });
    await Promise.all(links.map((one) => one.unbind()));
    cancelForce();
  }

  return {
    async send(message, context) {
      if (closed) return notSent("the sender is closed");
      if (context.signal.aborted || context.timeLeft <= 0) return notSent("the deadline had passed");
      const left = message.expires_at - leastValidity - clock.now();
      if (!(left > 0)) return notSent("the code has ended");
      const bodies = submissionOf(message);
      if (typeof bodies === "string") return notSent(bodies);
      const dueAt = clock.now() + Math.min(context.timeLeft - giveUpBefore, left);
      if (isHopeless(dueAt)) return notSent(whyNotWritten());
      for (const one of links) one.start();
      sending += 1;
      try {
        return await submitAll(bodies, dueAt, context.signal);
      } finally {
        sending -= 1;
        checkQuiet();
      }
    },
    async connect() {
      if (closed) throw new Error("the SMPP sender is closed");
      await Promise.all(links.map((one) => one.connect()));
    },
    status: () => ({
      ...stateOf(link),
      queued: submits.queued,
      outstanding: submits.outstanding,
      window: submits.size,
      receipts: inbox.underWay,
      ...(receiver && { receiver: stateOf(receiver) }),
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

function answeredBy(answer: Answer): Answered {
  if ("lost" in answer) return "other";
  if (answer.status === statuses.throttled || answer.status === statuses.queueFull) return "throttled";
  return answer.status === statuses.ok && answer.command !== commands.genericNack ? "accepted" : "other";
}
