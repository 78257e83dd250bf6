/** One delivery to a caller's webhook. */
export interface CallbackRequest {
  /** The URL as the caller gave it. Only its form has been checked so far. */
  readonly url: string;
  /** UUID of the customer. One customer's webhooks must not slow down another's. */
  readonly customer: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Milliseconds. */
  readonly timeout: number;
  /** Origins that are allowed although they are not https on the public internet. */
  readonly allowOrigins: readonly string[];
}

/**
 * The response's `status`, and the wait that `Retry-After` asked for, in milliseconds; or why there was no response.
 */
export type CallbackResponse = { readonly status: number; readonly retryAfter?: number | undefined } | { readonly failed: string };

/**
 * Posts to webhooks. It must never follow a redirect, and never connect to an address outside the public internet; the
 * check is made on the address actually connected to.
 */
export interface CallbackSender {
  post(request: CallbackRequest): Promise<CallbackResponse>;
  /** Closes open connections. Called when the verifier is closed. */
  close?(): void | Promise<void>;
}
