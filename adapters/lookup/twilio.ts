import type { LookupProvider } from "../../src/ports/lookup-provider.js";
import { isRecord, pick } from "../kit/json.js";
import { onlyOptions } from "../kit/option-error.js";
import { openTwilioAccount, type TwilioAccount } from "../kit/twilio-account.js";
import { fact, type LookupOptions, lineTypeOf, lookupOptions, lookupOver } from "./provider.js";

export interface TwilioLookupOptions extends LookupOptions, TwilioAccount {}

/** `personal` (follow-me) numbers may lead to any line type; they and `unknown` are ignored. */
const lineTypes = new Map([
  ["landline", "FixedLine"],
  ["mobile", "Mobile"],
  ["fixedvoip", "Voip"],
  ["nonfixedvoip", "Voip"],
  ["tollfree", "TollFree"],
  ["premium", "PremiumRate"],
  ["sharedcost", "SharedCost"],
  ["uan", "UniversalAccess"],
  ["voicemail", "VoiceMail"],
  ["pager", "Pager"],
] as const);

/**
 * Errors of the number's country, not temporary: no coverage, Canada without approval, a country not in the package.
 */
const untold = new Set(["60600", "60601", "60607"]);

/**
 * Looks numbers up with Twilio's Lookup v2, package Line Type Intelligence ("Line Type Intelligence",
 * twilio.com/docs/lookup/v2-api/line-type-intelligence): `GET /v2/PhoneNumbers/{number}?Fields=line_type_intelligence`,
 * basic authentication.
 * It returns carrier, line type, MCC and MNC, but not porting. "Canadian phone numbers require special approval":
 * without it they are unknown.
 *
 * @throws TypeError for missing credentials and invalid options.
 */
export function twilioLookup(options: TwilioLookupOptions): LookupProvider {
  const name = "twilioLookup";
  onlyOptions(name, options, { accountSid: true, authToken: true, apiKeySid: true, ...lookupOptions });
  const { headers } = openTwilioAccount(name, options);
  const errorCode = (json: unknown) => pick(json, "line_type_intelligence", "error_code") ?? pick(json, "code");
  return lookupOver(name, options, {
    url: "https://lookups.twilio.com",
    request: ({ phone_number }, baseUrl) => ({
      url: `${baseUrl}/v2/PhoneNumbers/${encodeURIComponent(phone_number)}?Fields=line_type_intelligence`,
      method: "GET",
      headers: { ...headers, accept: "application/json" },
    }),
    unknown: ({ status, json }) => status === 404 || untold.has(String(errorCode(json))),
    number: ({ json }) => pick(json, "phone_number"),
    read({ json }) {
      const line = pick(json, "line_type_intelligence");
      if (!isRecord(line) || (line["error_code"] !== undefined && line["error_code"] !== null)) return undefined;
      return {
        ...fact("carrier", line["carrier_name"]),
        ...lineTypeOf(lineTypes, line["type"]),
        ...fact("mcc", line["mobile_country_code"]),
        ...fact("mnc", line["mobile_network_code"]),
      };
    },
    errorCode: ({ json }) => errorCode(json),
  });
}
