import * as z from "zod";
import { CheckCode } from "../contract/check.js";
import type { StartRequest } from "../contract/direct.js";
import { Uuid } from "../contract/fields.js";
import type { StartResult } from "../contract/verification.js";
import type { Verifier } from "../create-verifier.js";
import { canonicalNumber, e164 } from "../domain/phone-number.js";
import { synchronous } from "../domain/promises.js";
import { sentence } from "../domain/sentences.js";
import { VerifierError } from "../errors.js";
import { requireVerifier } from "../options/fields.js";
import { parse as parseOptions } from "../options/option-errors.js";

export interface BetterAuthOptions {
  /** UUID of the customer. Required if the verifier has customers. */
  readonly customer_uuid?: string | undefined;
  /**
   * Returns what to add to a start: `locale`, `ip`, `proof` and so on. Called with the request's headers, which are
   * empty if there is no request. The client chooses most headers, so take `ip` only from one that your own proxy
   * overwrites. Default: nothing is added, and no limit per address applies.
   */
  readonly fields?: ((headers: Headers) => Omit<StartRequest, "customer_uuid" | "phone_number">) | undefined;
}

/** What Better Auth passes to its hooks, as far as it is used here. */
export interface BetterAuthContext {
  readonly path?: string | undefined;
  readonly headers?: Headers | undefined;
  error(
    status: "BAD_REQUEST" | "FORBIDDEN" | "TOO_MANY_REQUESTS" | "BAD_GATEWAY" | "SERVICE_UNAVAILABLE",
    body: { code: string; message: string },
    headers?: Record<string, string>,
  ): Error;
}

/** Options of Better Auth's plugin `phoneNumber`. */
export interface PhoneNumberHooks {
  /**
   * Sends a code of the verifier; the plugin's own code is ignored. Rejects with an `APIError` of status 400, 429, 502
   * or 503 if nothing was sent.
   */
  readonly sendOTP: (data: { phoneNumber: string; code: string }, ctx?: BetterAuthContext) => Promise<void>;
  /** Sends a code that only resets the password. Never reports that it was not sent, which would reveal the account. */
  readonly sendPasswordResetOTP: (data: { phoneNumber: string; code: string }, ctx?: BetterAuthContext) => Promise<void>;
  /** Checks a code of the verifier. Rejects with the plugin's errors `OTP_NOT_FOUND` and `TOO_MANY_ATTEMPTS`. */
  readonly verifyOTP: (data: { phoneNumber: string; code: string }, ctx?: BetterAuthContext) => Promise<boolean>;
  /** Accepts numbers in canonical E.164 form only, so that a number has one account. */
  readonly phoneNumberValidator: (phoneNumber: string) => boolean;
}

type Fields = NonNullable<BetterAuthOptions["fields"]>;

const Options = z.strictObject({
  customer_uuid: Uuid.optional(),
  fields: z.custom<Fields>((value) => typeof value === "function", "must be a function that returns fields of verifications.start").optional(),
});

/** A code that resets a password proves nothing else, and no other code resets one. */
const scopes = { proof: "better-auth", reset: "better-auth-reset" } as const;

/**
 * Makes the options of Better Auth's plugin `phoneNumber`, from version 1.7.8 on, so that codes, checks and limits are
 * the verifier's: `phoneNumber(betterAuth(verifier))`. Add further options of the plugin with a spread. Throws
 * `VerifierError` `invalid_options`.
 */
