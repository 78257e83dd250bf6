import { AsYouType, type NumberType, type PhoneNumber as ParsedNumber, parsePhoneNumberFromString, validatePhoneNumberLength } from "libphonenumber-js/max";
import type { LineType } from "../contract/lookup.js";

/** A number, parsed once per request. */
export interface PhoneNumber {
  /**
   * "The canonical E.164 form is what limits, lists, `testNumbers`, sender, lookup, responses and callbacks see"
   * (docs/contract.md#canonical-form).
   */
  readonly number: string;
  /** ISO 3166-1 alpha-2; absent for non-geographic numbers. */
  readonly country?: string | undefined;
  readonly lineType: LineType;
  /** A personal (follow-me) number or one of a global range: the caller pays, and its destination is unknown. */
  readonly anywhere: boolean;
  /** "Numbers listed in `testNumbers` are exempt from validity" (docs/contract.md#test-numbers). */
  readonly test: boolean;
}

export interface NumberRules {
  /** `valid`: in the country's plan; `possible`: of a length in the plan, for ranges newer than the metadata. */
  readonly validation: "valid" | "possible";
  /** Canonical E.164 forms. */
  readonly testNumbers: ReadonlyMap<string, unknown>;
  /** The lookup's line type for numbers whose plan does not distinguish fixed from mobile (NANP, Mexico). */
  readonly ambiguousLineType: "Unknown" | "Mobile";
}

/** Tested before the costly parse: "E.164 as `+` and digits" (docs/contract.md#phone-number). */
export const e164 = /^\+[1-9]\d{1,14}$/;

/** The canonical form of a number in E.164 form, without trunk prefixes after the country code (`+330612345678`). */
export function canonicalNumber(number: string): string {
  const shorter = parsePhoneNumberFromString(number)?.number ?? number;
  return shorter.length < number.length ? canonicalNumber(shorter) : shorter;
}

/** Whether a number in E.164 form has fewer digits than any number of its country code. */
export function isTooShort(number: string): boolean {
  return validatePhoneNumberLength(number) === "TOO_SHORT";
}

/**
 * The canonical form of the beginning of a number in E.164 form, consistent with `canonicalNumber`. `undefined`: it
 * ends with the trunk prefix, and no number begins that way.
 */
export function canonicalPrefix(prefix: string): string | undefined {
  const typed = new AsYouType();
  typed.input(prefix);
  const canonical = typed.getNumberValue() ?? prefix;
  return canonical !== prefix && canonical === `+${typed.getCallingCode()}` ? undefined : canonical;
}

/** A prefix that may begin with a trunk prefix. An 8 is excluded, because it may belong to the number itself. */
const mayBeginWithTrunk = /^\+(\d{1,3}0|11|6921)/;

/**
 * The beginnings of canonical numbers that a prefix as people write it stands for: without a trunk prefix and, where
 * numbers may also begin with zeros, as written. None if it ends with the trunk prefix.
 */
export function prefixForms(prefix: string): string[] {
  const canonical = mayBeginWithTrunk.test(prefix) ? canonicalPrefix(prefix) : prefix;
  return canonical === undefined ? [] : [...new Set([prefix, canonical])];
}

/** The problem of a prefix without forms. */
export const endsWithTrunk =
  "ends with the digits that are dialled before numbers within the country, such as 0, and no number in E.164 form has them: leave them out";

/**
 * Whether a parsed number may be in a range newer than the metadata: "A number with a second one … is invalid"
 * (docs/contract.md#canonical-form).
 */
export function isPossible(parsed: ParsedNumber): boolean {
  return parsed.isPossible() && canonicalPrefix(parsed.number) === parsed.number;
}

