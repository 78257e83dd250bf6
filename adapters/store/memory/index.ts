import { readVariable } from "../../../src/domain/environment.js";
import type { Change, Claim, CommitResult, Deletion, Expiry, MemberClaim, Store, StoredRecord, SumParts, Tally } from "../../../src/ports/store.js";
import { onlyOptions } from "../../kit/option-error.js";
import { type Counts, largestLimit, raised, refusalOf, refuseLarge } from "../../kit/store.js";
import { type Row, Rows } from "./rows.js";

export interface MemoryStoreOptions {
  /**
   * Stores with the same name in one process are one store, even if a bundler loads the library or your module twice.
   * Set it in Next.js, which does so for pages, routes, server actions and hot reloads.
   * Default: none, a separate store.
   */
  readonly name?: string;
  /**
   * Capacity in authentications; the same for small values, and 16 times that for window members, sum parts and
   * counters together. An integer of 1 or more.
   * Default: 100,000, which takes 125 to 180 MB if every create has an ip and a device. When full, new ones are
   * rejected (the service returns 503); nothing is dropped before its end.
   */
  readonly maxRecords?: number;
  /**
   * Returns the time in milliseconds, used to expire entries. Default: a monotonic clock of the process. Tests that
   * advance a clock pass its `now`.
   */
  readonly now?: () => number;
}

/** Members, parts and counters for each record. */
const countedPerRecord = 16;
const whatCounts = "members of windows, parts of sums and counters";

/** The maximum of a window without a limit; other windows keep this many beyond their limit. */
const mostListed = 10_000;
const slack = 8;

/** Keys of each kind checked for expiry: per write, per write that finds the store full, and per second by a timer. */
const looks = { perWrite: 4, whenFull: 1_000, perSecond: 10_000 };

interface Kept extends Row {
  readonly customer: string;
  /** Contains the id, which is not stored a second time. */
  readonly key: string;
  readonly token: string;
  /** The earlier tokens. Most records have none. */
  readonly older: readonly string[];
  readonly data: string;
  readonly keepUntil: number;
  wakeAt: number | undefined;
}

interface Member extends Row {
  readonly member: string;
  readonly at: number;
  /** The token of the commit that added it, unless another commit has claimed it since. */
  readonly addedBy: string | undefined;
}

/** A part of a sum. A counter has one part, number 0. */
interface Part extends Row {
  readonly part: number;
  held: number;
}

