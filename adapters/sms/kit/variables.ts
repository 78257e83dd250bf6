/**
 * Environment variables for a sender's options: all of the first are required, one of the second, none of the third.
 */
export interface Variables {
  readonly needs: Readonly<Record<string, string>>;
  readonly needsOneOf?: Readonly<Record<string, string>>;
  readonly may: Readonly<Record<string, string>>;
}
