/** Names of the environment's variables for a sender's options: of those that must be set, of those of which one must be, and of those that may be. */
export interface Variables {
  readonly needs: Readonly<Record<string, string>>;
  readonly needsOneOf?: Readonly<Record<string, string>>;
  readonly may: Readonly<Record<string, string>>;
}
