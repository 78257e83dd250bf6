import type { CodeMessage, SendContext, SendOutcome, SmsSender } from "../../src/ports/sms-sender.js";
import { errorToken, failureOf } from "../kit/error-code.js";
import { isRecord, pick } from "../kit/json.js";
import { onlyOptions, optionError, requireText } from "../kit/option-error.js";
import type { CarrierRequest } from "../kit/request.js";
import { whyNotSent } from "../kit/transport.js";
import { contextKey } from "./aws-receipts.js";
import { type CarrierOptions, carrierOptions, carrierSender, surelyNotSent, type Variables } from "./kit/carrier-sender.js";
import { framedSender, type Made, type SenderOptions, senderOptions } from "./kit/framed-sender.js";
import { acceptedAs, notSent } from "./kit/outcomes.js";
import { type AwsCredentials, signV4 } from "./sigv4.js";

export { awsReceipts } from "./aws-receipts.js";
export type { AwsCredentials };

/** Input of `SendTextMessage`. */
export interface AwsTextMessage {
  readonly DestinationPhoneNumber: string;
  readonly MessageBody: string;
  readonly MessageType: "TRANSACTIONAL";
  readonly OriginationIdentity?: string;
  readonly ConfigurationSetName?: string;
  /** Seconds. */
  readonly TimeToLive?: number;
  readonly Context?: Record<string, string>;
}

/** The part of `PinpointSMSVoiceV2Client` that is used. */
export interface AwsClient {
  send(command: never, options: { readonly abortSignal: AbortSignal }): Promise<unknown>;
}

interface EventOptions {
  /** The configuration set whose event destination receives the events. */
  readonly configurationSet?: string;
}

/** Requests signed by this library. */
export interface AwsSignedOptions extends EventOptions, CarrierOptions {
  readonly region: string;
  /** A function is called for each message: use it for credentials that expire. */
  readonly credentials: AwsCredentials | (() => AwsCredentials | Promise<AwsCredentials>);
}

/** Your own SDK client. Create it with `maxAttempts: 1`: each of the SDK's retries could send a second message. */
export interface AwsClientOptions extends EventOptions, SenderOptions {
  readonly client: AwsClient;
  /** `SendTextMessageCommand` of `@aws-sdk/client-pinpoint-sms-voice-v2`. */
  readonly command: new (
    input: AwsTextMessage,
  ) => unknown;
}

export const awsVariables: Variables = {
  needs: { accessKeyId: "AWS_ACCESS_KEY_ID", secretAccessKey: "AWS_SECRET_ACCESS_KEY", region: "AWS_REGION" },
  may: { sessionToken: "AWS_SESSION_TOKEN", from: "AWS_FROM", baseUrl: "AWS_BASE_URL" },
};

/** Limits of `TimeToLive`, in seconds. */
const shortestLife = 5;
const longestLife = 259_200;

/**
 * Sends through AWS End User Messaging SMS ("SendTextMessage",
 * docs.aws.amazon.com/pinpoint/latest/apireference_smsvoicev2/API_SendTextMessage.html), with Signature Version 4 or
 * your SDK client. `from`: a phone number, sender id or pool, or its id or ARN; without it AWS chooses.
 * `Context` holds our reference, which events repeat. The expiry is sent as `TimeToLive`, the ids of a registered text
 * as `DestinationCountryParameters`. With `conversions` (and signed requests), entered codes are reported
 * ("PutMessageFeedback", same reference); AWS treats messages without feedback within an hour as failed. There is no
 * receipt URL per message and no idempotency key.
 *
 * @throws TypeError for a missing region, credentials, client or command, and for invalid options.
 */
