import { countryKeyError } from "../../../src/domain/countries.js";
import { synchronous } from "../../../src/domain/promises.js";
import type { CodeMessage } from "../../../src/ports/sms-sender.js";
import { optionError, requireText } from "../../kit/option-error.js";
import { type ByCountry, forCountry } from "./by-country.js";

/**
 * The sender of a message: an id of up to 11 letters and digits, or a number; one per country, with `default` for the
 * rest; or a function. A message without a matching sender is rejected unsent.
 */
export type SenderId = string | ByCountry<string> | ((message: CodeMessage) => string | undefined);

/** The option `from`, checked. */
export interface Senders<Sender = string | undefined> {
  /** Returns the sender of a message; undefined if none matches. */
  of(message: CodeMessage): Sender;
  /** Whether a country has a sender, as far as is known in advance. */
  has(country: string): boolean;
}

/**
 * Reads the option `from`.
 *
 * @param anyForm The carrier also accepts senders in its own form, such as an ARN.
 * @throws TypeError if `from` is not a usable sender.
 */
export function openSenderId(sender: string, from: SenderId, anyForm = false): Senders {
  const fix = 'Pass a sender id or number, a map such as { GB: "ACME", default: "+15005550006" }, or a function of the message.';
  const read = (option: string, id: unknown): string => {
    const text = requireText(sender, option, id, fix);
    const problem = anyForm ? undefined : faultIn(text);
    if (problem !== undefined) throw optionError(sender, option, problem, "Pass one that phones can show.");
    return text;
  };
  if (typeof from === "function") {
    const answered = (message: CodeMessage) => {
      const text = synchronous("from", from(message));
      return typeof text === "string" && text.trim() !== "" ? read("from", text) : undefined;
    };
    return { of: answered, has: () => true };
  }
  if (typeof from === "string") {
    const one = read("from", from);
    return { of: () => one, has: () => true };
  }
  if (typeof from !== "object" || from === null) throw optionError(sender, "from", "is neither text, a map nor a function", fix);
  const byCountry = new Map(Object.entries(from));
  if (byCountry.size === 0) throw optionError(sender, "from", "is an empty map", fix);
  for (const [country, id] of byCountry) {
    const problem = countryKeyError(country);
    if (problem !== undefined) throw optionError(sender, `from.${country}`, problem, fix);
    read(`from.${country}`, id);
  }
  return { of: (message) => forCountry(byCountry, message), has: (country) => byCountry.has(country) || byCountry.has("default") };
}

/** Why phones cannot show a sender: a number has up to 15 digits (E.164), a name up to 11 characters. */
function faultIn(text: string): string | undefined {
  if (/\p{C}/u.test(text)) return "holds a control character";
  if (text.startsWith("+") && !/^\+\d{3,15}$/.test(text)) return "is neither + and 3 to 15 digits nor a name";
  if (/^\d+$/.test(text)) return text.length > 15 ? "has more digits than a number" : undefined;
  return !text.startsWith("+") && text.length > 11 ? `has ${text.length} characters, and phones show 11 of a sender id with letters in it` : undefined;
}
