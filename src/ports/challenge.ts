/**
 * Checks the `proof` that a create brings: that somebody solved a challenge in the caller's app just now. A proof that holds waives the spam rules for that request, never the caps and never the crowd rule.
 *
 * A proof must pass once only: the providers use it up when they are asked. One that throws, takes longer than 2 s or answers anything but true or false is reported to the logger, and the spam rules stand, as they do when the answer is false.
 */
export interface Challenge {
  /** @param proof 1 to 8,192 characters, as the caller's app got them; nobody has looked at them yet. */
  verify(
    proof: string,
    context: {
      /** The user's address, where the create told it. */
      readonly ip?: string | undefined;
      /** Aborted after 2 s; nobody waits for the answer then. */
      readonly signal: AbortSignal;
    },
  ): Promise<boolean>;
}