/** Returns the number, or `undefined` if it is not valid. */
export function phoneNumberOf(input: string, rules: NumberRules): PhoneNumber | undefined {
  if (!e164.test(input)) return undefined;
  const parsed = parsePhoneNumberFromString(input);
  const read = parsed?.number ?? input;
  // Parsing drops one trunk prefix. With a second one, the number is invalid.
  const number = read === input ? read : canonicalNumber(read);
  const test = rules.testNumbers.has(number);
  if (number !== read && !test) return undefined;
  if (parsed === undefined) return test ? { number, lineType: "Unknown", anywhere: false, test } : undefined;
  // Valid numbers have a type, except for kinds that the plan does not name. One costly search finds both.
  const type = parsed.getType();
  if (!test && type === undefined && !(rules.validation === "possible" ? isPossible(parsed) : parsed.isValid())) return undefined;
  const lineType = type === "FIXED_LINE_OR_MOBILE" ? rules.ambiguousLineType : (lineTypes.get(type) ?? "Unknown");
  const anywhere = type === "PERSONAL_NUMBER" || parsed.isNonGeographic();
  return { number, country: parsed.country, lineType, anywhere, test };
}

/** Personal (follow-me) numbers may lead to any kind of line; `Service` has no offline source. */
const lineTypes = new Map<NumberType, LineType>([
  ["FIXED_LINE", "FixedLine"],
  ["MOBILE", "Mobile"],
  ["TOLL_FREE", "TollFree"],
  ["PREMIUM_RATE", "PremiumRate"],
  ["SHARED_COST", "SharedCost"],
  ["VOIP", "Voip"],
  ["PAGER", "Pager"],
  ["VOICEMAIL", "VoiceMail"],
  ["UAN", "UniversalAccess"],
]);

export interface DestinationRules {
  /** ISO 3166-1 alpha-2 codes, or every country. */
  readonly countries: ReadonlySet<string> | "all";
  /** Canonical E.164 forms, or prefixes of them that end in `*`. */
  readonly blocked: (number: string) => boolean;
  /** Whether fixed lines of a country are called. Absent: none are. */
  readonly callsFixedLines?: ((country: string | undefined) => boolean) | undefined;
}

/**
 * "line type that cannot or must not receive codes (premium rate, shared cost, toll free, pager, voice mail, UAN,
 * personal numbers, satellite and other global ranges, fixed line …) → `invalid_line`" (docs/contract.md#destinations).
 */
const refusedLines: ReadonlySet<LineType> = new Set(["PremiumRate", "SharedCost", "TollFree", "Pager", "VoiceMail", "UniversalAccess", "FixedLine"]);

/** Whether codes are never sent to lines of this kind; fixed lines are called, if a sender does that in their country. */
export function isRefusedLine(lineType: LineType, country: string | undefined, { callsFixedLines }: Pick<DestinationRules, "callsFixedLines">): boolean {
  return refusedLines.has(lineType) && !(lineType === "FixedLine" && callsFixedLines?.(country) === true);
}

/** Why a number gets no message in any case, as the code of the error. */
export const destinationErrors = ["unsupported_region", "invalid_line", "blocked_number"] as const;
export type DestinationError = (typeof destinationErrors)[number];

/**
 * "Policy errors return 400 … country not allowed → `unsupported_region` … line type … → `invalid_line`, block list →
 * `blocked_number`" (docs/contract.md#destinations). Test numbers are only ever blocked.
 */
export function destinationError(phone: PhoneNumber, rules: DestinationRules): DestinationError | undefined {
  if (rules.blocked(phone.number)) return "blocked_number";
  if (phone.test) return undefined;
  if (rules.countries !== "all" && (phone.country === undefined || !rules.countries.has(phone.country))) return "unsupported_region";
  if (phone.anywhere || isRefusedLine(phone.lineType, phone.country, rules)) return "invalid_line";
  return undefined;
}

/** `+14155552671` → `+14155****71`: enough to recognize, too little to call. */
export function maskNumber(number: string): string {
  return `${number.slice(0, Math.max(3, number.length - 6))}****${number.slice(-2)}`;
}
