/** A type of the page's library, where the program that imports this has it. */
type OfPage<Name extends string> = typeof globalThis extends { readonly [N in Name]: { readonly prototype: infer T } } ? T : object;

/** What your server was answered by create, retry or check, or as much of it as it tells the page. */
export interface OtpAnswer {
  readonly status?: string | null | undefined;
  /** Time of the answer: what the countdown is measured from, so that a clock of the device that is off does no harm. */
  readonly created_at?: string | null | undefined;
  readonly next_retry_at?: string | null | undefined;
  readonly remaining_retry?: number | null | undefined;
  readonly remaining_checks?: number | null | undefined;
  /** No carrier took the message of this create or retry: told in the place of its status, as the status `carrier_refused`. */
  readonly carrier_refused?: boolean | null | undefined;
}

/** Of `otp-complete`: as many digits as the code has are there. */
export type OtpCompleteEvent = OfPage<"Event"> & { readonly detail: { readonly code: string } };

/** The properties of the element that pages set. Each but `answer` and `value` stands in the attribute of its name. */
export interface OtpInputProperties {
  /** Digits of a code. Default 6. */
  length: number;
  /** What create, retry or check answered, `carrier_refused`, or the code of a fault: shown in words. `""`: nothing. */
  status: string;
  /** When another message may be asked for, ISO 8601. The button for it is there while this is set; `""`: it is not. */
  nextRetryAt: string;
  /** Wrong codes that may still be typed; told with `invalid`. */
  remainingChecks: number | null;
  /** Messages that may still be asked for; at 0 the button goes. */
  remainingRetry: number | null;
  /** All of these at once, as the answer has them. Set it anew for each answer: the same status twice is then told twice. */
  answer: OtpAnswer | null;
  /** The digits so far. */
  value: string;
  /** The field's name in its form. */
  name: string;
  /** A label that the element shows. A `<label for>` of yours, or `aria-label`, does as well. */
  label: string;
  disabled: boolean;
  required: boolean;
}

/** `<otp-input>`. Fires `otp-complete` (`detail.code`) and `otp-resend`, and `input` and `change` as every field does. */
export interface OtpInputElement extends OfPage<"HTMLElement">, OtpInputProperties {
  readonly form: OfPage<"HTMLFormElement"> | null;
  readonly labels: OfPage<"NodeList">;
  readonly validity: OfPage<"ValidityState">;
  readonly validationMessage: string;
  readonly willValidate: boolean;
  checkValidity(): boolean;
  reportValidity(): boolean;
  /** Selects the digits, so that the next one typed takes their place. */
  select(): void;
}

/** Properties whose attribute is written otherwise. */
type Hyphened = "nextRetryAt" | "remainingChecks" | "remainingRetry";

/**
 * What may be written in JSX, beside what every element takes. Names of several words are the attributes': what a server renders knows no others. `answer` and the events are React 19's; with React 18 use a ref.
 */
export interface OtpInputAttributes extends Partial<{ [P in Exclude<keyof OtpInputProperties, Hyphened>]: OtpInputProperties[P] | undefined }> {
  "next-retry-at"?: string | undefined;
  "remaining-checks"?: number | string | undefined;
  "remaining-retry"?: number | string | undefined;
  "onotp-complete"?: ((event: OtpCompleteEvent) => void) | undefined;
  "onotp-resend"?: ((event: OfPage<"Event">) => void) | undefined;
}

declare global {
  interface HTMLElementTagNameMap {
    "otp-input": OtpInputElement;
  }
  interface HTMLElementEventMap {
    "otp-complete": OtpCompleteEvent;
    "otp-resend": OfPage<"Event">;
  }
}
