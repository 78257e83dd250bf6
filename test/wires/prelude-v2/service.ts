import Prelude from "@prelude.so/sdk";
import { onTestFinished } from "vitest";
import type * as z from "zod";
import type { HttpHandler } from "../../../src/http/message.js";
import { type PreludeV2Options, preludeV2 } from "../../../src/wires/prelude-v2/index.js";
import { CheckResponse, CreateResponse, ErrorResponse, LookupResponse, NotedResponse } from "../../../src/wires/prelude-v2/responses.js";
import { numberOf, setUp } from "../../support/verifier.js";
import { type Mount, mounts } from "../listen.js";

interface ServiceOptions {
  readonly verifier?: Parameters<typeof setUp>[0];
  readonly wire?: PreludeV2Options;
  readonly basePath?: string;
  /** Default: node:http. */
  readonly mount?: Mount;
}

const responses: readonly (readonly [path: RegExp, schema: z.ZodType])[] = [
  [/\/verification$/, CreateResponse],
  [/\/check$/, CheckResponse],
  [/\/lookup\//, LookupResponse],
  [/\/watch\//, NotedResponse],
];

/** The same handler; a response that does not match the OpenAPI document fails the test run. */
function documented(handler: HttpHandler): HttpHandler {
  return {
    ...handler,
    async handle(request) {
      const response = await handler.handle(request);
      const schema = response.status === 200 ? responses.find(([path]) => path.test(request.path))?.[1] : ErrorResponse;
      schema?.parse(JSON.parse(response.body));
      return response;
    },
  };
}

/** The wire, mounted in a server on its own verifier, with the vendor's client and raw requests. Ends with the test. */
export async function serve({ verifier: options, wire, basePath = "", mount = mounts[0]?.[1] as Mount }: ServiceOptions = {}) {
  const made = setUp(options);
  const seen: { readonly method: string; readonly path: string; readonly tries: string | undefined }[] = [];
  const server = await mount(documented(preludeV2(made.verifier, wire)), basePath, ({ method = "", url = "", headers }) => {
    seen.push({ method, path: url, tries: headers["x-stainless-retry-count"] as string | undefined });
  });
  onTestFinished(() => server.close());
  const client = (more: ConstructorParameters<typeof Prelude>[0] = {}) => new Prelude({ apiToken: made.apiKey, baseURL: server.url + basePath, ...more });
  const raw = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const response = await fetch(server.url + path, {
      method,
      headers: { authorization: `Bearer ${made.apiKey}`, "content-type": "application/json", ...headers },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, json: JSON.parse(text) as Record<string, unknown> };
  };
  const target = (index = 1) => ({ type: "phone_number" as const, value: numberOf(index) });
  return { ...made, url: server.url, seen, client, raw, target };
}

export type PreludeService = Awaited<ReturnType<typeof serve>>;
