import { randomUUID } from "node:crypto";
import * as z from "zod";
import type { Channel } from "../../contract/channel.js";
import type { StartRequest } from "../../contract/direct.js";
import type { LookupResponse as Facts } from "../../contract/lookup.js";
import type { StartResult, VerificationOptions } from "../../contract/verification.js";
import type { Verifier } from "../../create-verifier.js";
import { typeId, uuidOf } from "../../domain/ids.js";
import { VerifierError } from "../../errors.js";
import type { HttpHandler, HttpResponse } from "../../http/message.js";
import { object, requireVerifier } from "../../options/fields.js";
import { parse as parseOptions } from "../../options/option-errors.js";
import { answer, limitOfCalls, type WireCall, wireHandler } from "../kit/wire.js";
import { refusal, tooMany, translated, unknownPath } from "./errors.js";
import { CheckRequest, CreateRequest, deviceTypes, parse } from "./requests.js";
import { type CheckResponse, type CreateResponse, type LookupResponse, lineTypes } from "./responses.js";

/**
 * Returns the `authentication_uuid` of an id of this wire, for `verifier.explain` and the other direct calls.
 * `undefined`: it is not such an id.
 */
export const authenticationUuidOf = (id: string): string | undefined => uuidOf("vrf", id);

const verificationId = (uuid: string): string => typeId("vrf", uuid);

export interface PreludeV2Options {
  /**
   * The `line_type` that lookup returns if neither the numbering plan nor a lookup provider knows it, as for all of
   * North America. Programs take `unknown` for a number that cannot receive codes. Default `"mobile"`.
   */
  readonly ambiguousLineType?: "mobile" | "unknown" | undefined;
}

const Options = object({ ambiguousLineType: z.enum(["mobile", "unknown"], 'must be "mobile" or "unknown"').default("mobile") });

/**
 * Makes the handler of the Prelude Verify v2 API, for its SDKs and clients: `app.use(expressHandlers([verifier,
 * preludeV2(verifier)]))` serves `/v2/verification`, `/v2/verification/check` and `/v2/lookup/{phone_number}`. Throws
 * `VerifierError` `invalid_options`.
 */
