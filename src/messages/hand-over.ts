import { channels } from "../contract/channel.js";
import { propertiesOf } from "../core/collections.js";
import { type StoreDeadline, TimedOut, withTimeout } from "../core/deadline.js";
import { type Decided, update } from "../core/records/transact.js";
import { retryInBackground } from "../core/retry-in-background.js";
import { type Authentication, isVoid, withDecision } from "../domain/authentication.js";
import { givenBack, type SumClaim } from "../domain/claim.js";
import type { Decision } from "../domain/decision.js";
import { withoutCodeAndNumber } from "../domain/message.js";
import { maskNumber } from "../domain/phone-number.js";
import { noOutcome, type SendReport, type SendResult, settleReceipt, settleSend } from "../domain/send.js";
import { type Ceiling, ceilingsOf, parsePrice, spendCorrection } from "../domain/spend.js";
import type { RouteTry } from "../observability/monitor.js";
import type { TestNumber } from "../options/types.js";
import type { Clock } from "../ports/clock.js";
import type { Channel, CodeMessage, RouteStep } from "../ports/sms-sender.js";
import { cellsOf, type MessageCommit, wasUnlocked } from "./message-commit.js";
import { type CarrierId, keepId, keysOfListedId, listedId } from "./message-ids.js";
import type { Messages } from "./messages.js";
import { silentOn, toMessage } from "./plan.js";
import type { ReceiptTarget } from "./receipt-reference.js";
import { settleOne } from "./receipts.js";
import { rememberUnreachable } from "./unreachable.js";

/** Characters read of a carrier's words: in a page of a megabyte, hiding the code takes seconds. */
const longestRead = 2_000;

/** The outcome of a message, and its record afterwards. */
export interface HandedOver {
  readonly result: SendResult;
  readonly auth: Authentication;
}

/**
 * Hands a message to the carrier and settles its outcome. The message was written before; returns the record after it.
 * "create and retry respond after the carrier's outcome or `sendTimeout`" (docs/contract.md#answer-time). "Once a
 * message may have been handed over, no store failure turns the response into an error"
 * (docs/contract.md#no-error-after-hand-over).
 */
export async function handOver(messages: Messages, deadline: StoreDeadline, commit: MessageCommit): Promise<HandedOver> {
  const { clock, countries, monitor, settings, statistics } = messages;
  const { next: auth, price } = commit.message;
  const test = settings.testNumbers.get(auth.number);
  if (test !== undefined) return settle(messages, deadline, commit, await pretend(messages, test), test);
  const began = clock.now();
  const report = await send(messages, toMessage(messages, commit.message), began);
  const { result, reason } = report;
  for (const channel of report.unreachable) rememberUnreachable(messages, auth, channel);
  const planned = auth.sends.at(-1);
  const { route, channel } = report.route === undefined ? { ...planned } : report;
  if (result !== "rejected") {
    statistics.sent(auth.customer, auth.country, { route, channel }, report.price ?? price);
    // Messages that the cells do not count are not open.
    const isOpen = auth.uncounted === commit.before.uncounted && auth.origin?.s !== 1 && auth.origin?.g !== 1;
    if (auth.country !== undefined && isOpen) countries.sent(commit.account, auth.country);
  }
  const took = Math.max(0, clock.now() - began);
  monitor.sent(auth, { attempt: auth.attempts, outcome: result, route, channel, fallback: planned?.fallback, took, reason }, report.tries);
  return settle(messages, deadline, commit, report);
}

/**
 * The same for a message that another server made: returns when its caller needs a response, even without the carrier's
 * outcome, which then counts as `unknown`; the hand-over goes on in the background. A repeat finds it in `underWay`.
 */
export async function handOverInTime(messages: Messages, deadline: StoreDeadline, commit: MessageCommit): Promise<HandedOver> {
  const working = handOver(messages, deadline, commit);
  const { next, wanted } = commit.message;
  const { given } = wanted;
  if (given === undefined) return working;
  const { clock, inBackground, underWay } = messages;
  const key = `${next.id}/${next.attempts}`;
  const settled = working.then(
    () => undefined,
    () => undefined,
  );
  underWay.set(key, settled);
  void settled.then(() => underWay.delete(key));
  if (given.answerBy === Number.POSITIVE_INFINITY) return working;
  try {
    return await withTimeout(clock, Math.max(0, given.answerBy - clock.now()), () => working);
  } catch (error) {
    if (!(error instanceof TimedOut)) throw error;
    inBackground(settled);
    return { result: "unknown", auth: next };
  }
}

