import type { Change, Claim, CommitResult, Expiry, RecordWrite, StoredRecord } from "../../../src/ports/store.js";
import { largestLimit } from "../../kit/store.js";
import { clean, listName, numbers, original, parseKey, recordKey, sumName, texts, windowName } from "./names.js";

/** No limit and no floor: the largest and smallest `bigint`. */
const [unlimited, bottomless] = ["9223372036854775807", "-9223372036854775808"];

/** What a claim does to its row. */
const verbs = { nothing: 0, adds: 1, takesOut: 2, takesBack: 3 };

/** How many members a window keeps beyond its largest limit. */
const slack = 16;

/** Minutes to keep something, up to 100 years. */
export function minutes({ now, keepUntil }: Expiry): number {
  return Math.ceil(Math.min(Math.max(keepUntil - now, 0), 100 * 365 * 86_400_000) / 60_000);
}

/** One claim as the database function receives it. */
interface Entry {
  readonly name: string;
  readonly member: string;
  readonly turn: number;
  /** Its nine numbers (see schema.ts). */
  readonly words: (number | string)[];
}

/** The arguments of `commit(…)` for a change. */
export function valuesOf({ claims = [], asks = [], record, expected, revoke, counts }: Change): (string | null)[] {
  const entries: Entry[] = [];
  const made = new Map<string, Entry[]>();
  let isRead = asks.length > 0 || (counts ?? claims).length > 0;
  let [lists, zeros] = [0, 0];

  /**
   * If another claim already changes the row, this claim is made one turn later. A second claim of the same member
   * changes nothing more and is checked with the first.
   */
  function enter(name: string, member: string, words: (number | string)[]): void {
    const before = made.get(name);
    const first = name.startsWith("#") ? undefined : before?.find((other) => other.member === member && other.words[1] === words[1]);
    if (first !== undefined) {
      if (first.words[3] === 1) isRead = true;
      first.words[3] = 1;
      words[1] = verbs.nothing;
    }
    const isTurn = words[1] !== verbs.nothing && !name.startsWith("-");
    const entry = { name, member, turn: first?.turn ?? (isTurn ? 1 + (before?.filter(({ turn }) => turn > 0).length ?? 0) : 0), words };
    if (before === undefined) made.set(name, [entry]);
    else before.push(entry);
    entries.push(entry);
  }

  function claim(one: Claim, place: number, isRevoked: boolean): void {
    if ("sum" in one) {
      const { sum, part, parts, ahead, weight, floor, limit } = one;
      const verb = isRevoked ? verbs.takesBack : weight === 0 && floor === undefined ? verbs.nothing : verbs.adds;
      const held = isRevoked || weight < 0 ? undefined : limit;
      const most = held ?? unlimited;
      if (held !== undefined && verb === verbs.nothing) zeros++;
      // If there is no row yet, the insert compares nothing.
      else if (held !== undefined && Math.max(floor ?? weight, Math.max(floor ?? 0, 0) + weight) > held) isRead = true;
      const [by, low] = isRevoked ? [-weight, bottomless] : [weight, floor ?? bottomless];
      enter(sumName(sum), "", [place, verb, part, by, low, part - parts, ahead ? part + 1 : part, most, minutes(one)]);
      return;
    }
    const { window, member, since, now, limit, out } = one;
    if (isRevoked && out) return;
    const verb = isRevoked ? verbs.takesBack : out ? verbs.takesOut : verbs.adds;
    if (limit === undefined) lists++;
    const top = limit === undefined ? Number(counts?.includes(place) !== false) : largestLimit(claims, window) + slack;
    const name = limit === undefined ? listName(window) : windowName(window);
    enter(name, clean(member), [place, verb, 2 * now, 0, 0, 2 * since + 1, top, out ? unlimited : (limit ?? unlimited), minutes(one)]);
  }

  for (const [place, one] of claims.entries()) claim(one, place, false);
  for (const one of revoke?.claims ?? []) claim(one, -1, true);
  for (const [at, { sum, part, parts, ahead }] of asks.entries())
    enter(sumName(sum), "", [claims.length + at, verbs.nothing, part, 0, bottomless, part - parts, ahead ? part + 1 : part, unlimited, 0]);
  entries.sort(inOrder);
  return [
    record ? recordKey(record.customer, record.id) : null,
    record ? texts(record.tokens.map(clean)) : null,
    record ? clean(record.data) : null,
    numbers([record?.keepUntil ?? 0, record ? minutes(record) : 0, wakeOf(record), Number(isRead), lists, zeros]),
    expected == null ? null : clean(expected),
    record && revoke ? clean(revoke.token) : null,
    texts(entries.map(({ name }) => name)),
    texts(entries.map(({ member }) => member)),
    numbers(entries.flatMap(({ words }) => words)),
    numbers(entries.map(({ turn }) => turn)),
  ];
}

/** When the record wakes: -1 for never, -2 for no change. */
function wakeOf(record: RecordWrite | undefined): number {
  const { wakeAt = -1 } = record ?? {};
  return wakeAt === "unchanged" ? -2 : wakeAt;
}

/**
 * The order in which every commit locks rows: longest names first. Short names cover more, so contended rows are locked
 * for the shortest time.
 */
function inOrder(a: Entry, b: Entry): number {
  return a.turn - b.turn || b.name.length - a.name.length || compare(a.name, b.name) || compare(a.member, b.member);
}

/** Sorts names in lock order. */
export function lockOrder(names: Iterable<string>): string[] {
  return [...new Set(names)].sort((a, b) => b.length - a.length || compare(a, b));
}

const compare = (a: string, b: string) => (a < b ? -1 : Number(a > b));

/** Converts the result of `commit(…)` for a change. */
export function resultOf({ claims = [], asks = [], counts: wanted }: Change, outcome: string): CommitResult {
  const [kind, rest] = [outcome.slice(0, 1), outcome.slice(1)];
  if (kind === "-") return { done: false };
  if (kind === "=") return { done: false, current: parseRecord(rest) };
  const found = rest === "" ? [] : rest.split(",").map(Number);
  if (kind === "+") {
    const counts = claims.map((_, at) => (wanted?.includes(at) === false ? undefined : found[at]));
    return { done: true, counts, asked: asks.map((_, at) => found[claims.length + at] ?? 0) };
  }
  const [refusedBy = 0, count = 0, room] = found;
  if (room === undefined) return { done: false, refusedBy, count };
  return "sum" in (claims[refusedBy] as Claim) ? { done: false, refusedBy, count, roomPart: room } : { done: false, refusedBy, count, roomSince: room };
}

/** Parses a record from its JSON. */
export function parseRecord(json: string | object): StoredRecord {
  const { key, tokens, data, keepUntil } = (typeof json === "string" ? JSON.parse(json) : json) as {
    key: string;
    tokens: string[];
    data: string;
    keepUntil: number;
  };
  return { ...parseKey(key), tokens: tokens.map(original), data: original(data), keepUntil };
}
