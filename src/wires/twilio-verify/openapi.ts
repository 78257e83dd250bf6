import { errorsAs, idempotencyKey, type Json, jsonContent, license, reference, schemasOf, servers, stringHeader } from "../../http/openapi.js";
import { CheckRequest, CreateRequest, ServiceRequest, UpdateRequest } from "./requests.js";
import { ErrorResponse, Service, ServiceList, Verification, VerificationCheck } from "./responses.js";

const requests = { CreateRequest, UpdateRequest, CheckRequest, ServiceRequest };
const responses = { Verification, VerificationCheck, Service, ServiceList, Error: ErrorResponse };

const sids = ["VE", "VA", "AC", "VL"].map((kind) => `${kind}${"0123456789abcdef".repeat(2)}`);
const samples = [...sids, "2026-03-01T12:00:00Z"];

const error = errorsAs("Error");

const errors: Readonly<Record<string, Json>> = {
  "400": error("60200 or 60221: a field is wrong."),
  "401": error("20003: the credentials are wrong.", { "WWW-Authenticate": stringHeader("Asks for Basic credentials.") }),
  "403": error("60205, 60410 or 60605: no message is sent to this number."),
  "404": error("20404: there is no such service or verification, or it was approved or has expired."),
  "413": error("60200: the body is over 16 KiB."),
  "429": error("60202, 60203 or 60212: the checks or messages are used up, or the next message comes too early."),
  "500": error("20500."),
  "503": error("20503: the store cannot answer.", { "Retry-After": stringHeader("Seconds to wait.") }),
};

/** `failures`: HTTP statuses of the operation's errors, besides 400, 401, 500 and 503, and with a form 413. */
function operation(
  operationId: string,
  summary: string,
  [status, schema]: readonly [status: string, schema: string],
  failures: readonly string[],
  { form, parameters }: { readonly form?: string; readonly parameters?: readonly Json[] } = {},
): Json {
  const always = ["400", "401", ...(form === undefined ? [] : ["413"]), "500", "503"];
  const failing = Object.entries(errors).filter(([one]) => [...always, ...failures].includes(one));
  return {
    operationId,
    summary,
    ...(parameters !== undefined && { parameters }),
    ...(form !== undefined && { requestBody: { required: true, content: { "application/x-www-form-urlencoded": { schema: reference(form) } } } }),
    responses: { [status]: { description: summary, content: jsonContent(reference(schema)) }, ...Object.fromEntries(failing) },
  };
}

const inPath = (name: string, description: string): Json => ({ name, in: "path", required: true, description, schema: { type: "string" } });
const service = inPath("Service", "SID of the caller's service: VA and the 32 hexadecimal digits of the customer's UUID.");
const verification = inPath("Sid", "SID of a verification (VE…), or the number of the open one.");

/** Returns the OpenAPI 3.1 document of this wire, generated from the schemas that parse its requests. `version`: the package's. */
export function twilioVerifyDocument(version: string): Json {
  const page = ["Page", "PageSize"].map((name) => ({ name, in: "query", required: false, schema: { type: "integer" } }));
  return {
    openapi: "3.1.0",
    info: {
      title: "phoneproof, Twilio Verify v2",
      version,
      description: "What phoneproof serves of the Twilio Verify v2 API. Other routes return 404 with 20404, wrong methods 405 with 20004.",
      license,
    },
    servers,
    security: [{ basic: [] }],
    paths: {
      "/v2/Services": {
        get: operation("listServices", "The caller's one service", ["200", "ServiceList"], [], { parameters: page }),
        post: operation("createService", "The existing service; nothing is created", ["201", "Service"], [], { form: "ServiceRequest" }),
      },
      "/v2/Services/{Service}": {
        parameters: [service],
        get: operation("fetchService", "The service", ["200", "Service"], ["404"]),
        post: operation("updateService", "The service, if nothing is to change; otherwise 400", ["200", "Service"], ["404"], { form: "ServiceRequest" }),
      },
      "/v2/Services/{Service}/Verifications": {
        parameters: [service],
        post: operation(
          "createVerification",
          "A code is being sent, in a new verification or in the open one",
          ["201", "Verification"],
          ["403", "404", "429"],
          {
            form: "CreateRequest",
            parameters: [idempotencyKey],
          },
        ),
      },
      "/v2/Services/{Service}/Verifications/{Sid}": {
        parameters: [service, verification],
        get: operation("fetchVerification", "The verification", ["200", "Verification"], ["404"]),
        post: operation("updateVerification", "The verification was canceled", ["200", "Verification"], ["404"], { form: "UpdateRequest" }),
      },
      "/v2/Services/{Service}/VerificationCheck": {
        parameters: [service],
        post: operation("checkVerification", "The code was checked; the outcome is in `status`", ["200", "VerificationCheck"], ["404", "429"], {
          form: "CheckRequest",
          parameters: [idempotencyKey],
        }),
      },
    },
    components: { securitySchemes: { basic: { type: "http", scheme: "basic" } }, schemas: schemasOf(requests, responses, samples) },
  };
}
