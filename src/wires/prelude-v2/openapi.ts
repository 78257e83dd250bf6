import { errorsAs, idempotencyKey, type Json, jsonContent, license, reference, schemasOf, servers, stringHeader } from "../../http/openapi.js";
import { CheckRequest, CreateRequest } from "./requests.js";
import { CheckResponse, CreateResponse, ErrorResponse, LookupResponse, NotedResponse } from "./responses.js";

const requests = { CreateRequest, CheckRequest };
const responses = { CreateResponse, CheckResponse, LookupResponse, NotedResponse, Error: ErrorResponse };

const error = errorsAs("Error");

function operation(operationId: string, summary: string, response: string, more: Json, outcome = "Handled; the outcome is in `status`."): Json {
  return {
    operationId,
    summary,
    ...more,
    responses: {
      "200": { description: outcome, content: jsonContent(reference(response)) },
      "400": error("The request is wrong: see `code` and `param`."),
      "401": error("missing_api_key or invalid_api_key."),
      ...("parameters" in more && "requestBody" in more && { "413": error("The body is over 16 KiB: invalid_request.") }),
      "429": error("premature_retry, too_many_attempts or too_many_checks. Not to be repeated by a client.", { "x-should-retry": stringHeader("false") }),
      "500": error("internal."),
      "503": error("The store cannot answer: internal.", { "Retry-After": stringHeader("Seconds to wait.") }),
    },
  };
}

const tries: Json = {
  name: "x-stainless-retry-count",
  in: "header",
  required: false,
  description: "0 in the first try of a request, 1 and more in its repeats, which return the result of the first.",
  schema: { type: "string" },
};

/** What Prelude's SDK sends, and nothing reads. */
const anyObject: Json = { requestBody: { required: false, content: jsonContent({ type: "object" }) } };

const body = (schema: string): Json => ({ parameters: [tries, idempotencyKey], requestBody: { required: true, content: jsonContent(reference(schema)) } });

/** Returns the OpenAPI 3.1 document of this wire, generated from the schemas that parse its requests. `version`: the package's. */
export function preludeV2Document(version: string): Json {
  const number: Json = { name: "phone_number", in: "path", required: true, schema: { type: "string" }, example: "+14155552671" };
  return {
    openapi: "3.1.0",
    info: {
      title: "phoneproof, Prelude Verify v2",
      version,
      description: "What phoneproof serves of the Prelude Verify v2 API. Other routes return 404 with what does their work, wrong methods 405.",
      license,
    },
    servers,
    security: [{ apiKey: [] }],
    paths: {
      "/v2/verification": {
        post: operation("createVerification", "Send a code, or another one in the open verification", "CreateResponse", body("CreateRequest")),
      },
      "/v2/verification/check": {
        post: operation("checkVerification", "Check the code that the user entered", "CheckResponse", body("CheckRequest")),
      },
      "/v2/lookup/{phone_number}": {
        get: operation("lookup", "Return what is known about a phone number", "LookupResponse", { parameters: [number] }, "What is known about the number."),
      },
      "/v2/watch/event": { post: operation("sendEvents", "Does nothing", "NotedResponse", anyObject) },
      "/v2/watch/feedback": { post: operation("sendFeedbacks", "Does nothing", "NotedResponse", anyObject) },
    },
    components: {
      securitySchemes: { apiKey: { type: "http", scheme: "bearer" } },
      schemas: schemasOf(requests, responses, ["vrf_01hzxk7c9qf8r2m4n6p8s0t1vz"]),
    },
  };
}
