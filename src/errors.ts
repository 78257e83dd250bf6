import type { ErrorBody, ErrorCode } from "./contract/error.js";

/**
 * `invalid_options`: the verifier was created or called in a way that no request can cause. The message names the
 * option and the fix.
 */
export type VerifierErrorCode = ErrorCode | "invalid_options";

/** One code, one HTTP status (docs/contract.md#values-and-faults). */
const statuses: Readonly<Partial<Record<VerifierErrorCode, number>>> = {
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  payload_too_large: 413,
  unavailable: 503,
  internal_server_error: 500,
  invalid_options: 500,
};

/**
 * Marks each `VerifierError`. A registered symbol, because ESM and CommonJS each have their own copy of the package.
 */
const brand = Symbol.for("phoneproof.VerifierError");

/**
 * The only error that the verifier throws. Outcomes of an operation (a wrong code, a rate limit) are never errors: they
 * are the `status` of its result.
 */
export class VerifierError extends Error {
  override readonly name = "VerifierError";

  constructor(
    readonly code: VerifierErrorCode,
    message: string,
    options?: { readonly cause?: unknown },
  ) {
    super(message, options);
    Object.defineProperty(this, brand, { value: true });
  }

  /** `instanceof` works for the errors of every copy of the package. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    // biome-ignore lint/complexity/noThisInStatic: a subclass inherits this, and its instances are its own alone
    return super[Symbol.hasInstance](value) || (this === VerifierError && Object(value)[brand] === true);
  }

  /** HTTP status of `code`: 400 for errors that the caller can fix. */
  get status(): number {
    return statuses[this.code] ?? 400;
  }
}

/**
 * "Unknown, deleted and other customers' authentications are indistinguishable"
 * (docs/contract.md#unknown-authentication).
 */
export function unknownAuthentication(): VerifierError {
  return new VerifierError("invalid_auth_uuid", "authentication_uuid is not an authentication of this customer, or it ended and was deleted.");
}

/** For `catch`: an error with this code becomes `undefined`, any other is thrown again. */
export function undefinedFor(code: VerifierErrorCode): (error: unknown) => undefined {
  return (error) => {
    if (!(error instanceof VerifierError) || error.code !== code) throw error;
  };
}

/** Returns the body of an error response. `docUrl` is the page whose anchors are the codes. */
export function errorBody(error: VerifierError, docUrl: string): ErrorBody {
  const code = error.code === "invalid_options" ? "internal_server_error" : error.code;
  return { code, message: error.message, doc_url: `${docUrl}#${code}` };
}
