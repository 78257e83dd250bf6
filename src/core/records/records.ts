import { type Authentication, hasNumber, isForgotten, isVoid, needsNumber } from "../../domain/authentication.js";
import type { Claim } from "../../domain/claim.js";
import { fallbackWork, leaseTime, wakeAt } from "../../domain/delivery.js";
import { isInSlot, slotOf } from "../../domain/ids.js";
import { maskNumber } from "../../domain/phone-number.js";
import { milliseconds } from "../../domain/policy.js";
import { keptApartClaim } from "../../domain/quota.js";
import type { Settings } from "../../options/options.js";
import type { Clock } from "../../ports/clock.js";
import type { Logger } from "../../ports/logger.js";
import type { CommitResult, RecordWrite, Revocation, Store, StoredRecord } from "../../ports/store.js";
import { agedCache } from "../collections.js";
import { type StoreDeadline, unavailable, withTimeout } from "../deadline.js";
import type { Keyring } from "../keyring.js";
import { retryInBackground } from "../retry-in-background.js";
import { throttledLogger } from "../throttled-logger.js";
import { CorruptRecord, decodeRecord, encodeRecord } from "./codec.js";

/** A record as last read or written, usually an authentication, with the tokens that a commit needs. */
export interface Held<T = Authentication> {
  readonly auth: T;
  readonly tokens: readonly string[];
  /** The id that it is stored under. Default: its own. */
  readonly at?: string | undefined;
}

/** A record and claims to write together. */
export interface Writing<T = Authentication> {
  /** The id under which it was looked for: its own, or its slot. */
  readonly id: string;
  readonly next: T;
  /** The record that `next` was decided on; absent: no record existed. */
  readonly before?: Held<T> | undefined;
  readonly claims?: readonly Claim[] | undefined;
  /** The indexes of the claims whose counts are returned. Default: none. */
  readonly counts?: readonly number[] | undefined;
  /** An earlier commit to revoke in the same write. */
  readonly revoke?: Revocation | undefined;
  /** Identifies this write. Default: a new token. */
  readonly token?: string | undefined;
}

/** Which claim was rejected, its count without the claim, and when there is room for it. */
export type RefusedClaim = Extract<CommitResult, { readonly refusedBy: number }>;

/** All claims were granted. */
export type Granted = Extract<CommitResult, { readonly done: true }>;

export type Committed<T = Authentication> =
  | Granted
  | RefusedClaim
  /** The stored record, if any. */
  | { readonly done: false; readonly refusedBy?: undefined; readonly held?: Held<T> | undefined };

/** Records of one kind in the store; the loop in `transact.ts` works on these. */
export interface RecordsOf<T> {
  /** Returns the stored record. A record past its end is treated as absent. */
  find(deadline: StoreDeadline, customer: string, id: string): Promise<Held<T> | undefined>;
  /** Replaces `before` with `next`, or creates the record, together with its claims: all or nothing. */
  commit(deadline: StoreDeadline, writing: Writing<T>): Promise<Committed<T>>;
  /** Returns what this process last saw, if cached. It may be stale: use it only to start a commit from. */
  recall(customer: string, id: string): Held<T> | undefined;
}

/** Authentications in the store. */
export interface Records extends RecordsOf<Authentication> {
  /** Leases readable records that need work until `leaseUntil`. `all`: how many the store handed out. */
  lease(deadline: StoreDeadline, until: number, limit: number, leaseUntil: number): Promise<{ readonly held: readonly Held[]; readonly all: number }>;
  /** Changes this process's copy of a record. The change is stored with the record's next write. */
  note(from: Authentication, to: Authentication): void;
  /**
   * Registers a write that continues after the response. Reads of that record by this process wait for it, until its
   * time is over: by then it has ended, or the platform has stopped it with its request.
   */
  pending(id: string, write: Promise<unknown>): void;
  /** Resolves when all such writes have ended or their time is over. */
  written(): Promise<unknown>;
  /** Drops this process's copy of a record. */
  forget(id: string): void;
}

/** What the records are made of. */
export interface RecordsParts {
  readonly settings: Settings;
  readonly store: Store;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly keyring: Keyring;
  /** Starts the deadline of one request. `within`: milliseconds, if it must be shorter than `storeTimeout`. */
  readonly newDeadline: (within?: number) => StoreDeadline;
  /** Lets work continue after the response, even on platforms that would stop the process then. */
  readonly inBackground: (work: Promise<unknown>) => void;
}

/** "Random tokens of the last writes … 1 to 16 of them" (ports/store.ts). */
export const keptTokens = 16;

