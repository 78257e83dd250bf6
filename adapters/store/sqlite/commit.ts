import type { Change, Claim, CommitResult, Expiry, RecordWrite, StoredRecord } from "../../../src/ports/store.js";
import { CorruptRecord, type Counts, raised, refusalOf } from "../../kit/store.js";
import type { Connection, SqliteRow } from "./connection.js";
import { SqliteError } from "./errors.js";

/** When a life that begins now ends, on this machine's clock. */
export const endOf = ({ now, keepUntil }: Expiry): number => Date.now() + Math.max(0, keepUntil - now);

export function rowOf({ get }: Connection, { customer, id }: Pick<StoredRecord, "customer" | "id">): SqliteRow | undefined {
  return get("SELECT * FROM phoneproof_records WHERE customer = ? AND id = ?", customer, id);
}

/** Returns the record, or an error that names it if the row is not one that `write` makes. */
export function parseRecord({ customer, id, tokens, data, keep_until }: SqliteRow): StoredRecord {
  try {
    const parsed = JSON.parse(tokens as string) as string[];
    if (Array.isArray(parsed) && parsed.length > 0) return { customer, id, tokens: parsed, data, keepUntil: Number(keep_until) } as StoredRecord;
  } catch {
    // Reported below.
  }
  throw new CorruptRecord("sqliteStore", customer, id);
}

/** `commit`, within a transaction: reads everything first, then writes. */
export function commit(connection: Connection, { claims = [], asks = [], record, expected = null, revoke, counts }: Change): CommitResult {
  const { get, run } = connection;
  const token = record?.tokens[0];
  if (record !== undefined && token === undefined) throw new SqliteError("sqliteStore: a record needs a token");
  const row = record && rowOf(connection, record);
  const current = row && parseRecord(row);
  const hasLanded = (token: string | undefined) => token !== undefined && current?.tokens.includes(token) === true;

  const counted: Counts = {
    total({ sum, part, parts, ahead }) {
      const held = "SELECT coalesce(sum(held), 0) AS held FROM phoneproof_sums WHERE sum = ? AND part BETWEEN ? AND ?";
      return Number(get(held, sum, Math.max(0, part - parts + 1), ahead ? part + 1 : part)?.["held"]);
    },
    newer({ window, since }, except) {
      const newer = "SELECT count(*) AS newer FROM phoneproof_members WHERE window = ? AND at > ? AND member IS NOT ?";
      return Number(get(newer, window, since, except ?? null)?.["newer"]);
    },
    timeOf({ window, member }, skipped) {
      const newest = "SELECT at FROM phoneproof_members WHERE window = ? AND member <> ? ORDER BY at DESC LIMIT 1 OFFSET ?";
      return get(newest, window, member, skipped)?.["at"] as number | undefined;
    },
  };

  function make(claim: Claim): void {
    if ("sum" in claim) {
      const held = claim.floor === undefined ? 0 : counted.total(claim);
      addTo(connection, claim.sum, claim.part, claim.floor === undefined ? claim.weight : raised(held, claim) - held, claim);
    } else if (claim.out) {
      run("DELETE FROM phoneproof_members WHERE window = ? AND member = ? AND at = ?", claim.window, claim.member, claim.now);
    } else {
      // `added_by`: the commit that added it, unless another has claimed it since.
      const enter = `INSERT INTO phoneproof_members VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
        at = max(at, excluded.at), ends = max(ends, excluded.ends), added_by = CASE added_by WHEN excluded.added_by THEN added_by END`;
      run(enter, claim.window, claim.member, claim.now, token ?? null, endOf(claim));
    }
  }

  function takeBack(claim: Claim, token: string): void {
    if ("sum" in claim) addTo(connection, claim.sum, claim.part, -claim.weight, claim);
    else run("DELETE FROM phoneproof_members WHERE window = ? AND member = ? AND added_by = ?", claim.window, claim.member, token);
  }

  if (!hasLanded(token)) {
    if (record !== undefined && (current?.tokens[0] ?? null) !== expected) return { done: false, ...(current && { current }) };
    for (const [refusedBy, claim] of claims.entries()) {
      const refusal = refusalOf(claim, counted);
      if (refusal !== undefined) return { done: false, refusedBy, ...refusal };
    }
    claims.forEach(make);
    if (revoke !== undefined && hasLanded(revoke.token)) for (const claim of revoke.claims) takeBack(claim, revoke.token);
    if (record !== undefined) write(connection, record, row);
  }
  const countOf = (claim: Claim) => ("sum" in claim ? counted.total(claim) : counted.newer(claim));
  return { done: true, counts: claims.map((claim, at) => (counts?.includes(at) === false ? undefined : countOf(claim))), asked: asks.map(counted.total) };
}

function write({ run }: Connection, record: RecordWrite, before: SqliteRow | undefined): void {
  const { customer, id, tokens, data, keepUntil, wakeAt = null } = record;
  const wake = wakeAt === "unchanged" ? (before?.["wake_at"] ?? null) : wakeAt;
  run("REPLACE INTO phoneproof_records VALUES (?, ?, ?, ?, ?, ?, ?)", customer, id, JSON.stringify(tokens), data, keepUntil, wake, endOf(record));
}

/** Adds to a part of a sum, or to a counter. */
export function addTo({ run }: Connection, sum: string, part: number, by: number, expiry: Expiry): void {
  if (by === 0) return;
  const add = "INSERT INTO phoneproof_sums VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET held = held + excluded.held, ends = max(ends, excluded.ends)";
  run(add, sum, part, by, endOf(expiry));
}
