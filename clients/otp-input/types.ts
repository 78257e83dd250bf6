/** A type of the DOM library, if the importing program has it. */
type OfPage<Name extends string> = typeof globalThis extends { readonly [N in Name]: { readonly prototype: infer T } } ? T : object;

/** The response of create, retry or check, or the part of it that your server passes to the page. */
export interface OtpAnswer {
  readonly status?: string | null | undefined;
  /** Time of the response. The countdown starts from it, so a wrong clock on the device does no harm. */
  readonly created_at?: string | null | undefined;
  readonly next_retry_at?: string | null | undefined;
  readonly remaining_retry?: number | null | undefined;
  readonly remaining_checks?: number | null | undefined;
  /**
   * No carrier accepted the message of this create or retry: shown instead of its status, as the status
   * `carrier_refused`.
   */
  readonly carrier_refused?: boolean | null | undefined;
}

/** Fired as `otp-complete` when all digits are entered. */
export type OtpCompleteEvent = OfPage<"Event"> & { readonly detail: { readonly code: string } };

/** Fired as `otp-resend` when another message is requested: `voice` if it is to be a call. */
export type OtpResendEvent = OfPage<"Event"> & { readonly detail: { readonly channel: "voice" | undefined } };

/** The properties of the element that pages set. Each except `answer` and `value` has an attribute of the same name. */
export interface OtpInputProperties {
  /** Digits of a code. Default 6. */
  length: number;
  /** The status of create, retry or check, `carrier_refused`, or an error code, shown in words. `""`: nothing. */
  status: string;
  /** When another message can be requested, ISO 8601. `""`: the button for it is hidden. */
  nextRetryAt: string;
  /** Wrong codes that may still be entered; shown with `invalid`. */
  remainingChecks: number | null;
  /** Messages that can still be requested; at 0 the button is hidden. */
  remainingRetry: number | null;
  /** Messages that can be requested after the first. Default 4. With `remainingRetry`, it says how many were sent. */
  retries: number;
  /** Number of messages after which a call is offered too. `null`: never. */
  callAfter: number | null;
  /**
   * The status, the time and what remains, as in the response. Set a new object for each response, so that a repeated status is
   * announced again.
   */
  answer: OtpAnswer | null;
  /** The digits entered so far. */
  value: string;
  /** The field's name in its form. */
  name: string;
  /** A label that the element shows. Your own `<label for>` or `aria-label` works too. */
  label: string;
  disabled: boolean;
  required: boolean;
}

/** `<otp-input>`. Fires `otp-complete` (`detail.code`) and `otp-resend` (`detail.channel`), and `input` and `change` like every field. */
export interface OtpInputElement extends OfPage<"HTMLElement">, OtpInputProperties {
  readonly form: OfPage<"HTMLFormElement"> | null;
  readonly labels: OfPage<"NodeList">;
  readonly validity: OfPage<"ValidityState">;
  readonly validationMessage: string;
  readonly willValidate: boolean;
  checkValidity(): boolean;
  reportValidity(): boolean;
  /** Selects the digits, so that the next input replaces them. */
  select(): void;
}

/** Properties whose attribute is spelled differently. */
type Hyphened = "nextRetryAt" | "remainingChecks" | "remainingRetry" | "callAfter";

/**
 * The attributes for JSX, in addition to those of every element. Names of several words are spelled as attributes, for
 * rendering on a server. `answer` and the events need React 19; with React 18 use a ref.
 */
export interface OtpInputAttributes extends Partial<{ [P in Exclude<keyof OtpInputProperties, Hyphened>]: OtpInputProperties[P] | undefined }> {
  "next-retry-at"?: string | undefined;
  "remaining-checks"?: number | string | undefined;
  "remaining-retry"?: number | string | undefined;
  "call-after"?: number | string | undefined;
  "onotp-complete"?: ((event: OtpCompleteEvent) => void) | undefined;
  "onotp-resend"?: ((event: OtpResendEvent) => void) | undefined;
}

declare global {
  interface HTMLElementTagNameMap {
    "otp-input": OtpInputElement;
  }
  interface HTMLElementEventMap {
    "otp-complete": OtpCompleteEvent;
    "otp-resend": OtpResendEvent;
  }
}