/** A write that continues after its response; from `until` on, it counts as lost. */
interface Pending {
  readonly write: Promise<unknown>;
  readonly until: number;
}

const lostSecret =
  "the number of an authentication was encrypted under a secret that is no longer among the options, so that it gets no retry and no fallback: add that secret to `secret`, after the current one";

/** Records cached per generation; there are two. */
const mostRemembered = 20_000;

/** Attempts to replace a record that has ended, or that disappears at that moment. */
const maxRounds = 10;

export function createRecords({ settings, store, clock, logger, keyring, newDeadline, inBackground }: RecordsParts): Records {
  const { deliver, fullNumber, storeTimeout } = settings;
  const now = () => clock.now();
  const remembered = agedCache<Held>(clock, mostRemembered, milliseconds(settings.policy.lifetime));
  const pending = new Map<string, Pending>();
  const throttledLog = throttledLogger(clock, logger);

  const heldOf = (record: StoredRecord): Held => {
    try {
      const { id: at, tokens } = record;
      const known = remembered.get(at);
      // The same write, with notes added since.
      if (known !== undefined && known.tokens[0] === tokens[0]) return known;
      const auth = decodeRecord(record, keyring.decryptNumber);
      if (auth.sealed !== undefined && !hasNumber(auth) && needsNumber(auth, fullNumber, now())) throttledLog.error({ authentication_uuid: at }, lostSecret);
      const read = { auth, tokens, at };
      remembered.set(at, read);
      return read;
    } catch (cause) {
      if (!(cause instanceof CorruptRecord)) throw cause;
      throttledLog.error({ err: cause, authentication_uuid: record.id }, "a stored record is corrupt; it was left as it is");
      throw unavailable(cause);
    }
  };

  const readable = (record: StoredRecord): Held[] => {
    try {
      return isForgotten(record, now()) ? [] : [heldOf(record)];
    } catch {
      // Already reported; the record is left unchanged.
      return [];
    }
  };

  /** When the record wakes. A write that does not change what it wakes for keeps the time: a worker may hold it. */
  const wakeOf = (next: Authentication, before: Held | undefined, now: number): RecordWrite["wakeAt"] => {
    const fallback = fallbackWork(next);
    if (before !== undefined && next.outbox === before.auth.outbox && next.settleBy === before.auth.settleBy && fallback === fallbackWork(before.auth)) {
      return next.outbox.length === 0 && next.settleBy === undefined && fallback === undefined ? undefined : "unchanged";
    }
    return wakeAt(next, now, deliver ? now + leaseTime : undefined);
  };

  /** This process's copy: of the slot whichever verification it holds, of an id in a slot that one. */
  const copyOf = (id: string): Held | undefined => {
    const held = remembered.get(slotOf(id));
    return held === undefined || isIt(held, id) ? held : remembered.get(id);
  };

  const read = async (deadline: StoreDeadline, customer: string, at: string): Promise<Held | undefined> => {
    const record = await deadline.call(() => store.find(customer, at));
    if (record !== undefined && !isForgotten(record, now())) return heldOf(record);
    // It ended, or another process erased it.
    if (remembered.get(at)?.auth.customer === customer) remembered.delete(at);
    return undefined;
  };

  /** Waits for no write: one that continues after its response may call it. */
  const look = async (deadline: StoreDeadline, customer: string, id: string): Promise<Held | undefined> => {
    const slot = slotOf(id);
    const held = await read(deadline, customer, slot);
    return slot === id || (held !== undefined && isIt(held, id)) ? held : read(deadline, customer, id);
  };

  /** Whether a record outside its slot is only a copy, made for a verification that was then rejected: the slot still holds it. */
  const isCopy = async (deadline: StoreDeadline, { auth, at }: Held): Promise<boolean> => {
    if (at !== auth.id || !isInSlot(at)) return false;
    const held = await read(deadline, auth.customer, slotOf(at));
    return held !== undefined && isIt(held, at);
  };

  const commit = async (deadline: StoreDeadline, writing: Writing): Promise<Committed> => {
    const { id, next, before, claims = [], counts = [], revoke, token = keyring.newToken() } = writing;
    const written = now();
    const isMasked = next.sealed !== undefined && !needsNumber(next, fullNumber, written);
    const auth = isMasked ? { ...next, number: maskNumber(next.number), sealed: undefined } : next;
    const { customer, keepUntil } = auth;
    const at = before?.at ?? id;
    const wakeAt = wakeOf(auth, before, written);
    const data = encodeRecord(auth);
    // One that is taken back makes room for the one before.
    const replaced = before !== undefined && !isIt(before, auth.id) && revoke === undefined && !isVoid(before.auth) ? before.auth : undefined;
    // What must not be lost, or not be missing for a moment, is stored first: events, checks that may be repeated, and a
    // delivery that may be confirmed.
    const isKeptFirst =
      replaced !== undefined && (replaced.outbox.length > 0 || replaced.checks.length > 0 || (replaced.purpose !== undefined && !replaced.validated));
    if (isKeptFirst) await keepApart(deadline, replaced, auth.number);
    let over = before?.tokens ?? [];
    for (let round = 0; ; round++) {
      const tokens = [token, ...over].slice(0, keptTokens);
      const record: RecordWrite = { customer, id: at, keepUntil, now: written, tokens, data, ...(wakeAt !== undefined && { wakeAt }) };
      const change = { claims, counts, record, expected: over[0] ?? null, ...(revoke !== undefined && { revoke }) };
      const result = await deadline.call(() => store.commit(change));
      if (result.done) {
        remembered.set(at, { auth, tokens, at });
        if (replaced !== undefined && !isKeptFirst) keepLater(replaced, auth.number);
        return result;
      }
      if (result.refusedBy !== undefined) return result;
      const { current } = result;
      if (current !== undefined && !isForgotten(current, now())) {
        const held = heldOf(current);
        return { done: false, held: isIt(held, id) ? held : await look(deadline, customer, id) };
      }
      if (before !== undefined || round === maxRounds) return { done: false };
      // A record past its end that the store has not deleted yet is treated as absent, so the new one replaces it.
      over = current?.tokens ?? [];
    }
  };

  /**
   * Stores an ended verification under its own id, before or after another one takes its slot. It is listed under its
   * `number`, which it may no longer hold: an erasure at that moment must be able to find it afterwards.
   */
  const keepApart = async (deadline: StoreDeadline, auth: Authentication, number: string): Promise<void> => {
    const claims = [keptApartClaim(auth, keyring.pseudonym(number), now() + 1)];
    const stored = await commit(deadline, { id: auth.id, next: auth, claims });
    if (!stored.done && stored.refusedBy === undefined && stored.held !== undefined)
      await commit(deadline, { id: auth.id, next: auth, before: stored.held, claims });
  };

  const keepLater = (auth: Authentication, number: string): void => {
    const keep = () => keepApart(newDeadline(), auth, number);
    const kept = keep();
    records.pending(auth.id, kept);
    const failed = (err: unknown) =>
      throttledLog.warn({ err, authentication_uuid: auth.id }, "an ended verification could not be stored before the number's next one");
    inBackground(kept.catch(() => retryInBackground(clock, keep, 1)).catch(failed));
  };

  const drop = (id: string, one: Pending) => pending.get(id) === one && pending.delete(id);

  /** Waits for the write of a record that is pending, with a timer of the request that waits. */
  const ended = async (id: string): Promise<void> => {
    const one = pending.get(id);
    if (one === undefined) return;
    const left = Math.min(Math.max(one.until - now(), 0), storeTimeout);
    await withTimeout(clock, left, () => one.write).catch(() => drop(id, one));
  };

  const records: Records = {
    async find(deadline, customer, id) {
      await ended(id);
      return look(deadline, customer, id);
    },

    commit,

    async lease(deadline, until, limit, leaseUntil) {
      const records = await deadline.call(() => store.lease(until, limit, leaseUntil));
      const readables = records.flatMap(readable);
      const held = await Promise.all(readables.map(async (one) => ((await isCopy(deadline, one)) ? [] : one)));
      return { held: held.flat(), all: records.length };
    },

    note(from, to) {
      const held = copyOf(from.id);
      if (held?.auth === from) remembered.set(held.at ?? from.id, { ...held, auth: to });
    },

    pending(id, write) {
      const one: Pending = { write: write.catch(() => undefined).finally(() => drop(id, one)), until: now() + storeTimeout };
      pending.set(id, one);
    },

    written: () => Promise.all([...pending.keys()].map(ended)),

    forget(id) {
      remembered.delete(slotOf(id));
      remembered.delete(id);
    },

    recall(customer, id) {
      const held = copyOf(id);
      return held === undefined || held.auth.customer !== customer || isForgotten(held.auth, now()) ? undefined : held;
    },
  };
  return records;
}

/** Whether a record holds an authentication. Any is looked for in a slot. */
function isIt({ auth }: Held, id: string): boolean {
  return auth.id === id || slotOf(auth.id) === id;
}

/** Returns the number, for work that requires it. Throws `unavailable`. */
export function requireNumber(auth: Authentication): string {
  if (hasNumber(auth)) return auth.number;
  throw unavailable(new Error(`the number of authentication ${auth.id} is sealed under a secret that is no longer among the options`));
}
