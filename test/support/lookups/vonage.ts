import { generateKeyPairSync, verify } from "node:crypto";
import { vonageLookup } from "../../../adapters/lookup/vonage.js";
import { json } from "../carriers/server.js";
import type { LookupScript } from "./server.js";

const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
export const vonageLookupOptions = {
  applicationId: "aaaaaaaa-bbbb-cccc-dddd-0123456789ab",
  privateKey: privateKey.export({ type: "pkcs8", format: "pem" }) as string,
};

const problem = (status: number, title: string, detail: string) =>
  json(status, { type: `https://developer.vonage.com/api-errors#${title.toLowerCase()}`, title, detail, instance: "bf0ca0bf927b3b52e3cb03217e1a1ddf" });

/** Whether a token is the application's: RS256, its id, and not expired. */
function isOwn(token: string): boolean {
  const [head = "", claims = "", signature = ""] = token.split(".");
  const { application_id, exp } = JSON.parse(Buffer.from(claims, "base64url").toString()) as { application_id?: string; exp?: number };
  const signed = verify("sha256", Buffer.from(`${head}.${claims}`), publicKey, Buffer.from(signature, "base64url"));
  return signed && application_id === vonageLookupOptions.applicationId && (exp ?? 0) * 1000 > Date.now();
}

const ok = { code: "OK", message: "Success" };

/** All insights of a response, with the same status for both carriers. */
export const vonageInsights = (number: string, original: unknown, current: unknown) =>
  json(200, {
    request_id: "aaaaaaaa-bbbb-cccc-dddd-0123456789ab",
    insights: {
      format: {
        country_code: "US",
        country_name: "United States",
        country_prefix: "1",
        offline_location: "California",
        time_zones: ["America/Los_Angeles"],
        number_international: number,
        number_national: "(415) 555-2671",
        is_format_valid: true,
        status: ok,
      },
      original_carrier: original,
      current_carrier: current,
    },
  });

const status = (code: string) => ({ name: null, network_type: null, country_code: null, network_code: null, status: { code, message: "…" } });

/** developer.vonage.com/en/api/identity-insights, developer.vonage.com/en/identity-insights/guides/current-carrier. */
export const vonageLookupScript: LookupScript = {
  name: "vonage",
  answer({ method, url, headers, body }, { number, carrier, type, mcc, mnc, ported }) {
    const token = (headers["authorization"] ?? "").replace(/^Bearer /, "");
    if (!/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token) || !isOwn(token)) return problem(401, "Unauthorized", "You did not provide correct credentials.");
    if (method !== "POST" || url.pathname !== "/identity-insights/v1/requests") return problem(404, "NotFound", "The requested resource was not found.");
    const asked = JSON.parse(body) as { phone_number?: string; insights?: Record<string, unknown> };
    if (!/^\d{7,15}$/.test(asked.phone_number ?? "") || JSON.stringify(asked.insights) !== '{"format":{},"original_carrier":{},"current_carrier":{}}')
      return problem(400, "InvalidRequest", "Malformed JSON or missing insights.");
    const network = mcc === undefined || mcc === null ? null : `${mcc}${mnc}`;
    const current = { name: carrier ?? null, network_type: type?.toUpperCase() ?? null, country_code: "US", network_code: network, status: ok };
    const original = { ...current, ...(ported === true && { name: "Another", network_code: "310004" }), ...(ported === undefined && { network_code: null }) };
    return vonageInsights(number?.replace("+", "") ?? (asked.phone_number as string), original, current);
  },
  throttled: problem(429, "RateLimit", "Please wait, then retry your request."),
  failure: problem(500, "InternalError", "There was an error processing your request."),
  forbidden: problem(401, "Unauthorized", "You did not provide correct credentials."),
  unknown: {
    NO_COVERAGE: vonageInsights("14155552671", status("NO_COVERAGE"), status("NO_COVERAGE")),
    NOT_FOUND: vonageInsights("14155552671", status("NOT_FOUND"), status("NO_COVERAGE")),
    INVALID_NUMBER_FORMAT: vonageInsights("14155552671", status("INVALID_NUMBER_FORMAT"), status("INVALID_NUMBER_FORMAT")),
  },
  provider: (baseUrl, more) => vonageLookup({ ...vonageLookupOptions, baseUrl, ...more }),
};
