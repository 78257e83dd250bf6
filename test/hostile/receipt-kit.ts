import { africasTalkingReceipts } from "../../adapters/sms/africastalking.js";
import { awsReceipts } from "../../adapters/sms/aws.js";
import { httpReceipts } from "../../adapters/sms/http.js";
import { infobipReceipts } from "../../adapters/sms/infobip.js";
import { messageBirdReceipts } from "../../adapters/sms/messagebird.js";
import { plivoReceipts } from "../../adapters/sms/plivo.js";
import { sinchReceipts } from "../../adapters/sms/sinch.js";
import { telegramReceipts } from "../../adapters/sms/telegram.js";
import { telnyxReceipts } from "../../adapters/sms/telnyx.js";
import { twilioReceipts } from "../../adapters/sms/twilio.js";
import { twilioVoiceReceipts } from "../../adapters/sms/twilio-voice.js";
import { vonageReceipts } from "../../adapters/sms/vonage.js";
import { vonageVoiceReceipts } from "../../adapters/sms/vonage-voice.js";
import { whatsappReceipts } from "../../adapters/sms/whatsapp.js";
import type { HttpResponse } from "../../src/http/message.js";
import type { CodeMessage, ReceiptSource, Verifier, VerifierOptions } from "../../src/index.js";
import type { Store } from "../../src/ports/store.js";
import { fixedClock } from "../../src/testing/index.js";
import { PlainStore } from "../store/plain-store.js";
import type { aReceipt } from "../support/carriers/messages.js";
import {
  signAws,
  signMessageBird,
  signPlivo,
  signSinch,
  signTelegram,
  signTelnyx,
  signTwilio,
  signVonage,
  signWhatsapp,
  statusWebhook,
  telnyxPublicKey,
  topicArn,
} from "../support/carriers/receipts.js";
import { snsCertificate } from "../support/carriers/sns-key.js";
import { callbackUrl, type Service, sender, service, wide } from "./kit.js";

export const base = "https://otp.example";
/** Within the validity of the SNS certificate of the tests. */
export const noon = Date.UTC(2027, 0, 1, 12);
export const atSecret = "dashboard-secret-of-at";

/** How one carrier reports on a message. */
export interface Teller {
  readonly source: () => ReceiptSource;
  /** A receipt of the message as the carrier posts it. `url`: the address that it was given; `id`: its own id. */
  tell(what: {
    readonly url: string;
    readonly reference: string;
    readonly id: string;
    readonly status: "delivered" | "undeliverable";
    readonly at: number;
  }): Promise<Asked>;
  /** What identifies the message: the reference in a field (`field`) or in the URL (`url`), or the id alone (`id`). */
  readonly by: "field" | "url" | "id";
  /** Whether anything besides the reference authenticates it. */
  readonly signed: boolean;
}

