import type { Accounts } from "../access/accounts.js";
import { factHeaders } from "../contract/facts.js";
import { Uuid } from "../contract/fields.js";
import { VerifierError } from "../errors.js";
import type { Observed } from "../observability/observed.js";
import type { Operations } from "../operations/operations.js";
import { answer, toErrorResponse, wrongMethod } from "./answer.js";
import { readJson } from "./body.js";
import type { HttpRequest, HttpResponse } from "./message.js";
import { notFound } from "./not-found.js";
import { matchRoute, type Route } from "./routes.js";

/**
 * Handles a request: route (404), method (405), API key (403, "decided before the body is read"), body (413, 400), then
 * the operation. Never rejects.
 */
export function createHandler(
  { clock, logger, monitor, settings }: Observed,
  accounts: Accounts,
  operations: Operations,
): (request: HttpRequest) => Promise<HttpResponse> {
  return async (request) => {
    const match = matchRoute(request.path);
    let answered: HttpResponse;
    try {
      if (match === undefined) throw noRoute(request);
      const { route, parameter } = match;
      if (request.method !== route.method) answered = wrongMethod(settings.docUrl, [route.method]);
      else {
        const account = await accounts.byKey(request.header("x-api-key"));
        const input = route.method === "GET" ? lookupInput(request, parameter) : await readJson(clock, request);
        const idempotencyKey = route.idempotent ? request.header("idempotency-key") : undefined;
        answered = responseOf(route, await operations[route.operation](input, { idempotencyKey }, account));
      }
    } catch (error) {
      answered = toErrorResponse(logger, settings.docUrl, error);
    }
    monitor.metrics.http(match?.route.operation ?? "none", answered.status);
    return answered;
  };
}

function noRoute(request: HttpRequest): VerifierError {
  return notFound(
    request,
    "/v1",
    "There is no such route; the routes are /v1/authentication, /v1/retry, /v1/check and /v1/lookup/{phone_number}.",
    (path) => matchRoute(path)?.route.path,
  );
}

/**
 * The body holds exactly the fields of its operation (docs/contract.md#exact-fields); headers carry the rest
 * (docs/contract.md#facts).
 */
function responseOf({ response, facts }: Route, answered: object): HttpResponse {
  const known = answered as Readonly<Record<string, unknown>>;
  const body: Record<string, unknown> = {};
  for (const field in response.shape) body[field] = known[field];
  const headers: Record<string, string> = {};
  for (const fact of facts) if (known[fact] !== undefined) headers[factHeaders[fact]] = String(known[fact]);
  return answer(200, body, headers);
}

/** "In the lookup path, `+` may be raw or `%2B` (never read as a space)" (docs/contract.md#plus-in-path). */
function lookupInput(request: HttpRequest, parameter: string): unknown {
  const customer_uuid = request.header("customer-uuid");
  const [issue] = Uuid.safeParse(customer_uuid).error?.issues ?? [];
  if (issue !== undefined) throw new VerifierError("bad_request", `The header customer-uuid ${issue.message}.`);
  try {
    return { phone_number: decodeURIComponent(parameter), customer_uuid };
  } catch {
    throw new VerifierError("bad_request", "The phone number in the path is not properly percent-encoded.");
  }
}
