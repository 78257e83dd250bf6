import type { StartRequest } from "../contract/verification.js";
import { type StoreDeadline, unavailable } from "../core/deadline.js";
import type { UnderEach } from "../core/keyring.js";
import { type Authentication, keptSends } from "../domain/authentication.js";
import { slotOf } from "../domain/ids.js";
import type { PhoneNumber } from "../domain/phone-number.js";
import type { Account } from "../domain/policy.js";
import { undefinedFor } from "../errors.js";
import type { Context } from "./context.js";
import { type Beginning, type Begun, begin } from "./create.js";
import { asksOthers } from "./outside.js";
import { type Resent, resend, type StartAgain } from "./retry.js";

/** A message for whatever is in a number's slot, or for what this call begins there. */
export interface SlotMessage extends StartAgain {
  /** The slot of the number; during rotation also those under the other secrets. */
  readonly slots: UnderEach<string>;
  readonly request: StartRequest;
  readonly phone: PhoneNumber;
  readonly deadline: StoreDeadline;
  /** Whether what is stored makes room for another one. */
  isOver(auth: Authentication, now: number): boolean;
  /** What the first message stores. */
  readonly first: Pick<Beginning, "starts" | "purpose" | "lifetime">;
}

/** What a call did: it repeats an earlier one, it began something, or it sent in what was open. */
export type Placed =
  | { readonly as: "repeated"; readonly auth: Authentication; readonly attempt: number }
  | ({ readonly as: "begun" } & Begun)
  | ({ readonly as: "resent" } & Resent);

/** How often a call looks again, because the one that it found has just ended. */
const mostLooks = 5;

/** The retry results of one that has ended. */
const over: ReadonlySet<Resent["status"]> = new Set(["expired_auth", "already_validated", "no_attempt"]);

/**
 * Sends a message in a number's slot: a create there, or else a retry of what is open in it (docs/contract.md#start).
 * Of any number of concurrent calls, one begins; the others send in what it began.
 */
export async function sendInSlot(context: Context, account: Account, message: SlotMessage): Promise<Placed> {
  const { clock, keyring, records, settings } = context;
  const { customer } = account;
  const { request, phone, deadline, isOver, answered, first, amended, delivery } = message;
  const [slot, ...others] = message.slots;
  const repeats = (auth: Authentication) => answered(auth, clock.now());

  // Others are asked about a start once, and the record must be known first; otherwise the commit finds it. A repeat
  // makes no commit.
  let found: Authentication | undefined = records.recall(customer, slot)?.auth;
  const isRepeat = found !== undefined && repeats(found) !== undefined;
  if (isRepeat || (found === undefined && asksOthers(settings, request))) found = (await records.find(deadline, customer, slot))?.auth;
  const isOpen = (auth: Authentication) => !isOver(auth, clock.now());
  if (found === undefined || !isOpen(found)) found = (await openAmong(context, account, deadline, others, isOpen)) ?? found;

  for (let looks = 0; looks < mostLooks; looks++) {
    const attempt = found && repeats(found);
    if (found !== undefined && attempt !== undefined) return { as: "repeated", auth: found, attempt };
    if (found === undefined || !isOpen(found)) {
      const id = keyring.newIdIn(slot);
      const replaces = (stored: Authentication, now: number) => isOver(stored, now) && answered(stored, now) === undefined;
      const begun: Begun = await begin(context, account, deadline, request, phone, { id, at: slot, request: undefined, ...first, replaces, delivery });
      if (begun.auth.id === id) return { as: "begun", ...begun };
      found = begun.auth;
      continue;
    }
    const open: Authentication = found;
    const resent = await resend(context, account, open.id, request.channel, { answered, amended, delivery }).catch(undefinedFor("invalid_auth_uuid"));
    // Also if it has ended in the meantime: one call sends one message.
    if (resent?.attempt !== undefined) return { as: "resent", ...resent };
    const after = records.recall(customer, open.id)?.auth ?? open;
    // This process's copy was of one that another has replaced.
    const isReplaced = (records.recall(customer, slotOf(open.id))?.auth.id ?? open.id) !== open.id;
    if (resent === undefined || over.has(resent.status) || isReplaced || !isOpen(after)) {
      found = (await records.find(context.newDeadline(), customer, slot))?.auth;
      continue;
    }
    const before = repeats(after);
    return before === undefined ? { as: "resent", ...resent } : { as: "repeated", auth: after, attempt: before };
  }
  throw unavailable(new Error(`${mostLooks} verifications of one number ended while this call tried to send in them`));
}

/** The first open one in these slots. */
export async function openAmong(
  context: Context,
  { customer }: Account,
  deadline: StoreDeadline,
  slots: readonly string[],
  isOpen: (auth: Authentication) => boolean,
): Promise<Authentication | undefined> {
  for (const slot of slots) {
    const held = await context.records.find(deadline, customer, slot);
    if (held !== undefined && isOpen(held.auth)) return held.auth;
  }
  return undefined;
}

/** Whether a message was rejected: it is not among those kept, nor older than all of them. */
export function isRejected(auth: Authentication, attempt: number): boolean {
  const { sends } = auth;
  const isKept = sends.some((send) => send.attempt === attempt);
  return !isKept && !(sends.length === keptSends(auth) && attempt < (sends[0]?.attempt ?? 0));
}
