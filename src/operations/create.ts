import { readDestination, requireChannel } from "../access/destination.js";
import type { CreateAuthenticationRequest } from "../contract/authentication.js";
import type { AuthenticationResult } from "../contract/direct.js";
import type { StartRequest } from "../contract/verification.js";
import type { StoreDeadline } from "../core/deadline.js";
import type { Authentication } from "../domain/authentication.js";
import { decideCreate, type NewAuthentication, newAuthentication, refusedAuthentication } from "../domain/create.js";
import { isEnforced } from "../domain/decision.js";
import type { PhoneNumber } from "../domain/phone-number.js";
import type { Account } from "../domain/policy.js";
import { type HandedOver, handOverInTime } from "../messages/hand-over.js";
import type { GivenMessage } from "../messages/plan.js";
import { reserve } from "../messages/reserve.js";
import { toAuthenticationResult } from "./answers.js";
import type { Context } from "./context.js";
import { keyedCreate } from "./idempotency.js";
import { askAboutCreate, asksOthers } from "./outside.js";
import { refuseCreate } from "./refusals.js";

/**
 * "Create: errors (400) first, then the caller's spam rules → `spam_detected`, then caps → `rate_limited`, then our
 * spam rules → `spam_detected`, else the code is sent and the status is `pending`" (docs/contract.md#create-order).
 * "The three outcomes all make an authentication with an id and `expires_at`" (docs/contract.md#create-outcomes).
 */
export async function create(context: Context, account: Account, request: CreateAuthenticationRequest, key?: string): Promise<AuthenticationResult> {
  const { clock, keyring, settings } = context;
  const { policy } = account;
  const phone = readDestination(context, request.phone_number);
  requireChannel(context, request.channel);
  const deadline = context.newDeadline();
  const keyed = key === undefined ? undefined : keyedCreate(context, account, request, key);
  const repeated = await keyed?.find(deadline, asksOthers(settings, request));
  if (repeated !== undefined) return toAuthenticationResult(repeated, phone.number, policy, clock.now());

  const id = keyed?.id ?? keyring.newId();
  const { auth } = await begin(context, account, deadline, request, phone, { id, at: id, request: keyed?.fingerprint, starts: [], replaces: () => false });
  return toAuthenticationResult(keyed?.same(auth) ?? auth, phone.number, policy, clock.now());
}

/** Where a new authentication goes, and what it has besides its request. */
export interface Beginning extends Pick<NewAuthentication, "id" | "request" | "starts">, Partial<Pick<NewAuthentication, "purpose" | "lifetime">> {
  /** The id of the stored record: its own, or its slot. */
  readonly at: string;
  /** Whether it takes the place of what is stored there. */
  readonly replaces: (stored: Authentication, now: number) => boolean;
  /** Of a delivery. */
  readonly delivery?: Delivered | undefined;
}

/** What a delivery has besides its request. */
export interface Delivered {
  readonly given: GivenMessage;
  readonly known: boolean;
  /** No one reports whether its code is entered. */
  readonly grows: boolean;
}

/** The authentication, and the outcome of this call's message, if it sent one. */
export type Begun = Pick<HandedOver, "auth"> & Partial<HandedOver>;

/** Returns what is stored in its place, or the new authentication after its message was handed over or blocked. */
export async function begin(
  context: Context,
  account: Account,
  deadline: StoreDeadline,
  request: StartRequest,
  phone: PhoneNumber,
  beginning: Beginning,
): Promise<Begun> {
  const { id, at, replaces, request: fingerprint, starts, purpose, lifetime, delivery } = beginning;
  const { clock, keyring } = context;
  const { customer, policy } = account;
  const proofName = nameOfProof(context, request, beginning);
  const asked = await askAboutCreate(context, account, deadline, request, phone, id, proofName, delivery?.grows);
  const outside = delivery === undefined ? asked : { ...asked, known: delivery.known };
  const fresh = newAuthentication(
    {
      customer,
      id,
      request: fingerprint,
      starts,
      number: phone.number,
      sealed: keyring.encryptNumber(id, phone.number),
      country: phone.country,
      decisions: outside.fired,
      origin: outside.origin,
      deviceType: request.device_type,
      appRealm: request.app_realm,
      callbackUrl: request.callback_url,
      callbackForm: request.callback_form,
      correlationId: request.correlation_id,
      locale: request.locale,
      codeLength: request.code_length,
      byCall: outside.byCall,
      purpose,
      lifetime,
    },
    clock.now(),
    policy,
  );
  if (outside.fired.some(isEnforced)) return { auth: await refuseCreate(context, account, refusedAuthentication(fresh, "spam_detected", [])) };
  const decide = (stored: Authentication | undefined, now: number) => decideCreate(stored, fresh, now, (one) => replaces(one, now));
  const reserved = await reserve(context, account, { id: at, deadline, isNew: true, outside, given: delivery?.given, channel: request.channel, decide });
  // A solved challenge waives the rules for one create. If the store failed, the repeat still has it.
  if (proofName !== undefined) context.proofs.delete(proofName);
  if ("commit" in reserved) {
    context.monitor.created(reserved.commit.message.next);
    return handOverInTime(context, deadline, reserved.commit);
  }
  if (!("refusal" in reserved)) return { auth: reserved.auth };
  const { status, decision } = reserved.refusal;
  const { country } = fresh;
  if (status === "spam_detected" && country !== undefined && !outside.safe && delivery?.grows !== true) context.countries.refused(account, country);
  return { auth: await refuseCreate(context, account, refusedAuthentication(fresh, status, [decision])) };
}

/** The same for simultaneous calls and repeats under one key, with the same body and proof; without a key `undefined`. */
function nameOfProof({ keyring }: Context, { proof }: StartRequest, { at, request, starts }: Beginning): string | undefined {
  if (proof === undefined || (request === undefined && starts.length === 0)) return undefined;
  return keyring.fingerprints("proof", JSON.stringify([at, request, starts, proof]))[0];
}
