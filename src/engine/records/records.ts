import { type Authentication, isExpired, isForgotten, needsNumber, withoutNumber } from "../../domain/authentication.js";
import type { Answer } from "../../domain/cells.js";
import type { Ask, Claim } from "../../domain/claim.js";
import { wakeAt } from "../../domain/delivery.js";
import type { Clock } from "../../ports/clock.js";
import type { Logger } from "../../ports/logger.js";
import type { CommitResult, RecordWrite, Store, StoredRecord } from "../../ports/store.js";
import { type StoreBudget, unavailable } from "../clock/budget.js";
import type { Codes } from "../codes.js";
import type { Soon } from "../soon.js";
import { CorruptRecord, decodeRecord, encodeRecord } from "./codec.js";
import { lastUsed } from "./last-used.js";
import { type Shelf, Write } from "./write.js";

/** An authentication, or what else is kept in a record, as it was read or written last, with the tokens that a commit needs. */
export interface Held<T = Authentication> {
  readonly auth: T;
  readonly tokens: readonly string[];
}

/** With the text that a store keeps of it. */
export interface Remembered extends Held {
  readonly data: string;
}

/** What is to be written together. */
export interface Writing<T = Authentication> {
  readonly next: T;
  /** What `next` was decided on; absent: there was no record. */
  readonly before?: Held<T> | undefined;
  readonly claims?: readonly Claim[] | undefined;
  readonly asks?: readonly Ask[] | undefined;
  /** Of this write, to know it again. Default: a new one. */
  readonly token?: string | undefined;
}

/** Which claim was refused, what is counted without it, and since when there would be room for it. */
export type RefusedClaim = Extract<CommitResult, { readonly refusedBy: number }>;

export type Committed<T = Authentication> =
  | ({ readonly done: true } & Answer)
  | RefusedClaim
  /** What is stored instead, if anything is. */
  | { readonly done: false; readonly refusedBy?: undefined; readonly held?: Held<T> };

/** Records of one kind in the store: what the loop of `transition.ts` works on. */
export interface RecordsOf<T> {
  /** What is stored; a record past its end counts as none. */
  find(budget: StoreBudget, customer: string, id: string): Promise<Held<T> | undefined>;
  /** Writes `next` in place of `before`, or where there is no record, with its claims: all or nothing. Answers what `read` makes of it. */
  commit<R>(budget: StoreBudget, writing: Writing<T>, read: (committed: Committed<T>) => Soon<R>): Promise<R>;
  /** What this process held last, if it still does: perhaps stale, so good only to start a commit from. */
  recall(customer: string, id: string): Held<T> | undefined;
}

/** Authentications in the store. */
export interface Records extends RecordsOf<Authentication> {
  /** Records that need work, as far as they can be read, held until `leaseUntil`; `all`: how many the store handed out. */
  lease(budget: StoreBudget, until: number, limit: number, leaseUntil: number): Promise<{ readonly held: readonly Held[]; readonly all: number }>;
  /** Changes what this process holds of a record, for its next write: nothing is written for it alone. */
  note(from: Authentication, to: Authentication): void;
  /** What this process holds of a record goes with it. */
  forget(id: string): void;
}

export interface RecordsOptions {
  readonly store: Store;
  readonly codes: Codes;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Whether this process delivers the events that it writes; then it holds them from the write on, for so many milliseconds. */
  readonly holdsEvents: number | undefined;
  /** Milliseconds from a creation to its end: nothing is remembered for longer than three times that. */
  readonly lifetime: number;
  /** Whether callbacks tell the whole number. */
  readonly fullNumber: boolean;
}

/** What the remembered texts take, and up to twice that: those of more than 100,000 authentications. */
const rememberedBytes = 64 * 1024 * 1024;

/** What a text takes beside its length: its id, and its place in a map. */
const besideText = 160;

/** A record as one string: an object for each would take more than what it holds. Neither tokens nor data of ours have a line break in them. */
function inOnePiece({ auth, tokens, data }: Remembered): string {
  return [auth.customer, auth.keepUntil, tokens.join(), data].join("\n");
}

function heldIn(id: string, text: string | undefined, { unseal }: Codes): Held | undefined {
  if (text === undefined) return undefined;
  const [customer = "", keepUntil, written = "", data = ""] = text.split("\n");
  const tokens = written.split(",");
  return { auth: decodeRecord({ customer, id, keepUntil: Number(keepUntil), tokens, data }, unseal), tokens };
}

export function createRecords({ store, codes, clock, logger, holdsEvents, lifetime, fullNumber }: RecordsOptions): Records {
  const age = lifetime;
  const now = () => clock.now();
  const texts = lastUsed<string>(rememberedBytes, age, now);
  /** Ready for use, which most are used soon. Of what was not, and can still be checked, the text takes less. */
  const recent = lastUsed<Remembered>(1_024, age, now, (held, id) => {
    if (held.auth.status !== "pending" || held.auth.validated || isExpired(held.auth, now())) return texts.delete(id);
    const text = inOnePiece(held);
    texts.set(id, text, besideText + text.length);
  });

  const heldOf = (record: StoredRecord): Held => {
    try {
      const { id, tokens, data } = record;
      const known = recent.get(id);
      // The same write, with what was noted since.
      if (known !== undefined && known.tokens[0] === tokens[0]) return known;
      const read = { auth: decodeRecord(record, codes.unseal), tokens, data };
      recent.set(id, read);
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

  const forget = (id: string): void => {
    recent.delete(id);
    texts.delete(id);
  };

  const shelf: Shelf = { store, now, heldOf, keep: (held, at) => recent.set(held.auth.id, held, 1, at) };

  return {
    forget,

    find(budget, customer, id) {
      return budget.ask({
        ask: () => store.find(customer, id),
        read(record) {
          if (record !== undefined && !isForgotten(record, now())) return heldOf(record);
          // It ended, or was erased by another process.
          if (recent.get(id)?.auth.customer === customer) forget(id);
          return undefined;
        },
      });
    },

    commit(budget, writing, read) {
      const { next, before, token = codes.newToken() } = writing;
      const at = now();
      const auth = next.sealed === undefined || needsNumber(next, fullNumber, at) ? next : withoutNumber(next);
      return budget.ask(new Write(shelf, budget, writing, auth, wakeOf(auth, before, at), token, at, read));
    },

    async lease(budget, until, limit, leaseUntil) {
      const records = await budget.call(() => store.lease(until, limit, leaseUntil));
      return { held: records.flatMap(readable), all: records.length };
    },

    note(from, to) {
      const held = recent.get(from.id);
      if (held?.auth !== from) return;
      recent.set(to.id, { auth: to, tokens: held.tokens, data: encodeRecord(to) });
    },

    recall(customer, id) {
      const held = recent.get(id) ?? heldIn(id, texts.get(id), codes);
      return held === undefined || held.auth.customer !== customer || isForgotten(held.auth, now()) ? undefined : held;
    },
  };
}
