import { factHeaders } from "../contract/facts.js";
import type { Account, Accounts } from "../engine/door/account.js";
import type { Eyes } from "../engine/eyes/eyes.js";
import type { Operations } from "../engine/operations.js";
import { faultBody, VerifierError } from "../errors.js";
import type { Logger } from "../ports/logger.js";
import { answer, toFault } from "./answer.js";
import { readJson } from "./body.js";
import type { HttpRequest, HttpResponse } from "./message.js";
import { notFound } from "./not-found.js";
import { type Match, matchRoute, type Route } from "./routes.js";

/** What the request handler needs. */
export interface HandlerParts {
  readonly operations: Operations;
  readonly accounts: Accounts;
  readonly eyes: Eyes;
  readonly logger: Logger;
  readonly docUrl: string;
}

/**
 * Answers a request: route (404), method (405), API key (403, "decided before the body is read"), body (413, 400), then the operation. Never rejects.
 */
export function createHandler(parts: HandlerParts): (request: HttpRequest) => Promise<HttpResponse> {
  return async (request) => {
    const match = matchRoute(request.path);
    const answered = await answerTo(parts, request, match);
    parts.eyes.metrics.http(match?.route.operation ?? "none", answered.status);
    return answered;
  };
}

async function answerTo(parts: HandlerParts, request: HttpRequest, match: Match | undefined): Promise<HttpResponse> {
  try {
    if (match === undefined)
      throw notFound(
        request,
        "/v1",
        "There is no such route; the routes are /v1/authentication, /v1/retry, /v1/check and /v1/lookup/{phone_number}.",
        (path) => matchRoute(path)?.route.path,
      );
    if (request.method !== match.route.method) {
      const fault = new VerifierError("method_not_allowed", `This route answers ${match.route.method} only.`);
      return answer(fault.status, faultBody(fault, parts.docUrl), { allow: match.route.method });
    }
    const account = await parts.accounts.byKey(request.header("x-api-key"));
    return told(match.route, await run(parts.operations, request, match, account));
  } catch (error) {
    return toFault(parts.logger, parts.docUrl, error);
  }
}

/** The body holds exactly the fields of its operation (docs/contract.md#exact-fields): what else is known stands in headers (docs/contract.md#facts). */
function told({ response, facts }: Route, answered: object): HttpResponse {
  const known = answered as Readonly<Record<string, unknown>>;
  const body: Record<string, unknown> = {};
  for (const field in response.shape) body[field] = known[field];
  const headers: Record<string, string> = {};
  for (const fact of facts) if (known[fact] !== undefined) headers[factHeaders[fact]] = String(known[fact]);
  return answer(200, body, headers);
}

async function run(operations: Operations, request: HttpRequest, { route, parameter }: Match, account: Account): Promise<object> {
  const input = route.method === "GET" ? lookupInput(request, parameter) : await readJson(request);
  return operations[route.operation](input, { idempotencyKey: route.idempotent ? request.header("idempotency-key") : undefined }, account);
}

/** "`+` in the lookup path raw or as `%2B` (never read as a space)" (docs/contract.md#plus-in-path). */
function lookupInput(request: HttpRequest, parameter: string): unknown {
  try {
    return { phone_number: decodeURIComponent(parameter), customer_uuid: request.header("customer-uuid") };
  } catch {
    throw new VerifierError("bad_request", "The phone number in the path is not properly percent-encoded.");
  }
}
