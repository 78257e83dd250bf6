import type { Ask, Change, Claim, CommitResult, Forgotten, Life, RecordWrite, Store, StoredRecord, StoreInspection, Tally } from "../../../src/ports/store.js";
import { onlyOptions } from "../../kit/option-fault.js";
import { Heap } from "./heap.js";
import { Names } from "./names.js";
import { joined, numberAt, numberWidth, packed } from "./pack.js";
import { isNewest, type Kept, packRecord, unpackRecord, wakeAtOf } from "./record.js";
import { type Numbers, partsOf, roomSince as roomInSum, total, withWeight } from "./sum.js";
import { Draft, endAfter, slotAt, Table } from "./table.js";
import { endOf, type Members, namesOf, newer, roomSince as roomInWindow, sizeOf, withMember, withoutMember } from "./window.js";

export interface MemoryStoreOptions {
  /**
   * Stores of one name in one process are one store, also where a bundler loads the library, or your module, more than once. Default: none, a store of its own.
   * Next.js does that, for pages, routes and server actions, and again at each hot reload: give it a name there.
   */
  readonly name?: string;
  /**
   * How many authentications it keeps at once; as many small values, and sixteen times as many members of windows, parts of sums and counters together. An integer of 1 or more.
   * Default: 1,000,000, which take about 450 MB with what is counted for them, and 1 GB where every create tells ip and device. When it is full, more are refused (the service answers 503) and nothing is forgotten before its end.
   */
  readonly maxRecords?: number;
  /** What time it is, in milliseconds, for freeing what has ended. Default: a monotonic clock of the process. Tests that advance a clock pass its `now`. */
  readonly now?: () => number;
}

/** Members, parts and counters for each record: an authentication with every send, device and address counted makes about as many. */
const countedPerRecord = 16;

/** The most members of a window without a limit, and how many more than its limit another keeps. */
const mostListed = 10_000;
const slack = 8;

/** Rows that each write looks at in each table to free what has ended, and that it looks at before it says that the store is full. */
const lookedAtPerWrite = 4;
const lookedAtWhenFull = 1_000;

/** How often, and for how long each time, a timer frees what has ended, in milliseconds. */
const sweepEvery = 50;
const sweepFor = 3;

/** For keys that are joined, and so in one piece already. */
const asJoined = (key: string) => key;

type Bounded = Pick<Table<unknown>, "size" | "forgetOne">;

class MemoryStore implements Store {
  readonly #names = new Names();
  readonly #records = new Table<string>((row) => numberAt(row, 0), undefined, asJoined);
  readonly #windows = new Table<Members>(endOf, sizeOf, asJoined);
  readonly #sums = new Table<Numbers>(([end = 0]) => end, partsOf);
  readonly #counters = new Table<Numbers>(([end = 0]) => end);
  readonly #values = new Table<string>((row) => numberAt(row, 0));
  readonly #counted = [this.#windows, this.#sums, this.#counters];
  readonly #tables = [this.#records, ...this.#counted, this.#values];
  /** Keys of records by wake time. An entry whose record is gone, or has another wake time by now, means nothing. */
  readonly #wakes = new Heap<string>();
  #wakesSeen = 0;
  #timer: ReturnType<typeof setInterval> | undefined;
  #closed = false;

  constructor(
    readonly name: string | undefined,
    readonly maxRecords: number,
    readonly now: () => number,
    readonly release: () => void,
  ) {}

  async find(customer: string, id: string): Promise<StoredRecord | undefined> {
    const key = this.#recordKey(customer, id);
    const row = this.#records.get(key);
    return row === undefined ? undefined : this.#recordOf(key, unpackRecord(row));
  }

