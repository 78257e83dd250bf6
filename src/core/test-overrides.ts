/** What `createTestVerifier` turns in a verifier that no option can. */
export interface TestOverrides {
  /** The code of the next message to a number; `undefined`: drawn as always. */
  readonly codeFor?: ((number: string) => string | undefined) | undefined;
  /** UUID of the customer of direct calls that name none, although there are customers. */
  readonly unnamed?: string;
}

/** Stored with the options under a symbol, which no written configuration can hold. The symbol is registered: the package has several bundles. */
const overrides: unique symbol = Symbol.for("phoneproof.test-overrides") as never;

export function withTestOverrides<T extends object>(options: T, how: TestOverrides): T {
  return Object.assign({ ...options }, { [overrides]: how });
}

export function testOverridesOf(options: object): TestOverrides {
  return (options as { readonly [overrides]?: TestOverrides })[overrides] ?? {};
}
