/** Codes of one authentication that are live at a time. Each wrong code could have matched any of them by chance. */
const liveCodes = 2;

/** The probability, from 0 to 1, that a right code was among `wrong` codes tried at random. */
export function guessedOdds(wrong: number, codeLength: number): number {
  return 1 - Math.exp((-wrong * liveCodes) / 10 ** codeLength);
}

/**
 * When wrong codes raise an alarm: from these odds, and from this many times the right codes. People mistype, but most
 * enter the right code in the end.
 */
export const sprayed = { odds: 1e-3, timesRight: 3 };

/** Whether wrong codes are out of proportion. */
export function isSpray(wrong: number, right: number, codeLength: number): boolean {
  return wrong >= sprayed.timesRight * Math.max(1, right) && guessedOdds(wrong, codeLength) >= sprayed.odds;
}

/**
 * The share of messages that a rule in shadow mode may flag without an alarm, and the minimum number of messages for a
 * share.
 */
export const shadowed = { share: 0.01, messages: 200 };

/** The used share from which a cap or ceiling is nearly full. */
export const near = 0.8;
