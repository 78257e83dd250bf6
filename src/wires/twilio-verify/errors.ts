import { parsePhoneNumber } from "../../domain/typed-number.js";
import { VerifierError, type VerifierErrorCode } from "../../errors.js";
import { fieldAndRest, WireError } from "../kit/wire.js";

/** Messages are the vendor's, since programs match them. `reason`: what is wrong and how to fix it, if they do not say. */
export function refusal(status: number, code: number, message: string, reason?: string, headers?: Readonly<Record<string, string>>): WireError {
  return new WireError(status, code, message, reason === undefined ? {} : { details: { reason } }, headers);
}

export const invalidParameter = (name: string, reason: string): WireError =>
  refusal(400, 60200, name === "To" ? "Invalid parameter `To`" : `Invalid parameter: ${name}`, reason);

/** `path`: from `/Services` on. */
export const notFound = (path: string, reason?: string): WireError => refusal(404, 20404, `The requested resource ${path} was not found`, reason);

export const missingTarget = () => refusal(400, 60221, "Either a 'To' number or 'VerificationSid' must be specified");
export const checksUsedUp = () => refusal(429, 60202, "Max check attempts reached");
export const sendsUsedUp = (reason?: string) => refusal(429, 60203, "Max send attempts reached", reason);
export const notYet = (reason?: string) => refusal(429, 60212, "Too many concurrent requests for phone number", reason);
export const fraudulent = () =>
  refusal(403, 60410, "The destination phone number has been temporarily blocked by Twilio due to fraudulent activities", "A spam rule or the block list.");

/** Adds what only the request's number can say to an error of the verifier. */
export function forNumber(to: string): (error: unknown) => never {
  return (error) => {
    const code = error instanceof VerifierError ? error.code : undefined;
    if (code === "invalid_phone_number") throw refusal(400, 60200, `Invalid parameter \`To\`: ${to.slice(0, 64)}`, "To must be a valid number: + and digits.");
    if (code !== "unsupported_region") throw error;
    const parsed = parsePhoneNumber(to, { phoneValidation: "possible" });
    const place = (parsed.ok ? parsed.country_code : undefined) ?? "The number";
    const message = `The destination phone number has been blocked by Verify Geo-Permissions. ${place} is blocked for sms channel for all services`;
    throw refusal(403, 60605, message, "The option countries of the verifier does not list the country.");
  };
}

/** The request's fields by the verifier's. */
const fields: Readonly<Record<string, string>> = {
  app_realm: "AppHash",
  check_code: "Code",
  code_length: "CodeLength",
  ip: "DeviceIp",
  locale: "Locale",
  phone_number: "To",
};

const credentials =
  "Send Basic credentials: as user AC and the 32 hexadecimal digits of the customer's UUID, or an SK… of your own; as password an API key of this service.";

const unauthorized = () => refusal(401, 20003, "Authenticate", credentials, { "www-authenticate": 'Basic realm="phoneproof"' });

const translations: Readonly<Partial<Record<VerifierErrorCode, (reason: string) => WireError>>> = {
  forbidden: unauthorized,
  account_invalid: unauthorized,
  not_found: (reason) => refusal(404, 20404, reason),
  method_not_allowed: (reason) => refusal(405, 20004, "Method not allowed", reason),
  payload_too_large: (reason) => refusal(413, 60200, reason),
  invalid_line: (reason) => refusal(403, 60205, "SMS is not supported by landline phone number", reason),
  blocked_number: fraudulent,
  internal_server_error: () => refusal(500, 20500, "An internal server error has occurred"),
  unavailable: (reason) => refusal(503, 20503, "Service is unavailable. Please try again", reason, { "retry-after": "2" }),
};

/** Translates an error of the verifier. */
export function translated(error: VerifierError): WireError {
  const [field, rest] = fieldAndRest(error);
  const name = Object.hasOwn(fields, field) ? fields[field] : undefined;
  const reason = name === undefined ? error.message : `${name} ${rest}`;
  const own = Object.hasOwn(translations, error.code) ? translations[error.code] : undefined;
  if (own !== undefined) return own(reason);
  return name === undefined ? refusal(400, 60200, reason) : invalidParameter(name, reason);
}

/** Programs find the code of an error at the end of its address. */
export const errorBody = ({ status, code, message, details }: WireError): object => ({
  code,
  message,
  more_info: `https://www.twilio.com/docs/errors/${code}`,
  status,
  ...details,
});
