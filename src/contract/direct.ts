import type { AuthenticationResponse, DeviceType } from "./authentication.js";
import type { CallbackForm } from "./callback.js";
import type { Channel } from "./channel.js";
import type { CheckStatus } from "./check.js";
import type { Conversion } from "./conversion.js";
import type { RetryResponse } from "./retry.js";

/** Names the customer of a call. */
interface ForCustomer {
  /** UUID of the customer. Omit it if the verifier was created without `customers`. */
  readonly customer_uuid?: string | undefined;
}

/** Argument of `createAuthentication`. */
export interface CreateAuthenticationRequest extends ForCustomer {
  /** The number in E.164 form: `+` and digits. `parsePhoneNumber` converts user input to this form. */
  readonly phone_number: string;
  /** The end user's IPv4 or IPv6 address. Limits per address need it; it is never read from the connection. */
  readonly ip?: string | undefined;
  /**
   * `ANDROID_ID` on Android, `identifierForVendor` on iOS, or an id that recognizes the browser. 1 to 128 printable
   * characters.
   */
  readonly device_id?: string | undefined;
  /** `IOS`, `ANDROID` or `WEB`. */
  readonly device_type?: DeviceType | undefined;
  /** 1 to 128 printable characters. */
  readonly device_model?: string | undefined;
  /** 1 to 128 printable characters. */
  readonly os_version?: string | undefined;
  /** Version of your app. 1 to 128 printable characters. */
  readonly app_version?: string | undefined;
  /** The 11-character SMS Retriever hash of your Android app. Requires `device_type: "ANDROID"`. */
  readonly app_realm?: string | undefined;
  /** Whether you already know the user. Passed to your own spam rules; the built-in rules ignore it. */
  readonly is_returning_user?: boolean | undefined;
  /** An https URL that receives the messages' delivery statuses. */
  readonly callback_url?: string | undefined;
  /**
   * The channel that the user wishes for, for example `voice` for a call. `bad_request` if no sender has it. Its routes go
   * first, those of others follow; only a call never becomes a message. Default: the router chooses.
   */
  readonly channel?: Channel | undefined;
  /** What the user's device received for solving the challenge (option `challenge`). Valid for one request. */
  readonly proof?: string | undefined;
}

/** Argument of `verifications.start`. */
export interface StartRequest extends CreateAuthenticationRequest {
  /** Language of the message, for example `fr` or `pt-BR`, if the message text has it. Default: that of the country. */
  readonly locale?: string | undefined;
  /** Digits of the code, 4 to 10, if the guess budget allows it. Default: the policy's `codeLength`. */
  readonly code_length?: number | undefined;
  /** Your own reference, 1 to 128 printable characters. Stored with the verification, and returned by its calls and callbacks. */
  readonly correlation_id?: string | undefined;
  /** The form of the bodies that `callback_url` receives. Default `phoneproof`. */
  readonly callback_form?: CallbackForm | undefined;
}

/** Argument of `verifications.get` and `verifications.cancel`: a number, or an id that `start` returned. */
export type VerificationTarget = ForCustomer &
  (
    | { /** The number in E.164 form: `+` and digits. */ readonly phone_number: string; readonly authentication_uuid?: undefined }
    | { /** The id that `start` returned. */ readonly authentication_uuid: string; readonly phone_number?: undefined }
  );

/** Argument of `verifications.check`. */
export type VerificationCheckRequest = VerificationTarget & {
  /** The code as the user entered it, in digits of any script. Spaces, hyphens and invisible characters are dropped. */
  readonly check_code: string;
};

/** Argument of `deliver`. At least one of `code` and `text` is required. */
export interface DeliverRequest extends ForCustomer {
  /** The number in E.164 form: `+` and digits. */
  readonly phone_number: string;
  /** The code that the other server made: 4 to 16 letters, digits or hyphens. Stored only as a keyed digest; with the option `keepCode` also encrypted, for some minutes. */
  readonly code?: string | undefined;
  /**
   * The whole text, up to 1,600 characters; it must contain `code`, if there is one. Default: the text of the option
   * `message`, which is also sent if this one costs more than `maxSegments`, or the country has a registered text.
   */
  readonly text?: string | undefined;
  /** What the code is for, for example `sign_in`, `sign_up`, `mfa`, `reset`, `change`. Default `sign_in`. */
  readonly purpose?: string | undefined;
  /** Language of the message, for example `fr` or `pt-BR`, if the message text has it. Default: that of the country. */
  readonly locale?: string | undefined;
  /** The end user's IPv4 or IPv6 address. Leave it out if the user can choose it, for example in a header. */
  readonly ip?: string | undefined;
  /** An id that recognizes the user's device or browser. 1 to 128 printable characters. */
  readonly device_id?: string | undefined;
  /** `IOS`, `ANDROID` or `WEB`: selects the last line of the message, for autofill. */
  readonly device_type?: DeviceType | undefined;
  /** The 11-character SMS Retriever hash of your Android app. Requires `device_type: "ANDROID"`. */
  readonly app_realm?: string | undefined;
  /** An https URL that receives the messages' delivery statuses. */
  readonly callback_url?: string | undefined;
  /** The channel that the user wishes for, as in `createAuthentication`. */
  readonly channel?: Channel | undefined;
  /** How long the code is valid, in seconds, 30 to 3,600. Default 300. */
  readonly expires_in?: number | undefined;
  /**
   * The other server vouches that this user had confirmed this number before today. The spam rules then treat the
   * number as trusted. Default false.
   */
  readonly known?: boolean | undefined;
  /** Overrides the option `conversion` for this message. */
  readonly conversion?: Conversion | undefined;
  /** Your own reference, 1 to 128 printable characters, for example a user id. Stored with the delivery, returned by `history`. */
  readonly correlation_id?: string | undefined;
  /**
   * 1 to 255 printable ASCII characters: a repeat under the same key sends nothing. Without a key, the same code to the
   * same number for the same purpose within 30 seconds is a repeat.
   */
  readonly idempotency_key?: string | undefined;
  /** Milliseconds after which `deliver` returns even if the carrier has not responded. Default: `sendTimeout`. */
  readonly within?: number | undefined;
}

