import { allocationRows } from "./allocation.js";
import { loadRows, packageRows } from "./imports.js";
import { memoryRows } from "./memory.js";
import { countedInRedis } from "./redis.js";
import { rememberedRows } from "./remembered.js";
import type { Part } from "./report.js";

/** What does not vary from run to run, so that it can be held to: the bench fails where one of these is not reached. */
export const countedPart: Part = {
  name: "counted",
  title: `Counted, and so the same on every machine:
  bytes allocated: what the heap grows by over four rounds of direct calls on the memory store, in a young generation so large that nothing is collected within a round
  promises: those that async hooks tell of from the call until nothing runs on, one operation after another
  commands inside Redis: INFO commandstats, the script itself among them · round trips: scripts that wait for one another
  bytes of a pending authentication: heap and external after forced collections, or used_memory, before and after a hundred thousand and more
  files: those that a fresh process reads for the import, by a hook of the loader and by the cache of require · production node_modules: what the lock file holds for production`,
  gates: true,
  async measure() {
    return [
      ...(await allocationRows()),
      ...(await countedInRedis()),
      ...(await rememberedRows()),
      ...(await memoryRows()),
      ...(await loadRows()),
      ...(await packageRows()),
    ];
  },
};
