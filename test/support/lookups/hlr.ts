import { httpLookup } from "../../../adapters/lookup/http.js";
import { json } from "../carriers/server.js";
import type { LookupScript } from "./server.js";

/**
 * A typical HLR lookup, modelled on hlr-lookups.com ("HLR Lookup API Docs", hlr-lookups.com/en/api-docs): requests in
 * JSON, MCC and MNC in one word, networks by name.
 */
export const hlrScript: LookupScript = {
  name: "http",
  answer({ method, url, headers, body }, { number, carrier = null, type = null, mcc, mnc, ported }) {
    if (headers["x-digest-key"] !== "hlr-key") return json(401, { error: "unauthorized" });
    const { msisdn } = JSON.parse(body || "{}") as { msisdn?: string };
    if (method !== "POST" || url.pathname !== "/api/v2/hlr-lookup" || !/^\+\d{7,15}$/.test(msisdn ?? "")) return json(400, { error: "bad request" });
    return json(200, {
      id: "f94ef092cb53",
      msisdn: number ?? msisdn,
      connectivity_status: "CONNECTED",
      mccmnc: mcc === undefined || mcc === null ? null : `${mcc}${mnc}`,
      mcc: mcc ?? null,
      mnc: mnc ?? null,
      original_network_name: "Another",
      network_name: carrier,
      number_type: type,
      is_ported: ported ?? null,
      error_code: null,
    });
  },
  throttled: json(429, { error: "too many requests" }),
  failure: json(503, { error: "try again later" }),
  forbidden: json(401, { error: "unauthorized" }),
  unknown: {
    "404, the default": json(404, {}),
    "a test that holds": json(200, { msisdn: "+14155552671", connectivity_status: "INVALID_MSISDN" }),
  },
  provider: (baseUrl, more) =>
    httpLookup({
      url: `${baseUrl}/api/v2/hlr-lookup`,
      headers: { "X-Digest-Key": "hlr-key" },
      json: { msisdn: "{number}" },
      number: "msisdn",
      facts: { carrier: "network_name", mccmnc: "mccmnc", number_ported: "is_ported", line_type: "number_type" },
      lineTypes: { MOBILE: "Mobile", LANDLINE: "FixedLine", SERVICE: "Service", MOBILE_OR_LANDLINE: "Unknown" },
      unknown: ({ status, text }) => status === 404 || text.includes("INVALID_MSISDN"),
      errorCode: "error",
      ...more,
    }),
};
