import type { VerifierError, VerifierErrorCode } from "../../errors.js";
import { fieldAndRest, WireError } from "../kit/wire.js";

const types: Readonly<Record<number, string>> = { 400: "bad_request", 401: "unauthorized", 404: "not_found", 429: "too_many_requests", 500: "internal" };

/** `param`: the path of the field that is wrong. */
export function refusal(status: number, code: string, message: string, param?: string, headers?: Readonly<Record<string, string>>): WireError {
  return new WireError(status, code, message, { type: types[status] ?? code, ...(param !== undefined && { param }) }, headers);
}

/** The SDKs repeat a 429 by themselves unless this header forbids it, and some sleep for as long as a Retry-After says. */
export function tooMany(code: "premature_retry" | "too_many_attempts" | "too_many_checks", message: string): WireError {
  return refusal(429, code, message, undefined, { "x-should-retry": "false" });
}

/** The verifier's fields whose value it checks itself: their path here, and the code of a wrong value. */
const fields: Readonly<Record<string, readonly [param: string, code: string]>> = {
  phone_number: ["target.value", "invalid_phone_number"],
  correlation_id: ["metadata.correlation_id", "invalid_correlation_id"],
  check_code: ["code", "invalid_request"],
  app_realm: ["options.app_realm.value", "invalid_app_realm_value"],
  callback_url: ["options.callback_url", "invalid_callback_url"],
  code_length: ["options.code_size", "invalid_code_size"],
  locale: ["options.locale", "invalid_locale"],
  ip: ["signals.ip", "invalid_request"],
  device_id: ["signals.device_id", "invalid_device_id"],
  device_model: ["signals.device_model", "invalid_device_model"],
  os_version: ["signals.os_version", "invalid_os_version"],
  app_version: ["signals.app_version", "invalid_app_version"],
};

/** Statuses and codes of the verifier's errors. Others are 400 with the code of their field: SDKs would repeat a 408. */
const codes: Readonly<Partial<Record<VerifierErrorCode, readonly [status: number, code: string]>>> = {
  account_invalid: [401, "invalid_api_key"],
  invalid_phone_number: [400, "invalid_phone_number"],
  unsupported_region: [400, "region_blocked_by_customer"],
  not_found: [404, "not_found"],
  method_not_allowed: [405, "method_not_allowed"],
  payload_too_large: [413, "invalid_request"],
  internal_server_error: [500, "internal"],
};

/** Translates an error of the verifier. */
export function translated(error: VerifierError, authorization: string | undefined): WireError {
  if (error.code === "unavailable") return refusal(503, "internal", error.message, undefined, { "retry-after": "2" });
  if (error.code === "forbidden" && authorization === undefined)
    return refusal(401, "missing_api_key", "The Authorization header is missing: send Authorization: Bearer and an API key of this service.");
  if (error.code === "forbidden")
    return refusal(401, "invalid_api_key", "The Authorization header holds no valid API key: send Authorization: Bearer and an API key of this service.");
  const [field, rest] = fieldAndRest(error);
  const own = Object.hasOwn(fields, field) ? fields[field] : undefined;
  const [status, code] = codes[error.code] ?? [400, own?.[1] ?? "invalid_request"];
  return own === undefined ? refusal(status, code, error.message) : refusal(status, code, `${own[0]} ${rest}`, own[0]);
}

/** Calls that the vendor has and this wire has not, by the start of their path, with what does their work here. */
const neighbours: readonly (readonly [path: string, message: string])[] = [
  [
    "/v2/verification/management/phone-numbers/sandbox",
    "Test numbers are not managed over this API: set the option testNumbers of the verifier, [{ number, code }].",
  ],
  ["/v2/verification/management/phone-numbers", "Allow and block lists are not managed over this API: set the option lists of the verifier, { safe, block }."],
  ["/v2/verification/management/sender-id", "Senders are not managed over this API: set the option from of the carrier."],
  ["/v2/watch/predict", "Predictions are not served. The spam rules decide on each verification: see its status blocked."],
  ["/v2/transactional", "This service sends verification codes only."],
  ["/v2/notify", "This service sends verification codes only."],
];

const served =
  "There is no such route; the routes are /v2/verification, /v2/verification/check, /v2/lookup/{phone_number}, /v2/watch/event and /v2/watch/feedback.";

export function unknownPath(path: string): string {
  return neighbours.find(([start]) => path === start || path.startsWith(`${start}/`))?.[1] ?? served;
}
