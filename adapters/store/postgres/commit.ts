import type { Change, Claim, CommitResult, Expiry, RecordWrite } from "../../../src/ports/store.js";
import { clean, listName, numbers, original, recordKey, sumName, texts, windowName } from "./names.js";

/** No limit, and no floor: the largest and the smallest number of PostgreSQL. */
const [unlimited, bottomless] = ["9223372036854775807", "-9223372036854775808"];

/** What a claim does to its row. */
const verbs = { nothing: 0, adds: 1, takesOut: 2, takesBack: 3 };

/** How many members a window keeps beyond its largest limit. */
const slack = 16;

/** Minutes that something must be kept, a hundred years at most. */
export function minutes({ now, keepUntil }: Expiry): number {
  return Math.ceil(Math.min(Math.max(keepUntil - now, 0), 100 * 365 * 86_400_000) / 60_000);
}

/** A claim as the function of the database takes it. */
interface Entry {
  readonly name: string;
  readonly member: string;
  readonly turn: number;
  readonly words: readonly (number | string)[];
}

/** The values of `commit(…)` for a change. */
export function valuesOf({ claims = [], asks = [], record, expected, revoke, counts }: Change): (string | null)[] {
  const entries: Entry[] = [];
  /** Of each name the claims on it. A claim on a row that another has changed already comes a turn later; one of the same member changes nothing more. */
  const made = new Map<string, Entry[]>();

  function enter(name: string, member: string, verb: number, words: (does: number) => readonly (number | string)[]): void {
    const before = made.get(name) ?? [];
    const isAgain = !name.startsWith("#") && before.some((other) => other.member === member && other.words[1] === verb);
    const does = isAgain ? verbs.nothing : verb;
    const turn = does === verbs.nothing || name.startsWith("-") ? 0 : before.filter((other) => other.turn > 0).length + 1;
    const entry = { name, member, turn, words: words(does) };
    made.set(name, [...before, entry]);
    entries.push(entry);
  }

  function claim(one: Claim, place: number, isRevoked: boolean): void {
    if ("sum" in one) {
      const { sum, part, parts, ahead, weight, floor, limit } = one;
      const verb = isRevoked ? verbs.takesBack : weight === 0 && floor === undefined ? verbs.nothing : verbs.adds;
      const most = weight < 0 ? unlimited : (limit ?? unlimited);
      const [by, low] = isRevoked ? [-weight, bottomless] : [weight, floor ?? bottomless];
      enter(sumName(sum), "", verb, (does) => [place, does, part, by, low, part - parts, ahead ? part + 1 : part, most, minutes(one)]);
      return;
    }
    const { window, member, since, now, limit, out } = one;
    const verb = isRevoked ? verbs.takesBack : out ? verbs.takesOut : verbs.adds;
    if (isRevoked && out) return;
    const top = limit === undefined ? Number(counts?.includes(place) !== false) : largestLimit(claims, window) + slack;
    const most = out ? unlimited : (limit ?? unlimited);
    const name = limit === undefined ? listName(window) : windowName(window);
    enter(name, clean(member), verb, (does) => [place, does, 2 * now, 0, 0, 2 * since + 1, top, most, minutes(one)]);
  }

  for (const [place, one] of claims.entries()) claim(one, place, false);
  for (const one of revoke?.claims ?? []) claim(one, -1, true);
  for (const [at, { sum, part, parts, ahead }] of asks.entries())
    enter(sumName(sum), "", verbs.nothing, () => [claims.length + at, verbs.nothing, part, 0, bottomless, part - parts, ahead ? part + 1 : part, unlimited, 0]);
  entries.sort(inOrder);

  const isRead = asks.length > 0 || (counts === undefined ? claims.length > 0 : counts.length > 0) || entries.some(({ words }) => words[7] !== unlimited);
  const lists = entries.filter(({ name }) => name.startsWith("-")).length;
  return [
    record ? recordKey(record.customer, record.id) : null,
    record ? texts(record.tokens.map(clean)) : null,
    record ? clean(record.data) : null,
    numbers([record?.keepUntil ?? 0, record ? minutes(record) : 0, wakeOf(record), Number(isRead), lists]),
    expected == null ? null : clean(expected),
    record && revoke ? clean(revoke.token) : null,
    texts(entries.map(({ name }) => name)),
    texts(entries.map(({ member }) => member)),
    numbers(entries.flatMap(({ words }) => words)),
    numbers(entries.map(({ turn }) => turn)),
  ];
}

/** When the record wakes, -1 for never, -2 where that does not change. */
function wakeOf(record: RecordWrite | undefined): number {
  const { wakeAt = -1 } = record ?? {};
  return wakeAt === "unchanged" ? -2 : wakeAt;
}

function largestLimit(claims: readonly Claim[], window: string): number {
  let most = 0;
  for (const claim of claims) if ("window" in claim && claim.window === window) most = Math.max(most, claim.limit ?? 0);
  return most;
}

/** The order in which rows are locked, the same in every commit: the longest names first. The shorter a name is, the more it covers, so that rows which many want are held for the shortest time. */
function inOrder(a: Pick<Entry, "turn" | "name" | "member">, b: Pick<Entry, "turn" | "name" | "member">): number {
  return a.turn - b.turn || b.name.length - a.name.length || (a.name < b.name ? -1 : a.name > b.name ? 1 : a.member < b.member ? -1 : 1);
}

/** Names in that order. */
export function lockOrder(names: Iterable<string>): string[] {
  return [...new Set(names)].sort((a, b) => b.length - a.length || (a < b ? -1 : 1));
}

/** A row of `commit(…)`. */
export interface Outcome {
  readonly outcome: string;
  readonly tokens: string | null;
  readonly data: string | null;
  readonly keep_until: string | number | bigint | null;
}

/** What a row of `commit(…)` says of a change. */
export function resultOf({ claims = [], asks = [], record, counts: wanted }: Change, row: Outcome): CommitResult {
  const [kind, rest] = [row.outcome.slice(0, 1), row.outcome.slice(1)];
  const found = rest === "" ? [] : rest.split(",").map(Number);
  if (kind === "-") return { done: false };
  if (kind === "=") return { done: false, current: { ...storedOf(row), customer: record?.customer ?? "", id: record?.id ?? "" } };
  if (kind === "!") {
    const [refusedBy = 0, count = 0, room] = found;
    if (room === undefined) return { done: false, refusedBy, count };
    return "sum" in (claims[refusedBy] as Claim) ? { done: false, refusedBy, count, roomPart: room } : { done: false, refusedBy, count, roomSince: room };
  }
  const counts = claims.map((_, at) => (wanted?.includes(at) === false ? undefined : found[at]));
  return { done: true, counts, asked: asks.map((_, at) => found[claims.length + at] ?? 0) };
}

/** The fields of a record from its row. */
export function storedOf({ tokens, data, keep_until }: Pick<Outcome, "tokens" | "data" | "keep_until">) {
  return { tokens: (JSON.parse(tokens as string) as string[]).map(original), data: original(data as string), keepUntil: Number(keep_until) };
}
