import { compose } from "./composition.js";
import type { AuthenticationResponse, CreateAuthenticationRequest } from "./contract/authentication.js";
import type { CheckRequest, CheckResponse } from "./contract/check.js";
import type { LookupRequest, LookupResponse } from "./contract/lookup.js";
import type { RetryRequest, RetryResponse } from "./contract/retry.js";
import type { Explanation } from "./engine/explain.js";
import type { CallOptions } from "./engine/operations.js";
import type { HttpHandler } from "./http/message.js";
import type { VerifierOptions } from "./options.js";

/**
 * Phone-number verification by one-time SMS code. Outcomes are the `status` of a result; faults reject with `VerifierError`.
 */
export interface Verifier extends HttpHandler {
  /** Starts a verification and sends a code: `pending`, `rate_limited` or `spam_detected`. Rejects with a `VerifierError` of status 400 (nothing was sent) or 503 `unavailable`. */
  createAuthentication(request: CreateAuthenticationRequest, options?: CallOptions): Promise<AuthenticationResponse>;
  /** Sends a new code: `approved`, or why not. */
  retry(request: RetryRequest): Promise<RetryResponse>;
  /** Judges the code that the user typed. **Only `valid` is success**: `already_validated` must never be taken for it. */
  check(request: CheckRequest, options?: CallOptions): Promise<CheckResponse>;
  /** What is known of a number: from its numbering plan, and from the lookup provider if there is one. */
  lookup(request: LookupRequest): Promise<LookupResponse>;
  /** Which rules fired for an authentication: for operators, never for end users. */
  explain(request: RetryRequest): Promise<Explanation>;
  /** Closes the store and the sender, where they have something to close. Clients that you passed to them stay yours. */
  close(): Promise<void>;
}

/** Builds a verifier. Does no I/O. Throws `VerifierError` `invalid_options`, whose message names every faulty option and the mend. */
export function createVerifier(options: VerifierOptions): Verifier {
  const { operations, handle, logger } = compose(options);
  return {
    createAuthentication: (request, call = {}) => operations.createAuthentication(request, call),
    retry: (request) => operations.retry(request, {}),
    check: (request, call = {}) => operations.check(request, call),
    lookup: (request) => operations.lookup(request, {}),
    explain: (request) => operations.explain(request),
    handle,
    warn: (message) => logger.warn({}, message),
    async close() {
      await Promise.all([options.store.close?.(), options.sender.close?.()]);
    },
  };
}
