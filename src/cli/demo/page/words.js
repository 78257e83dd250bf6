const startAgain = "Start a new verification.";

/**
 * Tone (good, bad, wait), title and sentence for each status. Functions take `refused` (the carrier rejected the
 * message) or `left` (tries left).
 */
const words = {
  create: {
    pending: ({ refused }) =>
      refused
        ? ["bad", "Nothing was sent", `The carrier rejected the message, at no cost. No code can be valid. ${startAgain}`]
        : ["good", "Code sent", "The carrier accepted the message. See the phone."],
    rate_limited: ["wait", "Too many messages", "This number, device or IP address has reached its limit. Nothing was sent. Wait, or try another number."],
    spam_detected: [
      "bad",
      "Flagged as spam",
      "A spam rule blocked this request. Nothing was sent. Open the call under “Calls and callbacks” to see which rule.",
    ],
  },
  retry: {
    approved: ["good", "Sent again", "A new code is on its way. The previous code still works, in case it arrives late."],
    denied: ["wait", "Not yet", "Too early for another message. Try again after the time shown under “Next message”."],
    no_attempt: ["bad", "Nothing to send again", `No message of this verification was ever sent. ${startAgain}`],
    rate_limited: [
      "bad",
      "No messages left",
      "This verification has used all its messages or tries. A code that arrived may still work; otherwise start a new verification.",
    ],
    expired_auth: ["bad", "Expired", `This verification has expired. ${startAgain}`],
    already_validated: ["wait", "Already verified", "This verification is complete. Nothing was sent."],
  },
  check: {
    valid: ["good", "Verified", "The code is correct: the user has this number. Only this response may sign a user in."],
    invalid: ({ left }) =>
      left > 0
        ? ["bad", "Wrong code", `That is not the code. ${left === 1 ? "1 try" : `${left} tries`} left.`]
        : ["bad", "Wrong code, and locked", `That is not the code, and it was the last try. ${startAgain}`],
    without_attempt: ["bad", "Nothing was sent", `No message of this verification was ever sent, so there is no code to check. ${startAgain}`],
    rate_limited: ["bad", "Locked", `Too many wrong codes. Even the correct code is no longer accepted. ${startAgain}`],
    already_validated: ["wait", "Already verified", "This code was used before. Never treat this response as success: only the first check returns valid."],
    expired_auth: ["bad", "Expired", `The code has expired. Even the correct code is no longer accepted. ${startAgain}`],
  },
};

/** Undefined for a status that has no words. */
export function wordsFor(operation, status, details = {}) {
  const found = words[operation]?.[status];
  return typeof found === "function" ? found(details) : found;
}

/** Seconds as `m:ss`. */
export function clock(seconds) {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

const countries = new Intl.DisplayNames(["en"], { type: "region" });
export const countryName = (code) => countries.of(code);
