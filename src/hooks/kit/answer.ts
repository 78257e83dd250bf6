import type { DeliverResult } from "../../contract/delivery.js";
import { answer as json } from "../../http/answer.js";
import type { HttpResponse } from "../../http/message.js";

export { json };

/**
 * The outcome of a request: the result of `deliver`, or one of
 *
 * - `malformed`: the body is not what this server sends, or `deliver` rejected it as `bad_request`; see `detail`.
 * - `unsupported`: it asked for a voice call.
 * - `failed`: an error of ours, or of the options. It is in the log.
 *
 * `message` is always there unless the message was or may have been sent.
 */
export interface Outcome extends Omit<DeliverResult, "status"> {
  readonly status: DeliverResult["status"] | "malformed" | "unsupported" | "failed";
  /** What is wrong with a `malformed` request, for operators. */
  readonly detail?: string;
  /** Whether a `malformed` request could be read, and the verifier rejected what it asks for. */
  readonly isRead?: boolean;
}

/** HTTP statuses for servers that pass a refusal on. */
const statuses: Readonly<Record<Outcome["status"], number>> = {
  sent: 200,
  pending: 200,
  repeated: 200,
  malformed: 400,
  invalid: 422,
  unsupported: 422,
  rate_limited: 429,
  spam_detected: 429,
  failed: 500,
  no_route: 502,
  unavailable: 503,
};

export function statusOf({ status }: Outcome): number {
  return statuses[status];
}

/** For servers that read a refusal inside of a 200: only what is wrong with the request or with us has another status. */
export function outerStatusOf({ status }: { readonly status: string }): number {
  return status === "malformed" || status === "failed" || status === "unavailable" ? statuses[status] : 200;
}

/** Whether the message was or may have been sent, by this request or an earlier one. */
export function isSent(outcome: Outcome): boolean {
  return statusOf(outcome) === 200;
}

export function plain(status: number, text: string, headers: Readonly<Record<string, string>> = {}): HttpResponse {
  return { status, headers: { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store", ...headers }, body: text };
}

/** For servers that pass the text of an error on to the user or into a log: the status, and one sentence. */
export function asText(outcome: Outcome): HttpResponse {
  return plain(statusOf(outcome), isSent(outcome) ? "" : (outcome.message ?? ""));
}

/**
 * For servers with a queue, where no one reads a refusal and an error is repeated: a refusal is a success with the
 * header `x-phoneproof-status`. Only what may succeed later is an error, and a body that cannot be read.
 */
export function asQueued(outcome: Outcome): HttpResponse {
  const { status, detail, isRead } = outcome;
  const code = status === "no_route" ? 503 : isRead ? 200 : outerStatusOf(outcome);
  return json(code, code === 200 ? {} : { error: detail ?? status }, { "x-phoneproof-status": status });
}
