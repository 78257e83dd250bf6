import type { ReceiptReading, ReceiptSource } from "../../src/ports/receipts.js";
import type { SendContext, SendOutcome, SmsMessage, SmsSender } from "../../src/ports/sms-sender.js";
import { type Fetch, openSenderId, openTransport, optionFault, requireText, type SenderId, type TransportOptions } from "./carrier-options.js";
import { acceptedAs, carrierSender, errorToken, neverConnected } from "./carrier-send.js";
import { parseJson, pick } from "./json.js";
import { badSignature, bodyText, expired, isStale, malformed, openTolerance, readReport, type StatusWords } from "./receipt-reading.js";
import { readReference } from "./reference.js";
import { type AwsCredentials, signV4 } from "./sigv4.js";
import { confirmSubscription, readTopic, type SnsRefusal, snsReader } from "./sns.js";

/** Input of `SendTextMessage`. */
export interface AwsTextMessage {
  readonly DestinationPhoneNumber: string;
  readonly MessageBody: string;
  readonly MessageType: "TRANSACTIONAL";
  readonly OriginationIdentity?: string;
  readonly ConfigurationSetName?: string;
  readonly Context: Record<string, string>;
}

/** The part of `PinpointSMSVoiceV2Client` that is used. */
export interface AwsClient {
  send(command: never, options: { readonly abortSignal: AbortSignal }): Promise<unknown>;
}

interface CommonOptions {
  /** A phone number, sender id or pool (or its id or ARN). Left out: the service chooses among the account's identities. */
  readonly from?: SenderId;
  /** The configuration set whose event destination gets the receipts. */
  readonly configurationSet?: string;
  /** Further fields of the request, for example `{ TimeToLive: 600 }`. */
  readonly extra?: Readonly<Record<string, unknown>>;
}

/** Signed requests by our own code. */
export interface AwsSignedOptions extends CommonOptions, TransportOptions {
  readonly region: string;
  /** Asked anew for each message when it is a function: credentials that expire. */
  readonly credentials: AwsCredentials | (() => AwsCredentials | Promise<AwsCredentials>);
}

/** The user's own SDK client. Make it with `maxAttempts: 1`: the SDK repeats a failed request by itself, and a repeated message is a second message. */
export interface AwsClientOptions extends CommonOptions {
  readonly client: AwsClient;
  /** `SendTextMessageCommand` of `@aws-sdk/client-pinpoint-sms-voice-v2`. */
  readonly command: new (
    input: AwsTextMessage,
  ) => unknown;
}

/**
 * Sends by AWS End User Messaging SMS ("SendTextMessage", docs.aws.amazon.com/pinpoint/latest/apireference_smsvoicev2/API_SendTextMessage.html), by
 * Signature Version 4 or by the user's SDK client.
 * `Context` names the authentication and attempt, and is echoed in events; there is no receipt URL for a message and no idempotency key.
 *
 * @throws TypeError for a missing region, credentials, client or command, and for options that cannot be used.
 */
export function awsSender(options: AwsSignedOptions | AwsClientOptions): SmsSender {
  const name = "awsSender";
  const from = options.from === undefined ? () => undefined : openSenderId(name, options.from);
  const input = (message: SmsMessage, identity: string | undefined): AwsTextMessage => ({
    ...options.extra,
    DestinationPhoneNumber: message.to,
    MessageBody: message.text,
    MessageType: "TRANSACTIONAL",
    ...(identity === undefined ? {} : { OriginationIdentity: identity }),
    ...(options.configurationSet === undefined ? {} : { ConfigurationSetName: options.configurationSet }),
    Context: { authentication_uuid: message.authentication_uuid, attempt: String(message.attempt) },
  });
  if ("client" in options) return clientSender(name, options, from, input);

  const region = requireText(name, "region", options.region, 'Pass the region, for example "eu-west-1"; or client and command of the AWS SDK.');
  if (!/^[a-z]{2}(-[a-z]+)+-\d$/.test(region)) throw optionFault(name, "region", "is not a region", 'Pass for example "eu-west-1".');
  if (typeof options.credentials !== "function") checkCredentials(name, options.credentials);
  const transport = openTransport(name, options, `https://sms-voice.${region}.amazonaws.com${region.startsWith("cn-") ? ".cn" : ""}`);
  return carrierSender({
    provider: "aws",
    transport,
    from,
    fromOptional: options.from === undefined,
    async request(message, identity) {
      const credentials = typeof options.credentials === "function" ? checkCredentials(name, await options.credentials()) : options.credentials;
      const body = JSON.stringify(input(message, identity));
      const headers = { "content-type": "application/x-amz-json-1.0", "x-amz-target": "PinpointSMSVoiceV2.SendTextMessage" };
      const { host } = new URL(transport.baseUrl);
      return {
        method: "POST",
        url: `${transport.baseUrl}/`,
        headers: signV4({ host, headers, body }, { region, service: "sms-voice" }, credentials, Date.now()),
        body,
      };
    },
    accepted: ({ json }) => acceptedAs(pick(json, "MessageId")),
    // "com.amazonaws.pinpointsmsvoicev2#ValidationException"
    errorCode: ({ json }) =>
      String(pick(json, "__type") ?? "")
        .split("#")
        .at(-1),
  });
}

