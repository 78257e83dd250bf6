import { type Answer, type CountPlaces, countAt, creditClaim, messageClaim, plainAt, type Questions, verifiedAt } from "./cells.js";
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

/** How long a number that was verified is trusted, in milliseconds. */
const trustedFor = 90 * day;

/** Where the counts of a country's alarm come back. */
interface AlarmPlaces {
  readonly now: CountPlaces;
  readonly usual: CountPlaces;
  readonly refused: number;
}

/** A rule of the caller's, and where the counts of its cell come back. */
interface OwnPlaces {
  readonly rule: OwnCell;
  readonly cell: CountPlaces;
}

/** The cells of the spam rules (docs/contract.md#spam-rules) for one message, and the rules over what comes back: pure, so that simulation, enforcement and shadow are one. */
export class SpamQuestion {
  readonly #ranges: readonly [ten: CountPlaces, hundred: CountPlaces, million: CountPlaces] | undefined;
  readonly #weekly: number | undefined;
  readonly #country: CountPlaces | undefined;
  readonly #pot: CountPlaces | undefined;
  readonly #alarm: AlarmPlaces | undefined;
  readonly #network: number | undefined;
  readonly #address: CountPlaces | undefined;
  readonly #own: readonly OwnPlaces[];
  readonly #before: number;
  readonly #lately: number;

  constructor(
    questions: Questions,
    { number, country, origin }: CellSubject,
    readonly policy: SpamPolicy,
    own: readonly OwnCell[],
    mask: Mask,
  ) {
    const { range, crowd, strangeNetwork, address } = policy;
    if (range.mode !== "off" || crowd.mode !== "off") {
      const [ten, hundred, million] = rangesOf(number, mask);
      this.#ranges = [questions.count(ten, day), questions.count(hundred, day), questions.count(million, day)];
    }
    if (country !== undefined) {
      const cell = countryCell(country);
      const weekly = questions.verified(cell, week);
      this.#weekly = weekly;
      if (policy.country.mode !== "off") this.#country = questions.count(cell, day);
      if (policy.newCountries.mode !== "off" && origin.p === 1) this.#pot = questions.count(potCell, day);
      if (strangeNetwork.mode !== "off") {
        this.#alarm = {
          now: questions.count(cell, hour),
          usual: questions.count(cell, week, weekly),
          refused: questions.plain(refusedSum(country), hour),
        };
        if (origin.w !== undefined) this.#network = questions.verified(networkCell(country, origin.w), week);
      }
    }
    if (address.mode !== "off" && origin.a !== undefined) this.#address = questions.count(addressCell(origin.a), day);
    const ownPlaces: OwnPlaces[] = [];
    for (const rule of own) {
      const value = origin.u?.[rule.name];
      if (rule.mode !== "off" && value !== undefined) ownPlaces.push({ rule, cell: questions.count(ownCell(rule.name, value), day) });
    }
    this.#own = ownPlaces;
    const self = numberCell(number, mask);
    this.#before = questions.verified(self, trustedFor);
    this.#lately = questions.verified(self, day);
  }

  /** `sentToNumber`: messages to the number within 24 hours, without this one. */
  judge(answer: Answer, sentToNumber: number, now: number): SpamJudgement {
    const { policy } = this;
    const { range, crowd, newCountries, strangeNetwork } = policy;
    const found: Decision[] = [];
    /** Finds against the message where what is measured has reached the threshold. */
    const hold = (rule: string, mode: RuleMode, value: number, threshold: number) => {
      if (value >= threshold) found.push({ at: now, rule, mode: mode === "shadow" ? "shadow" : "enforce", value, threshold });
    };
    const credit = (rule: string, places: CountPlaces, { mode, seed, perVerified }: Credit) => {
      const { open, verified } = countAt(answer, places);
      hold(rule, mode, open, seed + perVerified * verified);
    };

    if (this.#ranges !== undefined) {
      const [ten, , million] = this.#ranges;
      if (range.mode !== "off") {
        for (let level = 0; level < 3; level++) {
          const { open, verified } = countAt(answer, this.#ranges[level] as CountPlaces);
          if (level < 2 || verified < range.provenAt)
            hold(`range ${level + 4}`, range.mode, open, (range.seeds[level] as number) + range.perVerified * verified);
        }
      }
      if (crowd.mode !== "off") hold("crowd", crowd.mode, countAt(answer, ten).sent, Math.max(crowd.messages, crowd.share * countAt(answer, million).verified));
    }
    const proven = this.#weekly === undefined || verifiedAt(answer, this.#weekly).verified >= newCountries.provenAt;
    if (this.#country !== undefined && countAt(answer, this.#country).verified < policy.country.provenAt) credit("country", this.#country, policy.country);
    if (this.#pot !== undefined && !proven) credit("newCountries", this.#pot, newCountries);
    const alarm = this.#alarm && raised(answer, this.#alarm, strangeNetwork);
    if (alarm !== undefined && this.#network !== undefined && verifiedAt(answer, this.#network).verified === 0)
      hold("strangeNetwork", strangeNetwork.mode, alarm.value, alarm.threshold);
    if (this.#address !== undefined) credit("address", this.#address, policy.address);
    for (const { rule, cell } of this.#own) credit(rule.name, cell, rule);

    const { open } = policy.trust;
    const trusted = open > 0 && verifiedAt(answer, this.#before).verified > 0 && sentToNumber - verifiedAt(answer, this.#lately).messages < open;
    return {
      decisions: trusted ? found.filter(({ rule }) => rule === "crowd") : found,
      trusted,
      ...(alarm !== undefined && { alarm }),
      notNew: this.#pot !== undefined && proven,
      proven: this.#weekly !== undefined && proven,
    };
  }
}

/** "only while a country's alarm is on (open + refused within the hour > 20 + 2 × the week's usual open share × verified)" (docs/contract.md#spam-strange-network). */
function raised(answer: Answer, places: AlarmPlaces, { base, factor }: SpamPolicy["strangeNetwork"]): SpamJudgement["alarm"] {
  const { open, verified } = countAt(answer, places.now);
  const usual = countAt(answer, places.usual);
  const share = usual.verified === 0 ? 0 : usual.open / usual.verified;
  const value = open + plainAt(answer, places.refused);
  const threshold = base + factor * share * verified;
  return value >= threshold + 1 ? { value, threshold } : undefined;
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
  const claims: SumClaim[] = [];
  const add = (cell: string, length: number) => claims.push(creditClaim(customer, cell, length, messages, moment));
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
  return claims;
}

/** The sums by which a number is trusted. */
export function trustSums(customer: string, number: string, mask: Mask): string[] {
  const cell = numberCell(number, mask);
  return [trustedFor, day].map((length) => creditClaim(customer, cell, length, 0, { now: 0, skew: 0 }).sum);
}

/** Asks how many verified in a country within 7 days. */
export function askCountry(questions: Questions, country: string): number {
  return questions.verified(countryCell(country), week);
}

/** What a verification in a new country gives back to the pot. */
export function potCredit(customer: string, messages: number, moment: Moment): SumClaim[] {
  return [creditClaim(customer, potCell, day, messages, moment)];
}

/** What takes a message out of the pot of new countries again. */
export function potReturn(customer: string, moment: Moment): SumClaim {
  return messageClaim(customer, potCell, -1, day, moment);
}

/** Refused messages of a country within the hour, which its alarm counts beside the open ones. */
export const refusedSum = (country: string) => `x:${country}`;

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
export function askCustomer(questions: Questions): number {
  return questions.verified(customerCell, day);
}