export function awsSender(options: AwsSignedOptions | AwsClientOptions): SmsSender {
  const name = "awsSender";
  if (typeof options === "object" && options !== null && "client" in options) return clientSender(name, options);
  onlyOptions(name, options, { region: true, credentials: true, configurationSet: true, ...carrierOptions });
  const { credentials, configurationSet } = options;
  const region = requireText(name, "region", options.region, 'Pass the region, for example "eu-west-1"; or client and command of the AWS SDK.');
  if (!/^[a-z]{2,4}(-[a-z]+)+-\d$/.test(region)) throw optionError(name, "region", "is not a region", 'Pass for example "eu-west-1".');
  if (typeof credentials !== "function") openCredentials(name, credentials);
  const signed = async (baseUrl: string, operation: string, input: object): Promise<CarrierRequest> => {
    const keys = openCredentials(name, typeof credentials === "function" ? await credentials() : credentials);
    const body = JSON.stringify(input);
    const headers = { "content-type": "application/x-amz-json-1.0", "x-amz-target": `PinpointSMSVoiceV2.${operation}` };
    const { host } = new URL(baseUrl);
    return { url: `${baseUrl}/`, headers: signV4({ host, headers, body }, { region, service: "sms-voice" }, keys, Date.now()), body };
  };
  return carrierSender(name, options, {
    ...frame,
    url: `https://sms-voice.${region}.${region.startsWith("cn-") ? "amazonaws.com.cn" : region.startsWith("eusc-") ? "amazonaws.eu" : "amazonaws.com"}`,
    request: (message, { baseUrl, ...made }) =>
      signed(baseUrl, "SendTextMessage", {
        ...inputOf(message, made, configurationSet),
        ...(options.conversions === true && { MessageFeedbackEnabled: true }),
      }),
    accepted: ({ json }) => acceptedAs(pick(json, "MessageId")),
    // "com.amazonaws.pinpointsmsvoicev2#ValidationException"
    errorCode: ({ json }) => withReason(String(pick(json, "__type") ?? "").replace(/^.*#/, ""), json),
    conversion: (MessageId, { baseUrl }) => signed(baseUrl, "PutMessageFeedback", { MessageId, MessageFeedbackStatus: "RECEIVED" }),
    // "Describes the current monthly spend limits",
    // docs.aws.amazon.com/pinpoint/latest/apireference_smsvoicev2/API_DescribeSpendLimits.html; an IAM policy may deny
    // it.
    credentials: ({ baseUrl }) => signed(baseUrl, "DescribeSpendLimits", { MaxResults: 1 }),
    refusesCredentials: (code) => ["UnrecognizedClientException", "InvalidSignatureException", "InvalidClientTokenId", "ExpiredTokenException"].includes(code),
  });
}

const frame = { provider: "aws", fromElse: true, fromAnyForm: true } as const;

function inputOf(message: CodeMessage, { from, extra, ttl }: Made, configurationSet: string | undefined): AwsTextMessage {
  const { registered, receipt_reference: reference } = message;
  const more = extra["Context"];
  return {
    TimeToLive: Math.min(Math.max(ttl, shortestLife), longestLife),
    ...(registered !== undefined && {
      DestinationCountryParameters: {
        ...(registered.entity !== undefined && { IN_ENTITY_ID: registered.entity }),
        ...(registered.template !== undefined && { IN_TEMPLATE_ID: registered.template }),
      },
    }),
    ...extra,
    DestinationPhoneNumber: message.to,
    MessageBody: message.text,
    MessageType: "TRANSACTIONAL",
    ...(from !== undefined && { OriginationIdentity: from }),
    ...(configurationSet !== undefined && { ConfigurationSetName: configurationSet }),
    ...(reference !== undefined && { Context: { ...(isRecord(more) && (more as Record<string, string>)), [contextKey]: reference } }),
  };
}

/** `ConflictException.DESTINATION_PHONE_NUMBER_OPTED_OUT`: many types of AWS' errors have a `Reason` with a code of its own. */
function withReason(type: string, error: unknown): string {
  const reason = pick(error, "Reason");
  return typeof reason === "string" && /^[A-Z_]+$/.test(reason) ? `${type}.${reason}` : type;
}

function openCredentials(name: string, credentials: AwsCredentials | undefined): AwsCredentials {
  const fix = "Pass { accessKeyId, secretAccessKey, sessionToken? }, or a function that returns them.";
  if (typeof credentials !== "object" || credentials === null) throw optionError(name, "credentials", "is missing", fix);
  const { sessionToken } = credentials;
  return {
    accessKeyId: requireText(name, "credentials.accessKeyId", credentials.accessKeyId, fix),
    secretAccessKey: requireText(name, "credentials.secretAccessKey", credentials.secretAccessKey, fix),
    ...(sessionToken !== undefined && { sessionToken: requireText(name, "credentials.sessionToken", sessionToken, fix) }),
  };
}

function clientSender(name: string, options: AwsClientOptions): SmsSender {
  onlyOptions(name, options, { client: true, command: true, configurationSet: true, ...senderOptions });
  const { client, command: Command, configurationSet } = options;
  if (typeof client?.send !== "function") throw optionError(name, "client", "has no method send", "Pass new PinpointSMSVoiceV2Client({ maxAttempts: 1 }).");
  if (typeof Command !== "function") throw optionError(name, "command", "is missing", "Pass SendTextMessageCommand of @aws-sdk/client-pinpoint-sms-voice-v2.");
  return framedSender(name, options, {
    ...frame,
    async hand(message, made, context) {
      let command: unknown;
      try {
        command = new Command(inputOf(message, made, configurationSet));
      } catch (error) {
        return notSent(`the request could not be made: ${failureOf(error)}`);
      }
      try {
        return acceptedAs(pick(await client.send(command as never, { abortSignal: context.signal }), "MessageId"));
      } catch (error) {
        return judgeError(error, context);
      }
    },
  });
}

/**
 * Known not to be sent: missing credentials, failed connections, and what the status of the response means. The SDK has
 * `$fault: "client"` for every response whose type it does not know, so it decides only without a status.
 */
function judgeError(error: unknown, context: SendContext): SendOutcome {
  const { name, $fault, $metadata } = (error ?? {}) as { name?: unknown; $fault?: unknown; $metadata?: { httpStatusCode?: unknown } };
  const token = errorToken(name);
  // The SDK's own errors need their message: "Region is missing" has the name "Error".
  const reason = token === undefined ? "an error without a name" : $fault === undefined ? failureOf(error) : withReason(token, error);
  const status = $metadata?.httpStatusCode;
  const refused = typeof status === "number" ? surelyNotSent(status) : $fault === "client";
  const unsent = whyNotSent(error);
  if (unsent !== undefined) return notSent(unsent);
  if (refused || name === "CredentialsProviderError") return { outcome: "rejected", reason };
  return { outcome: "unknown", reason: context.signal.aborted ? "no response in time" : reason };
}
