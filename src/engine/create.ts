import type { AuthenticationResponse, AuthenticationStatus, CreateAuthenticationRequest } from "../contract/authentication.js";
import { type Authentication, isExpired } from "../domain/authentication.js";
import type { Decision } from "../domain/decision.js";
import type { PhoneNumber } from "../domain/phone-number.js";
import { type Charge, createCharges } from "../domain/quota.js";
import type { Cost } from "../domain/spend.js";
import { VerifierError } from "../errors.js";
import type { Account } from "./account.js";
import { type StoreBudget, unavailable } from "./budget.js";
import { capDecision, charge, chargeAndSwap, leaving, wouldRefuse } from "./charge.js";
import { readDestination } from "./destination.js";
import { handOver } from "./hand-over.js";
import { nextSend } from "./message.js";
import { newBudget, type Parts, timestamp } from "./parts.js";
import type { Held } from "./records.js";
import { judgeSpam } from "./spam.js";
import type { SpendHold } from "./spend.js";

/** One create on its way. */
interface Attempt {
  readonly account: Account;
  readonly budget: StoreBudget;
  readonly phone: PhoneNumber;
  readonly request: CreateAuthenticationRequest;
  /** Spam rules that fired. */
  readonly decisions: readonly Decision[];
}

/**
 * "Create: faults (400) first, then caps → `rate_limited`, then spam rules → `spam_detected`, else the code is sent and the status is `pending`. The three outcomes all make an authentication with an id and `expires_at`" (contract.md).
 */
export async function createAuthentication(
  parts: Parts,
  account: Account,
  request: CreateAuthenticationRequest,
  idempotencyKey?: string,
): Promise<AuthenticationResponse> {
  const phone = readDestination(parts, request.phone_number);
  const decisions = await judgeSpam(parts, request, phone);
  const attempt: Attempt = { account, budget: newBudget(parts), phone, request, decisions };
  return toResponse(idempotencyKey === undefined ? await createOnce(parts, attempt) : await createKeyed(parts, attempt, idempotencyKey));
}

/** Without an idempotency key: charge and write side by side, then send. */
async function createOnce(parts: Parts, attempt: Attempt): Promise<Authentication> {
  const blank = newAuthentication(parts, attempt, parts.codes.newId());
  const charges = chargesOf(parts, attempt, blank, blank.createdAt);
  const { code, next, cost } = nextSend(parts, blank, attempt.phone.country, attempt.account.policy, blank.createdAt);
  const admitted = await admit(parts, attempt, blank, charges, cost);
  if ("refused" in admitted) return stored(await parts.records.swap(attempt.budget, admitted.refused, undefined)).auth;

  const { hold } = admitted;
  const refuse = (held: Held) => parts.records.swap(attempt.budget, refused(blank, "rate_limited", attempt.decisions), held);
  const { swap, refusal } = await chargeAndSwap(parts, attempt.budget, charges, hold, next, undefined, refuse);
  const held = stored(swap);
  if (refusal !== undefined) {
    return stored(await parts.records.swap(attempt.budget, refused(blank, "rate_limited", [...attempt.decisions, capDecision(refusal)]), held)).auth;
  }
  await handOver(parts, attempt.budget, held.auth, code, attempt.phone.country, attempt.account.policy, hold);
  return held.auth;
}

/**
 * "With a key the order is swap (`planned`), reserve, swap (`sending` or refused), send: a twin that finds `planned` carries on from it (the reservation is the same member), one that finds more answers what is stored" (architecture.md, rule 5).
 */
async function createKeyed(parts: Parts, attempt: Attempt, key: string): Promise<Authentication> {
  const { account, budget, request } = attempt;
  const { codes, records } = parts;
  const [id, ...older] = codes.idsFor(account.customer, key) as [string, ...string[]];
  const fingerprints = codes.fingerprints("create", JSON.stringify(request));
  for (const other of older) {
    const held = await records.find(budget, account.customer, other);
    if (held !== undefined) return sameRequest(held.auth, fingerprints);
  }

  const planned = { ...newAuthentication(parts, attempt, id), planned: true, request: fingerprints[0] as string };
  const found = await planOrFind(parts, attempt, planned);
  const start = sameRequest(found.auth, fingerprints);
  if (!start.planned) return start;

  const now = parts.clock.now();
  const { code, next, cost } = nextSend(parts, start, attempt.phone.country, account.policy, now);
  const charges = chargesOf(parts, attempt, start, now);
  // Twins share one plan, and so one name.
  const admitted = await admit(parts, attempt, start, charges, cost, `${id.slice(0, 13)} ${start.createdAt.toString(36)}`);
  const hold = "hold" in admitted ? admitted.hold : undefined;
  const swap = await leaving(hold, budget, async () => {
    const refusal = "refused" in admitted ? admitted.refused : await refusedByCaps(parts, attempt, start, charges);
    return records.swap(budget, refusal ?? next, found);
  });
  if (hold !== undefined && swap.held?.auth === next) await handOver(parts, budget, next, code, attempt.phone.country, account.policy, hold);
  else await hold?.leave(budget);
  return swap.held === undefined ? raceLost() : sameRequest(swap.held.auth, fingerprints);
}

