import { getCountries, getCountryCallingCode } from "libphonenumber-js/max";
import { defaultPolicy } from "../../domain/policy.js";
import type { DevIdentity } from "../identity.js";

/** Who calls. */
export interface DevCustomer {
  readonly customer_uuid: string;
  readonly api_key: string;
}

/** What the page is told at `/dev/session`: who it calls as, and the numbers it explains. */
export interface DevSession extends DevCustomer {
  /** A second customer, whose authentications expire after `lifetime` seconds. */
  readonly hasty: DevCustomer & { readonly lifetime: number };
  /** A number that a spam rule flags. */
  readonly spam_number: string;
  /** Where the demo takes callbacks. */
  readonly callback_url: string;
  /** The carrier that sends the messages for real; absent: nothing leaves this machine. */
  readonly carrier?: string;
  /** Wrong codes per authentication. */
  readonly checks: number;
  /** Countries (ISO 3166-1 alpha-2) by calling code, the main one first. */
  readonly calling_codes: Readonly<Record<string, readonly string[]>>;
}

/** The country that a shared calling code belongs to first. */
const mainCountries: readonly string[] = ["US", "RU", "GB", "IT", "NO", "AU", "MA", "RE", "SH", "FI", "GP", "CW"];

/** Long enough to see it count down. */
const hastyLifetime = 15;

const spamNumber = "+14155550100";

/**
 * @param url The address that the demo reaches itself by.
 * @param carrier The one that sends the messages for real.
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