export function preludeV2(verifier: Verifier, options: PreludeV2Options = {}): HttpHandler {
  const { ambiguousLineType } = parseOptions(Options, options, "preludeV2");
  requireVerifier("preludeV2", verifier);

  const create = async (call: WireCall) => {
    const body = await call.json();
    const request = parse(CreateRequest, body);
    const offered = await verifier.channels();
    const channel = wishOf(request.options, offered) ?? (await afterCall(request, call.caller, offered));
    const started = await verifier.verifications.start({ ...toStart(request, call.caller), channel }, callOptions(call, body)).catch(blocked);
    const correlationId = "blocked" in started ? request.metadata?.correlation_id : started.correlation_id;
    return answer(200, { ...outcomeOf(started), ...metadata(correlationId), request_id: call.requestId });
  };

  /**
   * The channel of a message in a verification that a call began. Without a channel, the message would be another call
   * (docs/contract.md#channel).
   */
  const afterCall = async ({ target, options }: CreateRequest, customer_uuid: string, offered: readonly Channel[]): Promise<Channel | undefined> => {
    if (options?.method !== "message" || !offered.includes("voice")) return undefined;
    const open = await verifier.verifications.get({ customer_uuid, phone_number: target.value }, { scope });
    return open?.status === "open" && open.first_channel === "voice" ? offered.find((one) => one !== "voice") : undefined;
  };

  const check = async (call: WireCall) => {
    const body = await call.json();
    const { target, code } = parse(CheckRequest, body);
    const named = { customer_uuid: call.caller, phone_number: target.value, check_code: code };
    const checked = await verifier.verifications.check(named, callOptions(call, body));
    if (checked.status === "rate_limited") throw tooMany("too_many_checks", "Too many wrong codes. The codes sent so far are no longer accepted.");
    const { authentication_uuid: id, correlation_id } = checked.status === "not_found" ? noVerification() : checked;
    return answer(200, { id: verificationId(id), status: checkStatuses[checked.status], ...metadata(correlation_id), request_id: call.requestId });
  };

  const lookup = async ({ caller, params }: WireCall) =>
    answer(200, toLookup(await verifier.lookup({ customer_uuid: caller, phone_number: params.phone_number as string }).catch(inPath), ambiguousLineType));

  return wireHandler(verifier.http, {
    root: "/v2",
    routes: {
      "/v2/verification": { POST: create },
      "/v2/verification/check": { POST: check },
      "/v2/lookup/{phone_number}": { GET: lookup },
      "/v2/watch/event": { POST: noted },
      "/v2/watch/feedback": { POST: noted },
    },
    // The vendor's examples of a base address end with /v2/, and the SDKs' paths begin with it.
    rewrite: (path) => path.replace(/^\/v2\/v2\//, "/v2/"),
    unknownPath,
    authenticate: (request) => verifier.customerOf(/^bearer +(\S+) *$/i.exec(request.header("authorization") ?? "")?.[1]),
    translate: (error, request) => translated(error, request.header("authorization")),
    errorBody: ({ code, message, details }, request_id) => ({ code, message, ...details, request_id }),
  });
}

/** The number of a lookup is in its path. */
function inPath(error: unknown): never {
  if (!(error instanceof VerifierError) || error.code !== "invalid_phone_number") throw error;
  throw refusal(400, error.code, error.message, "phone_number");
}

const scope = "prelude-v2";

/** Some clients need an id even where there is no verification. */
const noVerification = (): { readonly authentication_uuid: string; readonly correlation_id?: string } => ({ authentication_uuid: randomUUID() });

const metadata = (correlation_id: string | undefined) => (correlation_id === undefined ? {} : { metadata: { correlation_id } });

/** Programs report to these calls in addition to their verifications; nothing is done. */
const noted = ({ requestId }: WireCall): HttpResponse => answer(200, { status: "success", request_id: requestId });

/** The channel that a request wishes for, if the service has it. Throws for a method or a list that it cannot serve. */
function wishOf({ method, channels, preferred_channel }: NonNullable<CreateRequest["options"]> = {}, all: readonly Channel[]): Channel | undefined {
  const offered = method === "message" ? all.filter((one) => one !== "voice") : all;
  const first = (words: readonly string[]) => words.map((word) => offered.find((one) => one === word)).find((one) => one !== undefined);
  if (method === "voice") {
    if (offered.includes("voice")) return "voice";
    throw refusal(400, "invalid_method", 'options.method must be "auto" or "message": this service makes no calls.', "options.method");
  }
  const wished = channels === undefined ? first([preferred_channel ?? ""]) : first(channels);
  if (channels === undefined || wished !== undefined) return wished;
  throw refusal(400, "channel_not_enabled_in_region", `options.channels must contain one of ${offered.join(", ")}.`, "options.channels");
}

function toStart({ target, metadata = {}, options = {}, signals = {} }: CreateRequest, customer_uuid: string): StartRequest {
  const { app_version, device_id, device_model, device_platform, ip, os_version } = signals;
  const platform = options.app_realm === undefined ? device_platform : "android";
  return {
    customer_uuid,
    phone_number: target.value,
    app_realm: options.app_realm?.value,
    app_version,
    callback_form: "prelude-v2",
    callback_url: options.callback_url,
    code_length: options.code_size,
    correlation_id: metadata.correlation_id,
    device_id,
    device_model,
    device_type: platform && deviceTypes[platform],
    ip,
    locale: options.locale,
    os_version,
  };
}

/** The SDKs send no idempotency key, but count the tries of a request. */
function callOptions({ header }: WireCall, body: unknown): VerificationOptions {
  const tries = header("x-stainless-retry-count");
  return {
    scope,
    idempotencyKey: header("idempotency-key"),
    repeat: tries === undefined ? undefined : { request: JSON.stringify(body), isRepeat: Number(tries) > 0 },
  };
}

type Reason = NonNullable<CreateResponse["reason"]>;
type Blocked = { readonly blocked: Reason };

/** Errors that are a status here. */
function blocked(error: unknown): Blocked {
  if (error instanceof VerifierError && error.code === "blocked_number") return { blocked: "in_block_list" };
  if (error instanceof VerifierError && error.code === "invalid_line") return { blocked: "invalid_phone_line" };
  throw error;
}

/** The body of a create. */
function outcomeOf(started: StartResult | Blocked): Omit<CreateResponse, "metadata" | "request_id"> {
  const refused = (id: string, reason: Reason) => ({ id: verificationId(id), status: "blocked" as const, method: "message" as const, reason });
  if ("blocked" in started) return refused(noVerification().authentication_uuid, started.blocked);
  const { authentication_uuid: id, status, attempt, channel = "sms", is_open, next_retry_at } = started;
  switch (status) {
    case "pending":
      return { id: verificationId(id), status: attempt > 1 ? "retry" : "success", method: channel === "voice" ? "voice" : "message", channels: [channel] };
    case "denied":
      throw tooMany("premature_retry", `The next message can be requested ${next_retry_at === undefined ? "later" : `at ${next_retry_at}`}.`);
    case "rate_limited":
      if (is_open)
        throw tooMany(
          "too_many_attempts",
          limitOfCalls(started) ?? "No more messages can be requested for this number now. The last codes can still be checked.",
        );
      return refused(id, "repeated_attempts");
    case "spam_detected":
      return refused(id, "suspicious");
  }
}

const checkStatuses = {
  valid: "success",
  invalid: "failure",
  without_attempt: "expired_or_not_found",
  not_found: "expired_or_not_found",
} satisfies Record<string, CheckResponse["status"]>;

function toLookup({ line_type, carrier, mcc, mnc, number_ported, ...same }: Facts, ambiguous: LookupResponse["line_type"]): LookupResponse {
  const network = { carrier_name: carrier, mcc, mnc };
  return {
    ...same,
    line_type: line_type === "Unknown" ? ambiguous : lineTypes[line_type],
    network_info: Object.values(network).some((known) => known !== undefined) ? network : undefined,
    flags: number_ported === true ? ["ported"] : undefined,
  };
}
