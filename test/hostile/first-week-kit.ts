import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { nodeHandler } from "../../adapters/http/node.js";
import type { CodeMessage, SendOutcome, SmsSender, VerifierOptions } from "../../src/index.js";
import { router } from "../../src/routing/router.js";
import { preludeV2 } from "../../src/wires/prelude-v2/index.js";
import { twilioVerify } from "../../src/wires/twilio-verify/index.js";
import { listening } from "../wires/listen.js";
import { keyOf, type Service, service, wide } from "./kit.js";

interface Documented {
  readonly headers?: Record<string, { readonly schema: object }>;
  readonly content?: Record<string, { readonly schema: object }>;
}
interface Document {
  readonly paths: Record<string, Record<string, { readonly responses: Record<string, Documented> }>>;
}

const files = { v1: "openapi.json", prelude: "openapi-prelude-v2.json", twilio: "openapi-twilio-verify.json" } as const;
export type Wire = keyof typeof files;

const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
const documents = Object.fromEntries(
  Object.entries(files).map(([wire, file]) => {
    const document = JSON.parse(readFileSync(join(import.meta.dirname, "../..", file), "utf8"));
    ajv.addSchema(document, wire);
    return [wire, document];
  }),
) as unknown as Record<Wire, Document>;

/** A schema of a document, whose references are to that document. */
const schemaIn = (wire: Wire, schema: object): object => JSON.parse(JSON.stringify(schema).replaceAll('"#/', `"${wire}#/`)) as object;

/** How a value violates a schema of a document; empty if it does not. */
function faultOf(wire: Wire, schema: object, value: unknown): string {
  return ajv.validate(schemaIn(wire, schema), value) ? "" : ajv.errorsText(ajv.errors);
}

/** A header as a generated client reads it. */
function parsed(text: string, schema: { readonly type?: string }): unknown {
  if (schema.type === "integer") return /^-?\d+$/.test(text) ? Number(text) : text;
  if (schema.type === "boolean") return text === "true" ? true : text === "false" ? false : text;
  return text;
}

export interface Told {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: bodies of every shape.
  readonly body: any;
}

export interface World extends Service {
  readonly url: string;
  readonly messages: CodeMessage[];
  readonly serviceSid: string;
  readonly auth: Record<Wire, Record<string, string>>;
  /** The outcome of the next messages, by channel; `accepted` unless set. */
  readonly outcomes: Record<string, SendOutcome>;
  /** Parts of responses that the documents do not allow. */
  readonly faults: string[];
  /** The responses so far, such as `v1 POST /check 200 valid`. */
  readonly seen: Set<string>;
  /** Sends one request to a path of a document, and compares the response with it. */
  call(
    wire: Wire,
    method: "GET" | "POST",
    template: string,
    body?: unknown,
    more?: { path?: Record<string, string>; headers?: Record<string, string> },
  ): Promise<Told>;
  code(to: string): string;
  close(): Promise<void>;
}

/** One customer's service with every wire and the given channels, over HTTP. */
export async function world(options: Partial<VerifierOptions> = {}, channels: readonly string[] = ["sms"]): Promise<World> {
  const messages: CodeMessage[] = [];
  const outcomes: Record<string, SendOutcome> = {};
  const senderOf = (channel: string): SmsSender =>
    ({
      ...(channel !== "sms" && { channel }),
      send: async (message: CodeMessage) => {
        messages.push(message);
        return outcomes[channel] ?? { outcome: "accepted" };
      },
    }) as SmsSender;
  const { policy, ...rest } = options;
  const sender = router({ routes: channels.map((channel, index) => ({ name: channel, sender: senderOf(channel), priority: index, price: 0.01 })) });
  const made = service({ countries: ["FR", "GB", "US"], ...rest, sender: sender as never, policy: { ...policy, limits: { ...wide, ...policy?.limits } } });
  const handle = nodeHandler([made.verifier, preludeV2(made.verifier), twilioVerify(made.verifier)]);
  const server = await listening(createServer(handle));
  const digits = made.customer.replaceAll("-", "");
  const faults: string[] = [];
  const seen = new Set<string>();
  const auth = {
    v1: { "x-api-key": keyOf(made.customer), "content-type": "application/json" },
    prelude: { authorization: `Bearer ${keyOf(made.customer)}`, "content-type": "application/json" },
    twilio: {
      authorization: `Basic ${Buffer.from(`AC${digits}:${keyOf(made.customer)}`).toString("base64")}`,
      "content-type": "application/x-www-form-urlencoded",
    },
  };
  const at: World = Object.assign(made, {
    url: server.url,
    messages,
    serviceSid: `VA${digits}`,
    auth,
    outcomes,
    faults,
    seen,
    async close() {
      await server.close();
      await made.verifier.close();
    },
    code: (to: string) => messages.filter((one) => one.to === to).at(-1)?.code ?? "none",
    async call(
      wire: Wire,
      method: "GET" | "POST",
      template: string,
      body?: unknown,
      more: { path?: Record<string, string>; headers?: Record<string, string> } = {},
    ) {
      const parts: Record<string, string> = { Service: at.serviceSid, ...more.path };
      const path = template.replace(/\{(\w+)\}/g, (_, name: string) => parts[name] ?? name);
      const sent = wire === "twilio" ? new URLSearchParams(body as Record<string, string>).toString() : typeof body === "string" ? body : JSON.stringify(body);
      const response = await fetch(at.url + path, { method, headers: { ...auth[wire], ...more.headers }, ...(method === "POST" && { body: sent }) });
      const text = await response.text();
      const what = `${method} ${template} ${response.status}`;
      const told: Told = { status: response.status, headers: response.headers, text, body: JSON.parse(text) };
      seen.add(`${wire} ${what.replace(/\/v[12]/, "")} ${told.body.status ?? ""} ${told.body.code ?? ""} ${told.body.reason ?? ""}`.trim());
      const known = documents[wire].paths[template]?.[method.toLowerCase()]?.responses[String(response.status)];
      if (known === undefined) faults.push(`${what} is not in ${files[wire]}`);
      const type = response.headers.get("content-type") ?? "";
      if (!/^application\/json(;|$)/.test(type)) faults.push(`${what}: content-type ${type}`);
      const schema = known?.content?.["application/json"]?.schema;
      const wrong = schema && faultOf(wire, schema, told.body);
      if (wrong) faults.push(`${what}: ${wrong}: ${text}`);
      for (const [name, value] of response.headers) {
        const key = Object.keys(known?.headers ?? {}).find((one) => one.toLowerCase() === name);
        if (key === undefined) {
          if (name.startsWith("x-phoneproof") || name === "retry-after" || name === "x-should-retry")
            faults.push(`${what}: header ${name} is not in ${files[wire]}`);
          continue;
        }
        const inHeader = known?.headers?.[key]?.schema ?? {};
        const bad = faultOf(wire, inHeader, parsed(value, inHeader));
        if (bad) faults.push(`${what}: header ${name}: ${value}: ${bad}`);
      }
      return told;
    },
  });
  return at;
}
