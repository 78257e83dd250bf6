import { type KeyObject, verify, X509Certificate } from "node:crypto";
import type { ReceiptReading } from "../../src/ports/receipts.js";
import { isRecord, parseJson } from "../kit/json.js";
import { connectionCode, type Fetch, readText } from "../kit/transport.js";
import { badSignature, expired, isoTime, isStale, malformed } from "./kit/report.js";

/** A parsed Amazon SNS topic ARN. */
export interface Topic {
  readonly arn: string;
  /** The only host accepted for its certificates and confirmations. */
  readonly host: string;
}

/** The domains of the partitions that have their own. */
const suffixes: Readonly<Record<string, string>> = { "aws-cn": "amazonaws.com.cn", "aws-eusc": "amazonaws.eu" };

/** Parses `arn:aws:sns:eu-west-1:123456789012:sms-events`; returns undefined for any other text. */
export function readTopic(arn: string): Topic | undefined {
  const found = /^arn:(aws(?:-[a-z-]+)?):sns:([a-z0-9-]+):\d{12}:[\w.-]{1,256}$/.exec(arn);
  return found === null ? undefined : { arn, host: `sns.${found[2]}.${suffixes[found[1] as string] ?? "amazonaws.com"}` };
}

/** The message in an SNS envelope with a valid signature. */
export interface SnsMessage {
  readonly type: "Notification" | "SubscriptionConfirmation" | "UnsubscribeConfirmation";
  readonly message: string;
  readonly topic: Topic;
  /** A text in a confirmation. */
  readonly subscribeUrl: unknown;
}

/** An envelope that could not be checked: SNS retries after a 503, but not after 4xx. */
const tryAgain = (reason: string): ReceiptReading => ({ refused: "unavailable", reason });

const confirmationFields = ["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"];
/** The signed fields of each type, in signing order. */
const signedFields: ReadonlyMap<unknown, readonly string[]> = new Map([
  ["Notification", ["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"]],
  ["SubscriptionConfirmation", confirmationFields],
  ["UnsubscribeConfirmation", confirmationFields],
]);
const hashes: ReadonlyMap<unknown, string> = new Map([
  ["1", "sha1"],
  ["2", "sha256"],
]);

/** Maximum number of cached certificates: each region of SNS signs with one at a time. */
const certificateLimit = 16;

/**
 * How long a certificate that does not exist, or that could not be fetched, is not fetched again, in milliseconds; and
 * how many failures are remembered. SNS retries a receipt after 20 seconds, and only three times.
 */
const failureKept = { absent: 60_000, unknown: 5_000 };
const failureLimit = 1_000;

/** Fetches at the same time, and envelopes that wait for one. */
const mostFetches = 5;
const mostWaiting = 100;

/**
 * Reads SNS envelopes of the given topics ("Verifying the signatures of Amazon SNS messages",
 * docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html).
 * SNS signs for every account's topics, and anyone can post to us: topic and time are checked first, so that irrelevant
 * envelopes cost no request. Certificates come by https from the topic's own region only; certificates and failures are
 * cached. A flood of made-up certificate names waits in line, and displaces its own.
 *
 * @param tolerance Maximum seconds between the signed time and now.
 */
