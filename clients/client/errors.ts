import type { Fault, FaultCode } from "../../src/contract/fault.js";

/** The service answered that it did not do it: a mistake of the call (400), of the key (403), or an outage (503). What became of a verification is never an error: it is the `status` of the answer. */
export class FaultError extends Error {
  override readonly name = "FaultError";
  /** What went wrong, for programs. */
  declare readonly code: FaultCode;
  /** Where the code is explained. */
  declare readonly doc_url: string;
  /** HTTP status. */
  declare readonly status: number;
  /** Seconds after which to try again, of a 503. */
  declare readonly retry_after: number | undefined;

  constructor({ code, message, doc_url }: Fault, status: number, retry_after?: number) {
    super(message);
    Object.assign(this, { code, doc_url, status, retry_after });
  }
}

/** `timeout`: no whole answer in time. `network`: no connection, or it broke. `bad_answer`: an answer came, and it is none of the service to this call (a proxy's page, a redirect, a status that the call does not have, another authentication's id). */
export type TransportCode = "timeout" | "network" | "bad_answer";

/** No answer of the service came. Whether it did what was asked is not known: repeat the call under the same `idempotencyKey`. */
export class TransportError extends Error {
  override readonly name = "TransportError";
  declare readonly code: TransportCode;
  /** HTTP status of a `bad_answer`. */
  declare readonly status: number | undefined;
  /** Seconds after which to try again, where a `bad_answer` told. */
  declare readonly retry_after: number | undefined;

  constructor(code: TransportCode, message: string, details: Partial<Pick<TransportError, "status" | "retry_after" | "cause">> = {}) {
    super(message, details);
    Object.assign(this, { code }, details);
  }
}
