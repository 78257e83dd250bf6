import { telnyxLookup } from "../../../adapters/lookup/telnyx.js";
import { json } from "../carriers/server.js";
import type { LookupScript } from "./server.js";

export const telnyxLookupOptions = { apiKey: "KEY-telnyx" };

const problem = (status: number, code: string, title: string, detail: string) => json(status, { errors: [{ code, title, detail }] });

/**
 * developers.telnyx.com/api-reference/number-lookup/lookup-phone-number-data,
 * developers.telnyx.com/docs/identity/number-lookup (Canadian numbers).
 */
export const telnyxLookupScript: LookupScript = {
  name: "telnyx",
  answer({ method, url, headers }, { number, carrier = "", type = "unknown", mcc = "", mnc = "", ported }) {
    if (headers["authorization"] !== "Bearer KEY-telnyx") return problem(401, "10009", "Authentication failed", "Could not find any usable credentials.");
    const asked = /^\/v2\/number_lookup\/(.+)$/.exec(decodeURIComponent(url.pathname))?.[1];
    if (method !== "GET" || asked === undefined) return problem(404, "10005", "Resource not found", "The requested resource or URL could not be found.");
    return json(200, {
      data: {
        record_type: "number_lookup",
        country_code: "US",
        national_format: "(866) 555-2368",
        phone_number: number ?? asked,
        valid_number: true,
        fraud: null,
        carrier:
          url.searchParams.get("type") === "carrier"
            ? { error_code: null, mobile_country_code: mcc, mobile_network_code: mnc, name: carrier, normalized_carrier: "", type }
            : null,
        caller_name: null,
        portability: {
          lrn: "",
          ported_status: ported === undefined ? "" : ported ? "Y" : "N",
          ported_date: "",
          ocn: "6006",
          line_type: "CLEC",
          spid: "073H",
          spid_carrier_name: "Telnyx/4",
          spid_carrier_type: "5",
          altspid: "",
          altspid_carrier_name: "",
          altspid_carrier_type: "",
          city: "",
          state: "",
        },
      },
    });
  },
  throttled: problem(429, "10011", "Too many requests", "You have exceeded the maximum number of allowed requests."),
  failure: problem(500, "10007", "Unexpected error", "An unexpected error occured."),
  forbidden: problem(
    403,
    "10010",
    "Authorization failed",
    "You do not have permission to perform the requested action on the specified resource or resources.",
  ),
  unknown: {
    "404, no such number": problem(404, "10005", "Resource not found", "The requested resource or URL could not be found."),
    "422, Canada": problem(422, "10015", "Invalid value", "+14155552671 is a Canadian number"),
  },
  provider: (baseUrl, more) => telnyxLookup({ ...telnyxLookupOptions, baseUrl, ...more }),
};
