/**
 * Checks the `proof` of a create: that someone just solved a challenge in the caller's app. A valid proof exempts that
 * request from the spam rules, but never from the caps or the crowd rule. A proof must pass only once; providers
 * consume it when asked. If `verify` throws, takes longer than 2 s or returns anything but true or false, the error is
 * logged and the spam rules apply, as they do after `false`.
 */
export interface Challenge {
  /** @param proof 1 to 8,192 characters, exactly as the caller's app received them; not checked before. */
  verify(
    proof: string,
    context: {
      /** The end user's IP address, if the create included it. */
      readonly ip?: string | undefined;
      /** Aborted after 2 s; a later result is ignored. */
      readonly signal: AbortSignal;
    },
  ): Promise<boolean>;
}
