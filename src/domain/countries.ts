/**
 * Countries and territories that have their own numbers, by ISO 3166-1 alpha-2, plus the three that the numbering plans
 * add: AC (Ascension), TA (Tristan da Cunha), XK (Kosovo). libphonenumber-js has the same list; the carrier modules use
 * this one and so load no metadata.
 */
// biome-ignore format: one to a line they would be 245 lines
export const countryCodes = [
  "AC", "AD", "AE", "AF", "AG", "AI", "AL", "AM", "AO", "AR", "AS", "AT", "AU", "AW", "AX", "AZ", "BA", "BB", "BD", "BE", "BF", "BG", "BH", "BI", "BJ",
  "BL", "BM", "BN", "BO", "BQ", "BR", "BS", "BT", "BW", "BY", "BZ", "CA", "CC", "CD", "CF", "CG", "CH", "CI", "CK", "CL", "CM", "CN", "CO", "CR", "CU",
  "CV", "CW", "CX", "CY", "CZ", "DE", "DJ", "DK", "DM", "DO", "DZ", "EC", "EE", "EG", "EH", "ER", "ES", "ET", "FI", "FJ", "FK", "FM", "FO", "FR", "GA",
  "GB", "GD", "GE", "GF", "GG", "GH", "GI", "GL", "GM", "GN", "GP", "GQ", "GR", "GT", "GU", "GW", "GY", "HK", "HN", "HR", "HT", "HU", "ID", "IE", "IL",
  "IM", "IN", "IO", "IQ", "IR", "IS", "IT", "JE", "JM", "JO", "JP", "KE", "KG", "KH", "KI", "KM", "KN", "KP", "KR", "KW", "KY", "KZ", "LA", "LB", "LC",
  "LI", "LK", "LR", "LS", "LT", "LU", "LV", "LY", "MA", "MC", "MD", "ME", "MF", "MG", "MH", "MK", "ML", "MM", "MN", "MO", "MP", "MQ", "MR", "MS", "MT",
  "MU", "MV", "MW", "MX", "MY", "MZ", "NA", "NC", "NE", "NF", "NG", "NI", "NL", "NO", "NP", "NR", "NU", "NZ", "OM", "PA", "PE", "PF", "PG", "PH", "PK",
  "PL", "PM", "PR", "PS", "PT", "PW", "PY", "QA", "RE", "RO", "RS", "RU", "RW", "SA", "SB", "SC", "SD", "SE", "SG", "SH", "SI", "SJ", "SK", "SL", "SM",
  "SN", "SO", "SR", "SS", "ST", "SV", "SX", "SY", "SZ", "TA", "TC", "TD", "TG", "TH", "TJ", "TK", "TL", "TM", "TN", "TO", "TR", "TT", "TV", "TW", "TZ",
  "UA", "UG", "US", "UY", "UZ", "VA", "VC", "VE", "VG", "VI", "VN", "VU", "WF", "WS", "XK", "YE", "YT", "ZA", "ZM", "ZW",
] as const;

/** A country or territory by ISO 3166-1 alpha-2, in capitals: `"GB"`, not `"UK"`. */
export type CountryCode = (typeof countryCodes)[number];

const known: ReadonlySet<string> = new Set(countryCodes);

/** What people often write instead: other abbreviations, languages, withdrawn and three-letter codes. */
const confused =
  "UK:GB EN:GB EL:GR SP:ES JA:JP KO:KR ZH:CN CS:CZ DA:DK FX:FR TP:TL AN:CW DD:DE USA:US GBR:GB ENG:GB FRA:FR DEU:DE GER:DE ESP:ES " +
  "ITA:IT PRT:PT NLD:NL BEL:BE CHE:CH AUT:AT IRL:IE POL:PL SWE:SE NOR:NO DNK:DK FIN:FI GRC:GR TUR:TR UKR:UA ROU:RO HUN:HU CZE:CZ " +
  "CAN:CA MEX:MX BRA:BR ARG:AR AUS:AU NZL:NZ IND:IN PAK:PK IDN:ID JPN:JP KOR:KR CHN:CN SGP:SG ARE:AE SAU:SA ISR:IL EGY:EG MAR:MA " +
  "NGA:NG KEN:KE ZAF:ZA";
const meant: Readonly<Record<string, CountryCode>> = Object.fromEntries(confused.split(" ").map((pair) => pair.split(":")));

/** Returns the country that a text probably means. */
export function countryMeant(text: string): CountryCode | undefined {
  const capitals = text.trim().toUpperCase();
  return meant[capitals] ?? (known.has(capitals) ? (capitals as CountryCode) : undefined);
}

/** Returns what is wrong with a country code, if anything. */
export function countryError(code: string): string | undefined {
  if (known.has(code)) return undefined;
  const fix = countryMeant(code);
  const words = 'must be an ISO 3166-1 alpha-2 code in capitals, for example "FR"';
  return fix === undefined
    ? `${words}, and of a country with numbers of its own, which ${JSON.stringify(code)} is not`
    : `${words}: for ${JSON.stringify(code)} say "${fix}"`;
}

/** What is wrong with the key of a map by country, if anything. `default` stands for all other countries. */
export function countryKeyError(key: string): string | undefined {
  const problem = key === "default" ? undefined : countryError(key);
  return problem === undefined ? undefined : `${problem}; or "default"`;
}
