import type { AgedCache } from "../core/collections.js";
import type { Observed } from "../observability/observed.js";
import type { Lists } from "./lists.js";
import type { NumberFacts } from "./number-facts.js";

/** The parts that decide whether a request is accepted. */
export interface Access extends Observed {
  readonly lists: Lists;
  readonly facts: NumberFacts;
  /** Checks of proofs by calls under an idempotency key: in progress, or accepted and not yet used. */
  readonly proofs: AgedCache<Promise<boolean>>;
}
