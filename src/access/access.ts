import type { Observed } from "../observability/observed.js";
import type { Lists } from "./lists.js";
import type { NumberFacts } from "./number-facts.js";

/** What decides whether a request comes in. */
export interface Access extends Observed {
  readonly lists: Lists;
  readonly facts: NumberFacts;
}
