import * as z from "zod";
import { CreateAuthenticationRequest, printable } from "./authentication.js";
import { callbackForms } from "./callback.js";
import type { Channel } from "./channel.js";
import { CheckRequest } from "./check.js";
import type * as direct from "./direct.js";
import { integer, locale, PhoneNumber, Uuid } from "./fields.js";

export const StartRequest = z.object({
  ...CreateAuthenticationRequest.shape,
  locale: locale.optional(),
  code_length: integer(4, 10, "must be a whole number from 4 to 10").optional(),
  // "stored with the verification" (docs/contract.md#correlation-id)
  correlation_id: printable.optional(),
  callback_form: z.enum(callbackForms, `must be ${callbackForms.join(" or ")}`).optional(),
});
export type StartRequest = z.infer<typeof StartRequest>;

/** Names a verification by its number, or by its id. */
const target = { customer_uuid: Uuid, phone_number: PhoneNumber.optional(), authentication_uuid: Uuid.optional() };
const named = (value: { readonly phone_number?: string | undefined; readonly authentication_uuid?: string | undefined }) =>
  (value.phone_number === undefined) !== (value.authentication_uuid === undefined);
const oneName = { path: ["phone_number"], error: "or authentication_uuid is required, and not both" };

export const VerificationTarget = z.object(target).refine(named, oneName);
export type VerificationTarget = z.infer<typeof VerificationTarget>;

export const VerificationCheckRequest = z.object({ ...target, check_code: CheckRequest.shape.check_code }).refine(named, oneName);
export type VerificationCheckRequest = z.infer<typeof VerificationCheckRequest>;

/** Options of the calls of `verifier.verifications`. */
export interface VerificationOptions {
  /** 1 to 255 printable ASCII characters: a repeat returns the same result without a second message or a second count. */
  readonly idempotencyKey?: string | undefined;
  /**
   * Keeps verifications of one number apart, for example `login` and `payment`: each scope has its own open
   * verification. Caps and guess budgets count all of them. 1 to 32 characters of `a-z`, `0-9` and `-`. Default
   * `default`. Not with an `authentication_uuid`, which names one verification, in any scope.
   */
  readonly scope?: string | undefined;
  /**
   * `start` once all checks of the open verification are used up: `anew` starts another one, `wait` returns
   * `rate_limited` until it expires or is canceled. Default `anew`.
   */
  readonly usedUp?: "anew" | "wait" | undefined;
  /**
   * For clients that repeat a request after a lost response without an idempotency key, but mark the repeat. `request`
   * identifies the request, for example its body. A repeated start within 130 seconds returns the result of the first;
   * a repeated check does so while the verification is stored; once a newer one has begun, within 130 seconds too.
   */
  readonly repeat?: { readonly request: string; readonly isRepeat: boolean } | undefined;
}

/** `verifier.verifications`: verification by number. */
export interface Verifications {
  /**
   * Sends a code: starts a verification of the number, or sends again in the open one. Rejects with a `VerifierError`
   * of status 400 (nothing was sent) or 503 `unavailable`.
   */
  start(request: direct.StartRequest, options?: VerificationOptions): Promise<StartResult>;
  /** Checks the code that the user entered. **Only `valid` is success.** */
  check(request: direct.VerificationCheckRequest, options?: Omit<VerificationOptions, "usedUp">): Promise<VerificationCheckResult>;
  /** Ends the open verification of a number: its codes are no longer accepted. `undefined`: there is none. */
  cancel(request: direct.VerificationTarget, options?: Pick<VerificationOptions, "scope">): Promise<VerificationResult | undefined>;
  /** Returns the latest verification of a number, or the one with an id. `undefined`: unknown, or no longer stored. */
  get(request: direct.VerificationTarget, options?: Pick<VerificationOptions, "scope">): Promise<VerificationResult | undefined>;
}

/** The latest messages of a verification. */
interface Sent {
  /** The last three messages that were not rejected, oldest first. `at`: `YYYY-MM-DDTHH:MM:SS.sssZ`. `channel` absent: SMS. */
  readonly sends: readonly { readonly attempt: number; readonly at: string; readonly channel?: Channel }[];
  /** The channel of the first message, also of one that was rejected. Absent: SMS. */
  readonly first_channel?: Channel;
}

/** Result of `verifications.start`. */
export interface StartResult extends direct.Standing, direct.MessageFate, direct.Correlated, Sent {
  /** The verification: the same id for each message in it, another one for the next. */
  readonly authentication_uuid: string;
  /** The number in canonical E.164 form. */
  readonly phone_number: string;
  /** When the verification started, `YYYY-MM-DDTHH:MM:SS.sssZ`. */
  readonly created_at: string;
  /** When its codes expire, `YYYY-MM-DDTHH:MM:SS.sssZ`. */
  readonly expires_at: string;
  /**
   * `pending`: a code is being sent. `denied`: not now, because the cool-down has not passed or, with `carrier_refused`,
   * no route took the message. `rate_limited`: a limit rejected it. `spam_detected`: a spam rule rejected it.
   */
  readonly status: "pending" | "denied" | "rate_limited" | "spam_detected";
  /** The message that this call sent: 1 starts a verification, 2 and more are sent in an open one. 0: none was sent. */
  readonly attempt: number;
  /** Whether a verification of the number is open, so that a code can be entered. */
  readonly is_open: boolean;
}

/** Result of `verifications.check`. **Only `valid` is success.** */
export type VerificationCheckResult =
  | (direct.Standing &
      direct.Correlated & {
        /**
         * `valid`: the code is right; returned once. `invalid`: a wrong code. `rate_limited`: no tries left.
         * `without_attempt`: no code was sent.
         */
        readonly status: "valid" | "invalid" | "rate_limited" | "without_attempt";
        readonly authentication_uuid: string;
        /** The number in canonical E.164 form; bind what you unlock to it. */
        readonly phone_number: string;
        /** When the verification started, `YYYY-MM-DDTHH:MM:SS.sssZ`. */
        readonly created_at: string;
        /** The channel of the newest message, if it is not SMS. */
        readonly channel?: Channel;
      })
  /** No verification is open: none was started, or it was verified, canceled or has expired. */
  | { readonly status: "not_found" };

/** A verification, as `get` and `cancel` return it. */
export interface VerificationResult extends direct.Standing, direct.Correlated, Sent {
  readonly authentication_uuid: string;
  /** The number in canonical E.164 form; masked once the verification has ended, unless the request named it. */
  readonly phone_number: string;
  /** `open`: a code can be entered. `used_up`: no tries left. Then: `verified`, `canceled`, `expired`. */
  readonly status: "open" | "used_up" | "verified" | "canceled" | "expired";
  /** `YYYY-MM-DDTHH:MM:SS.sssZ`. */
  readonly created_at: string;
  /** `YYYY-MM-DDTHH:MM:SS.sssZ`. */
  readonly expires_at: string;
  /** Messages tried so far. */
  readonly attempts: number;
}
