import type { Store, StoredRecord } from "phoneproof";

/**
 * A store of your own. This one keeps everything in maps, for as long as the process runs; yours speaks to your database.
 * Each method does its work in one tick, so each is one atomic step: nothing else runs in between.
 */
export function mapStore(): Store {
  const records = new Map<string, StoredRecord>();
  const windows = new Map<string, Map<string, number>>();
  const values = new Map<string, string>();
  const members = (window: string) => windows.get(window) ?? new Map<string, number>();
  const newer = (window: string, since: number, except?: string) => [...members(window)].filter(([member, at]) => at > since && member !== except).length;
  const refuseLarge = (text: string) => {
    if (Buffer.byteLength(text) > 64 * 1024) throw new RangeError("at most 64 KiB are kept");
  };

  return {
    find: async (customer, id) => structuredClone(records.get(`${customer}/${id}`)),
    async compareAndSwap(next, expected) {
      refuseLarge(next.data);
      const key = `${next.customer}/${next.id}`;
      const current = records.get(key);
      if (current?.tokens.includes(next.tokens[0] as string)) return { swapped: true }; // this very write landed before
      if ((current?.tokens[0] ?? null) !== expected) return current ? { swapped: false, current: structuredClone(current) } : { swapped: false };
      records.set(key, structuredClone(next));
      return { swapped: true };
    },
    async reserve(claims) {
      const refusedBy = claims.findIndex(({ window, member, limit, since }) => newer(window, since, member) >= limit);
      if (refusedBy !== -1) return { granted: false, refusedBy };
      for (const { window, member, now } of claims) windows.set(window, members(window).set(member, now));
      return { granted: true };
    },
    count: async (asked) => asked.map(({ window, since }) => newer(window, since)),
    async due(until, limit) {
      const waiting = [...records.values()].filter(({ wakeAt }) => wakeAt !== undefined && wakeAt <= until);
      return structuredClone(waiting.sort((a, b) => (a.wakeAt ?? 0) - (b.wakeAt ?? 0)).slice(0, limit));
    },
    get: async (key) => values.get(key),
    async put(key, value) {
      refuseLarge(value);
      values.set(key, value);
    },
  };
}
