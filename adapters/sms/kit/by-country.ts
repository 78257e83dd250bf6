import type { CountryCode } from "../../../src/domain/countries.js";
import type { CodeMessage } from "../../../src/ports/sms-sender.js";

/** One value per country (ISO 3166-1 alpha-2), with `default` for the rest. */
export type ByCountry<T> = { readonly [country in CountryCode | "default"]?: T };

/** The value for the message's country, or undefined. */
export function forCountry<T>(map: ReadonlyMap<string, T>, { country }: CodeMessage): T | undefined {
  return (country === undefined ? undefined : map.get(country)) ?? map.get("default");
}
