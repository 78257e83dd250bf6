import type { StoredRecord, SwapResult } from "../../../src/ports/store.js";
import { Ending, Expiry } from "./expiry.js";
import { Heap, type Heaped } from "./heap.js";
import { atMost64KiB, compact, TextMap } from "./text.js";

/** One customer's text, shared by its records. */
interface Owner {
  readonly customer: string;
  records: number;
}

interface Wake extends Heaped {
  readonly row: Row;
}

class Row extends Ending<Row> {
  data: string;
  token: string;
  older: readonly string[] = none;
  wake: Wake | undefined = undefined;
  /** The record of another customer with the same id. */
  namesake: Row | undefined = undefined;

  constructor(
    readonly owner: Owner,
    readonly id: string,
    next: StoredRecord,
    token: string,
  ) {
    super(next.keepUntil);
    this.data = compact(next.data);
    this.token = token;
  }
}

const none: readonly string[] = [];
const swapped: SwapResult = { swapped: true };

/**
 * Records by customer and id, by end, and by wake time. Everything happens in one tick.
 *
 * Ids of `randomUUID` and data of `JSON.stringify` are joined strings, and are compacted; tokens come in one piece, and are kept as they are.
 */
export class Records {
  readonly #owners = new Map<string, Owner>();
  readonly #rows = new TextMap<Row>();
  readonly #expiry = new Expiry<Row>();
  readonly #wakes = new Heap<Wake>();
  size = 0;

  find(customer: string, id: string): StoredRecord | undefined {
    const row = this.#row(customer, id);
    return row && recordOf(row);
  }

  /** `makeRoom` is called before a record more is kept; it throws when there is no room. */
  compareAndSwap(next: StoredRecord, expected: string | null, makeRoom: () => void): SwapResult {
    atMost64KiB(next.data, "a record's data");
    const token = next.tokens[0];
    if (token === undefined) throw new Error("memoryStore: a record needs a token.");
    const row = this.#row(next.customer, next.id);
    if (row !== undefined && (row.token === token || row.older.includes(token))) return swapped;
    if ((row === undefined ? null : row.token) !== expected) return row === undefined ? { swapped: false } : { swapped: false, current: recordOf(row) };
    if (row === undefined) {
      makeRoom();
      this.#insert(next, token);
    } else {
      this.#update(row, next, token);
    }
    return swapped;
  }

  due(now: number, limit: number): StoredRecord[] {
    const found: Wake[] = [];
    for (let wake = this.#wakes.first(); wake !== undefined && wake.order <= now && found.length < limit; wake = this.#wakes.first()) {
      this.#wakes.remove(wake);
      found.push(wake);
    }
    for (const wake of found) this.#wakes.add(wake);
    return found.map(({ row }) => recordOf(row));
  }

  /** Forgets one record that has ended before `now`; false when there is none. */
  forgetOne(now: number): boolean {
    const row = this.#expiry.ended(now);
    if (row === undefined) return false;
    this.#expiry.remove(row);
    this.#setWake(row, undefined);
    this.#unlink(row);
    if (--row.owner.records === 0) this.#owners.delete(row.owner.customer);
    this.size--;
    return true;
  }

  #row(customer: string, id: string): Row | undefined {
    let row = this.#rows.get(id);
    while (row !== undefined && row.owner.customer !== customer) row = row.namesake;
    return row;
  }

  #insert(next: StoredRecord, token: string): void {
    let owner = this.#owners.get(next.customer);
    if (owner === undefined) {
      owner = { customer: compact(next.customer), records: 0 };
      this.#owners.set(owner.customer, owner);
    }
    const namesake = this.#rows.get(next.id);
    const row = new Row(owner, namesake?.id ?? compact(next.id), next, token);
    row.namesake = namesake;
    if (next.tokens.length > 1) row.older = next.tokens.slice(1);
    this.#rows.set(row.id, row);
    this.#expiry.add(row);
    this.#setWake(row, next.wakeAt);
    owner.records++;
    this.size++;
  }

  #update(row: Row, next: StoredRecord, token: string): void {
    row.older = next.tokens.slice(1);
    row.token = token;
    row.data = compact(next.data);
    this.#expiry.move(row, next.keepUntil);
    this.#setWake(row, next.wakeAt);
  }

  #setWake(row: Row, wakeAt: number | undefined): void {
    if (row.wake?.order === wakeAt) return;
    if (row.wake !== undefined) this.#wakes.remove(row.wake);
    row.wake = wakeAt === undefined ? undefined : { order: wakeAt, place: 0, row };
    if (row.wake !== undefined) this.#wakes.add(row.wake);
  }

  /** Takes the row out of the chain of its id. */
  #unlink(row: Row): void {
    const head = this.#rows.get(row.id) as Row;
    if (head !== row) {
      let before = head;
      while (before.namesake !== row) before = before.namesake as Row;
      before.namesake = row.namesake;
    } else if (row.namesake === undefined) {
      this.#rows.delete(row.id);
    } else {
      this.#rows.set(row.id, row.namesake);
    }
  }
}

function recordOf(row: Row): StoredRecord {
  const { id, data, keepUntil } = row;
  const record = { customer: row.owner.customer, id, tokens: [row.token, ...row.older], data, keepUntil };
  return row.wake === undefined ? record : { ...record, wakeAt: row.wake.order };
}
