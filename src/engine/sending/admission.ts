import { near } from "../../domain/alarms.js";
import { withDecision } from "../../domain/authentication.js";
import { type Answer, plainClaim, Questions, verifiedAt } from "../../domain/cells.js";
import type { Ask, Claim, Moment } from "../../domain/claim.js";
import type { Decision } from "../../domain/decision.js";
import { type Charge, exceeded, refusalOf, roomClaims, takenBack } from "../../domain/quota.js";
import { askCustomer, potReturn, refusedSum, type SpamJudgement, SpamQuestion, weighsNothing } from "../../domain/spam-rules.js";
import { moneyUnit } from "../../domain/spend.js";
import { day, hour } from "../../domain/time.js";
import type { StoreBudget } from "../clock/budget.js";
import type { Account } from "../door/account.js";
import type { Parts } from "../parts.js";
import type { RefusedClaim } from "../records/records.js";
import type { Sending } from "./next-send.js";

const none: readonly never[] = [];

/** What lets a request past spam rules, never past caps. */
export interface Pass {
  /** A challenge was met: "waives the spam rules for that request, never the caps and never the crowd rule" (docs/contract.md#challenge). */
  readonly proof: boolean;
  /** On the safe list: "Safe beats rules, never caps" (docs/contract.md#lists). */
  readonly safe: boolean;
}

/** Why a message must not be sent. */
export interface Refusal {
  readonly status: "rate_limited" | "spam_detected";
  readonly decisions: readonly Decision[];
  /** The cap that grows, where that is why, and what it counts without the message. */
  readonly grown?: { readonly charge: Charge; readonly count: number };
}

/** What the counts said of a message that is written down and not sent yet. */
interface Verdict {
  /** Why it must not be sent; absent: it goes. */
  readonly refusal?: Refusal;
  /** What rules that only watch would have refused it for. */
  readonly shadow: readonly Decision[];
  /** Caps of the customer, and ceilings, that are used to four fifths. */
  readonly near: readonly Near[];
  readonly judgement?: SpamJudgement;
}

interface Near {
  readonly alarm: "customer_cap" | "spend";
  readonly rule: string;
  readonly value: number;
  readonly threshold: number;
}

/** A message that is written down, with what the counts said of it. */
export interface Granted {
  readonly admission: Admission;
  readonly verdict: Verdict;
}

/** What the commit of a message claims and asks, for caps, ceilings and cells together, and what comes of the answer. */
export class Admission {
  readonly claims: readonly Claim[];
  readonly asks: readonly Ask[];
  readonly #charges: readonly Charge[];
  readonly #question: SpamQuestion | undefined;
  /** Where it comes back how many verified, for the cap that grows with them. */
  readonly #growing: number | undefined;

  /** `caps`: of the message; `signals`: what its fields alone said of it. */
  constructor(
    { codes, settings }: Parts,
    { policy: { spam } }: Account,
    readonly sending: Sending,
    readonly caps: readonly Charge[],
    readonly pass: Pass,
    readonly signals: readonly Decision[],
    readonly moment: Moment,
  ) {
    const { customer, number, country, origin = {} } = sending.next;
    this.#charges = sending.charges.length === 0 ? caps : [...caps, ...sending.charges];
    const claims: Claim[] = this.#charges.map(claimOf);
    const grows = this.#charges.some(isGrowing);
    this.claims = claims;
    this.asks = none;
    const own = settings.ownCells;
    const weighs = !pass.safe && !weighsNothing(spam, own);
    if (!weighs && !grows) return;
    const questions = new Questions(customer, moment);
    if (weighs) this.#question = new SpamQuestion(questions, { customer, number, country, origin }, spam, own, codes.mask);
    if (grows) this.#growing = askCustomer(questions);
    claims.push(...questions.claims);
    this.asks = questions.asks;
  }

