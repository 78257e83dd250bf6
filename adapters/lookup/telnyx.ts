import type { LookupProvider } from "../../src/ports/lookup-provider.js";
import { isRecord, pick } from "../kit/json.js";
import { onlyOptions, requireText } from "../kit/option-error.js";
import { fact, type LookupOptions, lineTypeOf, lookupOptions, lookupOver } from "./provider.js";

export interface TelnyxLookupOptions extends LookupOptions {
  readonly apiKey: string;
}

/** `fixed line or mobile`, `personal number` and `unknown` are ignored. */
const lineTypes = new Map([
  ["fixed line", "FixedLine"],
  ["mobile", "Mobile"],
  ["voip", "Voip"],
  ["toll free", "TollFree"],
  ["premium rate", "PremiumRate"],
  ["shared cost", "SharedCost"],
  ["pager", "Pager"],
  ["uan", "UniversalAccess"],
  ["voicemail", "VoiceMail"],
] as const);

const ported = new Map<unknown, boolean>([
  ["Y", true],
  ["N", false],
]);

/**
 * Looks numbers up with Telnyx' Number Lookup ("Lookup phone number data",
 * developers.telnyx.com/api-reference/number-lookup/lookup-phone-number-data): `GET
 * /v2/number_lookup/{number}?type=carrier`, a bearer key.
 * It returns carrier and line type; MCC and MNC "on accounts enabled for MCC/MNC data"; porting of North American
 * numbers. Numbers it may not disclose (422, such as Canadian numbers unless the account is enabled for them) are
 * unknown.
 *
 * @throws TypeError for a missing key and invalid options.
 */
export function telnyxLookup(options: TelnyxLookupOptions): LookupProvider {
  const name = "telnyxLookup";
  onlyOptions(name, options, { apiKey: true, ...lookupOptions });
  const key = requireText(name, "apiKey", options.apiKey, "Pass an API key (KEY…) of the Telnyx portal.");
  return lookupOver(name, options, {
    url: "https://api.telnyx.com",
    request: ({ phone_number }, baseUrl) => ({
      url: `${baseUrl}/v2/number_lookup/${encodeURIComponent(phone_number)}?type=carrier`,
      method: "GET",
      headers: { authorization: `Bearer ${key}`, accept: "application/json" },
    }),
    unknown: ({ status }) => status === 404 || status === 422,
    number: ({ json }) => pick(json, "data", "phone_number"),
    read({ json }) {
      const data = pick(json, "data");
      if (!isRecord(data)) return undefined;
      const moved = ported.get(pick(data, "portability", "ported_status"));
      const carrier = pick(data, "carrier");
      const mcc = pick(carrier, "mobile_country_code");
      return {
        ...fact("carrier", pick(carrier, "normalized_carrier")),
        ...fact("carrier", pick(carrier, "name")),
        ...lineTypeOf(lineTypes, pick(carrier, "type")),
        // Without a country code the network code is Telnyx' own number.
        ...(/^\d{3}$/.test(String(mcc)) && { ...fact("mcc", mcc), ...fact("mnc", pick(carrier, "mobile_network_code")) }),
        ...(moved !== undefined && { number_ported: moved }),
      };
    },
    errorCode: ({ json }) => pick(json, "errors", 0, "code"),
  });
}
