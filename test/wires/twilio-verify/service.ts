import twilio from "twilio";
import { onTestFinished } from "vitest";
import type * as z from "zod";
import { generateApiKey } from "../../../src/access/accounts.js";
import type { HttpHandler } from "../../../src/http/message.js";
import { type TwilioVerifyOptions, twilioVerify } from "../../../src/wires/twilio-verify/index.js";
import { ErrorResponse, Service, ServiceList, Verification, VerificationCheck } from "../../../src/wires/twilio-verify/responses.js";
import { setUp } from "../../support/verifier.js";
import { type Mount, mounts } from "../listen.js";

interface ServiceOptions {
  readonly verifier?: Parameters<typeof setUp>[0];
  readonly wire?: TwilioVerifyOptions;
  readonly basePath?: string;
  /** Default: node:http. */
  readonly mount?: Mount;
}

const responses: readonly (readonly [path: RegExp, schema: z.ZodType])[] = [
  [/\/Verifications(\/[^/]+)?$/, Verification],
  [/\/VerificationCheck$/, VerificationCheck],
  [/\/Services\/[^/]+$/, Service],
];

/** The same handler; a response that does not match the OpenAPI document fails the test run. */
function documented(handler: HttpHandler): HttpHandler {
  return {
    ...handler,
    async handle(request) {
      const response = await handler.handle(request);
      const ofList = request.method === "POST" ? Service : ServiceList;
      const schema = response.status < 300 ? (responses.find(([path]) => path.test(request.path))?.[1] ?? ofList) : ErrorResponse;
      const body = JSON.parse(response.body) as { status: unknown };
      schema.parse(body);
      if (response.status >= 400 && body.status !== response.status) throw new Error("the body has another status than the response");
      return response;
    },
  };
}

/** The wire, mounted in a server on its own verifier, with the vendor's client and raw requests. Ends with the test. */
export async function serve({ verifier: options, wire, basePath = "", mount = mounts[0]?.[1] as Mount }: ServiceOptions = {}) {
  const customer = crypto.randomUUID();
  const { key } = generateApiKey();
  const made = setUp({ customers: [{ customer_uuid: customer, keys: [key] }], ...options });
  const seen: string[] = [];
  const server = await mount(documented(twilioVerify(made.verifier, wire)), basePath, (request) => void seen.push(`${request.method} ${request.url}`));
  onTestFinished(() => server.close());
  const url = server.url + basePath;
  const sids = { account: `AC${hexOf(customer)}`, service: `VA${hexOf(customer)}` };

  const clientOf = (user: string, password: string, more: NonNullable<Parameters<typeof twilio>[2]> = {}) => {
    const client = twilio(user, password, more);
    client.verify.baseUrl = url;
    return client;
  };
  const client = (more?: NonNullable<Parameters<typeof twilio>[2]>) => clientOf(sids.account, key, more);
  const verify = () => client().verify.v2.services(sids.service);
  /** `body`: as it is sent. `path`: starts with `/v2`, or is relative to the service. */
  const raw = async (method: string, path: string, body?: string | Record<string, string>, headers: Record<string, string> = {}) => {
    const response = await fetch(url + (path.startsWith("/v2") ? path : `/v2/Services/${sids.service}${path}`), {
      method,
      headers: {
        authorization: `Basic ${btoa(`${sids.account}:${key}`)}`,
        ...(body !== undefined && { "content-type": "application/x-www-form-urlencoded" }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === "string" ? body : new URLSearchParams(body).toString() }),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, json: JSON.parse(text) as Record<string, unknown> };
  };
  return { ...made, customer, key, url, sids, seen, clientOf, client, verify, raw };
}

export const hexOf = (uuid: string): string => uuid.replaceAll("-", "");

/** The error that a call of the client rejects with. */
export async function errorOf(
  call: Promise<unknown>,
): Promise<{ name: string; status: number; code: number; message: string; moreInfo: string; details: unknown }> {
  const error = await call.then(
    () => undefined,
    (thrown) => thrown,
  );
  if (!(error instanceof Error)) throw new Error(`no error: ${JSON.stringify(error)}`);
  const { status, code, message, moreInfo, details } = error as never;
  return { name: error.constructor.name, status, code, message, moreInfo, details };
}
