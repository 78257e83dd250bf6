import type { AuthenticationResponse, DeviceType } from "./authentication.js";
import type { CheckStatus } from "./check.js";
import type { RetryResponse } from "./retry.js";

/** Whose call it is. */
interface ForCustomer {
  /** UUID of the customer; left out where the verifier was built without `customers`. */
  readonly customer_uuid?: string | undefined;
}

/** What `createAuthentication` takes. */
export interface CreateAuthenticationRequest extends ForCustomer {
  /** The number in E.164 form: `+` and digits. `parsePhoneNumber` makes it of what people type. */
  readonly phone_number: string;
  /** Address of the end user, IPv4 or IPv6: the limits per address work with it alone, and it is never read from the connection. */
  readonly ip?: string | undefined;
  /** `ANDROID_ID` on Android, `identifierForVendor` on iOS, or what tells a browser again. 1 to 128 printable characters. */
  readonly device_id?: string | undefined;
  /** `IOS`, `ANDROID` or `WEB`. */
  readonly device_type?: DeviceType | undefined;
  /** 1 to 128 printable characters. */
  readonly device_model?: string | undefined;
  /** 1 to 128 printable characters. */
  readonly os_version?: string | undefined;
  /** Version of your app. 1 to 128 printable characters. */
  readonly app_version?: string | undefined;
  /** The 11-character SMS Retriever hash of your Android app; goes with `device_type: "ANDROID"`. */
  readonly app_realm?: string | undefined;
  /** Whether you know the user from before. Told to your own spam rules, and trusted by none of ours. */
  readonly is_returning_user?: boolean | undefined;
  /** Where delivery statuses of the messages are posted; https. */
  readonly callback_url?: string | undefined;
  /** What the user's device got for solving the challenge of the option `challenge`; good for one request. */
  readonly proof?: string | undefined;
}

/** What `retry` and `explain` take. */
export interface RetryRequest extends ForCustomer {
  /** As `createAuthentication` answered it. */
  readonly authentication_uuid: string;
}

/** What `check` takes. */
export interface CheckRequest extends RetryRequest {
  /** What the user typed, as it came: spaces and hyphens are dropped, digits of every script are read. */
  readonly check_code: string;
}

/** What `erase` and `unlock` take. */
export interface NumberRequest extends ForCustomer {
  /** The number in E.164 form: `+` and digits. */
  readonly phone_number: string;
}

/** What `lookup` takes. */
export type LookupRequest = NumberRequest;

/** What `history` takes. */
export interface HistoryRequest extends NumberRequest {
  /** 1 to 1,000. Default 50. */
  readonly limit?: number | undefined;
}

/** What `stats` takes. */
export interface StatsRequest extends ForCustomer {
  /** Widened to whole hours. A Date, or an ISO 8601 timestamp. */
  readonly from: string | Date;
  /** Later than `from`. A Date, or an ISO 8601 timestamp. */
  readonly to: string | Date;
}

/** What an authentication has left when the call is answered. */
export interface Standing {
  /** Messages that may still be asked for; 0 where no retry is approved any more. */
  readonly remaining_retry: number;
  /** Wrong codes that may still be typed; 0 where no code can be right any more. */
  readonly remaining_checks: number;
  /** When the next message may be asked for, `YYYY-MM-DDTHH:MM:SS.sssZ`. Absent where `remaining_retry` is 0. */
  readonly next_retry_at?: string;
}

/** How the message of this very call fared. */
interface MessageFate {
  /** Whole seconds until the cap or spend ceiling that refused this call has room. Absent where none refused, and where it is not known. */
  readonly retry_after?: number;
  /** `true` where every route surely refused the message, which costs nothing; else absent. */
  readonly carrier_refused?: true;
}

/** What `createAuthentication` answers: the fields of the wire, and how it stands. The same idempotency key answers the same fields of the wire; the others tell how it stands by then. */
export interface AuthenticationAnswer extends Readonly<AuthenticationResponse>, Standing, MessageFate {
  /** The number in canonical E.164 form: bind what you unlock to this one, not to what was typed. */
  readonly phone_number: string;
}

/** What `retry` answers: the fields of the wire, and how it stands. */
export interface RetryAnswer extends Readonly<RetryResponse>, Pick<Standing, "remaining_checks">, MessageFate {
  /** The number in canonical E.164 form. Absent on `already_validated` and `expired_auth`, and where create was refused: it is kept no longer than it is needed. */
  readonly phone_number?: string;
}

/** What `check` answers: the fields of the wire, and how it stands. **Only `valid` is success.** */
export type CheckAnswer =
  | (CheckFields & {
      /** The code is right, now and only now. */
      readonly status: "valid";
      /** The number that is proven, in canonical E.164 form: bind what you unlock to it. Also where the same idempotency key answers again. */
      readonly phone_number: string;
    })
  | (CheckFields & {
      /** Why nothing is proven: `invalid`, a wrong code; `without_attempt`, no code was sent; `rate_limited`, no more tries; `expired_auth`; `already_validated`, which is not success. */
      readonly status: Exclude<CheckStatus, "valid">;
      /** The number in canonical E.164 form. Absent on `already_validated` and `expired_auth`, and where create was refused: it is kept no longer than it is needed. */
      readonly phone_number?: string;
    });

interface CheckFields extends Standing {
  /** The authentication that was checked. */
  readonly authentication_uuid: string;
}
