import { africasTalkingSender, africasTalkingVariables } from "../../adapters/sms/africastalking.js";
import { awsSender, awsVariables } from "../../adapters/sms/aws.js";
import { infobipSender, infobipVariables } from "../../adapters/sms/infobip.js";
import type { Variables } from "../../adapters/sms/kit/carrier-sender.js";
import { messageBirdSender, messageBirdVariables } from "../../adapters/sms/messagebird.js";
import { plivoSender, plivoVariables } from "../../adapters/sms/plivo.js";
import { sinchSender, sinchVariables } from "../../adapters/sms/sinch.js";
import { telegramSender, telegramVariables } from "../../adapters/sms/telegram.js";
import { telnyxSender, telnyxVariables } from "../../adapters/sms/telnyx.js";
import { twilioSender, twilioVariables, twilioWhatsappSender, twilioWhatsappVariables } from "../../adapters/sms/twilio.js";
import { twilioVoiceSender, twilioVoiceVariables } from "../../adapters/sms/twilio-voice.js";
import { vonageSender, vonageVariables, vonageWhatsappSender, vonageWhatsappVariables } from "../../adapters/sms/vonage.js";
import { vonageVoiceSender, vonageVoiceVariables } from "../../adapters/sms/vonage-voice.js";
import { whatsappSender, whatsappVariables } from "../../adapters/sms/whatsapp.js";
import type { SmsSender } from "../ports/sms-sender.js";

export type Environment = Readonly<Record<string, string | undefined>>;

/** A carrier for `--sender`. Its options, from the environment, are all strings; the sender checks them itself. */
function carrier<Options>(
  variables: Variables,
  make: (options: Options) => SmsSender,
  shape: (options: Record<string, string>) => unknown = (options) => options,
) {
  return { variables, open: (options: Record<string, string>) => make(shape(options) as Options) };
}

/** A demo takes no receipts, so its calls cannot ask for a key. */
const asCall = ({ countries = "", ...options }: Record<string, string>) => ({
  ...options,
  countries: countries.split(",").map((country) => country.trim()),
  pressKey: false,
});

const carriers = new Map([
  ["twilio", carrier(twilioVariables, twilioSender)],
  ["vonage", carrier(vonageVariables, vonageSender)],
  [
    "aws",
    carrier(awsVariables, awsSender, ({ accessKeyId, secretAccessKey, sessionToken, ...options }) => ({
      ...options,
      credentials: { accessKeyId, secretAccessKey, sessionToken },
    })),
  ],
  ["messagebird", carrier(messageBirdVariables, messageBirdSender)],
  ["plivo", carrier(plivoVariables, plivoSender)],
  ["sinch", carrier(sinchVariables, sinchSender)],
  ["infobip", carrier(infobipVariables, infobipSender)],
  ["telnyx", carrier(telnyxVariables, telnyxSender)],
  ["africastalking", carrier(africasTalkingVariables, africasTalkingSender)],
  ["telegram", carrier(telegramVariables, telegramSender)],
  ["whatsapp", carrier(whatsappVariables, whatsappSender)],
  ["twilio-whatsapp", carrier(twilioWhatsappVariables, twilioWhatsappSender)],
  ["vonage-whatsapp", carrier(vonageWhatsappVariables, vonageWhatsappSender)],
  ["twilio-voice", carrier(twilioVoiceVariables, twilioVoiceSender, asCall)],
  ["vonage-voice", carrier(vonageVoiceVariables, vonageVoiceSender, asCall)],
]);

export type CarrierSettings = ReturnType<typeof readCarrier>;

/**
 * Builds the sender that `--sender` names, from the environment. Throws a `TypeError` that names the option or the
 * invalid variables, but never their values.
 */
export function readCarrier(name: string, env: Environment) {
  const found = carriers.get(name);
  if (found === undefined) throw new TypeError(`--sender takes one of ${[...carriers.keys()].join(", ")}`);
  const { needs, needsOneOf = {}, may } = found.variables;
  const missing = Object.values(needs).filter((variable) => !env[variable]);
  const eitherOf = Object.values(needsOneOf);
  if (eitherOf.length > 0 && !eitherOf.some((variable) => env[variable])) missing.push(eitherOf.join(" or "));
  if (missing.length > 0)
    throw new TypeError(
      `--sender ${name} needs the environment variable${missing.length > 1 ? "s" : ""} ${missing.join(", ")}: set ${missing.length > 1 ? "them" : "it"} and start again`,
    );
  const set = Object.entries({ ...needs, ...needsOneOf, ...may }).flatMap(([option, variable]) => (env[variable] ? [[option, env[variable]] as const] : []));
  for (const [option, url] of set)
    if (option === "baseUrl" && !(URL.canParse(url) && /^https?:\/\//i.test(url)))
      throw new TypeError(`${{ ...needs, ...may }["baseUrl"]} must be a URL that starts with https:// or http://`);
  try {
    return { name, sender: found.open(Object.fromEntries(set)) };
  } catch (error) {
    throw new TypeError(`--sender ${name}: ${(error as TypeError).message}`);
  }
}

/**
 * One line for each carrier, for the help, with its variables: one of those joined by `|`; those in brackets are
 * optional.
 */
export const carrierUsage: string = [...carriers]
  .map(([name, { variables }]) => {
    const { needs, needsOneOf = {}, may } = variables;
    const either = Object.values(needsOneOf).join("|");
    const words = [...Object.values(needs), ...(either === "" ? [] : [either]), ...Object.values(may).map((variable) => `[${variable}]`)];
    return `  ${name.padEnd(16)}${words.join(", ")}`;
  })
  .join("\n");
