/** One delivery to a caller's webhook. */
export interface CallbackRequest {
  /** As the caller gave it; only its form was judged so far. */
  readonly url: string;
  /** UUID of the customer it is for: what one customer's webhooks cost is to be kept from the others. */
  readonly customer: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Milliseconds. */
  readonly timeout: number;
  /** Origins that may be reached although they are not https on the public internet. */
  readonly allowOrigins: readonly string[];
}

/** `status` and, in milliseconds, what `Retry-After` asked for; or why there was no answer. */
export type CallbackAnswer = { readonly status: number; readonly retryAfter?: number | undefined } | { readonly failed: string };

/**
 * Posts to webhooks. It must never connect to an address outside the public internet, decided on the address actually connected to, and never follow a redirect.
 */
export interface CallbackSender {
  post(request: CallbackRequest): Promise<CallbackAnswer>;
  /** Lets go of what it keeps open. The verifier calls it when it is closed. */
  close?(): void | Promise<void>;
}
