import type { SendOutcome } from "../../../src/ports/sms-sender.js";
import { submittedId } from "./ids.js";
import type { Link } from "./link.js";
import { commands, readString } from "./pdu.js";
import type { Answer } from "./session.js";
import type { Settings } from "./settings.js";
import { statuses, statusName } from "./status.js";
import type { BodyAt } from "./submission.js";
import { type Answered, submitWindow } from "./window.js";

/** The longest platform timer, in milliseconds. */
const longestTimer = 2 ** 31 - 1;

/**
 * Queues messages for the connection: they wait for it and for a place in the window, up to their deadline. `answered`
 * is called after each response to a submit, and when no response can follow.
 */
export function handover(settings: Settings, link: Link, answered: () => void) {
  const { clock } = settings;
  /** Functions that give up a waiting message, with their due times in milliseconds since the epoch. */
  const waiting = new Map<() => void, number>();
  const submits = submitWindow(
    settings,
    () => link.bound() !== undefined,
    (window) => settings.throttled?.warn({ host: settings.host, port: settings.port, window }, "the SMPP peer throttles"),
  );

  /** Whether a message with the deadline `dueAt` can no longer be written in time. */
  function isHopeless(dueAt: number): boolean {
    return link.state === "refused" || link.state === "closed" || (link.state === "waiting" && link.nextAttemptAt >= dueAt);
  }

  /** Queues one submit_sm. `first`: it is the first of its message. `settled` is called once. */
  function submit(body: BodyAt, first: boolean, dueAt: number, signal: AbortSignal, settled: (outcome: SendOutcome) => void): void {
    if (signal.aborted || isHopeless(dueAt)) {
      settled(notSent(signal.aborted ? "the deadline had passed" : whyNotWritten()));
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
        // Settle before the place in the window is freed, because the message's next part goes first.
        settle(outcomeOf(answer, settings));
        done(answeredBy(answer));
        answered();
      });
    }, !first);
    if (waiting.has(giveUp)) cancelWait = clock.after(Math.min(Math.max(0, dueAt - clock.now()), longestTimer), giveUp);

    function giveUp(): void {
      settle(leave() ? notSent(whyNotWritten()) : { outcome: "unknown", reason: "no response from the SMPP peer before the deadline" });
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
    if (link.state === "closed") return "the sender is closed";
    if (link.state === "refused") return link.failure as string;
    if (submits.paused) return "the SMPP peer throttles";
    if (link.state !== "bound") return `no bind with the SMPP peer in time${link.failure === undefined ? "" : `: ${link.failure}`}`;
    if (submits.outstanding < submits.size) return "no turn in time: more messages are waiting than option messagesPerSecond allows";
    return `no room in time: the window of ${submits.size} unanswered messages stayed full`;
  }

  return {
    /**
     * Submits a message's parts in order. They are given up if the first is not written by `firstDueAt`, or another by
     * `dueAt` (milliseconds since the epoch).
     */
    send: (bodies: readonly BodyAt[], firstDueAt: number, dueAt: number, signal: AbortSignal) =>
      new Promise<SendOutcome>((resolve) => {
        function submitFrom(index: number): void {
          submit(bodies[index] as BodyAt, index === 0, index === 0 ? firstDueAt : dueAt, signal, (outcome) => {
            if (outcome.outcome === "accepted" && index + 1 < bodies.length) submitFrom(index + 1);
            else if (index === 0 || outcome.outcome === "accepted") resolve(outcome);
            // The first parts were accepted, so some of the message may arrive.
            else resolve({ outcome: "unknown", reason: `part ${index + 1} of ${bodies.length}: ${outcome.reason}` });
          });
        }
        submitFrom(0);
      }),
    /** Call it when the connection may have changed. */
    look() {
      submits.pump();
      for (const [giveUp, dueAt] of [...waiting]) if (isHopeless(dueAt)) giveUp();
    },
    window: submits,
  };
}

export function notSent(reason: string): SendOutcome {
  return { outcome: "rejected", reason };
}

function outcomeOf(answer: Answer, { receiptIds, onReceipt, idSpace }: Settings): SendOutcome {
  if ("lost" in answer) return { outcome: "unknown", reason: answer.lost };
  if (answer.status === statuses.ESME_RUNKNOWNERR) return { outcome: "unknown", reason: statusName(answer.status) };
  if (answeredBy(answer) !== "accepted") return notSent(statusName(answer.status));
  const messageId = submittedId(readString(answer.body), receiptIds);
  if (messageId === undefined) return { outcome: "accepted" };
  return { outcome: "accepted", messageId, ...(onReceipt !== undefined && { idSpace }) };
}

function answeredBy(answer: Answer): Answered {
  if ("lost" in answer) return "other";
  if (answer.status === statuses.ESME_RTHROTTLED || answer.status === statuses.ESME_RMSGQFUL) return "throttled";
  return answer.status === statuses.ESME_ROK && answer.command !== commands.genericNack ? "accepted" : "other";
}
