import type { Store } from "../ports/store.js";
import type { ContractCase } from "./contract-case.js";
import type { StoreCase } from "./store-contract/checks.js";
import { deleteCases } from "./store-contract/delete.js";
import { expiryCases } from "./store-contract/expiries.js";
import { leaseCases } from "./store-contract/lease.js";
import { raceCases } from "./store-contract/races.js";
import { recordCases } from "./store-contract/records.js";
import { replayCases } from "./store-contract/replays.js";
import { revocationCases } from "./store-contract/revocations.js";
import { sumCases } from "./store-contract/sums.js";
import { tallyCases } from "./store-contract/tally.js";
import { togetherCases } from "./store-contract/together.js";
import { valueCases } from "./store-contract/values.js";
import { windowCases } from "./store-contract/windows.js";

/** What the store contract tests. */
export interface StoreSubject {
  readonly store: Store;
  /** A second handle on the same data, like that of another process. Default: `store`. */
  readonly peer?: Store;
}

/**
 * Every rule of the `Store` port as a named case. The store may hold other data. Cases may run in any order, but one at
 * a time. Each uses its own customers and leaves no record for `lease`: those it leases lie in 1970. Other times are
 * close to the real clock; what must be kept is kept for minutes.
 *
 * @param options.racers Number of callers in each race. An integer from 2 to 1,000; default 50.
 */
export function storeContract(options: { readonly racers?: number } = {}): readonly ContractCase<StoreSubject>[] {
  const racers = options.racers ?? 50;
  if (!Number.isInteger(racers) || racers < 2 || racers > 1_000)
    throw new Error(`storeContract: racers must be an integer from 2 to 1,000, got ${String(racers)}.`);
  const changes = [recordCases, replayCases, windowCases, sumCases, togetherCases, revocationCases];
  const all = [...changes, leaseCases, tallyCases, valueCases, deleteCases, expiryCases, raceCases(racers)];
  return all.flatMap(Object.entries<StoreCase>).map(([name, run]) => ({ name, run: ({ store, peer = store }) => run(store, peer) }));
}
