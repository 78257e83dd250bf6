import type * as z from "zod";
import { AuthenticationResponseSchema, CreateAuthenticationRequest } from "../contract/authentication.js";
import { CheckRequest, CheckResponseSchema } from "../contract/check.js";
import type { Fact } from "../contract/facts.js";
import { LookupRequest, LookupResponseSchema } from "../contract/lookup.js";
import { RetryRequest, RetryResponseSchema } from "../contract/retry.js";

/** One of the four routes (docs/contract.md#routes). */
export interface Route {
  readonly method: "GET" | "POST";
  /** A last segment in braces is a path parameter. */
  readonly path: string;
  readonly operation: "createAuthentication" | "retry" | "check" | "lookup";
  readonly summary: string;
  readonly request: z.ZodObject;
  /** The exact fields of the body. */
  readonly response: z.ZodObject;
  /** Further information, in headers. */
  readonly facts: readonly Fact[];
  /** Whether the Idempotency-Key header is read. */
  readonly idempotent: boolean;
}

const standing: readonly Fact[] = ["phone_number", "next_retry_at", "remaining_retry", "remaining_checks"];
const sent: readonly Fact[] = [...standing, "channel", "retry_after", "carrier_refused"];

/** The routes, for the router, the OpenAPI document and the tests. */
export const routes: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/authentication",
    operation: "createAuthentication",
    summary: "Start a verification and send a code to a phone number",
    request: CreateAuthenticationRequest,
    response: AuthenticationResponseSchema,
    facts: sent,
    idempotent: true,
  },
  {
    method: "POST",
    path: "/v1/retry",
    operation: "retry",
    summary: "Send a new code for an existing authentication",
    request: RetryRequest,
    response: RetryResponseSchema,
    facts: sent,
    idempotent: false,
  },
  {
    method: "POST",
    path: "/v1/check",
    operation: "check",
    summary: "Validate the code the user entered",
    request: CheckRequest,
    response: CheckResponseSchema,
    facts: standing,
    idempotent: true,
  },
  {
    method: "GET",
    path: "/v1/lookup/{phone_number}",
    operation: "lookup",
    summary: "Return carrier and line data for a phone number",
    request: LookupRequest,
    response: LookupResponseSchema,
    facts: [],
    idempotent: false,
  },
];

const patterns = routes.map((route) => ({ route, pattern: new RegExp(`^${route.path.replace(/\{.*\}/, "([^/]+)")}/?$`) }));

/** Returns the route of a path, with its parameter still percent-encoded. One trailing slash is allowed. */
export function matchRoute(path: string) {
  for (const { route, pattern } of patterns) {
    const match = pattern.exec(path);
    if (match !== null) return { route, parameter: match[1] ?? "" };
  }
  return undefined;
}
