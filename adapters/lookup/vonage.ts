import type { LookupProvider } from "../../src/ports/lookup-provider.js";
import { isRecord, pick } from "../kit/json.js";
import { onlyOptions } from "../kit/option-error.js";
import { digits } from "../kit/spelling.js";
import { applicationToken } from "../kit/vonage-token.js";
import { fact, type LookupOptions, lineTypeOf, lookupOptions, lookupOver, networkOf } from "./provider.js";

export interface VonageLookupOptions extends LookupOptions {
  /** Of an application in the Vonage dashboard; the API only accepts its tokens. */
  readonly applicationId: string;
  /** PEM. */
  readonly privateKey: string;
}

const lineTypes = new Map([
  ["mobile", "Mobile"],
  ["landline", "FixedLine"],
  ["tollfree", "TollFree"],
  ["premium", "PremiumRate"],
  ["virtual", "Voip"],
] as const);

/** Errors of the number or its country, not temporary. */
const unavailable = new Set<unknown>(["NO_COVERAGE", "NOT_FOUND", "INVALID_NUMBER_FORMAT", "UNSUPPORTED_NETWORK_TYPE"]);
const available = new Set<unknown>(["OK", "PARTIAL_SUCCESS"]);

/**
 * Looks numbers up with Vonage's Identity Insights ("Identity Insights API",
 * developer.vonage.com/en/api/identity-insights), which replaces Number Insight: `POST /identity-insights/v1/requests`,
 * JSON, an application token; insights `format`, `original_carrier` and `current_carrier`.
 * Carrier, MCC and MNC are those of the current carrier, known for mobile numbers only. A number is ported if its
 * current network is not the original one. Default region: Europe; set `baseUrl` for another.
 *
 * @throws TypeError for missing credentials, an invalid private key, and invalid options.
 */
export function vonageLookup(options: VonageLookupOptions): LookupProvider {
  const name = "vonageLookup";
  onlyOptions(name, options, { applicationId: true, privateKey: true, ...lookupOptions });
  const authorization = applicationToken(name, options.applicationId, options.privateKey);
  return lookupOver(name, options, {
    url: "https://api-eu.vonage.com",
    request: ({ phone_number }, baseUrl) => ({
      url: `${baseUrl}/identity-insights/v1/requests`,
      headers: { authorization: authorization() },
      json: { phone_number: digits(phone_number), insights: { format: {}, original_carrier: {}, current_carrier: {} } },
    }),
    unknown: ({ json }) => [statusOf(json, "original_carrier"), statusOf(json, "current_carrier")].every((code) => unavailable.has(code)),
    number: ({ json }) => pick(json, "insights", "format", "number_international"),
    read({ json }) {
      const codes = (["original_carrier", "current_carrier"] as const).map((insight) => statusOf(json, insight));
      const failed = codes.filter((code) => !available.has(code) && !unavailable.has(code)).map((code) => `${name}: ${String(code).slice(0, 64)}`);
      if (!isRecord(pick(json, "insights")) || failed.length === codes.length) return undefined;
      const original = insightOf(json, "original_carrier");
      const current = insightOf(json, "current_carrier");
      const now = networkOf(pick(current, "network_code"));
      const before = networkOf(pick(original, "network_code"));
      return {
        ...lineTypeOf(lineTypes, pick(original, "network_type")),
        ...lineTypeOf(lineTypes, pick(current, "network_type")),
        ...fact("carrier", pick(current, "name")),
        ...now,
        ...(now.mcc !== undefined && before.mcc !== undefined && { number_ported: now.mcc !== before.mcc || now.mnc !== before.mnc }),
        ...(failed.length > 0 && { failed, incomplete: true }),
      };
    },
    errorCode: ({ json }) => String(pick(json, "type") ?? "").split("#")[1] ?? statusOf(json, "current_carrier"),
  });
}

function statusOf(json: unknown, insight: string): unknown {
  return pick(json, "insights", insight, "status", "code");
}

/** An insight with data. */
function insightOf(json: unknown, insight: string): unknown {
  return available.has(statusOf(json, insight)) ? pick(json, "insights", insight) : undefined;
}
