import { withTimeout } from "../core/deadline.js";
import { withoutNumbers } from "../core/loggers.js";
import type { Observed } from "../observability/observed.js";
import type { Access } from "./access.js";

type Needed = Pick<Observed, "settings" | "clock"> & { readonly monitor: Pick<Observed["monitor"], "throttledLog"> };

/** Timeout of a challenge in milliseconds. */
const challengeTimeout = 2000;

/**
 * Whether a create's proof is valid. "A wrong or late proof is not an error: the rules simply apply"
 * (docs/contract.md#challenge). The same applies if the check fails, which is logged without the proof.
 */
export async function meetsChallenge({ clock, monitor, settings }: Needed, proof: string | undefined, ip: string | undefined): Promise<boolean> {
  const { challenge } = settings;
  if (challenge === undefined || proof === undefined) return false;
  const abort = new AbortController();
  try {
    const holds: unknown = await withTimeout(clock, challengeTimeout, () => challenge.verify(proof, { signal: abort.signal, ...(ip !== undefined && { ip }) }));
    if (typeof holds !== "boolean") throw new TypeError("a challenge must return true or false");
    return holds;
  } catch (err) {
    abort.abort();
    // An error's other fields may contain the proof.
    const reason = err instanceof Error ? withoutNumbers(`${err.name}: ${err.message}`.replaceAll(proof, "…")) : "no error was thrown, but something else";
    monitor.throttledLog.error({ reason }, "the challenge failed; the spam rules apply");
    return false;
  }
}

/**
 * The same for a create or start. "Providers accept a proof once, so under one idempotency key … a process checks it
 * once" (docs/contract.md#challenge): such calls have one `name`. An accepted one stays in `proofs` until it is used.
 */
export function meetsChallengeOnce(
  access: Needed & Pick<Access, "proofs">,
  name: string | undefined,
  proof: string | undefined,
  ip: string | undefined,
): Promise<boolean> {
  const { proofs } = access;
  if (name === undefined) return meetsChallenge(access, proof, ip);
  const known = proofs.get(name);
  if (known !== undefined) return known;
  const check = meetsChallenge(access, proof, ip);
  proofs.set(name, check);
  void check.then((holds) => {
    if (!holds) proofs.delete(name);
  });
  return check;
}
