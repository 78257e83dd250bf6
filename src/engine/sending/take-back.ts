import { type Authentication, blankOf, withoutSendThatNeverWas } from "../../domain/authentication.js";
import type { Claim } from "../../domain/claim.js";
import { takenBack } from "../../domain/quota.js";
import { VerifierError } from "../../errors.js";
import { insist } from "../clock/insist.js";
import { newBudget, type Parts } from "../parts.js";
import type { Held } from "../records/records.js";
import { creation, type Decided, transition } from "../transition.js";

/** A commit that was tried for a send. */
interface Tried {
  readonly token: string;
  readonly next: Authentication;
  readonly before: Held | undefined;
  readonly claims: readonly Claim[];
}

/**
 * The commits that one request tries for a send. Where the answer of the last is lost or late the request fails, nothing is sent, and the commit is taken back beside the request, whether it has landed, never will, or lands later:
 * "no send that never was may cost a retry or push a live code out" (docs/contract.md#take-back).
 */
export class Tries {
  #last: Tried | undefined;

  constructor(readonly parts: Parts) {}

  /** Told of each decision before it is committed. */
  of<D extends Decided<unknown>>(decided: D, before: Held | undefined): D {
    const { next, token, claims = [] } = decided;
    this.#last = next === undefined || token === undefined ? undefined : { token, next, before, claims };
    return decided;
  }

  /** Told when what was tried is known to be written, or not. */
  over(): void {
    this.#last = undefined;
  }

  /** Told of what the request fails with. */
  failed(cause: unknown): void {
    if (this.#last !== undefined && cause instanceof VerifierError && cause.code === "unavailable") this.parts.beside(takeBack(this.parts, this.#last));
  }
}

async function takeBack(parts: Parts, tried: Tried): Promise<void> {
  try {
    await insist(parts.clock, () => fence(parts, tried));
  } catch (err) {
    parts.eyes.sparse.error(
      { err, authentication_uuid: tried.next.id },
      "a write whose answer was late could not be taken back: if it landed, its send counts though no message went out",
    );
  }
}

/** One write after which the commit has no effect: what it wrote is taken out again, or it finds another token than it expects. */
async function fence(parts: Parts, { token, next, before, claims }: Tried): Promise<void> {
  const { records } = parts;
  const { customer, id } = next;
  const budget = newBudget(parts);
  const decide = ({ auth, tokens }: Held): Decided<void> => {
    const landed = tokens.includes(token);
    // A try before this one took it back, and its answer was lost.
    if (landed && !auth.sends.some(({ attempt }) => attempt === next.attempts)) return { result: undefined };
    if (!landed && tokens[0] !== before?.tokens[0]) return { result: undefined };
    const origin = before?.auth ?? blankOf(next);
    return { result: undefined, next: landed ? withoutSendThatNeverWas(auth, next.attempts, origin) : { ...auth }, claims: takenBack(claims, landed) };
  };
  if (before !== undefined) return void (await transition(records, budget, customer, id, (_auth, held) => decide(held)));
  await creation(records, budget, customer, id, (held) =>
    held === undefined ? { result: undefined, next: blankOf(next), claims: takenBack(claims, false) } : decide(held),
  );
}
