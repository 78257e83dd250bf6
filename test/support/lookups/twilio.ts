import { twilioLookup } from "../../../adapters/lookup/twilio.js";
import { json } from "../carriers/server.js";
import type { LookupScript } from "./server.js";

const accountSid = "AC00000000000000000000000000000001";
export const twilioLookupOptions = { accountSid, authToken: "twilio-auth-token" };

const problem = (status: number, code: number, message: string) =>
  json(status, { code, message, more_info: `https://www.twilio.com/docs/errors/${code}`, status });

const resource = (number: string, line: unknown, valid = true) =>
  json(200, {
    calling_country_code: "1",
    country_code: "US",
    phone_number: number,
    national_format: "(415) 992-9960",
    valid,
    validation_errors: valid ? null : ["INVALID_BUT_POSSIBLE"],
    caller_name: null,
    sim_swap: null,
    call_forwarding: null,
    line_type_intelligence: line,
    line_status: null,
    identity_match: null,
    reassigned_number: null,
    sms_pumping_risk: null,
    url: `https://lookups.twilio.com/v2/PhoneNumbers/${number}`,
  });

const withoutData = (error_code: number) =>
  resource("+14155552671", { error_code, mobile_country_code: null, mobile_network_code: null, carrier_name: null, type: null });

/** twilio.com/docs/lookup/v2-api/line-type-intelligence; error 60601: twilio.com/docs/api/errors/60601. */
export const twilioLookupScript: LookupScript = {
  name: "twilio",
  answer({ method, url, headers }, { number, carrier = null, type = null, mcc = null, mnc = null }) {
    const expected = `Basic ${Buffer.from(`${accountSid}:twilio-auth-token`).toString("base64")}`;
    if (headers["authorization"] !== expected) return problem(401, 20003, "Authenticate");
    const asked = /^\/v2\/PhoneNumbers\/(.+)$/.exec(decodeURIComponent(url.pathname))?.[1];
    if (method !== "GET" || asked === undefined) return problem(404, 20404, `The requested resource ${url.pathname} was not found`);
    if (url.searchParams.get("Fields") !== "line_type_intelligence") return resource(asked, null);
    return resource(number ?? asked, { carrier_name: carrier, error_code: null, mobile_country_code: mcc, mobile_network_code: mnc, type });
  },
  throttled: problem(429, 20429, "Too Many Requests"),
  failure: problem(500, 20500, "An internal server error has occurred"),
  forbidden: problem(401, 20003, "Authenticate"),
  unknown: {
    "404, no such number": problem(404, 20404, "The requested resource /v2/PhoneNumbers/+14155552671 was not found"),
    "60601, Canada without approval": withoutData(60601),
    "60601 as an error of the request": problem(403, 60601, "Authorization required for Canada lookups"),
    "60600, out of coverage": withoutData(60600),
    "60607, a country that the package does not have": withoutData(60607),
  },
  provider: (baseUrl, more) => twilioLookup({ ...twilioLookupOptions, baseUrl, ...more }),
};
