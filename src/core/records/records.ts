import { type Authentication, hasNumber, isForgotten, needsNumber, withoutNumber } from "../../domain/authentication.js";
import type { Claim } from "../../domain/claim.js";
import { wakeAt } from "../../domain/delivery.js";
import type { Clock } from "../../ports/clock.js";
import type { Logger } from "../../ports/logger.js";
import type { CommitResult, RecordWrite, Revocation, Store, StoredRecord } from "../../ports/store.js";
import { agedCache } from "../aged-cache.js";
import { type StoreDeadline, unavailable } from "../deadline.js";
import type { Keyring } from "../keyring.js";
import { CorruptRecord, decodeRecord, encodeRecord } from "./codec.js";

/** An authentication, or what else is kept in a record, as it was read or written last, with the tokens that a commit needs. */
export interface Held<T = Authentication> {
  readonly auth: T;
  readonly tokens: readonly string[];
}

/** What is to be written together. */
export interface Writing<T = Authentication> {
  readonly next: T;
  /** What `next` was decided on; absent: there was no record. */
  readonly before?: Held<T> | undefined;
  readonly claims?: readonly Claim[] | undefined;
  /** The indexes of the claims whose counts are read. Default: of none. */
  readonly counts?: readonly number[] | undefined;
  readonly revoke?: Revocation | undefined;
  /** Identifies this write. Default: a new token. */
  readonly token?: string | undefined;
}

/** Which claim was refused, what is counted without it, and when there would be room for it. */
export type RefusedClaim = Extract<CommitResult, { readonly refusedBy: number }>;

/** All claims were granted. */
export type Granted = Extract<CommitResult, { readonly done: true }>;

export type Committed<T = Authentication> =
  | Granted
  | RefusedClaim
  /** What is stored instead, if anything is. */
  | { readonly done: false; readonly refusedBy?: undefined; readonly held?: Held<T> | undefined };

/** Records of one kind in the store: what the loop of `transition.ts` works on. */
export interface RecordsOf<T> {
  /** What is stored; a record past its end counts as none. */
  find(deadline: StoreDeadline, customer: string, id: string): Promise<Held<T> | undefined>;
  /** Writes `next` in place of `before`, or where there is no record, with its claims: all or nothing. */
  commit(deadline: StoreDeadline, writing: Writing<T>): Promise<Committed<T>>;
  /** What this process held last, if it still does: perhaps stale, so good only to start a commit from. */
  recall(customer: string, id: string): Held<T> | undefined;
}

/** Authentications in the store. */
export interface Records extends RecordsOf<Authentication> {
  /** Records that need work, as far as they can be read, held until `leaseUntil`; `all`: how many the store handed out. */
  lease(deadline: StoreDeadline, until: number, limit: number, leaseUntil: number): Promise<{ readonly held: readonly Held[]; readonly all: number }>;
  /** Changes what this process holds of a record, for its next write: nothing is written for it alone. */
  note(from: Authentication, to: Authentication): void;
  /** A write that goes on after the answer. Reads of that record by this process wait for it. */
  pending(id: string, write: Promise<unknown>): void;
  /** Ends when all such writes have. */
  written(): Promise<unknown>;
  /** Drops what this process holds of a record. */
  forget(id: string): void;
}

export interface RecordsOptions {
  readonly store: Store;
  readonly keyring: Keyring;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Whether this process delivers the events that it writes; then it holds them from the write on, for so many milliseconds. */
  readonly holdsEvents: number | undefined;
  /** Milliseconds from a creation to its end: nothing is remembered for longer than twice that. */
  readonly lifetime: number;
  /** Whether callbacks tell the whole number. */
  readonly fullNumber: boolean;
}

/** "Random tokens of the last writes … 1 to 16 of them" (ports/store.ts). */
export const keptTokens = 16;

/** Records remembered, and up to as many again. */
const mostRemembered = 20_000;

/** How often an ended record, or one that vanishes just then, is got out of the way of a new one. */
const maxRounds = 10;

