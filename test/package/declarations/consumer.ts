import { createServer } from "node:http";
import {
  type Clock,
  createVerifier,
  generateApiKey,
  type HttpHandler,
  type Logger,
  type LookupProvider,
  lazyVerifier,
  parsePhoneNumber,
  type SmsSender,
  type Store,
  type Verifier,
  VerifierError,
  type VerifierOptions,
} from "phoneproof";
import { betterAuth } from "phoneproof/better-auth";
import { hcaptchaChallenge } from "phoneproof/challenge/hcaptcha";
import { recaptchaChallenge } from "phoneproof/challenge/recaptcha";
import { turnstileChallenge } from "phoneproof/challenge/turnstile";
import { createClient, FaultError } from "phoneproof/client";
import { expressHandlers } from "phoneproof/express";
import { fastifyPlugin } from "phoneproof/fastify";
import { fetchHandler } from "phoneproof/fetch";
import { hooks, supabaseHook } from "phoneproof/hooks";
import type { Hook, makeHook } from "phoneproof/hooks/kit";
import { lookupChain } from "phoneproof/lookup/chain";
import { httpLookup } from "phoneproof/lookup/http";
import { telnyxLookup } from "phoneproof/lookup/telnyx";
import { twilioLookup } from "phoneproof/lookup/twilio";
import { vonageLookup } from "phoneproof/lookup/vonage";
import { type MemoryStoreOptions, memoryStore } from "phoneproof/memory";
import { mongoStore } from "phoneproof/mongo";
import { nextHandlers } from "phoneproof/next";
import { nodeHandler } from "phoneproof/node";
import { openTelemetry } from "phoneproof/otel";
import { type OtpInputElement, type OtpWords, otpWords } from "phoneproof/otp-input";
import { postgresStore } from "phoneproof/postgres";
import { preludeV2 } from "phoneproof/prelude-v2";
import { redisStore } from "phoneproof/redis";
import { router } from "phoneproof/router";
import { africasTalkingSender } from "phoneproof/senders/africastalking";
import { awsSender } from "phoneproof/senders/aws";
import { consoleSender } from "phoneproof/senders/console";
import { httpSender } from "phoneproof/senders/http";
import { inboxSender } from "phoneproof/senders/inbox";
import { infobipSender } from "phoneproof/senders/infobip";
import { carrierSender } from "phoneproof/senders/kit";
import { messageBirdSender } from "phoneproof/senders/messagebird";
import { plivoSender } from "phoneproof/senders/plivo";
import { sinchSender } from "phoneproof/senders/sinch";
import { smppSender } from "phoneproof/senders/smpp";
import { telegramSender } from "phoneproof/senders/telegram";
import { telnyxSender } from "phoneproof/senders/telnyx";
import { twilioSender, twilioWhatsappSender } from "phoneproof/senders/twilio";
import { twilioVoiceSender } from "phoneproof/senders/twilio-voice";
import { vonageSender, vonageWhatsappSender } from "phoneproof/senders/vonage";
import { vonageVoiceSender } from "phoneproof/senders/vonage-voice";
import { whatsappSender } from "phoneproof/senders/whatsapp";
import { sqliteStore } from "phoneproof/sqlite";
import { fixedClock, senderContract, storeContract } from "phoneproof/testing";
import { twilioVerify } from "phoneproof/twilio-verify";
import { verifyWebhook } from "phoneproof/webhooks";

const store: Store = memoryStore({} satisfies MemoryStoreOptions);
const sender: SmsSender = consoleSender();
const clock: Clock = fixedClock();
const logger: Logger = console;
const lookup: LookupProvider = { lookup: async ({ phone_number }) => (phone_number === "+" ? undefined : { carrier: "Carrier" }) };
const { key } = generateApiKey();
const options: VerifierOptions = {
  store,
  sender,
  clock,
  logger,
  lookup,
  secret: ["a".repeat(32), "b".repeat(32)],
  countries: ["FR"],
  customers: [{ customer_uuid: "5f0c7f3e-1d2b-4c3a-9e8f-7a6b5c4d3e2f", keys: [key] }],
};
export const senders: readonly ((options: never) => SmsSender)[] = [
  africasTalkingSender,
  awsSender,
  httpSender,
  inboxSender,
  infobipSender,
  messageBirdSender,
  plivoSender,
  sinchSender,
  smppSender,
  telegramSender,
  telnyxSender,
  twilioSender,
  twilioVoiceSender,
  twilioWhatsappSender,
  vonageSender,
  vonageVoiceSender,
  vonageWhatsappSender,
  whatsappSender,
];
export const routed: SmsSender = router({ routes: [{ name: "one", sender }] });
export const others = [hcaptchaChallenge, recaptchaChallenge, turnstileChallenge, senderContract, verifyWebhook, openTelemetry, carrierSender];
export const lookups: LookupProvider = lookupChain([]);
export const providers: readonly ((options: never) => LookupProvider)[] = [httpLookup, telnyxLookup, twilioLookup, vonageLookup];
export const verifier: Verifier = createVerifier(options);