  /** The rule whose claim the store refused. */
  refused({ refusedBy, count, roomSince }: RefusedClaim): Decision {
    return refusalOf(this.#charges[refusedBy] as Charge, count, roomSince);
  }

  /** "A rule that weighs several counts claims without a limit … a pure rule then decides on the numbers that came back, before the message goes" (docs/contract.md#store-counts). */
  granted(answer: Answer): Granted {
    return { admission: this, verdict: this.#judge(answer) };
  }

  /** What takes all of it back, and counts the refusal. */
  returned(): readonly Claim[] {
    const { customer, country } = this.sending.next;
    const back = takenBack(this.claims, true, true);
    return country === undefined ? back : [...back, plainClaim(customer, refusedSum(country), hour, this.moment)];
  }

  #judge(answer: Answer): Verdict {
    const charges = this.#charges;
    const cells = { counts: answer.counts.slice(charges.length), asked: answer.asked };
    const verified = this.#growing === undefined ? 0 : verifiedAt(cells, this.#growing).verified;
    const nearby: Near[] = [];
    let grown: Refusal["grown"];
    for (let at = 0; at < charges.length; at++) {
      const charge = charges[at] as Charge;
      const count = answer.counts[at] ?? 0;
      const near = nearOf(charge, count, verified);
      if (near !== undefined) nearby.push(near);
      const over = charge.perVerified === undefined ? undefined : exceeded(charge, count, verified);
      if (over !== undefined) grown ??= { charge: over, count: count - 1 };
    }
    if (grown !== undefined) {
      const decisions = [refusalOf(grown.charge, grown.count)];
      return { refusal: { status: "rate_limited", decisions, grown }, shadow: none, near: nearby };
    }
    if (this.#question === undefined) return { shadow: none, near: nearby };
    const judgement = this.#question.judge(cells, sentToNumber(this.caps, answer) - 1, this.moment.now);
    const { proof } = this.pass;
    const fired = [...judgement.decisions, ...(judgement.trusted ? [] : this.signals)].filter(({ rule }) => !proof || rule === "crowd");
    const shadow = fired.filter(({ mode }) => mode === "shadow");
    const refuses = fired.some(({ mode }) => mode === "enforce");
    return { ...(refuses && { refusal: { status: "spam_detected" as const, decisions: fired } }), shadow, near: nearby, judgement };
  }
}

const claimOf = ({ claim }: Charge) => claim;
const isGrowing = ({ perVerified }: Charge) => perVerified !== undefined;

/** The decisions of a refusal. With a grant the store does not tell when a cap that grows has room, so it is asked; where it cannot say, they are told without. */
export async function decisionsOf({ store }: Parts, budget: StoreBudget, { decisions, grown }: Refusal): Promise<readonly Decision[]> {
  if (grown === undefined) return decisions;
  const { charge, count } = grown;
  const answer = await budget.call(() => store.commit({ claims: roomClaims(charge) })).catch(() => undefined);
  return answer === undefined || answer.done || answer.refusedBy === undefined ? decisions : [refusalOf(charge, count, answer.roomSince)];
}

/** Whether a cap of the customer or a ceiling is used to four fifths. */
function nearOf(charge: Charge, count: number, verified: number): Near | undefined {
  const { rule, threshold, perVerified = 0 } = charge;
  const alarm = rule.startsWith("perCustomer") ? "customer_cap" : rule.startsWith("spend") ? "spend" : undefined;
  if (alarm === undefined) return undefined;
  const most = threshold + perVerified * verified;
  const used = alarm === "spend" ? count / moneyUnit : count;
  return used >= near * most ? { alarm, rule, value: used, threshold: most } : undefined;
}

/** Messages to the number, this one included, over the longest of its caps that is no longer than a day. */
function sentToNumber(caps: readonly Charge[], { counts }: Answer): number {
  let sent = 1;
  for (let at = 0; at < caps.length; at++) {
    const { rule, claim } = caps[at] as Charge;
    if (rule.startsWith("perNumber") && claim.now - claim.since <= 1.1 * day) sent = Math.max(sent, counts[at] ?? 1);
  }
  return sent;
}

/** The send of a granted message, where its verdict lets it go; what there is to learn of it is learned either way. */
export function passed(parts: Parts, { admission: { sending, moment }, verdict }: Granted): Sending | undefined {
  learn(parts, sending.next, verdict, moment);
  return verdict.refusal === undefined ? watched(parts, sending, verdict) : undefined;
}

/** With what rules that only watch made of it: written down with the next write of its record, which most never have. */
function watched({ records }: Parts, sending: Sending, { shadow }: Verdict): Sending {
  if (shadow.length === 0) return sending;
  const next = shadow.reduce(withDecision, sending.next);
  records.note(sending.next, next);
  return { ...sending, next };
}

/** Beside the answer: what the process learns of countries, what it tells the operator, and the pot of new countries gets back what was no business of it. */
function learn(
  parts: Parts,
  { customer, number, country }: { readonly customer: string; readonly number: string; readonly country?: string | undefined },
  verdict: Verdict,
  moment: Moment,
): void {
  const { judgement, shadow, near: nearby } = verdict;
  const { alarms, countries, store, eyes } = parts;
  for (const { alarm, rule, value, threshold } of nearby) alarms.raise(customer, { alarm, rule }, value, threshold);
  for (const { rule } of shadow) eyes.metrics.fired(rule, "shadow");
  if (judgement === undefined) return;
  alarms.watched(customer, shadow);
  for (const { rule, value = 0, threshold = 0 } of judgement.decisions) {
    if (rule === "crowd") alarms.raise(customer, { alarm: "crowd", range: `${number.slice(0, -4)}****` }, value, threshold);
  }
  if (country === undefined) return;
  if (judgement.alarm !== undefined) alarms.raise(customer, { alarm: "country", country }, judgement.alarm.value, judgement.alarm.threshold);
  if (judgement.proven) countries.prove(customer, country, moment.now);
  if (!judgement.notNew) return;
  const back = store.commit({ claims: [potReturn(customer, moment)] }).then(
    () => undefined,
    (err: unknown) =>
      eyes.sparse.warn({ err, customer_uuid: customer }, "the pot of new countries could not be given back a message; it counts there for a day"),
  );
  parts.beside(back);
}
