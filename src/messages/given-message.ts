/** A message that another server made (docs/contract.md#deliver). */
export interface GivenMessage {
  /** Absent for a notice. */
  readonly code?: string | undefined;
  /** The whole text. Default: the option `message`. */
  readonly text?: string | undefined;
  /** Distinguishes it from other messages to the number. Stored only as a digest. */
  readonly identity: string;
  /** When the caller must have a response, in milliseconds since the epoch. Infinite: it waits for the carrier. */
  readonly answerBy: number;
}
