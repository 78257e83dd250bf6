import type { Claim, ReserveResult, Store, StoredRecord, SwapResult } from "../../../src/ports/store.js";
import { ToldTime } from "./expiry.js";
import { Records } from "./records.js";
import { Values } from "./values.js";
import { Windows } from "./windows.js";

export interface MemoryStoreOptions {
  /** Stores of one name in one process are one store. Default: `"default"`. */
  readonly name?: string;
  /**
   * How many authentications it keeps at once; as many small values, and sixteen times as many members of windows. An integer of 1 or more. Default: 1,000,000, which take about 400 MB.
   * When it is full, more are refused (the service answers 503) and nothing is forgotten before its end.
   */
  readonly maxRecords?: number;
}

/** Members of windows for each record: an authentication with every send, device and address counted makes about as many. */
const membersPerRecord = 16;

/** Ended entries that each write frees. */
const freedPerWrite = 4;

/** How often, and for how long each time, a timer frees what has ended, in milliseconds. */
const sweepEvery = 100;
const sweepFor = 3;

interface Kept {
  size: number;
  forgetOne(now: number): boolean;
}

class MemoryStore implements Store {
  readonly #records = new Records();
  readonly #windows = new Windows();
  readonly #values = new Values();
  readonly #kept: readonly Kept[] = [this.#records, this.#windows, this.#values];
  readonly #time = new ToldTime();
  #timer: ReturnType<typeof setInterval> | undefined;
  #closed = false;

  constructor(
    readonly name: string,
    readonly maxRecords: number,
    readonly release: () => void,
  ) {}

  async find(customer: string, id: string): Promise<StoredRecord | undefined> {
    return this.#records.find(customer, id);
  }

  async compareAndSwap(next: StoredRecord, expected: string | null): Promise<SwapResult> {
    const result = this.#records.compareAndSwap(next, expected, this.#roomForRecord);
    this.#tidy(this.#records);
    return result;
  }

  async reserve(claims: readonly Claim[]): Promise<ReserveResult> {
    for (const { now } of claims) this.#time.tell(now);
    const result = this.#windows.reserve(claims, this.#roomForMembers);
    this.#tidy(this.#windows);
    return result;
  }

  async count(windows: readonly { readonly window: string; readonly since: number }[]): Promise<number[]> {
    return windows.map(({ window, since }) => this.#windows.count(window, since));
  }

  async due(now: number, limit: number): Promise<StoredRecord[]> {
    return this.#records.due(now, limit);
  }

  async get(key: string): Promise<string | undefined> {
    return this.#values.get(key);
  }

  async put(key: string, value: string, keepUntil: number): Promise<void> {
    this.#values.put(key, value, keepUntil, this.#roomForValue);
    this.#tidy(this.#values);
  }

  /** Lets the name go: the next `memoryStore` of it starts empty. Whoever still holds this one keeps its data. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#stop();
    this.release();
  }

  readonly #roomForRecord = () => this.#makeRoom(this.#records, 1, this.maxRecords, "authentications");
  readonly #roomForMembers = (more: number) => this.#makeRoom(this.#windows, more, this.maxRecords * membersPerRecord, "members of windows");
  readonly #roomForValue = () => this.#makeRoom(this.#values, 1, this.maxRecords, "values");

  #makeRoom(kept: Kept, more: number, most: number, what: string): void {
    if (kept.size + more <= most) return;
    const now = this.#time.now();
    while (kept.size + more > most) {
      if (kept.forgetOne(now)) continue;
      throw new Error(
        `memoryStore "${this.name}" is full: it keeps at most ${most} ${what} with maxRecords ${this.maxRecords}, and forgets none before its end. ` +
          "Raise maxRecords, or keep them in redisStore or mongoStore.",
      );
    }
  }

  #tidy(kept: Kept): void {
    const now = this.#time.now();
    for (let freed = 0; freed < freedPerWrite && kept.forgetOne(now); freed++);
    if (this.#timer !== undefined || this.#closed || this.#isEmpty()) return;
    this.#timer = setInterval(() => this.#sweep(), sweepEvery);
    this.#timer.unref?.();
  }

  #sweep(): void {
    const now = this.#time.now();
    const end = performance.now() + sweepFor;
    for (const kept of this.#kept) {
      for (let freed = 1; kept.forgetOne(now); freed++) {
        if (freed % 32 === 0 && performance.now() >= end) return;
      }
    }
    if (this.#isEmpty()) this.#stop();
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #isEmpty(): boolean {
    return this.#kept.every((kept) => kept.size === 0);
  }
}

/** Where the stores of this process are, also for a second copy of this file in another bundle. */
const registry = Symbol.for("phoneproof.memory-store");

function stores(): Map<string, { readonly store: Store; readonly maxRecords: number }> {
  const home = globalThis as { [registry]?: ReturnType<typeof stores> };
  home[registry] ??= new Map();
  return home[registry];
}

/**
 * Keeps everything in the memory of this process: for one process, development and tests. What it holds is gone when the process ends.
 *
 * Calls with one `name` get one store, also where a bundler loads the library twice. Throws when that store exists with another `maxRecords`.
 */
export function memoryStore(options: MemoryStoreOptions = {}): Store {
  const { name = "default", maxRecords = 1_000_000 } = options;
  if (!Number.isInteger(maxRecords) || maxRecords < 1) throw new Error(`memoryStore: maxRecords must be an integer of 1 or more, got ${String(maxRecords)}.`);
  const all = stores();
  const existing = all.get(name);
  if (existing === undefined) {
    const store = new MemoryStore(name, maxRecords, () => {
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
