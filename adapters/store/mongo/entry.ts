import type { Claim, CommitResult } from "../../../src/ports/store.js";
import type { Document, Statement } from "./driver.js";

/** A claim, and where it stands in its change. */
export type Placed<C extends Claim> = C & { readonly place: number };

/** A claim that was refused, as `commit` returns it. */
export type Refusal = Extract<CommitResult, { readonly refusedBy: number }>;

/** What a look says of an addition: refused; revoked before it came; or what is to be sent, nothing where it was made before. `adds`: that adds something. */
export type Judged = Refusal | { readonly isRevoked: true } | { readonly send?: Statement; readonly adds?: true };

/** What a change does to one document under its token. */
export interface Entry {
  readonly _id: Document;
  /** All changes go through documents in the order of these. */
  readonly key: string;
  /** For a document of which nothing is known; it fails where that is not as it mostly is. Absent: it never would do. */
  readonly blind?: Statement | undefined;
  /** Takes it back and keeps it from being done later. `landed`: whether it is known to have been done, or known not to have been done with its record; `undefined`: this was sent before. */
  revoke?(landed: boolean | undefined): Statement;
}

/** What is added. Its statements fail where a limit does not allow it. */
export interface Adding extends Entry {
  judge(found: unknown): Judged;
  /** Takes back what this very call added. */
  undo(): Statement;
}

/** What is taken out or given back. */
export interface Giving extends Entry {
  /** Does it, unless it was done before. */
  sure(): Statement;
  /** Whether it is known not to have been done before. */
  isMissing(found: unknown): boolean;
}

/** How a token is kept once another call of its commit relies on what was added under it: then nobody undoes that. */
export function reliedOn(token: string): string {
  return `${token}+`;
}
