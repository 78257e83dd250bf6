import type { Ask, Claim, Store, StoredRecord } from "phoneproof";

/**
 * A store of your own. This one keeps everything in maps, for as long as the process runs; yours speaks to your database.
 * Each method does its work in one tick, so each is one atomic step: nothing else runs in between.
 */
export function mapStore(): Store {
  const records = new Map<string, { readonly record: StoredRecord; wakeAt: number | undefined }>();
  const windows = new Map<string, Map<string, number>>(); // when each member was claimed
  const sums = new Map<string, Map<number, number>>(); // what was claimed at which time
  const counters = new Map<string, number>();
  const values = new Map<string, string>();

  const keyOf = (customer: string, id: string) => `${customer}/${id}`;
  const window = (name: string) => windows.get(name) ?? new Map<string, number>();
  const sum = (name: string) => sums.get(name) ?? new Map<number, number>();
  const total = ({ sum: name, since }: Ask) => [...sum(name)].reduce((total, [at, weight]) => (at > since ? total + weight : total), 0);
  const held = (claim: Claim, except?: string) =>
    "sum" in claim ? total(claim) : [...window(claim.window)].filter(([member, at]) => at > claim.since && member !== except).length;
  const others = (claim: Claim) => held(claim, "sum" in claim ? undefined : claim.member);
  const isRefused = (claim: Claim) => {
    const weight = "sum" in claim ? claim.weight : claim.out ? -1 : 1;
    return claim.limit !== undefined && weight >= 0 && others(claim) + weight > claim.limit;
  };
  const take = (claim: Claim) => {
    if ("sum" in claim) sums.set(claim.sum, sum(claim.sum).set(claim.now, Math.max(0, (sum(claim.sum).get(claim.now) ?? 0) + claim.weight)));
    else if (!claim.out) windows.set(claim.window, window(claim.window).set(claim.member, claim.now));
    else if (window(claim.window).get(claim.member) === claim.now) window(claim.window).delete(claim.member);
  };
  const refuseLarge = (text: string) => {
    if (Buffer.byteLength(text) > 64 * 1024) throw new RangeError("at most 64 KiB are kept");
  };

  return {
    find: async (customer, id) => structuredClone(records.get(keyOf(customer, id))?.record),
    async commit({ claims = [], asks = [], record: next, expected = null }) {
      const before = next && records.get(keyOf(next.customer, next.id));
      const landed = before?.record.tokens.includes(next?.tokens[0] as string); // this very commit, sent again
      if (!landed) {
        if (next) refuseLarge(next.data);
        if (next && (before?.record.tokens[0] ?? null) !== expected) return before ? { done: false, current: structuredClone(before.record) } : { done: false };
        const refusedBy = claims.findIndex(isRefused);
        if (refusedBy !== -1) return { done: false, refusedBy, count: others(claims[refusedBy] as Claim) };
        for (const claim of claims) take(claim);
        if (next) {
          const { now, wakeAt, ...record } = next;
          records.set(keyOf(next.customer, next.id), { record: structuredClone(record), wakeAt: wakeAt === "unchanged" ? before?.wakeAt : wakeAt });
        }
      }
      return { done: true, counts: claims.map((claim) => held(claim)), asked: asks.map(total) };
    },
    async members(name, limit) {
      const newestFirst = [...window(name)].sort(([, a], [, b]) => b - a);
      return newestFirst.slice(0, limit).map(([member]) => member);
    },
    async tally(adds, reads) {
      for (const { counter, by } of adds) counters.set(counter, (counters.get(counter) ?? 0) + by);
      return reads.map((counter) => counters.get(counter) ?? 0);
    },
    async lease(until, limit, leaseUntil) {
      const waiting = [...records.values()].filter(({ wakeAt }) => wakeAt !== undefined && wakeAt <= until);
      const due = waiting.sort((a, b) => (a.wakeAt ?? 0) - (b.wakeAt ?? 0)).slice(0, limit);
      for (const entry of due) entry.wakeAt = leaseUntil;
      return due.map(({ record }) => structuredClone(record));
    },
    get: async (key) => values.get(key),
    async put(key, value) {
      refuseLarge(value);
      values.set(key, value);
    },
    async forget({ records: gone = [], windows: lists = [], sums: counts = [], values: keys = [] }) {
      for (const { customer, id } of gone) records.delete(keyOf(customer, id));
      for (const name of lists) windows.delete(name);
      for (const name of counts) sums.delete(name);
      for (const key of keys) values.delete(key);
    },
  };
}
