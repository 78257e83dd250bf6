import type { Claim, Expiry, SumParts } from "../domain/claim.js";

export type { Claim, Expiry, MemberClaim, SumClaim, SumParts } from "../domain/claim.js";

/**
 * What a store keeps for one authentication. The store reads everything but `data`, which is opaque text for the
 * engine.
 */
export interface StoredRecord {
  /** UUID of the customer. Everything is keyed by it: the same `id` under two customers is two records. */
  readonly customer: string;
  /** UUID of the authentication. */
  readonly id: string;
  /** Random tokens of the last writes, newest first; 1 to 16. */
  readonly tokens: readonly string[];
  /** Opaque text, at most 64 KiB. */
  readonly data: string;
  /** Milliseconds since the epoch. A write may also move it to an earlier time. */
  readonly keepUntil: number;
}

/** A record to write. */
export interface RecordWrite extends StoredRecord, Expiry {
  /**
   * When the record needs work and `lease` must return it, in milliseconds since the epoch; absent if it needs none.
   * `"unchanged"`: keep the stored value, even if a lease has moved it.
   */
  readonly wakeAt?: number | "unchanged";
}

/** Claims of an earlier commit to undo. */
export interface Revocation {
  /** The newest token of the record that the commit wrote or tried to write. */
  readonly token: string;
  /**
   * The claims of that commit, unchanged. Members that it added are removed, unless they were there before; its weights
   * are subtracted.
   */
  readonly claims: readonly Claim[];
}

/** The work of one `commit`: all of it or nothing. */
export interface Change {
  readonly claims?: readonly Claim[];
  /** Sums to read. */
  readonly asks?: readonly SumParts[];
  readonly record?: RecordWrite;
  /**
   * The newest token that the stored record must have; `null`: there must be no record. Used only with `record`.
   * Default `null`.
   */
  readonly expected?: string | null;
  /**
   * Undoes the claims of another commit in the step that writes `record` over that commit's record: only if it landed,
   * and only once, even if this change is sent again. If it did not land, nothing is undone, and it must not land
   * later.
   * Without a `record`: for a commit that did not land and cannot any more. Only a store that writes in two steps then
   * has something to undo.
   */
  readonly revoke?: Revocation;
  /**
   * Indexes of the claims whose counts are read. Default: all. A store may omit the other counts if reading them costs
   * more.
   */
  readonly counts?: readonly number[];
}

export type CommitResult =
  /**
   * `counts`: for each claim, what its window holds since its `since`, or the parts of its sum that count, this claim
   * included; `undefined` only if omitted by `Change.counts`. `asked`: the requested sums, including the granted
   * claims.
   */
  | { readonly done: true; readonly counts: readonly (number | undefined)[]; readonly asked: readonly number[] }
  /**
   * Index of the first rejected claim, and what its window or sum holds without it, ignoring a sum's `floor`.
   * `roomSince`: the earliest `since` at which the window would grant it. `roomPart`: the earliest later `part` at
   * which the sum would. Omitted if no value would do, or if the store cannot find it in the same step; users then get
   * no retry time.
   */
  | { readonly done: false; readonly refusedBy: number; readonly count: number; readonly roomSince?: number; readonly roomPart?: number }
  /** A different record is stored, or there is no record. */
  | { readonly done: false; readonly refusedBy?: undefined; readonly current?: StoredRecord };

/** A counter and the amount to add. */
export interface Tally extends Expiry {
  readonly counter: string;
  /** A whole number. */
  readonly by: number;
}

/** What to delete. */
export interface Deletion {
  readonly records?: readonly Pick<StoredRecord, "customer" | "id">[];
  readonly windows?: readonly string[];
  /** The parts that count, including the next one. */
  readonly sums?: readonly SumParts[];
  /** Keys that were passed to `put`. */
  readonly values?: readonly string[];
}

/** What a store reports about itself. Unknown values are omitted. */
export interface StoreInspection {
  /** The kind of store: `memory`, `sqlite`, `postgresql`, `redis`, `mongodb`. */
  readonly kind?: string;
  /** The store's time, in milliseconds since the epoch. */
  readonly time?: number;
  /** Records whose `wakeAt` is `until` or earlier; a store may stop counting at 10,000. */
  readonly due?: number;
  /**
   * The store's durability settings, by the names in its own documentation, for example `{ appendonly: "yes",
   * "maxmemory-policy": "noeviction" }`.
   */
  readonly settings?: Readonly<Record<string, string>>;
  /** What the store lacks to work properly, for example an index, each with its fix. */
  readonly missing?: readonly string[];
}

/**
 * Holds authentications and counters. A store makes no decisions and reads no clock to make them. Each method is one
 * atomic step (docs/contract.md#dumb-store), and no rule is written in its language (docs/contract.md#rules-once).
 *
 * If a method cannot confirm its work, it rejects. The engine then fails closed (503) and sends nothing that was not
 * stored. `storeContract` of `phoneproof/testing` tests a store against this interface.
 */
export interface Store {
  /** Returns the record, or `undefined`. */
  find(customer: string, id: string): Promise<StoredRecord | undefined>;

  /**
   * "All or nothing: every claim is granted and the record is written, or nothing changes and the reason comes back"
   * (docs/contract.md#one-commit).
   *
   * The record is written if the newest token of the stored record is `expected` (docs/contract.md#fences). If the new
   * record's newest token is already among the stored tokens, this commit landed before: the result is done, and
   * nothing is written or counted again. Of several racing commits exactly one is done.
   *
   * Two claims may name one window, with the same member and lifetime and limits over two lengths: the member is added
   * once. Only one claim may name a sum.
   *
   * If claims and record cannot be written in one step (docs/contract.md#two-steps), the order is: claims that add
   * (undone if the record is not written), the record, then claims that take out or give back, and the revocation.
   * Races, crashes and repeats may then reject too much, but never admit too much. A change repeated under its token
   * completes what is missing and does nothing twice.
   */
  commit(change: Change): Promise<CommitResult>;

  /** Returns the newest members of a window, newest first, at most `limit`. */
  members(window: string, limit: number): Promise<string[]>;

  /**
   * Adds to counters, then reads counters; an unknown counter is 0. For statistics only, never for limits: a call that
   * the transport repeats may count twice.
   */
  tally(adds: readonly Tally[], reads: readonly string[]): Promise<number[]>;

  /**
   * Returns up to `limit` records whose `wakeAt` is `until` or earlier, earliest first, and moves each to wake at
   * `leaseUntil` in the same step: only one worker gets each. Tokens and data stay unchanged. If records live in
   * several places, an unresponsive place must not delay the others.
   */
  lease(until: number, limit: number, leaseUntil: number): Promise<StoredRecord[]>;

  /** Returns the value stored under `key`, or `undefined`. */
  get(key: string): Promise<string | undefined>;

  /** Stores a small value (at most 64 KiB). A later `put` replaces it. */
  put(key: string, value: string, expiry: Expiry): Promise<void>;

  /**
   * Deletes everything named at once, whatever its expiry (docs/contract.md#forget): no data and no name remains.
   * Missing items are skipped. A later write over a deleted record finds no record.
   *
   * The only method that need not be atomic: if it rejects, part of the work may be done, and it is called again.
   */
  delete(what: Deletion): Promise<void>;
  /** For `ping` and `doctor`, never during a request. Writes nothing, and omits what it lacks permission to read. */
  inspect?(until: number): Promise<StoreInspection>;

  /** Closes what the store itself opened, never a client that the user passed in. */
  close?(): Promise<void>;
}