/** Argument of `confirm`: a number, or an id that `deliver` returned. */
export type ConfirmRequest = ForCustomer & {
  /** When the code was entered: a Date, a timestamp, or milliseconds. Messages sent later do not count. Default: now. */
  readonly at?: string | Date | number | undefined;
} & (
    | { /** The number in E.164 form: `+` and digits. */ readonly phone_number: string; readonly delivery_uuid?: undefined }
    | { /** The id that `deliver` returned. */ readonly delivery_uuid: string; readonly phone_number?: undefined }
  );

/** Argument of `explain`. */
export interface ExplainRequest extends ForCustomer {
  /** The id that `createAuthentication` returned. */
  readonly authentication_uuid: string;
}

/** Argument of `retry`. */
export interface RetryRequest extends ExplainRequest {
  /**
   * The channel that the user wishes for, for example `voice` for "call me instead". `bad_request` if no sender has it.
   * Default: a call if the create was one; otherwise the router prefers a route that was not used.
   */
  readonly channel?: Channel | undefined;
}

/** Argument of `check`. */
export interface CheckRequest extends ExplainRequest {
  /** The code as the user entered it, in digits of any script. Spaces, hyphens and invisible characters are dropped. */
  readonly check_code: string;
}

/** Argument of `erase` and `unlock`. */
export interface NumberRequest extends ForCustomer {
  /** The number in E.164 form: `+` and digits. */
  readonly phone_number: string;
}

/** Argument of `lookup`. */
export type LookupRequest = NumberRequest;

/** Argument of `history`. */
export interface HistoryRequest extends NumberRequest {
  /** 1 to 1,000. Default 50. */
  readonly limit?: number | undefined;
}

/** Argument of `stats`. */
export interface StatsRequest extends ForCustomer {
  /** A Date or an ISO 8601 timestamp; rounded down to the hour. */
  readonly from: string | Date;
  /** A Date or an ISO 8601 timestamp, later than `from`. */
  readonly to: string | Date;
}

/** What the caller gave to recognize a verification by. */
export interface Correlated {
  /** The `correlation_id` of the start; absent if it had none. */
  readonly correlation_id?: string;
}

/** What remains of an authentication when the call returns. */
export interface Standing {
  /** Messages that can still be requested; 0 once no retry can be approved. */
  readonly remaining_retry: number;
  /** Wrong codes that can still be entered; 0 once no code can be right. */
  readonly remaining_checks: number;
  /** When the next message can be requested, `YYYY-MM-DDTHH:MM:SS.sssZ`. Absent if `remaining_retry` is 0. */
  readonly next_retry_at?: string;
}

/** The outcome of this call's message. */
export interface MessageFate {
  /** The channel of the newest message, if it is not SMS. */
  readonly channel?: Channel;
  /**
   * Whole seconds until the cap or spend ceiling that blocked this call has room. Absent if neither blocked it, or if
   * the time is unknown.
   */
  readonly retry_after?: number;
  /** `true` if a limit of calls blocked this call, so that a message may still be sent; otherwise absent. */
  readonly calls_limited?: true;
  /** `true` if the message is known not to have been sent, which costs nothing; otherwise absent. */
  readonly carrier_refused?: true;
}

/**
 * Result of `createAuthentication`: the HTTP API's fields, and what remains. Repeating an idempotency key returns the
 * same API fields; the other fields show the state at that time.
 */
export interface AuthenticationResult extends Readonly<AuthenticationResponse>, Standing, MessageFate {
  /** The number in canonical E.164 form. Bind what you unlock to this number, not to what the user entered. */
  readonly phone_number: string;
}

/** Result of `retry`: the HTTP API's fields, and what remains. */
export interface RetryResult extends Readonly<RetryResponse>, Pick<Standing, "remaining_checks">, MessageFate {
  /**
   * The number in canonical E.164 form. Absent on `already_validated` and `expired_auth`, and if the create was
   * rejected: it is stored no longer than needed.
   */
  readonly phone_number?: string;
}

/** Result of `check`: the HTTP API's fields, and what remains. **Only `valid` is success.** */
export type CheckResult =
  | (CheckFields & {
      /** The code is right. Returned once; only the same idempotency key returns it again. */
      readonly status: "valid";
      /**
       * The verified number in canonical E.164 form; bind what you unlock to it. Also returned when the same
       * idempotency key is repeated.
       */
      readonly phone_number: string;
    })
  | (CheckFields & {
      /**
       * Why nothing is proven. `invalid`: a wrong code; `without_attempt`: no code was sent; `rate_limited`: no tries
       * left; `expired_auth`; `already_validated`, which is not success.
       */
      readonly status: Exclude<CheckStatus, "valid">;
      /**
       * The number in canonical E.164 form. Absent on `already_validated` and `expired_auth`, and if the create was
       * rejected: it is stored no longer than needed.
       */
      readonly phone_number?: string;
    });

interface CheckFields extends Standing, Correlated {
  /** The authentication that was checked. */
  readonly authentication_uuid: string;
}
