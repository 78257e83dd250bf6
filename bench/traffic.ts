// People who look honest: each flow has its own number, address and device.
import type { CreateAuthenticationRequest } from "phoneproof";

/** Mobile ranges of ten million numbers, all valid. */
const countries = ["+3361", "+44771", "+491511", "+3461", "+39333", "+4850", "+3161", "+551191", "+91981", "+81901", "+6141", "+4670"];

/** The countries of those ranges. */
export const countryCodes = ["FR", "GB", "DE", "ES", "IT", "PL", "NL", "BR", "IN", "JP", "AU", "SE"] as const;

/** The networks (/16) that a country's people come from. */
const networks = 16;

/** The fields of a create, except the customer. */
export type Fields = Omit<CreateAuthenticationRequest, "customer_uuid" | "callback_url" | "proof">;

/** What someone does with a code: of 21 people, one first mistypes it, and two never come back. */
export type Typing = "right" | "wrong first" | "nothing";

export interface Visitor {
  readonly fields: Fields;
  readonly typing: Typing;
}

/**
 * An endless series of people, spread evenly over countries, their ranges of 10,000 numbers and their networks. Two
 * parties have no one in common.
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
  // The step has no factor in common with the modulus, so that no number repeats and neighbours are far apart.
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
  // Mixed: otherwise people with the same habit would be neighbours, and five who never come back fill their range.
  const habit = (Math.imul(nth + 1, 0x9e37_79b1) >>> 16) % 21;
  return { fields, typing: habit === 5 ? "wrong first" : habit > 18 ? "nothing" : "right" };
}

/** A code that is not `code`. */
export function wrongCode(code: string): string {
  return code === "000000" ? "111111" : "000000";
}
