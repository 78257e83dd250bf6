/**
 * Every status in words: tone (good, bad, wait, info), title, sentence. `left`: the number of tries left; `refused`: whether the carrier surely refused the message.
 */
export const words = {
  create: {
    pending: ({ refused }) =>
      refused
        ? ["bad", "Nothing was sent", "The carrier refused the message, which costs nothing. No code can be right; start a new one."]
        : ["good", "On its way", "The code was handed over. Look at the phone."],
    rate_limited: () => [
      "wait",
      "Too many messages",
      "This number, device or address has had its share for now. Nothing was sent. Wait a while, or take another number.",
    ],
    spam_detected: () => [
      "bad",
      "Looks like spam",
      "A spam rule refused this attempt, and nothing was sent. Under “Calls and callbacks”, open the call: it names the rule. Take another number.",
    ],
  },
  retry: {
    approved: () => ["good", "Sent again", "A new code is on its way. The one before still works too, in case it arrives late."],
    denied: () => ["wait", "Not yet", "No message can be sent right now. Try again once the time under “Next message” has passed."],
    no_attempt: () => ["bad", "Nothing to repeat", "No message of this verification ever left, so none can be sent again. Start a new one."],
    rate_limited: () => [
      "bad",
      "No more messages",
      "The messages or tries of this verification are used up. A code that has come may still be right; else start a new one.",
    ],
    expired_auth: () => ["bad", "Too late", "This verification has expired. Start a new one."],
    already_validated: () => ["info", "Already verified", "This verification was completed before, so nothing was sent."],
  },
  check: {
    valid: () => ["good", "Verified", "The code is right: the number belongs to this person. Only this answer may let a user in."],
    invalid: ({ left }) => [
      "bad",
      left > 0 ? "Wrong code" : "Wrong code, and locked",
      left > 0
        ? `That is not the code. ${left === 1 ? "One try is" : `${left} tries are`} left.`
        : "That is not the code, and it was the last try. Start a new verification.",
    ],
    without_attempt: () => ["bad", "Nothing was sent", "No message of this verification ever left, so there is no code to check. Start a new one."],
    rate_limited: () => ["bad", "Locked", "Too many wrong codes. This verification stays closed, even for the right one. Start a new one."],
    already_validated: () => [
      "info",
      "Already verified",
      "This code was used before. Never take this answer for a success: only the first check answers valid.",
    ],
    expired_auth: () => ["bad", "Too late", "The code has expired, even the right one. Start a new verification: it sends another."],
  },
};

/** Seconds as `m:ss`. */
export function clock(seconds) {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