function checkCredentials(name: string, credentials: AwsCredentials | undefined): AwsCredentials {
  const mend = "Pass { accessKeyId, secretAccessKey, sessionToken? }, or a function that answers them.";
  if (typeof credentials !== "object" || credentials === null) throw optionFault(name, "credentials", "is missing", mend);
  requireText(name, "credentials.accessKeyId", credentials.accessKeyId, mend);
  requireText(name, "credentials.secretAccessKey", credentials.secretAccessKey, mend);
  return credentials;
}

function clientSender(
  name: string,
  options: AwsClientOptions,
  from: (message: SmsMessage) => string | undefined,
  input: (message: SmsMessage, identity: string | undefined) => AwsTextMessage,
): SmsSender {
  const { client, command: Command } = options;
  if (typeof client?.send !== "function") throw optionFault(name, "client", "has no method send", "Pass new PinpointSMSVoiceV2Client({ maxAttempts: 1 }).");
  if (typeof Command !== "function") throw optionFault(name, "command", "is missing", "Pass SendTextMessageCommand of @aws-sdk/client-pinpoint-sms-voice-v2.");
  return {
    async send(message: SmsMessage, context: SendContext): Promise<SendOutcome> {
      if (context.signal.aborted) return { outcome: "rejected", reason: "not sent: the time for it was over" };
      let command: unknown;
      try {
        const identity = from(message);
        if (identity === undefined && options.from !== undefined) {
          return { outcome: "rejected", reason: `not sent: option from names no sender for ${message.country ?? "a number without a country"}` };
        }
        command = new Command(input(message, identity));
      } catch {
        return { outcome: "rejected", reason: "not sent: the request could not be made (a function among the sender's options failed)" };
      }
      try {
        return acceptedAs(pick(await client.send(command as never, { abortSignal: context.signal }), "MessageId"));
      } catch (error) {
        return judgeError(error, context);
      }
    },
  };
}

/**
 * Errors of the SDK: `$fault` says whose fault a service's answer names; credentials that cannot be had and connections that never stood leave the
 * message unsent.
 */
function judgeError(error: unknown, context: SendContext): SendOutcome {
  const reason = errorToken((error as { name?: unknown } | null | undefined)?.name) ?? "an error without a name";
  const { $fault, $metadata } = (error ?? {}) as { $fault?: unknown; $metadata?: { httpStatusCode?: unknown } };
  const refused = $fault === "client" && typeof $metadata?.httpStatusCode === "number";
  if (neverConnected(error)) return { outcome: "rejected", reason: "not sent: no connection to the carrier" };
  if (refused || reason === "CredentialsProviderError") return { outcome: "rejected", reason };
  return { outcome: "unknown", reason: context.signal.aborted ? "no answer in time" : reason };
}

const words: StatusWords = new Map([
  ["text_queued", "submitted"],
  ["text_pending", "in_transit"],
  ["text_sent", "in_transit"],
  ["text_successful", "in_transit"],
  ["text_delivered", "delivered"],
  ["text_invalid", "undeliverable"],
  ["text_invalid_message", "undeliverable"],
  ["text_unreachable", "undeliverable"],
  ["text_carrier_unreachable", "undeliverable"],
  ["text_blocked", "undeliverable"],
  ["text_carrier_blocked", "undeliverable"],
  ["text_protect_blocked", "undeliverable"],
  ["text_spam", "undeliverable"],
  ["text_ttl_expired", "undeliverable"],
  ["text_unknown", "unknown"],
]);

