/** Child process of `npm run simulate`: plays one scenario at a time. */

import { extname } from "node:path";
import { pathToFileURL } from "node:url";
import { answerCalls } from "../../../bench/processes.js";
import { requireObject } from "../read-scenario.js";
import type { Scenario } from "../scenario.js";
import { type SimulationOptions, simulate } from "../simulate.js";
import { readJson } from "./settings.js";

/** The scenario to play, and the options to play it with. */
export interface Play {
  readonly scenario: Scenario;
  readonly seed: number;
  /** File of the policy or options. Absent: the defaults. */
  readonly file?: string | undefined;
  /** Changes to that policy. */
  readonly policy: SimulationOptions["policy"];
}

let done = 0;

answerCalls({
  async play({ scenario, seed, file, policy }: Play) {
    done = 0;
    const options = file === undefined ? {} : await read(file);
    const spam = { ...options.policy?.spam, ...policy?.spam };
    return simulate(policy?.spam === undefined ? options : { ...options, policy: { ...options.policy, spam } }, scenario, {
      seed,
      onProgress(share) {
        done = share;
      },
    });
  },
  progress: () => done,
});

/**
 * `.json`: changes to the default policy. Anything else: a module whose default export contains options of
 * `createVerifier`.
 */
async function read(file: string): Promise<SimulationOptions> {
  if (extname(file) === ".json") return { policy: readJson(file) as SimulationOptions["policy"] };
  const module: { readonly default?: SimulationOptions } = await import(pathToFileURL(file).href);
  if (!("default" in module)) throw new TypeError(`--policy: ${file} has no default export: export default { policy: { … } }`);
  requireObject(`the default export of ${file}`, module.default);
  return module.default as SimulationOptions;
}
