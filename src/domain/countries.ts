import { type CountryCode, getCountries } from "libphonenumber-js/max";

/** A country or territory by ISO 3166-1 alpha-2, in capitals: `"GB"`, not `"UK"`. */
export type { CountryCode };

/** The countries and territories that have numbers of their own, with the three that the numbering plans add: AC (Ascension), TA (Tristan da Cunha), XK (Kosovo). */
export const countryCodes: readonly CountryCode[] = getCountries();

const known: ReadonlySet<string> = new Set(countryCodes);

/** What is often written instead of a code: other abbreviations, codes of languages, codes that were given up, and the most common codes of three letters. */
const confused =
  "UK:GB EN:GB EL:GR SP:ES JA:JP KO:KR ZH:CN CS:CZ DA:DK FX:FR TP:TL AN:CW DD:DE USA:US GBR:GB ENG:GB FRA:FR DEU:DE GER:DE ESP:ES " +
  "ITA:IT PRT:PT NLD:NL BEL:BE CHE:CH AUT:AT IRL:IE POL:PL SWE:SE NOR:NO DNK:DK FIN:FI GRC:GR TUR:TR UKR:UA ROU:RO HUN:HU CZE:CZ " +
  "CAN:CA MEX:MX BRA:BR ARG:AR AUS:AU NZL:NZ IND:IN PAK:PK IDN:ID JPN:JP KOR:KR CHN:CN SGP:SG ARE:AE SAU:SA ISR:IL EGY:EG MAR:MA " +
  "NGA:NG KEN:KE ZAF:ZA";
const meant: Readonly<Record<string, CountryCode>> = Object.fromEntries(confused.split(" ").map((pair) => pair.split(":")));

/** The country that a text is likely to mean. */
export function countryMeant(text: string): CountryCode | undefined {
  const capitals = text.trim().toUpperCase();
  return meant[capitals] ?? (known.has(capitals) ? (capitals as CountryCode) : undefined);
}

/** What is wrong with a country's code, if anything. */
export function countryFault(code: string): string | undefined {
  if (known.has(code)) return undefined;
  const mend = countryMeant(code);
  const words = 'must be an ISO 3166-1 alpha-2 code in capitals, for example "FR"';
  return mend === undefined
    ? `${words}, and of a country with numbers of its own, which ${JSON.stringify(code)} is not`
    : `${words}: for ${JSON.stringify(code)} say "${mend}"`;
}

/** What is wrong with the key of a map by country, if anything: such a map may have `default` for the rest. */
export function countryKeyFault(key: string): string | undefined {
  const fault = key === "default" ? undefined : countryFault(key);
  return fault === undefined ? undefined : `${fault}; or "default"`;
}
