import * as z from "zod";
import { callerFaultCodes, Fault, transportFaultCodes } from "../contract/fault.js";
import { descriptions } from "../contract/fields.js";
import { LookupRequest } from "../contract/lookup.js";
import { type Route, routes } from "./routes.js";

type Json = Record<string, unknown>;

/** A JSON Schema without zod's own marks. */
function schemaOf(schema: z.ZodType, io: "input" | "output"): Json {
  const { $schema, ...rest } = z.toJSONSchema(schema, { io, target: "draft-2020-12", metadata: descriptions }) as Json;
  return rest;
}

const jsonContent = (schema: Json): Json => ({ "application/json": { schema } });
const reference = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });

const fault = (description: string, headers?: Json): Json => ({
  description,
  ...(headers !== undefined && { headers }),
  content: jsonContent(reference("Fault")),
});
const stringHeader = (description: string): Json => ({ description, schema: { type: "string" } });

/** Names of the schemas by operation, as spec.md names the resources. */
const names: Readonly<Record<Route["operation"], { readonly request: string; readonly response: string }>> = {
  createAuthentication: { request: "CreateAuthenticationRequest", response: "Authentication" },
  retry: { request: "RetryRequest", response: "RetryResult" },
  check: { request: "CheckRequest", response: "CheckResult" },
  lookup: { request: "LookupRequest", response: "PhoneLookupResult" },
};

function parametersOf(route: Route): Json[] {
  const list: Json[] = [];
  if (route.method === "GET") {
    const { properties } = schemaOf(LookupRequest, "input") as { properties: Record<string, Json> };
    list.push({ name: "phone_number", in: "path", required: true, schema: properties.phone_number, example: "+14155552671" });
    list.push({ name: "customer-uuid", in: "header", required: true, schema: properties.customer_uuid });
  }
  if (route.idempotent) {
    list.push({
      name: "Idempotency-Key",
      in: "header",
      required: false,
      description: "The same key and body answer the same result without a second message or a second count.",
      schema: { type: "string", minLength: 1, maxLength: 255 },
    });
  }
  return list;
}

function operationOf(route: Route): Json {
  const { request, response } = names[route.operation];
  const parameters = parametersOf(route);
  return {
    operationId: route.operation,
    summary: route.summary,
    ...(parameters.length > 0 && { parameters }),
    ...(route.method === "POST" && { requestBody: { required: true, content: jsonContent(reference(request)) } }),
    responses: {
      "200": { description: "Handled; domain outcomes are in `status`.", content: jsonContent(reference(response)) },
      "400": fault(`A fault the caller can act on: ${callerFaultCodes.join(", ")}.`),
      "403": fault("Missing or wrong API key: forbidden."),
      ...(route.method === "POST" && { "413": fault("The body is over 16 KiB: payload_too_large.") }),
      "500": fault("internal_server_error."),
      "503": fault("The store cannot answer: unavailable.", { "Retry-After": stringHeader("Seconds to wait.") }),
    },
  };
}

/** The OpenAPI 3.1 document of the four routes, made of the schemas that parse the requests. `version` is the package's. */
export function openApiDocument(version: string): Json {
  const schemas: Record<string, Json> = { Fault: schemaOf(Fault, "output") };
  const paths: Record<string, Json> = {};
  for (const route of routes) {
    const { request, response } = names[route.operation];
    if (route.method === "POST") schemas[request] = schemaOf(route.request, "input");
    schemas[response] = schemaOf(route.response, "output");
    paths[route.path] = { [route.method.toLowerCase()]: operationOf(route) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "phoneproof",
      version,
      description: `Phone-number verification by one-time SMS code. Unknown routes answer 404, wrong methods 405; fault codes that are not on a 400: ${transportFaultCodes.join(", ")}.`,
      license: { name: "MIT", identifier: "MIT" },
    },
    security: [{ apiKey: [] }],
    paths,
    components: { securitySchemes: { apiKey: { type: "apiKey", in: "header", name: "x-api-key" } }, schemas },
  };
}
