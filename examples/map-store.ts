import type { Claim, Store, StoredRecord, SumClaim, SumParts } from "phoneproof";

/** When a member was claimed, and the token of the commit that added it, unless another has claimed it since. */
type Member = { readonly at: number; readonly addedBy: string | undefined };

/**
 * A custom store. This one holds everything in maps while the process runs; yours uses your database.
 * Each method does its work in one tick, so each is one atomic step: nothing else runs in between.
 */
export function mapStore(): Store {
  const records = new Map<string, { readonly record: StoredRecord; wakeAt: number | undefined }>();
  const windows = new Map<string, Map<string, Member>>();
  const sums = new Map<string, Map<number, number>>(); // what each part holds
  const counters = new Map<string, number>();
  const values = new Map<string, string>();

  const keyOf = (customer: string, id: string) => `${customer}/${id}`;
  const window = (name: string) => windows.get(name) ?? new Map<string, Member>();
  const sum = (name: string) => sums.get(name) ?? new Map<number, number>();
  const counts = (at: number, { part, parts, ahead }: SumParts) => at > part - parts && at <= (ahead ? part + 1 : part);
  const total = (parts: SumParts) => [...sum(parts.sum)].reduce((total, [at, held]) => (counts(at, parts) ? total + held : total), 0);
  const held = (claim: Claim, except?: string) =>
    "sum" in claim ? total(claim) : [...window(claim.window)].filter(([member, { at }]) => at > claim.since && member !== except).length;
  const others = (claim: Claim) => held(claim, "sum" in claim ? undefined : claim.member);
  const raised = ({ floor = Number.NEGATIVE_INFINITY, ...claim }: SumClaim) => Math.max(floor, Math.max(floor, total(claim)) + claim.weight);
  const isRefused = (claim: Claim) => {
    if (claim.limit === undefined || ("sum" in claim ? claim.weight < 0 : claim.out)) return false;
    return ("sum" in claim ? raised(claim) : others(claim) + 1) > claim.limit;
  };
  const add = ({ sum: name, part }: SumParts, by: number) => sums.set(name, sum(name).set(part, (sum(name).get(part) ?? 0) + by));
  const take = (claim: Claim, token: string | undefined) => {
    if ("sum" in claim) return add(claim, raised(claim) - total(claim));
    const before = window(claim.window).get(claim.member);
    const addedBy = before === undefined || before.addedBy === token ? token : undefined;
    if (!claim.out) windows.set(claim.window, window(claim.window).set(claim.member, { at: Math.max(claim.now, before?.at ?? claim.now), addedBy }));
    else if (before?.at === claim.now) window(claim.window).delete(claim.member);
  };
  const takeBack = (claim: Claim, token: string) => {
    if ("sum" in claim) add(claim, -claim.weight);
    else if (window(claim.window).get(claim.member)?.addedBy === token) window(claim.window).delete(claim.member);
  };
  const refuseLarge = (text: string) => {
    if (Buffer.byteLength(text) > 64 * 1024) throw new RangeError("at most 64 KiB are kept");
  };

  return {
    find: async (customer, id) => structuredClone(records.get(keyOf(customer, id))?.record),
    async commit({ claims = [], asks = [], record: next, expected = null, revoke }) {
      const before = next && records.get(keyOf(next.customer, next.id));
      const landed = (token: string | undefined) => token !== undefined && before?.record.tokens.includes(token);
      if (!landed(next?.tokens[0])) {
        if (next) refuseLarge(next.data);
        if (next && (before?.record.tokens[0] ?? null) !== expected) return before ? { done: false, current: structuredClone(before.record) } : { done: false };
        const refusedBy = claims.findIndex(isRefused);
        if (refusedBy !== -1) return { done: false, refusedBy, count: others(claims[refusedBy] as Claim) };
        for (const claim of claims) take(claim, next?.tokens[0]);
        if (landed(revoke?.token)) for (const claim of revoke?.claims ?? []) takeBack(claim, revoke?.token as string);
        if (next) {
          const { now, wakeAt, ...record } = next;
          records.set(keyOf(next.customer, next.id), { record: structuredClone(record), wakeAt: wakeAt === "unchanged" ? before?.wakeAt : wakeAt });
        }
      }
      return { done: true, counts: claims.map((claim) => held(claim)), asked: asks.map(total) };
    },
    async members(name, limit) {
      const newestFirst = [...window(name)].sort(([, a], [, b]) => b.at - a.at);
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
    async delete({ records: gone = [], windows: lists = [], sums: ended = [], values: keys = [] }) {
      for (const { customer, id } of gone) records.delete(keyOf(customer, id));
      for (const name of lists) windows.delete(name);
      for (const parts of ended) {
        for (const at of [...sum(parts.sum).keys()]) if (counts(at, { ...parts, ahead: true })) sum(parts.sum).delete(at);
        if (sum(parts.sum).size === 0) sums.delete(parts.sum);
      }
      for (const key of keys) values.delete(key);
    },
  };
}
