import { countedInMongo } from "./counted-mongo.js";
import { countedInPostgres } from "./counted-postgres.js";
import { countedInRedis } from "./counted-redis.js";
import { loadRows, packageRows } from "./imports.js";
import type { Part } from "./report.js";

/** Figures that do not vary between runs: the bench fails if the target of one is not reached. */
export const countedPart: Part = {
  name: "counted",
  title: `Counted, and so the same on every machine; default options, ip and device given, a store with 8 days of history
  round trips: scripts that wait for one another, before the answer · commands inside Redis: INFO commandstats, the scripts themselves among them · bytes to Redis: INFO stats
  per create and per check: what is done in the background included, at 20 requests a second
  files: those that a fresh process reads for the import · production node_modules: what the lock file holds for production`,
  gates: true,
  measure: async () => [
    ...(await countedInRedis()),
    ...(await countedInMongo()),
    ...(await countedInPostgres()),
    ...(await loadRows()),
    ...(await packageRows()),
  ],
};
