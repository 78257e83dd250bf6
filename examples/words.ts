import { type AuthenticationResult, type PhoneNumberError, VerifierError } from "phoneproof";

const typed: Readonly<Record<PhoneNumberError, string>> = {
  not_a_number: "Type the number in digits.",
  country_needed: "Choose your country, or begin with + and the country code.",
  unknown_country: "No country has this code. Begin with + and the country code.",
  too_short: "This number is too short.",
  too_long: "This number is too long.",
  invalid: "This is not a number of the chosen country. For another one begin with + and its code.",
};

/** For a user whose input is not a phone number. */
export function wordsForTyped(reason: PhoneNumberError): string {
  return typed[reason];
}

/** For a user who requested a code; `undefined`: it was sent. Never reveals whether the number has an account. */
export function wordsForRefused({ status, carrier_refused, retry_after }: AuthenticationResult): string | undefined {
  if (carrier_refused) return "The network did not take our message to this number. Check it, or use another one.";
  if (status === "pending") return undefined;
  if (status === "rate_limited" && retry_after) return `Too many codes were asked for. Try again in ${Math.ceil(retry_after / 60)} min.`;
  return "We cannot send a code to this number now. Try again later."; // nor which rule rejected it
}

/** For a user whose number the verifier rejects; other errors are thrown again. */
export function wordsForError(error: unknown): string {
  switch (error instanceof VerifierError ? error.code : undefined) {
    case "unsupported_region":
      return "We do not send codes to this country yet.";
    case "invalid_line":
      return "This line takes no text messages. Give a mobile number.";
    case "blocked_number":
    case "unavailable":
      return "We cannot send a code to this number now. Try again later.";
    default:
      throw error;
  }
}

const ended: Readonly<Record<string, string>> = {
  expired_auth: "The code has expired. Ask for a new one.",
  rate_limited: "There were too many wrong codes. Ask for a new one.",
  already_validated: "This code was used already. Ask for a new one.", // no proof: the second sender may not be the one who knew the code
  no_session: "Ask for a code first. If you did: this browser keeps no cookies, or it took too long.",
};

/** For a user whose code can no longer be used. */
export function wordsForEnded(why: string): string {
  return ended[why] ?? "No code can be used any more. Ask for a new one.";
}