export function createRecords({ store, keyring, clock, logger, holdsEvents, lifetime, fullNumber }: RecordsOptions): Records {
  const now = () => clock.now();
  const remembered = agedCache<Held>(clock, mostRemembered, lifetime);
  const pending = new Map<string, Promise<unknown>>();

  const heldOf = (record: StoredRecord): Held => {
    try {
      const { id, tokens } = record;
      const known = remembered.get(id);
      // The same write, with what was noted since.
      if (known !== undefined && known.tokens[0] === tokens[0]) return known;
      const read = { auth: decodeRecord(record, keyring.decryptNumber), tokens };
      remembered.set(id, read);
      return read;
    } catch (cause) {
      if (!(cause instanceof CorruptRecord)) throw cause;
      logger.error({ err: cause, authentication_uuid: record.id }, "a stored record is corrupt; it is left as it is");
      throw unavailable(cause);
    }
  };

  const readable = (record: StoredRecord): Held[] => {
    try {
      return isForgotten(record, now()) ? [] : [heldOf(record)];
    } catch {
      // Reported, and left as it is.
      return [];
    }
  };

  /** When the record wakes. A write that does not touch what it wakes for leaves that alone: a worker may hold it. */
  const wakeOf = (next: Authentication, before: Held | undefined, now: number): RecordWrite["wakeAt"] => {
    if (before !== undefined && next.outbox === before.auth.outbox && next.settleBy === before.auth.settleBy) {
      return next.outbox.length === 0 && next.settleBy === undefined ? undefined : "unchanged";
    }
    return wakeAt(next, now, holdsEvents === undefined ? undefined : now + holdsEvents);
  };

  return {
    async find(deadline, customer, id) {
      await pending.get(id);
      const record = await deadline.call(() => store.find(customer, id));
      if (record !== undefined && !isForgotten(record, now())) return heldOf(record);
      // It ended, or was erased by another process.
      if (remembered.get(id)?.auth.customer === customer) remembered.delete(id);
      return undefined;
    },

    async commit(deadline, { next, before, claims = [], counts = [], revoke, token = keyring.newToken() }) {
      const at = now();
      const auth = next.sealed === undefined || needsNumber(next, fullNumber, at) ? next : withoutNumber(next);
      const { customer, id, keepUntil } = auth;
      const wakeAt = wakeOf(auth, before, at);
      const data = encodeRecord(auth);
      let over = before?.tokens ?? [];
      for (let round = 0; ; round++) {
        const tokens = [token, ...over].slice(0, keptTokens);
        const record: RecordWrite = { customer, id, keepUntil, now: at, tokens, data, ...(wakeAt !== undefined && { wakeAt }) };
        const change = { claims, counts, record, expected: over[0] ?? null, ...(revoke !== undefined && { revoke }) };
        const result = await deadline.call(() => store.commit(change));
        if (result.done) remembered.set(id, { auth, tokens });
        if (result.done || result.refusedBy !== undefined) return result;
        const { current } = result;
        if (current !== undefined && !isForgotten(current, now())) return { done: false, held: heldOf(current) };
        if (before !== undefined || round === maxRounds) return { done: false };
        // A record past its end that the store has not cleared away yet counts as none, so the new one takes its place; unless it is cleared away just then.
        over = current?.tokens ?? [];
      }
    },

    async lease(deadline, until, limit, leaseUntil) {
      const records = await deadline.call(() => store.lease(until, limit, leaseUntil));
      return { held: records.flatMap(readable), all: records.length };
    },

    note(from, to) {
      const held = remembered.get(from.id);
      if (held?.auth === from) remembered.set(to.id, { auth: to, tokens: held.tokens });
    },

    pending(id, write) {
      const ended = write.catch(() => undefined).finally(() => pending.delete(id));
      pending.set(id, ended);
    },

    written: () => Promise.all(pending.values()),

    forget: (id) => remembered.delete(id),

    recall(customer, id) {
      const held = remembered.get(id);
      return held === undefined || held.auth.customer !== customer || isForgotten(held.auth, now()) ? undefined : held;
    },
  };
}

/** The number, where nothing can be done without it. Throws `unavailable`. */
export function requireNumber(auth: Authentication): string {
  if (hasNumber(auth)) return auth.number;
  throw unavailable(new Error(`the number of authentication ${auth.id} is sealed under a secret that is no longer among the options`));
}
