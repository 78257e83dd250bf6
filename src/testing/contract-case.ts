/** One sentence that a subject must hold, for any test runner: `for (const c of storeContract()) it(c.name, () => c.run({ store }))`. */
export interface ContractCase<T> {
  /** The sentence, unique within its contract. */
  readonly name: string;
  /** Rejects with an error that says what was expected and what came, when the subject breaks the sentence. */
  run(subject: T): Promise<void>;
}
