/** Codes of one authentication that are live at a time. Each wrong code could have matched any of them by chance. */
const liveCodes = 2;

/** The probability, from 0 to 1, that a right code was among `wrong` codes tried at random. */
export function guessedOdds(wrong: number, codeLength: number): number {
  return 1 - Math.exp((-wrong * liveCodes) / 10 ** codeLength);
}

/** Wrong codes raise an alarm from these odds, and from so many per right code: people mistype a few times. */
export const sprayed = { odds: 1e-3, timesRight: 3 };

/** Whether wrong codes are out of proportion. */
export function isSpray(wrong: number, right: number, codeLength: number): boolean {
  return wrong >= sprayed.timesRight * Math.max(1, right) && guessedOdds(wrong, codeLength) >= sprayed.odds;
}

/** The share of messages that a shadow rule may flag without an alarm, and the fewest messages for a share. */
export const shadowed = { share: 0.01, messages: 200 };

/** The used share from which a cap or ceiling is nearly full. */
export const near = 0.8;