export interface Asked {
  readonly method?: string;
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

type Made = ReturnType<typeof aReceipt>;
const headerNames = [
  "x-twilio-signature",
  "content-type",
  "authorization",
  "messagebird-signature-jwt",
  "x-plivo-signature-v3",
  "x-plivo-signature-v3-nonce",
  "x-sinch-webhook-signature",
  "x-sinch-webhook-signature-nonce",
  "x-sinch-webhook-signature-timestamp",
  "x-sinch-webhook-signature-algorithm",
  "telnyx-signature-ed25519",
  "telnyx-timestamp",
  "x-request-timestamp",
  "x-request-signature",
  "x-hub-signature-256",
  "x-amz-sns-message-type",
];
const asked = (made: Made, url: string = made.url): Asked => ({
  method: made.method,
  url,
  headers: Object.fromEntries(headerNames.flatMap((name) => (made.header(name) === undefined ? [] : [[name, made.header(name) as string]]))),
  body: made.body,
});
const bare = (url: string) => url.split("?")[0] as string;
const form = { "content-type": "application/x-www-form-urlencoded" };
const json = { "content-type": "application/json" };

export const tellers: Readonly<Record<string, Teller>> = {
  twilio: {
    source: () => twilioReceipts({ authToken: "twilio-auth-token" }),
    by: "url",
    signed: true,
    tell: async ({ url, id, status, at }) =>
      asked(await signTwilio({ MessageSid: id, MessageStatus: status === "delivered" ? "delivered" : "failed" }, { at, url })),
  },
  vonage: {
    source: () => vonageReceipts({ signatureSecret: "vonage-signature-secret" }),
    by: "field",
    signed: true,
    tell: async ({ url, reference, id, status, at }) =>
      asked(
        await signVonage({ message_uuid: id, status: status === "delivered" ? "delivered" : "rejected", channel: "sms", client_ref: reference }, { at }),
        bare(url),
      ),
  },
  telegram: {
    source: () => telegramReceipts({ token: "telegram-token" }),
    by: "field",
    signed: true,
    tell: async ({ url, reference, id, status, at }) =>
      asked(
        await signTelegram({ request_id: id, payload: reference, delivery_status: { status: status === "delivered" ? "read" : "expired" } }, { at }),
        bare(url),
      ),
  },
  whatsapp: {
    source: () => whatsappReceipts({ appSecret: "meta-app-secret", verifyToken: "verify-token" }),
    by: "field",
    signed: true,
    tell: async ({ url, reference, id, status, at }) =>
      asked(
        await signWhatsapp(statusWebhook({ id, status: status === "delivered" ? "read" : "failed", biz_opaque_callback_data: reference }), { at }),
        bare(url),
      ),
  },
  twiliovoice: {
    source: () => twilioVoiceReceipts({ authToken: "twilio-auth-token" }),
    by: "url",
    signed: true,
    tell: async ({ url, id, status, at }) =>
      asked(await signTwilio({ CallSid: id, CallStatus: "completed", CallDuration: status === "delivered" ? "20" : "1" }, { at, url })),
  },
  vonagevoice: {
    source: () => vonageVoiceReceipts({ signatureSecret: "vonage-signature-secret" }),
    by: "url",
    signed: true,
    tell: async ({ url, id, status, at }) =>
      asked(await signVonage({ uuid: id, status: "completed", duration: status === "delivered" ? "20" : "1" }, { at }), url),
  },
  aws: {
    source: () => awsReceipts({ topicArn, fetch: async () => new Response(snsCertificate) }),
    by: "field",
    signed: true,
    tell: async ({ url, reference, id, status, at }) =>
      asked(
        await signAws(
          {
            eventType: status === "delivered" ? "TEXT_DELIVERED" : "TEXT_BLOCKED",
            isFinal: true,
            messageId: id,
            eventTimestamp: at,
            context: { phoneproof: reference },
          },
          { at },
        ),
        bare(url),
      ),
  },
  messagebird: {
    source: () => messageBirdReceipts({ signingKey: "messagebird-signing-key" }),
    by: "field",
    signed: true,
    tell: async ({ url, reference, id, status, at }) =>
      asked(await signMessageBird({ id, reference, recipient: "33612000001", status: status === "delivered" ? "delivered" : "delivery_failed" }, { at, url })),
  },
  plivo: {
    source: () => plivoReceipts({ authToken: "plivo-auth-token" }),
    by: "url",
    signed: true,
    tell: async ({ url, id, status, at }) => {
      // V3 signs the query sorted and decoded.
      return asked(await signPlivo({ MessageUUID: id, Status: status === "delivered" ? "delivered" : "failed" }, { at, url }));
    },
  },
  sinch: {
    source: () => sinchReceipts({ webhookSecret: "sinch-webhook-secret" }),
    by: "field",
    signed: true,
    tell: async ({ url, reference, id, status, at }) =>
      asked(
        await signSinch(
          {
            type: "recipient_delivery_report_sms",
            batch_id: id,
            recipient: "33612000001",
            status: status === "delivered" ? "Delivered" : "Failed",
            client_reference: reference,
          },
          { at },
        ),
        bare(url),
      ),
  },
  telnyx: {
    source: () => telnyxReceipts({ publicKey: telnyxPublicKey }),
    by: "url",
    signed: true,
    tell: async ({ url, id, status, at }) =>
      asked(
        await signTelnyx(
          {
            data: {
              event_type: "message.finalized",
              payload: {
                id,
                direction: "outbound",
                webhook_url: url,
                to: [{ phone_number: "+33612000001", status: status === "delivered" ? "delivered" : "delivery_failed" }],
              },
            },
          },
          { at },
        ),
        url,
      ),
  },
  infobip: {
    source: () => infobipReceipts(),
    by: "field",
    signed: false,
    tell: async ({ url, reference, id, status }) => ({
      url: bare(url),
      headers: json,
      body: JSON.stringify({
        results: [{ messageId: id, status: { groupName: status === "delivered" ? "DELIVERED" : "UNDELIVERABLE" }, callbackData: reference }],
      }),
    }),
  },
  africastalking: {
    source: () => africasTalkingReceipts({ secret: atSecret }),
    by: "id",
    signed: true,
    tell: async ({ url, id, status }) => ({
      url: `${bare(url)}?key=${atSecret}`,
      headers: form,
      body: new URLSearchParams({ id, status: status === "delivered" ? "Success" : "Failed" }).toString(),
    }),
  },
  http: {
    source: () => httpReceipts({ statuses: { DELIVRD: "delivered", UNDELIV: "undeliverable" }, reference: "ref" }),
    by: "field",
    signed: false,
    tell: async ({ url, reference, id, status }) => ({
      method: "GET",
      url: `${bare(url)}?${new URLSearchParams({ id, status: status === "delivered" ? "DELIVRD" : "UNDELIV", ref: reference })}`,
    }),
  },
};
export const providers = Object.keys(tellers);

/** Posts to the receipts route as a carrier does. */
export async function post(verifier: Verifier, { method = "POST", url, headers = {}, body = "" }: Asked): Promise<HttpResponse> {
  const query = url.includes("?") ? url.slice(url.indexOf("?")) : "";
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  return verifier.receipts.handle({
    method,
    path: bare(url).slice(base.length),
    query,
    header: (name) => headers[name],
    body: async (limit) => (bytes.length > limit ? { kind: "refused", reason: "too_large" } : { kind: "bytes", bytes }),
  });
}

/** A service that accepts the receipts of every carrier; its messages are accepted as `SM1`, `SM2` … */
export function listening(options: Parameters<typeof service>[0] = {}): Service & { readonly settings: Parameters<typeof service>[0] } {
  const clock = options.clock ?? fixedClock(noon);
  const receipts: NonNullable<VerifierOptions["receipts"]> = { baseUrl: base, sources: providers.map((name) => tellers[name]!.source()) };
  const settings = { store: new PlainStore() as Store, receipts, ...options, clock, policy: { limits: wide, ...options.policy } };
  const out = options.sender ?? sender();
  if (options.sender === undefined) {
    let count = 0;
    Object.assign(out, { answer: async () => ({ outcome: "accepted", messageId: `SM${++count}`, idSpace: "africastalking" }) });
  }
  return { ...service({ ...settings, sender: out }), settings: { ...settings, sender: out } };
}

/** The newest message of an authentication. */
export function messageOf(one: Service, id: string): CodeMessage {
  const message = one.sender.messages.filter(({ authentication_uuid }) => authentication_uuid === id).at(-1);
  if (message === undefined) throw new Error("no message was sent");
  return message;
}

/** The URL that a carrier was given for the receipts of a message. */
export const urlOf = (message: CodeMessage, provider: string): string => (message.receipt_url ?? "").replace("{provider}", provider);

/** Creates an authentication with callbacks. */
export const begin = async (one: Service, index = 1): Promise<string> => (await one.create(index, { callback_url: callbackUrl })).authentication_uuid;

/** The events that the caller received of an authentication, once all are delivered. */
export async function told(one: Service, id: string): Promise<string[]> {
  await one.verifier.flush();
  return one.hook.story(id);
}

/** The carrier's receipt for the newest message of an authentication. */
export async function wordOf(
  provider: string,
  one: Service,
  id: string,
  status: "delivered" | "undeliverable" = "delivered",
  carrierId = "SM1",
): Promise<Asked> {
  const message = messageOf(one, id);
  return tellers[provider]!.tell({ url: urlOf(message, provider), reference: message.receipt_reference ?? "", id: carrierId, status, at: one.clock.now() });
}
