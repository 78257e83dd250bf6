/** What `createTestVerifier` turns in a verifier that no option can. */
export interface Rigging {
  /** The code of the next message to a number; `undefined`: drawn as always. */
  readonly codeFor?: ((number: string) => string | undefined) | undefined;
  /** UUID of the customer of direct calls that name none, although there are customers. */
  readonly unnamed?: string;
}

/** Where it stands beside the options: under a symbol, which no configuration that is written down can hold; of the registry, for the package has several bundles. */
const rigging: unique symbol = Symbol.for("phoneproof.rigging") as never;

export function rigged<T extends object>(options: T, how: Rigging): T {
  return Object.assign({ ...options }, { [rigging]: how });
}

export function riggingOf(options: object): Rigging {
  return (options as { readonly [rigging]?: Rigging })[rigging] ?? {};
}
