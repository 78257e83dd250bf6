import { type Answer, creditCells, messageClaim, type Questions, type Read, type VerifiedCount } from "./cells.js";
import type { Moment, SumClaim } from "./claim.js";
import type { Decision, RuleMode } from "./decision.js";
import { addressKey, networkOf } from "./ip.js";
import type { Policy } from "./policy.js";
import type { Mask } from "./quota.js";
import type { Credit, SpamPolicy } from "./spam-policy.js";
import { day, hour, week } from "./time.js";

/** Short keyed hashes of where an authentication came from, kept in its record so that a verification credits the cells that its sends had filled. */
export interface Origin {
  /** The address: IPv4 whole, IPv6 by /64. */
  readonly a?: string;
  /** Its surroundings: IPv4 by /16, IPv6 by /32. */
  readonly w?: string;
  /** Cells of the caller's own rules, by rule. */
  readonly u?: Readonly<Record<string, string>>;
  /** Its messages are in the pot of new countries. */
  readonly p?: 1;
  /** It was on the safe list. */
  readonly s?: 1;
}

/** What is kept of where a create came from: what rules read of it. `own`: the cells of the caller's rules, by rule. */
export function originOf(
  ip: string | undefined,
  own: Readonly<Record<string, string>>,
  flags: { readonly pot: boolean; readonly safe: boolean },
  { address: addresses, strangeNetwork }: SpamPolicy,
  mask: Mask,
): Origin | undefined {
  const rules = Object.keys(own);
  const isRead = ip !== undefined && (addresses.mode !== "off" || strangeNetwork.mode !== "off");
  if (!isRead && rules.length === 0 && !flags.pot && !flags.safe) return undefined;
  const origin: { -readonly [K in keyof Origin]: Origin[K] } = {};
  if (isRead) {
    const address = addressKey(ip);
    if (addresses.mode !== "off") origin.a = mask(address).slice(0, 11);
    if (strangeNetwork.mode !== "off") origin.w = mask(`network ${networkOf(address)}`).slice(0, 11);
  }
  if (rules.length > 0) origin.u = Object.fromEntries(rules.map((rule) => [rule, mask(`cell ${own[rule]}`)]));
  if (flags.pot) origin.p = 1;
  if (flags.safe) origin.s = 1;
  return origin;
}

/** Whom a message goes to, as far as the cells care. */
export interface CellSubject {
  readonly customer: string;
  readonly number: string;
  readonly country?: string | undefined;
  readonly origin: Origin;
}

/** A rule of the caller's that is a cell as ours are. */
export interface OwnCell extends Credit {
  readonly name: string;
}

/** The rule over what comes back for what a message claims and asks. */
export interface SpamQuestion {
  /** `sentToNumber`: messages to the number within 24 hours, without this one. */
  judge(answer: Answer, sentToNumber: number, now: number): SpamJudgement;
}

export interface SpamJudgement {
  /** Rules that the message falls under, those that only watch included, in the order of docs/contract.md#spam-rules. */
  readonly decisions: readonly Decision[];
  /** The number is trusted: it passes all but the crowd rule, which stands against those who type the codes. */
  readonly trusted: boolean;
  /** The country's alarm is on. */
  readonly alarm?: { readonly value: number; readonly threshold: number };
  /** The pot of new countries was claimed, and the country is none. */
  readonly notNew: boolean;
  /** Enough verified in the country within 7 days. */
  readonly proven: boolean;
}

interface Measured {
  readonly value: number;
  readonly threshold: number;
}

/** How long a number that was verified is trusted, in milliseconds. */
const trustedFor = 90 * day;