export function betterAuth(verifier: Pick<Verifier, "verifications" | "http">, options: BetterAuthOptions = {}): PhoneNumberHooks {
  const { customer_uuid, fields } = parseOptions(Options, options, "betterAuth");
  requireVerifier("betterAuth", verifier);
  const added = ({ headers }: BetterAuthContext) => synchronous("fields", fields?.(headers ?? new Headers())) ?? {};

  return {
    async sendOTP({ phoneNumber }, ctx) {
      const call = given(ctx);
      const more = added(call);
      if (!isCanonical(phoneNumber)) throw call.error("BAD_REQUEST", { code: "INVALID_PHONE_NUMBER", message: sentence("number", more.locale) });
      const request = { ...more, customer_uuid, phone_number: phoneNumber };
      const started = await verifier.verifications.start(request, { scope: scopes.proof }).catch(translated(call, more.locale));
      const { status, carrier_refused } = started;
      if (carrier_refused === true) throw call.error("BAD_GATEWAY", { code: "MESSAGE_NOT_SENT", message: sentence("failed", more.locale) });
      if (status === "pending") return;
      // The same for limits and spam rules: an attacker must not learn which.
      const code = status === "denied" ? "CODE_ALREADY_SENT" : "TOO_MANY_MESSAGES";
      throw call.error("TOO_MANY_REQUESTS", { code, message: sentence("later", more.locale) }, retryAfter(started, verifier.http.clock.now()));
    },

    async sendPasswordResetOTP({ phoneNumber }, ctx) {
      if (!isCanonical(phoneNumber)) return;
      const request = { ...added(given(ctx)), customer_uuid, phone_number: phoneNumber };
      await verifier.verifications.start(request, { scope: scopes.reset }).catch(ignoreDestination);
    },

    async verifyOTP({ phoneNumber, code }, ctx) {
      const call = given(ctx);
      const isReset = call.path === "/phone-number/reset-password";
      // The plugin looks the account up by the number as entered, and would make another one for another form of it.
      if (!isCanonical(phoneNumber)) return false;
      // The verifier rejects an empty or overlong code as the caller's error; here it is a wrong code that the user entered.
      if (!CheckCode.safeParse(code).success) return false;
      const target = { customer_uuid, phone_number: phoneNumber, check_code: code };
      const { status } = await verifier.verifications.check(target, { scope: isReset ? scopes.reset : scopes.proof }).catch(translated(call, undefined));
      // Codes that reset a password are sent to accounts only: other responses than this would reveal them.
      if (status === "valid" || isReset) return status === "valid";
      if (status === "rate_limited") throw call.error("FORBIDDEN", { code: "TOO_MANY_ATTEMPTS", message: "Too many attempts" });
      if (status !== "invalid") throw call.error("BAD_REQUEST", { code: "OTP_NOT_FOUND", message: "OTP not found" });
      return false;
    },

    phoneNumberValidator: isCanonical,
  };
}

function given(ctx: BetterAuthContext | undefined): BetterAuthContext {
  if (typeof ctx?.error !== "function") throw new TypeError("betterAuth: Better Auth passed no context. Use better-auth 1.7.8 or newer");
  return ctx;
}

/** Whether it is valid is for the verifier to decide, which may have test numbers. */
function isCanonical(phoneNumber: string): boolean {
  return e164.test(phoneNumber) && canonicalNumber(phoneNumber) === phoneNumber;
}

const destinationErrors: readonly string[] = ["invalid_phone_number", "unsupported_region", "invalid_line", "blocked_number"];

/** Throws an error of the verifier as an `APIError`. Errors that only a developer can fix stay as they are: Better Auth logs them. */
function translated(call: BetterAuthContext, locale: string | undefined): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof VerifierError)) throw error;
    const code = error.code.toUpperCase();
    if (error.code === "unavailable") throw call.error("SERVICE_UNAVAILABLE", { code, message: sentence("failed", locale) });
    if (destinationErrors.includes(error.code)) throw call.error("BAD_REQUEST", { code, message: sentence("number", locale) });
    if (error.code === "bad_request") throw call.error("BAD_REQUEST", { code, message: error.message });
    throw error;
  };
}

function ignoreDestination(error: unknown): void {
  if (!(error instanceof VerifierError) || !destinationErrors.includes(error.code)) throw error;
}

/** Better Auth's own limits use `X-Retry-After`. */
function retryAfter({ status, retry_after, next_retry_at }: StartResult, now: number): Record<string, string> {
  const coolDown = status === "denied" && next_retry_at !== undefined ? Math.max(1, Math.ceil((Date.parse(next_retry_at) - now) / 1000)) : undefined;
  const seconds = retry_after ?? coolDown;
  return seconds === undefined ? {} : { "Retry-After": String(seconds), "X-Retry-After": String(seconds) };
}
