import type { Change, Claim, CommitResult, Expiry, StoredRecord, SumClaim, SumParts } from "../../../src/ports/store.js";
import { clean, original } from "./texts.js";

/** Minutes to keep something, up to 100 years. */
export function minutes({ now, keepUntil }: Expiry): number {
  return Math.ceil(Math.min(Math.max(keepUntil - now, 0), 100 * 365 * 86_400_000) / 60_000);
}

/** A change as the database function `commit` receives it (see schema.ts); `writes`: it does not only read. */
export type Argument = ReturnType<typeof argumentOf>;

export function argumentOf({ claims = [], asks = [], record, expected, revoke, counts }: Change) {
  const sums: object[] = [];
  const members: object[] = [];
  const outs: object[] = [];
  const added = new Set<string>();
  for (const [place, claim] of claims.entries()) {
    const counted = counts === undefined || counts.includes(place) || undefined;
    if ("sum" in claim) sums.push({ place, counted, ...sumOf(claim, claim.weight) });
    else {
      const { window, member, now, since, limit, out } = claim;
      const key = JSON.stringify([window, member]);
      const entry = { place, name: clean(window), member: clean(member), at: now, since, counted, life: minutes(claim) };
      members.push({ most: out ? undefined : limit, adds: !out && !added.has(key), ...entry });
      if (out) outs.push(entry);
      else added.add(key);
    }
  }
  for (const [at, ask] of asks.entries()) sums.push({ place: claims.length + at, weight: 0, counted: true, ...partsOf(ask) });
  return {
    writes: record !== undefined || claims.length > 0,
    sums,
    members,
    outs: outs.length > 0 ? outs : undefined,
    counted: asks.length + (counts ?? claims).length > 0,
    ...(record && {
      id: clean(record.id),
      tokens: record.tokens.map(clean),
      data: clean(record.data),
      keep_until: record.keepUntil,
      wake_at: record.wakeAt === "unchanged" ? undefined : record.wakeAt,
      keeps_wake: record.wakeAt === "unchanged",
      life: minutes(record),
      expected: expected == null ? undefined : clean(expected),
    }),
    ...(record && revoke && { revoked: clean(revoke.token), ...undone(revoke.claims) }),
  };
}

function sumOf(claim: SumClaim, weight: number): object {
  const { part, floor, limit } = claim;
  return { part, weight, low: floor, most: weight < 0 ? undefined : limit, life: minutes(claim), ...partsOf(claim) };
}

function partsOf({ sum, part, parts, ahead }: SumParts): object {
  return { name: clean(sum), since: part - parts, top: ahead ? part + 1 : part };
}

function undone(claims: readonly Claim[]): object {
  return {
    undone_sums: claims.flatMap((claim) => ("sum" in claim ? [{ ...sumOf(claim, -claim.weight), low: undefined }] : [])),
    undone_members: claims.flatMap((claim) => ("sum" in claim || claim.out ? [] : [{ name: clean(claim.window), member: clean(claim.member) }])),
  };
}

/** What `commit` returns for a change. */
export type Outcome =
  | { readonly refusedBy: number; readonly count: number; readonly roomSince?: number; readonly roomPart?: number }
  | { readonly current: StoredRecord | null }
  | { readonly counts: Readonly<Record<number, number>> | null };

export function resultOf({ claims = [], asks = [] }: Change, outcome: Outcome): CommitResult {
  if ("refusedBy" in outcome) return { done: false, ...outcome };
  if ("current" in outcome) return { done: false, ...(outcome.current && { current: parseRecord(outcome.current) }) };
  const counts = outcome.counts ?? {};
  return { done: true, counts: claims.map((_, at) => counts[at]), asked: asks.map((_, at) => counts[claims.length + at] ?? 0) };
}

export function parseRecord({ customer, id, tokens, data, keepUntil }: StoredRecord): StoredRecord {
  return { customer: original(customer), id: original(id), tokens: tokens.map(original), data: original(data), keepUntil };
}