/** The cells of the spam rules (docs/contract.md#spam-rules) for one message: pure, so that simulation, enforcement and shadow are one. */
export function spamQuestion(questions: Questions, subject: CellSubject, policy: SpamPolicy, own: readonly OwnCell[], mask: Mask): SpamQuestion {
  const { number, country, origin } = subject;
  const rules: { readonly name: string; readonly mode: RuleMode; readonly judge: Read<Measured | undefined> }[] = [];
  const rule = (name: string, mode: RuleMode, judge: Read<Measured | undefined>) => rules.push({ name, mode, judge });

  const ranges = rangesOf(number, mask);
  const { range, crowd } = policy;
  if (range.mode !== "off" || crowd.mode !== "off") {
    const counts = ranges.map((cell) => questions.count(cell, day));
    for (const [level, count] of counts.entries()) {
      if (range.mode === "off") continue;
      rule(`range ${level + 4}`, range.mode, (answer) => {
        const { open, verified } = count(answer);
        if (level === 2 && verified >= range.provenAt) return undefined;
        return over(open, (range.seeds[level] as number) + range.perVerified * verified);
      });
    }
    const [ten, , million] = counts as [(typeof counts)[0], (typeof counts)[0], (typeof counts)[0]];
    if (crowd.mode !== "off") rule("crowd", crowd.mode, (answer) => over(ten(answer).sent, Math.max(crowd.messages, crowd.share * million(answer).verified)));
  }

  let proven: Read<boolean> = () => true;
  let pot = false;
  let alarm: Read<Measured | undefined> = () => undefined;
  if (country !== undefined) {
    const cell = countryCell(country);
    const weekly = questions.verified(cell, week);
    proven = (answer) => weekly(answer).verified >= policy.newCountries.provenAt;
    if (policy.country.mode !== "off") {
      const count = questions.count(cell, day);
      rule("country", policy.country.mode, (answer) => {
        const { open, verified } = count(answer);
        return verified >= policy.country.provenAt ? undefined : over(open, policy.country.seed + policy.country.perVerified * verified);
      });
    }
    if (policy.newCountries.mode !== "off" && origin.p === 1) {
      pot = true;
      const count = questions.count(potCell, day);
      rule("newCountries", policy.newCountries.mode, (answer) => (proven(answer) ? undefined : credit(count, policy.newCountries)(answer)));
    }
    if (policy.strangeNetwork.mode !== "off") {
      alarm = countryAlarm(questions, country, weekly, policy.strangeNetwork);
      if (origin.w !== undefined) {
        const there = questions.verified(networkCell(country, origin.w), week);
        rule("strangeNetwork", policy.strangeNetwork.mode, (answer) => (there(answer).verified === 0 ? alarm(answer) : undefined));
      }
    }
  }
  if (policy.address.mode !== "off" && origin.a !== undefined)
    rule("address", policy.address.mode, credit(questions.count(addressCell(origin.a), day), policy.address));
  for (const one of own) {
    const value = origin.u?.[one.name];
    if (one.mode !== "off" && value !== undefined) rule(one.name, one.mode, credit(questions.count(ownCell(one.name, value), day), one));
  }

  const numberCellName = numberCell(number, mask);
  const before = questions.verified(numberCellName, trustedFor);
  const lately = questions.verified(numberCellName, day);
  return {
    judge(answer, sentToNumber, now) {
      const trusted = policy.trust.open > 0 && before(answer).verified > 0 && sentToNumber - lately(answer).messages < policy.trust.open;
      const found = rules.flatMap(({ name, mode, judge }): Decision[] => {
        const measured = judge(answer);
        return measured === undefined ? [] : [{ at: now, rule: name, mode: mode === "shadow" ? "shadow" : "enforce", ...measured }];
      });
      const raised = alarm(answer);
      return {
        decisions: trusted ? found.filter(({ rule: name }) => name === "crowd") : found,
        trusted,
        ...(raised !== undefined && { alarm: raised }),
        notNew: pot && proven(answer),
        proven: country !== undefined && proven(answer),
      };
    },
  };
}

/** Whether no rule weighs messages at all: then nothing is counted for rules, and nobody is trusted. */
export function weighsNothing({ range, crowd, country, newCountries, address, strangeNetwork, signals }: SpamPolicy, own: readonly OwnCell[]): boolean {
  const watches = ({ mode }: { readonly mode: RuleMode }) => mode !== "off";
  return !(
    watches(range) ||
    watches(crowd) ||
    watches(country) ||
    watches(newCountries) ||
    watches(address) ||
    watches(strangeNetwork) ||
    watches(signals) ||
    own.some(watches)
  );
}

