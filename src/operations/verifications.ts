import { readDestination } from "../access/destination.js";
import type * as direct from "../contract/direct.js";
import type {
  StartAnswer,
  StartRequest,
  VerificationAnswer,
  VerificationCheckAnswer,
  VerificationCheckRequest,
  VerificationOptions,
  VerificationTarget,
} from "../contract/verification.js";
import { type StoreDeadline, unavailable } from "../core/deadline.js";
import { update } from "../core/records/transact.js";
import type { Account } from "../domain/account.js";
import { type Authentication, isErased, keptSends, withoutCodes } from "../domain/authentication.js";
import { guessBudgetFault, type Policy } from "../domain/policy.js";
import { slotOf } from "../domain/slot.js";
import { timestamp } from "../domain/time.js";
import { stateOf } from "../domain/verification.js";
import { VerifierError } from "../errors.js";
import { ownNumber } from "../messages/number-windows.js";
import { correlated, standingOf, toAuthenticationAnswer, toCheckAnswer } from "./answers.js";
import { judge } from "./check.js";
import type { Context } from "./context.js";
import { begin } from "./create.js";
import { keyedStart } from "./idempotency.js";
import { asksOthers } from "./outside.js";
import { resend } from "./retry.js";

/** How often a call looks again, because the verification that it found has just ended. */
const mostLooks = 5;

/** The retry results of a verification that has ended. */
const over: ReadonlySet<direct.RetryAnswer["status"]> = new Set(["expired_auth", "already_validated", "no_attempt"]);

/**
 * Starts a verification of a number, or sends again in the open one: a create in the number's slot, or else a retry of
 * what is there (docs/contract.md#start).
 */
export async function start(context: Context, account: Account, request: StartRequest, options: VerificationOptions): Promise<StartAnswer> {
  const { clock, keyring, records, settings } = context;
  const { customer, policy } = account;
  const { usedUp = "anew" } = options;
  const phone = readDestination(context, request.phone_number);
  requireLength(policy, request.code_length);
  const keyed = keyedStart(context, request, options);
  const deadline = context.newDeadline();
  const isOver = (auth: Authentication, now: number) => {
    const state = stateOf(auth, now, policy);
    return state !== "open" && !(state === "used_up" && usedUp === "wait");
  };
  const [slot, ...others] = slotsOf(context, account, options.scope, phone.number);
  const answer = (
    auth: Authentication,
    status: StartAnswer["status"],
    attempt: number,
    { carrier_refused, retry_after }: direct.MessageFate = {},
  ): StartAnswer => {
    const now = clock.now();
    const { authentication_uuid, phone_number, created_at, expires_at } = toAuthenticationAnswer(auth, phone.number, policy, now);
    return {
      authentication_uuid,
      phone_number,
      created_at,
      expires_at,
      status,
      attempt,
      is_open: stateOf(auth, now, policy) === "open",
      sends: sendsOf(auth),
      ...standingOf(auth, policy, now),
      ...correlated(auth),
      ...(carrier_refused !== undefined && { carrier_refused }),
      ...(retry_after !== undefined && { retry_after }),
    };
  };

  /** The result of an earlier start, or of this one. */
  const repeated = (auth: Authentication) => {
    const attempt = keyed?.answered(auth, clock.now()) as number;
    if (!isRejected(auth, attempt)) return answer(auth, "pending", attempt);
    return attempt === 1 ? answer(auth, "pending", 1, { carrier_refused: true }) : answer(auth, "denied", 0, { carrier_refused: true });
  };

  // Others are asked about a start once, and the record must be known first; otherwise the commit finds it. A repeat
  // makes no commit.
  let found: Authentication | undefined = records.recall(customer, slot)?.auth;
  const isRepeat = found !== undefined && keyed?.answered(found, clock.now()) !== undefined;
  if (isRepeat || (found === undefined && asksOthers(settings, request))) found = (await records.find(deadline, customer, slot))?.auth;
  if (found === undefined || isOver(found, clock.now())) found = (await openAmong(context, account, deadline, others)) ?? found;

  for (let looks = 0; looks < mostLooks; looks++) {
    if (found !== undefined && keyed?.answered(found, clock.now()) !== undefined) return repeated(found);
    if (found === undefined || isOver(found, clock.now())) {
      const id = keyring.newIdIn(slot);
      const auth: Authentication = await begin(context, account, deadline, request, phone, {
        id,
        at: slot,
        request: undefined,
        starts: keyed === undefined ? [] : [keyed.entry(1)],
        replaces: (stored, now) => isOver(stored, now) && keyed?.answered(stored, now) === undefined,
      });
      if (auth.id === id) {
        const { status, ...fate } = toAuthenticationAnswer(auth, phone.number, policy, clock.now());
        return answer(auth, status, status === "pending" ? 1 : 0, fate);
      }
      found = auth;
      continue;
    }
    const open: Authentication = found;
    const resent = await resend(context, account, open.id, {
      answered: (auth, now) => keyed?.answered(auth, now),
      amended: (auth) => ({
        ...auth,
        locale: request.locale ?? auth.locale,
        correlationId: request.correlation_id ?? auth.correlationId,
        ...(keyed !== undefined && { starts: [...auth.starts, keyed.entry(auth.attempts + 1)] }),
      }),
    }).catch(unknown);
    // Also if it has ended in the meantime: one start sends one message.
    if (resent?.attempt !== undefined) return answer(resent.auth, "pending", resent.attempt);
    const after = records.recall(customer, open.id)?.auth ?? open;
    // This process's copy was of one that another has replaced.
    const isReplaced = (records.recall(customer, slotOf(open.id))?.auth.id ?? open.id) !== open.id;
    if (resent === undefined || over.has(resent.status) || isReplaced || isOver(after, clock.now())) {
      found = (await records.find(context.newDeadline(), customer, slot))?.auth;
      continue;
    }
    if (keyed?.answered(after, clock.now()) !== undefined) return repeated(after);
    return answer(after, resent.status as "denied" | "rate_limited", 0, resent.fate);
  }
  throw unavailable(new Error(`${mostLooks} verifications of one number ended while this call tried to send in them`));
}

