import { unavailable } from "../core/deadline.js";
import type { Held } from "../core/records/records.js";
import { type Decided, type Outcome, transact } from "../core/records/transact.js";
import { type Authentication, withDecision } from "../domain/authentication.js";
import type { Moment } from "../domain/claim.js";
import type { Decision } from "../domain/decision.js";
import type { Account } from "../domain/policy.js";
import { type Charge, capCharges, listedClaims, longestFirst, refusalOf } from "../domain/quota.js";
import { type Exemptions, isSpamCharge, noExemptions, type SpamCharge, spamCharges, weighsNothing } from "../domain/spam-rules.js";
import { VerifierError } from "../errors.js";
import { isTestNumber } from "../options/options.js";
import { claimsOf, type MessageCommit, type MessageRequest, type Outside, type Reserved } from "./message-commit.js";
import type { Messages } from "./messages.js";
import { type PlannedMessage, planMessage, type Wanted } from "./plan.js";
import { leaveCaps, rollBack, takeBack } from "./roll-back.js";
import { lookAgain, shadowDecisions, trustCharges } from "./second-look.js";

/** How often a commit is repeated without a rule that does not apply. */
const mostLooks = 4;

/** How often a message that was stored too long ago is stored again. */
const mostDelays = 10;

/**
 * Stores a message in one commit with all claims of caps, ceilings and rules (docs/contract.md#one-commit). After a
 * stall, the send would fall outside the claimed windows: the write is taken back and the message is decided again
 * (docs/contract.md#late-hand-over).
 */
export async function reserve<Status extends string>(messages: Messages, account: Account, request: MessageRequest<Status>): Promise<Reserved<Status>> {
  const { clock, keyring, settings } = messages;
  for (let delays = 0; delays < mostDelays; delays++) {
    const reserved = await commitOrLookAgain(messages, account, request);
    if (!("commit" in reserved)) return reserved;
    const { commit } = reserved;
    const token = keyring.newToken();
    if (isTooLate(clock.now(), request)) {
      rollBack(messages, commit, token);
      throw tooLate();
    }
    if (clock.now() - commit.message.next.lastSendAt <= settings.storeTimeout) return reserved;
    try {
      await takeBack(messages, commit, token);
    } catch (error) {
      rollBack(messages, commit, token);
      throw error;
    }
  }
  throw unavailable(new Error(`a message could not be handed over within ${settings.storeTimeout} ms of the decision to send it`));
}

/** Whether the caller of `deliver` has had its response (docs/contract.md#deliver-time). */
function isTooLate(now: number, { given }: Pick<Wanted, "given">): boolean {
  return given !== undefined && now > given.answerBy;
}

const tooLate = () => unavailable(new Error("a message could not be stored within the time that its caller allows"));

/**
 * A message blocked by a spam rule is reviewed: if the rule does not apply, the commit is made without its limit
 * (docs/contract.md#second-look).
 */
async function commitOrLookAgain<Status extends string>(messages: Messages, account: Account, request: MessageRequest<Status>): Promise<Reserved<Status>> {
  let exempt = noExemptions;
  for (let looks = 0; ; looks++) {
    const { result, counts, refused } = await commitMessage(messages, account, request, exempt);
    if (!("commit" in result)) return result;
    const { commit } = result;
    if (refused === undefined) return { commit: await granted(messages, request, commit, counts) };
    const charge = commit.charges[refused.refusedBy];
    if (charge === undefined) throw new Error("the store rejected a claim that has no limit");
    const blocked = isSpamCharge(charge) && charge.decided !== undefined ? charge.decided : refusalOf(charge, refused, messages.settings.clockSkew);
    const looked = isSpamCharge(charge) && looks < mostLooks ? await lookAgain(messages, request, commit, charge, refused.count, blocked, exempt) : blocked;
    if ("rule" in looked) {
      warnOf(messages, account, commit.message.next, looked);
      return { refusal: { status: isSpamCharge(charge) ? "spam_detected" : "rate_limited", decision: looked, auth: commit.before } };
    }
    exempt = looked;
  }
}

/** Makes one commit. If its response is lost or late, the commit is rolled back in the background. */
async function commitMessage<Status extends string>(
  messages: Messages,
  account: Account,
  { id, deadline, isNew, outside, given, channel, fallback, decide }: MessageRequest<Status>,
  exempt: Exemptions,
): Promise<Outcome<Reserved<Status>>> {
  const { clock, records, settings } = messages;
  let tried: MessageCommit | undefined;
  const decideHeld = (held: Held | undefined): Decided<Reserved<Status>> => {
    const lost = tried;
    tried = undefined;
    const moment: Moment = { now: clock.now(), skew: settings.clockSkew };
    if (isTooLate(moment.now, { given })) throw tooLate();
    const decision = decide(held?.auth, moment.now);
    if (!("send" in decision)) {
      if (lost !== undefined) leaveCaps(messages, lost, held?.auth);
      return { result: decision, next: decision.next };
    }
    const before = decision.send;
    const { network, unreachable } = outside;
    const message = planMessage(messages, before, account.policy, moment.now, { network, unreachable, given, channel, fallback });
    const unsent = message.isRouted ? message.unpriced : noOtherRoute(moment.now);
    if (unsent !== undefined) return { result: { refusal: { status: "rate_limited", decision: unsent, auth: before } } };
    const commit = (tried = toCommit(messages, account, isNew, outside, held, before, message, moment, exempt));
    const counts = commit.charges.flatMap((charge, at) => (isRead(messages, charge) ? at : []));
    return { result: { commit }, next: commit.message.next, claims: claimsOf(commit), counts, token: commit.token };
  };
  try {
    return await transact(records, deadline, account.customer, id, decideHeld, isNew);
  } catch (error) {
    if (tried !== undefined && error instanceof VerifierError && error.code === "unavailable") rollBack(messages, tried);
    throw error;
  }
}

