/**
 * Every status in words: tone (good, bad, wait, info), title, sentence. `left` is the number of tries left, where that matters.
 */
export const words = {
  create: {
    pending: () => ["good", "On its way", "The code was handed over. Look at the phone."],
    rate_limited: () => [
      "wait",
      "Too many messages",
      "This number, device or address has had its share for now. Nothing was sent. Wait a while, or take another number.",
    ],
    spam_detected: () => ["bad", "Looks like spam", "A spam rule refused this attempt. Nothing was sent."],
  },
  retry: {
    approved: () => ["good", "Sent again", "A new code is on its way. The one before still works too, in case it arrives late."],
    denied: () => ["wait", "Not yet", "No message can be sent right now. Try again once the time under “Next message” has passed."],
    no_attempt: () => ["bad", "Nothing to repeat", "No message of this verification ever left, so none can be sent again. Start a new one."],
    rate_limited: () => ["bad", "No more messages", "Messages or tries are used up. Start a new verification."],
    expired_auth: () => ["bad", "Too late", "This verification has expired. Start a new one."],
    already_validated: () => ["info", "Already verified", "This verification was completed before, so nothing was sent."],
  },
  check: {
    valid: () => ["good", "Verified", "The code is right: the number belongs to this person. Only this answer may let a user in."],
    invalid: (left) => [
      "bad",
      "Wrong code",
      left > 0 ? `That is not the code. ${left === 1 ? "One try is" : `${left} tries are`} left.` : "That is not the code, and it was the last try.",
    ],
    without_attempt: () => ["bad", "Nothing was sent", "No message of this verification ever left, so there is no code to check."],
    rate_limited: () => ["bad", "Locked", "Too many wrong codes. This verification stays closed, even for the right one. Start a new one."],
    already_validated: () => [
      "info",
      "Already verified",
      "This code was used before. Never take this answer for a success: only the first check answers valid.",
    ],
    expired_auth: () => ["bad", "Too late", "The code has expired. Start a new verification."],
  },
};

/** Seconds as `m:ss`. */
export function clock(seconds) {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
