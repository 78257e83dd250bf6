/** What `createTestVerifier` can change beyond the options. */
export interface TestOverrides {
  /** Returns the code of the next message to a number; `undefined`: a random one. */
  readonly codeFor?: ((number: string) => string | undefined) | undefined;
  /** UUID of the customer for direct calls without one, although `customers` is set. */
  readonly unnamed?: string;
  /** Counts are written in batches, as without `waitUntil`. */
  readonly batches?: boolean;
}

/** No configuration file can contain a symbol. It is registered because the package has several bundles. */
const overrides: unique symbol = Symbol.for("phoneproof.test-overrides") as never;

export function withTestOverrides<T extends object>(options: T, how: TestOverrides): T {
  return Object.assign({ ...options }, { [overrides]: how });
}

export function testOverridesOf(options: object): TestOverrides {
  return (options as { readonly [overrides]?: TestOverrides })[overrides] ?? {};
}
