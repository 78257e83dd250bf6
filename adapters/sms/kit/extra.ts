import { countryKeyError } from "../../../src/domain/countries.js";
import { synchronous } from "../../../src/domain/promises.js";
import type { CodeMessage } from "../../../src/ports/sms-sender.js";
import { isRecord } from "../../kit/json.js";
import { optionError } from "../../kit/option-error.js";
import { type ByCountry, forCountry } from "./by-country.js";

export type Fields<V = unknown> = Readonly<Record<string, V>>;

/**
 * Further fields of a carrier's request: the same for every message, per country with `default` for the rest, or a
 * function. They override our fields for validity and registration, but never text and number.
 */
export type Extra<V = unknown> = Fields<V> | ByCountry<Fields<V>> | ((message: CodeMessage) => Fields<V> | undefined);

const fix = 'Pass for example { field: "value" }, { IN: { field: "value" } } or a function of the message.';

/** @throws TypeError unless it is a record, a map of records by country, or a function. */
export function openExtra<V>(sender: string, extra: Extra<V> | undefined): (message: CodeMessage) => Fields<V> {
  if (extra === undefined) return () => ({});
  if (typeof extra === "function") return (message) => synchronous("extra", extra(message)) ?? {};
  if (!isRecord(extra)) throw optionError(sender, "extra", "is not an object of fields", fix);
  const entries = Object.entries(extra);
  const isByCountry = entries.length > 0 && entries.every(([key, value]) => /^([A-Z]{2,3}|default)$/.test(key) && isRecord(value));
  if (!isByCountry) return () => extra as Fields<V>;
  for (const [country] of entries) {
    const problem = countryKeyError(country);
    if (problem !== undefined) throw optionError(sender, `extra.${country}`, problem, fix);
  }
  const byCountry = new Map(entries as [string, Fields<V>][]);
  return (message) => forCountry(byCountry, message) ?? {};
}