/** Writes the plan, or finds what a twin has written. A plan that nobody carried on before it expired was never answered: a new one takes its place. */
async function planOrFind(parts: Parts, { budget }: Attempt, planned: Authentication): Promise<Held> {
  const { held: first } = await parts.records.swap(budget, planned, undefined);
  if (first === undefined) return raceLost();
  if (!first.auth.planned || !isExpired(first.auth, parts.clock.now())) return first;
  const { held } = await parts.records.swap(budget, planned, first);
  return held ?? raceLost();
}

/** "another body under the key is `bad_request`" (contract.md, Idempotency-Key). */
function sameRequest(auth: Authentication, fingerprints: readonly string[]): Authentication {
  if (auth.request !== undefined && fingerprints.includes(auth.request)) return auth;
  throw new VerifierError("bad_request", "The Idempotency-Key was used before with another body; use a new key for a new request.");
}

function raceLost(): never {
  throw unavailable(new Error("a record vanished while it was written"));
}

function newAuthentication({ clock }: Parts, { account, phone, request, decisions }: Attempt, id: string): Authentication {
  const { lifetime, tombstone } = account.policy;
  const createdAt = clock.now();
  const expiresAt = createdAt + lifetime * 1000;
  return {
    customer: account.customer,
    id,
    number: phone.number,
    createdAt,
    expiresAt,
    keepUntil: expiresAt + tombstone * 1000,
    status: "pending",
    planned: false,
    attempts: 0,
    sent: 0,
    retries: 0,
    lastSendAt: createdAt,
    wrongChecks: 0,
    validated: false,
    sends: [],
    decisions,
    checks: [],
    events: 0,
    outbox: [],
    ...(request.device_type !== undefined && { deviceType: request.device_type }),
    ...(request.app_realm !== undefined && { appRealm: request.app_realm }),
    ...(request.callback_url !== undefined && { callbackUrl: request.callback_url }),
  };
}

function chargesOf({ settings }: Parts, { account, request }: Attempt, blank: Authentication, now: number): Charge[] {
  const subject = { customer: account.customer, id: blank.id, number: blank.number, attempt: 1, deviceId: request.device_id, ip: request.ip };
  return createCharges(subject, account.policy, now, settings.clockSkew);
}

/** What refuses before anything is charged, as the refused record: a spam rule, or `rate_limited` where a cap refuses too ("then caps, then spam rules"); the spend ceiling. Else what is held for the message. Spam charges nothing. */
async function admit(
  parts: Parts,
  { account, budget, decisions }: Attempt,
  blank: Authentication,
  charges: readonly Charge[],
  cost: Cost,
  name?: string,
): Promise<{ readonly refused: Authentication } | { readonly hold: SpendHold }> {
  if (decisions.some((decision) => decision.mode === "enforce")) {
    const full = await wouldRefuse(parts, budget, charges);
    const cap = full === undefined ? await parts.spending.refusal(budget, account, cost) : capDecision(full);
    return { refused: cap === undefined ? refused(blank, "spam_detected", decisions) : refused(blank, "rate_limited", [...decisions, cap]) };
  }
  const held = await parts.spending.hold(budget, account, cost, name);
  return "hold" in held ? held : { refused: refused(blank, "rate_limited", [...decisions, held.refusal]) };
}

/** Charges the caps: the refused record where one of them refuses. */
async function refusedByCaps(
  parts: Parts,
  { budget, decisions }: Attempt,
  blank: Authentication,
  charges: readonly Charge[],
): Promise<Authentication | undefined> {
  const refusal = await charge(parts, budget, charges);
  return refusal === undefined ? undefined : refused(blank, "rate_limited", [...decisions, capDecision(refusal)]);
}

/** "One created `rate_limited` or `spam_detected` stays until `expires_at` only and holds no code" (contract.md, lifetime). */
function refused(blank: Authentication, status: AuthenticationStatus, decisions: readonly Decision[]): Authentication {
  return { ...blank, planned: false, status, decisions, keepUntil: blank.expiresAt };
}

/** The record of a write that nothing else can have raced: a fresh random id. */
function stored(swap: { readonly swapped: boolean; readonly held?: Held }): Held {
  return swap.swapped && swap.held !== undefined ? swap.held : raceLost();
}

function toResponse(auth: Authentication): AuthenticationResponse {
  return { authentication_uuid: auth.id, created_at: timestamp(auth.createdAt), expires_at: timestamp(auth.expiresAt), status: auth.status };
}
