import type { Claim, Expiry, SumParts } from "../domain/claim.js";

export type { Claim, Expiry, MemberClaim, SumClaim, SumParts } from "../domain/claim.js";

/** What a store keeps for one authentication. Everything but `data` is there for the store; `data` is opaque text that only the engine reads. */
export interface StoredRecord {
  /** UUID of the customer. Everything is keyed by it: the same `id` under two customers is two records. */
  readonly customer: string;
  /** UUID of the authentication. */
  readonly id: string;
  /** Random tokens of the last writes, the newest first, 1 to 16 of them. */
  readonly tokens: readonly string[];
  /** Opaque text, at most 64 KiB. */
  readonly data: string;
  /** Milliseconds since the epoch. */
  readonly keepUntil: number;
}

/** A record as it is to be written. */
export interface RecordWrite extends StoredRecord, Expiry {
  /** Milliseconds since the epoch at which the record needs work and `lease` must hand it out; absent when it needs none. `"unchanged"`: as it is for the stored record, also where a lease has moved it. */
  readonly wakeAt?: number | "unchanged";
}

/** What an earlier commit claimed, to be taken back. */
export interface Revocation {
  /** The newest token of the record that the commit wrote, or was to write. */
  readonly token: string;
  /** Its claims, as they were given. Members that it added are taken out, unless they had been there before; its weights are subtracted. */
  readonly claims: readonly Claim[];
}

/** What one `commit` does, all of it or nothing. */
export interface Change {
  readonly claims?: readonly Claim[];
  /** Sums that one wants to know. */
  readonly asks?: readonly SumParts[];
  readonly record?: RecordWrite;
  /** The newest token that the stored record must have; `null`: there is no record. Counts only with `record`; default `null`. */
  readonly expected?: string | null;
  /**
   * Takes back what another commit claimed, in the step that writes `record`, over the record of that commit: if that commit landed, and only once, however often this change is sent.
   * If it did not land, nothing is taken back, and it must not land later.
   *
   * Without a `record`: of a commit that did not land, and cannot any more. Then only a store that writes in two steps has something to take back.
   */
  readonly revoke?: Revocation;
  /** The indexes of the claims whose counts are read. Default: of all. Where it would cost more, a store may leave out the others. */
  readonly counts?: readonly number[];
}

export type CommitResult =
  /** `counts`: for each claim what its window holds since its `since`, or the parts of its sum that count, this claim included; `undefined` only where `Change.counts` leaves it out. `asked`: the sums asked for, the claims just granted included. */
  | { readonly done: true; readonly counts: readonly (number | undefined)[]; readonly asked: readonly number[] }
  /**
   * Index of the first claim that was refused, and what its window or sum holds without it, a sum's `floor` apart. Of a window `roomSince`: the earliest `since` under which it would have been granted; of a sum `roomPart`: the earliest `part`, later than its own.
   * Left out where none would do, and by a store that cannot tell it in the same step: users are then not told when to come back.
   */
  | { readonly done: false; readonly refusedBy: number; readonly count: number; readonly roomSince?: number; readonly roomPart?: number }
  /** Another record is stored, or none. */
  | { readonly done: false; readonly refusedBy?: undefined; readonly current?: StoredRecord };

/** A counter and what is added to it. */
export interface Tally extends Expiry {
  readonly counter: string;
  /** A whole number. */
  readonly by: number;
}

/** What is to be let go of. */
export interface Deletion {
  readonly records?: readonly Pick<StoredRecord, "customer" | "id">[];
  readonly windows?: readonly string[];
  /** The parts that count, the next one too. */
  readonly sums?: readonly SumParts[];
  /** Keys that `put` was given. */
  readonly values?: readonly string[];
}

/** What a store tells of itself. What it cannot tell is left out. */
export interface StoreInspection {
  /** What it is, in a word: `memory`, `sqlite`, `postgresql`, `redis`, `mongodb`. */
  readonly kind?: string;
  /** What time it is there, in milliseconds since the epoch. */
  readonly time?: number;
  /** Records whose `wakeAt` is `until` or earlier; a store may count up to 10,000. */
  readonly due?: number;
  /** How it keeps what it acknowledged, by the names that its own documentation uses, for example `{ appendonly: "yes", "maxmemory-policy": "noeviction" }`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** What is missing for it to work as it should, for example an index, each with its mend. */
  readonly missing?: readonly string[];
}

/**
 * Where authentications and what is counted are kept. A store never decides and never reads a clock to decide; each method is one atomic step (docs/contract.md#dumb-store), and no rule is written in its language (docs/contract.md#rules-once).
 *
 * A method that cannot say whether it did its work rejects. The engine then fails closed (503), and sends nothing that was not stored.
 * `storeContract` of `phoneproof/testing` holds a store against every sentence here.
 */
export interface Store {
  /** The record, or `undefined`. */
  find(customer: string, id: string): Promise<StoredRecord | undefined>;

  /**
   * "All or nothing: every claim is granted and the record is written, or nothing changes and the reason comes back" (docs/contract.md#one-commit).
   *
   * The record is written if the newest token of the stored one is `expected` (docs/contract.md#fences). If its own newest token is already among the stored tokens, this very commit landed before, whatever came after it: done, and nothing is written or counted again. Of any number of racers
   * exactly one is done.
   *
   * Two claims may name one window, with the same member and life and limits over two lengths: the member is added once. A sum is named by one claim.
   *
   * Where claims and record cannot be written in one step (docs/contract.md#two-steps), claims that add come first, undone when the record is not written, then the record, then claims that take out or give back, and what is revoked:
   * racers, crashes and repeats may then refuse more than they need to, never admit more. There, too, a change that is sent again under its token completes what is missing, and repeats nothing: neither what it adds nor what it gives back.
   */
  commit(change: Change): Promise<CommitResult>;

  /** The newest members of a window, the newest first, at most `limit`. */
  members(window: string, limit: number): Promise<string[]>;

  /** Adds to counters, and then reads counters: what none was added to is 0. Statistics: nothing that must not be exceeded is kept here, and a call that the transport repeats may count twice. */
  tally(adds: readonly Tally[], reads: readonly string[]): Promise<number[]>;

  /**
   * Up to `limit` records whose `wakeAt` is `until` or earlier, the earliest first, each moved to wake at `leaseUntil` in the same step: of any number of workers one gets it. Tokens and data stay as they are.
   * Where records live in several places, one of them that does not answer must not hold up the others.
   */
  lease(until: number, limit: number, leaseUntil: number): Promise<StoredRecord[]>;

  /** The value put under `key`, or `undefined`. */
  get(key: string): Promise<string | undefined>;

  /** Keeps a small value (at most 64 KiB). A later `put` replaces it. */
  put(key: string, value: string, expiry: Expiry): Promise<void>;

  /**
   * Lets go of all of it at once, whatever its end (docs/contract.md#forget): nothing is left of it, and no name. What is not there is passed over. A write over a record that was let go of finds none.
   *
   * The one method that need not be one step: where it rejects it may have done part of its work, and is called again.
   */
  delete(what: Deletion): Promise<void>;
  /** For `ping` and `doctor`, never for a request: writes nothing, and leaves out what it is not allowed to ask. */
  inspect?(until: number): Promise<StoreInspection>;

  /** Lets go of what the store itself opened. Never closes a client that the user passed in. */
  close?(): Promise<void>;
}
