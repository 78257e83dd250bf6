/** "some code was guessed": live codes of one authentication, of which each wrong one had the odds to be one. */
const liveCodes = 2;

/** The odds, from 0 to 1, that a right code was among `wrong` codes tried at random. */
export function guessedOdds(wrong: number, codeLength: number): number {
  return 1 - Math.exp((-wrong * liveCodes) / 10 ** codeLength);
}

/** Odds at which wrong codes are worth a word, and how many times the right ones they must be: people mistype, but most get it right in the end. */
export const sprayed = { odds: 1e-3, timesRight: 3 };

/** Whether wrong codes are out of proportion. */
export function isSpray(wrong: number, right: number, codeLength: number): boolean {
  return wrong >= sprayed.timesRight * Math.max(1, right) && guessedOdds(wrong, codeLength) >= sprayed.odds;
}

/** A share of messages that a rule in shadow may flag unseen, and how many messages make a share. */
export const shadowed = { share: 0.01, messages: 200 };

/** A cap or ceiling of which so much is used is near. */
export const near = 0.8;
