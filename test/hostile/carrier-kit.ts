import { onTestFinished } from "vitest";
import { africasTalkingSender } from "../../adapters/sms/africastalking.js";
import { awsSender } from "../../adapters/sms/aws.js";
import { infobipSender } from "../../adapters/sms/infobip.js";
import { messageBirdSender } from "../../adapters/sms/messagebird.js";
import { plivoSender } from "../../adapters/sms/plivo.js";
import { sinchSender } from "../../adapters/sms/sinch.js";
import { telnyxSender } from "../../adapters/sms/telnyx.js";
import { twilioSender } from "../../adapters/sms/twilio.js";
import { vonageSender } from "../../adapters/sms/vonage.js";
import type { CodeMessage, SmsSender } from "../../src/ports/sms-sender.js";
import { africasTalkingOptions } from "../support/carriers/africastalking.js";
import { carriers } from "../support/carriers/all.js";
import { awsOptions } from "../support/carriers/aws.js";
import { infobipOptions } from "../support/carriers/infobip.js";
import { messageBirdOptions } from "../support/carriers/messagebird.js";
import { plivoOptions } from "../support/carriers/plivo.js";
import { type CarrierScript, type Mood, type RunningCarrier, type SeenRequest, startCarrier } from "../support/carriers/server.js";
import { sinchOptions } from "../support/carriers/sinch.js";
import { telnyxOptions } from "../support/carriers/telnyx.js";
import { twilioOptions } from "../support/carriers/twilio.js";
import { vonageOptions } from "../support/carriers/vonage.js";

/** Every HTTP carrier of docs/carriers.md: the options that it needs, and the function that makes its sender. */
export const carriersOf: Readonly<Record<string, { readonly needs: Readonly<Record<string, unknown>>; readonly make: (options: object) => SmsSender }>> = {
  twilio: { needs: { ...twilioOptions }, make: (options) => twilioSender(options as never) },
  vonage: { needs: { ...vonageOptions }, make: (options) => vonageSender(options as never) },
  aws: { needs: { ...awsOptions }, make: (options) => awsSender(options as never) },
  messagebird: { needs: { ...messageBirdOptions }, make: (options) => messageBirdSender(options as never) },
  plivo: { needs: { ...plivoOptions }, make: (options) => plivoSender(options as never) },
  sinch: { needs: { ...sinchOptions }, make: (options) => sinchSender(options as never) },
  infobip: { needs: { ...infobipOptions, baseUrl: "https://x.api.infobip.com" }, make: (options) => infobipSender(options as never) },
  telnyx: { needs: { ...telnyxOptions }, make: (options) => telnyxSender(options as never) },
  africastalking: { needs: { ...africasTalkingOptions }, make: (options) => africasTalkingSender(options as never) },
};
export const carrierNames = Object.keys(carriersOf);
export const make = (name: string, more: object = {}): SmsSender => carriersOf[name]!.make({ ...carriersOf[name]!.needs, ...more });

export const scriptOf = (name: string): CarrierScript => carriers.find((one) => one.name === name) as CarrierScript;

/** A carrier that runs until the test ends. */
export async function run(script: CarrierScript, mood: Mood = "accepts"): Promise<RunningCarrier> {
  const carrier = await startCarrier(script, mood);
  onTestFinished(() => carrier.close());
  return carrier;
}

/** The fields of a request, from JSON or a form. */
export function fieldsOf({ body }: Pick<SeenRequest, "body">): Record<string, unknown> {
  return body.startsWith("{") ? (JSON.parse(body) as Record<string, unknown>) : Object.fromEntries(new URLSearchParams(body));
}

export const at = (fields: unknown, path: string): unknown =>
  path.split(".").reduce((here, key) => (here as Record<string, unknown> | undefined)?.[key], fields);

/** Whether a text reveals the code or the number. */
export function leaks(text: string, { code, to }: Pick<CodeMessage, "code" | "to">): boolean {
  return text.includes(code) || text.includes(to.slice(1)) || text.replace(/[^\d]+/g, " ").includes(` ${code} `);
}