/**
 * Checks a code of the open verification (docs/contract.md#check-by-number). This process's copy of the slot may be of
 * an earlier one: it only saves a read.
 */
export async function checkVerification(
  context: Context,
  account: Account,
  { check_code, ...target }: VerificationCheckRequest,
  { scope, idempotencyKey, repeat }: VerificationOptions,
): Promise<VerificationCheckAnswer> {
  const { customer } = account;
  const named = { customer_uuid: customer, check_code };
  const checkOne = async (id: string, number: string | undefined): Promise<VerificationCheckAnswer> => {
    const verdict = await judge(context, account, { ...named, authentication_uuid: id }, idempotencyKey, repeat).catch(unknown);
    if (verdict === undefined || verdict.status === "expired_auth" || verdict.status === "already_validated") return { status: "not_found" };
    const { status, after } = verdict;
    const answer = toCheckAnswer(after, status, account.policy, context.clock.now());
    return { ...answer, status, phone_number: number ?? (answer.phone_number as string), created_at: timestamp(after.createdAt) };
  };
  if (target.authentication_uuid !== undefined) return checkOne(target.authentication_uuid, undefined);
  const { number } = ownNumber(context, account, target.phone_number as string).phone;
  const slots = slotsOf(context, account, scope, number);
  const copy = context.records.recall(customer, slots[0])?.auth;
  const cached = copy !== undefined && stateOf(copy, context.clock.now(), account.policy) === "open" ? copy : undefined;
  const first: VerificationCheckAnswer = cached === undefined ? { status: "not_found" } : await checkOne(cached.id, number);
  // The others may have been judged in one that another process has replaced.
  if (first.status === "valid" || first.status === "invalid") return first;
  const latest = await latestIn(context, account, slots);
  return latest === undefined || latest.id === cached?.id ? first : checkOne(latest.id, number);
}

