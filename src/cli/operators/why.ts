import type { ExplainedSend, Explanation } from "../../operations/explain.js";
import type { RefusedRequests } from "../../operations/refusals.js";
import { wordsOf } from "./rules.js";

/** What is known of a number, for a support agent: as data, and in sentences. `now`: milliseconds since the epoch. */
export function reportOf(phone_number: string, history: readonly Explanation[], refusals: readonly RefusedRequests[], now: number) {
  return {
    phone_number,
    /** Newest first. */
    authentications: history.map((one) => ({ ...one, sentences: sentencesOf(one, now) })),
    /** Requests that were rejected with an error, by code and hour, newest first. */
    refusals: refusals.map((one) => ({ ...one, sentences: refusalSentences(one) })),
  };
}

/** Where nothing is found: with another secret, the same number has other keys. */
export const whatToCheck = "Check the number, --customer, the store and, if you name no module, PHONEPROOF_SECRET and PHONEPROOF_PEPPER.";

/** The report as text. */
export function textOf({ phone_number, authentications, refusals }: ReturnType<typeof reportOf>): string {
  if (authentications.length + refusals.length === 0)
    return [
      `Nothing is stored about ${phone_number}.`,
      "Either no request for it reached this customer, or its records have been deleted: those of a blocked request after ten minutes, others after a day.",
      whatToCheck,
      "",
    ].join("\n");
  const parts = [
    ...authentications.map(({ authentication_uuid, created_at, sentences }) => ({ at: created_at, title: authentication_uuid, sentences })),
    ...refusals.map(({ last_at, code, sentences }) => ({ at: last_at, title: code, sentences })),
  ].sort((a, b) => b.at.localeCompare(a.at));
  const blocks = parts.map(({ at, title, sentences }) => `${dateOf(at)}  ${title}\n${sentences.map((line) => `  ${line}\n`).join("")}`);
  return `${phone_number}\n\n${blocks.join("\n")}`;
}

function sentencesOf(one: Explanation, now: number): string[] {
  const { sends, wrong_codes, left } = one;
  const open = left.seconds > 0 && !one.validated;
  return [
    outcomeOf(one, now),
    ...sends.map(sendSentence),
    ...(wrong_codes > 0 ? [`${countOf(wrong_codes, "wrong code")} entered.`] : []),
    ...decisionSentences(one, now),
    ...(open && (left.checks > 0 || left.retries > 0)
      ? [`Left: ${countOf(left.checks, "try", "tries")} to enter a code, ${countOf(left.retries, "more message")}, ${durationOf(left.seconds)}.`]
      : []),
  ];
}

function outcomeOf({ purpose, status, validated, sends, left, expires_at, wrong_codes, decisions }: Explanation, now: number): string {
  // Another server checks the codes of a delivery, and may report that the user got in.
  const isDelivery = purpose !== undefined;
  if (validated) return isDelivery ? "Confirmed: the user got in." : "Verified: the right code was entered.";
  if (status === "rate_limited") return "Not sent: a limit was reached (rate_limited).";
  if (status === "spam_detected") return "Not sent: an anti-spam rule blocked it (spam_detected).";
  if (sends.length === 0) return "Nothing was sent: the request ended before its message.";
  if (sends.every(({ state }) => state === "rejected")) return "Nothing was sent: no carrier took the message.";
  if (isDelivery)
    return left.seconds > 0 ? "A code was sent, and has not been confirmed yet." : `Ended without a confirmation: it expired at ${timeOf(expires_at)}.`;
  if (left.seconds === 0 && now < Date.parse(expires_at)) return "Ended without a right code: it was canceled.";
  if (left.seconds === 0) return `Ended without a right code: it expired at ${timeOf(expires_at)}, or was canceled.`;
  if (left.checks === 0 && decisions.some(({ rule }) => rule === "guesses")) return "No code is accepted: a limit was reached.";
  if (left.checks === 0) return `Ended without a right code: ${countOf(wrong_codes, "wrong code")} used up its tries. The user can start a new verification.`;
  return "A code was sent, and the right one has not been entered yet.";
}

function sendSentence({ attempt, at, state, route, channel, fallback, reason, delivery }: ExplainedSend): string {
  const carrier = route === undefined || route === "sender" ? "the carrier" : route;
  const how = channel === undefined ? "" : ` by ${channel === "voice" ? "call" : channel}`;
  const why = fallback ? ", because the one before it did not arrive" : "";
  const message = `Message ${attempt}${how} at ${timeOf(at)}${why}:`;
  const answer = reason === undefined ? "" : `: ${reason}`;
  if (state === "rejected" && reason?.startsWith("no route for ")) return `${message} there is ${reason}. It was not sent.`;
  if (state === "rejected") return `${message} ${carrier} rejected it${answer}. It was not sent.`;
  if (delivery === "delivered") return `${message} ${carrier} reports that the phone received it.`;
  if (delivery === "undeliverable") return `${message} ${carrier} reports that it could not be delivered.`;
  if (reason !== undefined || state === "unknown") return `${message} the outcome at ${carrier} is unknown${answer}. It may have been sent.`;
  if (delivery !== undefined) return `${message} ${carrier} accepted it and reports ${delivery}, no delivery yet.`;
  return `${message} ${carrier} accepted it; no delivery was reported.`;
}

function decisionSentences({ decisions }: Explanation, now: number): string[] {
  // A retry that is blocked again adds the same rule again.
  const last = new Map(decisions.filter(({ mode }) => mode !== "route").map((decision) => [`${decision.mode} ${decision.rule}`, decision]));
  return [...last.values()].flatMap(({ rule, mode, value, threshold, reason, until, lifted_at }) => {
    const { means, fix } = wordsOf(rule);
    const counted = value === undefined || threshold === undefined ? "" : ` It counted ${round(value)}; the threshold is ${round(threshold)}.`;
    const why = reason === undefined ? "" : ` Reason: ${reason.replace(/\.$/, "")}.`;
    if (mode === "shadow") return [`The rule ${rule} is in shadow mode and would have blocked it. ${means}${counted}${why}`];
    const blocked = `Blocked by the rule ${rule}. ${means}${counted}${why}`;
    if (lifted_at !== undefined) return [`${blocked} It was lifted at ${timeOf(lifted_at)}: the user can ask for a code again.`];
    if (until === undefined) return [blocked, `What to do: ${fix}`];
    const seconds = Math.ceil((Date.parse(until) - now) / 1000);
    if (seconds <= 0) return [`${blocked} There has been room again since ${timeOf(until)}: the user can ask for a code again.`];
    return [`${blocked} There is room again at ${timeOf(until)}, in ${durationOf(seconds)}.`, `What to do: ${fix}`];
  });
}

function refusalSentences({ code, hour, count }: RefusedRequests): string[] {
  const { means, fix } = wordsOf(code);
  const times = count >= 20 ? "20 requests or more" : countOf(count, "request");
  return [`${times} rejected with the error ${code} in the hour from ${timeOf(hour)}; nothing was sent. ${means}`, `What to do: ${fix}`];
}

const round = (value: number) => Math.round(value * 100) / 100;

export function countOf(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

function durationOf(seconds: number): string {
  if (seconds < 120) return countOf(seconds, "second");
  return seconds < 7_200 ? countOf(Math.round(seconds / 60), "minute") : countOf(Math.round(seconds / 3_600), "hour");
}

/** `2026-03-01 12:00:00 UTC`. */
export function dateOf(at: string): string {
  return `${at.slice(0, 10)} ${timeOf(at)}`;
}

function timeOf(at: string): string {
  return `${at.slice(11, 19)} UTC`;
}
