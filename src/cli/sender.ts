import { setTimeout as sleep } from "node:timers/promises";
import type { CodeMessage, SendContext, SendOutcome, SmsSender } from "../ports/sms-sender.js";
import { aborted } from "./aborted.js";
import type { CarrierSettings } from "./carriers.js";

/** What `--fail` does to every message: rejected; sent with an unclear response; or sent without a response in time. */
export const failures = ["rejected", "unknown", "timeout"] as const;
export type Failure = (typeof failures)[number];

/** How the demo sends messages. */
export interface SendSettings {
  readonly carrier: CarrierSettings | undefined;
  readonly latency: number;
  readonly fail: Failure | undefined;
}

/** The id by which receipts from the page find a message. */
export function carrierIdOf({ authentication_uuid, attempt }: Pick<CodeMessage, "authentication_uuid" | "attempt">) {
  return { messageId: `${authentication_uuid}/${attempt}`, idSpace: "dev" };
}

/**
 * The demo's sender. It hands each message to the carrier, if there is one, and shows it as soon as the outcome is
 * known, unless it was rejected.
 *
 * @param show Shows a message that was, or may have been, sent.
 * @param note Receives a line about a message's outcome, unless the message was simply shown.
 */
export function devSender(
  { carrier, latency, fail }: SendSettings,
  show: (message: CodeMessage, outcome: "accepted" | "unknown", context: SendContext) => Promise<void>,
  note: (line: string) => void,
): SmsSender {
  const closing = new AbortController();
  return {
    async send(message, context) {
      const stop = AbortSignal.any([context.signal, closing.signal]);
      const { receipt_url: _, ...withoutReceipts } = message;
      // Carriers reject receipt URLs that only this machine can reach.
      const handOver = async () => carrier?.sender.send(withoutReceipts, { ...context, signal: stop });
      const [answer] = await Promise.all([handOver(), fail === "timeout" ? aborted(stop) : pause(latency, stop)]);
      const outcome = judge(answer, fail, stop.aborted);
      if (carrier !== undefined || fail !== undefined || outcome.outcome !== "accepted") {
        const what = (carrier?.sender.channel ?? "sms") === "sms" ? "SMS" : "Message";
        note(`${what} to ${message.to}${carrier === undefined ? "" : ` by ${carrier.name}`}: ${inWords(outcome)}`);
      }
      if (outcome.outcome === "rejected") return outcome;
      await show(message, outcome.outcome, context);
      return outcome.outcome === "accepted" ? { outcome: "accepted", ...carrierIdOf(message) } : outcome;
    },
    async close() {
      closing.abort();
      await carrier?.sender.close?.();
    },
  };
}

function judge(answer: SendOutcome | undefined, fail: Failure | undefined, late: boolean): SendOutcome {
  if (fail === "rejected") return { outcome: "rejected", reason: "--fail rejected" };
  if (fail !== undefined) return { outcome: "unknown", reason: `--fail ${fail}` };
  if (late && answer?.outcome !== "rejected") return { outcome: "unknown", reason: "no response within the time limit of a send" };
  return answer ?? { outcome: "accepted" };
}

/** Control characters are replaced by `?`, so that a carrier cannot send escape sequences to the terminal. */
function inWords(outcome: SendOutcome): string {
  const more = outcome.outcome === "accepted" ? outcome.messageId : outcome.reason;
  const head = { accepted: "accepted", rejected: "rejected, so it is not shown", unknown: "outcome unknown, so it counts as sent" }[outcome.outcome];
  return `${head}${more === undefined ? "" : ` (${more.replace(/\p{C}/gu, "?")})`}`;
}

/** Waits, but not after `stop`. */
function pause(seconds: number, stop: AbortSignal): Promise<void> {
  return seconds === 0 ? Promise.resolve() : sleep(seconds * 1000, undefined, { signal: stop }).catch(() => undefined);
}
