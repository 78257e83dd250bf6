import type { Life } from "../../../src/ports/store.js";
import { type Document, expireAt } from "./driver.js";

/** One or more. */
export type Some<T> = readonly [T, ...T[]];

/** What is held since a claim's `since`: without what the claim adds, and with it. */
export interface Held {
  readonly others: number;
  readonly count: number;
  /** Where it is more than the claim's limit: the earliest `since` under which it would not be. */
  readonly roomSince?: number | undefined;
}

/** One kind of counting. The claims of one call are one addition, counted over several lengths: they name the same window and member, with one life, or the same sum. */
export interface Counter<C, Asked> {
  /** Adds if every limit allows it; tells for each claim what is held. One round trip. */
  take(claims: Some<C>, ticket: string): Promise<readonly Held[]>;
  /** Takes back what was added under the ticket, and only that. */
  undo(claims: Some<C>, ticket: string): Promise<unknown>;
  /** Takes out, or gives back; what is held afterwards. One round trip. */
  release(claims: Some<C>): Promise<readonly number[]>;
  /** What is held since each `since`. One round trip. */
  read(asked: readonly Asked[]): Promise<readonly number[]>;
}

/** An update that sets `fields` and lengthens the life, or changes nothing where `full` holds. */
export function adding(full: unknown, fields: Document, life: Life): Document[] {
  return [{ $replaceWith: { $cond: [full, "$$ROOT", { $mergeObjects: ["$$ROOT", { ...fields, expireAt: expireAt(life) }] }] } }];
}

/** What `held`, a projection of one number for each of `asked`, comes to in the documents of those names; 0 where there is none. */
export function heldIn(found: readonly unknown[], names: readonly string[]): number[] {
  const byName = new Map((found as { _id: string; held: number[] }[]).map(({ _id, held }) => [_id, held]));
  return names.map((name, at) => byName.get(name)?.[at] ?? 0);
}

/** The same of one document. */
export function heldOf(document: unknown, asked: readonly unknown[]): readonly number[] {
  return (document as { held: number[] } | null)?.held ?? asked.map(() => 0);
}
