import { getCountries, getCountryCallingCode } from "libphonenumber-js/max";
import { defaultPolicy } from "../domain/policy.js";
import type { DevSettings } from "./settings.js";

/** What the page is told at `/dev/session`: who it calls as, and the numbers it explains. */
export interface DevSession {
  readonly customer_uuid: string;
  readonly api_key: string;
  /** The carrier that sends the messages for real; absent: nothing leaves this machine. */
  readonly carrier?: string;
  /** Seconds of cool-down after each send. */
  readonly cooldown: readonly number[];
  /** Wrong codes per authentication. */
  readonly checks: number;
  /** Countries (ISO 3166-1 alpha-2) by calling code, the main one first. */
  readonly calling_codes: Readonly<Record<string, readonly string[]>>;
}

/** The country that a shared calling code belongs to first. */
const mainCountries: readonly string[] = ["US", "RU", "GB", "IT", "NO", "AU", "MA", "RE", "SH", "FI", "GP", "CW"];

export function createSession(settings: DevSettings): DevSession {
  const calling_codes: Record<string, string[]> = {};
  for (const country of [...mainCountries, ...getCountries().filter((other) => !mainCountries.includes(other))]) {
    (calling_codes[getCountryCallingCode(country as ReturnType<typeof getCountries>[number])] ??= []).push(country);
  }
  const { customer_uuid, api_key, cooldown, carrier } = settings;
  return { customer_uuid, api_key, ...(carrier !== undefined && { carrier: carrier.name }), cooldown, checks: defaultPolicy.checks, calling_codes };
}