/** What is claimed when a code was found right (docs/contract.md#credits): each cell that the messages had filled and that a rule reads is credited, and the number, its network and the customer are known from now on. */
export function creditClaims(
  { customer, number, country, origin }: CellSubject,
  { spam: policy, limits }: Pick<Policy, "spam" | "limits">,
  own: readonly OwnCell[],
  messages: number,
  moment: Moment,
  mask: Mask,
): SumClaim[] {
  const cells: { readonly cell: string; readonly length: number }[] = [];
  const add = (cell: string, length: number) => cells.push({ cell, length });
  if (limits.perCustomer.some(({ perVerified }) => perVerified !== undefined)) add(customerCell, day);
  if (!weighsNothing(policy, own)) {
    const { range, crowd, strangeNetwork, address } = policy;
    if (range.mode !== "off" || crowd.mode !== "off") for (const cell of rangesOf(number, mask)) add(cell, day);
    if (country !== undefined) {
      const cell = countryCell(country);
      add(cell, week);
      if (policy.country.mode !== "off") add(cell, day);
      if (strangeNetwork.mode !== "off") {
        add(cell, hour);
        if (origin.w !== undefined) add(networkCell(country, origin.w), week);
      }
    }
    if (address.mode !== "off" && origin.a !== undefined) add(addressCell(origin.a), day);
    for (const { name, mode } of own) {
      const value = origin.u?.[name];
      if (mode !== "off" && value !== undefined) add(ownCell(name, value), day);
    }
    const self = numberCell(number, mask);
    add(self, trustedFor);
    add(self, day);
  }
  return creditCells(customer, cells, messages, moment);
}

/** The sums by which a number is trusted. */
export function trustSums(customer: string, number: string, mask: Mask): string[] {
  const cell = numberCell(number, mask);
  const cells = [trustedFor, day].map((length) => ({ cell, length }));
  return creditCells(customer, cells, 0, { now: 0, skew: 0 }).map(({ sum }) => sum);
}

/** Asks how many verified in a country within 7 days. */
export function askCountry(questions: Questions, country: string): Read<number> {
  const weekly = questions.verified(countryCell(country), week);
  return (answer) => weekly(answer).verified;
}

/** What a verification in a new country gives back to the pot. */
export function potCredit(customer: string, messages: number, moment: Moment): SumClaim[] {
  return creditCells(customer, [{ cell: potCell, length: day }], messages, moment);
}

/** What takes a message out of the pot of new countries again. */
export function potReturn(customer: string, moment: Moment): SumClaim {
  return messageClaim(customer, potCell, -1, day, moment);
}

/** Refused messages of a country within the hour, which its alarm counts beside the open ones. */
export const refusedSum = (country: string) => `x:${country}`;

/** "only while a country's alarm is on (open + refused within the hour > 20 + 2 × the week's usual open share × verified)" (docs/contract.md#spam-strange-network). */
function countryAlarm(
  questions: Questions,
  country: string,
  weekly: Read<VerifiedCount>,
  { base, factor }: { readonly base: number; readonly factor: number },
): Read<Measured | undefined> {
  const now = questions.count(countryCell(country), hour);
  const usual = questions.count(countryCell(country), week, weekly);
  const refused = questions.plain(refusedSum(country), hour);
  return (answer) => {
    const { open, verified } = now(answer);
    const lately = usual(answer);
    const share = lately.verified === 0 ? 0 : lately.open / lately.verified;
    return over(open + refused(answer), base + factor * share * verified, 1);
  };
}

const credit =
  (count: Read<{ readonly open: number; readonly verified: number }>, { seed, perVerified }: Credit): Read<Measured | undefined> =>
  (answer) => {
    const { open, verified } = count(answer);
    return over(open, seed + perVerified * verified);
  };

/** What is measured, where it has reached the threshold (with `more`: is above it). */
function over(value: number, threshold: number, more = 0): Measured | undefined {
  return value >= threshold + more ? { value, threshold } : undefined;
}

/** The ranges of 10,000, 100,000 and a million numbers that a number lies in, their first digits as a keyed hash. */
function rangesOf(number: string, mask: Mask): readonly [string, string, string] {
  const wide = `r:${mask(`range ${number.slice(0, -6)}`)}`;
  return [`${wide}${number.slice(-6, -4)}`, `${wide}${number.slice(-6, -5)}`, wide];
}

const potCell = "p";
const customerCell = "c";
const countryCell = (country: string) => `c:${country}`;
const networkCell = (country: string, network: string) => `w:${country}:${network}`;
const addressCell = (address: string) => `a:${address}`;
const ownCell = (name: string, value: string) => `u:${name}:${value}`;
const numberCell = (number: string, mask: Mask) => `n:${mask(number)}`;

/** Asks how many of the customer's users verified within 24 hours, for the cap that grows with them. */
export function askCustomer(questions: Questions): Read<number> {
  const verified = questions.verified(customerCell, day);
  return (answer) => verified(answer).verified;
}
