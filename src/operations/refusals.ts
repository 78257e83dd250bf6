import type * as z from "zod";
import { readNumber } from "../access/destination.js";
import type { NumberRequest } from "../contract/operator.js";
import { type Decided, transact, update } from "../core/records/transact.js";
import { type Authentication, isVoid, withDecision } from "../domain/authentication.js";
import { type Decision, isEnforced } from "../domain/decision.js";
import { type DestinationError, destinationErrors } from "../domain/phone-number.js";
import type { Account } from "../domain/policy.js";
import { readUncreated, refusedClaims, uncreatedClaims } from "../domain/quota.js";
import { day, hour, timestamp } from "../domain/time.js";
import { VerifierError } from "../errors.js";
import { membersOf, ownNumbers } from "../messages/number-windows.js";
import { storeLater } from "../observability/observed.js";
import type { Context } from "./context.js";

/**
 * Stores a blocked create and returns what is stored. This happens in the background, within the limit for stored
 * refusals; with an idempotency key before the response, since repeats must return the same.
 */
export async function refuseCreate(context: Context, account: Account, refused: Authentication): Promise<Authentication> {
  const { clock, keyring, records, settings } = context;
  const moment = { now: clock.now(), skew: settings.clockSkew };
  const decide = (held: { readonly auth: Authentication } | undefined): Decided<Authentication> => {
    if (held !== undefined && !isVoid(held.auth)) return { result: held.auth };
    // Beyond that limit the result is the same, but is not stored: blocked creates must not fill a store.
    return { result: refused, next: refused, claims: refusedClaims(refused, moment, keyring.pseudonym) };
  };
  const keep = transact(records, context.newDeadline(), account.customer, refused.id, decide, true);
  if (refused.request !== undefined) {
    const { result: stored } = await keep;
    if (stored !== refused) return stored;
  } else {
    storeLater(context, refused.id, keep, { authentication_uuid: refused.id }, "a rejected create could not be stored; `explain` will not find it");
  }
  reportRefusal(context, "create", refused.status, refused, refused.decisions);
  return refused;
}

/**
 * "A rejection writes nothing and consumes nothing" (docs/contract.md#refusal-consumes-nothing). The rule that blocked
 * a retry is noted in the record in the background.
 */
export function refuseRetry(context: Context, auth: Authentication, fired: readonly Decision[]): void {
  const { customer, id } = auth;
  const noted = update(context.records, context.newDeadline(), customer, id, (current): Decided<void> => {
    return { result: undefined, next: fired.reduce(withDecision, current) };
  });
  storeLater(context, id, noted, { authentication_uuid: id }, "why a retry was rejected could not be stored; `explain` will not find it");
  reportRefusal(context, "retry", "rate_limited", auth, fired);
}

/** Counts a message that a rule blocked, and passes it to listeners. */
export function reportRefusal(
  { monitor, statistics }: Context,
  operation: "create" | "retry" | "fallback",
  status: Authentication["status"],
  auth: Authentication,
  fired: readonly Decision[],
): void {
  const refusedBy = fired.find(isEnforced)?.rule;
  if (refusedBy !== undefined) statistics.refused(auth.customer, auth.country, refusedBy);
  monitor.refused(operation, status, auth, fired);
}

/** Requests to a number that were rejected by its country, its line type or the block list, in one hour. */
export interface RefusedRequests {
  /** As in the response of status 400. */
  readonly code: DestinationError;
  /** Start of the hour. ISO 8601 timestamp. */
  readonly hour: string;
  /** At most 20: further ones are not counted. */
  readonly count: number;
  /** The latest one. ISO 8601 timestamp. */
  readonly last_at: string;
}

type Sending<Request, Rest extends unknown[], R> = (context: Context, account: Account, request: Request, ...rest: Rest) => Promise<R>;

/** The operation; a request that it rejects because of the destination is counted in the background (docs/contract.md#uncreated). */
export function countingRefusals<Request extends { readonly phone_number: string }, Rest extends unknown[], R>(
  operation: Sending<Request, Rest, R>,
): Sending<Request, Rest, R> {
  return async (context, account, request, ...rest) => {
    try {
      return await operation(context, account, request, ...rest);
    } catch (error) {
      const code = error instanceof VerifierError ? destinationErrors.find((one) => one === error.code) : undefined;
      if (code !== undefined) countRefusal(context, account, request.phone_number, code);
      throw error;
    }
  };
}

function countRefusal(context: Context, { customer }: Account, phoneNumber: string, code: DestinationError): void {
  const { clock, keyring, settings, store } = context;
  const token = keyring.newToken();
  const { number } = readNumber(context, phoneNumber);
  const claims = uncreatedClaims(customer, number, code, token, { now: clock.now(), skew: settings.clockSkew }, keyring.pseudonym);
  const counted = context.newDeadline().call(() => store.commit({ claims, counts: [] }));
  storeLater(context, token, counted, { code }, "a rejected request could not be counted; `refusals` will not show it");
}

/** Returns what was counted in the last 24 hours, newest first. */
export async function refusalsOf(context: Context, account: Account, request: z.output<typeof NumberRequest>): Promise<readonly RefusedRequests[]> {
  await context.records.written();
  const own = ownNumbers(context, account, request.phone_number);
  const members = (await Promise.all(own.map(({ names }) => membersOf(context, names.refused)))).flat();
  const since = context.clock.now() - day;
  const found = new Map<string, RefusedRequests>();
  for (const { code, at } of members.flatMap((member) => readUncreated(member) ?? []).sort((a, b) => b.at - a.at)) {
    if (at <= since) continue;
    const hourAt = timestamp(Math.floor(at / hour) * hour);
    const { count, last_at } = found.get(`${code} ${hourAt}`) ?? { count: 0, last_at: timestamp(at) };
    found.set(`${code} ${hourAt}`, { code, hour: hourAt, count: count + 1, last_at });
  }
  return [...found.values()].sort((a, b) => b.last_at.localeCompare(a.last_at));
}
