import { destinationFault, type PhoneNumber, parsePhoneNumber } from "../../domain/phone-number.js";
import { VerifierError } from "../../errors.js";
import type { BaseParts } from "../parts.js";

/** The number, parsed once a request. Throws `invalid_phone_number`. */
export function readNumber({ settings }: BaseParts, phoneNumber: string): PhoneNumber {
  const phone = parsePhoneNumber(phoneNumber, settings.numberRules);
  if (phone !== undefined) return phone;
  throw new VerifierError("invalid_phone_number", 'phone_number is not a valid number in E.164 form, for example "+14155552671".');
}

const faults = {
  unsupported_region: "phone_number belongs to a country that this service does not send to.",
  invalid_line: "phone_number belongs to a kind of line that cannot receive codes.",
  blocked_number: "phone_number is blocked.",
} as const;

/** A number that may get a message. Throws the policy faults of contract.md. */
export function readDestination(parts: BaseParts, phoneNumber: string): PhoneNumber {
  const phone = readNumber(parts, phoneNumber);
  const fault = destinationFault(phone, parts.settings);
  if (fault !== undefined) throw new VerifierError(fault, faults[fault]);
  return phone;
}

export function blockedNumber(): VerifierError {
  return new VerifierError("blocked_number", faults.blocked_number);
}

/** What the numbering plan says of a number that was accepted before. */
export function readAgain({ settings }: BaseParts, number: string): PhoneNumber | undefined {
  return parsePhoneNumber(number, { ...settings.numberRules, validation: "possible" });
}