/** Each method does all its work in one tick before it returns its promise, so it is atomic. */
class MemoryStore implements Store {
  /** By customer and id. */
  readonly #records = new Rows<Kept>((kept) => this.#wake(kept, undefined));
  /** Records that wake, earliest first. */
  readonly #waking: Kept[] = [];
  /** Members, newest first. */
  readonly #windows = new Rows<Member>();
  readonly #sums = new Rows<Part>();
  readonly #counters = new Rows<Part>();
  readonly #values = new Rows<Row & { readonly text: string }>();
  readonly #counted = [this.#windows, this.#sums, this.#counters];
  readonly #all = [this.#records, ...this.#counted, this.#values];
  readonly #counts: Counts = {
    total: (parts) => this.#sums.get(parts.sum).reduce((total, { part, held }) => (isCounted(part, parts) ? total + held : total), 0),
    newer: ({ window, since }, except) => this.#windows.get(window).filter(({ member, at }) => at > since && member !== except).length,
    timeOf: (claim, skipped) => this.#windows.get(claim.window).filter(({ member }) => member !== claim.member)[skipped]?.at,
  };
  #timer: ReturnType<typeof setInterval> | undefined;
  #isClosed = false;

  constructor(readonly options: Required<Omit<MemoryStoreOptions, "name">> & Pick<MemoryStoreOptions, "name">) {}

  async find(customer: string, id: string): Promise<StoredRecord | undefined> {
    const kept = this.#kept({ customer, id });
    return kept && readable(kept);
  }

  async commit({ claims = [], asks = [], record, expected = null, revoke }: Change): Promise<CommitResult> {
    this.#tidy();
    const token = record?.tokens[0];
    if (record !== undefined && token === undefined) throw new Error("memoryStore: a record needs a token.");
    refuseLarge("memoryStore", "a record's data", record?.data);
    const kept = record && this.#kept(record);
    const landed = (token: string | undefined) => kept !== undefined && token !== undefined && (kept.token === token || kept.older.includes(token));
    if (!landed(token)) {
      if (record !== undefined && (kept?.token ?? null) !== expected) return kept === undefined ? { done: false } : { done: false, current: readable(kept) };
      for (const [refusedBy, claim] of claims.entries()) {
        const refusal = refusalOf(claim, this.#counts);
        if (refusal !== undefined) return { done: false, refusedBy, ...refusal };
      }
      if (record !== undefined) this.#makeRoom([this.#records], [record], () => kept === undefined, "authentications");
      this.#makeRoom(this.#counted, claims, (claim) => this.#isNew(claim), whatCounts);
      const piece = inOnePiece();
      for (const claim of claims) {
        if ("window" in claim && claim.out) this.#windows.remove(claim.window, ({ member, at }) => member === claim.member && at === claim.now);
        else if ("window" in claim) this.#enter(claim, token, claims, piece);
        else {
          const before = this.#counts.total(claim);
          this.#add(this.#sums, claim.sum, claim.part, raised(before, claim) - before, claim, piece);
        }
      }
      if (revoke !== undefined && landed(revoke.token)) for (const claim of revoke.claims) this.#takeBack(claim, revoke.token);
      if (record !== undefined) this.#write(record, kept, piece);
    }
    const counts = claims.map((claim) => ("sum" in claim ? this.#counts.total(claim) : this.#counts.newer(claim)));
    return { done: true, counts, asked: asks.map((parts) => this.#counts.total(parts)) };
  }

  async members(window: string, limit: number): Promise<string[]> {
    const newest = this.#windows.get(window).slice(0, limit);
    return newest.map(({ member }) => member);
  }

  async tally(adds: readonly Tally[], reads: readonly string[]): Promise<number[]> {
    this.#tidy();
    this.#makeRoom(this.#counted, adds, ({ counter }) => this.#counters.get(counter).length === 0, whatCounts);
    const piece = inOnePiece();
    for (const add of adds) this.#add(this.#counters, add.counter, 0, add.by, add, piece);
    return reads.map((counter) => this.#counters.get(counter)[0]?.held ?? 0);
  }

  async lease(until: number, limit: number, leaseUntil: number): Promise<StoredRecord[]> {
    const leased = this.#waking.splice(0, Math.min(limit, this.#due(until)));
    for (const kept of leased) kept.wakeAt = undefined;
    for (const kept of leased) this.#wake(kept, leaseUntil);
    return leased.map(readable);
  }

  async get(key: string): Promise<string | undefined> {
    return this.#values.get(key)[0]?.text;
  }

  async put(key: string, value: string, expiry: Expiry): Promise<void> {
    this.#tidy();
    refuseLarge("memoryStore", "a value", value);
    this.#makeRoom([this.#values], [key], () => this.#values.get(key).length === 0, "values");
    const piece = inOnePiece();
    this.#values.set(piece(key), [{ text: piece(value), end: this.#endOf(expiry) }]);
  }

  async delete({ records = [], windows = [], sums = [], values = [] }: Deletion): Promise<void> {
    for (const record of records) this.#records.remove(keyOf(record));
    for (const window of windows) this.#windows.remove(window);
    for (const parts of sums) this.#sums.remove(parts.sum, ({ part }) => isCounted(part, { ...parts, ahead: true }));
    for (const key of values) this.#values.remove(key);
  }

  async inspect(until: number) {
    return { kind: "memory", due: this.#due(until) };
  }

  /** Releases the name: the next `memoryStore` with it starts empty. Existing references keep their data. */
  async close(): Promise<void> {
    const { name = "" } = this.options;
    if (stores().get(name) === this) stores().delete(name);
    this.#isClosed = true;
    this.#stop();
  }

  #kept(record: Pick<StoredRecord, "customer" | "id">): Kept | undefined {
    return this.#records.get(keyOf(record))[0];
  }

  /** Whether a claim adds a row. */
  #isNew(claim: Claim): boolean {
    if ("sum" in claim) return !this.#sums.get(claim.sum).some(({ part }) => part === claim.part);
    return !claim.out && !this.#windows.get(claim.window).some(({ member }) => member === claim.member);
  }

  #enter({ window, member, now, keepUntil }: MemberClaim, token: string | undefined, claims: readonly Claim[], piece: Piece): void {
    const rows = this.#windows.get(window);
    const old = rows.find((row) => row.member === member);
    const at = Math.max(now, old?.at ?? now);
    const addedBy = token !== undefined && (old === undefined || old.addedBy === token) ? piece(token) : undefined;
    const end = Math.max(this.#endOf({ now, keepUntil }), old?.end ?? 0);
    const others = old === undefined ? rows.slice() : rows.filter((row) => row !== old);
    const newer = others.findIndex((row) => row.at <= at);
    others.splice(newer < 0 ? others.length : newer, 0, { member: piece(member), at, end, addedBy });
    const most = largestLimit(claims, window) || mostListed;
    this.#windows.set(piece(window), others.slice(0, most + slack));
  }

  #add(rows: Rows<Part>, key: string, part: number, by: number, expiry: Expiry, piece: Piece): void {
    const end = this.#endOf(expiry);
    const kept = rows.get(key);
    const row = kept.find((other) => other.part === part);
    if (row === undefined) rows.set(piece(key), [...kept, { part, held: by, end }]);
    else Object.assign(row, { held: row.held + by, end: Math.max(row.end, end) });
  }

  #takeBack(claim: Claim, token: string): void {
    if ("window" in claim) this.#windows.remove(claim.window, ({ member, addedBy }) => member === claim.member && addedBy === token);
    else for (const row of this.#sums.get(claim.sum)) if (row.part === claim.part) row.held -= claim.weight;
  }

  #write(record: NonNullable<Change["record"]>, before: Kept | undefined, piece: Piece): void {
    const { customer, keepUntil, wakeAt } = record;
    const [key, data] = [before?.key ?? piece(keyOf(record)), piece(record.data)];
    const [token = "", ...tokens] = record.tokens.map(piece);
    const older = tokens.length === 0 ? none : tokens;
    const kept: Kept = { customer, key, token, older, data, keepUntil, end: this.#endOf(record), wakeAt: undefined };
    this.#records.set(key, [kept]);
    this.#wake(kept, wakeAt === "unchanged" ? before?.wakeAt : wakeAt);
    if (before !== undefined) this.#wake(before, undefined);
  }

  #wake(kept: Kept, wakeAt: number | undefined): void {
    if (kept.wakeAt !== undefined) this.#waking.splice(this.#waking.indexOf(kept, this.#due(kept.wakeAt - 1)), 1);
    kept.wakeAt = wakeAt;
    if (wakeAt !== undefined) this.#waking.splice(this.#due(wakeAt), 0, kept);
  }

  /** How many records wake at or before `until`: times are whole milliseconds. */
  #due(until: number): number {
    let [from, to] = [0, this.#waking.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((this.#waking[middle]?.wakeAt as number) <= until) from = middle + 1;
      else to = middle;
    }
    return from;
  }

  /** When something that is kept from now on expires. */
  #endOf({ now, keepUntil }: Expiry): number {
    return Math.ceil((this.options.now() + Math.max(0, keepUntil - now)) / 1_000);
  }

  #makeRoom<T>(kinds: readonly Pick<Rows<never>, "size" | "sweep">[], adds: readonly T[], isNew: (add: T) => boolean, what: string): void {
    const { name, maxRecords, now } = this.options;
    const most = kinds === this.#counted ? maxRecords * countedPerRecord : maxRecords;
    const size = () => kinds.reduce((size, kind) => size + kind.size, 0);
    const isFull = () => size() + adds.length > most && size() + adds.filter(isNew).length > most;
    if (isFull()) for (const kind of kinds) kind.sweep(looks.whenFull, now() / 1_000);
    if (!isFull()) return;
    const full = `${name === undefined ? "memoryStore" : `memoryStore "${name}"`} is full: it holds at most ${most} ${what} with maxRecords ${maxRecords}`;
    throw new Error(`${full}, and deletes none before they expire. Raise maxRecords, or use another store, such as redisStore or postgresStore.`);
  }

  /** Removes a few expired entries and schedules a timer for the rest. */
  #tidy(keys = looks.perWrite): void {
    for (const rows of this.#all) rows.sweep(keys, this.options.now() / 1_000);
    if (this.#timer !== undefined || this.#isClosed) return;
    this.#timer = setInterval(() => {
      this.#tidy(looks.perSecond);
      if (this.#all.every(({ size }) => size === 0)) this.#stop();
    }, 1_000);
    this.#timer.unref?.();
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

const none: readonly string[] = [];

function keyOf({ customer, id }: Pick<StoredRecord, "customer" | "id">): string {
  return `${customer}/${id}`;
}

function readable({ customer, key, token, older, data, keepUntil }: Kept): StoredRecord {
  return { customer, id: key.slice(customer.length + 1), tokens: [token, ...older], data, keepUntil };
}

function isCounted(at: number, { part, parts, ahead }: SumParts): boolean {
  return at > part - parts && at <= (ahead ? part + 1 : part);
}

type Piece = (text: string) => string;

/**
 * Interns texts: equal ones are stored once, each as a flat string. Node.js builds a UUID from twenty strings, which
 * would otherwise stay in memory.
 */
function inOnePiece(): Piece {
  const made = new Map<string, string>();
  return (text) => {
    const piece = made.get(text) ?? [text.slice(0, 1), text.slice(1)].join("");
    made.set(text, piece);
    return piece;
  };
}

/** The named stores of this process, shared with a second copy of this file in another bundle. */
const registry = Symbol.for("phoneproof.memory-store");
function stores(): Map<string, MemoryStore> {
  const home = globalThis as { [registry]?: Map<string, MemoryStore> };
  return (home[registry] ??= new Map());
}

/**
 * A store in this process's memory: for one process, development and tests. Its data is lost when the process ends.
 *
 * Each call creates a separate store, unless `name` is set: calls with one name share one store, even if a bundler
 * loads the library twice, and use the first call's clock.
 *
 * @throws Error if that store exists with another `maxRecords`, or without a name in a Next.js server, whose bundles
 * would each get a separate store. TypeError if `now` is not a function, or `name` not a text.
 */
export function memoryStore(options: MemoryStoreOptions = {}): Store {
  onlyOptions("memoryStore", options, { name: true, maxRecords: true, now: true });
  const { name, maxRecords = 100_000, now = () => performance.now() } = options;
  if (!Number.isInteger(maxRecords) || maxRecords < 1) throw new Error(`memoryStore: maxRecords must be an integer of 1 or more, got ${String(maxRecords)}.`);
  if (typeof now !== "function") throw new TypeError("memoryStore: now must be a function that returns milliseconds: of a clock, () => clock.now()");
  if (name !== undefined && (typeof name !== "string" || name === "")) throw new TypeError("memoryStore: name must be a text, and not empty");
  if (name === undefined) {
    // The Next.js bundler replaces this exact expression with its runtime.
    const isInNext = readVariable(() => process.env.NEXT_RUNTIME) !== undefined;
    if (!isInNext) return new MemoryStore({ maxRecords, now });
    throw new Error(
      'memoryStore: Next.js loads this module once for each of its bundles, and each would have its own store. Give the store a name, so that they share it: memoryStore({ name: "verifier" }).',
    );
  }
  const store = stores().get(name) ?? new MemoryStore({ name, maxRecords, now });
  stores().set(name, store);
  if (store.options.maxRecords === maxRecords) return store;
  throw new Error(
    `memoryStore "${name}" exists in this process with maxRecords ${store.options.maxRecords}, and ${maxRecords} is requested now. Use the same maxRecords everywhere, or give the other store its own name.`,
  );
}
