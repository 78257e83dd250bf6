import type * as z from "zod";
import { CreateAuthenticationRequest, createFormatErrors } from "../contract/authentication.js";
import { CheckRequest } from "../contract/check.js";
import { ConfirmRequest, DeliverRequest } from "../contract/delivery.js";
import { LookupRequest } from "../contract/lookup.js";
import { DeadLettersRequest, HistoryRequest, NumberRequest, StatsRequest, WebhookSecretsRequest } from "../contract/operator.js";
import { RetryRequest } from "../contract/retry.js";
import { StartRequest, VerificationCheckRequest, VerificationTarget } from "../contract/verification.js";
import { callbackUrlError } from "../domain/callback-url.js";
import { VerifierError } from "../errors.js";
import type { Settings } from "../options/options.js";

/** Parses once, on entry (docs/contract.md#parse-once). Throws `VerifierError` with the code of the first error. */
export const parseRetry = (input: unknown) => parse(RetryRequest, input);
export const parseCheck = (input: unknown) => parse(CheckRequest, input);
export const parseLookup = (input: unknown) => parse(LookupRequest, input);
export const parseNumber = (input: unknown) => parse(NumberRequest, input);
export const parseHistory = (input: unknown) => parse(HistoryRequest, input);
export const parseDeadLetters = (input: unknown) => parse(DeadLettersRequest, input);
export const parseWebhookSecrets = (input: unknown) => parse(WebhookSecretsRequest, input);
export const parseStats = (input: unknown) => parse(StatsRequest, input);

export const parseTarget = (input: unknown) => parse(VerificationTarget, input);
export const parseVerificationCheck = (input: unknown) => parse(VerificationCheckRequest, input);
export const parseCreate = (input: unknown, settings: Settings) => requireConsistent(parse(CreateAuthenticationRequest, input), settings);
export const parseStart = (input: unknown, settings: Settings) => requireConsistent(parse(StartRequest, input), settings);

export const parseConfirm = (input: unknown) => parse(ConfirmRequest, input);

/** Every error is `bad_request` (docs/contract.md#deliver-answers). */
export function parseDeliver(input: unknown, settings: Settings): DeliverRequest {
  try {
    return requireConsistent(parse(DeliverRequest, input), settings);
  } catch (error) {
    throw error instanceof VerifierError ? new VerifierError("bad_request", error.message) : error;
  }
}

type WithDevice = Pick<CreateAuthenticationRequest, "app_realm" | "device_type" | "callback_url">;

function requireConsistent<Request extends WithDevice>(request: Request, settings: Settings): Request {
  if (request.app_realm !== undefined && request.device_type === undefined) {
    throw new VerifierError("app_realm_require_device_type", "app_realm requires device_type ANDROID.");
  }
  if (request.app_realm !== undefined && request.device_type !== "ANDROID") {
    throw new VerifierError("unsupported_app_realm_device_type", "app_realm goes with device_type ANDROID only.");
  }
  const problem = request.callback_url === undefined ? undefined : callbackUrlError(request.callback_url, settings.allowOrigins);
  if (problem !== undefined) throw new VerifierError("bad_request", `callback_url ${problem}.`);
  return request;
}

/** Throws `bad_request` for what is not an object. */
export function requireObject(value: unknown, name: string): void {
  if (typeof value !== "object" || value === null) throw new VerifierError("bad_request", `${name} must be an object.`);
}

/** A string may throw its field's own code; anything else is `bad_request` (docs/contract.md#strict-types). */
function parse<S extends z.ZodType>(schema: S, input: unknown): z.output<S> {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.map((issue) => ({ code: codeOf(issue), text: `${String(issue.path[0] ?? "The request")} ${textOf(issue)}.` }));
  const first = issues.find(({ code }) => code === "bad_request") ?? issues[0];
  throw new VerifierError(first?.code ?? "bad_request", first?.text ?? "The request is malformed.");
}

function codeOf(issue: z.core.$ZodIssue) {
  const own = issue.code === "invalid_type" ? undefined : createFormatErrors[String(issue.path[0])];
  return own ?? "bad_request";
}

function textOf(issue: z.core.$ZodIssue): string {
  return issue.path.length === 0 ? "must be a JSON object" : issue.message;
}

const knownFields = new Set(
  [CreateAuthenticationRequest, CheckRequest, DeliverRequest, ConfirmRequest, HistoryRequest, StatsRequest].flatMap(({ shape }) => Object.keys(shape)),
);
const bare = (name: string) => name.replaceAll(/[^a-z]/gi, "").toLowerCase();
const meant = new Map([...Array.from(knownFields, (field) => [bare(field), field] as const), ["ipaddress", "ip"] as const, ["phone", "phone_number"] as const]);

/** Options of calls, by what they are called among the fields. */
const optionsOfCalls = new Map([
  ["idempotencykey", "createAuthentication(request, { idempotencyKey })"],
  ["scope", "verifications.start(request, { scope })"],
  ["usedup", "verifications.start(request, { usedUp })"],
]);

/**
 * Throws `bad_request` if a direct call misspells a known field, such as `deviceId` for `device_id`, or has an option
 * among its fields. Ignored like other unknown fields, it would disable the limits per device, or send twice.
 * `hasKey`: the idempotency key is a field, as in `deliver`.
 */
export function refuseMisspelt(request: object, hasKey: boolean): void {
  for (const name in request) {
    const option = hasKey ? undefined : optionsOfCalls.get(bare(name));
    if (option !== undefined) throw new VerifierError("bad_request", `${name} is not a field of a request: it is an option, as in ${option}.`);
    if (knownFields.has(name)) continue;
    const field = meant.get(bare(name));
    if (field !== undefined && !(field in request)) throw new VerifierError("bad_request", `${name} is not a field of a request: say ${field}.`);
  }
}