export function snsReader(topics: readonly Topic[], fetch: Fetch, tolerance: number): (body: string, now: number) => Promise<SnsMessage | ReceiptReading> {
  const certificates = new Map<string, Promise<X509Certificate | ReceiptReading>>();
  const failures = new Map<string, { readonly until: number; readonly refusal: ReceiptReading }>();
  const waiting: ((isTurn: boolean) => void)[] = [];
  let fetching = 0;

  const turn = (): boolean | Promise<boolean> => {
    if (fetching < mostFetches) {
      fetching += 1;
      return true;
    }
    const at = waiting.length < mostWaiting ? waiting.length : Math.floor(Math.random() * mostWaiting);
    waiting[at]?.(false);
    return new Promise((resolve) => {
      waiting[at] = resolve;
    });
  };
  const next = () => {
    const first = waiting.shift();
    if (first === undefined) fetching -= 1;
    else first(true);
  };

  const known = (url: string, now: number): Promise<X509Certificate | ReceiptReading> | ReceiptReading | undefined => {
    const failure = failures.get(url);
    return certificates.get(url) ?? (failure !== undefined && failure.until > now ? failure.refusal : undefined);
  };

  const certificateAt = async (url: string, now: number): Promise<X509Certificate | ReceiptReading> => {
    const kept = known(url, now);
    if (kept !== undefined) return kept;
    const isTurn = turn();
    if (isTurn !== true && !(await isTurn)) return tryAgain("too many certificates wait to be fetched");
    // Others of its name may have waited before it.
    const found = known(url, now);
    if (found !== undefined) {
      next();
      return found;
    }
    const fetched = fetchCertificate(url, fetch);
    certificates.set(url, fetched);
    const certificate = await fetched;
    next();
    if (!(certificate instanceof X509Certificate)) {
      certificates.delete(url);
      failures.delete(url);
      const isAbsent = "refused" in certificate && certificate.refused === "signature";
      failures.set(url, { until: now + failureKept[isAbsent ? "absent" : "unknown"], refusal: certificate });
      if (failures.size > failureLimit) failures.delete(failures.keys().next().value as string);
    } else if (certificates.size > certificateLimit) certificates.delete(certificates.keys().next().value as string);
    return certificate;
  };

  return async (body, now) => {
    const envelope = parseJson(body);
    if (!isRecord(envelope)) return malformed("the body is not an SNS message");
    const fields = signedFields.get(envelope["Type"]);
    const hash = hashes.get(envelope["SignatureVersion"]);
    const signature = envelope["Signature"];
    const certUrl = envelope["SigningCertURL"];
    if (fields === undefined || hash === undefined || typeof signature !== "string" || typeof certUrl !== "string")
      return malformed("the body is not a signed SNS message; is raw message delivery on for the subscription?");
    const topic = topics.find(({ arn }) => arn === envelope["TopicArn"]);
    if (topic === undefined) return badSignature("the message is from a topic that topicArn does not name");
    if (/[?#]/.test(certUrl) || !isPinned(certUrl, topic, /^\/SimpleNotificationService-[\w-]{1,64}\.pem$/))
      return badSignature("SigningCertURL is not the topic's region of SNS");
    let content = "";
    for (const field of fields) {
      const value = envelope[field];
      if (value === undefined && field === "Subject") continue;
      if (typeof value !== "string") return malformed(`the SNS message has no ${field}`);
      content += `${field}\n${value}\n`;
    }
    const at = isoTime(envelope["Timestamp"]);
    if (at === undefined) return malformed("the SNS message has no readable Timestamp");
    if (isStale(at, now, tolerance)) return expired("the message is too old or from the future");
    const certificate = await certificateAt(certUrl, now);
    if (!(certificate instanceof X509Certificate)) return certificate;
    if (!(Date.parse(certificate.validFrom) <= now && now <= Date.parse(certificate.validTo)))
      return badSignature("the certificate has expired or is not valid yet");
    if (!verifies(hash, content, certificate.publicKey, signature)) return badSignature("the signature does not match this message");
    return {
      type: envelope["Type"] as SnsMessage["type"],
      message: envelope["Message"] as string,
      topic,
      subscribeUrl: envelope["SubscribeURL"],
    };
  };
}

/** Confirms a subscription by fetching its URL, only on the SNS host of the topic's region. */
export async function confirmSubscription({ subscribeUrl, topic }: SnsMessage, fetch: Fetch): Promise<ReceiptReading> {
  const url = String(subscribeUrl);
  const query = isPinned(url, topic, /^\/$/) ? new URL(url).searchParams : undefined;
  if (query?.get("Action") !== "ConfirmSubscription" || query.get("TopicArn") !== topic.arn)
    return badSignature("SubscribeURL is not a confirmation by the topic's region of SNS");
  try {
    const { status } = await get(url, fetch);
    return status >= 200 && status < 300 ? { receipts: [] } : tryAgain(`SubscribeURL returned status ${status}`);
  } catch (error) {
    return tryAgain(`SubscribeURL cannot be fetched (${fetchError(error)})`);
  }
}

async function fetchCertificate(url: string, fetch: Fetch): Promise<X509Certificate | ReceiptReading> {
  try {
    const { status, text } = await get(url, fetch);
    if (status === 200) return new X509Certificate(text);
    if (status === 403 || status === 404 || status === 410) return badSignature("there is no certificate at SigningCertURL");
    return tryAgain(`SigningCertURL returned status ${status}`);
  } catch (error) {
    return tryAgain(`the certificate at SigningCertURL cannot be read (${fetchError(error)})`);
  }
}

function fetchError(error: unknown): string {
  return connectionCode(error) ?? (error instanceof Error ? error.name : "not an Error");
}

async function get(url: string, fetch: Fetch): Promise<{ status: number; text: string }> {
  const response = await fetch(url, { method: "GET", headers: {}, redirect: "manual", signal: AbortSignal.timeout(5000) });
  return { status: response.status, text: await readText(response) };
}

function isPinned(url: string, topic: Topic, path: RegExp): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, host, pathname, username } = new URL(url);
  return protocol === "https:" && host === topic.host && username === "" && path.test(pathname);
}

function verifies(hash: string, content: string, key: KeyObject, signature: string): boolean {
  try {
    return verify(hash, Buffer.from(content), key, Buffer.from(signature, "base64"));
  } catch {
    return false;
  }
}
