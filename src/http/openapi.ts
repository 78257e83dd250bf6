import * as z from "zod";
import { printableForm, printablePattern } from "../contract/authentication.js";
import { DeliveryStatusEventSchema } from "../contract/callback.js";
import { callerErrorCodes, ErrorBodySchema, transportErrorCodes } from "../contract/error.js";
import { type Fact, factHeaders, facts } from "../contract/facts.js";
import { descriptions } from "../contract/fields.js";
import { LookupRequest } from "../contract/lookup.js";
import { type Route, routes } from "./routes.js";

export type Json = Record<string, unknown>;

/** What mock servers return for a timestamp: the one that they make up has no milliseconds. */
const sampleTime = "2026-03-01T12:00:00.000Z";

/** A JSON Schema without zod's own fields and bounds. `samples`: values for strings of a response that have a pattern. */
export function schemaOf(schema: z.ZodType, io: "input" | "output", samples: readonly string[] = [sampleTime]): Json {
  // zod's pattern lacks the addresses that end in an IPv4 one, which its own check accepts.
  const override = ({ jsonSchema }: { readonly jsonSchema: z.core.JSONSchema.BaseSchema }) => {
    if (jsonSchema.format === "ipv6") delete jsonSchema.pattern;
    if (jsonSchema.pattern === printableForm.source) jsonSchema.pattern = printablePattern;
    if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
    if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
    const { pattern } = jsonSchema;
    const sample = io === "input" || pattern === undefined ? undefined : samples.find((one) => new RegExp(pattern).test(one));
    if (sample !== undefined) jsonSchema.examples = [sample];
  };
  const { $schema, ...rest } = z.toJSONSchema(schema, { io, target: "draft-2020-12", metadata: descriptions, override }) as Json;
  return rest;
}

export const jsonContent = (schema: Json): Json => ({ "application/json": { schema } });
export const reference = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });

export const stringHeader = (description: string): Json => ({ description, schema: { type: "string" } });

/** Returns what describes an error response. `schema`: the name of its body's schema. */
export function errorsAs(schema: string): (description: string, headers?: Json) => Json {
  const content = jsonContent(reference(schema));
  return (description, headers) => ({ description, ...(headers !== undefined && { headers }), content });
}

const error = errorsAs("Error");

/** The schemas of a document by name. `samples`: as for `schemaOf`, besides timestamps. */
export function schemasOf(requests: Readonly<Record<string, z.ZodType>>, responses: typeof requests, samples: readonly string[]): Json {
  const all = (schemas: typeof requests, io: "input" | "output") =>
    Object.entries(schemas).map(([name, schema]) => [name, schemaOf(schema, io, [sampleTime, ...samples])]);
  return Object.fromEntries([...all(requests, "input"), ...all(responses, "output")]);
}

export const idempotencyKey: Json = {
  name: "Idempotency-Key",
  in: "header",
  required: false,
  description: "The same key and body return the same result without a second message or a second count.",
  schema: { type: "string", minLength: 1, maxLength: 255 },
};

export const license: Json = { name: "MIT", identifier: "MIT" };
/** Where the document is served; OpenAPI's default, which some tools require to be written. */
export const servers: readonly Json[] = [{ url: "/" }];

/**
 * By operation: its schemas' names, as the specification names the resources, and its id. Generators name the type of a
 * response after the id: `check` would have that of our schema CheckResult.
 */
const names: Readonly<Record<Route["operation"], { readonly id: string; readonly request: string; readonly response: string }>> = {
  createAuthentication: { id: "createAuthentication", request: "CreateAuthenticationRequest", response: "Authentication" },
  retry: { id: "retryAuthentication", request: "RetryRequest", response: "RetryResult" },
  check: { id: "checkAuthentication", request: "CheckRequest", response: "CheckResult" },
  lookup: { id: "lookup", request: "LookupRequest", response: "PhoneLookupResult" },
};

function parametersOf(route: Route): Json[] {
  const list: Json[] = [];
  if (route.method === "GET") {
    const { properties } = schemaOf(LookupRequest, "input") as { properties: Record<string, Json> };
    list.push({ name: "phone_number", in: "path", required: true, schema: properties.phone_number, example: "+14155552671" });
    list.push({ name: "customer-uuid", in: "header", required: true, schema: properties.customer_uuid });
  }
  if (route.idempotent) list.push(idempotencyKey);
  return list;
}

/** A header with information that is not in the body. */
function factHeader(fact: Fact): [name: string, header: Json] {
  const { description, ...schema } = schemaOf(facts[fact], "output");
  return [factHeaders[fact], { description, schema }];
}

function operationOf(route: Route): Json {
  const { id, request, response } = names[route.operation];
  const parameters = parametersOf(route);
  return {
    operationId: id,
    summary: route.summary,
    ...(parameters.length > 0 && { parameters }),
    ...(route.method === "POST" && { requestBody: { required: true, content: jsonContent(reference(request)) } }),
    responses: {
      "200": {
        description: route.method === "GET" ? "What is known about the number." : "Handled; domain outcomes are in `status`.",
        ...(route.facts.length > 0 && { headers: Object.fromEntries(route.facts.map(factHeader)) }),
        content: jsonContent(reference(response)),
      },
      "400": error(`An error the caller can act on: ${callerErrorCodes.join(", ")}.`),
      "403": error("Missing or wrong API key: forbidden."),
      ...(route.method === "POST" && {
        "408": error("The body did not arrive within 10 s: request_timeout."),
        "413": error("The body is over 16 KiB: payload_too_large."),
      }),
      "500": error("internal_server_error."),
      "503": error("The store does not respond: unavailable.", { "Retry-After": stringHeader("Seconds to wait.") }),
    },
  };
}

/** The body posted to `callback_url` (docs/contract.md#callback-body). */
function deliveryStatusWebhook(): Json {
  const header = (name: string, description: string): Json => ({ name, in: "header", required: true, description, schema: { type: "string" } });
  return {
    operationId: "deliveryStatus",
    summary: "Delivery status of a message, posted to callback_url at least once",
    security: [],
    parameters: [
      header("webhook-id", "The same over redeliveries."),
      header("webhook-timestamp", "Seconds since the epoch."),
      header(
        "webhook-signature",
        "`v1,` and the base64 of HMAC-SHA-256 over `id.timestamp.body` (Standard Webhooks); several, separated by spaces, while secrets rotate.",
      ),
    ],
    requestBody: { required: true, content: jsonContent(reference("DeliveryStatusEvent")) },
    responses: {
      "2XX": { description: "Delivered." },
      "410": { description: "No more deliveries of this event." },
      "429": { description: "Delivered again after Retry-After." },
      "503": { description: "Delivered again after Retry-After." },
      default: { description: "Delivered again over about three days." },
    },
  };
}

/**
 * The OpenAPI 3.1 document of the four routes, generated from the schemas that parse the requests. `version`: the
 * package's.
 */
export function openApiDocument(version: string): Json {
  const schemas: Record<string, Json> = { Error: schemaOf(ErrorBodySchema, "output"), DeliveryStatusEvent: schemaOf(DeliveryStatusEventSchema, "output") };
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
      description: `Phone-number verification by one-time SMS code. Unknown routes return 404, wrong methods 405; error codes of other statuses than 400: ${transportErrorCodes.join(", ")}.`,
      license,
    },
    servers,
    security: [{ apiKey: [] }],
    paths,
    webhooks: { delivery_status: { post: deliveryStatusWebhook() } },
    components: { securitySchemes: { apiKey: { type: "apiKey", in: "header", name: "x-api-key" } }, schemas },
  };
}
