import { type StoreDeadline, unavailable } from "../core/deadline.js";
import type { Granted, Held, RefusedClaim } from "../core/records/records.js";
import { creation, type Decided, transition } from "../core/records/transact.js";
import type { Account } from "../domain/account.js";
import { near } from "../domain/alarms.js";
import { type Authentication, withDecision } from "../domain/authentication.js";
import type { Claim, Moment, SumClaim } from "../domain/claim.js";
import type { Decision } from "../domain/decision.js";
import { type Charge, measured, refusalOf } from "../domain/quota.js";
import {
  type Exemptions,
  exemptedBy,
  isAgainst,
  millionOf,
  noExemptions,
  provesItself,
  type SpamCharge,
  spamCharges,
  trustCharge,
  verifiedWindow,
  weighsNothing,
} from "../domain/spam-rules.js";
import { VerifierError } from "../errors.js";
import { type HandedOver, handOver } from "./hand-over.js";
import type { Messages } from "./messages.js";
import { membersWithin, namesOf } from "./number-windows.js";
import type { Sending } from "./plan.js";
import { rollBack, type Tried, takeBack } from "./roll-back.js";

/** A message that is sent if caps, ceilings and rules allow it. */
export interface Candidate {
  /** The authentication without the message. */
  readonly before: Authentication;
  readonly sending: Sending;
  readonly caps: readonly Charge[];
  /** What else is claimed with it. */
  readonly listed: readonly Claim[];
  /** "Safe beats rules, never caps" (docs/contract.md#lists): the message is in no cell. */
  readonly safe: boolean;
  /** A challenge was met: it "waives the spam rules for that request, never the caps and never the crowd rule" (docs/contract.md#challenge). */
  readonly proof: boolean;
  /** What rules said that need no count. */
  readonly decided: readonly Decision[];
  readonly moment: Moment;
}

/** What a request decides on what is stored: a message that may be sent, or an answer, and what to write with it. */
export type Decide<R> = (held: Held | undefined) => Candidate | { readonly answer: R; readonly next?: Authentication };

/** Why a message must not be sent. */
export interface Refusal {
  readonly status: "rate_limited" | "spam_detected";
  readonly decision: Decision;
  readonly candidate: Candidate;
}

/** What a request comes to: an answer of the record alone, a message that is written down and must now be sent, or a refusal, which has written nothing. */
type Reserved<R> = { readonly answer: R } | { readonly sending: Sending } | { readonly refusal: Refusal };

/** The same once the message was handed over. */
export type Sent<R> = { readonly answer: R } | { readonly sent: HandedOver } | { readonly refusal: Refusal };

/** A message's rules, each with its claim, in the order of the commit's claims. */
type Charges = readonly (Charge | SpamCharge)[];

/** What one commit came to. */
type Outcome<R> =
  | { readonly answer: R }
  | { readonly candidate: Candidate; readonly charges: Charges; readonly tried: Tried; readonly counts: Granted["counts"] }
  | { readonly candidate: Candidate; readonly charge: Charge | SpamCharge; readonly claim: RefusedClaim };

/** How often a commit is made once more without a rule that does not stand. */
const mostLooks = 4;

/** How often a message that was written down too long ago is written down again. */
const mostDelays = 10;

/**
 * Writes a message down and hands it over. A process that stood still in between would send outside the windows in which its caps were claimed: it takes the write back and decides again (docs/contract.md#late-hand-over).
 * `started`: called before the message is handed over.
 */
export async function sendOnce<R>(
  parts: Messages,
  account: Account,
  deadline: StoreDeadline,
  id: string,
  isNew: boolean,
  decide: Decide<R>,
  started: (auth: Authentication) => void = () => {},
): Promise<Sent<R>> {
  const { clock, keyring, settings } = parts;
  for (let delays = 0; delays < mostDelays; delays++) {
    const reserved = await reserve(parts, account, deadline, id, isNew, decide);
    if (!("sending" in reserved)) return reserved;
    const { sending } = reserved;
    if (clock.now() - sending.next.lastSendAt <= settings.storeTimeout) {
      started(sending.next);
      return { sent: await handOver(parts, deadline, account, sending) };
    }
    if (sending.tried === undefined) break;
    const token = keyring.newToken();
    await takeBack(parts, sending.tried, token).catch((fault: unknown) => {
      if (sending.tried !== undefined) rollBack(parts, sending.tried, token);
      throw fault;
    });
  }
  throw unavailable(new Error(`a message could not be handed over within ${settings.storeTimeout} ms of the decision to send it`));
}

/**
 * Writes a message down, with all that caps, ceilings and rules claim for it, in one commit (docs/contract.md#one-commit). Where that is refused, nothing was written.
 * What a spam rule refuses is looked at once more: where the rule does not stand, the commit is made without its limit (docs/contract.md#second-look). `isNew`: of a create, which expects no record.
 */
