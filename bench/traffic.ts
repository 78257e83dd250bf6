/** Honest-looking people: each flow has a number, an address and a device of its own. */
import type { CreateAuthenticationRequest } from "phoneproof";

/** Mobile ranges of ten million numbers, all of them valid. */
const countries = ["+3361", "+44771", "+491511", "+3461", "+39333", "+4850", "+3161", "+551191", "+91981", "+81901", "+6141", "+4670"];

/** Where those numbers are. */
export const countryCodes = ["FR", "GB", "DE", "ES", "IT", "PL", "NL", "BR", "IN", "JP", "AU", "SE"] as const;

/** The networks (/16) that a country's people come from. */
const networks = 16;

/** What a create tells, but for the customer. */
export type Fields = Omit<CreateAuthenticationRequest, "customer_uuid" | "callback_url" | "proof">;

/** What somebody does with a code: of 21 people one mistypes it first, and two never come back. */
export type Typing = "right" | "wrong first" | "nothing";

export interface Visitor {
  readonly fields: Fields;
  readonly typing: Typing;
}

/**
 * People without end, evenly over countries, their ranges of 10,000 numbers and their networks; of two parties nobody is the same.
 *
 * @param party 0 to 9.
 */
export function visitors(party: number): () => Visitor {
  let index = party * 1_000_000 * countries.length;
  return () => visitor(index++);
}

function visitor(index: number): Visitor {
  const country = index % countries.length;
  const nth = Math.floor(index / countries.length);
  // Steps that share no factor with what they are taken modulo: no number comes twice, and neighbours are far from each other.
  const subscriber = String((nth * 6_180_339) % 10_000_000).padStart(7, "0");
  const host = (Math.floor(nth / networks) * 40_503) % 65_536;
  const common = {
    phone_number: `${countries[country]}${subscriber}`,
    ip: `${80 + country}.${16 + (nth % networks)}.${host >> 8}.${host & 255}`,
    app_version: "1.2.3",
    is_returning_user: false,
  };
  const device = (index + 0x1234_5678).toString(16).padStart(12, "0");
  const fields: Fields =
    nth % 2 === 0
      ? { ...common, device_type: "ANDROID", device_id: `9f3c${device}`, device_model: "Pixel 8", os_version: "14", app_realm: "FA+9qCX9VSu" }
      : { ...common, device_type: "IOS", device_id: `6D92078A-8246-4BA4-AE5B-${device}`, device_model: "iPhone15,2", os_version: "18.1" };
  // Mixed: else those who do the same would be neighbours, and five of them who never come back would close their range.
  const habit = (Math.imul(nth + 1, 0x9e37_79b1) >>> 16) % 21;
  return { fields, typing: habit === 5 ? "wrong first" : habit > 18 ? "nothing" : "right" };
}

/** A code that is not `code`. */
export function wrongCode(code: string): string {
  return code === "000000" ? "111111" : "000000";
}
