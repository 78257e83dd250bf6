import type { ErrorBody, ErrorCode } from "../../src/contract/error.js";

/**
 * The service rejected the call: an invalid request (400), an invalid key (403), or an outage (503). The outcome of a
 * verification is never an error: it is the `status` of the response.
 */
export class FaultError extends Error {
  override readonly name = "FaultError";
  /** The kind of error, for programs. */
  declare readonly code: ErrorCode;
  /** The page that explains the code. */
  declare readonly doc_url: string;
  /** HTTP status. */
  declare readonly status: number;
  /** For a 503: seconds after which to try again. */
  declare readonly retry_after: number | undefined;

  constructor({ code, message, doc_url }: ErrorBody, status: number, retry_after?: number) {
    super(message);
    Object.assign(this, { code, doc_url, status, retry_after });
  }
}

/**
 * `timeout`: no complete response in time. `network`: no connection, or it was lost. `bad_answer`: a response that is
 * not the service's to this call, such as a proxy's page, a redirect, a status that the call does not have, or another
 * authentication's id.
 */
export type TransportCode = "timeout" | "network" | "bad_answer";

/**
 * There was no response from the service, so it is unknown whether the call took effect. Repeat it with the same
 * `idempotencyKey`.
 */
export class TransportError extends Error {
  override readonly name = "TransportError";
  declare readonly code: TransportCode;
  /** HTTP status of a `bad_answer`. */
  declare readonly status: number | undefined;
  /** Seconds after which to try again, if a `bad_answer` contained that, as a number or as a date. */
  declare readonly retry_after: number | undefined;

  constructor(code: TransportCode, message: string, details: Partial<Pick<TransportError, "status" | "retry_after">> & { readonly cause?: unknown } = {}) {
    super(message, details);
    Object.assign(this, { code }, details);
  }
}