async function reserve<R>(parts: Messages, account: Account, deadline: StoreDeadline, id: string, isNew: boolean, decide: Decide<R>): Promise<Reserved<R>> {
  let exempt = noExemptions;
  for (let looks = 0; ; looks++) {
    const outcome = await commit(parts, account, deadline, id, isNew, decide, exempt);
    if ("answer" in outcome) return outcome;
    if ("counts" in outcome) return { sending: await granted(parts, account, deadline, outcome) };
    const { candidate, charge, claim } = outcome;
    const decision = isSpam(charge) && charge.decided !== undefined ? charge.decided : refusalOf(charge, claim, parts.settings.clockSkew);
    const waived =
      isSpam(charge) && looks < mostLooks ? await lookAgain(parts, account, deadline, candidate, charge, claim.count, decision, exempt) : undefined;
    if (waived === undefined) {
      warnOfCrowd(parts, candidate.sending.next, decision);
      return { refusal: { status: isSpam(charge) ? "spam_detected" : "rate_limited", decision, candidate } };
    }
    exempt = waived;
  }
}

async function commit<R>(
  parts: Messages,
  { customer, policy }: Account,
  deadline: StoreDeadline,
  id: string,
  isNew: boolean,
  decide: Decide<R>,
  exempt: Exemptions,
): Promise<Outcome<R>> {
  const { keyring, proven, records, settings } = parts;
  const { spam } = policy;
  let tried: Tried | undefined;
  const decideHeld = (before: Held | undefined): Decided<Outcome<R>> => {
    tried = undefined;
    const candidate = decide(before);
    if ("answer" in candidate) return { result: { answer: candidate.answer }, next: candidate.next };
    const { sending, caps, listed, safe, proof, decided, moment } = candidate;
    const { next } = sending;
    const charges: Charges = [
      ...caps,
      ...sending.charges,
      ...(safe || weighsNothing(spam, settings.ownCells)
        ? []
        : spamCharges(
            next,
            spam,
            settings.ownCells,
            { ...exempt, all: exempt.all || proof },
            decided,
            moment,
            keyring.mask,
            (sum) => proven.get(sum) === true,
          )),
      ...trustCharges(caps, exempt, moment),
    ];
    const claims = [...charges.map(({ claim }) => claim), ...listed];
    const written: Tried = { token: keyring.newToken(), next, before, claims, cells: cellsIn(charges), policy };
    tried = written;
    return {
      result: { candidate, charges, tried: written, counts: [] },
      next,
      claims,
      counts: charges.flatMap((charge, at) => (isRead(parts, charge) ? at : [])),
      token: written.token,
      granted: (counts) => ({ candidate, charges, tried: written, counts }),
      refused: (claim) => ({ result: { candidate, charge: charges[claim.refusedBy] as Charge, claim } }),
    };
  };
  try {
    if (isNew) return await creation<Outcome<R>>(records, deadline, customer, id, decideHeld);
    const outcome = await transition<Outcome<R>>(records, deadline, customer, id, (_auth, held) => decideHeld(held));
    return outcome ?? decideHeld(undefined).result;
  } catch (fault) {
    if (tried !== undefined && fault instanceof VerifierError && fault.code === "unavailable") rollBack(parts, tried);
    throw fault;
  }
}

/** What holds a trusted number to its open messages, where its sends are counted one by one. */
function trustCharges(caps: readonly Charge[], { trusted }: Exemptions, moment: Moment): SpamCharge[] {
  if (trusted === undefined) return [];
  const sends = caps.map(({ rule, claim }) => (rule.startsWith("perNumber") ? claim : undefined)).find((claim) => claim !== undefined && "member" in claim);
  return sends !== undefined && "member" in sends ? [trustCharge(sends, trusted, moment)] : [];
}

/** What a message claims of the cells of spam rules. */
function cellsIn(charges: Charges): SumClaim[] {
  const cells: SumClaim[] = [];
  for (const charge of charges) if (isSpam(charge) && charge.decided === undefined && "sum" in charge.claim) cells.push(charge.claim);
  return cells;
}

/** Whether the count of a message is read where it is granted: by a rule in shadow, and by the alarms of those who listen. */
function isRead({ monitor }: Messages, charge: Charge | SpamCharge): boolean {
  return isSpam(charge) ? charge.mode === "shadow" : monitor.watched() && alarmOf(charge) !== undefined;
}

const isSpam = (charge: Charge | SpamCharge): charge is SpamCharge => "mode" in charge;