/** Ends an open verification: "its codes stop working, an event reports it" (docs/contract.md#cancel). */
export async function cancel(
  context: Context,
  account: Account,
  target: VerificationTarget,
  options: VerificationOptions,
): Promise<VerificationAnswer | undefined> {
  const { clock, monitor, records } = context;
  const { customer, policy } = account;
  const found = await targetOf(context, account, target, options);
  if (found === undefined) return undefined;
  const canceled = await update<Authentication | undefined>(records, context.newDeadline(), customer, found.id, (auth) => {
    const state = stateOf(auth, clock.now(), policy);
    if (state !== "open" && state !== "used_up") return { result: undefined };
    const next = withoutCodes({ ...auth, canceled: true });
    return { result: next, next };
  });
  if (canceled === undefined) return undefined;
  monitor.canceled(canceled);
  return toVerificationAnswer(context, account, canceled, target);
}

export async function get(
  context: Context,
  account: Account,
  target: VerificationTarget,
  options: VerificationOptions,
): Promise<VerificationAnswer | undefined> {
  const found = await targetOf(context, account, target, options);
  return found && toVerificationAnswer(context, account, found, target);
}

function toVerificationAnswer({ clock }: Context, { policy }: Account, auth: Authentication, { phone_number }: VerificationTarget): VerificationAnswer {
  const now = clock.now();
  return {
    authentication_uuid: auth.id,
    phone_number: phone_number ?? auth.number,
    status: stateOf(auth, now, policy),
    created_at: timestamp(auth.createdAt),
    expires_at: timestamp(auth.expiresAt),
    attempts: auth.attempts,
    sends: sendsOf(auth),
    ...standingOf(auth, policy, now),
    ...correlated(auth),
  };
}

const sendsOf = ({ sends }: Authentication): StartAnswer["sends"] => sends.map(({ attempt, at }) => ({ attempt, at: timestamp(at) }));

/** The stored verification that a request names. */
async function targetOf(context: Context, account: Account, target: VerificationTarget, { scope }: VerificationOptions): Promise<Authentication | undefined> {
  const { records } = context;
  const { customer } = account;
  if (target.authentication_uuid !== undefined) {
    const found = await records.find(context.newDeadline(), customer, target.authentication_uuid);
    return found === undefined || isErased(found.auth) ? undefined : found.auth;
  }
  const { number } = ownNumber(context, account, target.phone_number as string).phone;
  return latestIn(context, account, slotsOf(context, account, scope, number));
}

/** The verification in a number's slot; during rotation, an open one under another secret. */
async function latestIn(context: Context, account: Account, [slot, ...others]: Slots): Promise<Authentication | undefined> {
  const found = await context.records.find(context.newDeadline(), account.customer, slot);
  const auth = found === undefined || isErased(found.auth) ? undefined : found.auth;
  if (auth !== undefined && stateOf(auth, context.clock.now(), account.policy) === "open") return auth;
  return (await openAmong(context, account, context.newDeadline(), others)) ?? auth;
}

async function openAmong(
  context: Context,
  { customer, policy }: Account,
  deadline: StoreDeadline,
  slots: readonly string[],
): Promise<Authentication | undefined> {
  for (const slot of slots) {
    const held = await context.records.find(deadline, customer, slot);
    if (held !== undefined && stateOf(held.auth, context.clock.now(), policy) === "open") return held.auth;
  }
  return undefined;
}

/** Whether a message was rejected: it is not among those kept, nor older than three of them. */
function isRejected({ sends }: Authentication, attempt: number): boolean {
  const isKept = sends.some((send) => send.attempt === attempt);
  return !isKept && !(sends.length === keptSends && attempt < (sends[0]?.attempt ?? 0));
}

type Slots = readonly [string, ...string[]];

/** "the slot's id is a keyed hash of customer, scope and number, under `pepper`" (docs/contract.md#slot). */
function slotsOf({ keyring }: Context, { customer }: Account, scope = "default", number: string): Slots {
  return keyring.slotsFor(customer, `${scope}\0${number}`) as unknown as Slots;
}

/** "another length than the policy's … if the guess budget allows it" (docs/contract.md#code-length). */
function requireLength(policy: Policy, codeLength = policy.codeLength): void {
  const fault = codeLength < policy.codeLength ? guessBudgetFault({ ...policy, codeLength }) : undefined;
  if (fault !== undefined) throw new VerifierError("bad_request", `code_length ${codeLength} is not allowed: ${fault}.`);
}

/** An unknown authentication is `undefined`. */
function unknown(fault: unknown): undefined {
  if (!(fault instanceof VerifierError) || fault.code !== "invalid_auth_uuid") throw fault;
}
