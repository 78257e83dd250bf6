import { withDecision } from "../../domain/authentication.js";
import { type Answer, askCells, day, plainClaim } from "../../domain/cells.js";
import type { Ask, Claim } from "../../domain/claim.js";
import type { Decision } from "../../domain/decision.js";
import { type Charge, growthRefusal, type Moment, refusalOf, takenBack } from "../../domain/quota.js";
import { isCellRule } from "../../domain/spam.js";
import { askCustomer, type OwnCell, potReturn, refusedSum, type SpamJudgement, spamQuestion } from "../../domain/spam-rules.js";
import type { Account } from "../door/account.js";
import type { Parts } from "../parts.js";
import type { Sending } from "./next-send.js";

/** What lets a request past spam rules, never past caps. */
export interface Pass {
  /** A challenge was met: "waives the spam rules for that request, never the caps and never the crowd rule". */
  readonly proof: boolean;
  /** On the safe list: "safe beats rules, never caps". */
  readonly safe: boolean;
}

/** What the counts said of a message that is written down and not sent yet. */
export interface Verdict {
  /** Why it must not be sent; absent: it goes. */
  readonly refusal?: { readonly status: "rate_limited" | "spam_detected"; readonly decisions: readonly Decision[] };
  /** What rules that only watch would have refused it for. */
  readonly shadow: readonly Decision[];
  readonly judgement?: SpamJudgement;
}

/** What the commit of a message claims and asks, for caps, ceilings and cells together, and what comes of the answer. */
export interface Admission {
  readonly claims: readonly Claim[];
  readonly asks: readonly Ask[];
  /** The rule whose claim the store refused. */
  refused(by: number, count: number): Decision;
  /** "A rule that weighs several counts claims without a limit …; a pure rule then decides on the numbers that came back, before the message goes" (architecture.md, rule 3). */
  judge(answer: Answer): Verdict;
  /** What takes all of it back, and counts the refusal. */
  readonly returned: readonly Claim[];
}

/** `caps`: of the message; `own`: the caller's rules that are cells. */
export function admission(parts: Parts, { policy }: Account, sending: Sending, caps: readonly Charge[], pass: Pass, moment: Moment): Admission {
  const { codes, settings } = parts;
  const { customer, number, country, origin = {} } = sending.next;
  const charges = [...caps, ...sending.charges];
  const questions = askCells(customer, moment);
  const own = settings.spamRules.filter(isCellRule).map(({ name, seed, mode = "enforce", perVerified = 2 }): OwnCell => ({ name, seed, mode, perVerified }));
  const question = pass.safe ? undefined : spamQuestion(questions, { customer, number, country, origin }, policy.spam, own, codes.mask);
  const growing = caps.some(({ perVerified }) => perVerified !== undefined) ? askCustomer(questions) : undefined;
  const claims = [...charges.map(({ claim }) => claim), ...questions.claims];

  return {
    claims,
    asks: questions.asks,
    returned: [...takenBack(claims, true), ...(country === undefined ? [] : [plainClaim(customer, refusedSum(country), 3_600_000, moment)])],
    refused: (by, count) => refusalOf(charges[by] as Charge, count),
    judge(answer) {
      const cells = { counts: answer.counts.slice(charges.length), asked: answer.asked };
      for (const [at, charge] of growing === undefined ? [] : caps.entries()) {
        const refusal = charge.perVerified === undefined ? undefined : growthRefusal(charge, answer.counts[at] ?? 0, growing?.(cells) ?? 0);
        if (refusal !== undefined) return { refusal: { status: "rate_limited", decisions: [refusal] }, shadow: [] };
      }
      if (question === undefined) return { shadow: [] };
      const judgement = question.judge(cells, sentToNumber(caps, answer) - 1, moment.now);
      const fired = judgement.decisions.filter(({ rule }) => !pass.proof || rule === "crowd");
      const shadow = fired.filter(({ mode }) => mode === "shadow");
      const refuses = fired.some(({ mode }) => mode === "enforce");
      return { ...(refuses && { refusal: { status: "spam_detected" as const, decisions: fired } }), shadow, judgement };
    },
  };
}

/** Messages to the number, this one included, over the longest of its caps that is no longer than a day. */
function sentToNumber(caps: readonly Charge[], { counts }: Answer): number {
  let sent = 1;
  for (const [at, { rule, claim }] of caps.entries())
    if (rule.startsWith("perNumber") && claim.now - claim.since <= 1.1 * day) sent = Math.max(sent, counts[at] ?? 1);
  return sent;
}

/** The send of a message that goes, with what rules that only watch made of it: written down with the next write of its record, which most never have. */
export function watched({ records }: Parts, sending: Sending, { shadow }: Verdict): Sending {
  if (shadow.length === 0) return sending;
  const next = shadow.reduce(withDecision, sending.next);
  records.note(sending.next, next);
  return { ...sending, next };
}

/** Beside the answer: what the process learns of countries, and the pot of new ones gets back what was no business of its. */
export function learn(
  parts: Parts,
  { customer, country }: { readonly customer: string; readonly country?: string },
  { judgement }: Verdict,
  moment: Moment,
): void {
  if (country === undefined || judgement === undefined) return;
  if (judgement.proven) parts.countries.prove(customer, country, moment.now);
  if (!judgement.notNew) return;
  const back = parts.store.commit({ claims: [potReturn(customer, moment)] }).then(
    () => undefined,
    (err: unknown) =>
      parts.logger.warn({ err, customer_uuid: customer }, "the pot of new countries could not be given back a message; it counts there for a day"),
  );
  parts.beside(back);
}
