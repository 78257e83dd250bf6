import * as z from "zod";
import type { Channel } from "../../contract/channel.js";
import type { StartResult, VerificationOptions, VerificationResult } from "../../contract/verification.js";
import type { Verifier } from "../../create-verifier.js";
import { VerifierError } from "../../errors.js";
import type { HttpHandler, HttpRequest } from "../../http/message.js";
import { object, requireVerifier } from "../../options/fields.js";
import { parse as parseOptions } from "../../options/option-errors.js";
import { answer, limitOfCalls, type WireCall, type WireRoute, wireHandler } from "../kit/wire.js";
import { checksUsedUp, errorBody, forNumber, fraudulent, invalidParameter, missingTarget, notFound, notYet, sendsUsedUp, translated } from "./errors.js";
import { CheckRequest, CreateRequest, fieldsOf, parse, ServiceRequest, UpdateRequest } from "./requests.js";
import type { Verification, VerificationCheck } from "./responses.js";
import { pageOf, refuseChanges, serviceOf } from "./services.js";
import { attemptSid, sidOf, uuidOf } from "./sids.js";

export { authenticationUuidOf } from "./sids.js";

export interface TwilioVerifyOptions {
  /** Whether the channel `auto` is sent by SMS, or rejected like all others. Default `"rejected"`. */
  readonly autoChannel?: "sms" | "rejected" | undefined;
  /**
   * The address that clients are given, as in `client.verify.baseUrl`, for the `url` fields of responses. Default:
   * `https://` and the host of the request.
   */
  readonly baseUrl?: string | undefined;
  /** Digits of the codes, 4 to 10, if the guess budget allows it. Default: the policy's, which services show as 6. */
  readonly codeLength?: number | undefined;
  /** The `friendly_name` that services show. It is in no message. Default `"phoneproof"`. */
  readonly friendlyName?: string | undefined;
}

const length = "must be a whole number from 4 to 10";