export const phoneNumber = betterAuth(verifier, { fields: (headers) => ({ ip: headers.get("x-real-ip") ?? undefined }) });

/** A custom wire has the same form as a verifier's own. */
const own: HttpHandler = { ...verifier.http, root: "/otp", handle: async () => ({ status: 200, headers: {}, body: "" }) };
export const mounts = [
  expressHandlers(verifier),
  fetchHandler([verifier, verifier.receipts, preludeV2(verifier), twilioVerify(verifier, { autoChannel: "sms" }), own]),
];

export async function verify(customer_uuid: string, phone_number: string, typed: string): Promise<"valid" | "no"> {
  const { authentication_uuid, status } = await verifier.createAuthentication({ customer_uuid, phone_number, device_type: "WEB" });
  if (status !== "pending") return "no";
  const retry = await verifier.retry({ customer_uuid, authentication_uuid });
  const left: number = retry.remaining_retry;
  const result = await verifier.check({ customer_uuid, authentication_uuid, check_code: typed });
  const line = (await verifier.lookup({ customer_uuid, phone_number })).line_type;
  return result.status === "valid" && line === "Mobile" && left > 0 ? "valid" : "no";
}

/** Without customers, calls name none, and a valid check has its number. */
export async function direct(typed: string, code: string): Promise<string | undefined> {
  const parsed = parsePhoneNumber(typed, { country: "FR" });
  if (!parsed.ok) return parsed.reason;
  const { authentication_uuid, next_retry_at = "never", phone_number } = await verifier.createAuthentication({ phone_number: parsed.phone_number });
  const checked = await verifier.check({ authentication_uuid, check_code: code });
  return checked.status === "valid" ? checked.phone_number : `${next_retry_at} ${phone_number} ${checked.remaining_checks}`;
}

// Every line below must be a type error, which it would not be if anything here were of type `any`.
export async function refused(): Promise<void> {
  // @ts-expect-error no such status
  if ((await verifier.check({ customer_uuid: "", authentication_uuid: "", check_code: "" })).status === "approved") return;
  // @ts-expect-error a code must be a string
  await verifier.check({ customer_uuid: "", authentication_uuid: "", check_code: 123456 });
  // @ts-expect-error countries are mandatory
  createVerifier({ store, sender, secret: "", customers: [] });
  // @ts-expect-error only a valid check is known to have a number
  const number: string = (await verifier.check({ authentication_uuid: "", check_code: "" })).phone_number;
  if (number === "") return;
  // @ts-expect-error the method for adapters is not part of an app's type
  await verifier.handle({ method: "GET", path: "/v1/check", header: () => undefined, body: async () => ({ kind: "text", text: "" }) });
  // @ts-expect-error no such code
  if (new VerifierError("bad_request", "").code === "teapot") return;
}

const client = createClient({ baseUrl: "https://otp.example.com", apiKey: key, customerUuid: "5f0c7f3e-1d2b-4c3a-9e8f-7a6b5c4d3e2f" });
export async function asked(authentication_uuid: string, check_code: string): Promise<string | undefined> {
  try {
    const answer = await client.check({ authentication_uuid, check_code }, { signal: AbortSignal.timeout(1000), idempotencyKey: "1" });
    // @ts-expect-error "approved" is not a status of check
    if (answer.status === "approved") return undefined;
    return answer.status === "valid" ? answer.phone_number : undefined;
  } catch (error) {
    // @ts-expect-error no such code
    return error instanceof FaultError && error.code === "teapot" ? error.doc_url : undefined;
  }
}

export const words: OtpWords | undefined = otpWords.en;
export function show(otp: OtpInputElement): void {
  otp.answer = { status: "invalid", remaining_checks: 3 };
  // @ts-expect-error `length` must be a number
  otp.length = "6";
}

createServer(nodeHandler([verifier, verifier.receipts, lazyVerifier(() => ({ store, sender, secret: "", countries: ["FR"], customers: "store" }))]));
export const { GET, POST } = nextHandlers(verifier);
export const mounted = [expressHandlers(verifier), fastifyPlugin(verifier), fetchHandler(verifier)];
export const stores: Store[] = [redisStore({ client: async (_script: string, _keys: string[], _args: string[]) => null })];
export const mongo: typeof mongoStore = mongoStore;
export const postgres: typeof postgresStore = postgresStore;
export const sqlite: typeof sqliteStore = sqliteStore;
export const cases: Promise<void>[] = storeContract().map(({ run }) => run({ store }));
export const served = hooks(verifier, [supabaseHook({ secrets: "v1,whsec_MDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDA=" })]);
export const kit: (typeof makeHook extends (...given: never[]) => infer Made ? Made : never) | Hook | undefined = undefined;
