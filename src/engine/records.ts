import { type Authentication, isForgotten } from "../domain/authentication.js";
import { wakeAt } from "../domain/delivery.js";
import type { Clock } from "../ports/clock.js";
import type { Logger } from "../ports/logger.js";
import type { Store, StoredRecord } from "../ports/store.js";
import { type StoreBudget, unavailable } from "./budget.js";
import type { Codes } from "./codes.js";
import { CorruptRecord, decodeRecord, encodeRecord } from "./record.js";

/** An authentication as it was read or written last, with the tokens that a swap needs. */
export interface Held {
  readonly auth: Authentication;
  readonly tokens: readonly string[];
}

export type Swap = { readonly swapped: true; readonly held: Held } | { readonly swapped: false; readonly held?: Held };

/** Authentications in the store. */
export interface Records {
  /** What is stored; a record past its end counts as none. */
  find(budget: StoreBudget, customer: string, id: string): Promise<Held | undefined>;
  /** Writes `next` in place of `before`, or where there is no record. If something else is stored, that comes back and nothing is written. */
  swap(budget: StoreBudget, next: Authentication, before: Held | undefined): Promise<Swap>;
  /** Records that need work, as far as they can be read. */
  due(budget: StoreBudget, now: number, limit: number): Promise<readonly Held[]>;
  /** What this process held last, if it still does: perhaps stale, so good only to start a swap from. */
  recall(customer: string, id: string): Held | undefined;
}

/** "A record keeps the tokens of its last 16 writes" (architecture.md, Store). */
const keptTokens = 16;

/** The tokens of the next write, a new one before those there were. */
export function nextTokens(token: string, tokens: readonly string[] = []): string[] {
  return [token, ...tokens].slice(0, keptTokens);
}

/** How often ended records are got out of the way, before a write or in `due`. */
const maxRounds = 10;

/** How many records a process remembers for `recall`. */
const remembered = 4096;

export function createRecords(store: Store, codes: Codes, clock: Clock, logger: Logger): Records {
  const recent = new Map<string, Held>();

  const remember = (held: Held): Held => {
    const { id } = held.auth;
    recent.delete(id);
    recent.set(id, held);
    if (recent.size > remembered) recent.delete(recent.keys().next().value as string);
    return held;
  };

  const read = (record: StoredRecord): Held => {
    try {
      return remember({ auth: decodeRecord(record), tokens: record.tokens });
    } catch (cause) {
      if (!(cause instanceof CorruptRecord)) throw cause;
      logger.error({ err: cause, authentication_uuid: record.id }, "a stored record is corrupt; it is left as it is");
      throw unavailable(cause);
    }
  };

  const write = async (budget: StoreBudget, next: Authentication, tokens: readonly string[]): Promise<Swap | { readonly stale: StoredRecord }> => {
    const { customer, id, keepUntil } = next;
    const wake = wakeAt(next);
    const record = {
      customer,
      id,
      keepUntil,
      tokens: nextTokens(codes.newToken(), tokens),
      data: encodeRecord(next),
      ...(wake !== undefined && { wakeAt: wake }),
    };
    const result = await budget.call(() => store.compareAndSwap(record, tokens[0] ?? null));
    if (result.swapped) return { swapped: true, held: remember({ auth: next, tokens: record.tokens }) };
    if (result.current === undefined) return { swapped: false };
    if (isForgotten(result.current, clock.now())) return { stale: result.current };
    return { swapped: false, held: read(result.current) };
  };

  const readable = (record: StoredRecord): Held[] => {
    try {
      return [read(record)];
    } catch {
      // Reported, and left as it is.
      return [];
    }
  };

  const putToSleep = ({ wakeAt: _wakeAt, ...record }: StoredRecord) =>
    store.compareAndSwap({ ...record, tokens: nextTokens(codes.newToken(), record.tokens) }, record.tokens[0] as string);

  return {
    async find(budget, customer, id) {
      const record = await budget.call(() => store.find(customer, id));
      return record === undefined || isForgotten(record, clock.now()) ? undefined : read(record);
    },
    async swap(budget, next, before) {
      let tokens = before?.tokens ?? [];
      for (let round = 0; ; round++) {
        const result = await write(budget, next, tokens);
        const known = !("stale" in result) && (result.swapped || result.held !== undefined);
        if (known) return result;
        if (before !== undefined || round === maxRounds) return { swapped: false };
        // A record past its end that the store has not cleared away yet is as good as none, so the new one takes its place; unless it is cleared away just then.
        tokens = "stale" in result ? result.stale.tokens : [];
      }
    },
    async due(budget, now, limit) {
      // Records past their end that the store has not cleared away yet must not stand before those that need work.
      for (let round = 0; ; round++) {
        const records = await budget.call(() => store.due(now, limit));
        const ended = records.filter((record) => isForgotten(record, clock.now()));
        if (ended.length === 0 || round === maxRounds) return records.filter((record) => !ended.includes(record)).flatMap(readable);
        await budget.call(() => Promise.all(ended.map(putToSleep)));
      }
    },
    recall(customer, id) {
      const held = recent.get(id);
      return held === undefined || held.auth.customer !== customer || isForgotten(held.auth, clock.now()) ? undefined : held;
    },
  };
}
