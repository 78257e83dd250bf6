import type { SendContext, SendOutcome, SmsMessage, SmsSender } from "../../../src/ports/sms-sender.js";
import { type ReceiptIds, submittedId } from "./ids.js";
import { receiptInbox } from "./inbox.js";
import { keepBound, type LinkState } from "./link.js";
import type { SmppOptions } from "./options.js";
import { commands, readString, submitBody } from "./pdu.js";
import type { Answer } from "./session.js";
import { readOptions } from "./settings.js";
import { statuses, statusName } from "./status.js";
import { encodeText } from "./text.js";
import { type Answered, submitWindow } from "./window.js";

export type { ReceiptIds, SmppOptions };

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
}

export interface SmppSender extends SmsSender {
  /** Connects and binds now instead of at the first send. Rejects when this attempt fails; further ones follow on their own until `close()`. */
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
 * A sender that hands messages to a message centre over SMPP 3.4, as a transceiver on one connection. Node only, in a process that lives on: not on serverless platforms.
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
  let closing: Promise<void> | undefined;
  let closed = false;
  let onQuiet = () => {};

  const inbox = receiptInbox(settings, () => {
    if (!inbox.full) link.readOn();
    checkQuiet();
  });
  const link = keepBound(settings, { deliver: inbox.deliver, full: () => inbox.full }, () => {
    submits.pump();
    for (const [giveUp, dueAt] of [...waiting]) if (isHopeless(dueAt)) giveUp();
  });
  const submits = submitWindow(
    settings.window,
    settings.throttlePause,
    (ms, run) => clock.after(ms, run, "background"),
    () => link.bound() !== undefined,
    (window) => settings.logger?.warn({ host: settings.host, port: settings.port, window }, "the SMPP peer throttles"),
  );

  function checkQuiet(): void {
    if (submits.queued + submits.outstanding + inbox.underWay === 0) onQuiet();
  }

  /** Whether a message that can wait until `dueAt` will surely not be written. */
  function isHopeless(dueAt: number): boolean {
    return link.state === "refused" || link.state === "closed" || (link.state === "waiting" && link.nextAttemptAt >= dueAt);
  }

  function submit(body: Buffer, { signal, timeLeft }: SendContext): Promise<SendOutcome> {
    return new Promise((resolve) => {
      let cancelWait = () => {};
      const dueAt = clock.now() + timeLeft - giveUpBefore;
      waiting.set(giveUp, dueAt);
      signal.addEventListener("abort", giveUp);
      const leave = submits.enter((done) => {
        cancelWait();
        waiting.delete(giveUp);
        link.bound()?.request(commands.submitSm, body, (answer) => {
          done(answeredBy(answer));
          settle(outcomeOf(answer));
        });
      });
      if (waiting.has(giveUp)) cancelWait = clock.after(Math.min(Math.max(0, dueAt - clock.now()), longestTimer), giveUp);

      function giveUp(): void {
        settle(leave() ? notSent(whyNotWritten()) : { outcome: "unknown", reason: "no answer from the SMPP peer before the deadline" });
      }
      function settle(outcome: SendOutcome): void {
        cancelWait();
        waiting.delete(giveUp);
        signal.removeEventListener("abort", giveUp);
        resolve(outcome);
        checkQuiet();
      }
    });
  }

  function whyNotWritten(): string {
    if (closed) return "the sender is closed";
    if (link.state === "refused") return link.failure as string;
    if (submits.paused) return "the SMPP peer throttles";
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

  /** The body of a message's submit_sm, or what is wrong with the message. */
  function submitBodyOf(message: SmsMessage): Buffer | string {
    if (!/^\+\d{5,15}$/.test(message.to)) return "the destination is not in E.164";
    const source = settings.source(message);
    if (typeof source === "string") return source;
    return submitBody({
      serviceType: settings.serviceType,
      source,
      destination: { ...settings.destination, address: message.to.slice(1) },
      registeredDelivery: settings.onReceipt === undefined ? 0 : 1,
      ...encodeText(message.text),
    });
  }

  async function drain(): Promise<void> {
    closed = true;
    const cancelForce = clock.after(settings.drainTimeout, () => {
      link.cut("closed before the answer came");
      onQuiet();
    });
    link.retire();
    await new Promise<void>((resolve) => {
      onQuiet = resolve;
      checkQuiet();
    });
    await link.unbind();
    cancelForce();
  }

  return {
    async send(message, context) {
      if (closed) return notSent("the sender is closed");
      if (context.signal.aborted || context.timeLeft <= 0) return notSent("the deadline had passed");
      const body = submitBodyOf(message);
      if (typeof body === "string") return notSent(body);
      if (isHopeless(clock.now() + context.timeLeft - giveUpBefore)) return notSent(whyNotWritten());
      link.start();
      return submit(body, context);
    },
    connect: () => (closed ? Promise.reject(new Error("the SMPP sender is closed")) : link.connect()),
    status: () => ({
      state: link.state,
      ...(link.failure !== undefined && { error: link.failure }),
      queued: submits.queued,
      outstanding: submits.outstanding,
      window: submits.size,
      receipts: inbox.underWay,
    }),
    close() {
      closing ??= drain();
      return closing;
    },
  };
}

function notSent(reason: string): SendOutcome {
  return { outcome: "rejected", reason };
}

function answeredBy(answer: Answer): Answered {
  if ("lost" in answer) return "other";
  if (answer.status === statuses.throttled || answer.status === statuses.queueFull) return "throttled";
  return answer.status === statuses.ok && answer.command !== commands.genericNack ? "accepted" : "other";
}
