import type { Store } from "../ports/store.js";
import type { ContractCase } from "./contract-case.js";
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

/** What the store contract is held against. */
export interface StoreSubject {
  readonly store: Store;
  /** A second handle on the same data, as another process has. Default: `store`. */
  readonly peer?: Store;
}

/**
 * Every sentence of the `Store` port as a named case. The store may hold other data and the cases may run in any order, but one at a time: each works under customers of its own and
 * leaves no record that `lease` would hand out: those it leases lie in 1970. Times lie around the real clock; what must be kept is kept for minutes.
 *
 * @param options.racers How many callers race in each racing case. An integer from 2 to 1,000; default 50.
 */
export function storeContract(options: { readonly racers?: number } = {}): readonly ContractCase<StoreSubject>[] {
  const racers = options.racers ?? 50;
  if (!Number.isInteger(racers) || racers < 2 || racers > 1_000)
    throw new Error(`storeContract: racers must be an integer from 2 to 1,000, got ${String(racers)}.`);
  const changes = [recordCases, replayCases, windowCases, sumCases, togetherCases, revocationCases];
  const oneCaller = [...changes, leaseCases, tallyCases, valueCases, deleteCases, expiryCases].flat();
  return [...oneCaller, ...raceCases(racers)].map(({ name, run }) => ({
    name,
    run: ({ store, peer = store }) => run(store, peer),
  }));
}
