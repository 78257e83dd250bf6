import { errorBody, VerifierError } from "../errors.js";
import type { Logger } from "../ports/logger.js";
import type { HttpResponse } from "./message.js";

/** The Retry-After of a 503 (docs/contract.md#other-faults). Seconds. */
const retryAfter = "2";

export function answer(status: number, body: unknown, headers?: Record<string, string>): HttpResponse {
  return { status, headers: { "content-type": "application/json", "cache-control": "no-store", ...headers }, body: JSON.stringify(body) };
}

/** The response to an error: "same body shape, nothing internal in `message`" (docs/contract.md#other-faults). */
export function toErrorResponse(logger: Logger, docUrl: string, error: unknown): HttpResponse {
  const known = error instanceof VerifierError && error.status !== 500 ? error : internal(logger, error);
  return answer(known.status, errorBody(known, docUrl), known.code === "unavailable" ? { "retry-after": retryAfter } : undefined);
}

/** The 405 of a route that exists. */
export function wrongMethod(docUrl: string, allowed: readonly string[]): HttpResponse {
  const error = new VerifierError("method_not_allowed", `This route accepts ${allowed.join(" and ")} only.`);
  return answer(error.status, errorBody(error, docUrl), { allow: allowed.join(", ") });
}

function internal(logger: Logger, err: unknown): VerifierError {
  logger.error({ err }, "a request failed unexpectedly");
  return new VerifierError("internal_server_error", "Something went wrong on our side.");
}
