import { type StoreDeadline, TimedOut, withTimeout } from "../core/deadline.js";
import { type Decided, update } from "../core/records/transact.js";
import { retryInBackground } from "../core/retry-in-background.js";
import type { Account } from "../domain/account.js";
import { type Authentication, isVoid } from "../domain/authentication.js";
import { givenBack, type SumClaim } from "../domain/claim.js";
import type { Decision } from "../domain/decision.js";
import { maskNumber } from "../domain/phone-number.js";
import type { SpendCeiling } from "../domain/policy.js";
import { noOutcome, type SendReport, type SendResult, settleReceipt, settleSend } from "../domain/send.js";
import { parsePrice, spendCorrection } from "../domain/spend.js";
import type { TestNumber } from "../options/types.js";
import type { Clock } from "../ports/clock.js";
import type { RouteStep, SmsMessage } from "../ports/sms-sender.js";
import { cellsOf, type MessageCommit } from "./message-commit.js";
import { type CarrierId, keepId, keysOfListedId, listedId } from "./message-ids.js";
import type { Messages } from "./messages.js";
import { toMessage } from "./plan.js";
import type { ReceiptTarget } from "./receipt-reference.js";
import { settleOne } from "./receipts.js";

const none: readonly never[] = [];

/** What came of a message, and its record afterwards. */
export interface HandedOver {
  readonly result: SendResult;
  readonly auth: Authentication;
}

/**
 * Hands a message to the carrier and settles what happened to it. The write that holds it precedes it; the record after it comes back.
 *
 * "create and retry answer after the carrier's outcome or `sendTimeout`" (docs/contract.md#answer-time).
 * "Once a message may have been handed over, no store fault turns the answer into an error" (docs/contract.md#no-error-after-hand-over).
 */
export async function handOver(messages: Messages, account: Account, deadline: StoreDeadline, commit: MessageCommit): Promise<HandedOver> {
  const { clock, monitor, settings, statistics } = messages;
  const { next: auth, price } = commit.message;
  const test = settings.testNumbers.get(auth.number);
  if (test !== undefined) return settle(messages, account, deadline, commit, await pretend(messages, test), test);
  const began = clock.now();
  const report = await send(messages, toMessage(messages, commit.message), began);
  const { result, reason } = report;
  const route = report.route ?? auth.sends.at(-1)?.route;
  if (result !== "rejected") statistics.sent(auth.customer, auth.country, route, report.price ?? price);
  monitor.sent(auth, { attempt: auth.attempts, outcome: result, route, took: Math.max(0, clock.now() - began), reason });
  return settle(messages, account, deadline, commit, report);
}

/** Writes what came of a message, where there is something to write. */
async function settle(
  messages: Messages,
  { policy }: Account,
  deadline: StoreDeadline,
  commit: MessageCommit,
  report: SentReport,
  test?: TestNumber,
): Promise<HandedOver> {
  const auth = commit.message.next;
  const { result, indexed } = report;
  const attempt = auth.attempts;
  const now = messages.clock.now();
  const returned = returnedClaims(messages, policy.limits.spend, commit, report, true);
  // An unlocking in the meantime has taken the message out of its cells already.
  const returnedBy = ({ sent, uncounted }: Authentication) =>
    uncounted >= sent ? returnedClaims(messages, policy.limits.spend, commit, report, false) : returned;
  const marked = returned.length > 0 ? { ...report, marks: true } : report;
  const token = messages.keyring.newToken();
  const settled = (current: Authentication, tokens: readonly string[]): Decided<Authentication> => {
    const known = settleSend(current, attempt, marked, policy, now);
    const next =
      test?.outcome === "undeliverable" ? (settleReceipt(known ?? current, attempt, { status: "undeliverable", error: "test number" }, now) ?? known) : known;
    // A store that writes in two steps may have written the record alone: then the same write completes it.
    if (known === undefined && tokens.includes(token)) return { result: current, next: current, claims: returned, token };
    return { result: next ?? current, next, claims: known === undefined ? [] : returnedBy(current), token };
  };
  const local = settled(auth, []);
  if (local.next === undefined && indexed === undefined) return { result, auth };
  // The id first: a process that dies in between leaves a message that its receipts find.
  const listening = indexed === undefined ? undefined : listen(messages, deadline, indexed, { customer: auth.customer, id: auth.id, attempt });
  const after = local.next === undefined ? auth : await store(messages, deadline, auth, local.result, settled);
  await listening;
  return { result, auth: after };
}