/** What is asked only where a rule refuses: whether the number is trusted, and how many verified in its million. Returns with what to commit again; `undefined`: the rule stands. */
async function lookAgain(
  { keyring, proven, store }: Messages,
  { customer, policy }: Account,
  deadline: StoreDeadline,
  { sending: { next }, moment }: Candidate,
  charge: SpamCharge,
  held: number,
  decision: Decision,
  exempt: Exemptions,
): Promise<Exemptions | undefined> {
  const { rule, claim } = charge;
  if (provesItself(charge, held)) {
    if ("sum" in claim) proven.set(claim.sum, true);
    return { ...exempt, rules: new Set([...exempt.rules, rule]) };
  }
  const isCrowd = rule === "crowd";
  if (!isCrowd && policy.spam.trust.open === 0) return undefined;
  const names = namesOf(keyring, customer, next.number, policy, moment);
  const asks = isCrowd ? [millionOf(customer, next.number, moment, keyring.mask)] : [];
  const [sends, listed, verified, counted] = await Promise.all([
    membersWithin(deadline, store, names.sends),
    names.sendSums.length > 0 ? membersWithin(deadline, store, names.listed) : [],
    membersWithin(deadline, store, verifiedWindow(customer, next.number, keyring.mask)),
    isCrowd ? deadline.call(() => store.commit({ asks })) : undefined,
  ]);
  const million = counted?.done === true ? counted.asked[0] : undefined;
  return exemptedBy({ sends: [...sends, ...listed], verified, million }, decision, held, exempt, policy.spam);
}

/** The message of a commit that was granted, with what rules that only watch say of it: that is written with the next write of its record, which most never have. */
async function granted(
  parts: Messages,
  account: Account,
  deadline: StoreDeadline,
  outcome: Extract<Outcome<never>, { readonly counts: unknown }>,
): Promise<Sending> {
  const { alarms, countries, monitor, records } = parts;
  const { candidate, charges, tried, counts } = outcome;
  const { sending } = candidate;
  const { customer, country } = sending.next;
  if (country !== undefined && !candidate.safe) countries.sent(account, country);
  for (const [at, charge] of charges.entries()) warnOf(parts, customer, charge, counts[at]);
  const shadow = await watching(parts, account, deadline, outcome);
  if (charges.some(isSpam)) alarms.watched(customer, shadow);
  for (const decision of shadow) {
    monitor.metrics.fired(decision.rule, "shadow");
    warnOfCrowd(parts, sending.next, decision);
  }
  const { cells } = tried;
  if (shadow.length === 0) return { ...sending, tried, cells };
  const next = shadow.reduce(withDecision, sending.next);
  records.note(sending.next, next);
  return { ...sending, next, tried, cells };
}

/** What rules in shadow would have refused a message for: they claim without a limit, and are judged by what comes back (docs/contract.md#store-counts). */
async function watching(
  parts: Messages,
  account: Account,
  deadline: StoreDeadline,
  { candidate, charges, counts }: Extract<Outcome<never>, { readonly counts: unknown }>,
): Promise<readonly Decision[]> {
  const decisions = candidate.proof || candidate.safe ? [] : candidate.decided.filter(({ mode }) => mode === "shadow");
  for (const [at, charge] of charges.entries()) {
    const count = counts[at];
    if (!isSpam(charge) || charge.mode !== "shadow" || count === undefined || !("weight" in charge.claim)) continue;
    const held = count - charge.claim.weight;
    const decision: Decision = { at: candidate.moment.now, rule: charge.rule, mode: "shadow", ...measured(charge, held) };
    if (!isAgainst(charge, held) || (await lookAgain(parts, account, deadline, candidate, charge, held, decision, noExemptions)) !== undefined) continue;
    decisions.push(decision);
  }
  return decisions;
}

function warnOfCrowd({ alarms }: Messages, { customer, number }: Authentication, { rule, value = 0, threshold = 0 }: Decision): void {
  if (rule === "crowd") alarms.raise(customer, { alarm: "crowd", range: `${number.slice(0, -4)}****` }, value, threshold);
}

function alarmOf({ rule, counts }: Charge): "customer_cap" | "spend" | undefined {
  return rule.startsWith("perCustomer") ? "customer_cap" : counts === "money" ? "spend" : undefined;
}

/** Raises the alarm for a cap of the customer, or a ceiling, that is used to four fifths. */
function warnOf({ alarms }: Messages, customer: string, charge: Charge, count: number | undefined): void {
  const { rule, counts } = charge;
  const alarm = alarmOf(charge);
  if (alarm === undefined || count === undefined) return;
  const { value, threshold } = measured(charge, counts === "money" && "weight" in charge.claim ? count - charge.claim.weight : count);
  if (value >= near * threshold) alarms.raise(customer, { alarm, rule }, value, threshold);
}
