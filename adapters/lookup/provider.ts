import type { LookupAnswer, LookupFacts, LookupProvider, LookupRequest } from "../../src/ports/lookup-provider.js";
import { errorToken, withCode } from "../kit/error-code.js";
import { type OptionNames, optionFault } from "../kit/option-fault.js";
import { ask, type CarrierAnswer, type CarrierRequest } from "../kit/request.js";
import { digits } from "../kit/spelling.js";
import { openTransport, type TransportOptions, transportOptions } from "../kit/transport.js";

/** Options that every lookup provider takes. */
export interface LookupOptions extends TransportOptions {
  /** What one lookup costs at most, in the unit of `policy.limits.spend`, which it counts towards; needed where there is a ceiling. Default: not known. */
  readonly price?: number;
}

export const lookupOptions: OptionNames<LookupOptions> = { price: true, ...transportOptions };

/** What one provider's API asks for: how a number is asked for, and what its answers mean. */
export interface LookupApi {
  /** The provider's public address, without the path of an operation. */
  readonly url: string;
  request(asked: LookupRequest, baseUrl: string): CarrierRequest;
  /** Whether an answer of any status says that the provider has nothing on the number, or may not tell. */
  unknown(answer: CarrierAnswer): boolean;
  /** Which number an answer of 200 to 299 is about, with or without `+`. */
  number(answer: CarrierAnswer): unknown;
  /** Reads an answer of 200 to 299, of which `fact` passes what has its form. `undefined`: it is not in the provider's form. */
  read(answer: CarrierAnswer): (LookupFacts & Pick<LookupAnswer, "incomplete" | "failed">) | undefined;
  /** The provider's own code in an answer. Default: none. */
  errorCode?(answer: CarrierAnswer): unknown;
}

/**
 * A lookup provider over HTTP. One request for a lookup and never a second one, no redirect followed.
 *
 * It fails, and so says nothing of the number, without a connection, without an answer in time, at a status outside 200 to 299 that does not say "unknown", and at an answer that is not in the provider's form or is about another number.
 * What was surely not sent, or was answered outside 200 to 299, costs nothing.
 *
 * @throws TypeError for options that cannot be used.
 */
export function lookupOver(name: string, options: LookupOptions, api: LookupApi): LookupProvider {
  const { price } = options;
  if (price !== undefined && !(typeof price === "number" && price >= 0 && price <= 1e9))
    throw optionFault(name, "price", "must be a number from 0 to a thousand million", "Pass what one lookup costs, in the unit of policy.limits.spend.");
  const transport = openTransport(name, options, api.url);
  const requestOf = (asked: LookupRequest) => {
    try {
      return api.request(asked, transport.baseUrl);
    } catch {
      throw failure(name, "the request could not be made", 0);
    }
  };
  return {
    price,
    async lookup(asked, { signal }) {
      const answer = await ask(transport, requestOf(asked), signal);
      if ("reason" in answer) throw failure(name, answer.reason, answer.sent ? undefined : 0);
      if (api.unknown(answer)) return answer.status < 300 ? undefined : { price: 0 };
      const code = errorToken(api.errorCode?.(answer));
      if (answer.status < 200 || answer.status >= 300) throw failure(name, withCode(`HTTP ${answer.status}`, code), 0);
      const facts = api.read(answer);
      if (facts === undefined) throw failure(name, withCode("the answer is not in the provider's form", code));
      if (digits(String(api.number(answer))) !== digits(asked.phone_number)) throw failure(name, "the answer names another number, or none");
      return facts;
    },
  };
}

/** @param price What it cost all the same. Default: the provider's price. */
function failure(name: string, reason: string, price?: number): Error {
  return Object.assign(new Error(`${name}: ${reason}`), price === undefined ? {} : { price });
}

const forms = { carrier: /^(?=.*\S)\P{Cc}{1,128}$/u, mcc: /^\d{3}$/, mnc: /^\d{2,3}$/ };

/** One fact under its name where the value has its form; nothing else. */
export function fact(field: keyof typeof forms, value: unknown): LookupFacts {
  return typeof value === "string" && forms[field].test(value) ? { [field]: value } : {};
}

/** The provider's word for a kind of line, in any case, in ours; words that are not listed say nothing. */
export function lineTypeOf(words: ReadonlyMap<string, NonNullable<LookupFacts["line_type"]>>, word: unknown): LookupFacts {
  const line_type = typeof word === "string" ? words.get(word.toLowerCase()) : undefined;
  return line_type === undefined ? {} : { line_type };
}

/** MCC and MNC, which belong together: `20801` is `208` and `01`, `310260` is `310` and `260`. */
export function networkOf(code: unknown): LookupFacts {
  const text = typeof code === "number" ? String(code) : code;
  const [, mcc, mnc] = typeof text === "string" ? (/^(\d{3})-?(\d{2,3})$/.exec(text) ?? []) : [];
  return mcc === undefined || mnc === undefined ? {} : { mcc, mnc };
}