const Options = object({
  autoChannel: z.enum(["sms", "rejected"], 'must be "sms" or "rejected"').default("rejected"),
  baseUrl: z
    .string("must be an address such as https://otp.example.com")
    .regex(/^https?:\/\/[^\s?#]*[^\s?#/]$/, "must be an address such as https://otp.example.com, without a slash at its end")
    .optional(),
  codeLength: z.int(length).min(4, length).max(10, length).optional(),
  friendlyName: z.string("must be a string").min(1, "must not be empty").max(30, "must be at most 30 characters").default("phoneproof"),
});

/**
 * Makes the handler of the Twilio Verify v2 API, for its SDKs and clients: `app.use(expressHandlers([verifier,
 * twilioVerify(verifier)]))` serves verifications, their checks and services under `/v2/Services`. Throws
 * `VerifierError` `invalid_options`.
 */
export function twilioVerify(verifier: Verifier, options: TwilioVerifyOptions = {}): HttpHandler {
  const { autoChannel, baseUrl, codeLength, friendlyName } = parseOptions(Options, options, "twilioVerify");
  requireVerifier("twilioVerify", verifier);
  const { verifications } = verifier;
  let isWarned = false;
  /** A length that the guess budget forbids is the operator's error, which only clients would see. */
  const warnOfLength = (error: unknown): never => {
    if (!isWarned && error instanceof VerifierError && error.message.startsWith("code_length ")) {
      isWarned = true;
      verifier.http.warn(`phoneproof: creates of twilioVerify are rejected, because of its option codeLength: ${error.message}`);
    }
    throw error;
  };
  const channels = new Map<string, Channel>(autoChannel === "sms" ? [...ownChannels, ["auto", "sms"]] : ownChannels);

  const baseOf = ({ header }: WireCall) => baseUrl ?? `https://${header("host") ?? "localhost"}`;
  const ownService = (call: WireCall) => serviceOf(call.caller, baseOf(call), friendlyName, codeLength ?? 6);
  const now = () => new Date(verifier.http.clock.now()).toISOString();

  const toVerification = (call: WireCall, of: Shown, status: Verification["status"], updated?: string): Verification => {
    const { authentication_uuid: id, created_at, phone_number, sends, first_channel: channel } = of;
    // The first message is sent when a verification starts.
    const tried: Shown["sends"] = sends[0]?.attempt === 1 ? sends : [{ attempt: 1, at: created_at, ...(channel !== undefined && { channel }) }, ...sends];
    const sid = sidOf("VE", id);
    return {
      ...common(call.caller, id, phone_number, created_at, tried.at(-1)?.channel),
      status,
      valid: false,
      date_updated: withoutFraction(updated ?? (tried.at(-1) as { at: string }).at),
      lookup: {},
      send_code_attempts: tried.map(({ attempt, at, channel }) => ({ time: at, channel: wordOf(channel), attempt_sid: attemptSid(id, attempt) })),
      sna: null,
      url: `${baseOf(call)}/v2/Services/${sidOf("VA", call.caller)}/Verifications/${sid}`,
    };
  };

  const create = async (call: WireCall) => {
    const { To, Channel, AppHash, DeviceIp, Locale } = parse(CreateRequest, await call.form());
    const channel = channels.get(Channel);
    const offered = await verifier.channels();
    if (channel === undefined || !offered.includes(channel)) {
      const words = [...channels].flatMap(([word, one]) => (offered.includes(one) ? word : []));
      throw invalidParameter("Channel", `Channel must be one of those that this service has: ${words.join(", ")}.`);
    }
    const request = {
      customer_uuid: call.caller,
      phone_number: To,
      ip: DeviceIp,
      locale: Locale,
      code_length: codeLength,
      channel,
      ...(AppHash !== undefined && { app_realm: AppHash, device_type: "ANDROID" as const }),
    };
    const started = await verifications
      .start(request, { ...callOptions(call, request), usedUp: "wait" })
      .catch(warnOfLength)
      .catch(forNumber(To));
    requireSent(started);
    return answer(201, toVerification(call, started, "pending"));
  };

  const check = async (call: WireCall) => {
    const { Code, To, VerificationSid } = parse(CheckRequest, await call.form());
    if (VerificationSid === undefined && To === undefined) throw missingTarget();
    const target = VerificationSid === undefined ? { phone_number: To as string } : bySid(VerificationSid);
    const missing = () => notFound(`/Services/${call.params.Service}/VerificationCheck`);
    if (target === undefined) throw missing();
    if ("authentication_uuid" in target && To !== undefined) {
      const named = await verifications.get({ phone_number: To, customer_uuid: call.caller }, { scope }).catch(forNumber(To));
      if (named?.authentication_uuid !== target.authentication_uuid) throw missing();
    }
    const checked = await verifications
      .check({ ...target, customer_uuid: call.caller, check_code: Code }, callOptions(call, target))
      .catch(forNumber(To ?? ""));
    if (checked.status === "not_found") throw missing();
    if (checked.status === "rate_limited") throw checksUsedUp();
    const valid = checked.status === "valid";
    const body: VerificationCheck = {
      ...common(call.caller, checked.authentication_uuid, checked.phone_number, checked.created_at, checked.channel),
      status: valid ? "approved" : "pending",
      valid,
      date_updated: withoutFraction(now()),
      sna_attempts_error_codes: [],
    };
    return answer(200, body);
  };

  /** Calls a function with the verification that the path names by its SID or number. It returns `undefined` for 404. */
  const onVerification = (run: (target: Target, call: WireCall) => Promise<Verification | undefined>) => async (call: WireCall) => {
    const { Service, Sid = "" } = call.params;
    const target = Sid.startsWith("+") ? { phone_number: Sid } : bySid(Sid);
    const found = target && (await run(target, call).catch(unknownNumber));
    if (found === undefined) throw notFound(`/Services/${Service}/Verifications/${Sid.slice(0, 64)}`);
    return answer(200, found);
  };

  const fetchOne = onVerification(async (target, call) => {
    const found = await verifications.get({ ...target, customer_uuid: call.caller }, scopeOf(target));
    // One that no carrier accepted is pending until it expires, as create and check report it.
    const isOpen = found?.status === "expired" && found.expires_at > now();
    const status = found && (isOpen ? "pending" : statuses[found.status]);
    // A number names its open verification only.
    return status === undefined || (status === "canceled" && "phone_number" in target) ? undefined : toVerification(call, found as VerificationResult, status);
  });

  const cancel = onVerification(async (target, call) => {
    parse(UpdateRequest, await call.form());
    const canceled = await verifications.cancel({ ...target, customer_uuid: call.caller }, scopeOf(target));
    return canceled && toVerification(call, canceled, "canceled", now());
  });

  const createService = async (call: WireCall) => {
    parse(ServiceRequest, await call.form());
    return answer(201, ownService(call));
  };

  const updateService = async (call: WireCall) => {
    const service = ownService(call);
    refuseChanges(service, fieldsOf(await call.form()));
    return answer(200, service);
  };

  /** The route of a service, which must be the caller's. */
  const inService =
    (route: WireRoute): WireRoute =>
    (call) => {
      const { Service = "" } = call.params;
      if (uuidOf("VA", Service) === call.caller) return route(call);
      throw notFound(call.path.replace(/^\/v2/, "").slice(0, 256), `The service of this account is ${sidOf("VA", call.caller)}.`);
    };

  return wireHandler(verifier.http, {
    root: "/v2/Services",
    roots: ["/v2/Attempts", "/v2/Templates", "/v2/SafeList", "/v2/Forms"],
    routes: {
      "/v2/Services": { GET: (call) => answer(200, pageOf(ownService(call), baseOf(call), call.query)), POST: createService },
      "/v2/Services/{Service}": { GET: inService((call) => answer(200, ownService(call))), POST: inService(updateService) },
      "/v2/Services/{Service}/Verifications": { POST: inService(create) },
      "/v2/Services/{Service}/Verifications/{Sid}": { GET: inService(fetchOne), POST: inService(cancel) },
      "/v2/Services/{Service}/VerificationCheck": { POST: inService(check) },
    },
    unknownPath: (path) => notFound(path.replace(/^\/v2/, "").slice(0, 256)).message,
    authenticate: (request) => customerOf(verifier, request),
    translate: translated,
    errorBody,
  });
}

const scope = "twilio-verify";

type Target = { readonly phone_number: string } | { readonly authentication_uuid: string };

function bySid(sid: string): Target | undefined {
  const id = uuidOf("VE", sid);
  return id === undefined ? undefined : { authentication_uuid: id };
}

type Shown = Pick<VerificationResult, "authentication_uuid" | "created_at" | "first_channel" | "phone_number" | "sends">;

/** An id needs no scope. */
const scopeOf = (target: Target) => ("phone_number" in target ? { scope } : {});

const callOptions = ({ header }: WireCall, target: Target): VerificationOptions => ({ ...scopeOf(target), idempotencyKey: header("idempotency-key") });

/** Verified and expired ones are gone. */
const statuses: Readonly<Partial<Record<VerificationResult["status"], Verification["status"]>>> = {
  open: "pending",
  used_up: "max_attempts_reached",
  canceled: "canceled",
};

const withoutFraction = (timestamp: string): string => timestamp.replace(/\.\d+Z$/, "Z");

/** Channels by their words in this API. */
const ownChannels: readonly (readonly [word: string, Channel])[] = [
  ["sms", "sms"],
  ["whatsapp", "whatsapp"],
  ["call", "voice"],
];

const wordOf = (channel: Channel = "sms") => (channel === "voice" ? ("call" as const) : channel);

const common = (customer: string, id: string, to: string, createdAt: string, channel: Channel | undefined) => ({
  sid: sidOf("VE", id),
  service_sid: sidOf("VA", customer),
  account_sid: sidOf("AC", customer),
  to,
  channel: wordOf(channel),
  amount: null,
  payee: null,
  date_created: withoutFraction(createdAt),
});

/** The customer of Basic credentials: `AC…` and a key of this customer, or any `SK…` and a key. */
async function customerOf(verifier: Verifier, request: HttpRequest): Promise<string> {
  const [, encoded = ""] = /^basic +(\S+) *$/i.exec(request.header("authorization") ?? "") ?? [];
  const [, user = "", key] = /^([^:]*):(.*)$/s.exec(Buffer.from(encoded, "base64").toString()) ?? [];
  const customer = await verifier.customerOf(key);
  if (user.startsWith("SK") || uuidOf("AC", user) === customer) return customer;
  throw new VerifierError("forbidden", "The account SID is not that of the API key's customer.");
}

/** Throws unless a message was sent. */
function requireSent(started: StartResult): void {
  const { status, next_retry_at, retry_after } = started;
  if (status === "denied") throw notYet(next_retry_at && `The next message can be requested at ${next_retry_at}.`);
  if (status === "rate_limited")
    throw sendsUsedUp(limitOfCalls(started) ?? (retry_after === undefined ? undefined : `No message can be sent for ${retry_after} seconds.`));
  if (status === "spam_detected") throw fraudulent();
}

function unknownNumber(error: unknown): undefined {
  if (!(error instanceof VerifierError) || error.code !== "invalid_phone_number") throw error;
}
