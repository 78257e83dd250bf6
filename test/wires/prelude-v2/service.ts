import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import Prelude from "@prelude.so/sdk";
import type * as z from "zod";
import type { HttpHandler } from "../../../src/http/message.js";
import { type PreludeV2Options, preludeV2 } from "../../../src/wires/prelude-v2/index.js";
import { CheckResponse, CreateResponse, ErrorResponse, LookupResponse, NotedResponse } from "../../../src/wires/prelude-v2/responses.js";
import { numberOf, setUp } from "../../support/verifier.js";
import { type Listening, listening, type Mount, mounts } from "../listen.js";

export async function listen(listener: RequestListener): Promise<Listening> {
  return listening(createServer(listener));
}

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

/** The same handler; a response that is not what the OpenAPI document says fails the test run. */
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

/** The wire, mounted in a server, on a verifier of its own, with the vendor's client and raw requests. */
export async function serve({ verifier: options, wire, basePath = "", mount = mounts[0]?.[1] as Mount }: ServiceOptions = {}) {
  const made = setUp(options);
  const seen: { readonly method: string; readonly path: string; readonly tries: string | undefined }[] = [];
  const server = await mount(documented(preludeV2(made.verifier, wire)), basePath, ({ method = "", url = "", headers }) => {
    seen.push({ method, path: url, tries: headers["x-stainless-retry-count"] as string | undefined });
  });
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
  return { ...made, url: server.url, seen, client, raw, target, close: server.close };
}

export type PreludeService = Awaited<ReturnType<typeof serve>>;

/** A proxy that hands each request on, and cuts the connection instead of answering while `drops` is above 0. */
export async function losingProxy(to: string): Promise<Listening & { drop(answers: number): void }> {
  let drops = 0;
  const proxy = await listen(async (request, response) => {
    const answered = await fetch(to + request.url, {
      method: request.method as string,
      headers: Object.entries(request.headers).filter(([name]) => !/^(connection|host|content-length)$/.test(name)) as [string, string][],
      body: await textOf(request),
    });
    const body = await answered.text();
    if (drops > 0) {
      drops--;
      response.destroy();
      return;
    }
    response.writeHead(answered.status, { "content-type": answered.headers.get("content-type") ?? "" }).end(body);
  });
  return {
    ...proxy,
    drop(answers) {
      drops = answers;
    },
  };
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request) text += chunk;
  return text;
}
