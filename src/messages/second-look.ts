import type { Outcome } from "../core/records/transact.js";
import { type MemberClaim, type Moment, readBalance } from "../domain/claim.js";
import type { Decision } from "../domain/decision.js";
import { type Charge, measured, namesOfNumber } from "../domain/quota.js";
import {
  type Exemptions,
  exemptedBy,
  grownLimit,
  isAgainst,
  isSpamCharge,
  millionOf,
  noExemptions,
  pastOfMillion,
  provesItself,
  type SpamCharge,
  trustCharge,
  verifiedWindow,
  withLimit,
} from "../domain/spam-rules.js";
import type { MessageCommit, MessageRequest } from "./message-commit.js";
import type { Messages } from "./messages.js";
import { membersOf } from "./number-windows.js";

/**
 * Reads what is needed only after a rule blocks: whether the number is trusted, and how many verified in its million.
 * Returns the exemptions for the next commit, or if the rule applies, its decision with the limit that it has grown to.
 */
export async function lookAgain(
  messages: Messages,
  { deadline, outside: { known } }: MessageRequest<string>,
  { account: { customer, policy }, charges, message: { next }, moment }: MessageCommit,
  charge: SpamCharge,
  held: number,
  blocked: Decision,
  exempt: Exemptions,
): Promise<Exemptions | Decision> {
  const { keyring, learned, past, store } = messages;
  const { rule, claim } = charge;
  if (provesItself(charge, held)) {
    if ("sum" in claim) learned.set(claim.sum, Number.POSITIVE_INFINITY);
    return { ...exempt, rules: new Set([...exempt.rules, rule]) };
  }
  let decision = blocked;
  if (charge.grows !== undefined && "sum" in claim) {
    const limit = grownLimit(charge, await past.usualDay(deadline, claim.sum));
    if (limit > held && limit > charge.threshold) {
      learned.set(claim.sum, limit);
      return withLimit(exempt, rule, limit);
    }
    decision = { ...blocked, threshold: Math.max(limit, charge.threshold) };
  }
  const isCrowd = rule === "crowd";
  if (!isCrowd && policy.spam.trust.open === 0) return decision;
  const names = namesOfNumber(customer, keyring.pseudonym(next.number), policy, moment);
  const isGrowing = next.origin?.g === 1;
  const millionHolds = async () => {
    if (isGrowing) return past.usualDay(deadline, pastOfMillion(customer, next.number, keyring.pseudonym));
    const counted = await deadline.call(() => store.commit({ asks: [millionOf(customer, next.number, moment, keyring.pseudonym)] }));
    return counted.done ? readBalance(counted.asked[0] ?? 0).verified : 0;
  };
  const [sends, listed, verified, million] = await Promise.all([
    membersOf(messages, names.sends, deadline),
    names.sendSums.length > 0 ? membersOf(messages, names.listed, deadline) : [],
    membersOf(messages, verifiedWindow(customer, next.number, keyring.pseudonym), deadline),
    isCrowd ? millionHolds() : undefined,
  ]);
  if (million !== undefined) decision = { ...blocked, threshold: Math.max(Math.ceil(policy.spam.crowd.share * million), charge.threshold) };
  // A shadow rule decides after the commit, which has counted this message.
  const own = sendIn(charges)?.member;
  const others = sends.filter((member) => member !== own);
  return exemptedBy({ sends: [...others, ...listed], verified, million, known }, decision, held, exempt, policy.spam) ?? decision;
}

/** The claim in the window of the number's sends, if they are counted individually. */
function sendIn(charges: readonly Charge[]): MemberClaim | undefined {
  const claims = charges.map(({ rule, claim }) => (rule.startsWith("perNumber") ? claim : undefined));
  return claims.find((claim) => claim !== undefined && "member" in claim);
}

/** Limits a trusted number's messages, if its sends are counted individually. */
export function trustCharges(caps: readonly Charge[], { trusted, trustedByCrowd }: Exemptions, moment: Moment): SpamCharge[] {
  const limits = [trusted, trustedByCrowd].filter((limit) => limit !== undefined);
  const send = limits.length > 0 ? sendIn(caps) : undefined;
  return send === undefined ? [] : limits.map((limit) => trustCharge(send, limit, moment));
}

/**
 * The decisions of shadow rules: they claim without a limit, and are evaluated by the returned counts
 * (docs/contract.md#store-counts).
 */
export async function shadowDecisions(
  messages: Messages,
  request: MessageRequest<string>,
  commit: MessageCommit,
  counts: Outcome<unknown>["counts"],
): Promise<readonly Decision[]> {
  const { charges, message, moment } = commit;
  const { proof, safe, decided } = request.outside;
  const decisions = proof || safe || message.next.origin?.s === 1 ? [] : decided.filter(({ mode }) => mode === "shadow");
  for (const [at, charge] of charges.entries()) {
    const count = counts[at];
    if (!isSpamCharge(charge) || charge.mode !== "shadow" || count === undefined || !("weight" in charge.claim)) continue;
    const held = count - charge.claim.weight;
    const decision: Decision = { at: moment.now, rule: charge.rule, mode: "shadow", ...measured(charge, held) };
    if (!isAgainst(charge, held)) continue;
    const looked = await lookAgain(messages, request, commit, charge, held, decision, noExemptions);
    if ("rule" in looked) decisions.push(looked);
  }
  return decisions;
}
