import type { LineType } from "../../src/contract/lookup.js";
import type { LookupFacts, LookupProvider, LookupRequest, LookupResult } from "../../src/ports/lookup-provider.js";
import { errorToken, withCode } from "../kit/error-code.js";
import { type OptionNames, optionError } from "../kit/option-error.js";
import { ask, type CarrierRequest, type CarrierResponse } from "../kit/request.js";
import { digits } from "../kit/spelling.js";
import { openTransport, type TransportOptions, transportOptions } from "../kit/transport.js";

/** Options of every lookup provider. */
export interface LookupOptions extends TransportOptions {
  /** Maximum cost of a lookup; counts towards `policy.limits.spend`, and is required with it. Default: unknown. */
  readonly price?: number;
}

export const lookupOptions: OptionNames<LookupOptions> = { price: true, ...transportOptions };

/** One provider's API: how to build a request and what its responses mean. */
export interface LookupApi {
  /** The provider's public base URL, without an operation's path. */
  readonly url: string;
  request(asked: LookupRequest, baseUrl: string): CarrierRequest;
  /** Whether a response of any status means that the provider has no data on the number, or may not disclose it. */
  unknown(answer: CarrierResponse): boolean;
  /** The number that a response of 200 to 299 is about, with or without `+`. */
  number(answer: CarrierResponse): unknown;
  /** Reads a response of 200 to 299; `fact` keeps only well-formed values. `undefined`: it has an unexpected form. */
  read(answer: CarrierResponse): (LookupFacts & Pick<LookupResult, "incomplete" | "failed">) | undefined;
  /** The provider's own error code in a response. Default: none. */
  errorCode?(answer: CarrierResponse): unknown;
}

/**
 * A lookup provider over HTTP. It makes one request per lookup, with no retry, and follows no redirect.
 *
 * It fails, without a result for the number, if there is no connection or no response in time, at a status outside 200
 * to 299 that does not mean "unknown", and at a response in an unexpected form or about another number.
 * Requests that were definitely not sent, or got a status outside 200 to 299, cost nothing.
 *
 * @throws TypeError for invalid options.
 */
export function lookupOver(name: string, options: LookupOptions, api: LookupApi): LookupProvider {
  const { price } = options;
  if (price !== undefined && !(typeof price === "number" && price >= 0 && price <= 1e9))
    throw optionError(name, "price", "must be a number from 0 to a thousand million", "Pass what one lookup costs, in the unit of policy.limits.spend.");
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
      if (facts === undefined) throw failure(name, withCode("the response is not in the provider's format", code));
      if (digits(String(api.number(answer))) !== digits(asked.phone_number)) throw failure(name, "the response names another number, or no number");
      return facts;
    },
  };
}

/** @param price What the failed lookup cost. Default: the provider's price. */
function failure(name: string, reason: string, price?: number): Error {
  return Object.assign(new Error(`${name}: ${reason}`), price === undefined ? {} : { price });
}

const forms = { carrier: /^(?=.*\S)\P{Cc}{1,128}$/u, mcc: /^\d{3}$/, mnc: /^\d{2,3}$/ };

/** Returns one fact under its name if the value is well-formed; otherwise nothing. */
export function fact(field: keyof typeof forms, value: unknown): LookupFacts {
  return typeof value === "string" && forms[field].test(value) ? { [field]: value } : {};
}

const lineTypes: Readonly<Record<Exclude<LineType, "Unknown">, true>> = {
  FixedLine: true,
  Mobile: true,
  TollFree: true,
  PremiumRate: true,
  SharedCost: true,
  Voip: true,
  Pager: true,
  VoiceMail: true,
  UniversalAccess: true,
  Service: true,
};

/** What the verifier takes of a result as valid, `Unknown` left out (`parseFacts` in src/access/number-facts.ts). */
export function validFacts({ carrier, country_code, line_type, mcc, mnc, number_ported }: LookupFacts): LookupFacts {
  const network = fact("mcc", mcc);
  return {
    ...fact("carrier", carrier),
    ...(typeof country_code === "string" && /^[A-Z]{2}$/.test(country_code) && { country_code }),
    ...(typeof line_type === "string" && Object.hasOwn(lineTypes, line_type) && { line_type }),
    ...(network.mcc !== undefined && { ...network, ...fact("mnc", mnc) }),
    ...(typeof number_ported === "boolean" && { number_ported }),
  };
}

/** Maps the provider's line type, in any case, to ours; unlisted words are ignored. */
export function lineTypeOf(words: ReadonlyMap<string, NonNullable<LookupFacts["line_type"]>>, word: unknown): LookupFacts {
  const line_type = typeof word === "string" ? words.get(word.toLowerCase()) : undefined;
  return line_type === undefined ? {} : { line_type };
}

/** Splits MCC and MNC: `20801` is `208` and `01`, `310260` is `310` and `260`. */
export function networkOf(code: unknown): LookupFacts {
  const text = typeof code === "number" ? String(code) : code;
  const [, mcc, mnc] = typeof text === "string" ? (/^(\d{3})-?(\d{2,3})$/.exec(text) ?? []) : [];
  return mcc === undefined || mnc === undefined ? {} : { mcc, mnc };
}
