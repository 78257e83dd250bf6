import type { CountryCode } from "../../../src/domain/countries.js";
import type { SmsMessage } from "../../../src/ports/sms-sender.js";

/** One value for each country, by ISO 3166-1 alpha-2, with `default` for the rest. */
export type ByCountry<T> = { readonly [country in CountryCode | "default"]?: T };

/** What a map by country says of a message; undefined: nothing. */
export function forCountry<T>(map: ReadonlyMap<string, T>, { country }: SmsMessage): T | undefined {
  return (country === undefined ? undefined : map.get(country)) ?? map.get("default");
}
