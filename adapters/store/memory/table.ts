import type { Life } from "../../../src/ports/store.js";
import { Heap } from "./heap.js";
import { inOnePiece } from "./pack.js";

/** Ends are told in slots of about four seconds. */
const slotWidth = 4_096;

/** How long, in milliseconds, what has ended stays: what a caller's request may have been on its way. */
const grace = 5_000;

/** The slot that a time of the store's own clock lies in. */
export function slotAt(now: number): number {
  return Math.floor(now / slotWidth);
}

/** The slot in which a life that begins at `now` by the store's own clock has ended: at most ten seconds after its end. */
export function endAfter(now: number, life: Life): number {
  return Math.ceil((now + Math.max(0, life.keepUntil - life.now) + grace) / slotWidth);
}

/** No part of a table is ever so large that its growing or shrinking holds the event loop. */
const partCount = 256;

/** Rows by key, each with an end. A row is never changed, only replaced. */
export class Table<Row> {
  readonly #parts = new Array<Map<string, Row> | undefined>(partCount).fill(undefined);
  /** Keys by the slot in which to look at them. Every key is in one bucket: in that of its row's end, or of an end that the row had before. */
  readonly #buckets = new Map<number, string[]>();
  readonly #slots = new Heap<string[]>();
  /** What all rows weigh. */
  size = 0;

  /** `keep`: the key as it is to be kept, in one piece. */
  constructor(
    readonly endOf: (row: Row) => number,
    readonly weightOf: (row: Row) => number = () => 1,
    readonly keep: (key: string) => string = inOnePiece,
  ) {}

  get(key: string): Row | undefined {
    return this.#parts[partOf(key)]?.get(key);
  }

  /** `old` is what `get` answers. */
  set(key: string, row: Row, old: Row | undefined): void {
    const part = (this.#parts[partOf(key)] ??= new Map());
    this.size += this.weightOf(row);
    if (old === undefined) {
      const kept = this.keep(key);
      part.set(kept, row);
      this.#putOff(kept, this.endOf(row));
    } else {
      part.set(key, row);
      this.size -= this.weightOf(old);
    }
  }

  /** Forgets a row before its end, its key included. */
  delete(key: string): void {
    const part = this.#parts[partOf(key)];
    const row = part?.get(key);
    if (part === undefined || row === undefined) return;
    part.delete(key);
    this.size -= this.weightOf(row);
    // Nearly always it is in the bucket of its row's end.
    if (!this.#takeOff(key, this.endOf(row))) for (const slot of this.#buckets.keys()) if (this.#takeOff(key, slot)) return;
  }

  #takeOff(key: string, slot: number): boolean {
    const bucket = this.#buckets.get(slot);
    const place = bucket?.indexOf(key) ?? -1;
    if (bucket === undefined || place < 0) return false;
    bucket[place] = bucket[bucket.length - 1] as string;
    bucket.pop();
    if (bucket.length === 0) {
      this.#buckets.delete(slot);
      this.#slots.removeAll((one) => one === bucket);
    }
    return true;
  }

  /** Looks at one row whose slot has come, and forgets it if it has ended; false when there is none. */
  forgetOne(slot: number): boolean {
    if (this.#slots.size === 0 || this.#slots.at(0).order > slot) return false;
    const { order, item: bucket } = this.#slots.at(0);
    const key = bucket.pop() as string;
    if (bucket.length === 0) {
      this.#slots.remove(0);
      this.#buckets.delete(order);
    }
    const row = this.get(key) as Row;
    const end = this.endOf(row);
    if (end > slot) {
      this.#putOff(key, end);
    } else {
      this.#parts[partOf(key)]?.delete(key);
      this.size -= this.weightOf(row);
    }
    return true;
  }

  #putOff(key: string, slot: number): void {
    const bucket = this.#buckets.get(slot);
    if (bucket !== undefined) {
      bucket.push(key);
      return;
    }
    const created = { order: slot, item: [key] };
    this.#buckets.set(slot, created.item);
    this.#slots.add(created);
  }
}

/** By the last eight characters: keys differ there, and begin alike. */
function partOf(key: string): number {
  let hash = 0;
  for (let i = Math.max(0, key.length - 8); i < key.length; i++) hash = (Math.imul(hash, 31) + key.charCodeAt(i)) | 0;
  return (hash ^ (hash >>> 8) ^ (hash >>> 16)) & (partCount - 1);
}

/** A row that is to be written, the one that stands there, and the row that was drafted before. */
interface Drafted<Row> {
  readonly key: string;
  readonly old: Row | undefined;
  row: Row;
  readonly before: Drafted<Row> | undefined;
}

/** Rows that are to be written together, or not at all: a few, so that a chain is searched faster than a map or list is made. */
export class Draft<Row> {
  #last: Drafted<Row> | undefined;
  /** How much more the table will weigh. */
  more = 0;

  constructor(readonly table: Table<Row>) {}

  get(key: string): Row | undefined {
    const drafted = this.#drafted(key);
    return drafted === undefined ? this.table.get(key) : drafted.row;
  }

  /** `before` is what `get` answers. */
  set(key: string, row: Row | undefined, before: Row | undefined): void {
    if (row === undefined || row === before) return;
    const drafted = this.#drafted(key);
    if (drafted === undefined) this.#last = { key, old: before, row, before: this.#last };
    else drafted.row = row;
    this.more += this.table.weightOf(row) - (before === undefined ? 0 : this.table.weightOf(before));
  }

  /** `forgot`: rows that stood there may be gone by now. */
  write(forgot: boolean): void {
    for (let drafted = this.#last; drafted !== undefined; drafted = drafted.before) {
      const { key, old, row } = drafted;
      if (this.table.weightOf(row) > 0) this.table.set(key, row, forgot ? this.table.get(key) : old);
      else this.table.delete(key);
    }
  }

  #drafted(key: string): Drafted<Row> | undefined {
    let drafted = this.#last;
    while (drafted !== undefined && drafted.key !== key) drafted = drafted.before;
    return drafted;
  }
}
