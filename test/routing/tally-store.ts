import type { Store } from "../../src/ports/store.js";

/**
 * A store with counters only, for routers that share it. `traffic` counts calls, named counters, characters of
 * names and numbers, and the calls that are still open.
 */
export function tallyStore(behind?: Pick<Store, "tally">) {
  const counters = new Map<string, number>();
  const traffic = { calls: 0, names: 0, bytes: 0, open: 0 };
  const count: Store["tally"] = async (adds, reads) => {
    for (const { counter, by } of adds) counters.set(counter, (counters.get(counter) ?? 0) + by);
    return reads.map((name) => counters.get(name) ?? 0);
  };
  const tally: Store["tally"] = async (adds, reads) => {
    traffic.calls += 1;
    traffic.open += 1;
    try {
      const answer = await (behind ? behind.tally(adds, reads) : count(adds, reads));
      traffic.names += adds.length + reads.length;
      traffic.bytes += [...adds.flatMap(({ counter, by, now, keepUntil }) => [counter, by, keepUntil - now]), ...reads, ...answer].join(" ").length;
      return answer;
    } finally {
      traffic.open -= 1;
    }
  };
  return { counters, traffic, tally } as unknown as Store & { readonly counters: typeof counters; readonly traffic: typeof traffic };
}
