import type { Store } from "../ports/store.js";
import type { ContractCase } from "./contract-case.js";
import { dueCases } from "./store-contract/due.js";
import { largeWindowCases } from "./store-contract/large-windows.js";
import { raceCases } from "./store-contract/races.js";
import { recordCases } from "./store-contract/records.js";
import { replayCases } from "./store-contract/replays.js";
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
 * leaves no record that `due` would return. Times lie around the real clock; what must be kept is kept for minutes.
 *
 * @param options.racers How many callers race in each racing case. An integer of 2 or more; default 50.
 */
export function storeContract(options: { readonly racers?: number } = {}): readonly ContractCase<StoreSubject>[] {
  const racers = options.racers ?? 50;
  if (!Number.isInteger(racers) || racers < 2) throw new Error(`storeContract: racers must be an integer of 2 or more, got ${String(racers)}.`);
  return [...recordCases, ...replayCases, ...windowCases, ...largeWindowCases, ...dueCases, ...valueCases, ...raceCases(racers)].map(({ name, run }) => ({
    name,
    run: ({ store, peer = store }) => run(store, peer),
  }));
}