/** Writes the outcome of a message, if anything changes. */
async function settle(messages: Messages, deadline: StoreDeadline, commit: MessageCommit, report: SentReport, test?: TestNumber): Promise<HandedOver> {
  const { policy } = commit.account;
  const auth = commit.message.next;
  const { result, indexed } = report;
  const attempt = auth.attempts;
  const now = messages.clock.now();
  const ceilings = ceilingsOf(policy.limits, auth.sends.at(-1)?.channel);
  const returned = returnedClaims(messages, ceilings, commit, report, true);
  // An unlock in the meantime has already removed the message from its cells.
  const returnedBy = (current: Authentication) => (wasUnlocked(commit, current) ? returnedClaims(messages, ceilings, commit, report, false) : returned);
  const fallbackAt = silentOn(messages, commit.before, commit.message, report);
  const marked = { fallbackAt, marks: returned.length > 0, ...report };
  const token = messages.keyring.newToken();
  const settled = (current: Authentication, tokens: readonly string[]): Decided<Authentication> => {
    const known = settleSend(current, attempt, marked, policy, now);
    const next =
      test?.outcome === "undeliverable" ? (settleReceipt(known ?? current, attempt, { status: "undeliverable", error: "test number" }, now) ?? known) : known;
    // A store that writes in two steps may have written only the record: the same write completes it.
    if (known === undefined && tokens.includes(token)) return { result: current, next: current, claims: returned, token };
    return { result: next ?? current, next, claims: known === undefined ? [] : returnedBy(current), token };
  };
  // Why the route was chosen is no reason to write: it is stored with the record's next write, which most never have.
  if (
    result === "accepted" &&
    test === undefined &&
    indexed === undefined &&
    settleSend(auth, attempt, { ...marked, decisions: undefined }, policy, now) === undefined
  ) {
    const noted = (report.decisions ?? []).reduce(withDecision, auth);
    messages.records.note(auth, noted);
    return { result, auth: noted };
  }
  const local = settled(auth, []);
  if (local.next === undefined && indexed === undefined) return { result, auth };
  // The id is stored first: if the process dies in between, receipts still find the message.
  const listening = indexed === undefined ? undefined : listen(messages, deadline, indexed, { customer: auth.customer, id: auth.id, attempt });
  const after = local.next === undefined ? auth : await store(messages, deadline, auth, local.result, settled);
  await listening;
  return { result, auth: after };
}

/**
 * The claims and cost that a message returns if it is known not to have been sent: "goes back with the write that
 * settles it" (docs/contract.md#spend-ceiling).
 */
function returnedClaims(
  { settings }: Messages,
  ceilings: readonly Ceiling[],
  commit: MessageCommit,
  { result, price }: SentReport,
  isCounted: boolean,
): SumClaim[] {
  const { next, maxPrice } = commit.message;
  const counted = result === "rejected" && isCounted ? cellsOf(commit).map(givenBack) : [];
  if (maxPrice === undefined) return counted;
  const spent = result === "rejected" ? 0 : (price ?? maxPrice);
  return [...counted, ...spendCorrection(next.customer, maxPrice, spent, ceilings, { now: next.lastSendAt, skew: settings.clockSkew })];
}

/**
 * Stores the carrier's id for later receipts and settles those that arrived early. A store failure does not affect the
 * request: it is retried in the background.
 */
async function listen(parts: Messages, deadline: StoreDeadline, id: CarrierId, target: ReceiptTarget): Promise<void> {
  const { clock, monitor } = parts;
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
      monitor.throttledLog.error(
        { err, authentication_uuid: target.id },
        "a carrier's message id could not be stored; its receipts may not find their message",
      );
    parts.inBackground(again.catch(failed));
  }
}

/**
 * Adds a stored id to its record, so that an erasure finds it. If the record was erased in the meantime, the id is
 * deleted.
 */
