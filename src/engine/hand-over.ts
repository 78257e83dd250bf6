import type { Authentication } from "../domain/authentication.js";
import { maskNumber } from "../domain/phone-number.js";
import type { Policy } from "../domain/policy.js";
import { type SendReport, type SendResult, settleReceipt, settleSend } from "../domain/send.js";
import { soundPrice } from "../domain/spend.js";
import type { TestNumber } from "../options.js";
import type { RouteStep, SmsMessage } from "../ports/sms-sender.js";
import { type StoreBudget, TimedOut, withTimeout } from "./budget.js";
import { toMessage } from "./message.js";
import type { Parts } from "./parts.js";
import { keepMessageId } from "./receipts.js";
import type { SpendHold } from "./spend.js";
import { transition } from "./transition.js";

/**
 * Hands the newest send of `auth` to the carrier and settles what became of it. The write that holds the send precedes it; the record after it comes back.
 *
 * "create and retry answer after the carrier's outcome or `sendTimeout` … Once a message may have been handed over, no store fault turns the answer into an error" (contract.md, Life of an authentication).
 */
export async function handOver(
  parts: Parts,
  budget: StoreBudget,
  auth: Authentication,
  code: string,
  country: string | undefined,
  policy: Policy,
  hold: SpendHold,
): Promise<{ readonly result: SendResult; readonly auth: Authentication }> {
  const attempt = auth.attempts;
  const test = parts.settings.testNumbers.get(auth.number);
  const report = await budget.aside(() => (test === undefined ? send(parts, toMessage(parts, auth, code, country, hold.amount)) : pretend(parts, test)));
  const { result } = report;
  const now = parts.clock.now();
  const settle = (current: Authentication) => {
    const next = settleSend(current, attempt, report, policy, now);
    return test?.outcome === "undeliverable" ? (settleReceipt(next ?? current, attempt, "undeliverable", "test number", now) ?? next) : next;
  };
  const spent = result === "rejected" ? 0 : report.price;
  const [settled] = await Promise.all([store(parts, budget, auth, settle), hold.settle(budget, spent)]);
  if (report.messageId !== undefined && parts.settings.receiptSources.length > 0) {
    await keepMessageId(parts, budget, report.messageId, { customer: auth.customer, id: auth.id, attempt });
  }
  return { result, auth: settled };
}

/** Settles on what is stored, if there is anything to write. A store fault is reported; the record as it should be comes back all the same. */
async function store(
  parts: Parts,
  budget: StoreBudget,
  auth: Authentication,
  settle: (current: Authentication) => Authentication | undefined,
): Promise<Authentication> {
  const local = settle(auth);
  if (local === undefined) return auth;
  try {
    const stored = await transition(parts.records, budget, auth.customer, auth.id, (current) => {
      const next = settle(current);
      return { result: next ?? current, next };
    });
    parts.outbox.deliverSoon(auth);
    return stored ?? local;
  } catch (err) {
    parts.logger.error({ err, authentication_uuid: auth.id }, "the outcome of a send could not be stored; it stays undecided");
    return local;
  }
}

/** What a sender answered. */
interface SentReport extends SendReport {
  /** The carrier's id of the message. */
  readonly messageId?: string;
  /** What the message costs; absent: as planned. */
  readonly price?: number | undefined;
}

/** "`testNumbers` with fixed codes and outcomes …, never sent". */
async function pretend({ clock, settings }: Parts, { outcome = "accepted" }: TestNumber): Promise<SentReport> {
  if (outcome === "slow") await new Promise<void>((resolve) => clock.after(settings.sendTimeout, resolve));
  return { result: outcome === "slow" ? "unknown" : outcome === "rejected" ? "rejected" : "accepted" };
}

/** "accepted, rejected (surely not sent), unknown (timeout, crash; a sender that throws or answers nonsense, unless it says rejected)" (contract.md, send outcome). */
async function send({ sender, clock, logger, settings }: Parts, message: SmsMessage): Promise<SentReport> {
  const abort = lazyAbort();
  const context = {
    get signal() {
      return abort.signal();
    },
    deadline: clock.now() + settings.sendTimeout,
  };
  const fields = { authentication_uuid: message.authentication_uuid, attempt: message.attempt, to: maskNumber(message.to) };
  try {
    const answer: unknown = await withTimeout(clock, settings.sendTimeout, () => sender.send(message, context));
    const outcome = outcomeOf(answer);
    const report = { result: outcome ?? "unknown", ...routeOf(answer, clock.now()) };
    if (outcome === "rejected") logger.warn({ ...fields, reason: reasonOf(answer, message) }, "the sender rejected a message");
    else if (outcome !== "accepted")
      logger.warn({ ...fields, reason: reasonOf(answer, message) }, "a sender's answer left the outcome unknown; it counts as sent");
    return report;
  } catch (error) {
    if (error instanceof TimedOut) abort.now(error);
    const outcome = outcomeOf(error) === "rejected" ? "rejected" : "unknown";
    logger.warn({ ...fields, outcome, reason: reasonOf(error, message) }, "the sender failed");
    return { result: outcome };
  }
}

/** An AbortController that is made when somebody asks for its signal: most senders in tests, and those that have a time limit of their own, never do. */
function lazyAbort(): { signal(): AbortSignal; now(reason: unknown): void } {
  let controller: AbortController | undefined;
  let aborted: { readonly reason: unknown } | undefined;
  return {
    signal() {
      controller ??= new AbortController();
      if (aborted !== undefined) controller.abort(aborted.reason);
      return controller.signal;
    },
    now(reason) {
      aborted = { reason };
      controller?.abort(reason);
    },
  };
}

/** The route and price of a sender's answer, and the steps of a router as decisions. */
function routeOf(answer: unknown, now: number): Omit<SentReport, "result"> {
  if (typeof answer !== "object" || answer === null) return {};
  const { messageId, route, price, steps } = answer as { messageId?: unknown; route?: unknown; price?: unknown; steps?: unknown };
  const tried = Array.isArray(steps) ? (steps as RouteStep[]).slice(0, 5) : [];
  return {
    ...(typeof messageId === "string" && messageId !== "" && messageId.length <= 256 && { messageId }),
    ...(typeof route === "string" && { route }),
    price: soundPrice(price),
    decisions: tried.map((step) => ({ at: now, rule: String(step.route), mode: "route", reason: `${step.reason}: ${step.outcome}`.slice(0, 200) })),
  };
}

function outcomeOf(answer: unknown): SendResult | undefined {
  const outcome = typeof answer === "object" && answer !== null && "outcome" in answer ? answer.outcome : undefined;
  return outcome === "accepted" || outcome === "rejected" || outcome === "unknown" ? outcome : undefined;
}

/** A reason for the log, without the code or the whole number that a carrier's answer may repeat. */
function reasonOf(answer: unknown, message: SmsMessage): string {
  const { reason, message: text } = (typeof answer === "object" && answer !== null ? answer : {}) as { reason?: unknown; message?: unknown };
  const said = typeof reason === "string" ? reason : typeof text === "string" ? text : "no reason given";
  return said.slice(0, 500).replaceAll(message.code, "******").replaceAll(message.to.slice(1), maskNumber(message.to).slice(1));
}
