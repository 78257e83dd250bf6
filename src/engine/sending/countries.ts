import { hour } from "../../domain/time.js";

/** Countries in which enough of a customer's users verified lately, as this process has seen: "Cells may lag by some seconds between processes" (docs/contract.md#cells-may-lag). */
export interface Countries {
  isProven(customer: string, country: string, now: number): boolean;
  prove(customer: string, country: string, now: number): void;
}

/** How long what was seen holds, in milliseconds. */
const seenFor = hour;

/** Countries remembered; beyond, all are forgotten, and seen anew. */
const most = 20_000;

export function createCountries(): Countries {
  const seen = new Map<string, number>();
  return {
    isProven: (customer, country, now) => now - (seen.get(customer + country) ?? Number.NEGATIVE_INFINITY) < seenFor,
    prove(customer, country, now) {
      if (seen.size >= most) seen.clear();
      seen.set(customer + country, now);
    },
  };
}
