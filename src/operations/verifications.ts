import { readDestination, requireChannel } from "../access/destination.js";
import type { MessageFate } from "../contract/direct.js";
import type {
  StartRequest,
  StartResult,
  VerificationCheckRequest,
  VerificationCheckResult,
  VerificationOptions,
  VerificationResult,
  VerificationTarget,
} from "../contract/verification.js";
import type { UnderEach } from "../core/keyring.js";
import { update } from "../core/records/transact.js";
import { type Authentication, channelOfAttempt, isErased, isVerification, withoutCodes } from "../domain/authentication.js";
import { stateOf } from "../domain/check.js";
import { type Account, guessBudgetError, type Policy } from "../domain/policy.js";
import { timestamp } from "../domain/time.js";
import { undefinedFor, VerifierError } from "../errors.js";
import { storedNumber } from "../messages/number-windows.js";
import { channelOf, correlated, fateOf, standingOf, toCheckResult } from "./answers.js";
import { checkCode } from "./check.js";
import type { Context } from "./context.js";
import { type CheckCall, idOfEarlier, keyedStart } from "./idempotency.js";
import { isRejected, openAmong, sendInSlot } from "./slots.js";

/**
 * Starts a verification of a number, or sends again in the open one: a create in the number's slot, or else a retry of
 * what is there (docs/contract.md#start).
 */
export async function start(context: Context, account: Account, request: StartRequest, options: VerificationOptions): Promise<StartResult> {
  const { clock } = context;
  const { policy } = account;
  const { usedUp = "anew" } = options;
  const phone = readDestination(context, request.phone_number);
  requireLength(policy, request.code_length);
  requireChannel(context, request.channel);
  const keyed = keyedStart(context, request, options);
  const placed = await sendInSlot(context, account, {
    slots: verificationSlots(context, account, options.scope, phone.number),
    request,
    phone,
    deadline: context.newDeadline(),
    isOver(auth, now) {
      const state = stateOf(auth, now, policy);
      return state !== "open" && !(state === "used_up" && usedUp === "wait");
    },
    answered: (auth, now) => keyed?.answered(auth, now),
    first: { starts: keyed === undefined ? [] : [keyed.entry(1)] },
    amended: (auth) => ({
      ...auth,
      locale: request.locale ?? auth.locale,
      correlationId: request.correlation_id ?? auth.correlationId,
      ...(keyed !== undefined && { starts: [...auth.starts, keyed.entry(auth.attempts + 1)] }),
    }),
  });
  const answer = (status: StartResult["status"], attempt: number, fate: MessageFate = {}): StartResult => {
    const { auth } = placed;
    const { status: state, attempts: _, ...shown } = toVerificationResult(context, account, auth, phone.number);
    return { ...shown, status, attempt, is_open: state === "open", ...channelOf(auth), ...fate };
  };
  switch (placed.as) {
    case "begun":
      return answer(placed.auth.status, placed.auth.status === "pending" ? 1 : 0, fateOf(placed.auth, clock.now()));
    case "resent":
      return placed.attempt === undefined ? answer(placed.status as "denied" | "rate_limited", 0, placed.fate) : answer("pending", placed.attempt);
    case "repeated":
      if (!isRejected(placed.auth, placed.attempt)) return answer("pending", placed.attempt);
      return placed.attempt === 1 ? answer("pending", 1, { carrier_refused: true }) : answer("denied", 0, { carrier_refused: true });
  }
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
): Promise<VerificationCheckResult> {
  const { clock, records } = context;
  const { customer } = account;
  const checkOne = async (authentication_uuid: string, call: CheckCall): Promise<VerificationCheckResult> => {
    const request = { customer_uuid: customer, authentication_uuid, check_code };
    const verdict = await checkCode(context, account, request, call).catch(undefinedFor("invalid_auth_uuid"));
    if (verdict === undefined || verdict.status === "expired_auth" || verdict.status === "already_validated") return { status: "not_found" };
    const { status, after } = verdict;
    const answer = toCheckResult(after, status, account.policy, clock.now());
    return { ...answer, status, phone_number: call.number ?? (answer.phone_number as string), created_at: timestamp(after.createdAt), ...channelOf(after) };
  };
  if (target.authentication_uuid !== undefined) return checkOne(target.authentication_uuid, { idempotencyKey, repeat });
  const { number } = storedNumber(context, target.phone_number as string);
  const slots = verificationSlots(context, account, scope, number);
  const checkIn = async (auth: Authentication): Promise<VerificationCheckResult> => {
    const call: CheckCall = { idempotencyKey, repeat, number };
    const before = idOfEarlier(auth, call);
    const earlier = before === undefined ? undefined : (await records.find(context.newDeadline(), customer, before))?.auth;
    return checkOne(auth.id, { ...call, earlier });
  };
  const copy = records.recall(customer, slots[0])?.auth;
  const cached = copy !== undefined && stateOf(copy, clock.now(), account.policy) === "open" ? copy : undefined;
  const first: VerificationCheckResult = cached === undefined ? { status: "not_found" } : await checkIn(cached);
  // The others may have been judged in one that another process has replaced.
  if (first.status === "valid" || first.status === "invalid") return first;
  const latest = await latestIn(context, account, slots);
  return latest === undefined || latest.id === cached?.id ? first : checkIn(latest);
}

