import type { Observed } from "../observability/observed.js";
import type { Lists } from "./lists.js";
import type { NumberFacts } from "./number-facts.js";

/** The parts that decide whether a request is accepted. */
export interface Access extends Observed {
  readonly lists: Lists;
  readonly facts: NumberFacts;
}
