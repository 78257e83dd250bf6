import { type CountryCode, getCountries, getCountryCallingCode } from "libphonenumber-js/max";
import { defaultPolicy } from "../../domain/policy.js";
import type { DevIdentity } from "../identity.js";

/** The main country of each shared calling code. */
const mainCountries: readonly CountryCode[] = ["US", "RU", "GB", "IT", "NO", "AU", "MA", "RE", "SH", "FI", "GP", "CW"];

export type DevSession = ReturnType<typeof createSession>;

/**
 * The response of `/dev/session`: the customers that the page calls as, and the numbers that it explains.
 *
 * @param url The address at which the demo reaches itself.
 */
export function createSession(identity: DevIdentity, url: string, carrier?: string) {
  const calling_codes: Record<string, string[]> = {};
  for (const country of [...mainCountries, ...getCountries().filter((other) => !mainCountries.includes(other))]) {
    (calling_codes[getCountryCallingCode(country)] ??= []).push(country);
  }
  const { customer_uuid, api_key, hasty } = identity;
  return {
    customer_uuid,
    api_key,
    /** A second customer, whose authentications expire after `lifetime` seconds: long enough to watch the countdown. */
    hasty: { ...hasty, lifetime: 15 },
    /** A number that a spam rule flags. */
    spam_number: "+14155550100",
    /** Where the demo receives callbacks. */
    callback_url: `${url}/dev/callbacks`,
    /** The carrier that sends real messages. `undefined`: nothing leaves this machine. */
    carrier,
    /** Wrong codes per authentication. */
    checks: defaultPolicy.checks,
    /** Countries (ISO 3166-1 alpha-2) by calling code, the main one first. */
    calling_codes,
  };
}
