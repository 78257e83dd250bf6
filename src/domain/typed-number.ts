import {
  isSupportedCountry,
  type CountryCode as KnownCountry,
  type PhoneNumber as ParsedNumber,
  parsePhoneNumberFromString,
  validatePhoneNumberLength,
} from "libphonenumber-js/max";
import { gaps, toAsciiDigits } from "../contract/digits.js";
import type { CountryCode } from "./countries.js";
import { canonicalNumber, e164, isPossible } from "./phone-number.js";

export interface ParsePhoneNumberOptions {
  /** The user's country, ISO 3166-1 alpha-2. Without it, a number without a country code is `country_needed`. */
  readonly country?: CountryCode | (string & {}) | undefined;
  /** `"possible"` accepts numbers of a length that the country has, like the verifier's option. Default `"valid"`. */
  readonly phoneValidation?: "valid" | "possible" | undefined;
}

/**
 * Why the input is not a phone number: `not_a_number` (letters, or no digits), `country_needed` (no country code, and
 * no `country` given), `unknown_country` (no country has this code, or `country` is unknown), `too_short`, `too_long`,
 * or `invalid` (the right length, but in no range that its country has allocated).
 */
export type PhoneNumberError = "not_a_number" | "country_needed" | "unknown_country" | "too_short" | "too_long" | "invalid";

export type ParsedPhoneNumber =
  | {
      readonly ok: true;
      /** Canonical E.164 form, as `createAuthentication` expects it. */
      readonly phone_number: string;
      /** ISO 3166-1 alpha-2. Absent for global ranges such as satellites, and if a possible number does not show it. */
      readonly country_code?: string;
    }
  | { readonly ok: false; readonly reason: PhoneNumberError };

/** Maximum length of the input, in characters. No number is longer. */
const longestInput = 250;

/** Separators between digits: spaces, dashes, dots, slashes, brackets and tildes of every script, and invisible marks. */
const separators = new RegExp(String.raw`[${gaps}\u30fc.\uff0e\u00b7\u2024\u30fb\uff65/\uff0f()\uff08\uff09\[\]\uff3b\uff3d~\u223c\uff5e]`, "gu");

/** A trunk zero in brackets, as in `+33 (0)6 12 34 56 78`, dialled within the country only. */
const bracketedZero = /[([\uff08\uff3b]\s*0\s*[)\]\uff09\uff3d]/u;

/**
 * Parses a phone number as users enter it, in any usual form: `06 12 34 56 78` with `country: "FR"`, `+33
 * (0)6.12.34.56.78`, `0033612345678`, `tel:+33-6-12-34-56-78`, full-width digits and those of other scripts. Returns
 * the canonical E.164 form, or the reason why the input is not a number. Never throws.
 */
export function parsePhoneNumber(input: string, options: ParsePhoneNumberOptions = {}): ParsedPhoneNumber {
  const { country, phoneValidation = "valid" } = options ?? {};
  if (typeof input !== "string") return { ok: false, reason: "not_a_number" };
  if (input.length > longestInput) return { ok: false, reason: "too_long" };
  const typed = toAsciiDigits(withoutLink(input));
  const number = digitsOf(typed);
  if (number === undefined) return { ok: false, reason: "not_a_number" };
  // A `country` that is not a string counts as given, but unknown.
  const inCountry = country === undefined || country === null ? undefined : typeof country === "string" ? country.toUpperCase() : "";
  const readings: Reading[] = [];
  if (!number.startsWith("+") && inCountry !== undefined && isSupportedCountry(inCountry)) readings.push({ text: number, country: inCountry });
  for (const form of [number, digitsOf(typed.replace(bracketedZero, "")) ?? number])
    if (/^(?:\+|00)/.test(form)) readings.push({ text: form.replace(/^(?:\+|00)/, "+") });
  if (readings.length === 0) return { ok: false, reason: inCountry === undefined ? "country_needed" : "unknown_country" };
  const parsed = readings.flatMap(
    ({ text, country: defaultCountry }) => parsePhoneNumberFromString(text, { ...(defaultCountry && { defaultCountry }), extract: false }) ?? [],
  );
  const isNewer = (one: ParsedNumber) => isPossible(one) && canonicalNumber(one.number) === one.number;
  const found = parsed.find((one) => one.isValid()) ?? (phoneValidation === "possible" ? parsed.find(isNewer) : undefined);
  if (found === undefined) return { ok: false, reason: faultOf(readings.at(-1) as Reading) };
  if (!e164.test(found.number)) return { ok: false, reason: "too_long" };
  return { ok: true, phone_number: found.number, ...(found.country !== undefined && { country_code: found.country }) };
}

/** One way to read the input: as international, or within a country. */
interface Reading {
  readonly text: string;
  readonly country?: KnownCountry;
}

/** The number in a `tel:` link (RFC 3966); other input is returned unchanged. */
function withoutLink(input: string): string {
  const [, link] = /^\s*tel:(?:\/\/)?(.*)$/isu.exec(input) ?? [];
  if (link === undefined) return input;
  const [number = "", ...parameters] = decoded(link).split(";");
  const context = parameters.find((parameter) => /^phone-context=\+\d+$/i.test(parameter))?.split("=")[1];
  return context === undefined || number.trim().startsWith("+") ? number : `${context}${number}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Digits only, with a leading `+` if there was one; `undefined` if anything else remains. */
function digitsOf(typed: string): string | undefined {
  const plain = typed.replace(separators, "").replace(/[\uff0b\ufe62]/gu, "+");
  const [, plus = "", digits] = /^(\++(?:00)?)?(\d+)$/.exec(plain) ?? [];
  return digits === undefined ? undefined : `${plus === "" ? "" : "+"}${digits}`;
}

const faults: Readonly<Record<string, PhoneNumberError>> = {
  INVALID_COUNTRY: "unknown_country",
  TOO_SHORT: "too_short",
  NOT_A_NUMBER: "too_short",
  TOO_LONG: "too_long",
};

function faultOf({ text, country }: Reading): PhoneNumberError {
  return faults[validatePhoneNumberLength(text, country) ?? ""] ?? "invalid";
}
