/**
 * One rule of a contract, for any test runner: `for (const c of storeContract()) it(c.name, () => c.run({ store }))`.
 */
export interface ContractCase<T> {
  /** The rule as a sentence, unique within its contract. */
  readonly name: string;
  /** Rejects if the subject breaks the rule, with an error that names the expected and the actual value. */
  readonly run: (subject: T) => Promise<void>;
}