async function list(parts: Messages, id: CarrierId, target: ReceiptTarget): Promise<void> {
  const listed = listedId(id);
  try {
    await retryInBackground(parts.clock, async () => {
      const isListed = await update(parts.records, parts.newDeadline(), target.customer, target.id, (auth): Decided<boolean> => {
        // A record being erased is void.
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

/**
 * Settles the stored record. A store failure does not affect the request: the updated record is returned anyway, and
 * the write is retried in the background.
 */
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
    // Sends no callback if the record was erased in the meantime.
    if (stored !== undefined) outbox.workSoon(stored);
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

/** The parsed result of a sender. */
interface SentReport extends SendReport {
  /** Channels that the number is known not to be on. */
  readonly unreachable: readonly Channel[];
  /** What each route made of it, except of channels that the number is not on. */
  readonly tries?: readonly RouteTry[];
  /** The carrier's message id, if its receipts contain no other reference. */
  readonly indexed?: CarrierId | undefined;
  /** The price of the message; absent: as planned. */
  readonly price?: number | undefined;
  /** Why it was not accepted. */
  readonly reason?: string;
}

/** A test number's message is never sent (docs/contract.md#test-numbers). */
async function pretend({ clock, settings }: Messages, { outcome = "accepted" }: TestNumber): Promise<SentReport> {
  if (outcome === "slow") await new Promise<void>((resolve) => clock.after(settings.sendTimeout, resolve));
  return { result: outcome === "slow" ? "unknown" : outcome === "rejected" ? "rejected" : "accepted", unreachable: [] };
}

/**
 * "accepted, rejected (known not to have been sent), unknown (timeout, crash; a sender that throws or returns an
 * invalid result, unless it reports a rejection)" (docs/contract.md#send-outcome).
 */
async function send(parts: Messages, message: CodeMessage, now: number): Promise<SentReport> {
  const { sender, clock, monitor, settings } = parts;
  const timeout = new AbortController();
  const context = { signal: timeout.signal, deadline: now + settings.sendTimeout, timeLeft: settings.sendTimeout };
  try {
    const answer: unknown = await withTimeout(clock, settings.sendTimeout, () => sender.send(message, context));
    // The result may be an object that throws when it is read.
    const outcome = outcomeOf(answer);
    const report = reportOf(parts, outcome ?? "unknown", answer, message);
    if (outcome !== "accepted") return notAccepted(parts, message, outcome === undefined ? { reason: noOutcome } : answer, report);
    if (monitor.outages.sender.on) monitor.outages.sender.worked();
    return report;
  } catch (error) {
    if (error instanceof TimedOut) timeout.abort(error);
    return notAccepted(parts, message, error, reportOf(parts, outcomeOf(error) === "rejected" ? "rejected" : "unknown", undefined, message));
  }
}

/** Adds the reason and logs it. It is stored if the sender returns no steps of its own. */
function notAccepted({ monitor, clock }: Messages, message: CodeMessage, answer: unknown, report: SentReport): SentReport {
  const { result, route, channel, decisions } = report;
  const reason = reasonOf(answer, message);
  const fields = { authentication_uuid: message.authentication_uuid, attempt: message.attempt, to: maskNumber(message.to), reason };
  if (result === "rejected") monitor.throttledLog.warn(fields, "the sender rejected a message");
  else monitor.outages.sender.failed(fields);
  if (decisions !== undefined && decisions.length > 0) return { ...report, reason };
  const rule = route ?? message.planned_route ?? "sender";
  return { ...report, reason, decisions: [routeDecision(message, clock, rule, result, channel, `${result}: ${reason}`, reason)] };
}

function routeDecision(
  { attempt }: CodeMessage,
  clock: Clock,
  rule: string,
  outcome: SendResult,
  channel: Channel | undefined,
  reason: string,
  answer?: string,
): Decision {
  return {
    at: clock.now(),
    rule,
    mode: "route",
    reason: reason.slice(0, 200),
    attempt,
    outcome,
    ...(channel !== undefined && { channel }),
    ...(answer !== undefined && { answer: answer.slice(0, 200) }),
  };
}

/** The route, price and id from a sender's result, and a router's steps as decisions. */
function reportOf({ clock, sender }: Messages, result: SendResult, answer: unknown, message: CodeMessage): SentReport {
  const { messageId, idSpace, keepId, route, channel = sender.channel, price, steps, unreachable } = propertiesOf(answer);
  const known = knownChannel(channel);
  const id = typeof messageId === "string" && messageId !== "" && messageId.length <= 256 ? messageId : undefined;
  const tried = Array.isArray(steps) ? (steps as RouteStep[]).slice(0, 5) : [];
  const channelOf = (step: RouteStep) => knownChannel(step.channel ?? sender.channel);
  return {
    result,
    indexed: id !== undefined && typeof idSpace === "string" ? { messageId: id, idSpace } : undefined,
    keptId: keepId === true ? id : undefined,
    route: typeof route === "string" && route.length <= 256 ? route : undefined,
    channel: known,
    unreachable: channels.filter((one) => tried.some((step) => step.unreachable === one) || (unreachable === true && one === known)),
    price: parsePrice(price),
    tries: tried.flatMap((step): RouteTry[] => {
      const outcome = outcomeOf(step);
      if (outcome === undefined || step.unreachable !== undefined) return [];
      return [{ route: String(step.route), channel: channelOf(step), outcome }];
    }),
    decisions: tried.map((step) => {
      const { route, reason, outcome, answer } = step;
      const response = typeof answer === "string" ? reasonOf({ reason: answer }, message) : undefined;
      return routeDecision(message, clock, String(route), outcome, channelOf(step), `${reason}: ${outcome}`, response);
    }),
  };
}

/** A channel as it is stored: absent for SMS. */
const knownChannel = (channel: unknown): Channel | undefined => channels.find((one) => one === channel && one !== "sms");

function outcomeOf(answer: unknown): SendResult | undefined {
  const { outcome } = propertiesOf(answer);
  return outcome === "accepted" || outcome === "rejected" || outcome === "unknown" ? outcome : undefined;
}

/** A reason for the log, without the code or the whole number, which a carrier's response may repeat. */
function reasonOf(answer: unknown, message: CodeMessage): string {
  const { reason, message: text } = propertiesOf(answer);
  const given = typeof reason === "string" ? reason : typeof text === "string" ? text : "no reason given";
  // What is left out at the end may have begun with a digit of the code.
  const start = given.length > longestRead ? given.slice(0, longestRead).replace(/[\p{N}\p{P}\p{Z}]+$/u, "") : given;
  return withoutCodeAndNumber(start, message).slice(0, 500);
}
