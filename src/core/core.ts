import type { Records, RecordsParts } from "./records/records.js";
import type { TestOverrides } from "./test-overrides.js";

/** The parts that everything else uses. */
export interface Core extends RecordsParts {
  readonly overrides: TestOverrides;
  readonly records: Records;
}
