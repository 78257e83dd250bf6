import { africasTalkingSender } from "../../adapters/sms/africastalking.js";
import { awsSender } from "../../adapters/sms/aws.js";
import { infobipSender } from "../../adapters/sms/infobip.js";
import { messageBirdSender } from "../../adapters/sms/messagebird.js";
import { plivoSender } from "../../adapters/sms/plivo.js";
import { sinchSender } from "../../adapters/sms/sinch.js";
import { telnyxSender } from "../../adapters/sms/telnyx.js";
import { twilioSender } from "../../adapters/sms/twilio.js";
import { vonageSender } from "../../adapters/sms/vonage.js";
import type { SmsSender } from "../ports/sms-sender.js";

export type Environment = Readonly<Record<string, string | undefined>>;

/** A carrier that `--sender` names: how its sender's options are called in the environment. */
interface Carrier {
  /** Variables that must be set. */
  readonly needs: readonly string[];
  /** Variables that may be set. */
  readonly may: readonly string[];
  /** Builds the sender from variables that are known to be set. Throws a `TypeError` for values that cannot be used. */
  open(env: Environment): SmsSender;
}

/** `needs` and `may`: the environment's variable for each option. */
function carrier<Needed extends string, Optional extends string>(
  needs: Readonly<Record<Needed, string>>,
  may: Readonly<Record<Optional, string>>,
  open: (options: Record<Needed, string> & Partial<Record<Optional, string>>) => SmsSender,
): Carrier {
  return {
    needs: Object.values(needs),
    may: Object.values(may),
    open(env) {
      const set = Object.entries<string>({ ...needs, ...may }).flatMap(([option, variable]) => (env[variable] ? [[option, env[variable]]] : []));
      return open(Object.fromEntries(set));
    },
  };
}

const carriers: ReadonlyMap<string, Carrier> = new Map([
  ["twilio", carrier({ accountSid: "TWILIO_ACCOUNT_SID", authToken: "TWILIO_AUTH_TOKEN", from: "TWILIO_FROM" }, { baseUrl: "TWILIO_BASE_URL" }, twilioSender)],
  ["vonage", carrier({ apiKey: "VONAGE_API_KEY", apiSecret: "VONAGE_API_SECRET", from: "VONAGE_FROM" }, { baseUrl: "VONAGE_BASE_URL" }, vonageSender)],
  [
    "aws",
    carrier(
      { accessKeyId: "AWS_ACCESS_KEY_ID", secretAccessKey: "AWS_SECRET_ACCESS_KEY", region: "AWS_REGION" },
      { sessionToken: "AWS_SESSION_TOKEN", from: "AWS_FROM", baseUrl: "AWS_BASE_URL" },
      ({ accessKeyId, secretAccessKey, sessionToken, ...options }) =>
        awsSender({ ...options, credentials: { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) } }),
    ),
  ],
  ["messagebird", carrier({ accessKey: "MESSAGEBIRD_ACCESS_KEY", from: "MESSAGEBIRD_FROM" }, { baseUrl: "MESSAGEBIRD_BASE_URL" }, messageBirdSender)],
  ["plivo", carrier({ authId: "PLIVO_AUTH_ID", authToken: "PLIVO_AUTH_TOKEN", from: "PLIVO_FROM" }, { baseUrl: "PLIVO_BASE_URL" }, plivoSender)],
  [
    "sinch",
    carrier(
      { servicePlanId: "SINCH_SERVICE_PLAN_ID", apiToken: "SINCH_API_TOKEN" },
      { region: "SINCH_REGION", from: "SINCH_FROM", baseUrl: "SINCH_BASE_URL" },
      sinchSender,
    ),
  ],
  ["infobip", carrier({ baseUrl: "INFOBIP_BASE_URL", apiKey: "INFOBIP_API_KEY", from: "INFOBIP_FROM" }, {}, (options) => infobipSender(options))],
  [
    "telnyx",
    carrier({ apiKey: "TELNYX_API_KEY", from: "TELNYX_FROM" }, { messagingProfileId: "TELNYX_MESSAGING_PROFILE_ID", baseUrl: "TELNYX_BASE_URL" }, telnyxSender),
  ],
  [
    "africastalking",
    carrier(
      { username: "AFRICASTALKING_USERNAME", apiKey: "AFRICASTALKING_API_KEY" },
      { from: "AFRICASTALKING_FROM", baseUrl: "AFRICASTALKING_BASE_URL" },
      africasTalkingSender,
    ),
  ],
]);

/** The carrier that `--sender` names. */
export interface CarrierSettings {
  readonly name: string;
  readonly sender: SmsSender;
}

/** Builds the sender that `--sender` names, from the environment. Throws a `TypeError` that names the option or the variables at fault; values are never part of it. */
export function readCarrier(name: string, env: Environment): CarrierSettings {
  const found = carriers.get(name);
  if (found === undefined) throw new TypeError(`--sender takes one of ${[...carriers.keys()].join(", ")}`);
  const missing = found.needs.filter((variable) => !env[variable]);
  if (missing.length > 0)
    throw new TypeError(
      `--sender ${name} needs the environment variable${missing.length > 1 ? "s" : ""} ${missing.join(", ")}: set ${missing.length > 1 ? "them" : "it"} and start again`,
    );
  for (const variable of [...found.needs, ...found.may].filter((one) => one.endsWith("_BASE_URL"))) {
    const url = env[variable];
    if (url && !(URL.canParse(url) && /^https?:\/\//i.test(url))) throw new TypeError(`${variable} must be a URL that starts with https:// or http://`);
  }
  try {
    return { name, sender: found.open(env) };
  } catch (error) {
    throw new TypeError(`--sender ${name}: ${(error as TypeError).message}`);
  }
}

/** A line for each carrier, for the help: its variables, those in brackets optional. */
export const carrierUsage: string = [...carriers]
  .map(([name, { needs, may }]) => `  ${name.padEnd(16)}${[...needs, ...may.map((variable) => `[${variable}]`)].join(", ")}`)
  .join("\n");