/** Ends an open verification: "its codes stop working, an event reports it" (docs/contract.md#cancel). */
export async function cancel(
  context: Context,
  account: Account,
  target: VerificationTarget,
  options: VerificationOptions,
): Promise<VerificationResult | undefined> {
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
  return toVerificationResult(context, account, canceled, target.phone_number);
}

export async function get(
  context: Context,
  account: Account,
  target: VerificationTarget,
  options: VerificationOptions,
): Promise<VerificationResult | undefined> {
  const found = await targetOf(context, account, target, options);
  return found && toVerificationResult(context, account, found, target.phone_number);
}

/** `number`: as in the request; the record may hold it masked. */
function toVerificationResult({ clock }: Context, { policy }: Account, auth: Authentication, number = auth.number): VerificationResult {
  const now = clock.now();
  const firstChannel = channelOfAttempt(auth, 1);
  return {
    authentication_uuid: auth.id,
    phone_number: number,
    status: stateOf(auth, now, policy),
    created_at: timestamp(auth.createdAt),
    expires_at: timestamp(auth.expiresAt),
    attempts: auth.attempts,
    sends: auth.sends.map(({ attempt, at, channel }) => ({ attempt, at: timestamp(at), ...(channel !== undefined && { channel }) })),
    ...(firstChannel !== "sms" && { first_channel: firstChannel }),
    ...standingOf(auth, policy, now),
    ...correlated(auth),
  };
}

/** The stored verification that a request names. */
async function targetOf(context: Context, account: Account, target: VerificationTarget, { scope }: VerificationOptions): Promise<Authentication | undefined> {
  const { records } = context;
  const { customer } = account;
  if (target.authentication_uuid !== undefined) {
    const found = await records.find(context.newDeadline(), customer, target.authentication_uuid);
    return found === undefined || !isVerification(found.auth) ? undefined : found.auth;
  }
  const { number } = storedNumber(context, target.phone_number as string);
  return latestIn(context, account, verificationSlots(context, account, scope, number));
}

/** The verification in a number's slot; during rotation, an open one under another secret. */
async function latestIn(context: Context, account: Account, [slot, ...others]: UnderEach<string>): Promise<Authentication | undefined> {
  const found = await context.records.find(context.newDeadline(), account.customer, slot);
  const auth = found === undefined || isErased(found.auth) ? undefined : found.auth;
  const isOpen = (one: Authentication) => stateOf(one, context.clock.now(), account.policy) === "open";
  if (auth !== undefined && isOpen(auth)) return auth;
  return (await openAmong(context, account, context.newDeadline(), others, isOpen)) ?? auth;
}

/** "the slot's id is a keyed hash of customer, scope and number, under `pepper`" (docs/contract.md#slot). */
const verificationSlots = ({ keyring }: Context, { customer }: Account, scope = "default", number: string) => keyring.slotsFor(customer, `${scope}\0${number}`);

/** "another length than the policy's … if the guess budget allows it" (docs/contract.md#code-length). */
function requireLength(policy: Policy, codeLength = policy.codeLength): void {
  const problem = codeLength < policy.codeLength ? guessBudgetError({ ...policy, codeLength }) : undefined;
  if (problem !== undefined) throw new VerifierError("bad_request", `code_length ${codeLength} is not allowed: ${problem}.`);
}
