import type { Decision } from "../domain/decision.js";
import { type DestinationError, destinationError, isRefusedLine, type PhoneNumber, phoneNumberOf } from "../domain/phone-number.js";
import type { Account } from "../domain/policy.js";
import { VerifierError } from "../errors.js";
import type { Observed } from "../observability/observed.js";
import type { LookupFacts } from "../ports/lookup-provider.js";
import type { Channel, Network } from "../ports/sms-sender.js";
import type { Access } from "./access.js";

/** Parses the number, once per request. Throws `invalid_phone_number`. */
export function readNumber({ settings }: Observed, phoneNumber: string): PhoneNumber {
  const phone = phoneNumberOf(phoneNumber, settings.numberRules);
  if (phone !== undefined) return phone;
  throw new VerifierError("invalid_phone_number", 'phone_number is not a valid number in E.164 form, for example "+14155552671".');
}

const problems: Readonly<Record<DestinationError, string>> = {
  unsupported_region: "phone_number belongs to a country that this service does not send to.",
  invalid_line: "phone_number belongs to a kind of line that cannot receive codes.",
  blocked_number: "phone_number is blocked.",
};

/** Returns a number that may receive a message. Throws the policy errors (docs/contract.md#destinations). */
export function readDestination(parts: Observed, phoneNumber: string): PhoneNumber {
  const phone = readNumber(parts, phoneNumber);
  const problem = destinationError(phone, parts.settings);
  if (problem !== undefined) throw new VerifierError(problem, problems[problem]);
  return phone;
}

/**
 * The number's network and kind of line, if a lookup before the send returns them (docs/contract.md#lookup-before-send). Throws
 * `invalid_line` if the line type cannot receive codes; without facts, the numbering plan decides.
 */
export async function lookBeforeSend(parts: Access, account: Account, phone: PhoneNumber) {
  const facts = await parts.facts.of(account, phone);
  const { line_type: lineType } = facts;
  if (lineType !== undefined && isRefusedLine(lineType, phone.country, parts.settings)) throw new VerifierError("invalid_line", problems.invalid_line);
  return { network: networkOf(facts), isFixed: lineType === "FixedLine" };
}

/** The same for a number that was accepted before; it rejects nothing. */
export async function lookAgain(parts: Access, account: Account, phone: PhoneNumber | undefined): Promise<Network | undefined> {
  return parts.settings.lookupBeforeSend && phone !== undefined ? networkOf(await parts.facts.of(account, phone)) : undefined;
}

function networkOf({ mcc, mnc }: LookupFacts): Network | undefined {
  return mcc === undefined ? undefined : { mcc, ...(mnc !== undefined && { mnc }) };
}

/** Throws `bad_request` for a channel that no sender has (docs/contract.md#channel). */
export function requireChannel({ settings }: Observed, channel: Channel | undefined): void {
  if (channel === undefined || settings.channels.includes(channel)) return;
  throw new VerifierError("bad_request", `channel ${channel} is not available on this service, which has ${settings.channels.join(", ")}.`);
}

export function blockedNumber(): VerifierError {
  return new VerifierError("blocked_number", problems.blocked_number);
}

/** Reads a number that was accepted before from the numbering plan. */
export function readAgain({ settings }: Observed, number: string): PhoneNumber | undefined {
  return phoneNumberOf(number, { ...settings.numberRules, validation: "possible" });
}

/** Why a number that was accepted before gets no more messages, if the options now forbid it. */
export function forbiddenSince({ clock, settings }: Observed, phone: PhoneNumber | undefined): readonly Decision[] {
  const rule = phone && destinationError(phone, settings);
  return rule === undefined ? [] : [{ at: clock.now(), rule, mode: "enforce", reason: problems[rule] }];
}
