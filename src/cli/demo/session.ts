import { getCountries, getCountryCallingCode } from "libphonenumber-js/max";
import { defaultPolicy } from "../../domain/policy.js";
import type { DevIdentity } from "../identity.js";

/** The customer that calls. */
export interface DevCustomer {
  readonly customer_uuid: string;
  readonly api_key: string;
}

/** The response of `/dev/session`: the customers that the page calls as, and the numbers that it explains. */
export interface DevSession extends DevCustomer {
  /** A second customer, whose authentications expire after `lifetime` seconds. */
  readonly hasty: DevCustomer & { readonly lifetime: number };
  /** A number that a spam rule flags. */
  readonly spam_number: string;
  /** Where the demo receives callbacks. */
  readonly callback_url: string;
  /** The carrier that sends real messages. Absent: nothing leaves this machine. */
  readonly carrier?: string;
  /** Wrong codes per authentication. */
  readonly checks: number;
  /** Countries (ISO 3166-1 alpha-2) by calling code, the main one first. */
  readonly calling_codes: Readonly<Record<string, readonly string[]>>;
}

/** The main country of each shared calling code. */
const mainCountries: readonly string[] = ["US", "RU", "GB", "IT", "NO", "AU", "MA", "RE", "SH", "FI", "GP", "CW"];

/** In seconds. Long enough to watch the countdown. */
const hastyLifetime = 15;

const spamNumber = "+14155550100";

/**
 * @param url The address at which the demo reaches itself.
 * @param carrier The one that sends real messages.
 */
export function createSession(identity: DevIdentity, url: string, carrier?: string): DevSession {
  const calling_codes: Record<string, string[]> = {};
  for (const country of [...mainCountries, ...getCountries().filter((other) => !mainCountries.includes(other))]) {
    (calling_codes[getCountryCallingCode(country as ReturnType<typeof getCountries>[number])] ??= []).push(country);
  }
  const { customer_uuid, api_key, hasty } = identity;
  return {
    customer_uuid,
    api_key,
    hasty: { ...hasty, lifetime: hastyLifetime },
    spam_number: spamNumber,
    callback_url: `${url}/dev/callbacks`,
    ...(carrier !== undefined && { carrier }),
    checks: defaultPolicy.checks,
    calling_codes,
  };
}