const noOtherRoute = (now: number): Decision => ({ at: now, rule: "fallback", mode: "route", reason: "no other route takes it" });

/**
 * A message with all claims of its commit, in the order in which they reject: caps and ceilings, the longest first,
 * then built-in rules, then trust.
 */
function toCommit(
  { keyring, learned, settings }: Messages,
  account: Account,
  isNew: boolean,
  { ip, deviceId, proof, safe: isSafe, decided, known = false }: Outside,
  held: Held | undefined,
  before: Authentication,
  planned: PlannedMessage,
  moment: Moment,
  exempt: Exemptions,
): MessageCommit {
  const { policy } = account;
  const safe = isSafe || before.origin?.s === 1;
  const { next } = planned;
  // Its cells do not count this message, but do count the earlier ones.
  const message = (safe && !isNew) || known ? { ...planned, next: { ...next, uncounted: next.uncounted + 1 } } : planned;
  const isCapped = !isTestNumber(settings, next.number);
  const { customer, id, number, createdAt, attempts: attempt } = next;
  const isCall = next.sends.at(-1)?.channel === "voice";
  const caps = isCapped ? capCharges({ customer, id, number, createdAt, attempt, deviceId, ip, isCall }, policy, moment, keyring.pseudonym) : [];
  const { spam } = policy;
  const waived = { ...exempt, all: exempt.all || proof };
  const rules =
    safe || weighsNothing(spam, settings.ownCells)
      ? []
      : spamCharges(isCall ? { ...next, calls: [] } : next, spam, settings.ownCells, waived, decided, moment, keyring.pseudonym, known, learned.get);
  return {
    token: keyring.newToken(),
    held,
    before,
    message,
    charges: [...longestFirst([...caps, ...planned.charges]), ...rules, ...trustCharges(caps, exempt, moment)],
    listed: isNew ? listedClaims(next, policy, moment, keyring.pseudonym, isCapped) : [],
    moment,
    account,
  };
}

/** Whether the count of a granted claim is needed: by a rule in shadow mode, or by alarms with listeners. */
function isRead({ alarms }: Messages, charge: Charge | SpamCharge): boolean {
  return isSpamCharge(charge) ? charge.mode === "shadow" : alarms.reads(charge);
}

/**
 * The commit of a granted message. Results of shadow rules are stored with the next write of the record, which most
 * records never have.
 */
async function granted(messages: Messages, request: MessageRequest<string>, commit: MessageCommit, counts: Outcome<unknown>["counts"]): Promise<MessageCommit> {
  const { alarms, monitor, records, settings } = messages;
  const { message, charges } = commit;
  const { customer, origin } = message.next;
  const isSafe = request.outside.safe || origin?.s === 1;
  for (const [at, charge] of charges.entries()) alarms.granted(customer, charge, counts[at]);
  // Those of the caller's own rules are in the record already.
  const { fired: own } = request.outside;
  const fired = await shadowDecisions(messages, request, commit, counts);
  monitor.metrics.fired([...own, ...fired]);
  if (!isSafe && (charges.some(isSpamCharge) || settings.spamRules.length > 0)) alarms.watched(customer, [...own, ...fired]);
  if (fired.length === 0) return commit;
  for (const decision of fired) warnOf(messages, commit.account, message.next, decision);
  const next = fired.reduce(withDecision, message.next);
  records.note(message.next, next);
  return { ...commit, message: { ...message, next } };
}

/**
 * Raises the alarm for a range that the crowd rule blocks, or would block in shadow mode, and for a country whose rules
 * block while confirmations are late or unknown: open messages do not raise it then (docs/contract.md#growth-rules,
 * docs/contract.md#unknown-conversion).
 */
function warnOf({ alarms }: Messages, { customer, isLate }: Account, auth: Authentication, { rule, mode, value = 0, threshold = 0 }: Decision): void {
  const { number, country, origin } = auth;
  if (rule === "crowd") alarms.raise(customer, { alarm: "crowd", range: `${number.slice(0, -4)}****` }, value, threshold);
  const blocksCountry = mode === "enforce" && (rule === "country" || rule === "newCountries");
  if (blocksCountry && (isLate || origin?.g === 1) && country !== undefined) alarms.raise(customer, { alarm: "country", country }, value, threshold);
}