/**
 * Events of AWS End User Messaging SMS from an SNS topic, subscribed by https without raw message delivery ("Event types" and "Example event data",
 * docs.aws.amazon.com/sms-voice/latest/userguide/configuration-sets-event-types.html;
 * "Verifying the signatures of Amazon SNS messages", docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html). A subscription to our URL is
 * confirmed by itself.
 * "Depending on the destination country the TEXT_DELIVERED and TEXT_SUCCESSFUL events may be used interchangeably": a final TEXT_SUCCESSFUL counts as
 * delivered, another one as in transit.
 *
 * @param options.topicArn The topic or topics that count: SNS signs for everyone's topics.
 * @param options.fetch Fetches certificates and confirms subscriptions. Default: the global `fetch`.
 * @param options.tolerance Seconds between the signed time, that of publication, and now; retries come late. Default: 3600.
 * @throws TypeError when `topicArn` is missing or is no ARN of a topic.
 */
export function awsReceipts(options: { readonly topicArn: string | readonly string[]; readonly fetch?: Fetch; readonly tolerance?: number }): ReceiptSource {
  const name = "awsReceipts";
  const mend = 'Pass the ARN of the event destination\'s topic, for example "arn:aws:sns:eu-west-1:123456789012:sms-events".';
  const arns = typeof options.topicArn === "string" || options.topicArn === undefined ? [options.topicArn] : options.topicArn;
  const topics = arns.map((arn) => {
    const topic = readTopic(requireText(name, "topicArn", arn, mend));
    if (topic === undefined) throw optionFault(name, "topicArn", "is not the ARN of an SNS topic", mend);
    return topic;
  });
  if (topics.length === 0) throw optionFault(name, "topicArn", "is an empty list", mend);
  const tolerance = openTolerance(name, options.tolerance, 3600);
  const fetch: Fetch = options.fetch ?? ((url, init) => globalThis.fetch(url, init));
  const readSns = snsReader(topics, fetch);
  return {
    provider: "aws",
    signed: true,
    async read(request, now) {
      const text = bodyText(request);
      if (text === undefined) return malformed("the body is not UTF-8");
      const sns = await readSns(text, now);
      if ("refused" in sns) return toReading(sns);
      if (isStale(sns.at, now, tolerance)) return expired("the message is too old or from the future");
      if (sns.type === "SubscriptionConfirmation") {
        const confirmed = await confirmSubscription(sns, fetch);
        if (typeof confirmed === "object") return toReading(confirmed);
        return confirmed ? { receipts: [] } : tryAgain;
      }
      if (sns.type === "UnsubscribeConfirmation") return { receipts: [] };
      const event = parseJson(sns.message);
      const eventType = pick(event, "eventType");
      // Voice and media events may share the topic.
      if (typeof eventType === "string" && !eventType.startsWith("TEXT_")) return { receipts: [] };
      const at = pick(event, "eventTimestamp");
      const undelivered = typeof eventType === "string" && words.get(eventType.toLowerCase()) === "undeliverable";
      return readReport(
        {
          messageId: pick(event, "messageId"),
          status: eventType === "TEXT_SUCCESSFUL" && pick(event, "isFinal") === true ? "TEXT_DELIVERED" : eventType,
          at: typeof at === "number" ? at : undefined,
          error: undelivered ? pick(event, "messageStatus") : undefined,
          reference: readReference(`${pick(event, "context", "authentication_uuid")}/${pick(event, "context", "attempt")}`),
        },
        words,
      );
    },
  };
}

/** SNS repeats what is answered by 500 and above, and nothing that is answered by 4xx. */
const tryAgain: ReceiptReading = { receipts: [], reply: { status: 503, body: "", contentType: "text/plain" } };

function toReading({ refused, reason }: SnsRefusal): ReceiptReading {
  if (refused === "unreachable") return tryAgain;
  return refused === "signature" ? badSignature(reason) : malformed(reason);
}
