/**
 * What a store keeps for one authentication. Everything but `data` is there for the store; `data` is opaque text that only the engine reads.
 */
export interface StoredRecord {
  /** UUID of the customer. Everything is keyed by it: the same `id` under two customers is two records. */
  readonly customer: string;
  /** UUID of the authentication. */
  readonly id: string;
  /** Random tokens of the last writes, the newest first, 1 to 16 of them. */
  readonly tokens: readonly string[];
  /** Opaque text, at most 64 KiB. */
  readonly data: string;
  /** Milliseconds since the epoch. The record must be kept until then and may be forgotten after. */
  readonly keepUntil: number;
  /** Milliseconds since the epoch at which the record needs work and `due` must return it; absent when it needs none. */
  readonly wakeAt?: number;
}

/** The outcome of `compareAndSwap`: either this write landed, or what is stored instead (nothing, when there is no record). */
export type SwapResult = { readonly swapped: true } | { readonly swapped: false; readonly current?: StoredRecord };

/** One window that wants one member more. */
export interface Claim {
  /** Name of the window. All windows of one `reserve` belong to one customer, whose UUID comes first in the name, up to the first `:`. */
  readonly window: string;
  /** What is counted. A member that is already in the window is counted once, and moves to `now`. */
  readonly member: string;
  /** At most this many members, this one included, may be newer than `since`. An integer of 1 or more. */
  readonly limit: number;
  /** Milliseconds since the epoch; members at `since` or before do not count. Members later than `now` do. */
  readonly since: number;
  /** Milliseconds since the epoch: the caller's time. */
  readonly now: number;
  /** Milliseconds since the epoch: the window may forget this member after. */
  readonly keepUntil: number;
}

/** `refusedBy` is the index of the first claim whose window was full. */
export type ReserveResult = { readonly granted: true } | { readonly granted: false; readonly refusedBy: number };

/**
 * Where authentications and windows are kept. A store never decides and never reads a clock to decide; each method is one atomic step.
 *
 * A method that cannot say whether it did its work rejects. The engine then fails closed (503), and sends nothing that was not stored.
 * `storeContract` of `phoneproof/testing` holds a store against every sentence here.
 */
export interface Store {
  /** The record, or `undefined`. */
  find(customer: string, id: string): Promise<StoredRecord | undefined>;

  /**
   * Writes `next` if the newest token of the stored record is `expected` (`null`: there is no record).
   *
   * If `next`'s newest token is among the stored record's tokens, this very write landed before, whatever came after it: swapped, and nothing is written.
   * Otherwise nothing changes and the current record comes back. Of any number of racers exactly one is swapped.
   */
  compareAndSwap(next: StoredRecord, expected: string | null): Promise<SwapResult>;

  /**
   * All or nothing: every window takes its member, unless one holds `limit` other members newer than its `since`; then none takes any, and the first such claim is named.
   *
   * Two claims may name one window (with the same member and `keepUntil`, and limits over two lengths). Where `limit` is above 1,000 a store may count in twelve
   * sub-windows that are summed whole; it then refuses up to a twelfth of the window's length longer than it must.
   */
  reserve(claims: readonly Claim[]): Promise<ReserveResult>;

  /** How many members newer than `since` each window holds, in the order asked. */
  count(windows: readonly { readonly window: string; readonly since: number }[]): Promise<number[]>;

  /** At most `limit` records whose `wakeAt` is `until` (milliseconds since the epoch, perhaps far ahead of now) or earlier, the earliest first. */
  due(until: number, limit: number): Promise<StoredRecord[]>;

  /** The value put under `key`, or `undefined`. */
  get(key: string): Promise<string | undefined>;

  /** Keeps a small value (at most 64 KiB) until `keepUntil`, in milliseconds since the epoch. A later `put` replaces it. */
  put(key: string, value: string, keepUntil: number): Promise<void>;

  /** Lets go of what the store itself opened. Never closes a client that the user passed in. */
  close?(): Promise<void>;
}
