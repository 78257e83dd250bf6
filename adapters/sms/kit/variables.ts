/**
 * Environment variables of a sender's options, as `phoneproof dev --sender <name>` reads them. `needs`: all are
 * required. `needsOneOf`: one is required. `may`: optional.
 */
export interface Variables {
  readonly needs: Readonly<Record<string, string>>;
  readonly needsOneOf?: Readonly<Record<string, string>>;
  readonly may: Readonly<Record<string, string>>;
}