/** What a message known not to have been sent gives back to its cells, and what it did not cost: "goes back with the write that settles it" (docs/contract.md#spend-ceiling). */
function returnedClaims(
  { settings }: Messages,
  ceilings: readonly SpendCeiling[],
  commit: MessageCommit,
  { result, price }: SentReport,
  isCounted: boolean,
): SumClaim[] {
  const { next, maxPrice } = commit.message;
  const counted = result === "rejected" && isCounted ? cellsOf(commit).map(givenBack) : [];
  if (maxPrice === undefined) return counted;
  const spent = result === "rejected" ? 0 : (price ?? maxPrice);
  return [...counted, ...spendCorrection(next.customer, maxPrice, spent, ceilings, { at: next.lastSendAt, skew: settings.clockSkew })];
}

/** Keeps the carrier's id for the receipts to come, and settles those that were quicker. A store fault costs the request nothing: it is retried in the background. */
async function listen(parts: Messages, deadline: StoreDeadline, id: CarrierId, target: ReceiptTarget): Promise<void> {
  const { clock, logger } = parts;
  const work = async (within: StoreDeadline) => {
    const quicker = await keepId(parts, within, id, target);
    parts.inBackground(list(parts, id, target));
    for (const early of quicker) await settleOne(parts, within, early, target);
  };
  try {
    await work(deadline);
  } catch {
    const again = retryInBackground(clock, () => work(parts.newDeadline()), 1);
    const failed = (err: unknown) =>
      logger.error({ err, authentication_uuid: target.id }, "a carrier's message id could not be kept; its receipts may not find their message");
    parts.inBackground(again.catch(failed));
  }
}

/** Lists a kept id in its record, so that an erasure finds it; where the record was erased meanwhile, the id goes too. */
async function list(parts: Messages, id: CarrierId, target: ReceiptTarget): Promise<void> {
  const listed = listedId(id);
  try {
    await retryInBackground(parts.clock, async () => {
      const isListed = await update(parts.records, parts.newDeadline(), target.customer, target.id, (auth): Decided<boolean> => {
        // One that is being erased is void.
        if (isVoid(auth)) return { result: false };
        return { result: true, next: auth.keptIds.includes(listed) ? undefined : { ...auth, keptIds: [...auth.keptIds, listed] } };
      });
      if (isListed !== true) await parts.store.delete({ values: keysOfListedId(listed) });
    });
  } catch (err) {
    parts.monitor.throttledLog.warn(
      { err, authentication_uuid: target.id },
      "a carrier's message id could not be listed; an erasure would miss it for three days",
    );
  }
}

/** Settles on what is stored. A store fault costs the request nothing: the record as it should be comes back all the same, and the write is retried in the background. */
async function store(
  parts: Messages,
  deadline: StoreDeadline,
  auth: Authentication,
  local: Authentication,
  settled: (current: Authentication, tokens: readonly string[]) => Decided<Authentication>,
): Promise<Authentication> {
  const { clock, monitor, records, outbox } = parts;
  const write = async (within: StoreDeadline) => {
    const stored = await update(records, within, auth.customer, auth.id, (current, { tokens }) => settled(current, tokens));
    // Nothing is told of a message whose record was erased meanwhile.
    if (stored !== undefined) outbox.deliverSoon(stored);
    return stored;
  };
  try {
    return (await write(deadline)) ?? local;
  } catch {
    const again = retryInBackground(clock, () => write(parts.newDeadline()), 1);
    parts.inBackground(
      again.catch((err) => monitor.throttledLog.error({ err, authentication_uuid: auth.id }, "the outcome of a send could not be stored; it stays undecided")),
    );
    return local;
  }
}

