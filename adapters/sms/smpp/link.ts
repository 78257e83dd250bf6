import type { BindRole } from "./pdu.js";
import { openSession, type Session, type SessionEvents } from "./session.js";
import type { Settings } from "./settings.js";
import { statuses, statusName } from "./status.js";

export type LinkState = "idle" | "connecting" | "bound" | "waiting" | "refused" | "closed";

export type Link = ReturnType<typeof keepBound>;

/** Temporary bind errors; any other rejection is treated as a wrong option. */
const passing: readonly number[] = [statuses.ESME_RALYBND, statuses.ESME_RSYSERR, statuses.ESME_RMSGQFUL, statuses.ESME_RTHROTTLED];

/**
 * Statuses with which a message centre rejects a kind of bind that it does not know, or that the account may not use.
 */
const wrongRole: readonly number[] = [statuses.ESME_RINVCMDID, statuses.ESME_RINVBNDSTS, statuses.ESME_RBINDFAIL];

function refusedWith(status: number, role: BindRole): string {
  const refusal = `the peer rejected the bind as ${role} with ${statusName(status)}`;
  if (status === statuses.ESME_RALYBND) return `${refusal}: does another process bind with the same systemId? The sender tries again by itself`;
  if (passing.includes(status)) return `${refusal}: the error is temporary, and the sender tries again by itself`;
  const other = role === "transceiver" ? "transmitter+receiver" : "transceiver";
  const fix = wrongRole.includes(status) ? `; and bindType, for it may take "${other}" alone` : "";
  return `${refusal}: check the options systemId, password and systemType${fix}`;
}

/** A connection that is reopened whenever it ends, until `retire`. `changed` is called after each change of `state`. */
export function keepBound(settings: Settings, role: BindRole, { deliver, full }: Pick<SessionEvents, "deliver" | "full">, changed: () => void) {
  const { clock, logger, rebind } = settings;
  const peer = { host: settings.host, port: settings.port, bind: role };
  const watchers = new Set<() => void>();
  let session: Session | undefined;
  let state: LinkState = "idle";
  let failure: string | undefined;
  let failures = 0;
  let boundAt: number | undefined;
  let nextAttemptAt = 0;
  let final = false;
  let cancelAttempt = () => {};

  function attempt(): void {
    cancelAttempt();
    enter("connecting");
    session = openSession(settings, role, { bound, deliver, full, ended });
  }

  function bound(): void {
    failure = undefined;
    boundAt = clock.now();
    logger?.info(peer, "bound to the SMPP peer");
    enter("bound");
  }

  function ended(reason: string, refusal?: number): void {
    session = undefined;
    const lived = boundAt === undefined ? undefined : clock.now() - boundAt;
    boundAt = undefined;
    const isShort = lived !== undefined && lived < rebind.max;
    if (lived !== undefined && !isShort) failures = 0;
    failure = refusal === undefined ? reason : refusedWith(refusal, role);
    if (isShort && failures > 0) failure += `; it was bound for ${lived} ms only: does another process bind with the same systemId?`;
    if (final) {
      enter("closed");
      return;
    }
    // Exponential backoff; the random share keeps many processes from reconnecting at once.
    const pause = Math.min(rebind.max, rebind.min * 2 ** failures) * (1 - Math.random() / 2);
    failures = Math.min(failures + 1, 30);
    nextAttemptAt = clock.now() + pause;
    cancelAttempt = clock.after(pause, attempt, "background");
    const fields = { ...peer, reason: failure, retryInMs: Math.round(pause) };
    const refused = refusal !== undefined && !passing.includes(refusal);
    if (refused) logger?.error(fields, "the SMPP peer rejected the bind");
    else logger?.warn(fields, "the connection to the SMPP peer ended");
    enter(refused ? "refused" : "waiting");
  }

  function enter(next: LinkState): void {
    state = next;
    changed();
    if (next !== "connecting") for (const watcher of [...watchers]) watcher();
  }

  return {
    get state() {
      return state;
    },
    /** Why the last session ended; cleared by the next bind. */
    get failure() {
      return failure;
    },
    /** When the next attempt is due, in milliseconds since the epoch, while `state` is `waiting`. */
    get nextAttemptAt() {
      return nextAttemptAt;
    },
    /** The session, if it is bound. */
    bound: () => (session?.bound() ? session : undefined),
    /** Makes the first attempt, unless one was made already. */
    start() {
      if (state === "idle") attempt();
    },
    /** Makes an attempt now, or joins the one in progress; rejects if it fails. */
    connect() {
      return new Promise<void>((resolve, reject) => {
        function look(): void {
          watchers.delete(look);
          if (state === "bound") resolve();
          else reject(new Error(`no bind with the SMPP peer ${peer.host}:${peer.port}: ${failure ?? "the sender is closed"}`));
        }
        if (state === "bound" || state === "closed") return look();
        watchers.add(look);
        if (state !== "connecting") attempt();
      });
    },
    /** Makes no further attempts; a session that is not bound ends at once. */
    retire() {
      final = true;
      cancelAttempt();
      if (session === undefined) enter("closed");
      else if (!session.bound()) session.destroy("the sender is closed");
    },
    /** Resumes reading after a pause. */
    readOn: () => session?.readOn(),
    unbind: () => new Promise<void>((resolve) => (session === undefined ? resolve() : session.unbind(resolve))),
    /** Ends the session at once. */
    cut: (reason: string) => session?.destroy(reason),
  };
}