  commit(change: Change): Promise<CommitResult> {
    // An async function would keep its variables for a wait that never comes.
    try {
      return Promise.resolve(this.#commit(change));
    } catch (fault) {
      return Promise.reject(fault);
    }
  }

  #commit({ claims = [], asks = [], record, expected = null }: Change): CommitResult {
    const now = this.#tidy();
    const key = record === undefined ? "" : this.#recordKey(record.customer, record.id);
    const stored = record && this.#records.get(key);
    if (record !== undefined) {
      const [token] = record.tokens;
      if (token === undefined) throw new Error("memoryStore: a record needs a token.");
      atMost64KiB(record.data, "a record's data");
      // What is not in all of the text is no token in it, and need not be looked for there.
      if (stored?.includes(token) && unpackRecord(stored).tokens.includes(token))
        return { done: true, counts: claims.map((claim) => this.#count(claim)), asked: this.#ask(asks) };
      if (stored === undefined && expected !== null) return { done: false };
      if (stored !== undefined && (expected === null || !isNewest(expected, stored)))
        return { done: false, current: this.#recordOf(key, unpackRecord(stored)) };
    }
    const claimed = claims.length === 0 ? nothing : this.#claim(claims, now);
    if (!claimed.done) return claimed;
    if (record !== undefined && stored === undefined) this.#makeRoom([this.#records], 1, this.maxRecords, "authentications", now);
    this.#keepCounted(claimed.drafts, now);
    if (record !== undefined) this.#keepRecord(key, record, stored, now);
    return { done: true, counts: claimed.counts, asked: this.#ask(asks) };
  }

  /** What claims come to, and the rows to write for them: nothing is written yet. */
  #claim(claims: readonly Claim[], now: number): Claimed | Refused {
    const counts = claims.map(() => 0);
    const windows = new Draft(this.#windows);
    const sums = new Draft(this.#sums);
    let window: string | undefined;
    let name = "";
    for (let i = 0; i < claims.length; i++) {
      const claim = claims[i] as Claim;
      const { since, limit = Number.POSITIVE_INFINITY } = claim;
      if ("sum" in claim) {
        const sum = sums.get(claim.sum);
        const count = total(sum, since);
        if (claim.weight >= 0 && count + claim.weight > limit) return refusal(i, count, roomInSum(sum, since, limit - claim.weight));
        const next = withWeight(sum, claim, endAfter(now, claim));
        sums.set(claim.sum, next, sum);
        counts[i] = total(next, since);
      } else {
        // Several limits on one window follow one another.
        if (claim.window !== window) name = this.#names.keyOf((window = claim.window));
        const members = windows.get(name);
        const count = newer(members, since, claim.member);
        if (!claim.out && count >= limit) return refusal(i, count, roomInWindow(members, limit, claim.member));
        const next = claim.out
          ? withoutMember(members, claim)
          : withMember(members, claim, slotAt(now), endAfter(now, claim), mostMembers(claim.window, claims));
        windows.set(name, next, members);
        counts[i] = newer(next, since);
      }
    }
    return { done: true, counts, drafts: [windows, sums] };
  }

  async members(window: string, limit: number): Promise<string[]> {
    return namesOf(this.#windows.get(this.#names.keyOf(window)), limit);
  }

  async tally(adds: readonly Tally[], reads: readonly string[]): Promise<number[]> {
    const now = this.#tidy();
    const counters = new Draft(this.#counters);
    for (const add of adds) {
      const before = counters.get(add.counter);
      const [end = 0, value = 0] = before ?? [];
      counters.set(add.counter, [Math.max(end, endAfter(now, add)), value + add.by], before);
    }
    this.#keepCounted([counters], now);
    return reads.map((counter) => this.#counters.get(counter)?.[1] ?? 0);
  }

  async lease(until: number, limit: number, leaseUntil: number): Promise<StoredRecord[]> {
    const leased = new Map<string, string>();
    while (leased.size < limit && this.#wakes.size > 0 && this.#wakes.at(0).order <= until) {
      const { order, item: key } = this.#wakes.at(0);
      this.#wakes.remove(0);
      const row = this.#records.get(key);
      if (row !== undefined && wakeAtOf(row) === order) leased.set(key, row);
    }
    return Array.from(leased, ([key, row]) => {
      const record = unpackRecord(row);
      this.#records.set(key, packRecord(record, leaseUntil, record.end), row);
      this.#wake(key, leaseUntil);
      return this.#recordOf(key, record);
    });
  }

  async get(key: string): Promise<string | undefined> {
    return this.#values.get(key)?.slice(numberWidth);
  }

  async put(key: string, value: string, life: Life): Promise<void> {
    const now = this.#tidy();
    atMost64KiB(value, "a value");
    const old = this.#values.get(key);
    if (old === undefined) this.#makeRoom([this.#values], 1, this.maxRecords, "values", now);
    this.#values.set(key, joined(packed(endAfter(now, life)), value), this.#values.get(key));
  }

  async forget({ records = [], windows = [], sums = [], values = [] }: Forgotten): Promise<void> {
    const keys = new Set(records.map(({ customer, id }) => this.#recordKey(customer, id)));
    for (const key of keys) this.#records.delete(key);
    if (keys.size > 0) this.#wakes.removeAll((key) => keys.has(key));
    for (const window of windows) this.#windows.delete(this.#names.keyOf(window));
    for (const sum of sums) this.#sums.delete(sum);
    for (const key of values) this.#values.delete(key);
  }

  async inspect(until: number): Promise<StoreInspection> {
    const due = new Set<string>();
    for (let place = 0; place < this.#wakes.size; place++) {
      const { order, item } = this.#wakes.at(place);
      if (order <= until && wakeAtOf(this.#records.get(item)) === order) due.add(item);
    }
    return { kind: "memory", due: due.size };
  }

  /** Lets the name go: the next `memoryStore` of it starts empty. Whoever still holds this one keeps its data. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#stop();
    this.release();
  }

  #recordKey(customer: string, id: string): string {
    return joined(this.#names.prefixOf(customer), id);
  }

  #recordOf(key: string, { tokens, data, keepUntil }: Kept): StoredRecord {
    const [customer, id] = this.#names.split(key);
    return { customer, id, tokens, data, keepUntil };
  }

  #keepRecord(key: string, record: RecordWrite, stored: string | undefined, now: number): void {
    const before = wakeAtOf(stored);
    const wakeAt = record.wakeAt === "unchanged" ? before : record.wakeAt;
    this.#records.set(key, packRecord(record, wakeAt, endAfter(now, record)), stored);
    if (wakeAt !== undefined && wakeAt !== before) this.#wake(key, wakeAt);
  }

  /** Looks at two entries for each that is added, so that those that mean nothing never outnumber the others for long. */
  #wake(key: string, wakeAt: number): void {
    this.#wakes.add({ order: wakeAt, item: key });
    for (let i = 0; i < 2; i++) {
      const place = this.#wakesSeen++ % this.#wakes.size;
      const { order, item } = this.#wakes.at(place);
      if (wakeAtOf(this.#records.get(item)) !== order) this.#wakes.remove(place);
    }
  }

  #ask(asks: readonly Ask[]): readonly number[] {
    return asks.length === 0 ? none : asks.map(({ sum, since }) => total(this.#sums.get(sum), since));
  }

  #count(claim: Claim): number {
    return "sum" in claim ? total(this.#sums.get(claim.sum), claim.since) : newer(this.#windows.get(this.#names.keyOf(claim.window)), claim.since);
  }

  #keepCounted(drafts: readonly Drafts[], now: number): void {
    let more = 0;
    for (const draft of drafts) more += draft.more;
    const forgot = this.#makeRoom(this.#counted, more, this.maxRecords * countedPerRecord, "members of windows, parts of sums and counters", now);
    for (const draft of drafts) draft.write(forgot);
  }

  /** Answers whether it had to forget anything for it. */
  #makeRoom(tables: readonly Bounded[], more: number, most: number, what: string, now: number): boolean {
    let looked = 0;
    for (; sizeOfAll(tables) + more > most; looked++) {
      if (looked < lookedAtWhenFull && tables.some((table) => table.forgetOne(slotAt(now)))) continue;
      throw new Error(
        `${this.name === undefined ? "memoryStore" : `memoryStore "${this.name}"`} is full: it keeps at most ${most} ${what} with maxRecords ${this.maxRecords}, and forgets none before its end. ` +
          "Raise maxRecords, or keep them in redisStore or mongoStore.",
      );
    }
    return looked > 0;
  }

  /** Frees a little before a write, and sees to it that a timer does. Answers what time it is. */
  #tidy(): number {
    const now = this.now();
    for (const table of this.#tables) for (let i = 0; i < lookedAtPerWrite && table.forgetOne(slotAt(now)); i++);
    if (this.#timer === undefined && !this.#closed) {
      this.#timer = setInterval(() => this.#sweep(), sweepEvery);
      this.#timer.unref?.();
    }
    return now;
  }

  #sweep(): void {
    const slot = slotAt(this.now());
    const end = performance.now() + sweepFor;
    for (const table of this.#tables) {
      for (let freed = 1; table.forgetOne(slot); freed++) if (freed % 32 === 0 && performance.now() >= end) return;
    }
    if (this.#tables.every(({ size }) => size === 0)) this.#stop();
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

function sizeOfAll(tables: readonly Bounded[]): number {
  let size = 0;
  for (const table of tables) size += table.size;
  return size;
}

type Drafts = Pick<Draft<unknown>, "more" | "write">;

interface Claimed {
  readonly done: true;
  readonly counts: readonly number[];
  readonly drafts: readonly Drafts[];
}

type Refused = Extract<CommitResult, { readonly done: false }>;

const none: readonly never[] = [];
const nothing: Claimed = { done: true, counts: none, drafts: none };

function refusal(refusedBy: number, count: number, roomSince: number | undefined): Refused {
  return roomSince === undefined ? { done: false, refusedBy, count } : { done: false, refusedBy, count, roomSince };
}

/** How many members a window keeps: enough for the largest limit of all claims on it. */
function mostMembers(window: string, claims: readonly Claim[]): number {
  let most = 0;
  for (const claim of claims)
    if ("member" in claim && claim.window === window) most = Math.max(most, claim.limit === undefined ? mostListed : claim.limit + slack);
  return most;
}

const maxBytes = 65_536;

function atMost64KiB(text: string, what: string): void {
  if (text.length * 3 > maxBytes && Buffer.byteLength(text) > maxBytes) throw new Error(`memoryStore: ${what} is above 64 KiB.`);
}

/** Where the stores of this process are, also for a second copy of this file in another bundle. */
const registry = Symbol.for("phoneproof.memory-store");

function stores(): Map<string, { readonly store: Store; readonly maxRecords: number }> {
  const home = globalThis as { [registry]?: ReturnType<typeof stores> };
  home[registry] ??= new Map();
  return home[registry];
}

/** Whether this is code of a server of Next.js, whose bundler puts its runtime in place of that very expression. */
function isInNext(): boolean {
  return typeof process !== "undefined" && process.env.NEXT_RUNTIME !== undefined;
}

/**
 * Keeps everything in the memory of this process: for one process, development and tests. What it holds is gone when the process ends.
 *
 * Every call is a store of its own, unless it has a `name`: calls with one name get one store, also where a bundler loads the library twice; the clock is that of the first.
 * Throws when that store exists with another `maxRecords`; and without a name in a server of Next.js, where code of one bundle would not find what another has stored.
 */
export function memoryStore(options: MemoryStoreOptions = {}): Store {
  onlyOptions("memoryStore", options, { name: true, maxRecords: true, now: true });
  const { name, maxRecords = 1_000_000, now = () => performance.now() } = options;
  if (!Number.isInteger(maxRecords) || maxRecords < 1) throw new Error(`memoryStore: maxRecords must be an integer of 1 or more, got ${String(maxRecords)}.`);
  if (name === undefined) {
    if (!isInNext()) return new MemoryStore(undefined, maxRecords, now, () => {});
    throw new Error(
      'memoryStore: Next.js loads this module once for each of its bundles, and each would have a store of its own. Give it a name, by which they share one: memoryStore({ name: "verifier" }).',
    );
  }
  const all = stores();
  const existing = all.get(name);
  if (existing === undefined) {
    const store = new MemoryStore(name, maxRecords, now, () => {
      if (all.get(name)?.store === store) all.delete(name);
    });
    all.set(name, { store, maxRecords });
    return store;
  }
  if (existing.maxRecords === maxRecords) return existing.store;
  throw new Error(
    `memoryStore "${name}" exists in this process with maxRecords ${existing.maxRecords}, and ${maxRecords} is asked for now. Use one maxRecords for it everywhere, or give the other store a name of its own.`,
  );
}
