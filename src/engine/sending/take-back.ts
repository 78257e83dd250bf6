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
 * Runs what commits a send. Where its answer is lost or late the request fails, nothing is sent, and the commit is taken back beside the request, whether it has landed, never will, or lands later:
 * "no send that never was may cost a retry or push a live code out" (docs/contract.md#take-back). `trying` is told each decision before it is committed.
 */
export function takingBack<R>(parts: Parts, run: (trying: <D extends Decided<unknown>>(decided: D, before: Held | undefined) => D) => Promise<R>): Promise<R> {
  let tried: Tried | undefined;
  const running = run((decided, before) => {
    const { next, token, claims = [] } = decided;
    tried = next === undefined || token === undefined ? undefined : { token, next, before, claims };
    return decided;
  });
  return running.catch((cause: unknown) => {
    if (tried !== undefined && cause instanceof VerifierError && cause.code === "unavailable") parts.beside(takeBack(parts, tried));
    throw cause;
  });
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