/** What a sender answered. */
interface SentReport extends SendReport {
  /** The carrier's id of the message, where its receipts name nothing else. */
  readonly indexed?: CarrierId | undefined;
  /** What the message costs; absent: as planned. */
  readonly price?: number | undefined;
  /** Why it was not accepted. */
  readonly reason?: string;
}

/** A test number's: never sent (docs/contract.md#test-numbers). */
async function pretend({ clock, settings }: Messages, { outcome = "accepted" }: TestNumber): Promise<SentReport> {
  if (outcome === "slow") await new Promise<void>((resolve) => clock.after(settings.sendTimeout, resolve));
  return { result: outcome === "slow" ? "unknown" : outcome === "rejected" ? "rejected" : "accepted" };
}

/** "accepted, rejected (known not to have been sent), unknown (timeout, crash; a sender that throws or answers nonsense, unless it says rejected)" (docs/contract.md#send-outcome). */
async function send(parts: Messages, message: SmsMessage, now: number): Promise<SentReport> {
  const { sender, clock, monitor, settings } = parts;
  const timeout = new AbortController();
  const context = { signal: timeout.signal, deadline: now + settings.sendTimeout, timeLeft: settings.sendTimeout };
  try {
    const answer: unknown = await withTimeout(clock, settings.sendTimeout, () => sender.send(message, context));
    // An answer may be an object that throws when it is read.
    const outcome = outcomeOf(answer);
    const report = reportOf(outcome ?? "unknown", answer, clock);
    if (outcome !== "accepted") return notAccepted(parts, message, outcome === undefined ? { reason: noOutcome } : answer, report);
    if (monitor.outages.sender.on) monitor.outages.sender.worked();
    return report;
  } catch (error) {
    if (error instanceof TimedOut) timeout.abort(error);
    return notAccepted(parts, message, error, reportOf(outcomeOf(error) === "rejected" ? "rejected" : "unknown", undefined, clock));
  }
}

/** With the reason, told to the operator, and kept where the sender gives no steps of its own. */
function notAccepted({ monitor, clock }: Messages, message: SmsMessage, answer: unknown, report: SentReport): SentReport {
  const { result, route, decisions } = report;
  const reason = reasonOf(answer, message);
  const fields = { authentication_uuid: message.authentication_uuid, attempt: message.attempt, to: maskNumber(message.to), reason };
  if (result === "rejected") monitor.throttledLog.warn(fields, "the sender rejected a message");
  else monitor.outages.sender.failed(fields);
  if (decisions !== undefined && decisions.length > 0) return { ...report, reason };
  const rule = route ?? message.planned_route ?? "sender";
  const failure: Decision = { at: clock.now(), rule, mode: "route", reason: `${result}: ${reason}`.slice(0, 200) };
  return { ...report, reason, decisions: [failure] };
}

/** The route, price and id of a sender's answer, and the steps of a router as decisions. */
function reportOf(result: SendResult, answer: unknown, clock: Clock): SentReport {
  if (typeof answer !== "object" || answer === null) return { result };
  const { messageId, idSpace, keepId, route, price, steps } = answer as Readonly<Record<string, unknown>>;
  const id = typeof messageId === "string" && messageId !== "" && messageId.length <= 256 ? messageId : undefined;
  const tried = Array.isArray(steps) ? (steps as RouteStep[]).slice(0, 5) : none;
  return {
    result,
    indexed: id !== undefined && typeof idSpace === "string" ? { messageId: id, idSpace } : undefined,
    keptId: keepId === true ? id : undefined,
    route: typeof route === "string" ? route : undefined,
    price: parsePrice(price),
    decisions: tried.map((step) => ({ at: clock.now(), rule: String(step.route), mode: "route", reason: `${step.reason}: ${step.outcome}`.slice(0, 200) })),
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
