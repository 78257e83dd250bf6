import type { Claim, CommitResult } from "../../../src/ports/store.js";
import type { Document, Statement } from "./driver.js";

/** A claim with its place in the change. */
export type Placed<C extends Claim> = C & { readonly place: number };

/** A rejected claim, as `commit` returns it. */
export type Refusal = Extract<CommitResult, { readonly refusedBy: number }>;

/**
 * The result of checking an addition: rejected; revoked before it arrived; or the statement to send, if it was not made
 * before. `adds`: the statement adds something.
 */
export type Judged = Refusal | { readonly isRevoked: true } | { readonly send?: Statement; readonly adds?: true };

/** What a change does to one document under its token. */
export interface Entry {
  readonly _id: Document;
  /** All changes process documents in this order. */
  readonly key: string;
  /**
   * For a document that was not read; it fails if the document is not in its usual state. Absent: it would always fail.
   */
  readonly blind?: Statement | undefined;
  /**
   * Takes the entry back and blocks it for the future. `landed`: whether it is known to have been made, or known not to
   * have been made, with its record; `undefined`: a revoke was sent before.
   */
  revoke?(landed: boolean | undefined): Statement;
}

/** An addition. Its statements fail if a limit does not allow it. */
export interface Adding extends Entry {
  judge(found: unknown): Judged;
  /** Takes back what this very call added. */
  undo(): Statement;
}

/** A removal or refund. */
export interface Giving extends Entry {
  /** Makes it, unless it was made before. */
  sure(): Statement;
  /** Whether it is known not to have been made before. */
  isMissing(found: unknown): boolean;
}

/** The form of a token once another call of its commit relies on what was added under it: then no call undoes that. */
export const reliedOn = (token: string): string => `${token}+`;
