import type { ReceiptSource } from "../../src/ports/receipts.js";
import { parseJson, pick } from "../kit/json.js";
import { onlyOptions, optionError } from "../kit/option-error.js";
import type { Fetch } from "../kit/transport.js";
import { bodyText, malformed, openSecrets, openTolerance, readReport, type StatusWords, statusWords } from "./kit/report.js";
import { confirmSubscription, readTopic, snsReader } from "./sns.js";

/** The `Context` key under which the sender puts our reference; events repeat it. */
export const contextKey = "phoneproof";

const textWords = statusWords({
  submitted: ["text_queued"],
  in_transit: ["text_pending", "text_sent", "text_successful"],
  delivered: ["text_delivered"],
  undeliverable: [
    ...["text_invalid", "text_invalid_message", "text_unreachable", "text_carrier_unreachable", "text_blocked"],
    ...["text_carrier_blocked", "text_protect_blocked", "text_spam", "text_ttl_expired"],
  ],
  unknown: ["text_unknown"],
});

/** RCS uses the same words, and more: a message that was read arrived. */
const words: StatusWords = new Map([
  ...textWords,
  ...[...textWords].map(([word, status]) => [word.replace("text_", "rcs_"), status] as const),
  ["rcs_read", "delivered"],
]);

/**
 * Reads AWS End User Messaging SMS events from an SNS topic, subscribed by https without raw message delivery ("Event
 * types" and "Example event data", docs.aws.amazon.com/sms-voice/latest/userguide/configuration-sets-event-types.html;
 * "Verifying the signatures of Amazon SNS messages",
 * docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html).
 * A subscription to our URL is confirmed automatically.
 * "Depending on the destination country the TEXT_DELIVERED and TEXT_SUCCESSFUL events may be used interchangeably": a
 * final TEXT_SUCCESSFUL counts as delivered, any other as in transit. Messages from a pool, or without a sender, may go
 * by RCS, whose events begin with `RCS_` ("RCS message events", .../latest/userguide/rcs-events.html).
 *
 * @param options.topicArn The accepted topic or topics: SNS signs messages of any account's topic.
 * @param options.fetch Fetches certificates and confirms subscriptions. Default: the global `fetch`.
 * @param options.tolerance Maximum seconds between the signed publication time and now; retries arrive late. Default:
 * 3600.
 * @throws TypeError if `topicArn` is missing or not a topic ARN, and for an unknown option.
 */
export function awsReceipts(options: { readonly topicArn: string | readonly string[]; readonly fetch?: Fetch; readonly tolerance?: number }): ReceiptSource {
  const name = "awsReceipts";
  onlyOptions(name, options, { topicArn: true, fetch: true, tolerance: true });
  const fix = 'Pass the ARN of the event destination\'s topic, for example "arn:aws:sns:eu-west-1:123456789012:sms-events".';
  const topics = openSecrets(name, "topicArn", options.topicArn, fix).map((arn) => {
    const topic = readTopic(arn);
    if (topic === undefined) throw optionError(name, "topicArn", "is not the ARN of an SNS topic", fix);
    return topic;
  });
  const tolerance = openTolerance(name, options.tolerance, 3600);
  const fetch: Fetch = options.fetch ?? ((url, init) => globalThis.fetch(url, init));
  const readSns = snsReader(topics, fetch, tolerance);
  return {
    provider: "aws",
    async read(request, now) {
      const text = bodyText(request);
      if (text === undefined) return malformed("the body is not UTF-8");
      const sns = await readSns(text, now);
      if (!("type" in sns)) return sns;
      if (sns.type === "SubscriptionConfirmation") return confirmSubscription(sns, fetch);
      if (sns.type === "UnsubscribeConfirmation") return { receipts: [] };
      const event = parseJson(sns.message);
      const eventType = pick(event, "eventType");
      // Voice and media events may use the same topic.
      if (typeof eventType === "string" && !/^(TEXT|RCS)_/.test(eventType)) return { receipts: [] };
      const isFinal = pick(event, "isFinal");
      const said = words.get(String(eventType).toLowerCase());
      // Another event follows: of another try, or of RCS that goes on as a text.
      const goesOn = /^RCS_\w*FALLBACK/.test(String(eventType)) || (isFinal === false && (said === "undeliverable" || said === "unknown"));
      const isDelivered = isFinal === true && /^(TEXT|RCS)_SUCCESSFUL$/.test(String(eventType));
      const at = pick(event, "eventTimestamp");
      return readReport(
        {
          messageId: pick(event, "messageId"),
          status: isDelivered ? "TEXT_DELIVERED" : goesOn ? "TEXT_PENDING" : eventType,
          at: typeof at === "number" ? at : undefined,
          error: said === "undeliverable" && !goesOn ? pick(event, "messageStatus") : undefined,
          reference: pick(event, "context", contextKey),
        },
        words,
      );
    },
  };
}
