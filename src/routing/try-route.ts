import { propertiesOf } from "../core/collections.js";
import { afterTurn } from "../core/deadline.js";
import { withoutCodeAndNumber } from "../domain/message.js";
import { noOutcome, type SendResult } from "../domain/send.js";
import { parsePrice } from "../domain/spend.js";
import type { Clock } from "../ports/clock.js";
import type { CodeMessage, SendContext, SmsSender } from "../ports/sms-sender.js";

/** The outcome of a hand-over to one route. */
export interface TryResult {
  readonly outcome: SendResult;
  readonly messageId?: string;
  readonly idSpace?: string;
  readonly keepId?: boolean;
  /** The actual cost, if the sender returns it. */
  readonly price?: number;
  readonly reason?: string;
  /** The number is known not to be on the sender's channel. */
  readonly unreachable?: true;
}

/**
 * Hands a message to one sender and waits up to `timeLeft` milliseconds for the outcome. Then its signal is aborted and
 * later results are ignored. Never throws.
 *
 * A sender that throws, or returns anything but a `SendOutcome`, counts as `unknown`. An error with the property
 * `outcome: "rejected"` counts as rejected (the port).
 */
export function tryRoute(sender: SmsSender, message: CodeMessage, context: SendContext, clock: Clock): Promise<TryResult> {
  const { signal, timeLeft } = context;
  return new Promise((resolve) => {
    const abort = new AbortController();
    const finish = (result: TryResult) => {
      cancel();
      signal.removeEventListener("abort", stop);
      resolve(result);
    };
    const stop = () => {
      abort.abort(signal.reason);
      finish({ outcome: "unknown", reason: "no response in time" });
    };
    const cancel = afterTurn(clock, timeLeft, stop);
    signal.addEventListener("abort", stop, { once: true });
    const attempt = async () => judge(await sender.send(message, { ...context, signal: abort.signal }), message);
    attempt()
      .catch(
        (error: unknown): TryResult => ({ outcome: propertiesOf(error).outcome === "rejected" ? "rejected" : "unknown", reason: reasonOf(error, message) }),
      )
      .then(finish);
  });
}

function judge(answer: unknown, message: CodeMessage): TryResult {
  const { outcome, messageId, idSpace, keepId, unreachable } = propertiesOf(answer);
  const price = parsePrice(propertiesOf(answer).price);
  const actual = price !== undefined && { price };
  if (outcome === "accepted") {
    return {
      outcome,
      ...(typeof messageId === "string" && { messageId }),
      ...(typeof idSpace === "string" && { idSpace }),
      ...(keepId === true && { keepId }),
      ...actual,
    };
  }
  if (outcome === "rejected") return { outcome, reason: reasonOf(answer, message), ...(unreachable === true && { unreachable }) };
  if (outcome === "unknown") return { outcome, reason: reasonOf(answer, message), ...actual };
  return { outcome: "unknown", reason: noOutcome };
}

/** Why it was not accepted, without the code and the number. */
function reasonOf(answer: unknown, message: CodeMessage): string {
  const { reason, message: text } = propertiesOf(answer);
  const given = typeof reason === "string" ? reason : text;
  if (typeof given !== "string" || given === "") return "no reason given";
  return withoutCodeAndNumber(given.slice(0, 200).replaceAll(message.to.replace("+", ""), "…"), message);
}
